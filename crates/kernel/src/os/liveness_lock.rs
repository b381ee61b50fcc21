//! Locks that show that a writer is alive: they last as long as it does.
//!
//! They belong to a description of their file, which a forked child shares. So each file is
//! registered before its lock is taken, and the child replaces its descriptors (`fork.rs`). The file
//! is never mapped through this description: a mapping would keep it, and its locks, alive.

use std::fs::File;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use crate::os::files::{self, Access};
use crate::os::range_lock::{self, Kind, Range, RecordLock};
use crate::{Error, Result};

/// The locked files of this process.
pub struct Held {
    /// How many forks this process has begun.
    forks: u64,
    files: Vec<Weak<File>>,
}

static HELD: Mutex<Held> = Mutex::new(Held { forks: 0, files: Vec::new() });

fn held() -> MutexGuard<'static, Held> {
    HELD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Called right before a fork: keeps the list locked until the fork is over.
pub fn hold() -> MutexGuard<'static, Held> {
    let mut held = held();
    held.forks += 1;
    held
}

/// Called in a forked child: lets the parent's locks end with the parent.
pub fn detach(held: &mut Held) {
    let files = held.files.drain(..).filter_map(|file| file.upgrade());
    files.for_each(|file| files::detach_descriptor(&file));
}

/// A lock that ends when it is dropped, or with the process.
#[derive(Debug)]
pub struct Lock {
    file: Arc<File>,
}

impl Lock {
    /// Locks a range of the file at `path`, which is created if missing; None if somebody else has
    /// the lock.
    pub fn take(path: &Path, file_mode: u32, range: Range, kind: Kind) -> Result<Option<Self>> {
        // Java readers briefly take a producer's lock to see whether it is alive.
        Self::wait(path, file_mode, range, kind, Duration::ZERO)
    }

    /// Like [`Lock::take`], but waits for this long if somebody else has the lock.
    pub fn wait(
        path: &Path,
        file_mode: u32,
        range: Range,
        kind: Kind,
        timeout: Duration,
    ) -> Result<Option<Self>> {
        let file = open(path, file_mode)?;
        let taken = RecordLock::wait_on_own(&file, range, kind, timeout);
        let taken = taken.map_err(|e| Error::io("cannot lock", path, e))?;
        let is_taken = taken.map(RecordLock::keep).is_ok();
        Ok(is_taken.then_some(Self { file }))
    }

    /// The locked file, even if its path now names another one.
    #[must_use]
    pub fn file(&self) -> &File {
        &self.file
    }
}

fn open(path: &Path, file_mode: u32) -> Result<Arc<File>> {
    loop {
        let before = held().forks;
        let access = Access { write: true, create_mode: Some(file_mode) };
        let file = files::open(path, access)?.map(Arc::new).ok_or_else(|| {
            Error::gone("cannot create, as its directory was removed or renamed", path)
        })?;
        let mut held = held();
        if held.forks == before {
            held.files.retain(|file| file.strong_count() > 0);
            held.files.push(Arc::downgrade(&file));
            return Ok(file);
        }
    }
}

/// Whether somebody else holds a lock on the file at `path`; false if it is missing.
pub fn is_held(path: &Path, range: Range) -> Result<bool> {
    let Some(file) = files::open(path, Access { write: false, create_mode: None })? else {
        return Ok(false);
    };
    range_lock::is_held_elsewhere(&file, range).map_err(|e| Error::io("cannot look at", path, e))
}
