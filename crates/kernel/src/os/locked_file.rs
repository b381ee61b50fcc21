//! Files whose ranges are locked, between processes and between the threads of this one.
//!
//! The locks belong to a description of the file, which a forked child shares. So each description
//! is noted before the first lock is taken on it, and opened again if a fork came between; a child
//! replaces its descriptors of those it inherited, so that the locks end with the parent. The file
//! is never mapped through this description: a mapping would keep it, and its locks, alive.

use std::fs::File;
use std::io;
use std::ops::Deref;
use std::path::Path;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use super::detached::Detached;
use super::files::{self, Access};
use super::fork::{ForkMutex, Inherited};
use super::interrupt::Signals;
use super::range_lock::{self, InProcessMutex, Kind, Range, RecordLock};
use crate::error::Locked;
use crate::{Error, Result};

/// How often a wait checks for signals.
const STEP: Duration = Duration::from_millis(100);

/// The descriptions of this process that may have locks.
struct Noted {
    /// How many forks this process has begun.
    forks: u64,
    files: Vec<Weak<File>>,
}

static NOTED: ForkMutex<Noted> = ForkMutex::new(Noted { forks: 0, files: Vec::new() });

impl Inherited for Noted {
    fn before_fork(&mut self) {
        self.forks += 1;
    }

    fn after_fork_in_child(&mut self) {
        let inherited = self.files.drain(..).filter_map(|file| file.upgrade());
        inherited.for_each(|file| files::detach_descriptor(&file));
    }
}

/// A file with locks, which end when it is dropped, or with the process.
#[derive(Debug)]
pub struct LockedFile {
    file: Arc<File>,
    /// Serialises the threads that share the description.
    in_process: InProcessMutex,
}

impl LockedFile {
    /// The file that `open` opens, on a description without locks; None if there is no file. If a
    /// fork comes between, `open` is called again.
    pub fn open(open: impl Fn() -> Result<Option<File>>) -> Result<Option<Self>> {
        loop {
            let forks = NOTED.lock().forks;
            let Some(file) = open()?.map(Arc::new) else { return Ok(None) };
            let mut noted = NOTED.lock();
            if noted.forks == forks {
                noted.files.retain(|file| file.strong_count() > 0);
                noted.files.push(Arc::downgrade(&file));
                return Ok(Some(Self { file, in_process: InProcessMutex::default() }));
            }
        }
    }

    /// The file at `path`, for writing; None if it is missing.
    pub fn open_existing(path: &Path) -> Result<Option<Self>> {
        Self::open(|| files::open(path, Access { write: true, create_mode: None }))
    }

    /// The file at `path`, for writing, which is created if missing.
    pub fn open_or_create(path: &Path, file_mode: u32) -> Result<Self> {
        let access = Access { write: true, create_mode: Some(file_mode) };
        Self::open(|| files::open(path, access))?.ok_or_else(|| {
            Error::gone("cannot create, as its directory was removed or renamed", path)
        })
    }

    /// The file at `path`, which is created if missing, with a lock that lasts as long as the file;
    /// None if another holder has the lock.
    pub fn take(
        path: &Path,
        file_mode: u32,
        range: Range,
        kind: Kind,
        may_wait: &Detached,
    ) -> Result<Option<Self>> {
        let file = Self::open_or_create(path, file_mode)?;
        // Java readers briefly take a producer's lock to check whether it is alive.
        match file.keep(path, range, kind, Duration::ZERO, may_wait) {
            Ok(()) => Ok(Some(file)),
            Err(Error::FileLocked { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Like [`LockedFile::take`], without waiting: for a file that no other process knows yet.
    pub fn try_take(path: &Path, file_mode: u32, range: Range, kind: Kind) -> Result<Option<Self>> {
        let file = Self::open_or_create(path, file_mode)?;
        let taken = file.try_keep(range, kind).map_err(|e| Error::io("cannot lock", path, e))?;
        Ok(taken.then_some(file))
    }

    /// Waits for a lock among threads and processes; `path` is for errors. While it is held no
    /// signal handler runs: a handler that needed the lock would wait for the thread it
    /// interrupted.
    pub fn lock<'a>(
        &'a self,
        path: &Path,
        range: Range,
        timeout: Duration,
        signals: Signals<'a>,
    ) -> Result<RecordLock<'a>> {
        patiently(signals, timeout, |may_wait, step| {
            let (file, mutex, kind) = (&self.file, &self.in_process, Kind::Exclusive);
            taken(path, RecordLock::wait(file, mutex, may_wait, range, kind, step))
        })
    }

    /// Waits for a lock among processes, and holds it until the file closes or the lock is
    /// released.
    pub fn keep(
        &self,
        path: &Path,
        range: Range,
        kind: Kind,
        timeout: Duration,
        may_wait: &Detached,
    ) -> Result<()> {
        let lock = RecordLock::wait_on_own(&self.file, may_wait, range, kind, timeout);
        taken(path, lock).map(RecordLock::keep)
    }

    /// Takes a lock among processes until the file closes or the lock is released; false if another
    /// holder has it.
    pub fn try_keep(&self, range: Range, kind: Kind) -> io::Result<bool> {
        range_lock::try_hold(&self.file, range, kind)
    }

    /// Releases a lock, held or not.
    pub fn release(&self, range: Range) {
        range_lock::release(&self.file, range);
    }
}

impl Deref for LockedFile {
    type Target = File;

    fn deref(&self) -> &File {
        &self.file
    }
}

fn taken<'a>(
    path: &Path,
    lock: io::Result<std::result::Result<RecordLock<'a>, Locked>>,
) -> Result<RecordLock<'a>> {
    lock.map_err(|e| Error::io("cannot lock", path, e))?
        .map_err(|locked| Error::FileLocked { file: path.to_path_buf(), locked })
}

/// Repeats `attempt` until it gets its lock or `timeout` has passed, and checks for signals between
/// attempts, while no lock is held.
pub fn patiently<T>(
    mut signals: Signals<'_>,
    timeout: Duration,
    mut attempt: impl FnMut(&Detached, Duration) -> Result<T>,
) -> Result<T> {
    let start = Instant::now();
    loop {
        match attempt(signals.again().deferred(), timeout.min(STEP)) {
            Err(Error::FileLocked { file, locked }) => {
                let waited = start.elapsed();
                if waited >= timeout {
                    return Err(Error::FileLocked { file, locked: Locked { waited, ..locked } });
                }
                signals.check()?;
            }
            done => return done,
        }
    }
}

/// Whether another holder has a lock on the file at `path`; false if it is missing.
pub fn is_held(path: &Path, range: Range) -> Result<bool> {
    let Some(file) = files::open(path, Access { write: false, create_mode: None })? else {
        return Ok(false);
    };
    range_lock::is_held_elsewhere(&file, range).map_err(|e| Error::io("cannot look at", path, e))
}
