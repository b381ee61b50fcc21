//! Hostile files: how they are damaged, and the invariants that hold whatever they contain.
//!
//! - [`model`] is an independent parser of headers, to check the kernel against;
//! - [`reading`] reads and writes a directory in every way, within limits;
//! - [`targets`] are the entry points of `make fuzz`, whose corpus `cargo test` replays;
//! - [`columns`] decodes any bytes into columns;
//! - [`packed`] decompresses any bytes as a message, and checks that messages survive a round trip;
//! - [`requests`] parses any bytes as a client's request to a server;
//! - [`quick_queue`] reads and writes any bytes as a Quick-Queue;
//! - [`group`] uses a side file of a consumer group, and [`ring`] a ring of asynchronous appends,
//!   with other [`words`];
//! - [`indexed`] reads any bytes as an Indexed Chronicle;
//! - [`vanilla`] reads, appends to and rebuilds any bytes as a Vanilla Chronicle;
//! - [`threads`] has threads append to a queue, roll it and follow it at the same time;
//! - [`damage`] changes single bits of golden queues, and cuts them short;
//! - [`sample`] is the queue they damage.
//!
//! A panic is a finding. So is more memory than [`bounded`] allows: no input may make the
//! kernel allocate more than in proportion to its size.
#![allow(clippy::unwrap_used, clippy::missing_panics_doc)] // to panic is to report a find

pub mod columns;
pub mod damage;
pub mod group;
pub mod indexed;
pub mod model;
pub mod packed;
pub mod quick_queue;
pub mod reading;
pub mod requests;
pub mod ring;
pub mod sample;
pub mod targets;
pub mod threads;
pub mod vanilla;
pub mod words;

use allocation_counter::measure;

/// Runs `work` and checks that this thread allocates at most `most` bytes at any time. Other
/// threads may run meanwhile, and their memory is not counted.
pub fn bounded<T>(most: usize, work: impl FnOnce() -> T) -> T {
    let mut result = None;
    let used = measure(|| result = Some(work())).bytes_max;
    let used = usize::try_from(used).unwrap();
    assert!(used <= most, "too much memory: bytes={used} limit={most}");
    result.unwrap() // the work was done
}
