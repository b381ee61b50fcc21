//! A buffer of messages that are on their way into the queue. A tailer that reads through one
//! drains it before it reports the end of the queue, and then finds the messages at their indexes.

use crate::Result;
use crate::os::detached::Detached;

/// What was drained so far: when it changes, the queue has more messages.
pub type Drained = (u64, u64);

/// A buffer as its readers see it.
pub trait ReadBuffer: Send + Sync {
    /// What was drained so far, and whether there is anything to drain. It takes no system call.
    fn look(&self) -> (Drained, bool);

    /// Appends a bounded part of it to the queue, and waits for nobody; false if it could not.
    fn drain_some(&self, may_wait: &Detached) -> Result<bool>;
}
