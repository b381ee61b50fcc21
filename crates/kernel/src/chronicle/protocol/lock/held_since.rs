//! When the write lock was taken, as its holder noted it: the word of the table's key
//! [`HELD_SINCE`](crate::chronicle::format::table::HELD_SINCE), milliseconds since 1970 above the
//! pid that took the lock.
//!
//! 1. before the lock is taken the key is looked up, and created if the table has room;
//! 2. the record is stored under the lock; 3. it is cleared before the lock is released.
//!
//! It is valid only if the lock word has the same pid. Appends store none, being too short to be
//! worth reading the clock. A crash leaves the record along with the lock word of the dead holder.

use std::sync::OnceLock;

use crate::memory::Cells;
use crate::os::{clock, process};
use crate::probe::fault::step;
use crate::{Error, Result};

/// Bits of a pid: the most that Linux uses.
const PID_BITS: u32 = 22;
/// No record.
pub const NONE: u64 = 0;

/// Where a process stores its record.
#[derive(Default)]
pub struct HeldSince {
    /// The position of the word; None if the table has no room for it.
    position: OnceLock<Option<u64>>,
}

impl HeldSince {
    /// Finds or creates the word, and keeps its position. Called before the lock is taken, as it
    /// may wait.
    pub fn prepare(&self, find_or_create: impl FnOnce() -> Result<u64>) -> Result<()> {
        if self.position.get().is_some() {
            return Ok(());
        }
        let found = match find_or_create() {
            Ok(position) => Some(position),
            Err(error @ Error::Interrupted) => return Err(error),
            // A full or damaged table only means that no record is kept.
            Err(_) => None,
        };
        let _ = self.position.set(found);
        Ok(())
    }

    /// Records that this process has taken the lock. Called under the lock.
    pub fn note(&self, cells: &Cells) {
        if let Some(position) = self.position() {
            let record = record(process::pid(), clock::coarse_time_ms());
            cells.store_release(position, record, step!("lock.since.store"));
        }
    }

    /// Clears this process's record; the record of another process that took the lock by force
    /// stays.
    pub fn clear(&self, cells: &Cells) {
        if let Some(position) = self.position() {
            forget(cells, position, process::pid());
        }
    }

    fn position(&self) -> Option<u64> {
        self.position.get().copied().flatten()
    }
}

/// Clears the record of a holder that lost the lock by force: a later process with the same pid, as
/// after a restart of the machine, may hold the lock without a record.
pub fn forget(cells: &Cells, position: u64, holder: u32) {
    let found = cells.load_acquire(position);
    if found != NONE && pid_of(found) == holder {
        let _ = cells.swap_acq_rel(position, found, NONE, step!("lock.since.clear"));
    }
}

/// When `holder` took the lock, in milliseconds since 1970; None without a record of it.
#[must_use]
pub fn since_ms(cells: &Cells, position: u64, holder: u32) -> Option<i64> {
    let found = cells.load_acquire(position);
    (found != NONE && pid_of(found) == holder).then(|| (found >> PID_BITS).cast_signed())
}

/// The record of a pid and a time; [`NONE`] if one of them does not fit.
fn record(pid: u32, now_ms: i64) -> u64 {
    let fits = pid >> PID_BITS == 0 && now_ms >> (u64::BITS - PID_BITS) == 0;
    if fits { now_ms.cast_unsigned() << PID_BITS | u64::from(pid) } else { NONE }
}

const fn pid_of(record: u64) -> u32 {
    (record & ((1 << PID_BITS) - 1)) as u32
}
