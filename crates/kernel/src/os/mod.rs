//! The operating system: files, range locks, processes, clocks. Independent of any queue
//! format.
#![allow(unsafe_code)]

pub mod clock;
pub mod directory;
pub mod files;
#[cfg(not(loom))]
pub mod fork_hooks;
pub mod lease;
pub mod liveness_lock;
pub mod names;
pub mod own_directory;
pub mod paths;
pub mod process;
pub mod range_lock;
#[cfg(not(loom))]
pub mod threads;
