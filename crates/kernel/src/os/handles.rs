//! Handles that are open on a queue, to be closed with it.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::detached::Detached;

/// A handle of a queue.
pub trait Handle: Send + Sync {
    /// Closes the handle and its files, because its queue was closed.
    fn close_with_queue(&self, may_wait: &Detached);
}

/// The handles of a queue.
#[derive(Default)]
pub struct Handles(Mutex<Vec<Weak<dyn Handle>>>);

impl Handles {
    /// Adds a handle, which may be dropped before the queue is closed.
    pub fn adopt<T: Handle + 'static>(&self, handle: T) -> Arc<T> {
        let handle = Arc::new(handle);
        let weak: Weak<T> = Arc::downgrade(&handle);
        let mut handles = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if handles.len() == handles.capacity() {
            handles.retain(|handle| handle.strong_count() > 0);
        }
        handles.push(weak);
        handle
    }

    /// Closes the remaining handles. Closing may wait for another thread, so the list is unlocked
    /// first.
    pub fn close(&self, may_wait: &Detached) {
        let handles = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        handles.iter().filter_map(Weak::upgrade).for_each(|it| it.close_with_queue(may_wait));
    }
}
