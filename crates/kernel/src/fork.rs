//! Forking: the kernel's process-wide state must be unlocked and consistent in the child.
//!
//! A lock that another thread of the parent holds at the fork stays locked in the child forever, as
//! that thread does not exist there. So the forking thread first takes the one that may be held for
//! long. State of handles needs no such care: a child never uses the handles of its parent.

use std::cell::RefCell;
use std::sync::MutexGuard;

use crate::chronicle::protocol::table::registry::{self, OpenTables};
use crate::os::liveness_lock::{self, Held};
use crate::os::process;
use crate::ring::file::{self, Drainers};

thread_local! {
    static DRAINERS: RefCell<Option<MutexGuard<'static, Drainers>>> = const { RefCell::new(None) };
    static TABLES: RefCell<Option<MutexGuard<'static, OpenTables>>> = const { RefCell::new(None) };
    static LOCKS: RefCell<Option<MutexGuard<'static, Held>>> = const { RefCell::new(None) };
}

/// Call in the forking thread, right before the fork.
pub fn before() {
    TABLES.set(Some(registry::hold()));
    LOCKS.set(Some(liveness_lock::hold()));
    DRAINERS.set(Some(file::hold()));
}

/// Call in the parent right after the fork, even if it failed.
pub fn after_in_parent() {
    DRAINERS.take();
    LOCKS.take();
    TABLES.take();
}

/// Call in the child right after the fork.
pub fn after_in_child() {
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
