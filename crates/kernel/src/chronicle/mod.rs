//! Chronicle Queue 5, from the handles down to the bytes:
//!
//! - the handles: [`append`] writes into a queue, [`read`] reads from it, [`queue`] is the
//!   directory, [`dump`] shows a file as text, [`explain`] the bytes of a message;
//! - [`verify`] checks every rule, [`repair`] restores them;
//! - [`protocol`] says who may change which word, and in which order;
//! - [`format`] says where every field is: pure arithmetic, no I/O.

#[cfg(not(loom))]
pub mod append;
#[cfg(not(loom))]
pub mod dump;
#[cfg(not(loom))]
pub mod explain;
pub mod format;
pub mod protocol;
#[cfg(not(loom))]
pub mod queue;
#[cfg(not(loom))]
pub mod read;
#[cfg(not(loom))]
pub mod repair;
#[cfg(not(loom))]
pub mod verify;
