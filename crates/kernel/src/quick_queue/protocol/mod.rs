//! Who may change which word, and in which order.
//!
//! A queue has one of two forms. In the [`single`] form one writer, which holds the lock of
//! `quick-queue.lock`, stores a message, then the address in its index entry, then the entry's
//! stamp. In the [`shared`] form each named producer holds the lock of its profile, stores messages
//! into data of its own, and claims index entries by compare-and-swap. [`pending`] says what becomes
//! of an entry whose producer died between the two.

pub mod directory;
pub mod durable;
pub mod end;
pub mod entries;
pub mod pages;
pub mod pending;
pub mod profile_file;
pub mod repair;
pub mod shared;
pub mod single;
pub mod space;
pub mod survey;
