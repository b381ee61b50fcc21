//! Who may change which word, and in which order.
//!
//! A queue has one of two forms. In the [`single`] form one writer, which holds the lock of
//! `quick-queue.lock`, stores a message, then the address in its index entry, then the entry's
//! stamp. In the [`shared`] form each named producer holds the lock of its profile, stores messages
//! into data of its own, and claims index entries by compare-and-swap. [`pending`] handles an entry
//! whose producer died before completing it.

pub mod entry_words;

#[cfg(not(loom))]
pub mod directory;
#[cfg(not(loom))]
pub mod durable;
#[cfg(not(loom))]
pub mod end;
#[cfg(not(loom))]
pub mod entries;
#[cfg(not(loom))]
pub mod pages;
#[cfg(not(loom))]
pub mod pending;
#[cfg(not(loom))]
pub mod profile_file;
#[cfg(not(loom))]
pub mod repair;
#[cfg(not(loom))]
pub mod shared;
#[cfg(not(loom))]
pub mod single;
#[cfg(not(loom))]
pub mod space;
#[cfg(not(loom))]
pub mod survey;
