//! Types that enforce the rule of waiting: a wait for a disk or for other threads needs a
//! [`Detached`].
//!
//! A thread that waits with Python's interpreter attached stops all threads of Python. The state of
//! a handle whose lock may be held during a wait, as for a sync, is a [`SharedState`]: with the
//! interpreter attached a thread only tries to lock it.
//!
//! A handler of a signal may use the handle that the interrupted thread was using. So code that
//! runs handlers needs a token of its own, `&mut Detached`, and a guard that a handler could wait
//! for borrows the token while it is held.

use std::marker::PhantomData;
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

use spin::mutex::{SpinMutex, SpinMutexGuard};

use crate::Result;

/// Proof that this thread may wait: it has detached from the interpreter.
#[derive(Debug)]
pub struct Detached {
    /// Not `Send`: the token belongs to its thread.
    _thread: PhantomData<*const ()>,
}

impl Detached {
    /// For a thread that is detached: the binding calls this at the one place where it detaches,
    /// and threads of the kernel are never attached.
    #[must_use]
    pub const fn here() -> Self {
        Self { _thread: PhantomData }
    }

    /// Sleeps.
    pub fn sleep(&self, duration: Duration) {
        std::thread::sleep(duration);
    }
}

/// State of a handle, accessed by one thread at a time.
#[derive(Debug, Default)]
pub struct SharedState<T>(Mutex<T>);

impl<T> SharedState<T> {
    /// Unlocked state.
    #[must_use]
    pub const fn new(state: T) -> Self {
        Self(Mutex::new(state))
    }

    /// The state, waiting while another thread holds it. No signal handler runs meanwhile.
    pub fn lock<'a>(&'a self, _: &'a Detached) -> MutexGuard<'a, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The state; None while another thread holds it.
    #[inline]
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        match self.0.try_lock() {
            Ok(state) => Some(state),
            Err(TryLockError::Poisoned(state)) => Some(state.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Returns once the state was free, so that the caller can try again.
    pub fn wait_until_free(&self, may_wait: &Detached) {
        drop(self.lock(may_wait));
    }

    /// The state, without locking: the reference is exclusive.
    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner)
    }

    /// The state of a handle that is open: `of_queue` is checked before locking, since in a forked
    /// child the lock may never be released, and `is_open` while holding the state.
    #[inline]
    pub fn lock_open<'a>(
        &'a self,
        may_wait: &'a Detached,
        of_queue: Result<()>,
        is_open: impl FnOnce() -> Result<()>,
    ) -> Result<MutexGuard<'a, T>> {
        of_queue?;
        let state = self.lock(may_wait);
        is_open().map(|()| state)
    }

    /// Like [`Self::lock_open`]; None while another thread holds the state.
    #[inline]
    pub fn try_lock_open(
        &self,
        of_queue: Result<()>,
        is_open: impl FnOnce() -> Result<()>,
    ) -> Option<Result<MutexGuard<'_, T>>> {
        if let Err(error) = of_queue {
            return Some(Err(error));
        }
        let state = self.try_lock()?;
        Some(is_open().map(|()| state))
    }
}

/// State that is locked once per message: like [`SharedState`], but unlocking costs only one store.
/// Waiters yield.
#[derive(Debug, Default)]
pub struct SpinState<T>(SpinMutex<T, spin::Yield>);

/// The state, locked.
pub type SpinGuard<'a, T> = SpinMutexGuard<'a, T, spin::Yield>;

impl<T> SpinState<T> {
    /// Unlocked state.
    #[must_use]
    pub const fn new(state: T) -> Self {
        Self(SpinMutex::new(state))
    }

    /// The state, waiting while another thread holds it. No signal handler runs meanwhile.
    #[inline]
    pub fn lock<'a>(&'a self, _: &'a Detached) -> SpinGuard<'a, T> {
        self.0.lock()
    }

    /// The state; None while another thread holds it.
    #[inline]
    pub fn try_lock(&self) -> Option<SpinGuard<'_, T>> {
        self.0.try_lock()
    }
}
