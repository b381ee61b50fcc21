//! Who may change which word of a Vanilla Chronicle, and in which order (`docs/vanilla.md`).
//!
//! A writer owns its data files: it stores a payload, then with release the payload's length, and
//! then claims the first free entry of the index by compare-and-swap. Nothing is locked, and an entry
//! that is not 0 names a record that is complete.

pub mod block;
pub mod cycle_reader;
pub mod cycle_writer;
pub mod detect;
pub mod directory;
pub mod entries;
pub mod hint;
pub mod listing;
pub mod rebuild;
