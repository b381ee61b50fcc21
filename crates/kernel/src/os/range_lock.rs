//! Locks on ranges of a file, between processes.
//!
//! On Linux they belong to the open file description: they exclude the classic record locks that
//! Java takes, survive the closing of other descriptors of the file, and end when the last copy of
//! the descriptor closes. Elsewhere they are classic record locks.
//!
//! Holders of the same description do not exclude each other, and the first of them to unlock ends
//! the exclusion of other processes for all. So threads that share a description also take its
//! [`InProcessMutex`]; if a thread has a description to itself, [`RecordLock::wait_on_own`]
//! suffices. The locked file is a [`LockedFile`](super::locked_file::LockedFile), except while a
//! mapped file grows.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::{Mutex, MutexGuard, TryLockError};
use std::time::{Duration, Instant};

use crate::error::Locked;
use crate::os::detached::Detached;
use crate::os::process;
use crate::probe::fault;

#[cfg(target_os = "linux")]
const SET: libc::c_int = libc::F_OFD_SETLK;
#[cfg(target_os = "linux")]
const GET: libc::c_int = libc::F_OFD_GETLK;
#[cfg(not(target_os = "linux"))]
const SET: libc::c_int = libc::F_SETLK;
#[cfg(not(target_os = "linux"))]
const GET: libc::c_int = libc::F_GETLK;

/// A process that extends or inspects a file holds its lock for less than this.
const SHORTEST_WAIT: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_millis(10);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Other shared holders are allowed.
    Shared,
    Exclusive,
}

/// A range of a file; `length` 0 extends to the greatest position.
#[derive(Clone, Copy, Debug)]
pub struct Range {
    pub start: i64,
    pub length: i64,
}

/// The whole file, including later growth.
pub const WHOLE_FILE: Range = Range { start: 0, length: 0 };

/// Serializes the threads that share one description, before they take its lock.
#[derive(Debug, Default)]
pub struct InProcessMutex(Mutex<()>);

impl InProcessMutex {
    fn wait(&self, wait: &mut Wait<'_>) -> Result<MutexGuard<'_, ()>, Locked> {
        loop {
            match self.0.try_lock() {
                Ok(in_process) => return Ok(in_process),
                Err(TryLockError::Poisoned(in_process)) => return Ok(in_process.into_inner()),
                Err(TryLockError::WouldBlock) => {}
            }
            if let Some(waited) = wait.is_over() {
                return Err(Locked { holder: Some(process::pid()), waited });
            }
        }
    }
}

/// A wait with increasing pauses.
struct Wait<'a> {
    token: &'a Detached,
    start: Instant,
    timeout: Duration,
    pause: Duration,
}

impl<'a> Wait<'a> {
    fn new(timeout: Duration, token: &'a Detached) -> Self {
        let (start, pause) = (Instant::now(), Duration::from_micros(50));
        Self { token, start, timeout: timeout.max(SHORTEST_WAIT), pause }
    }

    /// Pauses once; after the timeout, returns how long the wait was instead.
    fn is_over(&mut self) -> Option<Duration> {
        let waited = self.start.elapsed();
        if waited >= self.timeout {
            return Some(waited);
        }
        self.token.sleep(self.pause);
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        None
    }
}

/// A held lock; dropping it releases it.
#[derive(Debug)]
pub struct RecordLock<'a> {
    held: Held<'a>,
    /// Released after the lock.
    _in_process: Option<MutexGuard<'a, ()>>,
}

#[derive(Debug)]
struct Held<'a> {
    file: &'a File,
    range: Range,
}

impl<'a> RecordLock<'a> {
    /// Waits for the lock until `timeout`, but at least `SHORTEST_WAIT`. The description may be
    /// shared with other threads, which must pass the same `in_process`. On timeout, the error
    /// names the holder.
    pub fn wait(
        file: &'a File,
        in_process: &'a InProcessMutex,
        may_wait: &Detached,
        range: Range,
        kind: Kind,
        timeout: Duration,
    ) -> io::Result<Result<Self, Locked>> {
        let mut wait = Wait::new(timeout, may_wait);
        match in_process.wait(&mut wait) {
            Ok(in_process) => Self::wait_until(file, Some(in_process), range, kind, wait),
            Err(locked) => Ok(Err(locked)),
        }
    }

