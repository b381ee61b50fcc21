//! Sleeping until there is a message to read (`docs/protocol.md` §9.5).
//!
//! One [`thread`] per process sleeps for all tailers that have nothing to read. Appenders wake it
//! by a [`word`] in the queue's [`side_file`], which they change only while a reader sleeps;
//! appends that do not change the word, such as Java's, are found by polling every few
//! milliseconds. The thread then ends the [`wait`] of each tailer that has a message: of a thread,
//! or of an [`event_loop`].

#[cfg(not(loom))]
pub mod event_loop;
#[cfg(not(loom))]
pub mod side_file;
#[cfg(not(loom))]
pub mod thread;
#[cfg(not(loom))]
pub mod wait;
pub mod word;
