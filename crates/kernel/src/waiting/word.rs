//! The word that synchronises sleepers and appenders. It is odd while a sleeper sleeps or is about
//! to, and each change increments it:
//!
//! - W1. a sleeper makes an even word odd, and keeps the value;
//! - W2. a fence;
//! - W3. it checks the queue, and does not sleep if there is something to read;
//! - W4. it sleeps while the word has the value of W1.
//!
//! - P1. an appender publishes its message: the CAS of a header;
//! - P2. it loads the word, and is done if that is even;
//! - P3. it makes the odd word even;
//! - P4. it wakes all sleepers.
//!
//! SYNC POINT: P1 and P2 are sequentially consistent, and W2 is a fence of that order. Either P2
//! sees W1, or W3 sees P1: no wake-up is lost. Values do not repeat, so W4 fails if an appender
//! came between, even if another sleeper has made the word odd again. A sleeper that dies leaves at
//! most an odd word, which costs the next appender one needless wake-up; if an appender dies
//! between P1 and P4, sleepers find the message at their next poll.

#[cfg(loom)]
use loom::sync::atomic::{Ordering, fence};
#[cfg(not(loom))]
use std::sync::atomic::{Ordering, fence};

use crate::memory::Cells;
use crate::probe::fault::step;

/// The word of a queue.
#[derive(Clone, Copy)]
pub struct Word<'a> {
    cells: &'a Cells,
    position: u64,
}

impl<'a> Word<'a> {
    /// The word at a position.
    #[inline]
    #[must_use]
    pub const fn new(cells: &'a Cells, position: u64) -> Self {
        Self { cells, position }
    }

    /// W1; returns the value to sleep at. The caller must then call [`settle`] and poll the queue.
    #[must_use]
    pub fn arm(self) -> u32 {
        let mut found = self.cells.load_word_seq_cst(self.position);
        while !is_armed(found) {
            let step = step!("waiting.word.arm");
            match self.cells.swap_word_acq_rel(self.position, found, found + 1, step) {
                Ok(()) => return found + 1,
                Err(other) => found = other,
            }
        }
        found
    }

    /// The current value, to compare with that of W1.
    #[must_use]
    pub fn value(self) -> u32 {
        self.cells.load_word_seq_cst(self.position)
    }

    /// P2, after a message was published: whether a reader sleeps.
    #[inline]
    #[must_use]
    pub fn is_armed(self) -> bool {
        is_armed(self.cells.load_word_seq_cst(self.position))
    }

    /// P3; whether this caller must wake the sleepers.
    #[must_use]
    pub fn clear(self) -> bool {
        let found = self.cells.load_word_seq_cst(self.position);
        let step = step!("waiting.word.clear");
        is_armed(found)
            && self
                .cells
                .swap_word_acq_rel(self.position, found, found.wrapping_add(1), step)
                .is_ok()
    }
}

const fn is_armed(value: u32) -> bool {
    value % 2 == 1
}

/// W2, between arming words and polling their queues. SYNC POINT with P1 and P2 (see the module).
pub fn settle() {
    fence(Ordering::SeqCst);
}
