//! The warning before a disk is full, while there is time to do something about it.
//!
//! It is looked for at most once a second, when an appender looks around, so that it costs a
//! message nothing.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::chronicle::protocol::roll_file::RollFile;
use crate::os::files::{self, Left};
use crate::warnings;

/// Less than this is little, on however large a disk. Chronicle's disk monitor says the same.
const LITTLE: u64 = 200 << 20;
/// A disk that stays nearly full is reported this often.
const REPEAT: Duration = Duration::from_secs(60);

/// When a queue last warned of little space.
#[derive(Default)]
pub struct LowSpace {
    warned: Mutex<Option<Instant>>,
}

impl LowSpace {
    /// Leaves a notice if the disk of `file` has less than `percent` of its space left, or little in
    /// any case. A `percent` of 0 never does.
    pub fn look(&self, file: &RollFile, percent: u8) {
        if percent == 0 {
            return;
        }
        let Ok(left) = files::left(file.window.file()) else { return };
        if !is_low(left, percent) {
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
             low_space_percent={percent} (make room: appends fail when nothing is left)",
            file.path().display()
        ));
    }
}

fn is_low(left: Left, percent: u8) -> bool {
    left.free < LITTLE || left.free / 100 < left.total / 10_000 * u64::from(percent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn little_is_a_part_of_the_disk_or_a_number_of_bytes() {
        const GIB: u64 = 1 << 30;
        for (free, total, percent, low) in [
            (199 << 20, GIB, 5, true),
            (201 << 20, GIB, 5, false),
            (201 << 20, GIB, 50, true),
            (50 * GIB, 1000 * GIB, 5, false),
            (49 * GIB, 1000 * GIB, 5, true),
            (u64::MAX, u64::MAX, 99, false),
        ] {
            assert_eq!(is_low(Left { free, total }, percent), low, "{free} of {total}");
        }
    }
}
