//! Paths: what cannot be one, and what may be read.

use std::path::Path;

use rustix::fs::{AtFlags, CWD, accessat};
use rustix::io::Errno;

use crate::{Error, Result};

/// Whether the system lets this process read what is at `path`, or nothing is there.
#[must_use]
pub fn may_read(path: &Path) -> bool {
    accessat(CWD, path, rustix::fs::Access::READ_OK, AtFlags::EACCESS) != Err(Errno::ACCESS)
}

/// Rejects a URL: as a path, it would name a directory `scheme:`.
pub fn check_local(path: &Path) -> Result<()> {
    let text = path.to_string_lossy();
    let Some((scheme, rest)) = text.split_once(':') else { return Ok(()) };
    let is_scheme = scheme.len() > 1
        && scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+.-".contains(c));
    // `pathlib` collapses the two slashes, so a directory with that name may be meant.
    let may_be_directory = || !rest.starts_with("//") && Path::new(&format!("{scheme}:")).exists();
    if !is_scheme || !rest.starts_with('/') || may_be_directory() {
        return Ok(());
    }
    Err(Error::Unsupported(format!(
        "a queue at a URL: scheme={scheme} path={text} (give the path of a directory on this \
         machine: only quire.open reaches a server, with quire://HOST:PORT/QUEUE)"
    )))
}
