//! Which named tailers are in use: at most one open tailer per name.
//!
//! The reader holds a record lock on a byte of the table that belongs to the key, so that no two
//! names share one. Two further bytes encode the holder and since when it holds the lock, which the
//! system does not report for locks of an open file description. The system drops all of them with
//! the process. Within the process, whose queues share one description, a list does the same.

use std::collections::HashMap;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use crate::chronicle::format::table::{
    IN_USE_PID_START, IN_USE_PIDS, IN_USE_SECONDS, IN_USE_SINCE_START, IN_USE_START,
};
use crate::os::detached::Detached;
use crate::os::locked_file::LockedFile;
use crate::os::process;
use crate::os::range_lock::{self, Kind, Range};

/// How long to retry: other processes briefly lock the whole table, and a holder takes its
/// identifying bytes a moment later.
const PATIENCE: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(1);

/// The reader that has a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holder {
    /// Its pid; 0 if unknown.
    pub pid: u32,
    /// When it took the name, in seconds since 1970; 0 if unknown.
    pub since_s: i64,
}

/// The names that this process has: the positions of their values, and since when.
#[derive(Default)]
pub struct TailersInUse {
    held: Mutex<HashMap<u64, i64>>,
}

impl TailersInUse {
    /// Takes the name whose value lies at `value`; returns the holder if another reader has it.
    pub fn take(
        &self,
        file: &LockedFile,
        value: u64,
        may_wait: &Detached,
    ) -> io::Result<Option<Holder>> {
        let since_s = now_s();
        if let Some(since_s) = self.reserve(value, since_s) {
            return Ok(Some(Holder { pid: process::pid(), since_s }));
        }
        let taken = hold(file, value, since_s, may_wait);
        if !matches!(taken, Ok(None)) {
            self.lock().remove(&value);
        }
        taken
    }

    /// Releases a name.
    pub fn release(&self, file: &LockedFile, value: u64) {
        let mut held = self.lock();
        if let Some(since_s) = held.get(&value).copied() {
            for range in [pid_byte(value, process::pid()), since_byte(value, since_s), byte(value)]
            {
                file.release(range);
            }
            held.remove(&value);
        }
    }

    /// Notes a name as taken; returns since when if it already is.
    fn reserve(&self, value: u64, since_s: i64) -> Option<i64> {
        let mut held = self.lock();
        let before = held.get(&value).copied();
        if before.is_none() {
            held.insert(value, since_s);
        }
        before
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, i64>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn hold(
    file: &LockedFile,
    value: u64,
    since_s: i64,
    may_wait: &Detached,
) -> io::Result<Option<Holder>> {
    let deadline = Instant::now() + PATIENCE;
    while !file.try_keep(byte(value), Kind::Exclusive)? {
        let holder = holder_of(file, value)?;
        let is_over = Instant::now() >= deadline;
        if is_over || (holder.pid != 0 && holder.since_s != 0) {
            return Ok(Some(holder));
        }
        may_wait.sleep(PAUSE);
    }
    // These two are only informative: the name is held without them.
    for range in [pid_byte(value, process::pid()), since_byte(value, since_s)] {
        let _ = file.try_keep(range, Kind::Shared);
    }
    Ok(None)
}

fn holder_of(file: &LockedFile, value: u64) -> io::Result<Holder> {
    let (pids, seconds) = (pids(value), seconds(value));
    let pid = range_lock::held_within(file, pids)?.map_or(0, |at| at - pids.start);
    let since_s = range_lock::held_within(file, seconds)?.map_or(0, |at| at - seconds.start);
    Ok(Holder { pid: u32::try_from(pid).unwrap_or(0), since_s })
}

fn now_s() -> i64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_secs()).unwrap_or(0).clamp(1, IN_USE_SECONDS - 1)
}

/// Values lie at multiples of 8, within the 16 MiB of a table that are mapped.
const fn slot(value: u64) -> i64 {
    (value / 8).cast_signed() & 0x1F_FFFF
}

const fn byte(value: u64) -> Range {
    Range { start: IN_USE_START + slot(value), length: 1 }
}

const fn pids(value: u64) -> Range {
    Range { start: IN_USE_PID_START + slot(value) * IN_USE_PIDS, length: IN_USE_PIDS }
}

const fn seconds(value: u64) -> Range {
    Range { start: IN_USE_SINCE_START + slot(value) * IN_USE_SECONDS, length: IN_USE_SECONDS }
}

fn pid_byte(value: u64, pid: u32) -> Range {
    Range { start: pids(value).start + i64::from(pid), length: 1 }
}

const fn since_byte(value: u64, since_s: i64) -> Range {
    Range { start: seconds(value).start + since_s, length: 1 }
}
