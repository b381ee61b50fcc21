//! Where a tailer is, and how it moves: the state machine of `docs/protocol.md`, "Tail".

use std::sync::Arc;
use std::time::Instant;

use super::missing::MissingCycles;
use super::scan::Scan;
use super::stall::Hold;
use crate::Result;
use crate::chronicle::protocol::locate::{self, Located, Run};
use crate::chronicle::protocol::roll_file::{Document, Slot, View};
use crate::chronicle::queue::handle::Queue;
use crate::memory::window::Region;

mod lost;
mod stalled;
mod state;
mod stretch;

pub use state::{Direction, State};
pub use stretch::Stretch;

use stalled::{AtTail, warn_passed};

/// A place in a queue. Cycle and sequence number the message to read next; the position is that of
/// its header, or of the next header to examine.
#[derive(Default)]
#[allow(clippy::struct_excessive_bools)] // each is a question of its own
pub struct Cursor {
    state: State,
    direction: Direction,
    /// Whether steps backward visit only indexed messages.
    is_striding: bool,
    /// Whether finding the next message needs more than checking a header: reading is backward, or
    /// a filter is set.
    takes_more: bool,
    /// Whether a filter examines every message.
    looked_through: bool,
    cycle: i32,
    sequence: u64,
    position: u64,
    view: Option<View>,
    /// Positions found by a walk, for reading backward.
    run: Run,
    /// Since when the position at which the cursor is stalled is unchanged.
    hold: Hold,
    /// How messages that were deleted unread are reported.
    missing: MissingCycles,
    /// Whether the file of the stored position was deleted: reading continues with the next
    /// existing one.
    is_resumed: bool,
    /// A later cycle that had a file when this one was entered, or -1.
    known_next: i32,
    /// Whether `known_next` must be determined, because the cursor moved into another cycle.
    asks_next: bool,
    /// When the file was last checked to have its name.
    looked_ms: i64,
}

impl Cursor {
    /// The state.
    pub const fn state(&self) -> State {
        self.state
    }

    /// The cycle.
    pub const fn cycle(&self) -> i32 {
        self.cycle
    }

    /// The cycle, and the position of the next header to examine there.
    pub const fn place_in_queue(&self) -> (i32, u64) {
        (self.cycle, self.position)
    }

    /// The direction.
    pub const fn direction(&self) -> Direction {
        self.direction
    }

    /// Whether steps backward visit only indexed messages.
    pub const fn is_striding(&self) -> bool {
        self.is_striding
    }

    /// Sets whether steps backward visit only indexed messages, or all.
    pub const fn set_striding(&mut self, is_striding: bool) {
        self.is_striding = is_striding;
    }

    /// Sets whether a filter examines every message.
    pub fn set_looked_through(&mut self, looked_through: bool) {
        self.looked_through = looked_through;
        self.takes_more = looked_through || self.asks_next || self.direction == Direction::Backward;
    }

    /// Determines which cycle is known to come next, before the first message is read.
    #[cold]
    fn note_next(&mut self, queue: &Queue) {
        self.asks_next = false;
        self.set_looked_through(self.looked_through);
        if self.view.is_some() {
            self.known_next = lost::ready_after(queue, self.cycle);
        }
    }

    /// Sets how messages that were deleted unread are reported.
    pub fn set_missing(&mut self, missing: MissingCycles) {
        self.missing = missing;
    }

    /// Forgets the open file; [`Cursor::find`] opens it again.
    pub fn release_files(&mut self) {
        self.view = None;
    }

    /// If reading is stalled before later messages: when it will be known whether reading
    /// continues. None if the last read simply reached the end.
    pub fn decides_at(&self) -> Option<Instant> {
        self.hold.decides_at()
    }

    /// The mapping of the present file.
    pub(crate) fn region(&self) -> Option<Arc<Region>> {
        self.view.as_ref().map(|view| Arc::clone(view.region()))
    }

    /// The bytes of a document that [`Cursor::find`] returned last.
    #[inline]
    pub fn payload(&self, document: &Document) -> &[u8] {
        self.view.as_ref().map_or(&[], |view| view.payload(document))
    }

    /// Whether a document that [`Cursor::find`] returned last is metadata of its file.
    pub fn is_of_file(&self, document: &Document) -> bool {
        self.view.as_ref().is_some_and(|view| view.is_of_file(document))
    }

    /// Whether the cursor is still where it found this document.
    pub const fn is_at(&self, document: &Document) -> bool {
        self.position == document.position
    }

