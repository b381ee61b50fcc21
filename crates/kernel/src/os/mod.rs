//! The operating system: files, locks on ranges of them, processes, clocks. Nothing of any queue
//! format.
#![allow(unsafe_code)]

pub mod clock;
pub mod files;
pub mod paths;
pub mod process;
pub mod range_lock;
