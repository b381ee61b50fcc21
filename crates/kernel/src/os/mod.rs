//! The operating system: files, range locks, processes, clocks. Independent of any queue
//! format.
#![allow(unsafe_code)]

pub mod clock;
pub mod detached;
pub mod directory;
pub mod files;
pub mod fork;
pub mod futex;
pub mod handles;
pub mod interrupt;
pub mod lease;
pub mod locked_file;
pub mod names;
pub mod new_file;
pub mod own_directory;
pub mod paths;
pub mod process;
pub mod random;
pub mod range_lock;
pub mod replacement;
#[cfg(not(loom))]
pub mod threads;
