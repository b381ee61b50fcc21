//! The end of the queue, for a tailer that reads through a buffer.

use super::{Direction, Inner, Scan, Tailer};
use crate::Result;
use crate::os::detached::Detached;

/// A read pauses after it has drained some of the buffer this often.
const LOOKS: usize = 16;

impl Tailer {
    /// Whether the buffer must be looked through before the end of the queue counts as the end. What
    /// is drained between the look at the queue and this one must not be missed: hence `before`,
    /// which is from the last look. Whether the file has its name is looked at from time to time.
    #[inline(never)] // where messages are found, this costs no register
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

    /// Calls `look`, and again after some of the buffer was drained, until there is nothing in
    /// either. Nothing of the tailer is locked while the buffer is drained.
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
            // Somebody else may have drained it meanwhile.
            let is_drained = has_more && buffer.drain_some(may_wait)? || buffer.look().0 != before;
            if !is_drained {
                return Ok(Scan::Nothing);
            }
        }
        Ok(Scan::Paused)
    }
}
