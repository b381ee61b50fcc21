//! Where a tailer is, and how it moves: the state machine of `docs/protocol.md`, "Tail".

use std::sync::Arc;
use std::time::Instant;

use crate::memory::window::Region;
use crate::protocol::locate::{self, Place, Run};
use crate::protocol::roll_file::{Document, Slot, View};
use crate::queue::Queue;
use crate::{Result, notice};

/// Which way a tailer reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Direction {
    /// Toward newer messages.
    #[default]
    Forward,
    /// Toward older messages.
    Backward,
    /// The same message again and again.
    None,
}

/// Chronicle's states of a tailer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// There was no file yet.
    #[default]
    Uninitialised,
    /// At a header of a file.
    FoundInCycle,
    /// Behind the last message of a file that is closed.
    EndOfCycle,
    /// At an index its file does not reach.
    NotReachedInCycle,
    /// Asked for a cycle that has no file.
    CycleNotFound,
    /// Before the first message.
    BeyondStartOfCycle,
}

impl State {
    /// Chronicle's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Uninitialised => "UNINITIALISED",
            Self::FoundInCycle => "FOUND_IN_CYCLE",
            Self::EndOfCycle => "END_OF_CYCLE",
            Self::NotReachedInCycle => "NOT_REACHED_IN_CYCLE",
            Self::CycleNotFound => "CYCLE_NOT_FOUND",
            Self::BeyondStartOfCycle => "BEYOND_START_OF_CYCLE",
        }
    }
}

/// What can be told without a system call and without waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtOnce<T> {
    /// This.
    Found(T),
    /// There is nothing yet.
    Nothing,
    /// That takes more.
    Unknown,
}

/// A place in a queue. Cycle and sequence number the message to read next; the position is that of
/// its header, or of the header to look at for it.
#[derive(Default)]
pub struct Cursor {
    state: State,
    direction: Direction,
    /// The next message takes more than a look: it is to be read backward, or chosen by a filter.
    takes_more: bool,
    /// A filter looks at every message.
    looked_through: bool,
    cycle: i32,
    sequence: u64,
    position: u64,
    view: Option<View>,
    /// Positions found on the way, for reading backward.
    run: Run,
    /// Since when nothing changed at a place that holds the cursor up.
    held_up: Option<HeldUp>,
}

/// A place without progress: a file's end without a marker, or a file that is not ready.
struct HeldUp {
    cycle: i32,
    position: u64,
    since: Instant,
}

impl Cursor {
    /// The state.
    pub const fn state(&self) -> State {
        self.state
    }

    /// The direction.
    pub const fn direction(&self) -> Direction {
        self.direction
    }

    /// Whether a filter looks at every message.
    pub fn set_looked_through(&mut self, looked_through: bool) {
        self.looked_through = looked_through;
        self.takes_more = looked_through || self.direction == Direction::Backward;
    }

    /// Forgets the open file.
    pub fn let_go(&mut self) {
        self.view = None;
    }

    /// The mapping of the present file.
    pub fn region(&self) -> Option<Arc<Region>> {
        self.view.as_ref().map(|view| Arc::clone(view.region()))
    }

    /// The bytes of a document that [`Cursor::find`] returned last.
    #[inline]
    pub fn payload(&self, document: &Document) -> &[u8] {
        self.view.as_ref().map_or(&[], |view| view.payload(document))
    }

    /// Whether the cursor is still where it found this document.
    pub const fn is_at(&self, document: &Document) -> bool {
        self.position == document.position && self.view.is_some()
    }

    /// The index of the message to read next.
    #[inline]
    pub fn index(&self, queue: &Queue) -> Result<i64> {
        if self.state == State::BeyondStartOfCycle || self.cycle < 0 {
            let sequence = self.sequence.cast_signed();
            return Ok((i64::from(self.cycle) << queue.roll().shift()) + sequence);
        }
        queue.roll().to_index(self.cycle, self.sequence)
    }

    /// As [`Cursor::index`], but a cursor that has not started yet goes to the first file.
    pub fn index_or_first(&mut self, queue: &Queue) -> Result<i64> {
        if self.state == State::Uninitialised && !self.enter_first(queue)? {
            return Ok(0);
        }
        self.index(queue)
    }

