use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, MutexGuard};

use super::late::{LateCycles, LateMark};
use super::message::Message;
use super::named_position::NamedPosition;
use super::options::Consumption;
use super::place::{Passed, Place, end_is, next_place, place_after_loss, place_at};
use super::queue::{VanillaQueue, end_of};
use crate::chronicle::read::missing::MissingCycles;
use crate::chronicle::read::tailer::{Direction, Opening};
use crate::os::detached::{Detached, SharedState};
use crate::os::handles::Handle;
use crate::waiting::wait::Look;
use crate::{Error, Result, warnings};

/// Earlier cycles are checked for late entries once per this many messages, and at the end.
const LATE_EVERY: u32 = 64;

/// Reads messages.
pub struct VanillaTailer {
    queue: Arc<VanillaQueue>,
    name: Option<String>,
    state: SharedState<State>,
    /// Outside the state, so that checking it does not wait for a reader.
    is_closed: AtomicBool,
}

#[derive(Default)]
struct State {
    /// The place in the cycle being read; None before the first. Backward, its sequence number is
    /// the one after the next message.
    current: Option<Place>,
    direction: Direction,
    /// Earlier cycles that a slow writer may still append to.
    late: LateCycles,
    /// The first message of the next cycle that had one when the current cycle was entered.
    following: Option<i64>,
    missing: MissingCycles,
    named: Option<NamedPosition>,
    /// Whether messages were delivered since the position was stored.
    is_dirty: bool,
    last_read: Option<i64>,
    until_late: u32,
    /// Buffer for the message being delivered.
    copy: Vec<u8>,
}

/// A place to return to.
pub struct Mark {
    current: Option<(i32, u64)>,
    late: LateMark,
    last_read: Option<i64>,
}

impl Handle for VanillaTailer {
    /// Closes without storing a position.
    fn close_with_queue(&self, may_wait: &Detached) {
        *self.state.lock(may_wait) = State::default();
    }
}

impl Look for VanillaTailer {
    fn is_due(&self, may_wait: &Detached) -> bool {
        self.has_next(may_wait).unwrap_or(true)
    }
}

impl VanillaTailer {
    /// Opens a tailer at the first message, or at the name's stored position.
    pub fn open(
        queue: Arc<VanillaQueue>,
        opening: Opening<'_>,
        may_wait: &Detached,
    ) -> Result<Arc<Self>> {
        let Opening { name, shared, on_missing } = opening;
        queue.check_open("queue")?;
        let missing = MissingCycles::new(on_missing, name.unwrap_or_default().to_owned());
        let mut state = State { missing, ..State::default() };
        if let Some(name) = name {
            if queue.options().read_only {
                let path = queue.path().to_path_buf();
                return Err(Error::ReadOnly { what: "a named tailer", path });
            }
            let mode = queue.options().file_mode;
            let named = NamedPosition::open(queue.path(), name, mode, shared, may_wait)?;
            let kept = named.load();
            if let Some(next) = kept.next() {
                state.current = match place_at(&queue, next)? {
                    None => place_after_loss(&queue, name, next, on_missing)?,
                    place => place,
                };
            }
            let present = state.current.as_ref().map_or(0, |place| place.reader.cycle());
            state.late = LateCycles::resumed(&queue, &kept, present)?;
            state.named = Some(named);
        }
        let (name, state) = (name.map(str::to_owned), SharedState::new(state));
        let is_closed = AtomicBool::new(false);
        Ok(Arc::clone(&queue).handles.adopt(Self { queue, name, state, is_closed }))
    }

    /// Its queue.
    #[must_use]
    pub const fn queue(&self) -> &Arc<VanillaQueue> {
        &self.queue
    }

    /// The name its position is kept under.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// The next message; messages delivered before count as processed.
    #[inline]
    pub fn read(&self, may_wait: &Detached) -> Result<Option<Message>> {
        let mut state = self.open_state(may_wait)?;
        self.read_in(&mut state)
    }

