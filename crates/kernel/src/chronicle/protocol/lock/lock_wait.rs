//! How long the next append of a thread waits for the write lock, or for room in the ring. An event
//! loop's thread must not block in the kernel: it tries repeatedly and runs other tasks in between.

use std::cell::Cell;

thread_local! {
    static NEXT: Cell<LockWait> = const { Cell::new(LockWait::Waits) };
}

/// What an append does while somebody else holds the write lock, or the ring is full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LockWait {
    /// It waits as long as the queue's options say.
    #[default]
    Waits,
    /// It fails, unless the holder is dead.
    Tries,
    /// The caller has waited for this many milliseconds: it ends as a wait of that length does.
    HasWaited(u64),
}

/// Says what the next append of this thread does.
pub fn set(lock_wait: LockWait) {
    NEXT.set(lock_wait);
}

/// What this append does; the next one waits again.
#[must_use]
pub fn take() -> LockWait {
    NEXT.take()
}
