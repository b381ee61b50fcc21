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
    /// It was closed, or counts what it reads: one look on the way of every message.
    is_special: AtomicBool,
    /// What it reads through at the end of the queue.
    buffer: Option<Arc<dyn ReadBuffer>>,
    inner: SpinState<Inner>,
}

struct Inner {
    cursor: Cursor,
    /// The caller has not asked for more since the last message: its index is not stored yet.
    unfinished: bool,
    /// What a step found and left there.
    prepared: Option<Message>,
    /// The index of the message stepped over last.
    last_read: i64,
    /// How often the tailer was moved other than by reading on.
    moves: u64,
    filter: Option<Box<Filter>>,
    /// What of the buffer was drained when it was last looked at.
    drained: Drained,
    /// What may be seen, if that is not everything.
    acknowledged: Option<Box<Acknowledged>>,
}

/// Which messages are wanted.
struct Filter {
    topics: Topics,
    /// What is known of the message found last.
    found: Option<Wanted>,
}

/// How a tailer is opened.
#[derive(Clone, Copy, Debug, Default)]
pub struct Opening<'a> {
    /// Where its position is kept.
    pub name: Option<&'a str>,
    /// Others may read with the name at the same time, as Java's may.
    pub shared: bool,
    /// What becomes of messages that were deleted unread.
    pub on_missing: OnMissing,
}

type Entered<'a> = SpinGuard<'a, Inner>;

impl Tailer {
    /// A tailer at the start of the queue, or where the tailer of this name stopped.
    pub fn new(queue: Arc<Queue>, name: Option<&str>, signals: Signals<'_>) -> Result<Arc<Self>> {
        Self::open(queue, Opening { name, ..Opening::default() }, signals)
    }

    /// As [`Tailer::new`], with options.
    pub fn open(
        queue: Arc<Queue>,
        opening: Opening<'_>,
        signals: Signals<'_>,
    ) -> Result<Arc<Self>> {
        Self::open_through(queue, opening, None, signals)
    }

    /// As [`Tailer::open`], reading through a buffer of messages that are not in the queue yet.
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
        // What replicas have is looked at by steps that may wait.
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

    /// Closes the tailer. What was received counts as done if `finished`.
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

    /// Closes the files and lets go of the memory that the tailer holds. It stays where it is, and
    /// opens them again when it is read on.
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
        self.check_open()?; // another thread may have closed it before it let go of the lock
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

    /// The index that the next read begins at, and the direction, as far as that is known at once.
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

    /// Delivers only messages of these topics, without the key before them; None: every
    /// message again.
    pub fn set_topics(&self, may_wait: &Detached, topics: Option<Topics>) -> Result<()> {
        let mut inner = self.enter(may_wait)?;
        let is_looked_through = topics.is_some() || inner.acknowledged.is_some();
        inner.cursor.set_looked_through(is_looked_through);
        inner.filter = topics.map(|topics| Box::new(Filter { topics, found: None }));
        Ok(())
    }

    /// The place of the key of the message found last, among those asked for.
    pub fn topic(&self, may_wait: &Detached) -> Result<Option<usize>> {
        let inner = self.enter(may_wait)?;
        Ok(inner.filter.as_ref().and_then(|filter| filter.found).map(|wanted| wanted.key))
    }

    /// Stores the position of a named tailer: what was received is done.
    pub fn commit(&self, may_wait: &Detached) -> Result<()> {
        let mut inner = self.enter(may_wait)?;
        self.finish_for_good(may_wait, &mut inner, true)
    }

    /// As [`Tailer::finish`], and an error where nobody will see what was stored, as the table was
    /// replaced, or where that counts, `removed`.
    fn finish_for_good(&self, may_wait: &Detached, inner: &mut Inner, removed: bool) -> Result<()> {
        self.finish(How::Wait(may_wait), inner)?;
        self.name.as_ref().map_or(Ok(()), |name| name.confirm(&self.queue, removed))
    }

    /// What was received is done: stores the index to read next, if there is a name. False where
    /// that may wait, and a try is asked for.
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
        // Before the first message of cycle 0 there is no index: that is kept as the start.
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

/// A cursor at the start, or where the name's last reader stopped.
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

    /// Notes that the tailer went elsewhere: the stored position lags.
    const fn turn_back(&mut self) {
        self.moves += 1;
        self.unfinished = true;
    }
}