    /// Like [`Self::read`]; None while another thread uses the tailer.
    #[inline]
    pub fn try_read(&self) -> Option<Result<Option<Message>>> {
        let state = self.try_open_state()?;
        Some(state.and_then(|mut state| self.read_in(&mut state)))
    }

    #[inline]
    fn read_in(&self, state: &mut State) -> Result<Option<Message>> {
        self.finish(state)?;
        self.take(state)
    }

    /// Calls `each` with up to `count` messages while it returns true; the first message refused is
    /// read again. Messages delivered before count as processed.
    pub fn read_many(
        &self,
        may_wait: &Detached,
        count: usize,
        is_first: bool,
        each: impl FnMut(i64, &[u8]) -> bool,
    ) -> Result<usize> {
        let mut state = self.open_state(may_wait)?;
        self.read_many_in(&mut state, count, is_first, each)
    }

    /// Like [`Self::read_many`]; None while another thread uses the tailer.
    #[inline]
    pub fn try_read_many(
        &self,
        count: usize,
        is_first: bool,
        each: impl FnMut(i64, &[u8]) -> bool,
    ) -> Option<Result<usize>> {
        let state = self.try_open_state()?;
        Some(state.and_then(|mut state| self.read_many_in(&mut state, count, is_first, each)))
    }

    fn read_many_in(
        &self,
        state: &mut State,
        count: usize,
        is_first: bool,
        mut each: impl FnMut(i64, &[u8]) -> bool,
    ) -> Result<usize> {
        if is_first {
            self.finish(state)?;
        }
        for number in 0..count {
            match self.pass(state, &mut each) {
                Ok(true) => {}
                // An error after messages is returned by the next call.
                Err(error) if number == 0 => return Err(error),
                _ => return Ok(number),
            }
        }
        Ok(count)
    }

    /// Calls `each` with the next message; returns whether there was one and it was taken.
    #[inline]
    fn pass(&self, state: &mut State, each: &mut impl FnMut(i64, &[u8]) -> bool) -> Result<bool> {
        // The usual case, without a reference to the file: the next message of the current cycle.
        if state.direction == Direction::Forward
            && (state.late.is_empty() || state.until_late > 0)
            && let Some(place) = &mut state.current
        {
            match place.pass(&self.queue, each)? {
                Passed::Nothing => {}
                Passed::Refused => return Ok(false),
                Passed::Taken(index) => {
                    state.delivered(index);
                    return Ok(true);
                }
            }
        }
        let Some((message, late)) = self.find(state)? else { return Ok(false) };
        state.copy.clear();
        message.append_to(&mut state.copy, 0..message.length())?;
        let is_taken = each(message.index, &state.copy);
        if is_taken {
            state.step_over(&message, late);
        }
        Ok(is_taken)
    }

    /// The tailer's place, for [`VanillaTailer::return_to`].
    pub fn mark(&self, may_wait: &Detached) -> Result<Mark> {
        let state = self.open_state(may_wait)?;
        let at = |place: &Place| (place.reader.cycle(), place.sequence);
        Ok(Mark {
            current: state.current.as_ref().map(at),
            late: state.late.mark(),
            last_read: state.last_read,
        })
    }

    /// Goes back to a place: messages delivered since are delivered again.
    pub fn return_to(&self, may_wait: &Detached, mark: &Mark) -> Result<()> {
        let mut state = self.open_state(may_wait)?;
        let place = match mark.current {
            Some((cycle, sequence)) => {
                self.queue.reader(cycle)?.map(|reader| Place { reader, sequence })
            }
            None => None,
        };
        state.current = place;
        state.late.return_to(&self.queue, &mark.late)?;
        state.last_read = mark.last_read;
        state.is_dirty = true;
        Ok(())
    }

    /// Whether there is a message to read. Messages delivered before count as processed.
    pub fn has_next(&self, may_wait: &Detached) -> Result<bool> {
        let mut state = self.open_state(may_wait)?;
        self.finish(&mut state)?;
        Ok(self.find(&mut state)?.is_some())
    }