    /// The index of the message to read next.
    #[expect(clippy::inline_always, reason = "once a message: a call costs 2 %")]
    #[inline(always)]
    pub fn index(&self, queue: &Queue) -> Result<i64> {
        if self.state == State::BeyondStartOfCycle || self.cycle < 0 {
            let sequence = self.sequence.cast_signed();
            return Ok((i64::from(self.cycle) << queue.roll().shift()) + sequence);
        }
        queue.schedule().to_index(self.cycle, self.sequence)
    }

    /// Like [`Cursor::index`], but a cursor that has not started yet enters the first file.
    pub fn index_or_first(&mut self, queue: &Queue) -> Result<i64> {
        if self.state == State::Uninitialised && !self.enter_first(queue)? {
            return Ok(0);
        }
        self.index(queue)
    }

    /// The next document, if finding it needs no system call.
    #[expect(clippy::inline_always, reason = "once a message: a call costs 2 %")]
    #[inline(always)]
    pub fn try_find(&self, queue: &Queue, include_metadata: bool) -> Scan<Document> {
        let Some(view) = self.view.as_ref() else { return Scan::WouldWait };
        if self.state != State::FoundInCycle || self.takes_more {
            return Scan::WouldWait;
        }
        match view.try_slot(self.position) {
            Some(Slot::Document(document)) if include_metadata || !document.is_metadata => {
                Scan::Found(document)
            }
            Some(Slot::Waiting(_))
                if !queue.may_have_after(self.cycle) && !view.is_near_end(self.position) =>
            {
                Scan::Nothing
            }
            _ => Scan::WouldWait,
        }
    }

    /// The next document, not stepped over; None if there is none yet.
    #[inline]
    pub fn find(&mut self, queue: &Queue, include_metadata: bool) -> Result<Option<Document>> {
        if self.view.is_none() && matches!(self.state, State::FoundInCycle | State::EndOfCycle) {
            self.locate(queue, self.cycle, self.sequence)?;
        }
        if self.direction == Direction::Backward {
            return self.find_backward(queue);
        }
        if self.asks_next {
            self.note_next(queue);
        }
        loop {
            if self.state != State::FoundInCycle && !self.resume(queue)? {
                return Ok(None);
            }
            let Some(view) = self.view.as_mut() else {
                self.state = State::CycleNotFound;
                continue;
            };
            match view.slot(self.position)? {
                Slot::Document(document) if document.is_metadata && !include_metadata => {
                    self.position = document.next;
                }
                Slot::Document(document) => return Ok(Some(document)),
                Slot::EndOfData => self.state = State::EndOfCycle,
                Slot::Waiting(_) => match self.at_tail(queue)? {
                    AtTail::Stay => {
                        self.look_ahead();
                        return Ok(None);
                    }
                    AtTail::Look => {}
                    AtTail::Leave => self.state = State::EndOfCycle,
                },
            }
        }
    }

    /// Prepares for the next message while there is none.
    fn look_ahead(&mut self) {
        let position = self.position;
        if let Some(view) = self.view.as_mut().filter(|view| view.is_near_end(position)) {
            view.look_ahead();
        }
    }

    /// Steps over a document, in the direction.
    #[inline]
    pub fn step_over(&mut self, queue: &Queue, document: &Document) -> Result<()> {
        match self.direction {
            Direction::Forward => {
                self.sequence += u64::from(!document.is_metadata);
                self.position = document.next;
                Ok(())
            }
            Direction::Backward => self.step_back(queue),
            Direction::None => Ok(()),
        }
    }

    /// Goes back to a document that was stepped over, wherever the cursor is now.
    pub fn return_to(&mut self, queue: &Queue, document: &Document, index: i64) -> Result<()> {
        let (cycle, sequence) = queue.roll().split(index)?;
        if self.direction == Direction::Backward || self.cycle != cycle || self.view.is_none() {
            return self.move_to_index(queue, index).map(drop);
        }
        (self.sequence, self.position) = (sequence, document.position);
        self.state = State::FoundInCycle;
        Ok(())
    }

    /// Tries to get from another state to `FoundInCycle`; false if that is not possible yet.
    #[cold]
    fn resume(&mut self, queue: &Queue) -> Result<bool> {
        self.hold.has_nothing_ahead();
        match self.state {
            State::FoundInCycle => Ok(true),
            State::Uninitialised => self.enter_first(queue),
            State::EndOfCycle => self.enter_next(queue),
            State::BeyondStartOfCycle => Ok(false),
            State::NotReachedInCycle => self.locate(queue, self.cycle, self.sequence),
            State::CycleNotFound => {
                if self.locate(queue, self.cycle, self.sequence)? {
                    return Ok(true);
                }
                if self.is_resumed {
                    return self.pass_over_missing(queue);
                }
                // Its messages were deleted, or it is before the first: start over with the next
                // read.
                if queue.first_cycle()?.is_some_and(|first| self.cycle < first) {
                    self.go_to_start(queue)?;
                }
                Ok(false)
            }
        }
    }

