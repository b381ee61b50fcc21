use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::queue::IndexedQueue;
use super::reader::{Entry, Reader};
use crate::os::detached::Detached;
use crate::vanilla::{Direction, Message};
use crate::waiting::wait::Look;
use crate::{Error, Result, warnings};

/// Reads messages.
pub struct IndexedTailer {
    queue: Arc<IndexedQueue>,
    state: Mutex<State>,
}

struct State {
    reader: Reader,
    /// The sequence number of the message that is read next; -1 before the first.
    next: i64,
    direction: Direction,
    last_read: Option<i64>,
    /// The end after which later pages of the index were searched.
    searched: Option<u64>,
    is_closed: bool,
}

impl Look for IndexedTailer {
    fn is_due(&self, _: Detached) -> bool {
        self.has_next().unwrap_or(true)
    }
}

impl IndexedTailer {
    /// At the first message.
    pub fn open(queue: Arc<IndexedQueue>) -> Result<Self> {
        queue.check_open("queue")?;
        let state = State {
            reader: queue.reader()?,
            next: 0,
            direction: Direction::Forward,
            last_read: None,
            searched: None,
            is_closed: false,
        };
        Ok(Self { queue, state: Mutex::new(state) })
    }

    /// Its queue.
    #[must_use]
    pub const fn queue(&self) -> &Arc<IndexedQueue> {
        &self.queue
    }

    /// The next message.
    #[inline]
    pub fn read(&self) -> Result<Option<Message>> {
        let mut state = self.open_state()?;
        let found = state.find()?;
        if let Some(message) = &found {
            state.step_over(message);
        }
        Ok(found)
    }

    /// Hands up to `count` messages to `each` while it returns true; the first that it refuses is
    /// read again. An error that follows messages comes with the next call.
    pub fn read_many(&self, count: usize, mut each: impl FnMut(&Message) -> bool) -> Result<usize> {
        let mut state = self.open_state()?;
        for number in 0..count {
            let message = match state.find() {
                Ok(Some(message)) => message,
                Err(error) if number == 0 => return Err(error),
                _ => return Ok(number),
            };
            if !each(&message) {
                return Ok(number);
            }
            state.step_over(&message);
        }
        Ok(count)
    }

    /// Whether there is a message to read.
    pub fn has_next(&self) -> Result<bool> {
        Ok(self.open_state()?.find()?.is_some())
    }

    /// Goes to a message or the end; false, and to nowhere else, if there is none with this index.
    pub fn move_to_index(&self, index: i64) -> Result<bool> {
        let mut state = self.open_state()?;
        let Ok(sequence) = u64::try_from(index) else { return Ok(false) };
        let is_there = state.reader.is_message(sequence)?;
        if is_there || state.reader.end()? == sequence {
            state.next = index;
        }
        Ok(is_there)
    }

    /// Goes to the first message.
    pub fn to_start(&self) -> Result<()> {
        self.return_to(0)
    }

    /// Goes to where the next message will be; backward, to the last message.
    pub fn to_end(&self) -> Result<()> {
        let mut state = self.open_state()?;
        let end = state.reader.end()?.cast_signed();
        state.next = end - i64::from(state.direction == Direction::Backward);
        Ok(())
    }

    /// The index of the next message.
    pub fn index(&self) -> Result<i64> {
        Ok(self.open_state()?.next)
    }

    /// Goes back to an index that the tailer had.
    pub fn return_to(&self, index: i64) -> Result<()> {
        self.open_state()?.next = index;
        Ok(())
    }

    /// The index of the message that was delivered last.
    pub fn last_read_index(&self) -> Result<Option<i64>> {
        Ok(self.open_state()?.last_read)
    }

    /// Where reads go.
    pub fn direction(&self) -> Result<Direction> {
        Ok(self.open_state()?.direction)
    }

    /// Sets where reads go.
    pub fn set_direction(&self, direction: Direction) -> Result<()> {
        self.open_state()?.direction = direction;
        Ok(())
    }

    /// Ends the use of the tailer.
    pub fn close(&self) {
        self.lock().is_closed = true;
    }

    /// Whether the tailer or its queue was closed.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.lock().is_closed || self.queue.is_closed()
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
    fn find(&mut self) -> Result<Option<Message>> {
        if self.direction == Direction::Backward { self.find_before() } else { self.find_after() }
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

    /// Goes over a page of the index that was lost. Each end is searched once: the rest of a file that
    /// is no longer sparse takes long to read.
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
