//! Who may change which word, and in which order? One module per state machine; the steps and the
//! crash points are those of `docs/protocol.md`.

pub mod publish;
pub mod table_keys;
pub mod words;
pub mod write_lock;

#[cfg(not(loom))]
pub mod create;
#[cfg(not(loom))]
pub mod held_lock;
#[cfg(not(loom))]
pub mod index_search;
#[cfg(not(loom))]
pub mod indexing;
#[cfg(not(loom))]
pub mod listing;
#[cfg(not(loom))]
pub mod locate;
#[cfg(not(loom))]
pub mod lock_recovery;
#[cfg(not(loom))]
pub mod open_document;
#[cfg(not(loom))]
pub mod open_tables;
#[cfg(not(loom))]
pub mod restart;
#[cfg(not(loom))]
pub mod roll;
#[cfg(not(loom))]
pub mod roll_file;
#[cfg(not(loom))]
pub mod table_file;
#[cfg(not(loom))]
pub mod table_store;
#[cfg(not(loom))]
pub mod tailer_use;
#[cfg(not(loom))]
pub mod unfinished;
