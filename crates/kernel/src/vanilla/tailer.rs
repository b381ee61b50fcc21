use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::message::Message;
use super::named_position::NamedPosition;
use super::options::Consumption;
use super::protocol::cycle_reader::CycleReader;
use super::queue::VanillaQueue;
use crate::{Error, Result, warnings};

/// Earlier cycles are looked at for late entries once in this many messages, and at the end.
const LATE_EVERY: u32 = 64;

/// Reads messages.
pub struct VanillaTailer {
    queue: Arc<VanillaQueue>,
    name: Option<String>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The cycle that is read; None before the first.
    current: Option<Place>,
    /// Cycles that were left and that a slow writer may still append to, the newest last.
    late: Vec<Late>,
    named: Option<NamedPosition>,
    /// What was delivered since the position was stored.
    is_dirty: bool,
    last_read: Option<i64>,
    until_late: u32,
    is_closed: bool,
}

/// A place to return to.
pub struct Mark {
    current: Option<(i32, u64)>,
    late: Vec<(i32, u64)>,
    last_read: Option<i64>,
}

/// Where the next message of a cycle is.
struct Place {
    reader: CycleReader,
    sequence: u64,
}

struct Late {
    place: Place,
    until: Instant,
}

impl Place {
    /// The next message of the cycle.
    #[inline]
    fn next(&mut self, queue: &VanillaQueue) -> Result<Option<Message>> {
        let entry = self.reader.entry(self.sequence)?;
        if entry == 0 {
            return Ok(None);
        }
        let payload = self.reader.payload(self.sequence, entry)?;
        let cycle = self.reader.cycle();
        Ok(Some(Message {
            index: queue.index_of(cycle, self.sequence)?,
            cycle,
            at: payload.at,
            region: payload.region,
            length: payload.length,
        }))
    }
}

