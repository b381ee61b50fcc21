//! Directories of cycles: entered without following links, and listed.

use std::fs::DirBuilder;
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use crate::os::files;
use crate::probe::fault;
use crate::vanilla::format::names::FileName;
use crate::{Error, Result};

/// The directory of a cycle, by its path below `base`; None when it is missing.
pub fn find(base: &Path, name: &str) -> Result<Option<PathBuf>> {
    let mut path = base.to_path_buf();
    for part in name.split('/') {
        path.push(part);
        if !is_directory(&path)? {
            return Ok(None);
        }
    }
    Ok(Some(path))
}

/// As [`find`], made when it is missing. Names of directories that were made are on the medium when
/// `synced`.
pub fn find_or_make(base: &Path, name: &str, file_mode: u32, synced: bool) -> Result<PathBuf> {
    let mut path = base.to_path_buf();
    for part in name.split('/') {
        let parent = path.clone();
        path.push(part);
        if !is_directory(&path)? {
            make(&path, file_mode)?;
            if synced {
                sync(&parent)?;
            }
        }
    }
    Ok(path)
}

/// Makes one directory, which may be there by now.
pub fn make(path: &Path, file_mode: u32) -> Result<()> {
    let search = (file_mode & 0o444) >> 2;
    let mut builder = DirBuilder::new();
    builder.mode(file_mode | search | 0o700);
    match fault::call!("vanilla.dir.create", builder.create(path)) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => {
            Err(Error::io("cannot make", path, error))
        }
        _ => Ok(()),
    }
}

/// Returns when the names in a directory are on the medium.
pub fn sync(path: &Path) -> Result<()> {
    let synced = fault::call!("vanilla.dir.sync", files::sync_directory(path));
    synced.map_err(|e| Error::io("cannot sync", path, e))
}

/// Whether there is a directory, not a link to one; an error where there is something else.
pub fn is_directory(path: &Path) -> Result<bool> {
    match fault::call!("vanilla.dir.stat", std::fs::symlink_metadata(path)) {
        Ok(found) if found.is_dir() => Ok(true),
        Ok(found) => {
            let kind = if found.is_symlink() { "a symbolic link" } else { "a file" };
            Err(Error::NotAVanillaQueue {
                why: format!("found {kind} where a directory belongs"),
                path: path.to_path_buf(),
            })
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(Error::io("cannot look at", path, error)),
    }
}

/// Files of a cycle with their lengths. Foreign names, links and directories are skipped.
pub fn files(directory: &Path) -> Result<Vec<(FileName, u64)>> {
    let failed = |e| Error::io("cannot list", directory, e);
    let mut files = Vec::new();
    for entry in fault::call!("vanilla.dir.read", std::fs::read_dir(directory)).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let Some(name) = entry.file_name().to_str().and_then(FileName::parse) else { continue };
        match fault::call!("vanilla.file.stat", entry.metadata()) {
            Ok(found) if found.is_file() => files.push((name, found.len())),
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(failed(error)),
        }
    }
    Ok(files)
}

/// The path of a file of a cycle.
#[must_use]
pub fn path_of(directory: &Path, name: FileName) -> PathBuf {
    directory.join(name.to_string())
}
