//! Whether other users may change a queue.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, TryLockError};

use super::options::Options;
use crate::chronicle::format::table;
use crate::os::process;
use crate::probe::fault;
use crate::warnings;

const BY_OTHERS: u32 = 0o002;
const BY_GROUP: u32 = 0o020;
const ROOT: u32 = 0;

/// The files already warned about, by device and inode, and by path, since a later file may reuse
/// an inode.
static WARNED: Mutex<Vec<(u64, u64, PathBuf)>> = Mutex::new(Vec::new());

/// Warns once of a queue that other users may change: they can forge messages, hold its lock, and
/// truncate its files.
pub fn check(dir: &Path, options: &Options) {
    let table = dir.join(table::FILE_NAME);
    // The directory itself may be reached by a symbolic link, its files may not.
    let looked = [
        (dir, fault::call!("open.table.stat", std::fs::metadata(dir))),
        (&table, fault::call!("open.table.stat", std::fs::symlink_metadata(&table))),
    ];
    for (path, found) in looked {
        let Ok(found) = found else { continue };
        let Some(why) = who_else(&found, options) else { continue };
        if is_new((found.dev(), found.ino(), path.to_path_buf())) {
            let (mode, owner) = (found.mode() & 0o7777, found.uid());
            warnings::leave(format!(
                "{why}: path={} mode={mode:04o} owner={owner} (anyone who can change a queue can \
                 forge, remove and damage its messages: docs/security.md)",
                path.display()
            ));
        }
    }
}

/// Why other users may change a file; None if they may not, or are meant to.
fn who_else(found: &Metadata, options: &Options) -> Option<&'static str> {
    if !found.is_dir() && !found.is_file() {
        return None;
    }
    if found.mode() & BY_OTHERS != 0 && options.file_mode & BY_OTHERS == 0 {
        return Some(
            "every user of this machine may write to this queue: remove the permission (chmod o-w)",
        );
    }
    let is_shared = options.file_mode & BY_GROUP != 0;
    let is_own = [ROOT, process::user()].contains(&found.uid());
    (!is_own && !is_shared && !options.read_only).then_some(
        "this queue belongs to another user: open it with file_mode=0o660 if it is shared on purpose, \
         or with read_only=True",
    )
}

/// Whether this has not been warned about yet. A fork may have copied the list while it was in use.
fn is_new(identity: (u64, u64, PathBuf)) -> bool {
    let mut warned = match WARNED.try_lock() {
        Ok(warned) => warned,
        Err(TryLockError::Poisoned(warned)) => warned.into_inner(),
        Err(TryLockError::WouldBlock) => return false,
    };
    let is_new = !warned.contains(&identity);
    if is_new {
        warned.push(identity);
    }
    is_new
}