    /// The next document, if finding out takes no system call.
    #[inline]
    pub fn find_at_once(&self, queue: &Queue, include_metadata: bool) -> AtOnce<Document> {
        let Some(view) = self.view.as_ref() else { return AtOnce::Unknown };
        if self.state != State::FoundInCycle || self.takes_more {
            return AtOnce::Unknown;
        }
        match view.slot_at_once(self.position) {
            Some(Slot::Document(document)) if include_metadata || !document.is_metadata => {
                AtOnce::Found(document)
            }
            Some(Slot::Waiting(_)) if !queue.may_have_after(self.cycle) => AtOnce::Nothing,
            _ => AtOnce::Unknown,
        }
    }

    /// The next document, not stepped over; None when nothing is there yet.
    #[inline]
    pub fn find(&mut self, queue: &Queue, include_metadata: bool) -> Result<Option<Document>> {
        if self.direction == Direction::Backward {
            return self.find_backward(queue);
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
                Slot::Waiting(_) if self.may_leave_without_marker(queue)? => {
                    self.state = State::EndOfCycle;
                }
                Slot::Waiting(_) => return Ok(None),
            }
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

    /// Goes back to a document that was stepped over, wherever the cursor went since.
    pub fn return_to(&mut self, queue: &Queue, document: &Document, index: i64) -> Result<()> {
        let (cycle, sequence) = queue.roll().split(index)?;
        if self.direction == Direction::Backward || self.cycle != cycle || self.view.is_none() {
            return self.move_to_index(queue, index).map(drop);
        }
        (self.sequence, self.position) = (sequence, document.position);
        self.state = State::FoundInCycle;
        Ok(())
    }

    /// Tries to get from another state to `FoundInCycle`; false when that cannot be had now.
    #[cold]
    fn resume(&mut self, queue: &Queue) -> Result<bool> {
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
                // Its messages are gone, or it is before the first: start over, from the next read.
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

    fn enter_next(&mut self, queue: &Queue) -> Result<bool> {
        let next = queue.cycle_after(self.cycle)?;
        self.enter_from(queue, next)
    }

    /// Enters the first cycle from `next` on whose file is ready. A file that is there and not ready
    /// is waited for, so that its messages are not passed over; after the queue's timeout, or the
    /// grace time if a later cycle has a message, it counts as absent.
    fn enter_from(&mut self, queue: &Queue, mut next: Option<i32>) -> Result<bool> {
        while let Some(cycle) = next {
            if let Some(view) = queue.view(cycle)? {
                self.place(view, 0, 0, State::FoundInCycle);
                return Ok(true);
            }
            if queue.has_file(cycle) {
                let timeout = queue.options().timeout;
                let limit = match queue.options().eof_grace {
                    Some(grace) if has_data_after(queue, cycle)? => grace.min(timeout),
                    _ => timeout,
                };
                if !self.is_held_up_for(cycle, 0, limit) {
                    return Ok(false);
                }
            }
            next = queue.cycle_after(cycle)?;
        }
        Ok(false)
    }

    fn place(&mut self, view: View, sequence: u64, position: u64, state: State) {
        self.cycle = view.file().cycle;
        (self.sequence, self.position, self.state) = (sequence, position, state);
        self.view = Some(view);
        self.run = Run::default();
        self.held_up = None;
    }

    /// Notes that the cursor is held up at a place; true once that lasts for `limit`.
    fn is_held_up_for(&mut self, cycle: i32, position: u64, limit: std::time::Duration) -> bool {
        match &self.held_up {
            Some(held) if (held.cycle, held.position) == (cycle, position) => {
                held.since.elapsed() >= limit
            }
            _ => {
                self.held_up = Some(HeldUp { cycle, position, since: Instant::now() });
                limit.is_zero()
            }
        }
    }

    /// Whether to leave a file that has no marker at its end: a later cycle has data, and the end
    /// stayed quiet for the grace time.
    #[inline]
    fn may_leave_without_marker(&mut self, queue: &Queue) -> Result<bool> {
        if queue.may_have_after(self.cycle) { self.leave_if_quiet(queue) } else { Ok(false) }
    }

    #[cold]
    fn leave_if_quiet(&mut self, queue: &Queue) -> Result<bool> {
        let Some(grace) = queue.options().eof_grace else { return Ok(false) };
        if !has_data_after(queue, self.cycle)? {
            self.held_up = None;
            return Ok(false);
        }
        if !self.is_held_up_for(self.cycle, self.position, grace) {
            return Ok(false);
        }
        // Once more, now that the later data was seen: what was published before it is visible.
        let Some(view) = self.view.as_mut() else { return Ok(true) };
        if !matches!(view.slot(self.position)?, Slot::Waiting(_)) {
            return Ok(false);
        }
        notice::leave(format!(
            "left a roll file without end-of-file marker: file={} position={:#x}",
            view.file().path().display(),
            self.position
        ));
        Ok(true)
    }

    /// Goes to a message by its number; true when reading can go on from there.
    fn locate(&mut self, queue: &Queue, cycle: i32, sequence: u64) -> Result<bool> {
        let Some(mut view) = queue.view(cycle)? else {
            self.state = State::CycleNotFound;
            return Ok(false);
        };
        let (position, state) = match locate::place_of(&mut view, sequence)? {
            Place::Found(position) | Place::NotYet(position) => (position, State::FoundInCycle),
            Place::AfterEnd(position) => (position, State::EndOfCycle),
            Place::NotReached => (0, State::NotReachedInCycle),
        };
        self.place(view, sequence, position, state);
        Ok(matches!(state, State::FoundInCycle | State::EndOfCycle))
    }

    /// Goes to an index; true when a message is there.
    pub fn move_to_index(&mut self, queue: &Queue, index: i64) -> Result<bool> {
        let (cycle, sequence) = queue.roll().split(index)?;
        if self.state == State::Uninitialised && !self.enter_first(queue)? {
            return Ok(false);
        }
        self.locate(queue, cycle, sequence)?;
        if self.state != State::FoundInCycle {
            return Ok(false);
        }
        let Some(view) = self.view.as_mut() else { return Ok(false) };
        Ok(matches!(view.slot(self.position)?, Slot::Document(_)))
    }

    /// Goes to a stored index. Where its message and those before it were lost, as by a power cut, to
    /// the first message after the loss, so that none of those to come is passed over.
    pub fn resume_at(&mut self, queue: &Queue, index: i64) -> Result<()> {
        let (cycle, sequence) = queue.roll().split(index)?;
        if self.locate(queue, cycle, sequence)? {
            return Ok(());
        }
        match self.state {
            State::NotReachedInCycle => {
                let Some(mut view) = queue.view(cycle)? else { return Ok(()) };
                let end = locate::end(&mut view)?;
                self.place_at_end(view, &end);
            }
            _ if queue.first_cycle()?.is_none() => self.go_to_start(queue)?,
            _ if queue.first_cycle()?.is_some_and(|first| cycle < first) => {
                (self.cycle, self.sequence) = (cycle, sequence);
                return Ok(());
            }
            _ => match queue.cycle_after(cycle)? {
                Some(next) if self.enter_from(queue, Some(next))? => {}
                _ => self.go_to_end(queue)?,
            },
        }
        notice::leave(format!(
            "a tailer's stored position is behind the end of its file: stored={index:#x} \
             continued_at={:#x}",
            self.index(queue)?
        ));
        Ok(())
    }

    /// Goes to the first message.
    pub fn go_to_start(&mut self, queue: &Queue) -> Result<()> {
        self.state = State::Uninitialised;
        self.view = None;
        (self.cycle, self.sequence, self.position) = (0, 0, 0);
        self.enter_first(queue).map(drop)
    }

    /// Goes behind the last message; backward: to the last message.
    pub fn go_to_end(&mut self, queue: &Queue) -> Result<()> {
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

    /// The position of the message to read backward: that of the sequence, or the last there is.
    /// None when the file has no message.
    fn position_backward(&mut self) -> Result<Option<u64>> {
        if let Some(position) = self.run.position(self.sequence) {
            return Ok(Some(position));
        }
        let Some(view) = self.view.as_mut() else { return Ok(None) };
        self.run = locate::run_up_to(view, self.sequence)?;
        let Some(position) = self.run.positions.last() else { return Ok(None) };
        self.sequence = self.run.first + self.run.positions.len() as u64 - 1;
        Ok(Some(*position))
    }

    fn step_back(&mut self, queue: &Queue) -> Result<()> {
        if self.sequence > 0 {
            self.sequence -= 1;
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
            before = queue.cycle_before(cycle)?;
        }
        self.state = State::BeyondStartOfCycle;
        self.cycle -= 1;
        self.sequence = queue.roll().sequence_mask();
        self.view = None;
        Ok(false)
    }
}

/// Whether a later cycle has a message.
fn has_data_after(queue: &Queue, mut cycle: i32) -> Result<bool> {
    while let Some(next) = queue.cycle_after(cycle)? {
        if let Some(mut view) = queue.view(next)?
            && matches!(locate::place_of(&mut view, 0)?, Place::Found(_))
        {
            return Ok(true);
        }
        cycle = next;
    }
    Ok(false)
}
