//! The write lock while it is held. Functions that store to roll files take a [`WriteGuard`];
//! without one they do not compile. Functions that wait under the lock, as for space, take a
//! [`DetachedGuard`].

use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};

use super::word::LockWord;
use crate::os::detached::Detached;
use crate::os::process;
use crate::{Error, warnings};

/// A lock word, and the in-process lock that its threads take first.
///
/// The word alone cannot distinguish a thread of this process from a dead process with the same
/// pid, as there may be one in another container. A thread takes the in-process lock first and
/// releases it last: so if its owner finds the own pid in the word, that is the pid of a dead
/// process.
#[derive(Clone, Copy)]
pub struct ProcessLock<'a> {
    /// The word.
    pub word: LockWord<'a>,
    /// What the lock protects.
    pub of: LockOf,
    in_process: &'a AtomicBool,
}

/// What a lock protects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockOf {
    /// Changing roll files.
    Queue,
    /// Storing the index of a `replicated:` tailer.
    Tailer,
    /// Appending to a replica.
    Appends,
}

impl LockOf {
    /// The name shown to users.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Queue => "write lock",
            Self::Tailer => "replicated tailer's lock",
            Self::Appends => "append lock",
        }
    }
}

impl<'a> ProcessLock<'a> {
    /// A lock word and its in-process lock.
    #[must_use]
    pub const fn new(word: LockWord<'a>, of: LockOf, in_process: &'a AtomicBool) -> Self {
        Self { word, of, in_process }
    }

    /// Takes the in-process lock, unless another thread holds it.
    #[inline]
    #[must_use]
    pub fn try_in_process(self) -> Option<InProcessGuard<'a>> {
        let taken =
            self.in_process.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed);
        taken.is_ok().then(|| InProcessGuard(self.in_process))
    }

    /// The in-process lock of an owner that lost the write lock by force.
    #[must_use]
    pub const fn in_process_taken_over(self) -> InProcessGuard<'a> {
        InProcessGuard(self.in_process)
    }

    /// Takes the in-process lock and the lock word, if both are free.
    #[inline]
    #[must_use]
    pub fn try_take(self) -> Option<LockGuard<'a>> {
        let in_process = self.try_in_process()?;
        let pid = process::pid();
        self.word.try_take(pid).ok()?;
        in_process.keep();
        Some(LockGuard::resume(self, pid))
    }
}

/// The in-process half of a lock, released when dropped.
pub struct InProcessGuard<'a>(&'a AtomicBool);

impl InProcessGuard<'_> {
    /// Keeps the in-process lock taken, with the lock word.
    pub const fn keep(self) {
        std::mem::forget(self);
    }
}

impl Drop for InProcessGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

/// A held lock, released on drop.
pub struct LockGuard<'a> {
    lock: ProcessLock<'a>,
    /// The process that the word names while the lock is held.
    pid: u32,
}

impl<'a> LockGuard<'a> {
    /// The guard of a lock that `pid` has taken, with its in-process lock.
    #[inline]
    #[must_use]
    pub const fn resume(lock: ProcessLock<'a>, pid: u32) -> Self {
        Self { lock, pid }
    }
}

impl Drop for LockGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        let _in_process = InProcessGuard(self.lock.in_process);
        // Only the write lock's loss is logged: its owner may have been in the middle of a change,
        // while a tailer's index is stored either way.
        if let Err(found) = self.lock.word.release(self.pid)
            && self.lock.of == LockOf::Queue
        {
            warn_of_loss(found);
        }
    }
}

#[cold]
fn warn_of_loss(found: u64) {
    warnings::leave(format!("the write lock had been taken away: found={found:#x}"));
}

/// The write lock of a queue, taken.
pub struct WriteGuard<'a>(LockGuard<'a>);

impl<'a> WriteGuard<'a> {
    /// The guard for changing a queue's roll files.
    #[inline]
    #[must_use]
    pub const fn new(taken: LockGuard<'a>) -> Self {
        Self(taken)
    }

    /// Ok while the lock is held; the word found if it was taken by force.
    #[inline]
    pub fn check(&self) -> Result<(), u64> {
        self.0.lock.word.still_held(self.0.pid)
    }

    /// An error if the lock was taken by force.
    pub fn check_held(&self) -> crate::Result<()> {
        self.check().map_err(|found| self.lost(found))
    }

    /// The error of a lock that was taken by force; its word is `found`.
    #[must_use]
    pub fn lost(&self, found: u64) -> Error {
        Error::LockLost { expected: u64::from(self.0.pid), found }
    }

    /// The error for evidence that the lock was taken by force, with the current word.
    #[must_use]
    pub fn lost_now(&self) -> Error {
        self.lost(self.0.lock.word.read())
    }
}

/// The write lock of a queue, held by either kind of guard.
pub trait HeldLock<'a> {
    /// The guard to store with.
    fn write(&self) -> &WriteGuard<'a>;

    /// Keeps the lock taken, for an open document.
    fn keep(self);
}

impl<'a> HeldLock<'a> for WriteGuard<'a> {
    #[inline]
    fn write(&self) -> &WriteGuard<'a> {
        self
    }

    fn keep(self) {
        std::mem::forget(self.0);
    }
}

impl<'a> HeldLock<'a> for DetachedGuard<'a> {
    #[inline]
    fn write(&self) -> &WriteGuard<'a> {
        &self.guard
    }

    fn keep(self) {
        self.guard.keep();
    }
}

/// The write lock of a queue, held by a thread that may wait. It borrows the thread's token, so
/// that no signal handler runs while the lock is held: a handler would find the lock taken by the
/// thread that it interrupted.
pub struct DetachedGuard<'a> {
    guard: WriteGuard<'a>,
    may_wait: &'a Detached,
}

impl<'a> DetachedGuard<'a> {
    /// The guard of a lock that this thread has taken.
    #[inline]
    #[must_use]
    pub const fn new(guard: WriteGuard<'a>, may_wait: &'a Detached) -> Self {
        Self { guard, may_wait }
    }

    /// The token, for a wait under the lock.
    #[inline]
    #[must_use]
    pub const fn may_wait(&self) -> &'a Detached {
        self.may_wait
    }
}

impl<'a> Deref for DetachedGuard<'a> {
    type Target = WriteGuard<'a>;

    #[inline]
    fn deref(&self) -> &WriteGuard<'a> {
        &self.guard
    }
}
