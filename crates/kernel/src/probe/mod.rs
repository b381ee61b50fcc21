//! Hooks for tests alone: fault points, the recorder of a power cut,
//! and `loom`'s stand-in for mapped memory.

pub mod fault;
#[cfg(loom)]
pub mod loom;
pub mod recorder;
