//! Bytes that are cut off a roll file, kept at their positions in a file beside it.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::os::files::{self, Access};
use crate::probe::fault;
use crate::{Error, Result};

/// The most side files per position: each is one repair that cut the same file at the same
/// position.
const MOST: u32 = 1000;

/// Copies a file's bytes from `from` on to a side file; returns its path. A side file left by an
/// interrupted repair of the same bytes is completed.
pub fn keep(file: &File, path: &Path, from: u64) -> Result<PathBuf> {
    for number in 0..MOST {
        let side = name(path, from, number);
        let failed = |e| Error::io("cannot keep what is cut off", &side, e);
        let access = Access { write: true, create_mode: Some(0o600) };
        let Some(kept) = files::open(&side, access)? else {
            return Err(Error::gone("cannot create, as its directory was removed", &side));
        };
        if !agree(file, &kept, from).map_err(failed)? {
            continue;
        }
        files::each_used_page(file, from, |at, page| {
            fault::call!("repair.aside.write", kept.write_all_at(page, at))
        })
        .and_then(|()| fault::call!("repair.aside.sync", files::sync(&kept)))
        .map_err(failed)?;
        return Ok(side);
    }
    Err(Error::Invalid(format!("too many side files: file={} limit={MOST}", path.display())))
}

fn name(path: &Path, from: u64, number: u32) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!("-cut-{from:x}"));
    if number > 0 {
        name.push(format!("-{number}"));
    }
    name.push(".discard");
    name.into()
}

/// Whether each page of a side file equals the file's, or is still empty.
fn agree(file: &File, kept: &File, from: u64) -> io::Result<bool> {
    let mut agree = true;
    let mut other = vec![0; 4096];
    files::each_used_page(file, from, |at, page| {
        let there = &mut other[..page.len()];
        there.fill(0);
        let _ = fault::call!("repair.aside.read", kept.read_at(there, at))?;
        agree &= there == page || there.iter().all(|byte| *byte == 0);
        Ok(())
    })?;
    Ok(agree)
}
