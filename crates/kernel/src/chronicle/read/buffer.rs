//! A buffer of messages that are on their way into the queue. A tailer that reads through one
//! drains it before it reports the end of the queue, and then finds the messages at their indexes.

use crate::Result;
use crate::os::detached::Detached;

/// How much was drained so far: when it changes, the queue has more messages.
pub type Drained = (u64, u64);

/// The interface of a buffer to its readers.
pub trait ReadBuffer: Send + Sync {
    /// How much was drained so far, and whether there is more to drain. Makes no system call.
    fn look(&self) -> (Drained, bool);

    /// Appends a bounded part of it to the queue, without waiting; false if it could not.
    fn drain_some(&self, may_wait: &Detached) -> Result<bool>;
}
