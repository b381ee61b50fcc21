//! How long the next append of a thread waits for the write lock, or for room in the ring. An event
//! loop's thread must not block in the kernel: it tries repeatedly and runs other tasks in between.

use std::cell::Cell;

thread_local! {
    static NEXT: Cell<LockWait> = const { Cell::new(LockWait::Waits) };
}

/// What an append does while another holder has the write lock, or the ring is full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LockWait {
    /// It waits up to the timeout of the queue's options.
    #[default]
    Waits,
    /// It fails, unless the holder is dead.
    Tries,
    /// The caller has already waited for this many milliseconds: one more try, then the error of
    /// such a wait.
    HasWaited(u64),
}

/// Sets what the next append of this thread does.
pub fn set(lock_wait: LockWait) {
    NEXT.set(lock_wait);
}

/// Takes what this append is to do; the next one waits again.
#[must_use]
pub fn take() -> LockWait {
    NEXT.take()
}
