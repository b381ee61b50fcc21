//! The length of a growing file as known to one process, whose threads update it concurrently.

#[cfg(loom)]
use loom::sync::atomic::{AtomicU64, Ordering};
#[cfg(not(loom))]
use std::sync::atomic::{AtomicU64, Ordering};

/// The file's length when a thread last checked.
#[derive(Debug)]
pub struct KnownLength(AtomicU64);

impl KnownLength {
    /// The length of a file that was just checked.
    #[must_use]
    pub fn new(len: u64) -> Self {
        Self(AtomicU64::new(len))
    }

    /// The length.
    #[must_use]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }

    /// Checks the file and stores its length. If another thread stored a length meanwhile, checks
    /// again: an outdated length would hide what that thread has grown.
    pub fn refresh<E>(&self, mut look: impl FnMut() -> Result<u64, E>) -> Result<u64, E> {
        loop {
            let known = self.get();
            let found = look()?;
            let stored = self.0.compare_exchange(known, found, Ordering::AcqRel, Ordering::Acquire);
            if stored.is_ok() {
                return Ok(found);
            }
        }
    }
}
