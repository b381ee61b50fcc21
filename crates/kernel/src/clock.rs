//! The time that chooses the cycle, and nothing else: waits use the monotonic clock.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use crate::memory::process;

/// Where "now" comes from, in epoch milliseconds.
#[derive(Clone, Debug)]
pub enum Clock {
    /// The machine's clock.
    System,
    /// A clock that moves only when told to.
    Manual(Arc<AtomicI64>),
}

impl Clock {
    /// The time in epoch milliseconds. The machine's clock is read at its coarse resolution (a few
    /// milliseconds late at most): a writer that is late still follows `listing.highestCycle`.
    #[must_use]
    pub fn now_ms(&self) -> i64 {
        match self {
            Self::System => process::coarse_time_ms(),
            Self::Manual(now) => now.load(Ordering::Acquire),
        }
    }
}