    /// Claims the next unclaimed message for `owner`; None if there is none yet.
    pub fn claim(&self, may_wait: &Detached, owner: u32) -> Result<Option<Message>> {
        if self.queue.options().consumption != Consumption::Queue {
            return Err(Error::Unsupported(
                "claim changes the first bytes of messages: open the queue with consumption='queue', \
                 in which every message begins with a claim word".into(),
            ));
        }
        if owner == 0 {
            return Err(Error::Invalid("0 means that nobody has the message: owner=0".into()));
        }
        let mut state = self.open_state(may_wait)?;
        self.finish(&mut state)?;
        while let Some(message) = self.take(&mut state)? {
            if message.load32(0) == Some(0) && self.queue.swap32(&message, 0, 0, owner)?.is_ok() {
                return Ok(Some(message));
            }
        }
        Ok(None)
    }

    #[inline]
    fn take(&self, state: &mut State) -> Result<Option<Message>> {
        let Some((message, is_late)) = self.find(state)? else { return Ok(None) };
        state.step_over(&message, is_late);
        Ok(Some(message))
    }

    /// The next message, and the place among the late cycles it was found in.
    #[inline]
    fn find(&self, state: &mut State) -> Result<Option<(Message, Option<usize>)>> {
        if state.direction == Direction::Backward {
            return Ok(self.find_before(state)?.map(|message| (message, None)));
        }
        if !state.late.is_empty() && state.until_late == 0 {
            state.until_late = LATE_EVERY;
            if let Some(found) = state.late.find(&self.queue)? {
                return Ok(Some(found));
            }
        }
        if let Some(place) = &mut state.current
            && let Some(message) = place.next(&self.queue)?
        {
            return Ok(Some((message, None)));
        }
        self.find_further(state)
    }

    /// The message before the current place, in an earlier cycle if this one has no more.
    fn find_before(&self, state: &mut State) -> Result<Option<Message>> {
        loop {
            let Some(place) = &mut state.current else { return Ok(None) };
            let cycle = place.reader.cycle();
            if let Some(taken) = place.reader.taken_before(place.sequence)? {
                place.sequence = taken;
                let found = place.next(&self.queue);
                place.sequence = taken + 1;
                return found;
            }
            let Some(before) = self.place_before(cycle)? else {
                place.sequence = 0;
                return Ok(None);
            };
            state.current = Some(before);
        }
    }

    /// The end of a cycle before `cycle` that has a message.
    fn place_before(&self, cycle: i32) -> Result<Option<Place>> {
        let mut from = cycle;
        while let Some(cycle) = self.queue.listing().before(from)? {
            if let Some(mut reader) = self.queue.reader(cycle)? {
                let sequence = end_of(&mut reader)?;
                if sequence > 0 {
                    return Ok(Some(Place { reader, sequence }));
                }
            }
            from = cycle;
        }
        Ok(None)
    }

    /// The read direction.
    pub fn direction(&self, may_wait: &Detached) -> Result<Direction> {
        Ok(self.open_state(may_wait)?.direction)
    }

    /// Sets the read direction. The message to be read next stays the same, if there is one.
    pub fn set_direction(&self, may_wait: &Detached, direction: Direction) -> Result<()> {
        let mut state = self.open_state(may_wait)?;
        let is_backward = |direction| direction == Direction::Backward;
        if is_backward(state.direction) && !is_backward(direction) {
            let _ = self.find_before(&mut state)?;
            if let Some(place) = &mut state.current {
                place.sequence = place.sequence.saturating_sub(1);
            }
        } else if !is_backward(state.direction) && is_backward(direction) {
            state.late.clear();
            if state.current.is_none() {
                state.current = next_place(&self.queue, -1)?;
            }
            if let Some(place) = &mut state.current {
                place.turn_back()?;
            }
        }
        state.direction = direction;
        Ok(())
    }

