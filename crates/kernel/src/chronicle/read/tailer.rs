//! Reading a queue (`docs/protocol.md`, "Tail"). Tailers take no lock and change no roll file.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use spin::mutex::{SpinMutex, SpinMutexGuard};

use quire_wire::topic::{Topics, Wanted};

use super::buffer::{Drained, ReadBuffer};
use super::missing::{Missing, OnMissing};
use super::position::Cursor;
pub use super::position::{AtOnce, Direction, State};
pub use super::stall::wait_toward;
use super::stored_position::Name;
use crate::chronicle::format::document::HEADER_LEN;
use crate::chronicle::format::table::NO_INDEX;
use crate::chronicle::protocol::roll_file::Document;
use crate::chronicle::queue::glance::Glance;
use crate::chronicle::queue::handle::{Handle, Queue};
use crate::memory::window::Region;
use crate::{Error, Result};

mod buffered;
mod counted;
mod moving;
mod reading;
mod spinning;

use counted::count_document;
pub use reading::{MESSAGES_BETWEEN_PAUSES, Reading, Scan, Take};

/// Reads messages of a queue, in either direction.
pub struct Tailer {
    queue: Arc<Queue>,
    name: Option<Name>,
    closed: AtomicBool,
    /// It was closed, or counts what it reads: one look on the way of every message.
    is_special: AtomicBool,
    /// What it reads through at the end of the queue.
    buffer: Option<Arc<dyn ReadBuffer>>,
    inner: SpinMutex<Inner, spin::Yield>,
}

struct Inner {
    cursor: Cursor,
    /// The caller has not asked for more since the last message: its index is not stored yet.
    unfinished: bool,
    /// What [`Tailer::prepare`] found and nobody took yet.
    prepared: Option<Document>,
    /// The index of the message stepped over last.
    last_read: i64,
    /// How often the tailer was moved other than by reading on.
    moves: u64,
    filter: Option<Box<Filter>>,
    /// What of the buffer was drained when it was last looked at.
    drained: Drained,
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

type Entered<'a> = SpinMutexGuard<'a, Inner, spin::Yield>;

/// Which message is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    /// The first of a call: what was received before is done.
    First,
    /// A further one of the same batch.
    OfBatch,
}

/// A document being read.
#[derive(Clone)]
pub struct OpenDocument {
    region: Arc<Region>,
    document: Document,
    /// Where the message begins in the payload, after its key.
    start: u32,
    /// The message's index (metadata: that of the next message).
    pub index: i64,
}

impl OpenDocument {
    /// The payload, in place.
    #[must_use]
    pub fn payload(&self) -> &[u8] {
        let part = self.document.from(self.start);
        self.region.bytes(part.position + HEADER_LEN, u64::from(part.length))
    }

    /// What a tailer of topics skipped before the message: its history and its key.
    #[must_use]
    pub fn before(&self) -> &[u8] {
        self.region.bytes(self.document.position + HEADER_LEN, u64::from(self.start))
    }

    /// It is metadata.
    #[must_use]
    pub const fn is_metadata(&self) -> bool {
        self.document.is_metadata
    }
}

impl Tailer {
    /// A tailer at the start of the queue, or where the tailer of this name stopped.
    pub fn new(queue: Arc<Queue>, name: Option<&str>) -> Result<Arc<Self>> {
        Self::open(queue, Opening { name, ..Opening::default() })
    }

    /// As [`Tailer::new`], with options.
    pub fn open(queue: Arc<Queue>, opening: Opening<'_>) -> Result<Arc<Self>> {
        Self::open_through(queue, opening, None)
    }

