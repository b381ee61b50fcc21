//! A warning before the disk is full, while there is time to act.
//!
//! Free space is checked at most once a second, in an appender's periodic checks, so that it costs
//! a message nothing; and each second by background threads that an appender may have anyway
//! (`pretouch.rs`, `committer.rs`), whether or not anything is appended.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::options::Options;
use crate::memory::pretouch::Watch;
use crate::memory::window::Window;
use crate::os::files::{self, Left};
use crate::warnings;

/// Less free space than this is low on any disk, as in Chronicle's disk monitor.
const LITTLE: u64 = 200 << 20;
/// How often a disk that stays nearly full is reported.
const REPEAT: Duration = Duration::from_secs(60);

/// The limits of low space; limits of 0 disable the warning.
#[derive(Clone, Copy)]
struct Limits {
    percent: u8,
    bytes: u64,
}

/// The limits of a queue's warning, and when it last warned.
pub struct LowSpace {
    limits: Limits,
    warned: Mutex<Option<Instant>>,
}

impl LowSpace {
    /// The warning according to a queue's options.
    #[must_use]
    pub fn new(options: &Options) -> Self {
        let percent = options.low_space_percent;
        let little = if percent == 0 { 0 } else { LITTLE };
        let bytes = options.low_space_bytes.unwrap_or(little);
        Self { limits: Limits { percent, bytes }, warned: Mutex::default() }
    }

    /// The callback for background threads; None if the limits are 0.
    #[must_use]
    pub fn watch(self: &Arc<Self>) -> Option<Watch> {
        let looks = self.limits.percent > 0 || self.limits.bytes > 0;
        let low_space = Arc::clone(self);
        looks.then(|| Arc::new(move |window: &Window| low_space.look(window)) as Watch)
    }

    /// Leaves a notice if the disk of a file has little space left.
    pub fn look(&self, window: &Window) {
        let Limits { percent, bytes } = self.limits;
        if percent == 0 && bytes == 0 {
            return;
        }
        let Ok(left) = files::left(window.file()) else { return };
        if !is_low(left, self.limits) {
            return;
        }
        let mut warned = self.warned.lock().unwrap_or_else(PoisonError::into_inner);
        if warned.is_some_and(|warned| warned.elapsed() < REPEAT) {
            return;
        }
        *warned = Some(Instant::now());
        let Left { free, total } = left;
        warnings::leave(format!(
            "the disk is almost full: path={} free_bytes={free} total_bytes={total} \
             low_space_percent={percent} low_space_bytes={bytes} (make room: appends fail when the \
             disk is full)",
            window.path().display()
        ));
    }
}

fn is_low(left: Left, limits: Limits) -> bool {
    let share = left.total / 10_000 * u64::from(limits.percent);
    left.free < limits.bytes || left.free / 100 < share
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn little_is_a_part_of_the_disk_or_a_number_of_bytes() {
        const GIB: u64 = 1 << 30;
        for (free, total, percent, bytes, low) in [
            (199 << 20, GIB, 5, LITTLE, true),
            (201 << 20, GIB, 5, LITTLE, false),
            (201 << 20, GIB, 5, GIB, true),
            (1 << 20, GIB, 0, 0, false),
            (1 << 20, GIB, 0, 2 << 20, true),
            (201 << 20, GIB, 50, 0, true),
            (50 * GIB, 1000 * GIB, 5, LITTLE, false),
            (49 * GIB, 1000 * GIB, 5, LITTLE, true),
            (u64::MAX, u64::MAX, 99, LITTLE, false),
        ] {
            let limits = Limits { percent, bytes };
            assert_eq!(is_low(Left { free, total }, limits), low, "{free} of {total}");
        }
    }
}
