//! What the processes of a replicated queue know of its replicas: until when its source may append,
//! which replicas are in sync, and what each has acknowledged (`docs/replication.md`).
//!
//! It lies in a [`side_file`] that all of them map. The source's process stores what its replicas
//! say; every appender looks at the lease, and one who waits for replicas looks at their indexes.

#[cfg(not(loom))]
pub mod history;
pub mod layout;
pub mod quorum;
#[cfg(not(loom))]
pub mod side_file;
#[cfg(not(loom))]
pub mod wait;
