//! The reservation policy of all three formats: how many blocks of a file are reserved, and pages
//! populated, ahead of the writer.
//!
//! Each step pauses the thread that takes it. One that is needed at once is small if the appender
//! is slow, large if it is fast, and never larger than a fraction of the file's content
//! ([`Reservation::step`]).
//! Where the disk has no room for a whole step, exactly what is needed is reserved
//! (`Window::reserve_step`).
//!
//! A roll file has many appenders, which share its [`Reservation`]: a slow one takes the next step
//! between messages, before it is needed and without the write lock; for a fast one, a thread takes
//! them ahead (`pretouch.rs`). A file of the older formats has one writer at a time, whose
//! `ReservedRange` it is.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use super::pages::Pages;

/// A slow appender's step in bytes.
pub const SMALL_STEP: u64 = 16 << 10;
/// A slow appender's step between messages, while no append waits for it.
const BETWEEN_STEP: u64 = 64 << 10;
/// A fast appender's step in bytes.
const LARGE_STEP: u64 = 256 << 10;
/// Appenders above this rate, in bytes per microsecond, are fast; paced producers stay far below.
const FAST: u64 = 64;
/// At most 1/`AHEAD_PART` of the file's content is reserved ahead, and at most [`AHEAD_MAX`].
const AHEAD_PART: u64 = 4;
const AHEAD_MAX: u64 = 4 << 20;

/// How far a file is reserved, and how fast it is appended to.
pub struct Reservation {
    started: Instant,
    present_to: AtomicU64,
    /// When the last step was taken (microseconds after the start), and up to which position.
    last_us: AtomicU64,
    last_end: AtomicU64,
    is_fast: AtomicBool,
    pages: Pages,
}

impl Reservation {
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

    /// Positions below this one, from the first append on, are reserved and populated.
    pub fn present_to(&self) -> u64 {
        self.present_to.load(Ordering::Acquire)
    }

    /// Records that positions up to `end` are reserved and populated.
    pub fn raise(&self, end: u64) {
        self.present_to.fetch_max(end, Ordering::AcqRel);
    }

    /// Measures the rate of the appender that now needs positions up to `end`. Threads may do so
    /// concurrently, and may store their times out of order.
    pub fn measure(&self, end: u64) {
        let now = u64::try_from(self.started.elapsed().as_micros()).unwrap_or(u64::MAX);
        let (since, from) =
            (self.last_us.swap(now, Ordering::Relaxed), self.last_end.swap(end, Ordering::Relaxed));
        let (bytes, us) = (end.saturating_sub(from), now.saturating_sub(since));
        let is_fast = from != 0 && bytes > us.saturating_mul(FAST);
        self.is_fast.store(is_fast, Ordering::Relaxed);
    }

    /// Whether the appender was fast when last measured.
    pub fn is_fast(&self) -> bool {
        self.is_fast.load(Ordering::Relaxed)
    }

    /// The end of the step that brings positions up to `end`.
    pub fn step(&self, end: u64) -> u64 {
        let step = if self.is_fast() { LARGE_STEP } else { SMALL_STEP };
        self.pages.up(end + step.min((end / AHEAD_PART).max(SMALL_STEP)))
    }

    /// The end of the step that a slow appender at `end` takes between messages.
    pub fn between(end: u64) -> u64 {
        Pages::here().up(end + BETWEEN_STEP)
    }

    /// How far ahead of an appender at `end` the pretoucher should be.
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
            let reservation = Reservation::new(Pages::of(bytes));
            for end in [1, bytes - 1, bytes, 10 * bytes + 1, 1 << 30] {
                let step = reservation.step(end);
                assert!(step.is_multiple_of(bytes) && step >= end + SMALL_STEP, "{bytes} {end}");
            }
        }
    }
}
