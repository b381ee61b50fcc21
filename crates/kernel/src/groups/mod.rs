//! Consumer groups: which member of a group works on which messages of a queue.
//!
//! - [`group`] and [`member`] are the handles: a group's side file in the queue's directory, and
//!   one of the members that share its messages;
//! - [`replicated`] is a group's state as bytes, which a source sends and a sink keeps;
//! - [`delivered`] shows and changes which messages are not acknowledged, without being a member;
//! - [`protocol`] says who may change which word, and in which order;
//! - [`format`] says where every field is: pure arithmetic, no I/O.
//!
//! Groups deal in indexes only and do not depend on the queue's format: queue handles read the
//! messages.

#[cfg(not(loom))]
pub mod delivered;
pub mod format;
#[cfg(not(loom))]
pub mod group;
#[cfg(not(loom))]
pub mod member;
pub mod protocol;
#[cfg(not(loom))]
pub mod replicated;
