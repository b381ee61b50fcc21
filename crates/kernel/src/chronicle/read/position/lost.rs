//! Where a cursor continues after lost or deleted messages.

use super::{Cursor, State};
use crate::chronicle::protocol::locate::{self, Located};
use crate::chronicle::protocol::roll_file::{Slot, View};
use crate::chronicle::queue::handle::{LOOK_MS, Queue};
use crate::os::{clock, files};
use crate::{Error, Result, warnings};

impl Cursor {
    /// Enters the next existing file, and reports a file that is known to have been deleted in
    /// between.
    pub(super) fn enter_next(&mut self, queue: &Queue) -> Result<bool> {
        let next = queue.cycle_after(self.cycle)?;
        let known = self.known_next;
        let expected = if known > self.cycle { queue.roll().to_index(known, 0)? } else { 0 };
        let before = (self.cycle, self.sequence, self.position, self.view.take());
        if !self.enter_from(queue, next)? {
            self.view = before.3;
            return Ok(self.is_look_due() && self.enter_replacement(queue)?);
        }
        if known <= before.0 || known >= self.cycle || queue.has_file(known) {
            return Ok(true);
        }
        let reported = self.missing.report(queue.path(), expected, Some(self.index(queue)?));
        if reported.is_err() {
            (self.cycle, self.sequence, self.position, self.view) = before;
            (self.state, self.known_next) = (State::EndOfCycle, known);
        }
        reported.map(|()| true)
    }

    /// Whether it is time to check that the file still has its name.
    #[inline]
    pub fn is_look_due(&self) -> bool {
        clock::coarse_time_ms().abs_diff(self.looked_ms) >= LOOK_MS.unsigned_abs()
    }

    /// If another file took the name of the one read to its end, as when a backup is restored: goes
    /// to the first unread message in it, and reports lost ones.
    #[cold]
    pub(super) fn enter_replacement(&mut self, queue: &Queue) -> Result<bool> {
        self.looked_ms = clock::coarse_time_ms();
        let Some(mut old) = self.view.take() else { return Ok(false) };
        let entered = self.enter_other(queue, &mut old);
        if !matches!(entered, Ok(true)) {
            self.view = Some(old);
        }
        if entered.is_err() {
            self.looked_ms = 0; // so that the next read fails, too
        }
        entered
    }

    fn enter_other(&mut self, queue: &Queue, old: &mut View) -> Result<bool> {
        let file = old.file();
        let failed = |e| Error::io("cannot look at", file.path(), e);
        if !files::has_lost_name(file.window.file(), file.path()).map_err(failed)? {
            return Ok(false);
        }
        queue.table().map_or(Ok(()), |table| table.shared.check_not_replaced())?;
        queue.forget_file(file);
        let Some(mut new) = queue.view(self.cycle)? else { return Ok(false) };
        let first = first_difference(old, &mut new, self.sequence)?;
        if first < self.sequence {
            let [expected, found] =
                [self.sequence, first].map(|it| queue.roll().to_index(self.cycle, it));
            self.missing.report(queue.path(), expected?, Some(found?))?;
        }
        self.locate(queue, self.cycle, first)?;
        Ok(true)
    }

    /// Continues after a stored position whose file was deleted; false while no later file is
    /// ready.
    pub(super) fn pass_over_missing(&mut self, queue: &Queue) -> Result<bool> {
        let before = (self.cycle, self.sequence);
        let expected = self.index(queue)?;
        let next = queue.cycle_after(self.cycle)?;
        if !self.enter_from(queue, next)? {
            return Ok(false);
        }
        let reported = self.missing.report(queue.path(), expected, Some(self.index(queue)?));
        if reported.is_err() {
            (self.cycle, self.sequence) = before;
            (self.state, self.view, self.is_resumed) = (State::CycleNotFound, None, true);
        }
        reported.map(|()| true)
    }

    /// Goes to a stored index. If its message and earlier ones were lost, as in a power cut, goes
    /// to the first message after the loss, so that no future message is skipped. True if messages
    /// were deleted unread, and that was reported.
    pub fn resume_at(&mut self, queue: &Queue, index: i64) -> Result<bool> {
        let Some((cycle, sequence)) = place_of(queue, index)? else {
            warnings::leave(format!(
                "a tailer's stored position is before the first message, or cannot be that of a \
                 message; the tailer starts at the first one: stored={index:#x} path={}",
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
                self.missing.report(queue.path(), index, None)?;
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
            "a tailer's stored position is after the end of its file: stored={index:#x} \
             continued_at={:#x}",
            self.index(queue)?
        ));
        Ok(false)
    }
}

/// The first message before `end` that differs between two files with a common beginning.
fn first_difference(old: &mut View, new: &mut View, end: u64) -> Result<u64> {
    let (mut first, mut end) = (0, end.min(locate::end(new)?.next_sequence()));
    while first < end {
        let middle = first.midpoint(end);
        if payload_of(old, middle)?
            .is_some_and(|it| Some(it) == payload_of(new, middle).ok().flatten())
        {
            first = middle + 1;
        } else {
            end = middle;
        }
    }
    Ok(first)
}

fn payload_of(view: &mut View, sequence: u64) -> Result<Option<&[u8]>> {
    let Located::Found(position) = locate::locate(view, sequence)? else { return Ok(None) };
    match view.slot(position)? {
        Slot::Document(found) if !found.is_metadata => Ok(Some(view.payload(&found))),
        _ => Ok(None),
    }
}

/// The next cycle whose file exists and is complete; -1 if none is known.
pub(super) fn ready_after(queue: &Queue, cycle: i32) -> i32 {
    let is_ready =
        |next: &i32| queue.is_compressed(*next) || matches!(queue.view(*next), Ok(Some(_)));
    queue.cycle_after(cycle).ok().flatten().filter(is_ready).unwrap_or(-1)
}

/// Cycle and sequence of a stored index; None if no message can have it, or if a tailer read
/// backward past the start.
fn place_of(queue: &Queue, index: i64) -> Result<Option<(i32, u64)>> {
    let place = queue.roll().split(index).ok();
    let place = place.filter(|(cycle, _)| queue.file_for_cycle(*cycle).is_ok());
    let Some((cycle, sequence)) = place else { return Ok(None) };
    let is_before = sequence == queue.roll().sequence_mask()
        && queue.first_cycle()?.is_some_and(|first| cycle.checked_add(1) == Some(first));
    Ok((!is_before).then_some((cycle, sequence)))
}
