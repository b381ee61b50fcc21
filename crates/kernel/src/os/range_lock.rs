//! Locks on ranges of a file, held against other processes.
//!
//! On Linux they belong to the open file description: they exclude the classic record locks that
//! Java takes, survive the closing of other descriptors of the file, and end when the last copy of
//! the descriptor closes. Elsewhere they are classic record locks.
//!
//! Two holders of one description do not exclude each other: threads need a mutex besides.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use crate::error::Locked;
use crate::probe::fault;

#[cfg(target_os = "linux")]
const SET: libc::c_int = libc::F_OFD_SETLK;
#[cfg(target_os = "linux")]
const GET: libc::c_int = libc::F_OFD_GETLK;
#[cfg(not(target_os = "linux"))]
const SET: libc::c_int = libc::F_SETLK;
#[cfg(not(target_os = "linux"))]
const GET: libc::c_int = libc::F_GETLK;

/// Whoever makes a file longer, or looks at it, holds a lock for no longer than this.
const SHORTEST_WAIT: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_millis(10);

/// Shared with other readers, or exclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Others may share it.
    Shared,
    /// Nobody else may hold it.
    Exclusive,
}

/// A range of a file; `length` 0 means to the greatest position.
#[derive(Clone, Copy, Debug)]
pub struct Range {
    /// First byte.
    pub start: i64,
    /// Bytes.
    pub length: i64,
}

/// The whole file, however long it grows.
pub const WHOLE_FILE: Range = Range { start: 0, length: 0 };

/// A held lock; dropping it lets go.
#[derive(Debug)]
pub struct RecordLock<'a> {
    file: &'a File,
    range: Range,
}

impl<'a> RecordLock<'a> {
    /// Waits for the lock until `timeout`, but for others to make a file longer in any case; says
    /// who had it then when it stayed taken.
    pub fn wait(
        file: &'a File,
        range: Range,
        kind: Kind,
        timeout: Duration,
    ) -> io::Result<Result<Self, Locked>> {
        let start = Instant::now();
        let timeout = timeout.max(SHORTEST_WAIT);
        let mut pause = Duration::from_micros(50);
        while !try_hold(file, range, kind)? {
            let waited = start.elapsed();
            if waited >= timeout {
                return Ok(Err(Locked { holder: holder(file, range)?, waited }));
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
        Ok(Ok(Self { file, range }))
    }

    /// Held until the file's description closes.
    pub const fn keep(self) {
        std::mem::forget(self);
    }
}

impl Drop for RecordLock<'_> {
    fn drop(&mut self) {
        release(self.file, self.range);
    }
}

/// Takes a lock until the description closes; false when another holder is in the way.
pub fn try_hold(file: &File, range: Range, kind: Kind) -> io::Result<bool> {
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

/// Lets go of a range, held or not.
pub fn release(file: &File, range: Range) {
    // Unlocking cannot fail for a reason one could act on.
    let _ = fault::call!("record-lock.release", control(file, SET, range, libc::F_UNLCK));
}

/// Where a lock within the range begins that another description holds; None where there is none.
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

/// The process that holds a lock on the range, if it is one of a process.
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
    // SAFETY: the descriptor is open and the struct outlives the call.
    let result = unsafe { libc::fcntl(file.as_raw_fd(), command, &raw mut lock) };
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(lock) }
}
