//! Who may change which word, and in which order? One module per state machine; the steps and the
//! crash points are those of `docs/protocol.md`.
//!
//! - [`lock`] is the write lock, [`table`] the table store that holds its word;
//! - [`publish`] makes one message visible; [`hints`] and [`indexing`] write what readers find it by;
//! - [`roll_file`] is an open file, [`file_events`] says which are; [`create`] makes one, [`roll`]
//!   ends it, [`compressed`] reads one that was compressed, [`unfinished`] says whether one was only
//!   begun, [`head`] whether its first documents are damaged, [`listing`] which there are, and
//!   [`stored_cycle`] which roll cycle they follow;
//! - [`walk`] steps over documents, [`locate`] and [`index_search`] find messages;
//! - [`time_index`] keeps append times in a side file, [`append_checksums`] checksums of messages, both
//!   by [`side_chunks`]; [`beside`] has them forget messages that were lost;
//! - [`repair`] mends what a power cut left.

#[cfg(not(loom))]
pub mod append_checksums;
#[cfg(not(loom))]
pub mod beside;
pub mod hints;
pub mod lock;
pub mod publish;
pub mod table;

#[cfg(not(loom))]
pub mod compressed;
#[cfg(not(loom))]
pub mod create;
#[cfg(not(loom))]
pub mod file_events;
#[cfg(not(loom))]
pub mod head;
#[cfg(not(loom))]
pub mod index_search;
#[cfg(not(loom))]
pub mod indexing;
#[cfg(not(loom))]
pub mod listing;
#[cfg(not(loom))]
pub mod locate;
#[cfg(not(loom))]
pub mod repair;
#[cfg(not(loom))]
pub mod roll;
#[cfg(not(loom))]
pub mod roll_file;
#[cfg(not(loom))]
pub mod side_chunks;
#[cfg(not(loom))]
pub mod stored_cycle;
#[cfg(not(loom))]
pub mod time_index;
#[cfg(not(loom))]
pub mod unfinished;
#[cfg(not(loom))]
pub mod walk;
