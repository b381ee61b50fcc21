//! How is it touched? Mapped bytes, atomics with their ordering in the name, file ranges, locks:
//! the only `unsafe` of the crate.
#![allow(unsafe_code)]

pub mod cells;
#[cfg(not(loom))]
mod mapping;
#[cfg(loom)]
#[path = "model.rs"]
mod mapping;
#[cfg(not(loom))]
pub mod pages;
#[cfg(not(loom))]
pub mod pretouch;
pub mod process;
pub mod record_lock;
pub mod recorder;
pub mod space;
#[cfg(not(loom))]
mod supply;
#[cfg(not(loom))]
pub mod window;

pub use cells::Cells;
pub use mapping::Mapping;
#[cfg(not(loom))]
pub use mapping::is_unsupported;
