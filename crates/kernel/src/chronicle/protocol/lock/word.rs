//! The write lock word (`docs/protocol.md`, "Write lock"): its holder may change roll files.
//!
//! ```text
//! UNLOCKED --CAS--> pid of the holder --CAS--> UNLOCKED
//! ```
//! 1. take: CAS from `UNLOCKED` to the own pid. The threads of a process first take an in-process
//!    lock (`guard.rs`);
//! 2. hold: check the word again before publishing a header;
//! 3. release: CAS from the own pid to `UNLOCKED`. If that fails, the lock was taken by force.
//!
//! The word keeps the pid of a holder that dies; `recovery.rs` notices and forces the word.

use crate::chronicle::format::table::UNLOCKED;
use crate::memory::Cells;
use crate::probe::fault::step;

/// A lock word of the table store.
#[derive(Clone, Copy)]
pub struct LockWord<'a> {
    cells: &'a Cells,
    position: u64,
}

impl<'a> LockWord<'a> {
    /// The word at `position` of the table.
    #[must_use]
    pub const fn new(cells: &'a Cells, position: u64) -> Self {
        Self { cells, position }
    }

    /// Takes the lock for `pid`, or returns the word found.
    #[inline]
    pub fn try_take(self, pid: u32) -> Result<(), u64> {
        self.cells.swap_acq_rel(self.position, UNLOCKED, u64::from(pid), step!("lock.take.cas"))
    }

    /// Ok while the word still names `pid`; the word found otherwise.
    #[inline]
    pub fn still_held(self, pid: u32) -> Result<(), u64> {
        match self.read() {
            found if found == u64::from(pid) => Ok(()),
            found => Err(found),
        }
    }

    /// Releases the lock; the word found if it no longer named `pid`.
    #[inline]
    pub fn release(self, pid: u32) -> Result<(), u64> {
        let own = u64::from(pid);
        self.cells.swap_acq_rel(self.position, own, UNLOCKED, step!("lock.release.cas"))
    }

    /// Frees the lock by force from the holder that `found` names; false if the word changed since.
    #[must_use]
    pub fn force(self, found: u64) -> bool {
        let step = step!("lock.force.cas");
        self.cells.swap_acq_rel(self.position, found, UNLOCKED, step).is_ok()
    }

    /// Takes the lock over from the holder that `found` names, without freeing it in between; false
    /// if the word changed since.
    #[must_use]
    pub fn take_over(self, found: u64, pid: u32) -> bool {
        let step = step!("lock.take-over.cas");
        self.cells.swap_acq_rel(self.position, found, u64::from(pid), step).is_ok()
    }

    /// The word.
    #[inline]
    #[must_use]
    pub fn read(self) -> u64 {
        self.cells.load_acquire(self.position)
    }
}
