//! Checks of the append lock (`docs/protocol.md`, "Append"). An appender checks it before taking
//! the write lock, as Java does, and again under it: a process that closes a queue to appends takes
//! both in this order, and relies on no append happening after that.

use crate::chronicle::format::table;
use crate::os::process;
use crate::{Error, Result};

/// Whether the append lock is free; `word` is its lock word.
#[inline]
#[must_use]
pub const fn is_open(word: u64) -> bool {
    word == table::UNLOCKED
}

/// An error while the append lock is held, as by a replication sink; `word` is its lock word. The
/// holder itself may append metadata.
#[cold]
pub fn check(word: u64, metadata: bool) -> Result<()> {
    if is_open(word) {
        return Ok(());
    }
    let holder = table::holder(word);
    // A power cut may have kept the key and lost its value; no process has this pid.
    if holder == 0 {
        return Ok(());
    }
    if metadata && holder == process::pid() { Ok(()) } else { Err(Error::AppendLocked(holder)) }
}

/// An error unless this process keeps the append lock, as a sink does.
pub fn check_kept(word: u64) -> Result<()> {
    let is_kept = word == u64::from(process::pid());
    if is_kept { Ok(()) } else { Err(Error::AppendLocked(table::holder(word))) }
}