    /// Searches later cycles once the current one has no more messages.
    #[cold]
    fn find_further(&self, state: &mut State) -> Result<Option<(Message, Option<usize>)>> {
        loop {
            if let Some(found) = state.late.find(&self.queue)? {
                return Ok(Some(found));
            }
            let from = state.current.as_ref().map_or(-1, |place| place.reader.cycle());
            let Some(next) = next_place(&self.queue, from)? else { return Ok(None) };
            if let Some(place) = &mut state.current {
                // A writer may have appended here between the first check and the next cycle's
                // first entry.
                if let Some(message) = place.next(&self.queue)? {
                    return Ok(Some((message, None)));
                }
                if Self::pass_gap(place)? {
                    continue;
                }
            }
            let first = self.queue.index_of(next.reader.cycle(), next.sequence)?;
            if let Some(expected) = state.following.filter(|expected| *expected < first) {
                state.missing.report(self.queue.path(), expected, Some(first))?;
            }
            let left = state.current.take();
            state.late.leave(&self.queue, left, next.reader.cycle());
            state.current = Some(next);
            state.following = self.following(state);
            if let Some(place) = &mut state.current
                && let Some(message) = place.next(&self.queue)?
            {
                return Ok(Some((message, None)));
            }
        }
    }

    /// The first message of the next cycle that has one. Damage there is reported when it is read.
    fn following(&self, state: &State) -> Option<i64> {
        let current = state.current.as_ref()?;
        let next = next_place(&self.queue, current.reader.cycle()).ok()??;
        self.queue.index_of(next.reader.cycle(), next.sequence).ok()
    }

    /// Skips free entries followed by taken ones, as left by a power cut or a lost file.
    fn pass_gap(place: &mut Place) -> Result<bool> {
        let Some(taken) = place.reader.after_gap(place.sequence)? else { return Ok(false) };
        if taken == place.sequence {
            return Ok(true); // it arrived while later cycles were checked: nothing is lost
        }
        warnings::leave(format!(
            "free index entries were skipped: path={} from={} to={taken} \
             (quire.vanilla.rebuild_index restores messages that the data files hold)",
            place.reader.directory().display(),
            place.sequence
        ));
        place.sequence = taken;
        Ok(true)
    }

    /// Goes to the first message.
    pub fn to_start(&self, may_wait: &Detached) -> Result<()> {
        let mut state = self.open_state(may_wait)?;
        self.queue.listing().refresh();
        let is_backward = state.direction == Direction::Backward;
        let mut place = if is_backward { next_place(&self.queue, -1)? } else { None };
        if let Some(place) = &mut place {
            place.turn_back()?;
        }
        self.go_to(&mut state, place)
    }

    /// Goes to where the next message will be.
    pub fn to_end(&self, may_wait: &Detached) -> Result<()> {
        let mut state = self.open_state(may_wait)?;
        let place = match self.queue.end()? {
            Some((cycle, sequence)) => {
                self.queue.reader(cycle)?.map(|reader| Place { reader, sequence })
            }
            None => None,
        };
        let present = place.as_ref().map(|place| place.reader.cycle());
        self.go_to(&mut state, place)?;
        present.map_or(Ok(()), |present| state.late.watch(&self.queue, present, &[]))
    }

    /// From now on, also delivers messages appended to earlier cycles: those that ended recently,
    /// and those after the first of `known`, which are the indexes of the last known messages of
    /// some cycles.
    pub fn watch_earlier(&self, may_wait: &Detached, known: &[i64]) -> Result<()> {
        let mut state = self.open_state(may_wait)?;
        let Some(present) = state.current.as_ref().map(|place| place.reader.cycle()) else {
            return Ok(());
        };
        state.late.clear();
        state.late.watch(&self.queue, present, known)
    }

    /// Goes to a message; false, without moving, if there is none with this index.
    pub fn move_to_index(&self, may_wait: &Detached, index: i64) -> Result<bool> {
        let mut state = self.open_state(may_wait)?;
        let Some(mut place) = place_at(&self.queue, index)? else { return Ok(false) };
        let is_taken = place.reader.entry(place.sequence)? != 0;
        let is_end = !is_taken && end_is(&mut place)?;
        if state.direction == Direction::Backward {
            place.turn_back()?;
        }
        if is_taken || is_end {
            self.go_to(&mut state, Some(place))?;
        }
        Ok(is_taken)
    }

