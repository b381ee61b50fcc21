//! A queue is a directory: [`handle`] is its handle, [`open`] the rules for opening it with
//! [`options`], `bases` the base messages of differences, `trust` the permissions of other users,
//! `damage` handles files that cannot be read, `witnesses` evidence that they had messages, `keys`
//! the keys of its table, `low_space` the warning of a full disk, [`commit`] durability,
//! `compressed_cycles` its read-only files, `counting` its metrics, `find_time` searches its append
//! times, `sleepers` are its sleeping readers, and [`handle_state`] the state that a `repr` shows.

pub(crate) mod bases;
pub mod commit;
pub(crate) mod compressed_cycles;
pub(crate) mod counting;
pub(crate) mod damage;
pub(crate) mod find_time;
pub mod handle;
pub mod handle_state;
pub(crate) mod keys;
pub(crate) mod low_space;
pub mod open;
pub mod options;
pub(crate) mod sleepers;
pub(crate) mod trust;
pub(crate) mod witnesses;