    fn enter_first(&mut self, queue: &Queue) -> Result<bool> {
        let first = queue.first_cycle()?;
        self.enter_from(queue, first)
    }

    /// Enters the first cycle from `next` on whose file is ready. A file that exists but is not
    /// ready is waited for, so that its messages are not skipped; after the queue's timeout, or the
    /// grace time if a later cycle has a message, it counts as absent.
    fn enter_from(&mut self, queue: &Queue, mut next: Option<i32>) -> Result<bool> {
        while let Some(cycle) = next {
            if let Some(view) = queue.view(cycle)? {
                self.place(view, 0, 0, State::FoundInCycle);
                self.known_next = lost::ready_after(queue, cycle);
                return Ok(true);
            }
            if queue.has_file(cycle) {
                if !self.may_pass_unready(queue, cycle)? {
                    return Ok(false);
                }
                if queue.view(cycle)?.is_some() {
                    continue; // it was finished meanwhile
                }
                warn_passed(queue, cycle)?;
            }
            next = queue.cycle_after(cycle)?;
        }
        Ok(false)
    }

    fn place(&mut self, view: View, sequence: u64, position: u64, state: State) {
        if self.cycle != view.file().cycle {
            self.known_next = -1;
        }
        self.cycle = view.file().cycle;
        (self.sequence, self.position, self.state) = (sequence, position, state);
        self.view = Some(view);
        self.run = Run::default();
        self.hold.end();
        self.is_resumed = false;
    }

    /// Goes to a message by its sequence; true if reading can continue there.
    fn locate(&mut self, queue: &Queue, cycle: i32, sequence: u64) -> Result<bool> {
        // Before the start of a queue whose first cycle is 0.
        let view = if cycle < 0 { None } else { queue.view(cycle)? };
        let Some(mut view) = view else {
            self.state = State::CycleNotFound;
            return Ok(false);
        };
        let (position, state) = match locate::locate(&mut view, sequence)? {
            Located::Found(position) | Located::NotYet(position) => (position, State::FoundInCycle),
            Located::AfterEnd(position) => (position, State::EndOfCycle),
            Located::NotReached => (0, State::NotReachedInCycle),
        };
        self.place(view, sequence, position, state);
        Ok(matches!(state, State::FoundInCycle | State::EndOfCycle))
    }

    /// Goes to an index; true if it has a message.
    pub fn move_to_index(&mut self, queue: &Queue, index: i64) -> Result<bool> {
        let (cycle, sequence) = queue.roll().split(index)?;
        if self.state == State::Uninitialised {
            // The cursor's place if the target has no file: the first cycle, whose file is not
            // opened.
            match queue.first_cycle()? {
                Some(first) => (self.cycle, self.sequence) = (first, 0),
                None => return Ok(false),
            }
        }
        self.locate(queue, cycle, sequence)?;
        self.asks_next = self.known_next <= cycle;
        self.set_looked_through(self.looked_through);
        if self.state != State::FoundInCycle {
            return Ok(false);
        }
        let Some(view) = self.view.as_mut() else { return Ok(false) };
        Ok(matches!(view.slot(self.position)?, Slot::Document(_)))
    }

    /// Goes to the first message.
    pub fn go_to_start(&mut self, queue: &Queue) -> Result<()> {
        self.state = State::Uninitialised;
        (self.view, self.is_resumed, self.known_next) = (None, false, -1);
        (self.cycle, self.sequence, self.position) = (0, 0, 0);
        self.enter_first(queue).map(drop)
    }

    /// Goes to the first document of a cycle; false if it has no ready file.
    pub fn go_to_start_of(&mut self, queue: &Queue, cycle: i32) -> Result<bool> {
        let Some(view) = queue.view(cycle)? else { return Ok(false) };
        self.place(view, 0, 0, State::FoundInCycle);
        Ok(true)
    }

    /// Moves past the last message; backward: to the last message.
    pub fn go_to_end(&mut self, queue: &Queue) -> Result<()> {
        self.known_next = -1; // messages deleted before the end are skipped on purpose
        let mut cycle = queue.last_cycle()?;
        let mut last_file = None;
        while let Some(found) = cycle {
            if let Some(mut view) = queue.view(found)? {
                let end = locate::end(&mut view)?;
                if let Some(last) = end.last {
                    match self.direction {
                        Direction::Backward => {
                            self.place(view, last.sequence, last.position, State::FoundInCycle);
                        }
                        _ => self.place_at_end(view, &end),
                    }
                    return Ok(());
                }
                last_file.get_or_insert((view, end));
            } else {
                queue.check_held_none(found)?;
            }
            cycle = queue.cycle_before(found)?;
        }
        match last_file {
            Some((view, end)) => self.place_at_end(view, &end),
            None => self.go_to_start(queue)?,
        }
        Ok(())
    }

