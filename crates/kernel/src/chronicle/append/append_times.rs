//! Append times that an appender records (`docs/rolling.md`), after each call and without the write
//! lock.

use crate::chronicle::format::time_index;
use crate::chronicle::protocol::time_index::Points;
use crate::chronicle::queue::handle::Queue;
use crate::{Error, Result, warnings};

/// The append times of the cycle that an appender writes to.
#[derive(Default)]
pub struct AppendTimes {
    points: Option<Points>,
    /// The cycle whose side file cannot be written; that is not an error of appends.
    failed: Option<i32>,
}

impl AppendTimes {
    /// Notes that the message at an index, and all before it, have been appended by now.
    pub fn note(&mut self, queue: &Queue, index: i64, now_ms: i64) {
        let Ok((cycle, sequence)) = queue.roll().split(index) else { return };
        if self.failed == Some(cycle) {
            return;
        }
        if let Err(error) = self.try_note(queue, cycle, sequence, now_ms) {
            (self.points, self.failed) = (None, Some(cycle));
            warnings::leave(format!(
                "append times are no longer written: cycle={cycle} error={error}"
            ));
        }
    }

    fn try_note(&mut self, queue: &Queue, cycle: i32, sequence: u64, now_ms: i64) -> Result<()> {
        if let Some(points) = self.points.as_mut().filter(|points| points.cycle == cycle) {
            return points.add(now_ms, sequence + 1);
        }
        let path = time_index::path_for(&queue.file_for_cycle(cycle)?);
        let mut points = Points::open(&path, cycle, queue.options().file_mode)?;
        if !queue.has_file(cycle) {
            // They would mislead searches in a roll file that Java, or a backup, puts there later.
            points.remove()?;
            return Err(Error::gone("the cycle was removed", &path));
        }
        queue.check_times(cycle, sequence + 1)?;
        points.add(now_ms, sequence + 1)?;
        self.points = Some(points);
        Ok(())
    }
}
