//! Forking: the kernel's process-wide state must be unlocked and consistent in the child.
//!
//! A lock that another thread of the parent holds at the fork stays locked in the child forever, as
//! that thread does not exist there. So the forking thread first takes the one that may be held for
//! long. State of handles needs no such care: a child never uses the handles of its parent.
//!
//! The system calls these hooks within `fork`, after those of Python's `os.register_at_fork`: a lock
//! that one of them waits for, as that of `logging`, may be held by a thread which opens a queue.

use std::cell::RefCell;
use std::sync::{MutexGuard, Once};

use crate::chronicle::protocol::table::registry::{self, OpenTables};
use crate::os::liveness_lock::{self, Held};
use crate::os::{fork_hooks, process};
use crate::ring::file::{self, Drainers};

thread_local! {
    static DRAINERS: RefCell<Option<MutexGuard<'static, Drainers>>> = const { RefCell::new(None) };
    static TABLES: RefCell<Option<MutexGuard<'static, OpenTables>>> = const { RefCell::new(None) };
    static LOCKS: RefCell<Option<MutexGuard<'static, Held>>> = const { RefCell::new(None) };
}

/// Has every fork of this process call the functions below; only the first call counts.
pub fn watch() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let watched = fork_hooks::call_at_fork(before, after_in_parent, after_in_child);
        debug_assert!(watched, "no memory");
    });
}

/// In the forking thread, right before the fork.
extern "C" fn before() {
    TABLES.set(Some(registry::hold()));
    LOCKS.set(Some(liveness_lock::hold()));
    DRAINERS.set(Some(file::hold()));
}

/// In the parent right after the fork, even if it failed.
extern "C" fn after_in_parent() {
    DRAINERS.take();
    LOCKS.take();
    TABLES.take();
}

/// In the child right after the fork.
extern "C" fn after_in_child() {
    process::after_fork_in_child();
    if let Some(mut drainers) = DRAINERS.take() {
        file::detach(&mut drainers);
    }
    if let Some(mut locks) = LOCKS.take() {
        liveness_lock::detach(&mut locks);
    }
    if let Some(mut tables) = TABLES.take() {
        registry::detach(&mut tables);
    }
}
