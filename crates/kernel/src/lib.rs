//! Chronicle Queue 5 files: mapped bytes, the words in them, and the order they change in.
//!
//! The map of the crate, in the order in which a message travels:
//!
//! - [`chronicle`] is Chronicle Queue 5: `queue` a directory, `append` writes into it, `read` reads
//!   from it; `protocol` says who may change which word, and in which order; `format` where every
//!   field is;
//! - [`quick_queue`] and [`vanilla`] are structured alike, for these other formats;
//! - [`groups`] decides which member of a group works on which messages of a queue of any format;
//! - [`ring`] holds messages until its thread has appended them to a queue;
//! - [`sealed`] encrypts messages, and proves that they are unchanged;
//! - `memory` is access to mapped words, for this crate alone, and [`os`] the calls to the system:
//!   they contain the only `unsafe`, and are independent of any format;
//! - [`metrics`] counts what a queue does, for monitoring;
//! - [`waiting`] wakes readers that sleep until there is a message, and [`replicas`] is the shared
//!   state of a queue's replicas;
//! - [`probe`] is the seam for tests;
//! - [`Error`], [`finding`], [`snapshot`], [`explained`] and [`warnings`] are shared by all of
//!   them.
//!
//! This crate does not depend on Python.

pub mod chronicle;
mod error;
pub mod explained;
pub mod finding;
pub mod groups;
#[cfg(not(any(loom, miri)))]
mod memory;
#[cfg(any(loom, miri))]
pub mod memory; // for its tests
#[cfg(not(loom))]
pub mod metrics;
pub mod os;
pub mod probe;
pub mod quick_queue;
pub mod replicas;
pub mod ring;
#[cfg(not(loom))]
pub mod sealed;
#[cfg(not(loom))]
pub mod snapshot;
pub mod vanilla;
pub mod waiting;
pub mod warnings;

pub use error::{Error, Result};
