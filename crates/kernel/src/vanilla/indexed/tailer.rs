use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, MutexGuard};

use super::queue::IndexedQueue;
use super::reader::{Entry, Reader};
use crate::os::detached::{Detached, SharedState};
use crate::vanilla::{Direction, Message};
use crate::waiting::wait::Look;
use crate::{Error, Result, warnings};

/// Reads messages.
pub struct IndexedTailer {
    queue: Arc<IndexedQueue>,
    state: SharedState<State>,
    /// Outside the state, so that checking it does not wait for a reader.
    is_closed: AtomicBool,
}

struct State {
    reader: Reader,
    /// The sequence number of the message that is read next; -1 before the first.
    next: i64,
    direction: Direction,
    last_read: Option<i64>,
    /// The end for which later pages of the index were already searched.
    searched: Option<u64>,
}

impl Look for IndexedTailer {
    fn is_due(&self, may_wait: &Detached) -> bool {
        self.has_next(may_wait).unwrap_or(true)
    }
}

impl IndexedTailer {
    /// Opens a tailer at the first message.
    pub fn open(queue: Arc<IndexedQueue>) -> Result<Self> {
        queue.check_open("queue")?;
        let state = State {
            reader: queue.reader()?,
            next: 0,
            direction: Direction::Forward,
            last_read: None,
            searched: None,
        };
        let state = SharedState::new(state);
        Ok(Self { queue, state, is_closed: AtomicBool::new(false) })
    }

    /// Its queue.
    #[must_use]
    pub const fn queue(&self) -> &Arc<IndexedQueue> {
        &self.queue
    }

    /// The next message.
    #[inline]
    pub fn read(&self, may_wait: &Detached) -> Result<Option<Message>> {
        self.open_state(may_wait)?.read()
    }

    /// Like [`Self::read`]; None while another thread uses the tailer.
    #[inline]
    pub fn try_read(&self) -> Option<Result<Option<Message>>> {
        Some(self.try_open_state()?.and_then(|mut state| state.read()))
    }

    /// Calls `each` with the indexes and bytes of up to `count` messages while it returns true; the
    /// first message refused is read again. An error after messages is returned by the next call.
    pub fn read_many(
        &self,
        may_wait: &Detached,
        count: usize,
        each: impl FnMut(i64, &[u8]) -> bool,
    ) -> Result<usize> {
        self.open_state(may_wait)?.read_many(count, each)
    }

    /// Like [`Self::read_many`]; None while another thread uses the tailer.
    #[inline]
    pub fn try_read_many(
        &self,
        count: usize,
        each: impl FnMut(i64, &[u8]) -> bool,
    ) -> Option<Result<usize>> {
        Some(self.try_open_state()?.and_then(|mut state| state.read_many(count, each)))
    }

    /// Whether there is a message to read.
    pub fn has_next(&self, may_wait: &Detached) -> Result<bool> {
        Ok(self.open_state(may_wait)?.find()?.is_some())
    }

    /// Goes to a message or the end; false, without moving, if there is none with this index.
    pub fn move_to_index(&self, may_wait: &Detached, index: i64) -> Result<bool> {
        let mut state = self.open_state(may_wait)?;
        let Ok(sequence) = u64::try_from(index) else { return Ok(false) };
        let is_there = state.reader.is_message(sequence)?;
        if is_there || state.reader.end()? == sequence {
            state.next = index;
        }
        Ok(is_there)
    }

    /// Goes to the first message.
    pub fn to_start(&self, may_wait: &Detached) -> Result<()> {
        self.return_to(may_wait, 0)
    }

    /// Goes to where the next message will be; backward, to the last message.
    pub fn to_end(&self, may_wait: &Detached) -> Result<()> {
        let mut state = self.open_state(may_wait)?;
        let end = state.reader.end()?.cast_signed();
        state.next = end - i64::from(state.direction == Direction::Backward);
        Ok(())
    }

    /// The index of the next message.
    pub fn index(&self, may_wait: &Detached) -> Result<i64> {
        Ok(self.open_state(may_wait)?.next)
    }

    /// Goes back to an index that the tailer had.
    pub fn return_to(&self, may_wait: &Detached, index: i64) -> Result<()> {
        self.open_state(may_wait)?.next = index;
        Ok(())
    }

