//! Vanilla Chronicle: the directories that Java Chronicle 3.x writes (`docs/vanilla.md`).
//!
//! - [`VanillaQueue`] is a directory, [`VanillaAppender`] writes into it, [`VanillaTailer`] reads from it;
//! - [`indexed`] reads the other type of Java Chronicle 3, which is two files;
//! - [`protocol`] says who may change which word, and in which order;
//! - `verify` compares entries with records, `snapshot` lists what a copy holds, `explain` shows a message; [`format`] says where every byte is.

mod appender;
pub mod explain;
pub mod format;
pub mod indexed;
mod late;
mod message;
mod named_position;
mod options;
mod place;
pub mod protocol;
mod queue;
mod snapshot;
mod tailer;
mod verify;

pub use crate::chronicle::read::tailer::Direction;
pub use appender::{Record, VanillaAppender};
pub use message::Message;
pub use options::{Consumption, VanillaOptions, zone};
pub use queue::VanillaQueue;
pub use tailer::{Mark, VanillaTailer};
