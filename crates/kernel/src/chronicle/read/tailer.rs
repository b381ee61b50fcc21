//! Reading a queue (`docs/protocol.md`, "Tail"). Tailers take no lock and change no roll file.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use quire_wire::topic::{Topics, Wanted};

use super::acknowledged::Acknowledged;
use super::buffer::{Drained, ReadBuffer};
use super::missing::{MissingCycles, OnMissing};
use super::position::Cursor;
pub use super::position::{Direction, State};
pub use super::scan::{Ask, How, Scan, Take, What};
pub use super::stall::wait_toward;
use super::stored_position::Name;
use crate::chronicle::format::table::NO_INDEX;
use crate::chronicle::queue::handle::{Handle, Queue};
use crate::chronicle::queue::handle_state::HandleState;
use crate::os::detached::{Detached, SpinGuard, SpinState};
use crate::os::interrupt::Signals;
use crate::{Error, Result};

mod batch;
mod buffered;
mod document;
mod moving;
mod replica;
mod step;

pub use batch::Reading;
use document::Message;
pub use document::{DocumentPlace, Found, OpenDocument};
pub use replica::Sent;
pub use step::MESSAGES_BETWEEN_PAUSES;

/// Reads messages of a queue, in either direction.
pub struct Tailer {
    queue: Arc<Queue>,
    name: Option<Name>,
    closed: AtomicBool,
    /// Whether it was closed, or counts its reads: one check per message for both.
    is_special: AtomicBool,
    /// The buffer that it reads through at the end of the queue.
    buffer: Option<Arc<dyn ReadBuffer>>,
    inner: SpinState<Inner>,
}

struct Inner {
    cursor: Cursor,
    /// Whether the last message is not yet processed: the caller has not asked for more, so its
    /// index is not stored yet.
    unfinished: bool,
    /// A document that a step found and left in place.
    prepared: Option<Message>,
    /// The index of the message stepped over last.
    last_read: i64,
    /// How often the tailer was moved other than by reading.
    moves: u64,
    filter: Option<Box<Filter>>,
    /// How much of the buffer was drained at the last check.
    drained: Drained,
    /// The limit to acknowledged messages, if any.
    acknowledged: Option<Box<Acknowledged>>,
}

/// Selects messages by topic.
struct Filter {
    topics: Topics,
    /// The result for the last message found.
    found: Option<Wanted>,
}

/// How a tailer is opened.
#[derive(Clone, Copy, Debug, Default)]
pub struct Opening<'a> {
    /// The name under which its position is kept.
    pub name: Option<&'a str>,
    /// Whether other tailers may use the name at the same time, as in Java.
    pub shared: bool,
    /// How to handle messages that were deleted unread.
    pub on_missing: OnMissing,
}

type Entered<'a> = SpinGuard<'a, Inner>;

impl Tailer {
    /// A tailer at the start of the queue, or where the tailer of this name stopped.
    pub fn new(queue: Arc<Queue>, name: Option<&str>, signals: Signals<'_>) -> Result<Arc<Self>> {
        Self::open(queue, Opening { name, ..Opening::default() }, signals)
    }

    /// Like [`Tailer::new`], with options.
    pub fn open(
        queue: Arc<Queue>,
        opening: Opening<'_>,
        signals: Signals<'_>,
    ) -> Result<Arc<Self>> {
        Self::open_through(queue, opening, None, signals)
    }

    /// Like [`Tailer::open`], reading through a buffer of messages that are not in the queue yet.
    pub fn open_through(
        queue: Arc<Queue>,
        opening: Opening<'_>,
        buffer: Option<Arc<dyn ReadBuffer>>,
        mut signals: Signals<'_>,
    ) -> Result<Arc<Self>> {
        queue.check_open("queue")?;
        let name =
            opening.name.map(|name| Name::open(&queue, name, opening.shared, signals.again()));
        let name = name.transpose()?;
        let cursor = resumed(&queue, name.as_ref(), opening.on_missing, signals.deferred());
        if let (Err(_), Some(name)) = (&cursor, &name) {
            name.release(&queue);
        }
        let mut cursor = cursor?;
        // Acknowledged indexes are checked by steps that may wait.
        let held_back = queue.options().read_after_replica_acknowledged;
        cursor.set_looked_through(held_back);
        let inner = SpinState::new(Inner {
            cursor,
            unfinished: false,
            prepared: None,
            last_read: NO_INDEX,
            moves: 0,
            filter: None,
            drained: Drained::default(),
            acknowledged: held_back.then(Box::default),
        });
        let is_special = AtomicBool::new(queue.metrics().is_some());
        let closed = AtomicBool::new(false);
        let tailer = Arc::new(Self { queue, name, closed, is_special, buffer, inner });
        let weak = Arc::downgrade(&tailer);
        tailer.queue.adopt(weak);
        Ok(tailer)
    }

    /// The queue.
    #[must_use]
    pub const fn queue(&self) -> &Arc<Queue> {
        &self.queue
    }

