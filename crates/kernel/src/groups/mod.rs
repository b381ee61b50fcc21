//! Consumer groups: which member of a group works on which messages of a queue.
//!
//! - [`group`] is the side file of a group in the queue's directory, [`member`] one of those who
//!   share its messages: the handles;
//! - [`protocol`] says who may change which word, and in which order;
//! - [`format`] says where every field is: pure arithmetic, no I/O.
//!
//! A group knows indexes, and nothing of the format of its queue: handles of the queue read the
//! messages.

pub mod format;
#[cfg(not(loom))]
pub mod group;
#[cfg(not(loom))]
pub mod member;
pub mod protocol;
