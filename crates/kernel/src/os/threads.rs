//! The threads that handles run beside their callers.

use std::sync::{Mutex, PoisonError};
use std::thread::{self, JoinHandle};

/// Wakes a thread that was asked to end, and waits for it; a thread does not wait for itself. A
/// panic in it has been printed.
pub fn join(thread: &Mutex<Option<JoinHandle<()>>>) {
    let thread = thread.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(thread) = thread
        && thread.thread().id() != thread::current().id()
    {
        thread.thread().unpark();
        let _ = thread.join();
    }
}
