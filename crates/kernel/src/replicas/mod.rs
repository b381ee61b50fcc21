//! The state of a queue's replicas, shared by its processes: until when its source may append,
//! which replicas are in sync, and what each has acknowledged (`docs/replication.md`).
//!
//! It lies in a [`side_file`] that all of them map. The source's process stores what its replicas
//! acknowledge; every appender checks the lease, and waiters check the acknowledged indexes.

#[cfg(not(loom))]
pub mod history;
pub mod layout;
pub mod quorum;
#[cfg(not(loom))]
pub mod side_file;
#[cfg(not(loom))]
pub mod wait;