    /// The name, if it has one.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.name.as_ref().map(|name| name.text.as_str())
    }

    /// Closes the tailer. Received messages count as processed if `finished`.
    pub fn close(&self, may_wait: &Detached, finished: bool) -> Result<()> {
        if self.is_closed() || self.queue.check_generation().is_err() {
            self.set_closed();
            return Ok(());
        }
        let mut inner = self.inner.lock(may_wait);
        let stored =
            if finished { self.finish_for_good(may_wait, &mut inner, false) } else { Ok(()) };
        self.set_closed();
        inner.release_files();
        self.release_name();
        stored
    }

    fn set_closed(&self) {
        self.closed.store(true, Ordering::Release);
        self.is_special.store(true, Ordering::Release);
    }

    fn release_name(&self) {
        if let Some(name) = &self.name {
            name.release(&self.queue);
        }
    }

    /// Closes the tailer's files and releases its memory. It keeps its position, and opens files
    /// again on the next read.
    pub fn release_resources(&self, may_wait: &Detached) -> Result<()> {
        self.enter(may_wait)?.release_files();
        Ok(())
    }

    /// Whether the tailer, or its queue, was closed.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire) || self.queue.is_closed()
    }

    #[inline]
    fn check_open(&self) -> Result<()> {
        self.queue.check_open("queue")?;
        if self.closed.load(Ordering::Acquire) { Err(self.closed()) } else { Ok(()) }
    }

    #[cold]
    fn closed(&self) -> Error {
        Error::closed("tailer", self.queue.path())
    }

    fn enter<'a>(&'a self, may_wait: &'a Detached) -> Result<Entered<'a>> {
        self.check_open()?;
        let mut inner = self.inner.lock(may_wait);
        self.check_open()?; // another thread may have closed it before it released the lock
        inner.prepared = None;
        Ok(inner)
    }

    /// The index of the message the next read returns or waits for; 0 before there is one.
    pub fn index(&self, may_wait: &Detached) -> Result<i64> {
        self.enter(may_wait)?.cursor.index_or_first(&self.queue)
    }

    /// The state, by Chronicle's names.
    pub fn state(&self, may_wait: &Detached) -> Result<State> {
        self.queue.check_generation()?;
        Ok(self.inner.lock(may_wait).cursor.state())
    }

    /// The index of the next read, and the direction, if known without waiting.
    #[must_use]
    pub fn handle_state(&self) -> (HandleState, Option<Direction>) {
        if self.queue.check_generation().is_err() {
            return (HandleState::Forked, None);
        }
        let Some(inner) = self.inner.try_lock() else { return (HandleState::Busy, None) };
        let index = match inner.cursor.state() {
            State::Uninitialised => None,
            _ => inner.cursor.index(&self.queue).ok(),
        };
        (HandleState::At(index), Some(inner.cursor.direction()))
    }

    /// Restricts reads to messages of these topics, delivered without their key; None removes the
    /// restriction.
    pub fn set_topics(&self, may_wait: &Detached, topics: Option<Topics>) -> Result<()> {
        let mut inner = self.enter(may_wait)?;
        let is_looked_through = topics.is_some() || inner.acknowledged.is_some();
        inner.cursor.set_looked_through(is_looked_through);
        inner.filter = topics.map(|topics| Box::new(Filter { topics, found: None }));
        Ok(())
    }

    /// The position, in the list of topics, of the last message's topic.
    pub fn topic(&self, may_wait: &Detached) -> Result<Option<usize>> {
        let inner = self.enter(may_wait)?;
        Ok(inner.filter.as_ref().and_then(|filter| filter.found).map(|wanted| wanted.key))
    }

    /// Stores the position of a named tailer: received messages count as processed.
    pub fn commit(&self, may_wait: &Detached) -> Result<()> {
        let mut inner = self.enter(may_wait)?;
        self.finish_for_good(may_wait, &mut inner, true)
    }

    /// Like [`Tailer::finish`], but an error if the stored position is lost because the table was
    /// replaced or, with `removed`, removed.
    fn finish_for_good(&self, may_wait: &Detached, inner: &mut Inner, removed: bool) -> Result<()> {
        self.finish(How::Wait(may_wait), inner)?;
        self.name.as_ref().map_or(Ok(()), |name| name.confirm(&self.queue, removed))
    }

    /// Marks received messages as processed: stores the index to read next, if the tailer is named.
    /// False if that may wait and `how` is a try.
    #[expect(clippy::inline_always, reason = "once a message: a call costs 5 %")]
    #[inline(always)]
    fn finish(&self, how: How<'_>, inner: &mut Inner) -> Result<bool> {
        if let (true, Some(name)) = (inner.unfinished, &self.name)
            && !self.store_read(name, how, inner)?
        {
            return Ok(false);
        }
        inner.unfinished = false;
        Ok(true)
    }

    #[inline(never)]
    fn store_read(&self, name: &Name, how: How<'_>, inner: &mut Inner) -> Result<bool> {
        // There is no index before the first message of cycle 0: the start is stored instead.
        let index = inner.cursor.index_or_first(&self.queue)?.max(0);
        name.store_read(&self.queue, index, how)
    }
}

impl Handle for Tailer {
    fn release_files(&self, may_wait: &Detached) {
        self.inner.lock(may_wait).release_files();
        self.release_name();
    }
}

impl Drop for Tailer {
    fn drop(&mut self) {
        if self.queue.check_generation().is_ok() {
            self.release_name();
        }
    }
}

/// A cursor at the start, or at the name's stored position.
fn resumed(
    queue: &Queue,
    name: Option<&Name>,
    on_missing: OnMissing,
    may_wait: &Detached,
) -> Result<Cursor> {
    let mut cursor = Cursor::default();
    let tailer = name.map(|name| name.text.clone()).unwrap_or_default();
    cursor.set_missing(MissingCycles::new(on_missing, tailer));
    let Some(name) = name else { return Ok(cursor) };
    queue.refresh_if_needed(Signals::Deferred(may_wait))?;
    let stored = name.stored(queue)?;
    if stored != 0 && cursor.resume_at(queue, stored)? {
        name.store_move(queue, cursor.index_or_first(queue)?, may_wait)?;
    }
    Ok(cursor)
}

impl Inner {
    fn release_files(&mut self) {
        self.prepared = None;
        self.cursor.release_files();
    }

    /// Notes that the tailer was moved, so that the stored position is outdated.
    const fn turn_back(&mut self) {
        self.moves += 1;
        self.unfinished = true;
    }
}
