//! Quick-Queue files: an index of 16-byte entries over page files of raw messages.
//!
//! - [`queue`] is a directory, [`append`] writes into it, [`read`] reads from it: the handles;
//! - `verify` checks that every entry points to a message, `snapshot` lists the content of a copy,
//!   `explain` shows the bytes of one;
//! - [`protocol`] says who may change which word, and in which order;
//! - [`format`] says where every field is: pure arithmetic, no I/O.

#[cfg(not(loom))]
pub mod append;
#[cfg(not(loom))]
pub mod explain;
pub mod format;
#[cfg(not(loom))]
pub mod message;
#[cfg(not(loom))]
mod open;
pub mod protocol;
#[cfg(not(loom))]
pub mod queue;
#[cfg(not(loom))]
pub mod read;
#[cfg(not(loom))]
mod snapshot;
#[cfg(not(loom))]
mod verify;
