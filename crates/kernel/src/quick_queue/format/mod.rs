//! Where every byte is: addresses, index entries, profiles, the fields of a message. Pure
//! arithmetic, no I/O.

pub mod address;
pub mod decimal;
pub mod entry;
pub mod field;
pub mod files;
pub mod pack;
pub mod producer;
pub mod profile;
pub mod unpack;