    fn place_at_end(&mut self, view: View, end: &locate::End) {
        let closed = end.slot == Slot::EndOfData;
        let state = if closed { State::EndOfCycle } else { State::FoundInCycle };
        self.place(view, end.next_sequence(), end.position, state);
    }

    /// Changes the direction.
    pub fn set_direction(&mut self, queue: &Queue, direction: Direction) -> Result<()> {
        let before = std::mem::replace(&mut self.direction, direction);
        self.set_looked_through(self.looked_through);
        if before != Direction::Backward || direction == Direction::Backward {
            return Ok(());
        }
        match self.state {
            // As in Java: one read finds nothing and starts over.
            State::BeyondStartOfCycle => self.state = State::CycleNotFound,
            State::Uninitialised => {}
            _ => {
                self.locate(queue, self.cycle, self.sequence)?;
            }
        }
        Ok(())
    }

    fn find_backward(&mut self, queue: &Queue) -> Result<Option<Document>> {
        self.hold.has_nothing_ahead();
        if !self.has_file_backward(queue)? {
            return Ok(None);
        }
        loop {
            let Some(position) = self.position_backward()? else {
                if !self.enter_previous(queue)? {
                    return Ok(None);
                }
                continue;
            };
            let Some(view) = self.view.as_mut() else { return Ok(None) };
            self.state = State::FoundInCycle;
            self.position = position;
            return match view.slot(position)? {
                Slot::Document(document) => Ok(Some(document)),
                _ => Ok(None),
            };
        }
    }

    fn has_file_backward(&mut self, queue: &Queue) -> Result<bool> {
        match self.state {
            State::Uninitialised => self.enter_first(queue),
            State::BeyondStartOfCycle => Ok(false),
            State::CycleNotFound => {
                self.locate(queue, self.cycle, self.sequence)?;
                let is_found = self.state != State::CycleNotFound;
                if !is_found && queue.first_cycle()?.is_some_and(|first| self.cycle < first) {
                    self.state = State::BeyondStartOfCycle;
                }
                Ok(is_found)
            }
            _ => Ok(true),
        }
    }

    /// The position of the message to read backward: that of the sequence, or the last one. None if
    /// the file has no message.
    fn position_backward(&mut self) -> Result<Option<u64>> {
        if let Some(position) = self.run.position(self.sequence) {
            return Ok(Some(position));
        }
        let Some(view) = self.view.as_mut() else { return Ok(None) };
        self.run = locate::run_up_to(view, self.sequence)?;
        if self.run.position(self.sequence).is_none() {
            locate::check_nothing_after(view, self.run.end)?;
        }
        let Some(position) = self.run.positions.last() else { return Ok(None) };
        self.sequence = self.run.first + self.run.positions.len() as u64 - 1;
        Ok(Some(*position))
    }

    fn step_back(&mut self, queue: &Queue) -> Result<()> {
        if self.sequence > 0 {
            self.sequence -= 1;
            if self.is_striding {
                let file = self.view.as_ref().map(View::file);
                let spacing = file.map_or(queue.roll().index_spacing, |it| it.shape.index_spacing);
                self.sequence -= self.sequence % u64::from(spacing);
            }
            return Ok(());
        }
        self.enter_previous(queue).map(drop)
    }

    /// Goes to the last message of the nearest earlier cycle that has one.
    fn enter_previous(&mut self, queue: &Queue) -> Result<bool> {
        let mut before = queue.cycle_before(self.cycle)?;
        while let Some(cycle) = before {
            if let Some(mut view) = queue.view(cycle)?
                && let Some(last) = locate::end(&mut view)?.last
            {
                self.place(view, last.sequence, last.position, State::FoundInCycle);
                return Ok(true);
            }
            if queue.has_file(cycle) && queue.view(cycle)?.is_none() {
                queue.check_lost_messages(cycle)?;
                warn_passed(queue, cycle)?;
            }
            before = queue.cycle_before(cycle)?;
        }
        self.state = State::BeyondStartOfCycle;
        self.cycle -= 1;
        self.sequence = queue.roll().sequence_mask();
        self.view = None;
        Ok(false)
    }
}