    fn go_to(&self, state: &mut State, place: Option<Place>) -> Result<()> {
        state.late.clear();
        state.following = None;
        state.current = place;
        state.is_dirty = true;
        self.finish(state)
    }

    /// The index of the next message; 0 while there is none and none was read.
    pub fn index(&self, may_wait: &Detached) -> Result<i64> {
        let mut state = self.open_state(may_wait)?;
        if state.direction == Direction::Backward
            && let Some(found) = self.find_before(&mut state)?
        {
            return Ok(found.index);
        }
        let is_backward = state.direction == Direction::Backward;
        match &state.current {
            Some(place) => {
                let index = self.queue.index_of(place.reader.cycle(), place.sequence)?;
                Ok(index - i64::from(is_backward))
            }
            None => Ok(self.queue.first_index()?.unwrap_or(0)),
        }
    }

    /// The index of the last message delivered.
    pub fn last_read_index(&self, may_wait: &Detached) -> Result<Option<i64>> {
        Ok(self.open_state(may_wait)?.last_read)
    }

    /// Marks delivered messages as processed.
    pub fn commit(&self, may_wait: &Detached) -> Result<()> {
        let mut state = self.open_state(may_wait)?;
        self.finish(&mut state)
    }

    /// Closes the tailer; with `is_finished`, delivered messages count as processed.
    pub fn close(&self, may_wait: &Detached, is_finished: bool) -> Result<()> {
        if let Err(Error::Forked) = self.queue.check_open("tailer") {
            self.is_closed.store(true, Ordering::Release);
            return Ok(()); // the state may be locked by a thread that does not exist here
        }
        let mut state = self.state.lock(may_wait);
        if !self.is_closed() && is_finished {
            self.finish(&mut state)?;
        }
        self.is_closed.store(true, Ordering::Release);
        *state = State::default();
        Ok(())
    }

    /// Whether the tailer or its queue was closed.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire) || self.queue.is_closed()
    }

    /// Returns once the tailer was free, so that the caller can try again.
    pub fn wait_until_free(&self, may_wait: &Detached) {
        self.state.wait_until_free(may_wait);
    }

    /// Stores the position of a named tailer.
    #[inline]
    fn finish(&self, state: &mut State) -> Result<()> {
        if state.named.is_some() && state.is_dirty {
            self.store(state)?;
        }
        Ok(())
    }

    fn store(&self, state: &mut State) -> Result<()> {
        let before = u64::from(state.direction == Direction::Backward);
        let index = |place: &Place| {
            self.queue.index_of(place.reader.cycle(), place.sequence.saturating_sub(before))
        };
        let next = state.current.as_ref().map(index).transpose()?;
        let kept = state.late.kept(&self.queue, next)?;
        if let Some(named) = &state.named {
            named.store(&kept);
        }
        state.is_dirty = false;
        Ok(())
    }

    fn open_state<'a>(&'a self, may_wait: &'a Detached) -> Result<MutexGuard<'a, State>> {
        self.state.lock_open(may_wait, self.queue.check_open("tailer"), || self.check_open())
    }

    #[inline]
    fn try_open_state(&self) -> Option<Result<MutexGuard<'_, State>>> {
        self.state.try_lock_open(self.queue.check_open("tailer"), || self.check_open())
    }

    /// Called with the state locked.
    #[inline]
    fn check_open(&self) -> Result<()> {
        if self.is_closed() {
            return Err(Error::closed("tailer", self.queue.path()));
        }
        Ok(())
    }
}

impl State {
    #[inline]
    fn step_over(&mut self, message: &Message, late: Option<usize>) {
        let place = match late {
            Some(number) => self.late.place(number),
            None => self.current.as_mut(),
        };
        if let Some(place) = place {
            match self.direction {
                Direction::Forward => place.sequence += 1,
                Direction::Backward => place.sequence -= 1,
                Direction::None => {}
            }
        }
        self.delivered(message.index);
    }

    #[inline]
    fn delivered(&mut self, index: i64) {
        self.until_late = self.until_late.saturating_sub(1);
        self.last_read = Some(index);
        self.is_dirty = true;
    }
}
