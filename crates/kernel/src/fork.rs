//! Forking: what the kernel keeps for the whole process must be free and whole in the child.
//!
//! A lock that another thread of the parent holds at the moment of the fork stays taken in the child
//! for ever, as that thread is not there. So the forking thread takes the one that is held for long
//! first. What belongs to a handle needs none of this: a child never uses the handles of its parent.

use std::cell::RefCell;
use std::sync::MutexGuard;

use crate::chronicle::protocol::table::registry::{self, OpenTables};
use crate::os::process;
use crate::quick_queue::protocol::lock::{self, Held};

thread_local! {
    static TABLES: RefCell<Option<MutexGuard<'static, OpenTables>>> = const { RefCell::new(None) };
    static LOCKS: RefCell<Option<MutexGuard<'static, Held>>> = const { RefCell::new(None) };
}

/// To be called by the thread that forks, right before.
pub fn before() {
    TABLES.set(Some(registry::hold()));
    LOCKS.set(Some(lock::hold()));
}

/// To be called in the parent right after, also when the fork failed.
pub fn after_in_parent() {
    LOCKS.take();
    TABLES.take();
}

/// To be called in the child right after.
pub fn after_in_child() {
    process::after_fork_in_child();
    if let Some(mut locks) = LOCKS.take() {
        lock::detach(&mut locks);
    }
    if let Some(mut tables) = TABLES.take() {
        registry::detach(&mut tables);
    }
}
