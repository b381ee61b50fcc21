//! The ring of asynchronous appends: a mapped file in a queue's directory. Producers put messages
//! into it without waiting, and one drainer appends them to the queue.
//!
//! - [`format`] says where every field is;
//! - [`protocol`] says who may change which word, and in which order;
//! - [`file`] makes and opens the file, [`handle`] puts messages in and reports its state, and
//!   [`drainer`] is the thread that appends them; [`reader`] lets tailers do so, too;
//!   [`noted`] stores the progress of draining in the queue's table.

#[cfg(not(loom))]
pub mod drainer;
#[cfg(not(loom))]
pub mod file;
pub mod format;
#[cfg(not(loom))]
pub mod handle;
#[cfg(not(loom))]
mod noted;
#[cfg(not(loom))]
mod presence;
pub mod protocol;
#[cfg(not(loom))]
pub mod reader;
