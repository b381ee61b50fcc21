//! Chronicle Queue 5 files: mapped bytes, the words in them, and the order they change in.
//!
//! The map of the crate, in the order in which a message travels:
//!
//! - [`chronicle`] is Chronicle Queue 5: `queue` a directory, `append` writes into it, `read` reads
//!   from it; `protocol` says who may change which word, and in which order; `format` where every
//!   field is;
//! - [`quick_queue`] asks the same questions of Quick-Queue files, and [`vanilla`] of the directories
//!   of Vanilla Chronicle;
//! - [`memory`] says how a word is touched, and [`os`] what the system is asked for: they hold the
//!   only `unsafe`, and know nothing of any format;
//! - [`probe`] is the seam for tests;
//! - [`Error`], [`warnings`] and [`fork`] serve all of these.
//!
//! This crate knows nothing of Python.

pub mod chronicle;
mod error;
#[cfg(not(loom))]
pub mod fork;
pub mod memory;
pub mod os;
pub mod probe;
#[cfg(not(loom))]
pub mod quick_queue;
#[cfg(not(loom))]
pub mod vanilla;
pub mod warnings;

pub use error::{Error, Result};
