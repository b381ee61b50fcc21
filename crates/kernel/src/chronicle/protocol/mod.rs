//! Who may change which word, and in which order? One module per state machine; the steps and the
//! crash points are those of `docs/protocol.md`.
//!
//! - [`lock`] is the write lock, [`table`] the table store that holds its word;
//! - [`publish`] makes one message visible; [`hints`] and [`indexing`] write the words by which
//!   readers find it;
//! - [`roll_file`] is an open file, and [`file_events`] reports opened and closed ones; [`create`]
//!   makes a file, [`roll`] ends it, [`compressed`] reads a compressed one; [`unfinished`]
//!   recognises files that were never finished, [`head`] files whose first documents are damaged;
//!   [`listing`] finds a queue's files, and [`stored_cycle`] their roll cycle;
//! - [`walk`] steps over documents, [`locate`] and [`index_search`] find messages;
//! - [`time_index`] keeps append times in a side file, [`append_checksums`] checksums of messages,
//!   both by [`side_chunks`]; [`beside`] removes lost messages from both;
//! - [`repair`] mends files after a power cut.

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
