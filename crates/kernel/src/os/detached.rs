//! The rule of waiting, held by types: a wait for a disk or for other threads needs a [`Detached`].
//!
//! A thread that waits with Python's interpreter attached stops all threads of Python. The state of a
//! handle whose holder may wait, as for a sync, is a [`SharedState`]: with the interpreter attached a
//! thread only tries to lock it.

use std::marker::PhantomData;
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

/// Shows that this thread may wait: it has let go of the interpreter.
#[derive(Clone, Copy, Debug)]
pub struct Detached {
    /// It stays with the thread.
    _thread: PhantomData<*const ()>,
}

impl Detached {
    /// For a thread that has no interpreter: the binding has one place where it lets go of it, and
    /// threads of the kernel never have it.
    #[must_use]
    pub const fn here() -> Self {
        Self { _thread: PhantomData }
    }
}

/// State of a handle, for one thread at a time.
#[derive(Debug, Default)]
pub struct SharedState<T>(Mutex<T>);

impl<T> SharedState<T> {
    /// The state, waiting while another thread has it.
    pub fn lock(&self, _: Detached) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The state, unless another thread has it.
    #[inline]
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        match self.0.try_lock() {
            Ok(state) => Some(state),
            Err(TryLockError::Poisoned(state)) => Some(state.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}
