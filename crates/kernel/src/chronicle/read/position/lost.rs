//! Where a cursor goes on after what was lost or deleted.

use super::{Cursor, State};
use crate::chronicle::protocol::locate;
use crate::chronicle::queue::handle::Queue;
use crate::{Result, warnings};

impl Cursor {
    /// Enters the next file there is, and reports one that is known to have been deleted in between.
    pub(super) fn enter_next(&mut self, queue: &Queue) -> Result<bool> {
        let next = queue.cycle_after(self.cycle)?;
        let known = self.known_next;
        let expected = if known > self.cycle { queue.roll().to_index(known, 0)? } else { 0 };
        let before = (self.cycle, self.sequence, self.position, self.view.take());
        if !self.enter_from(queue, next)? {
            self.view = before.3;
            return Ok(false);
        }
        if known <= before.0 || known >= self.cycle || queue.has_file(known) {
            return Ok(true);
        }
        let reported = self.missing.report(queue, expected, Some(self.index(queue)?));
        if reported.is_err() {
            (self.cycle, self.sequence, self.position, self.view) = before;
            (self.state, self.known_next) = (State::EndOfCycle, known);
        }
        reported.map(|()| true)
    }

    /// Goes on after a stored position whose file was deleted; false while no later one is ready.
    pub(super) fn pass_over_missing(&mut self, queue: &Queue) -> Result<bool> {
        let before = (self.cycle, self.sequence);
        let expected = self.index(queue)?;
        let next = queue.cycle_after(self.cycle)?;
        if !self.enter_from(queue, next)? {
            return Ok(false);
        }
        let reported = self.missing.report(queue, expected, Some(self.index(queue)?));
        if reported.is_err() {
            (self.cycle, self.sequence) = before;
            (self.state, self.view, self.is_resumed) = (State::CycleNotFound, None, true);
        }
        reported.map(|()| true)
    }

    /// Goes to a stored index. Where its message and those before it were lost, as by a power cut, to
    /// the first message after the loss, so that none of those to come is skipped.
    /// True where messages were deleted unread, and that was said.
    pub fn resume_at(&mut self, queue: &Queue, index: i64) -> Result<bool> {
        let Some((cycle, sequence)) = place_of(queue, index)? else {
            warnings::leave(format!(
                "a tailer's stored position lies before the first message, or is none that one can \
                 have, and it starts at the first: stored={index:#x} path={}",
                queue.path().display()
            ));
            return self.go_to_start(queue).map(|()| false);
        };
        if self.locate(queue, cycle, sequence)? {
            self.known_next = ready_after(queue, cycle);
            return Ok(false);
        }
        if self.view.is_none() {
            queue.check_held_none(cycle)?;
        }
        match self.state {
            State::NotReachedInCycle => {
                let Some(mut view) = queue.view(cycle)? else { return Ok(false) };
                let end = locate::end(&mut view)?;
                self.place_at_end(view, &end);
            }
            _ if queue.first_cycle()?.is_none() => {
                self.missing.report(queue, index, None)?;
                return self.go_to_start(queue).map(|()| true);
            }
            _ if !queue.has_file(cycle) && queue.cycle_after(cycle)?.is_some() => {
                (self.cycle, self.sequence, self.is_resumed) = (cycle, sequence, true);
                return self.pass_over_missing(queue);
            }
            _ => match queue.cycle_after(cycle)? {
                Some(next) if self.enter_from(queue, Some(next))? => {}
                _ => self.go_to_end(queue)?,
            },
        }
        warnings::leave(format!(
            "a tailer's stored position is behind the end of its file: stored={index:#x} \
             continued_at={:#x}",
            self.index(queue)?
        ));
        Ok(false)
    }
}

/// The next cycle whose file is there and was completed; -1 where none is known.
pub(super) fn ready_after(queue: &Queue, cycle: i32) -> i32 {
    let is_ready =
        |next: &i32| queue.is_compressed(*next) || matches!(queue.view(*next), Ok(Some(_)));
    queue.cycle_after(cycle).ok().flatten().filter(is_ready).unwrap_or(-1)
}

/// Cycle and sequence of an index that somebody stored; None where no message can have it, or where
/// it is that of a tailer which read backward to the start and beyond.
fn place_of(queue: &Queue, index: i64) -> Result<Option<(i32, u64)>> {
    let place = queue.roll().split(index).ok();
    let place = place.filter(|(cycle, _)| queue.file_for_cycle(*cycle).is_ok());
    let Some((cycle, sequence)) = place else { return Ok(None) };
    let is_before = sequence == queue.roll().sequence_mask()
        && queue.first_cycle()?.is_some_and(|first| cycle.checked_add(1) == Some(first));
    Ok((!is_before).then_some((cycle, sequence)))
}
