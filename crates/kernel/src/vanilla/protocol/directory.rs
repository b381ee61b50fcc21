//! Directories of cycles: entered without following links, and listed.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::os::files;
use crate::probe::fault;
use crate::vanilla::format::names::FileName;
use crate::{Error, Result};

/// The directory of a cycle, by its path below `base`; None if it is missing.
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

/// Like [`find`], but created if missing.
pub fn find_or_make(base: &Path, name: &str, file_mode: u32) -> Result<PathBuf> {
    let mut path = base.to_path_buf();
    for part in name.split('/') {
        path.push(part);
        if !is_directory(&path)? {
            make(&path, file_mode)?;
        }
    }
    Ok(path)
}

/// Creates one directory, which may already exist.
pub fn make(path: &Path, file_mode: u32) -> Result<()> {
    match fault::call!("vanilla.dir.create", files::make_directory(path, permissions(file_mode))) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => {
            Err(Error::io("cannot make", path, error))
        }
        _ => Ok(()),
    }
}

/// Permissions of a directory of such files: users who may read a file may search it.
#[must_use]
pub const fn permissions(file_mode: u32) -> u32 {
    file_mode | (file_mode & 0o444) >> 2 | 0o700
}

/// Returns when the names in a cycle's directory are on the medium, and its own name below `base`.
pub fn sync(base: &Path, directory: &Path) -> Result<()> {
    for path in directory.ancestors().take_while(|path| path.starts_with(base)) {
        let synced = fault::call!("vanilla.dir.sync", files::sync_directory(path));
        synced.map_err(|e| Error::io("cannot sync", path, e))?;
    }
    Ok(())
}

/// Whether the directory exists; an error if the path is a link or not a directory.
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

/// Files of a cycle with their lengths. Foreign names, links and directories are skipped. Empty if
/// the cycle was removed, as by retention.
pub fn files(directory: &Path) -> Result<Vec<(FileName, u64)>> {
    let failed = |e| Error::io("cannot list", directory, e);
    let mut files = Vec::new();
    let entries = match fault::call!("vanilla.dir.read", std::fs::read_dir(directory)) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(files),
        listed => listed.map_err(failed)?,
    };
    for entry in entries {
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
