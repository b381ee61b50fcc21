//! Vanilla Chronicle: the directories that Java Chronicle 3.x writes (`docs/vanilla.md`).
//!
//! - [`VanillaQueue`] is a directory, [`VanillaAppender`] writes into it, [`VanillaTailer`] reads
//!   from it;
//! - [`indexed`] reads the other type of Java Chronicle 3, which is two files;
//! - [`protocol`] says who may change which word, and in which order;
//! - `verify` compares entries with records, `snapshot` lists the content of a copy, `explain`
//!   shows a message; [`format`] says where every byte is.

#[cfg(not(loom))]
mod appender;
#[cfg(not(loom))]
mod cycle_length;
#[cfg(not(loom))]
pub mod explain;
pub mod format;
#[cfg(not(loom))]
pub mod indexed;
#[cfg(not(loom))]
mod late;
#[cfg(not(loom))]
mod message;
#[cfg(not(loom))]
mod named_position;
#[cfg(not(loom))]
mod options;
#[cfg(not(loom))]
mod place;
pub mod protocol;
#[cfg(not(loom))]
mod queue;
#[cfg(not(loom))]
mod snapshot;
#[cfg(not(loom))]
mod tailer;
#[cfg(not(loom))]
mod verify;

#[cfg(not(loom))]
pub use crate::chronicle::read::tailer::Direction;
#[cfg(not(loom))]
pub use appender::{Record, VanillaAppender};
#[cfg(not(loom))]
pub use message::Message;
#[cfg(not(loom))]
pub use options::{Consumption, VanillaOptions, zone};
#[cfg(not(loom))]
pub use queue::VanillaQueue;
#[cfg(not(loom))]
pub use tailer::{Mark, VanillaTailer};
