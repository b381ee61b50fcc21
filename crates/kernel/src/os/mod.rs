//! The operating system: files, range locks, processes, clocks. Independent of any queue
//! format.
#![allow(unsafe_code)]

pub mod clock;
pub mod files;
pub mod paths;
pub mod process;
pub mod range_lock;
