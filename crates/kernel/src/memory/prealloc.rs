//! How far ahead of its last document a roll file's blocks are reserved and its pages present.
//!
//! Each step is a pause for whoever takes it. A slow appender takes the next one between messages,
//! before it is needed and without the write lock; ahead of a fast one a thread takes them
//! (`pretouch.rs`). A step that is needed now is small for a slow appender and large for a fast one.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use super::pages::Pages;

/// A slow appender's step in bytes.
const SMALL_STEP: u64 = 16 << 10;
/// A slow appender's step between messages: nobody waits for it.
const BETWEEN_STEP: u64 = 64 << 10;
/// A fast appender's step in bytes.
const LARGE_STEP: u64 = 256 << 10;
/// Faster than this, in bytes a microsecond, is fast: far above what paced producers write.
const FAST: u64 = 64;
/// No more than this part of what the file holds is taken ahead, nor more than [`AHEAD_MAX`].
const AHEAD_PART: u64 = 4;
const AHEAD_MAX: u64 = 4 << 20;

/// The state of one file's supply.
pub struct Supply {
    started: Instant,
    present_to: AtomicU64,
    /// When the last step was taken (microseconds after the start), and for which position.
    last_us: AtomicU64,
    last_end: AtomicU64,
    is_fast: AtomicBool,
    pages: Pages,
}

impl Supply {
    /// Nothing is reserved yet.
    pub fn new(pages: Pages) -> Self {
        Self {
            pages,
            started: Instant::now(),
            present_to: AtomicU64::new(0),
            last_us: AtomicU64::new(0),
            last_end: AtomicU64::new(0),
            is_fast: AtomicBool::new(false),
        }
    }

    /// Positions below this one, from the first append on, are reserved and present.
    pub fn present_to(&self) -> u64 {
        self.present_to.load(Ordering::Acquire)
    }

    /// Notes that positions up to `end` are reserved and present.
    pub fn raise(&self, end: u64) {
        self.present_to.fetch_max(end, Ordering::AcqRel);
    }

    /// Measures how fast the appender is that now needs positions up to `end`.
    pub fn measure(&self, end: u64) {
        let now = u64::try_from(self.started.elapsed().as_micros()).unwrap_or(u64::MAX);
        let (since, from) =
            (self.last_us.swap(now, Ordering::Relaxed), self.last_end.swap(end, Ordering::Relaxed));
        let is_fast = from != 0 && end.saturating_sub(from) > (now - since).saturating_mul(FAST);
        self.is_fast.store(is_fast, Ordering::Relaxed);
    }

    /// Whether it was fast when last measured.
    pub fn is_fast(&self) -> bool {
        self.is_fast.load(Ordering::Relaxed)
    }

    /// The end of the step that brings positions up to `end`.
    pub fn step(&self, end: u64) -> u64 {
        let step = if self.is_fast() { LARGE_STEP } else { SMALL_STEP };
        self.pages.up(end + step.min((end / AHEAD_PART).max(SMALL_STEP)))
    }

    /// The end of the step that a slow appender takes between messages, once it is at `end`.
    pub fn between(end: u64) -> u64 {
        Pages::here().up(end + BETWEEN_STEP)
    }

    /// How far a thread should be ahead of an appender at `end`.
    pub fn ahead_of(end: u64) -> u64 {
        end + (end / AHEAD_PART).clamp(LARGE_STEP, AHEAD_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_end_where_a_page_does() {
        for bytes in [4096, 16_384, 65_536] {
            let supply = Supply::new(Pages::of(bytes));
            for end in [1, bytes - 1, bytes, 10 * bytes + 1, 1 << 30] {
                let step = supply.step(end);
                assert!(step.is_multiple_of(bytes) && step >= end + SMALL_STEP, "{bytes} {end}");
            }
        }
    }
}