    /// Like [`RecordLock::wait`], on a description that no other thread locks.
    pub(super) fn wait_on_own(
        file: &'a File,
        may_wait: &Detached,
        range: Range,
        kind: Kind,
        timeout: Duration,
    ) -> io::Result<Result<Self, Locked>> {
        Self::wait_until(file, None, range, kind, Wait::new(timeout, may_wait))
    }

    fn wait_until(
        file: &'a File,
        in_process: Option<MutexGuard<'a, ()>>,
        range: Range,
        kind: Kind,
        mut wait: Wait<'_>,
    ) -> io::Result<Result<Self, Locked>> {
        while !try_hold(file, range, kind)? {
            if let Some(waited) = wait.is_over() {
                return Ok(Err(Locked { holder: holder(file, range)?, waited }));
            }
        }
        Ok(Ok(Self { held: Held { file, range }, _in_process: in_process }))
    }

    /// Keeps the lock until the file's description closes.
    pub(super) fn keep(self) {
        std::mem::forget(self.held);
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        release(self.file, self.range);
    }
}

/// Takes a lock until the description closes; false if another holder has it.
pub(super) fn try_hold(file: &File, range: Range, kind: Kind) -> io::Result<bool> {
    let kind = match kind {
        Kind::Shared => libc::F_RDLCK,
        Kind::Exclusive => libc::F_WRLCK,
    };
    match fault::call!("record-lock.take", control(file, SET, range, kind)) {
        Ok(_) => Ok(true),
        Err(error) => match error.raw_os_error() {
            Some(libc::EAGAIN | libc::EACCES | libc::EINTR) => Ok(false),
            _ => Err(error),
        },
    }
}

/// Releases a range, held or not.
pub(super) fn release(file: &File, range: Range) {
    // Unlocking has no failure that could be handled.
    let _ = fault::call!("record-lock.release", control(file, SET, range, libc::F_UNLCK));
}

/// The start of a lock in the range held by another description, or None.
pub fn held_within(file: &File, range: Range) -> io::Result<Option<i64>> {
    let found = fault::call!("record-lock.look", control(file, GET, range, libc::F_WRLCK))?;
    let is_held = i32::from(found.l_type) != libc::F_UNLCK;
    Ok(is_held.then_some(found.l_start).filter(|start| *start >= range.start))
}

/// Whether another description (elsewhere: process) holds any lock on the range.
pub fn is_held_elsewhere(file: &File, range: Range) -> io::Result<bool> {
    fault::call!("record-lock.look", control(file, GET, range, libc::F_WRLCK))
        .map(|found| i32::from(found.l_type) != libc::F_UNLCK)
}

/// The process that holds a lock on the range; None unless a process holds it.
fn holder(file: &File, range: Range) -> io::Result<Option<u32>> {
    let found = fault::call!("record-lock.look", control(file, GET, range, libc::F_WRLCK))?;
    let is_held = i32::from(found.l_type) != libc::F_UNLCK;
    Ok(u32::try_from(found.l_pid).ok().filter(|pid| is_held && *pid > 0))
}

fn control(file: &File, command: libc::c_int, range: Range, kind: i32) -> io::Result<libc::flock> {
    // The types of these fields differ between systems; the constants fit all of them.
    #[allow(clippy::cast_possible_truncation)]
    let mut lock = libc::flock {
        l_type: kind as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: range.start,
        l_len: range.length,
        l_pid: 0,
    };
    // SAFETY: the descriptor is open, as `file` is borrowed, and both commands take such a struct,
    // which outlives the call.
    let result = unsafe { libc::fcntl(file.as_raw_fd(), command, &raw mut lock) };
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(lock) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_of_one_description_take_turns_and_a_lock_that_was_not_got_ends_none() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let (file, other) = (File::create(&path).unwrap(), File::create(&path).unwrap());
        let (in_process, short) = (InProcessMutex::default(), Duration::ZERO);
        let take = || {
            let (may_wait, kind) = (&Detached::here(), Kind::Exclusive);
            RecordLock::wait(&file, &in_process, may_wait, WHOLE_FILE, kind, short).unwrap()
        };
        let first = take().unwrap();
        std::thread::scope(|threads| {
            let second = threads.spawn(|| take().map(drop).unwrap_err().holder);
            assert_eq!(second.join().unwrap(), Some(process::pid()));
        });
        assert!(is_held_elsewhere(&other, WHOLE_FILE).unwrap());
        drop(first);
        assert!(!is_held_elsewhere(&other, WHOLE_FILE).unwrap());
        assert!(take().is_ok());
    }
}
