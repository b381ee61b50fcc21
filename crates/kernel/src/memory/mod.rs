//! Memory access: mapped bytes, and atomics with their ordering in the name. With
//! `os` the only `unsafe` of the crate.
#![allow(unsafe_code)]

pub mod cells;
#[cfg(not(loom))]
pub mod counters;
pub mod crc32c;
pub mod known_length;
#[cfg(not(loom))]
mod mapping;
#[cfg(not(loom))]
pub mod pages;
#[cfg(not(loom))]
pub mod pretouch;
#[cfg(not(loom))]
mod reservation;
#[cfg(not(loom))]
pub mod reserved_range;
#[cfg(not(loom))]
pub mod secret;
#[cfg(not(loom))]
pub mod side_file;
#[cfg(not(loom))]
pub mod window;

#[cfg(loom)]
pub use crate::probe::loom::Mapping;
pub use cells::{Cells, Observed, Published};
#[cfg(not(loom))]
pub use mapping::{Mapping, is_unsupported};
