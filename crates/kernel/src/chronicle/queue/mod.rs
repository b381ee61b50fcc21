//! A queue is a directory: [`handle`] is its handle, [`open`] the rules for opening it with
//! [`options`], `bases` the messages that others are stored against, `trust` who else may write to it, `damage` what is done about files that cannot be
//! read, `witnesses` what shows that they had messages, `keys` the keys of its table, `low_space` the
//! warning of a full disk, [`commit`] what is promised about the medium, `compressed_cycles` what is
//! read-only, `counting` its metrics, `find_time` its append times, `sleepers` its sleeping
//! readers, and [`handle_state`] what a `repr` shows.

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
