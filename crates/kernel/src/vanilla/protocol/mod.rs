//! Who may change which word of a Vanilla Chronicle, and in which order (`docs/vanilla.md`).
//!
//! A writer owns its data files: it stores a payload, then with release the payload's length, and
//! then claims the first free entry of the index by compare-and-swap. Nothing is locked, and an
//! entry that is not 0 names a record that is complete.

pub mod claims;

#[cfg(not(loom))]
pub mod block;
#[cfg(not(loom))]
pub mod cycle_reader;
#[cfg(not(loom))]
pub mod cycle_writer;
#[cfg(not(loom))]
pub mod detect;
#[cfg(not(loom))]
pub mod directory;
#[cfg(not(loom))]
pub mod entries;
#[cfg(not(loom))]
pub mod hint;
#[cfg(not(loom))]
pub mod listing;
#[cfg(not(loom))]
pub mod rebuild;
