//! A cursor that cannot advance although there are later messages: at an end without a marker, and
//! before a file that is not ready (`docs/protocol.md` §9.3).

use super::Cursor;
use crate::chronicle::protocol::locate::check_nothing_after;
use crate::chronicle::protocol::roll_file::Slot;
use crate::chronicle::queue::handle::Queue;
use crate::{Result, warnings};

/// What to do at the end of a file without a marker.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum AtTail {
    /// Wait for a message there.
    Stay,
    /// Examine the position again: a document is there now.
    Look,
    /// Go to the next file.
    Leave,
}

impl Cursor {
    /// Whether to skip a file that exists but is not ready.
    #[cold]
    pub(super) fn may_pass_unready(&mut self, queue: &Queue, cycle: i32) -> Result<bool> {
        let (at, timeout) = ((cycle, 0), queue.options().timeout);
        if !self.hold.is_at(at) {
            queue.check_held_none(cycle)?;
        }
        if !queue.has_data_after(cycle)? {
            return Ok(self.hold.lasts(at, timeout));
        }
        if !self.hold.is_at(at) {
            queue.check_lost_messages(cycle)?;
        }
        Ok(match queue.options().eof_grace {
            Some(grace) => {
                let file = queue.file_for_cycle(cycle)?;
                self.hold.lasts_before_later_data(at, grace.min(timeout), &file)
            }
            None => self.hold.lasts(at, timeout),
        })
    }

    /// What to do at the end of a file without a marker: leave the file if a later cycle has data
    /// and the end has been unchanged for the grace time.
    #[inline]
    pub(super) fn at_tail(&mut self, queue: &Queue) -> Result<AtTail> {
        if self.is_look_due() && self.enter_replacement(queue)? {
            return Ok(AtTail::Look);
        }
        if queue.may_have_after(self.cycle) {
            return self.at_tail_of_older(queue);
        }
        self.hold.has_nothing_ahead();
        Ok(AtTail::Stay)
    }

    #[cold]
    fn at_tail_of_older(&mut self, queue: &Queue) -> Result<AtTail> {
        let Some(view) = self.view.as_mut() else { return Ok(AtTail::Leave) };
        if !queue.has_data_after(self.cycle)? {
            self.hold.end();
            return Ok(AtTail::Stay);
        }
        let file = view.path();
        let Some(grace) = queue.options().eof_grace else {
            queue.warn_once(self.cycle, || {
                format!(
                    "stays at the end of a roll file without end-of-file marker, as \
                     eof_grace_s=None asks, though a later one has messages: file={} position={:#x}",
                    file.display(),
                    self.position
                )
            });
            return Ok(AtTail::Stay);
        };
        if !self.hold.lasts_before_later_data((self.cycle, self.position), grace, &file) {
            return Ok(AtTail::Stay);
        }
        // Checked again after the later data was seen: messages published before that data are
        // visible now.
        if !matches!(view.slot(self.position)?, Slot::Waiting(_)) {
            return Ok(AtTail::Look);
        }
        check_nothing_after(view, self.position)?;
        warnings::leave(format!(
            "left a roll file without end-of-file marker: file={} position={:#x}",
            file.display(),
            self.position
        ));
        Ok(AtTail::Leave)
    }
}

/// Warns that a file is skipped.
pub fn warn_passed(queue: &Queue, cycle: i32) -> Result<()> {
    if queue.has_file(cycle) {
        warnings::leave(format!(
            "skipped a roll file that was never finished, or was emptied: file={}",
            queue.file_for_cycle(cycle)?.display()
        ));
    }
    Ok(())
}
