//! Which members are alive: each keeps a byte of the side file locked, and the lock ends with its
//! process.
//!
//! The bytes lie beyond the end of the file. A member that takes over a dead member's byte first
//! releases its claims.

use std::fs::File;
use std::path::Path;

use crate::groups::format::layout::{self, MEMBERS};
use crate::os::detached::Detached;
use crate::os::locked_file::LockedFile;
use crate::os::range_lock::{self, Kind, Range};
use crate::{Error, Result};

const fn byte(member: u16) -> Range {
    Range { start: layout::liveness_byte(member), length: 1 }
}

/// Takes the byte of a free number; None if all are taken.
pub fn join(
    path: &Path,
    file: &File,
    file_mode: u32,
    may_wait: &Detached,
) -> Result<Option<(u16, LockedFile)>> {
    for member in 0..MEMBERS {
        if is_alive(path, file, member)? {
            continue;
        }
        let lock = LockedFile::take(path, file_mode, byte(member), Kind::Exclusive, may_wait)?;
        if let Some(lock) = lock {
            return Ok(Some((member, lock)));
        }
    }
    Ok(None)
}

/// Whether a process holds a member's byte. `file` must hold none itself.
pub fn is_alive(path: &Path, file: &File, member: u16) -> Result<bool> {
    range_lock::is_held_elsewhere(file, byte(member))
        .map_err(|e| Error::io("cannot look at the lock of a member", path, e))
}

/// The numbers of all living members.
pub fn members(path: &Path, file: &File) -> Result<Vec<u16>> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(member) = next_member(path, file, from)? {
        found.push(member);
        from = member + 1;
    }
    Ok(found)
}

fn next_member(path: &Path, file: &File, from: u16) -> Result<Option<u16>> {
    if from >= MEMBERS {
        return Ok(None);
    }
    let range =
        Range { start: layout::liveness_byte(from), length: i64::from(MEMBERS) - i64::from(from) };
    let held = range_lock::held_within(file, range)
        .map_err(|e| Error::io("cannot look at the locks of members", path, e))?;
    let number = held.map(|start| start - layout::liveness_byte(0));
    Ok(number.and_then(|number| u16::try_from(number).ok()).filter(|number| *number < MEMBERS))
}