impl VanillaTailer {
    /// At the first message, or where the name left off.
    pub fn open(queue: Arc<VanillaQueue>, name: Option<&str>) -> Result<Self> {
        queue.check_open("queue")?;
        let mut state = State::default();
        if let Some(name) = name {
            if queue.options().read_only {
                let path = queue.path().to_path_buf();
                return Err(Error::ReadOnly { what: "a named tailer", path });
            }
            let named = NamedPosition::open(queue.path(), name, queue.options().file_mode)?;
            let (next, late) = named.load();
            state.current = next.map(|next| place_at(&queue, next)).transpose()?.flatten();
            if let Some(place) = late.map(|late| place_at(&queue, late)).transpose()?.flatten() {
                state.late.push(Late { place, until: Instant::now() + queue.options().linger });
            }
            state.named = Some(named);
        }
        Ok(Self { queue, name: name.map(str::to_owned), state: Mutex::new(state) })
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

    /// The next message; what was delivered before is finished.
    #[inline]
    pub fn read(&self) -> Result<Option<Message>> {
        let mut state = self.open_state()?;
        self.finish(&mut state)?;
        self.take(&mut state)
    }

    /// Hands up to `count` messages to `each` while it returns true; the first that it refuses is
    /// read again. What was delivered before is finished.
    pub fn read_many(
        &self,
        count: usize,
        is_first: bool,
        mut each: impl FnMut(&Message) -> bool,
    ) -> Result<usize> {
        let mut state = self.open_state()?;
        if is_first {
            self.finish(&mut state)?;
        }
        for number in 0..count {
            let (message, is_late) = match self.find(&mut state) {
                Ok(Some(found)) => found,
                // An error that follows messages comes with the next call.
                Err(error) if number == 0 => return Err(error),
                _ => return Ok(number),
            };
            if !each(&message) {
                return Ok(number);
            }
            state.step_over(&message, is_late);
        }
        Ok(count)
    }

    /// Where the tailer is, for [`VanillaTailer::return_to`].
    #[must_use]
    pub fn mark(&self) -> Mark {
        let state = self.lock();
        let at = |place: &Place| (place.reader.cycle(), place.sequence);
        Mark {
            current: state.current.as_ref().map(at),
            late: state.late.iter().map(|late| at(&late.place)).collect(),
            last_read: state.last_read,
        }
    }

    /// Goes back to a place: what was delivered since is delivered again.
    pub fn return_to(&self, mark: &Mark) -> Result<()> {
        let mut state = self.open_state()?;
        let place = match mark.current {
            Some((cycle, sequence)) => {
                self.queue.reader(cycle)?.map(|reader| Place { reader, sequence })
            }
            None => None,
        };
        state.current = place;
        state.late.retain_mut(|late| {
            let before = mark.late.iter().find(|(cycle, _)| *cycle == late.place.reader.cycle());
            late.place.sequence = before.map_or(0, |(_, sequence)| *sequence);
            before.is_some()
        });
        state.last_read = mark.last_read;
        state.is_dirty = true;
        Ok(())
    }

    /// Whether there is a message to read. What was delivered before is finished.
    pub fn has_next(&self) -> Result<bool> {
        let mut state = self.open_state()?;
        self.finish(&mut state)?;
        Ok(self.find(&mut state)?.is_some())
    }

    /// The next message that nobody has claimed, claimed for `owner`; None when there is none yet.
    pub fn claim(&self, owner: u32) -> Result<Option<Message>> {
        if self.queue.options().consumption != Consumption::Queue {
            return Err(Error::Unsupported(
                "claim changes the first bytes of messages: open the queue with consumption='queue', \
                 in which every message begins with a claim word".into(),
            ));
        }
        if owner == 0 {
            return Err(Error::Invalid("0 means that nobody has the message: owner=0".into()));
        }
        let mut state = self.open_state()?;
        self.finish(&mut state)?;
        while let Some(message) = self.take(&mut state)? {
            let word = message.bytes().first_chunk().map(|word| u32::from_le_bytes(*word));
            if word == Some(0) && self.queue.swap32(&message, 0, 0, owner)?.is_ok() {
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
        if !state.late.is_empty() && state.until_late == 0 {
            state.until_late = LATE_EVERY;
            if let Some(found) = self.find_late(state)? {
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

    fn find_late(&self, state: &mut State) -> Result<Option<(Message, Option<usize>)>> {
        let now = Instant::now();
        for (number, late) in state.late.iter_mut().enumerate() {
            if let Some(message) = late.place.next(&self.queue)? {
                return Ok(Some((message, Some(number))));
            }
        }
        state.late.retain(|late| late.until > now);
        Ok(None)
    }

    /// Looks into later cycles once the present one has nothing more.
    #[cold]
    fn find_further(&self, state: &mut State) -> Result<Option<(Message, Option<usize>)>> {
        loop {
            if let Some(found) = self.find_late(state)? {
                return Ok(Some(found));
            }
            let from = state.current.as_ref().map_or(-1, |place| place.reader.cycle());
            let Some(next) = self.next_place(from)? else { return Ok(None) };
            if let Some(place) = &mut state.current {
                // A writer may have been here between the first look and the next cycle's first entry.
                if let Some(message) = place.next(&self.queue)? {
                    return Ok(Some((message, None)));
                }
                if Self::pass_gap(place)? {
                    continue;
                }
            }
            self.move_on(state, next);
            if let Some(place) = &mut state.current
                && let Some(message) = place.next(&self.queue)?
            {
                return Ok(Some((message, None)));
            }
        }
    }

    /// A cycle after `from` that has a message.
    fn next_place(&self, from: i32) -> Result<Option<Place>> {
        let mut from = from;
        while let Some(cycle) = self.queue.listing().after(from)? {
            if let Some(mut reader) = self.queue.reader(cycle)?
                && let Some(sequence) = first_of(&mut reader)?
            {
                return Ok(Some(Place { reader, sequence }));
            }
            from = cycle;
        }
        Ok(None)
    }

    /// Goes over free entries that taken ones follow: a power cut or a lost file leaves that.
    fn pass_gap(place: &mut Place) -> Result<bool> {
        let Some(taken) = place.reader.after_gap(place.sequence)? else { return Ok(false) };
        warnings::leave(format!(
            "free index entries are passed over: path={} from={} to={taken} \
             (quire.vanilla.rebuild_index brings back what the data files hold)",
            place.reader.directory().display(),
            place.sequence
        ));
        place.sequence = taken;
        Ok(true)
    }

    /// Leaves the present cycle, which is looked at for some time if it ended lately.
    fn move_on(&self, state: &mut State, next: Place) {
        let linger = self.queue.options().linger;
        if let Some(place) = state.current.replace(next) {
            let format = self.queue.format();
            let end = format.start_ms(place.reader.cycle()).saturating_add(format.length_ms());
            let linger_ms = i64::try_from(linger.as_millis()).unwrap_or(i64::MAX);
            if self.queue.options().clock.now_ms() < end.saturating_add(linger_ms) {
                state.late.push(Late { place, until: Instant::now() + linger });
            }
        }
    }

    /// Goes to the first message.
    pub fn to_start(&self) -> Result<()> {
        let mut state = self.open_state()?;
        self.queue.listing().forget();
        self.go_to(&mut state, None)
    }

    /// Goes to where the next message will be.
    pub fn to_end(&self) -> Result<()> {
        let mut state = self.open_state()?;
        let place = match self.queue.end()? {
            Some((cycle, sequence)) => {
                self.queue.reader(cycle)?.map(|reader| Place { reader, sequence })
            }
            None => None,
        };
        self.go_to(&mut state, place)
    }

    /// Goes to a message; false, and nowhere, if there is none with this index.
    pub fn move_to_index(&self, index: i64) -> Result<bool> {
        let mut state = self.open_state()?;
        let Some(mut place) = place_at(&self.queue, index)? else { return Ok(false) };
        let is_taken = place.reader.entry(place.sequence)? != 0;
        let is_end = !is_taken && end_is(&mut place)?;
        if is_taken || is_end {
            self.go_to(&mut state, Some(place))?;
        }
        Ok(is_taken)
    }

    fn go_to(&self, state: &mut State, place: Option<Place>) -> Result<()> {
        state.late.clear();
        state.current = place;
        state.is_dirty = true;
        self.finish(state)
    }

    /// The index of the next message; 0 while there is none and none was read.
    pub fn index(&self) -> Result<i64> {
        let state = self.open_state()?;
        match &state.current {
            Some(place) => self.queue.index_of(place.reader.cycle(), place.sequence),
            None => Ok(self.queue.first_index()?.unwrap_or(0)),
        }
    }

    /// The index of the message that was delivered last.
    pub fn last_read_index(&self) -> Result<Option<i64>> {
        Ok(self.open_state()?.last_read)
    }

    /// Finishes what was delivered.
    pub fn commit(&self) -> Result<()> {
        let mut state = self.open_state()?;
        self.finish(&mut state)
    }

    /// Ends the use of the tailer; `is_finished`: what was delivered is done.
    pub fn close(&self, is_finished: bool) -> Result<()> {
        let mut state = self.lock();
        if !state.is_closed && is_finished && !self.queue.is_closed() {
            self.finish(&mut state)?;
        }
        *state = State { is_closed: true, ..State::default() };
        Ok(())
    }

    /// Whether it, or its queue, was closed.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.lock().is_closed || self.queue.is_closed()
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
        let index = |place: &Place| self.queue.index_of(place.reader.cycle(), place.sequence);
        let next = state.current.as_ref().map(index).transpose()?;
        let late = state.late.last().map(|late| index(&late.place)).transpose()?;
        if let Some(named) = &state.named {
            named.store(next, late);
        }
        state.is_dirty = false;
        Ok(())
    }

    fn open_state(&self) -> Result<MutexGuard<'_, State>> {
        self.queue.check_open("tailer")?;
        let state = self.lock();
        if state.is_closed {
            return Err(Error::closed("tailer", self.queue.path()));
        }
        Ok(state)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    #[inline]
    fn step_over(&mut self, message: &Message, late: Option<usize>) {
        let place = match late {
            Some(number) => self.late.get_mut(number).map(|late| &mut late.place),
            None => self.current.as_mut(),
        };
        if let Some(place) = place {
            place.sequence += 1;
        }
        self.until_late = self.until_late.saturating_sub(1);
        self.last_read = Some(message.index);
        self.is_dirty = true;
    }
}

/// The first sequence number of a cycle that is taken.
fn first_of(reader: &mut CycleReader) -> Result<Option<u64>> {
    if reader.entry(0)? != 0 { Ok(Some(0)) } else { reader.after_gap(0) }
}

fn place_at(queue: &VanillaQueue, index: i64) -> Result<Option<Place>> {
    let Some((cycle, sequence)) = queue.split().split(index) else { return Ok(None) };
    Ok(queue.reader(cycle)?.map(|reader| Place { reader, sequence }))
}

/// Whether a place is where the next message of its cycle will be.
fn end_is(place: &mut Place) -> Result<bool> {
    let before = place.sequence.checked_sub(1);
    before.map_or(Ok(true), |before| Ok(place.reader.entry(before)? != 0))
}
