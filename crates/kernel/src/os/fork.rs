//! Forking: state of the whole process must be unlocked and consistent in the child.
//!
//! A lock that another thread of the parent holds at the fork stays locked in the child forever, as
//! that thread does not exist there. So the forking thread first takes the lock of each state that
//! has joined, in the order in which they did, and releases them in the opposite order. State of
//! handles needs no such care: a child never uses the handles of its parent.
//!
//! The system calls these hooks within `fork`, after those of Python's `os.register_at_fork`: a
//! lock that one of them waits for, as that of `logging`, may be held by a thread which opens a
//! queue.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

use super::process;

/// Process-wide state that a child inherits.
pub trait Inherited: Send {
    /// Called in the forking thread right before the fork.
    fn before_fork(&mut self) {}

    /// Called in the child right after the fork.
    fn after_fork_in_child(&mut self);
}

/// A lock around process-wide state. At a fork only the forking thread holds it.
pub struct ForkMutex<T: 'static> {
    has_joined: AtomicBool,
    state: Mutex<T>,
}

impl<T: Inherited> ForkMutex<T> {
    /// An unlocked mutex; it joins when it is first locked.
    pub const fn new(state: T) -> Self {
        Self { has_joined: AtomicBool::new(false), state: Mutex::new(state) }
    }

    /// Locks the state. Holders neither wait nor make system calls.
    pub fn lock(&'static self) -> MutexGuard<'static, T> {
        if !self.has_joined.load(Ordering::Acquire) {
            self.join(&JOINED);
        }
        self.locked()
    }

    /// Makes every later fork lock this state; waits for the end of a fork that has begun.
    fn join(&'static self, joined: &Mutex<Joined>) {
        let mut joined = lock(joined);
        if !self.has_joined.swap(true, Ordering::AcqRel) {
            joined.push(self);
        }
    }

    fn locked(&'static self) -> MutexGuard<'static, T> {
        lock(&self.state)
    }
}

/// A [`ForkMutex`] of any state.
trait Family: Sync {
    fn hold(&'static self) -> Box<dyn Held>;
}

impl<T: Inherited> Family for ForkMutex<T> {
    fn hold(&'static self) -> Box<dyn Held> {
        let mut state = self.locked();
        state.before_fork();
        Box::new(state)
    }
}

/// The guard of one [`Family`], held by the forking thread.
trait Held {
    fn after_fork_in_child(&mut self);
}

impl<T: Inherited> Held for MutexGuard<'static, T> {
    fn after_fork_in_child(&mut self) {
        T::after_fork_in_child(self);
    }
}

type Joined = Vec<&'static dyn Family>;

static JOINED: Mutex<Joined> = Mutex::new(Vec::new());

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// All guards held during a fork.
struct Fork {
    held: Vec<Box<dyn Held>>,
    _joined: MutexGuard<'static, Joined>,
}

impl Fork {
    fn begin(joined: &'static Mutex<Joined>) -> Self {
        let joined = lock(joined);
        Self { held: joined.iter().map(|family| family.hold()).collect(), _joined: joined }
    }

    fn mend(&mut self) {
        self.held.iter_mut().rev().for_each(|held| held.after_fork_in_child());
    }
}

impl Drop for Fork {
    fn drop(&mut self) {
        while self.held.pop().is_some() {}
    }
}

thread_local! {
    static FORK: RefCell<Option<Fork>> = const { RefCell::new(None) };
}

/// Registers the functions below for every fork of this process; only the first call counts.
pub fn watch() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the functions stay loaded, as the interpreter never unloads an extension module,
        // and abort the process rather than unwind into the system's.
        let result = unsafe {
            libc::pthread_atfork(Some(before), Some(after_in_parent), Some(after_in_child))
        };
        debug_assert_eq!(result, 0, "no memory");
    });
}

/// In the forking thread, right before the fork.
extern "C" fn before() {
    FORK.set(Some(Fork::begin(&JOINED)));
}

/// In the parent right after the fork, even if it failed.
extern "C" fn after_in_parent() {
    FORK.take();
}

/// In the child right after the fork.
extern "C" fn after_in_child() {
    process::after_fork_in_child();
    if let Some(mut fork) = FORK.take() {
        fork.mend();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The calls so far, in order.
    static CALLED: Mutex<Vec<(&str, &str)>> = Mutex::new(Vec::new());

    struct Named(&'static str);

    impl Inherited for Named {
        fn before_fork(&mut self) {
            CALLED.lock().unwrap().push((self.0, "before"));
        }

        fn after_fork_in_child(&mut self) {
            CALLED.lock().unwrap().push((self.0, "in the child"));
        }
    }

    static FIRST: ForkMutex<Named> = ForkMutex::new(Named("first"));
    static SECOND: ForkMutex<Named> = ForkMutex::new(Named("second"));
    static TESTED: Mutex<Joined> = Mutex::new(Vec::new());

    #[test]
    fn a_fork_locks_what_has_joined_in_that_order_and_mends_it_in_the_opposite_one() {
        for family in [&FIRST, &SECOND, &FIRST] {
            family.join(&TESTED);
        }
        let mut fork = Fork::begin(&TESTED);
        assert!(FIRST.state.try_lock().is_err() && SECOND.state.try_lock().is_err());
        assert!(TESTED.try_lock().is_err(), "nothing joins meanwhile");
        fork.mend();
        drop(fork);
        assert!(FIRST.state.try_lock().is_ok() && SECOND.state.try_lock().is_ok());
        let before = [("first", "before"), ("second", "before")];
        let in_child = [("second", "in the child"), ("first", "in the child")];
        assert_eq!(*CALLED.lock().unwrap(), [before, in_child].concat());
    }
}
