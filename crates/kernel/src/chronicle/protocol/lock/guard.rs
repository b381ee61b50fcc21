//! The write lock while it is held, and the append lock that is looked at before it is taken
//! (`docs/protocol.md`, "Append", steps 1 and 10).

use std::sync::atomic::{AtomicBool, Ordering};

use super::word::LockWord;
use crate::chronicle::format::table;
use crate::chronicle::protocol::table::store::TableStore;
use crate::os::process;
use crate::{Error, warnings};

/// An error while the append lock is held, as by a replication sink. Metadata may be written by its
/// holder.
#[inline]
pub fn check_append_lock(table: &TableStore, metadata: bool) -> crate::Result<()> {
    let word = table.cells().load_acquire(table.words().append_lock);
    if word == table::UNLOCKED {
        return Ok(());
    }
    let holder = table::holder(word);
    // A power cut may have kept the key and lost its value; no process has this pid.
    if holder == 0 {
        return Ok(());
    }
    if metadata && holder == process::pid() { Ok(()) } else { Err(Error::AppendLocked(holder)) }
}

/// A lock word, and the turn that the threads of this process take at it.
///
/// The word alone cannot tell a thread of this process from a dead process of the same pid, as there
/// may be one in another container. A thread takes the turn first and gives it back last, so who has
/// it and finds the own pid in the word found that of a dead process.
#[derive(Clone, Copy)]
pub struct ProcessLock<'a> {
    /// The word.
    pub word: LockWord<'a>,
    /// What it keeps others from.
    pub of: LockOf,
    turn: &'a AtomicBool,
}

/// What a lock keeps others from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockOf {
    /// Changing roll files.
    Queue,
    /// Storing the index of a `replicated:` tailer.
    Tailer,
}

impl LockOf {
    /// The name a user knows it by.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Queue => "write lock",
            Self::Tailer => "replicated tailer's lock",
        }
    }
}

impl<'a> ProcessLock<'a> {
    /// A lock word and its turn.
    #[must_use]
    pub const fn new(word: LockWord<'a>, of: LockOf, turn: &'a AtomicBool) -> Self {
        Self { word, of, turn }
    }

    /// Takes this process's turn, unless another thread has it.
    #[inline]
    #[must_use]
    pub fn try_turn(self) -> Option<Turn<'a>> {
        let taken = self.turn.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed);
        taken.is_ok().then(|| Turn(self.turn))
    }

    /// The turn of a holder that was made to let go of the lock without giving its turn back.
    #[must_use]
    pub const fn turn_taken_over(self) -> Turn<'a> {
        Turn(self.turn)
    }

    /// Takes turn and lock, if both are free.
    #[inline]
    #[must_use]
    pub fn try_take(self) -> bool {
        let Some(turn) = self.try_turn() else { return false };
        let taken = self.word.try_take(process::pid()).is_ok();
        if taken {
            turn.keep();
        }
        taken
    }

    /// Lets go of both; the word found if it no longer named this process.
    #[inline]
    pub fn release(self) -> Result<(), u64> {
        let _turn = Turn(self.turn);
        self.word.release(process::pid())
    }
}

/// The turn at a lock, given back when dropped.
pub struct Turn<'a>(&'a AtomicBool);

impl Turn<'_> {
    /// Stays taken: the lock is held.
    pub const fn keep(self) {
        std::mem::forget(self);
    }
}

impl Drop for Turn<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
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
            warnings::leave(format!("the write lock had been taken away: found={found:#x}"));
        }
    }
}

/// The write lock was taken away: what its word says now.
#[must_use]
pub fn lost(found: u64) -> Error {
    Error::LockLost { expected: u64::from(process::pid()), found }
}