    /// As [`Tailer::open`], reading through a buffer of messages that are not in the queue yet.
    pub fn open_through(
        queue: Arc<Queue>,
        opening: Opening<'_>,
        buffer: Option<Arc<dyn ReadBuffer>>,
    ) -> Result<Arc<Self>> {
        queue.check_open("queue")?;
        let name = opening.name.map(|name| Name::open(&queue, name, opening.shared)).transpose()?;
        let cursor = resumed(&queue, name.as_ref(), opening.on_missing);
        if let (Err(_), Some(name)) = (&cursor, &name) {
            name.release(&queue);
        }
        let cursor = cursor?;
        let inner = SpinMutex::new(Inner {
            cursor,
            unfinished: false,
            prepared: None,
            last_read: NO_INDEX,
            moves: 0,
            filter: None,
            drained: Drained::default(),
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
    pub fn close(&self, finished: bool) -> Result<()> {
        if self.is_closed() || self.queue.check_generation().is_err() {
            self.set_closed();
            return Ok(());
        }
        let mut inner = self.lock();
        let stored = if finished { self.finish_for_good(&mut inner, false) } else { Ok(()) };
        self.set_closed();
        inner.let_go();
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
    pub fn release_resources(&self) -> Result<()> {
        self.enter()?.let_go();
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

    fn enter(&self) -> Result<Entered<'_>> {
        self.check_open()?;
        let mut inner = self.lock();
        self.check_open()?; // another thread may have closed it before it let go of the lock
        inner.prepared = None;
        Ok(inner)
    }

    fn lock(&self) -> Entered<'_> {
        self.inner.lock()
    }

    /// Hands the next message to `take` and steps over it. Where the answer is unknown, call
    /// [`Tailer::prepare`] and try again. If `take` fails the position stays.
    #[inline]
    pub fn read_at_once<R>(
        &self,
        ask: Ask,
        take: impl FnOnce(i64, &[u8]) -> Result<R>,
    ) -> Result<AtOnce<R>> {
        let Some(mut inner) = self.inner.try_lock() else { return Ok(AtOnce::Unknown) };
        self.queue.check_open("queue")?;
        let began = if self.is_special.load(Ordering::Acquire) { self.begin()? } else { None };
        let mut length = 0;
        let found = self.step_at_once(&mut inner, ask, |index, bytes| {
            length = bytes.len() as u64;
            take(index, bytes)
        })?;
        if let (Some((metrics, began)), AtOnce::Found(_)) = (began, &found) {
            metrics.read(began, 1, length);
        }
        Ok(found)
    }

    #[inline]
    fn step_at_once<R>(
        &self,
        inner: &mut Inner,
        ask: Ask,
        take: impl FnOnce(i64, &[u8]) -> Result<R>,
    ) -> Result<AtOnce<R>> {
        let document = match inner.prepared.take() {
            Some(document) => document,
            None if ask == Ask::First && !self.finish_at_once(inner)? => {
                return Ok(AtOnce::Unknown);
            }
            None => match inner.cursor.find_at_once(&self.queue, false) {
                AtOnce::Found(document) => document,
                AtOnce::Nothing => return Ok(self.at_end(inner)),
                AtOnce::Unknown => return Ok(AtOnce::Unknown),
            },
        };
        let index = inner.cursor.index(&self.queue)?;
        let taken = take(index, inner.cursor.payload(&document))?;
        inner.cursor.step_over(&self.queue, &document)?;
        inner.unfinished = true;
        inner.last_read = index;
        Ok(AtOnce::Found(taken))
    }

    /// Does what the next read waits for.
    pub fn prepare(&self, ask: Ask) -> Result<Scan<()>> {
        self.through_buffer(|| self.prepare_now(ask))
    }

    fn prepare_now(&self, ask: Ask) -> Result<Scan<()>> {
        let mut inner = self.enter()?;
        if ask == Ask::First {
            self.finish(&mut inner)?;
        }
        let found = inner.find_message(&self.queue, &mut { MESSAGES_BETWEEN_PAUSES })?;
        inner.prepared = if let Scan::Found(document) = found { Some(document) } else { None };
        Ok(found.map(drop))
    }

    fn open_locked(
        &self,
        inner: &mut Inner,
        ask: Ask,
        include_metadata: bool,
    ) -> Result<Scan<OpenDocument>> {
        if ask == Ask::First {
            self.finish(inner)?;
        }
        let mut looks = MESSAGES_BETWEEN_PAUSES;
        let document = match inner.find(&self.queue, include_metadata, &mut looks)? {
            Scan::Found(document) => document,
            Scan::Nothing => return Ok(Scan::Nothing),
            Scan::Paused => return Ok(Scan::Paused),
            Scan::Held(then) => return Ok(Scan::Held(then)),
        };
        let index = inner.cursor.index(&self.queue)?;
        let region = inner.cursor.region().ok_or_else(|| self.closed())?;
        let start = if document.is_metadata { 0 } else { inner.start() };
        Ok(Scan::Found(OpenDocument { region, document, start, index }))
    }

    /// Opens the next document and steps over it, so that no other thread gets it too, if that takes
    /// no system call. [`Tailer::return_to`] takes that back.
    #[inline]
    pub fn take_at_once(&self, ask: Ask, include_metadata: bool) -> Result<AtOnce<OpenDocument>> {
        let Some(mut inner) = self.inner.try_lock() else { return Ok(AtOnce::Unknown) };
        self.queue.check_open("queue")?;
        let began = if self.is_special.load(Ordering::Acquire) { self.begin()? } else { None };
        let found = self.open_locked_at_once(&mut inner, ask, include_metadata)?;
        if let AtOnce::Found(open) = &found {
            self.step_over(&mut inner, open)?;
            count_document(began, open);
        }
        Ok(found)
    }

    /// As [`Tailer::take_at_once`], whatever it takes.
    pub fn take_document(&self, ask: Ask, include_metadata: bool) -> Result<Scan<OpenDocument>> {
        self.through_buffer(|| self.take_document_now(ask, include_metadata))
    }

    fn take_document_now(&self, ask: Ask, include_metadata: bool) -> Result<Scan<OpenDocument>> {
        let began = self.queue.metrics().map(|metrics| (metrics, Instant::now()));
        let mut inner = self.enter()?;
        let found = self.open_locked(&mut inner, ask, include_metadata)?;
        if let Scan::Found(open) = &found {
            self.step_over(&mut inner, open)?;
            count_document(began, open);
        }
        Ok(found)
    }

    #[inline]
    fn open_locked_at_once(
        &self,
        inner: &mut Inner,
        ask: Ask,
        include_metadata: bool,
    ) -> Result<AtOnce<OpenDocument>> {
        let may_wait = ask == Ask::First && !self.finish_at_once(inner)?;
        if inner.prepared.is_some() || may_wait {
            return Ok(AtOnce::Unknown);
        }
        let document = match inner.cursor.find_at_once(&self.queue, include_metadata) {
            AtOnce::Found(document) => document,
            AtOnce::Nothing => return Ok(self.at_end(inner)),
            AtOnce::Unknown => return Ok(AtOnce::Unknown),
        };
        let index = inner.cursor.index(&self.queue)?;
        let region = inner.cursor.region().ok_or_else(|| self.closed())?;
        // With a filter there is nothing at once.
        Ok(AtOnce::Found(OpenDocument { region, document, start: 0, index }))
    }

    /// Steps over an open document, unless the tailer was moved meanwhile. It is done with when the
    /// next one is asked for.
    fn step_over(&self, inner: &mut Inner, open: &OpenDocument) -> Result<()> {
        if inner.cursor.is_at(&open.document) {
            inner.cursor.step_over(&self.queue, &open.document)?;
            inner.unfinished = true;
            if !open.document.is_metadata {
                inner.last_read = open.index;
            }
        }
        Ok(())
    }

    /// Goes back to a document that was stepped over: it was not done with.
    pub fn return_to(&self, open: &OpenDocument) -> Result<()> {
        let mut inner = self.enter()?;
        inner.cursor.return_to(&self.queue, &open.document, open.index)?;
        inner.turn_back();
        Ok(())
    }

    /// Steps over an open document, unless the tailer was moved meanwhile, and stores the position.
    pub fn close_document(&self, open: &OpenDocument) -> Result<()> {
        let began = self.queue.metrics().map(|metrics| (metrics, Instant::now()));
        let mut inner = self.enter()?;
        self.step_over(&mut inner, open)?;
        count_document(began, open);
        self.finish(&mut inner)
    }

    /// The file and the position of an open document, for words about it.
    #[must_use]
    pub fn place_of(&self, open: &OpenDocument) -> (String, u64) {
        let split = self.queue.roll().split(open.index);
        let file = split.and_then(|(cycle, _)| self.queue.file_for_cycle(cycle));
        (file.map(|file| file.display().to_string()).unwrap_or_default(), open.document.position)
    }

    /// The index of the message the next read returns or waits for; 0 before there is one.
    pub fn index(&self) -> Result<i64> {
        self.enter()?.cursor.index_or_first(&self.queue)
    }

    /// The state, by Chronicle's names.
    pub fn state(&self) -> Result<State> {
        self.queue.check_generation()?;
        Ok(self.lock().cursor.state())
    }

    /// The index that the next read begins at, and the direction, as far as that is known at once.
    #[must_use]
    pub fn glance(&self) -> (Glance, Option<Direction>) {
        if self.queue.check_generation().is_err() {
            return (Glance::Forked, None);
        }
        let Some(inner) = self.inner.try_lock() else { return (Glance::Busy, None) };
        let index = match inner.cursor.state() {
            State::Uninitialised => None,
            _ => inner.cursor.index(&self.queue).ok(),
        };
        (Glance::At(index), Some(inner.cursor.direction()))
    }

    /// Delivers only messages of these topics, without the key before them; None: every
    /// message again.
    pub fn set_topics(&self, topics: Option<Topics>) -> Result<()> {
        let mut inner = self.enter()?;
        inner.cursor.set_looked_through(topics.is_some());
        inner.filter = topics.map(|topics| Box::new(Filter { topics, found: None }));
        Ok(())
    }

    /// The place of the key of the message found last, among those asked for.
    pub fn topic(&self) -> Result<Option<usize>> {
        let inner = self.enter()?;
        Ok(inner.filter.as_ref().and_then(|filter| filter.found).map(|wanted| wanted.key))
    }

    /// Stores the position of a named tailer: what was received is done.
    pub fn commit(&self) -> Result<()> {
        let mut inner = self.enter()?;
        self.finish_for_good(&mut inner, true)
    }

    /// As [`Tailer::finish`], and an error where nobody will see what was stored, as the table was
    /// replaced, or where that counts, `removed`.
    fn finish_for_good(&self, inner: &mut Inner, removed: bool) -> Result<()> {
        self.finish(inner)?;
        self.name.as_ref().map_or(Ok(()), |name| name.confirm(&self.queue, removed))
    }

    /// As [`Tailer::finish`], unless that may wait; false if so.
    #[inline]
    fn finish_at_once(&self, inner: &mut Inner) -> Result<bool> {
        let waits = self.name.as_ref().is_some_and(Name::is_replicated);
        if inner.unfinished && waits {
            return Ok(false);
        }
        self.finish(inner).map(|()| true)
    }

    /// What was received is done: stores the index to read next, if there is a name.
    #[inline]
    fn finish(&self, inner: &mut Inner) -> Result<()> {
        if !inner.unfinished {
            return Ok(());
        }
        if let Some(name) = &self.name {
            // Before the first message of cycle 0 there is no index: that is kept as the start.
            name.store_read(&self.queue, inner.cursor.index_or_first(&self.queue)?.max(0))?;
        }
        inner.unfinished = false;
        Ok(())
    }
}

impl Handle for Tailer {
    fn let_go(&self) {
        self.lock().let_go();
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
fn resumed(queue: &Queue, name: Option<&Name>, on_missing: OnMissing) -> Result<Cursor> {
    let mut cursor = Cursor::default();
    let tailer = name.map(|name| name.text.clone()).unwrap_or_default();
    cursor.set_missing(Missing { on: on_missing, tailer });
    let Some(name) = name else { return Ok(cursor) };
    queue.refresh_if_needed()?;
    let stored = name.stored(queue)?;
    if stored != 0 && cursor.resume_at(queue, stored)? {
        name.store_move(queue, cursor.index_or_first(queue)?)?;
    }
    Ok(cursor)
}

impl Inner {
    fn let_go(&mut self) {
        self.prepared = None;
        self.cursor.let_go();
    }

    /// Notes that the tailer went elsewhere: the stored position lags.
    const fn turn_back(&mut self) {
        self.moves += 1;
        self.unfinished = true;
    }

    /// The next message, without its key if a filter asks for it. Every message looked at is taken
    /// off `looks`.
    fn find_message(&mut self, queue: &Queue, looks: &mut usize) -> Result<Scan<Document>> {
        let document = self.find(queue, false, looks)?;
        Ok(document.map(|document| document.from(self.start())))
    }

    /// Where the message found last begins in its payload.
    fn start(&self) -> u32 {
        self.filter.as_ref().and_then(|filter| filter.found).map_or(0, |it| it.start)
    }

    fn find(
        &mut self,
        queue: &Queue,
        include_metadata: bool,
        looks: &mut usize,
    ) -> Result<Scan<Document>> {
        while *looks > 0 {
            *looks -= 1;
            match self.cursor.find(queue, include_metadata)? {
                Some(document) if !document.is_metadata && !self.is_wanted(&document) => {
                    if !self.pass(queue, &document)? {
                        return Ok(Scan::Nothing);
                    }
                }
                Some(document) => return Ok(Scan::Found(document)),
                None => return Ok(self.cursor.decides_at().map_or(Scan::Nothing, Scan::Held)),
            }
        }
        Ok(Scan::Paused)
    }

    fn is_wanted(&mut self, document: &Document) -> bool {
        let Some(filter) = self.filter.as_mut() else { return true };
        filter.found = filter.topics.find(self.cursor.payload(document));
        filter.found.is_some()
    }

    /// Steps over a message nobody wants; false where the direction does not lead on.
    fn pass(&mut self, queue: &Queue, document: &Document) -> Result<bool> {
        self.cursor.step_over(queue, document)?;
        Ok(self.cursor.direction() != Direction::None)
    }
}
