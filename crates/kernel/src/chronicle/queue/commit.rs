//! Durability of appended messages: what a queue promises, and how far it has synced.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::os::detached::{Detached, SharedState};
use crate::{Error, Result};

/// What an appended message survives without a call of `sync`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// The end of the process.
    #[default]
    Process,
    /// A power cut, after the next background sync.
    Batch,
    /// A power cut, once the append has returned.
    Each,
}

impl Durability {
    /// Every one.
    pub const ALL: [Self; 3] = [Self::Process, Self::Batch, Self::Each];

    /// Its name as an option.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Process => "process",
            Self::Batch => "batch",
            Self::Each => "each",
        }
    }

    /// How long messages are collected for one sync, by default.
    #[must_use]
    pub const fn group_commit(self) -> Duration {
        match self {
            Self::Batch => Duration::from_millis(100),
            Self::Process | Self::Each => Duration::ZERO,
        }
    }
}

/// The state of a queue's durability.
pub struct Commit {
    durability: Durability,
    collects_for: Duration,
    /// Whether appends have more to do than appending.
    is_slow: AtomicBool,
    /// The last index that a sync of this process has covered.
    synced: AtomicI64,
    syncing: SharedState<()>,
    failed: Mutex<Option<(PathBuf, i32)>>,
}

impl Commit {
    /// The initial state: no sync has covered anything yet.
    #[must_use]
    pub const fn new(durability: Durability, collects_for: Duration, keeps_times: bool) -> Self {
        Self {
            durability,
            collects_for,
            is_slow: AtomicBool::new(matches!(durability, Durability::Each) || keeps_times),
            synced: AtomicI64::new(i64::MIN),
            syncing: SharedState::new(()),
            failed: Mutex::new(None),
        }
    }

    /// The promised durability.
    #[must_use]
    pub const fn durability(&self) -> Durability {
        self.durability
    }

    /// How long messages are collected for one sync.
    #[must_use]
    pub const fn collects_for(&self) -> Duration {
        self.collects_for
    }

    /// Whether appends have more to do than appending.
    #[inline]
    #[must_use]
    pub fn is_slow(&self) -> bool {
        self.is_slow.load(Ordering::Relaxed)
    }

    /// The lock for syncing: one caller syncs for all that wait.
    pub fn lock_syncing<'a>(&'a self, may_wait: &'a Detached) -> MutexGuard<'a, ()> {
        self.syncing.lock(may_wait)
    }

    /// The last index that a sync of this process covered.
    #[must_use]
    pub fn synced(&self) -> i64 {
        self.synced.load(Ordering::Acquire)
    }

    /// Notes that a sync covered messages up to `last`.
    pub fn note(&self, last: i64) {
        self.synced.fetch_max(last, Ordering::AcqRel);
    }

    /// Makes every later append fail: messages whose append has returned may not be on the medium.
    pub fn fail(&self, error: &Error) {
        let failed = match error {
            Error::Io { path, source, .. } => {
                (path.clone(), source.raw_os_error().unwrap_or(libc::EIO))
            }
            _ => (PathBuf::new(), libc::EIO),
        };
        self.lock_failed().get_or_insert(failed);
        self.is_slow.store(true, Ordering::Relaxed);
    }

    /// An error once a sync in the background has failed.
    pub fn check(&self) -> Result<()> {
        match &*self.lock_failed() {
            None => Ok(()),
            Some((path, code)) => {
                let what = "a sync of earlier messages failed: close the queue and check it";
                Err(Error::io(what, path, std::io::Error::from_raw_os_error(*code)))
            }
        }
    }

    fn lock_failed(&self) -> MutexGuard<'_, Option<(PathBuf, i32)>> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
