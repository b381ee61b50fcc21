//! The write lock while it is held, and the append lock that is looked at before it is taken
//! (`docs/protocol.md`, "Append", steps 1 and 10).

use std::sync::atomic::{AtomicU32, Ordering};

use super::table_store::TableStore;
use super::write_lock::LockWord;
use crate::format::table;
use crate::memory::process;
use crate::{Error, notice};

/// An error while the append lock is held, as by a replication sink. Metadata may be written by its
/// holder.
#[inline]
pub fn check_append_lock(table: &TableStore, metadata: bool) -> crate::Result<()> {
    let word = table.cells().load_acquire(table.words().append_lock);
    if word == table::UNLOCKED {
        return Ok(());
    }
    let holder = table::holder(word);
    if metadata && holder == process::pid() { Ok(()) } else { Err(Error::AppendLocked(holder)) }
}

/// A lock word, with a count of the threads of this process that hold it or are about to.
///
/// The word alone cannot tell a thread of this process from a dead process of the same pid, as
/// there may be one in another container. The count goes up before the word is tried and down after
/// it was let go, so that 0 means: not held here.
#[derive(Clone, Copy)]
pub struct ProcessLock<'a> {
    /// The word.
    pub word: LockWord<'a>,
    claims: &'a AtomicU32,
}

impl<'a> ProcessLock<'a> {
    /// A lock word and its count.
    #[must_use]
    pub const fn new(word: LockWord<'a>, claims: &'a AtomicU32) -> Self {
        Self { word, claims }
    }

    /// Takes the lock, or returns the word found.
    #[inline]
    pub fn try_take(self) -> Result<(), u64> {
        self.claims.fetch_add(1, Ordering::AcqRel);
        let taken = self.word.try_take(process::pid());
        if taken.is_err() {
            self.claims.fetch_sub(1, Ordering::AcqRel);
        }
        taken
    }

    /// Lets go; the word found if it no longer named this process.
    #[inline]
    pub fn release(self) -> Result<(), u64> {
        let released = self.word.release(process::pid());
        self.claims.fetch_sub(1, Ordering::AcqRel);
        released
    }

    /// Whether a thread of this process holds the lock, or may.
    #[must_use]
    pub fn is_held_here(self) -> bool {
        self.claims.load(Ordering::Acquire) > 0
    }
}

/// The write lock, taken: let go when dropped (step 10), also on the way out of an error.
pub struct Held<'a> {
    /// The table whose lock it is.
    pub table: &'a TableStore,
}

impl Held<'_> {
    /// Stays taken: a document is open.
    pub fn keep(self) {
        std::mem::forget(self);
    }
}

impl Drop for Held<'_> {
    #[inline]
    fn drop(&mut self) {
        if let Err(found) = self.table.write_lock().release() {
            notice::leave(format!("the write lock had been taken away: found={found:#x}"));
        }
    }
}
