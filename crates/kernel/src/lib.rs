//! Chronicle Queue 5 files: mapped bytes, the words in them, and the order they change in.
//!
//! The map of the crate, in the order in which a message travels:
//!
//! - [`queue`] is a directory, [`appender`] writes into it, [`tailer`] reads from it: the handles;
//! - [`replay`] finds where to go on reading, by the history in messages;
//! - [`protocol`] says who may change which word, and in which order: [`protocol::write_lock`],
//!   [`protocol::publish`], [`protocol::indexing`], [`protocol::locate`], [`protocol::roll`];
//! - [`memory`] says how a word is touched, and holds the only `unsafe`;
//! - [`format`] says where every field is: pure arithmetic, no I/O;
//! - [`wire`] turns values into the bytes of a message and back.
//!
//! This crate knows nothing of Python.

#[cfg(not(loom))]
pub mod appender;
pub mod clock;
#[cfg(not(loom))]
mod cursor;
#[cfg(not(loom))]
mod damage;
#[cfg(not(loom))]
pub mod dump;
mod error;
pub mod fault;
#[cfg(not(loom))]
pub mod fork;
pub mod format;
pub mod glance;
#[cfg(not(loom))]
mod hold;
pub mod interrupt;
#[cfg(not(loom))]
mod low_space;
pub mod memory;
#[cfg(not(loom))]
pub mod missing;
pub mod notice;
#[cfg(not(loom))]
pub mod open;
#[cfg(not(loom))]
pub mod options;
#[cfg(not(loom))]
pub mod patience;
pub mod protocol;
#[cfg(not(loom))]
pub mod queue;
#[cfg(not(loom))]
pub mod replay;
#[cfg(not(loom))]
mod sync;
#[cfg(not(loom))]
mod tail;
#[cfg(not(loom))]
pub mod tailer;
#[cfg(not(loom))]
mod tailer_name;
#[cfg(not(loom))]
mod trust;
pub mod wire;

pub use error::{Error, Result};
