//! When the write lock was taken, as its holder noted it: the word of the table's key
//! [`HELD_SINCE`](crate::chronicle::format::table::HELD_SINCE), milliseconds since 1970 above the pid that
//! took the lock.
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

/// Bits of a pid: Linux has none above.
const PID_BITS: u32 = 22;
/// No record.
pub const NONE: u64 = 0;

/// Where a process leaves its record.
#[derive(Default)]
pub struct HeldSince {
    /// The position of the word; None where there is no room for it.
    position: OnceLock<Option<u64>>,
}

impl HeldSince {
    /// Keeps the position that is found or made. Before the lock is taken: that may wait.
    pub fn prepare(&self, find_or_create: impl FnOnce() -> Result<u64>) -> Result<()> {
        if self.position.get().is_some() {
            return Ok(());
        }
        let found = match find_or_create() {
            Ok(position) => Some(position),
            Err(error @ Error::Interrupted) => return Err(error),
            // A full or damaged table: nobody knows since when, and that is all.
            Err(_) => None,
        };
        let _ = self.position.set(found);
        Ok(())
    }

    /// Notes that this process has taken the lock. Under the lock.
    pub fn note(&self, cells: &Cells) {
        if let Some(position) = self.position() {
            let record = record(process::pid(), clock::coarse_time_ms());
            cells.store_release(position, record, step!("lock.since.store"));
        }
    }

    /// Takes this process's record back; that of another process, which took the lock from it, stays.
    pub fn clear(&self, cells: &Cells) {
        if let Some(position) = self.position() {
            forget(cells, position, process::pid());
        }
    }

    fn position(&self) -> Option<u64> {
        self.position.get().copied().flatten()
    }
}

/// Takes back the record of a holder that the lock was taken from: a process of the same pid, as after a
/// start of the machine, may hold the lock without one.
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

/// The record of a pid; none of a pid or a time that does not fit.
fn record(pid: u32, now_ms: i64) -> u64 {
    let fits = pid >> PID_BITS == 0 && now_ms >> (u64::BITS - PID_BITS) == 0;
    if fits { now_ms.cast_unsigned() << PID_BITS | u64::from(pid) } else { NONE }
}

const fn pid_of(record: u64) -> u32 {
    (record & ((1 << PID_BITS) - 1)) as u32
}