    /// The index of the last message delivered.
    pub fn last_read_index(&self, may_wait: &Detached) -> Result<Option<i64>> {
        Ok(self.open_state(may_wait)?.last_read)
    }

    /// The read direction.
    pub fn direction(&self, may_wait: &Detached) -> Result<Direction> {
        Ok(self.open_state(may_wait)?.direction)
    }

    /// Sets the read direction.
    pub fn set_direction(&self, may_wait: &Detached, direction: Direction) -> Result<()> {
        self.open_state(may_wait)?.direction = direction;
        Ok(())
    }

    /// Closes the tailer.
    pub fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
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

    fn open_state<'a>(&'a self, may_wait: &'a Detached) -> Result<MutexGuard<'a, State>> {
        self.state.lock_open(may_wait, self.queue.check_open("tailer"), || self.check_open())
    }

    #[inline]
    fn try_open_state(&self) -> Option<Result<MutexGuard<'_, State>>> {
        self.state.try_lock_open(self.queue.check_open("tailer"), || self.check_open())
    }

    #[inline]
    fn check_open(&self) -> Result<()> {
        if self.is_closed.load(Ordering::Acquire) {
            return Err(Error::closed("tailer", self.queue.path()));
        }
        Ok(())
    }
}

impl State {
    #[inline]
    fn read(&mut self) -> Result<Option<Message>> {
        let found = self.find()?;
        if let Some(message) = &found {
            self.step_over(message);
        }
        Ok(found)
    }

    fn read_many(
        &mut self,
        count: usize,
        mut each: impl FnMut(i64, &[u8]) -> bool,
    ) -> Result<usize> {
        let mut copy = Vec::new();
        for number in 0..count {
            let message = match self.find_copied(&mut copy) {
                Ok(Some(message)) => message,
                Err(error) if number == 0 => return Err(error),
                _ => return Ok(number),
            };
            if !each(message.index, &copy) {
                return Ok(number);
            }
            self.step_over(&message);
        }
        Ok(count)
    }

    #[inline]
    fn find(&mut self) -> Result<Option<Message>> {
        if self.direction == Direction::Backward { self.find_before() } else { self.find_after() }
    }

    /// The next message, whose bytes are copied.
    #[inline]
    fn find_copied(&mut self, copy: &mut Vec<u8>) -> Result<Option<Message>> {
        let Some(message) = self.find()? else { return Ok(None) };
        copy.clear();
        message.append_to(copy, 0..message.length())?;
        Ok(Some(message))
    }

    #[inline]
    fn find_after(&mut self) -> Result<Option<Message>> {
        self.next = self.next.max(0);
        loop {
            let sequence = self.next.cast_unsigned();
            match self.reader.entry(sequence)? {
                Entry::Message(message) => return Ok(Some(message)),
                Entry::Padding => self.next += 1,
                Entry::Free if self.pass_gap(sequence)? => {}
                Entry::Free => return Ok(None),
            }
        }
    }

    /// Skips a lost page of the index. Each end is searched only once: the rest of a file that is
    /// no longer sparse takes long to read.
    #[cold]
    fn pass_gap(&mut self, sequence: u64) -> Result<bool> {
        if self.searched == Some(sequence) {
            return Ok(false);
        }
        self.searched = Some(sequence);
        let Some(taken) = self.reader.taken_after(sequence)? else { return Ok(false) };
        if !matches!(self.reader.entry(sequence)?, Entry::Free) {
            return Ok(true); // written in the meantime
        }
        warnings::leave(format!(
            "free index entries were skipped: path={} from={sequence} to={taken} (a page of the \
             index is lost)",
            self.reader.path().display()
        ));
        self.next = taken.cast_signed();
        Ok(true)
    }

    fn find_before(&mut self) -> Result<Option<Message>> {
        while let Ok(sequence) = u64::try_from(self.next) {
            match self.reader.entry(sequence)? {
                Entry::Message(message) => return Ok(Some(message)),
                Entry::Padding => self.next -= 1,
                Entry::Free => {
                    let taken = self.reader.taken_before(sequence)?;
                    self.next = taken.map_or(-1, u64::cast_signed);
                }
            }
        }
        Ok(None)
    }

    #[inline]
    const fn step_over(&mut self, message: &Message) {
        self.last_read = Some(message.index);
        self.next = match self.direction {
            Direction::Forward => message.index + 1,
            Direction::Backward => message.index - 1,
            Direction::None => message.index,
        };
    }
}
