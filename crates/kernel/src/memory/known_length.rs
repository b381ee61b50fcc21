//! The length of a growing file as known to one process, whose threads update it concurrently.

#[cfg(loom)]
use loom::sync::atomic::{AtomicU64, Ordering};
#[cfg(not(loom))]
use std::sync::atomic::{AtomicU64, Ordering};

/// What the file's length was when a thread last looked.
#[derive(Debug)]
pub struct KnownLength(AtomicU64);

impl KnownLength {
    /// Of a file that was just looked at.
    #[must_use]
    pub fn new(len: u64) -> Self {
        Self(AtomicU64::new(len))
    }

    /// The length.
    #[must_use]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }

    /// Looks at the file, and stores the length that was found. A thread that looked before
    /// another one stored looks again: otherwise what the other has grown would seem to lie past the
    /// end.
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
