//! The end of the queue, for a tailer that reads through a buffer.

use super::{Direction, Inner, Scan, Tailer};
use crate::Result;
use crate::os::detached::Detached;

/// A read pauses after draining parts of the buffer this many times.
const LOOKS: usize = 16;

impl Tailer {
    /// The result at the end of the queue: the buffer may have to be drained first. Messages
    /// drained since the queue was checked must not be missed: hence the comparison with the last
    /// check. From time to time also checks that the file has its name.
    #[inline(never)] // so that it costs no register when messages are found
    pub(super) fn at_end<T>(&self, inner: &mut Inner) -> Scan<T> {
        if inner.cursor.is_look_due() {
            return Scan::WouldWait;
        }
        let Some(buffer) = &self.buffer else { return Scan::Nothing };
        let (drained, has_more) = buffer.look();
        if std::mem::replace(&mut inner.drained, drained) != drained || has_more {
            Scan::WouldWait
        } else {
            Scan::Nothing
        }
    }

    /// Calls `look`, and again after each part of the buffer that was drained, until queue and
    /// buffer have no more. The tailer is not locked while the buffer is drained.
    pub(super) fn through_buffer<T>(
        &self,
        may_wait: &Detached,
        mut look: impl FnMut() -> Result<Scan<T>>,
    ) -> Result<Scan<T>> {
        let Some(buffer) = &self.buffer else { return look() };
        self.queue.check_generation()?; // the buffer may have been locked when this process forked
        for _ in 0..LOOKS {
            let before = buffer.look().0;
            let found = look()?;
            if !matches!(found, Scan::Nothing) || self.direction(may_wait)? == Direction::Backward {
                return Ok(found);
            }
            let has_more = buffer.look().1;
            // Another thread or process may have drained it meanwhile.
            let is_drained = has_more && buffer.drain_some(may_wait)? || buffer.look().0 != before;
            if !is_drained {
                return Ok(Scan::Nothing);
            }
        }
        Ok(Scan::Paused)
    }
}
