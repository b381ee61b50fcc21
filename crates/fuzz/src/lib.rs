//! Hostile files: what is done to them, and what must hold whatever they contain.
//!
//! - [`model`] reads headers on its own, so that the kernel has something to agree with;
//! - [`reading`] reads and writes a directory in every way, under bounds;
//! - [`targets`] are the entry points of `make fuzz`, whose corpus `cargo test` replays;
//! - [`columns`] decodes any bytes into columns;
//! - [`quick_queue`] reads and writes any bytes as a Quick-Queue;
//! - [`damage`] changes single bits of golden queues, and cuts them short;
//! - [`sample`] is the queue they damage.
//!
//! A panic is a find. So is more memory than [`bounded`] allows: nothing that is read may make the
//! kernel allocate more than in proportion to what is there.
#![allow(clippy::unwrap_used, clippy::missing_panics_doc)] // to panic is to report a find

pub mod columns;
pub mod damage;
pub mod model;
pub mod quick_queue;
pub mod reading;
pub mod sample;
pub mod targets;

use peak_alloc::PeakAlloc;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// Runs `work` and expects it to hold at most `most` bytes more than before at any time. Counts the
/// whole process: one at a time.
pub fn bounded<T>(most: usize, work: impl FnOnce() -> T) -> T {
    MEMORY.reset_peak_usage();
    let before = MEMORY.current_usage();
    let result = work();
    let used = MEMORY.peak_usage().saturating_sub(before);
    assert!(used <= most, "too much memory: bytes={used} limit={most}");
    result
}
