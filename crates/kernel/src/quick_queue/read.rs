//! Tailers: messages in the order of the index.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::message::{Bytes, Message};
use super::queue::QuickQueue;
use crate::memory::Observed;
use crate::memory::window::Region;
use crate::os::detached::{Detached, SharedState};
use crate::os::handles::Handle;
use crate::quick_queue::format::entry::{ENTRY, MESSAGE_MAX, State};
use crate::quick_queue::format::producer::Producer;
use crate::quick_queue::protocol::directory::{Form, Layout, Listing};
use crate::quick_queue::protocol::entries::Entry;
use crate::quick_queue::protocol::entry_words;
use crate::quick_queue::protocol::pages::{Pages, ReadPage};
use crate::quick_queue::protocol::pending::{self, Verdict};
use crate::quick_queue::protocol::shared::check_directory;
use crate::waiting::wait::Look;
use crate::{Error, Result, warnings};

/// How often the producer of an incomplete entry is checked.
const PATIENCE: Duration = Duration::from_millis(1);
/// The most data pages of producers that are kept open.
const OPEN_PAGES: usize = 64;

/// Reads messages; one thread at a time.
pub struct Tailer {
    queue: Arc<QuickQueue>,
    /// Raise an error at the entry of a dead producer instead of skipping it.
    raise_on_dead: bool,
    reader: SharedState<Reader>,
    /// Outside the state, so that checking it does not wait for a reader.
    is_closed: AtomicBool,
}

impl Handle for Tailer {
    fn close_with_queue(&self, may_wait: &Detached) {
        self.close(may_wait);
    }
}

impl Look for Tailer {
    fn is_due(&self, may_wait: &Detached) -> bool {
        self.has_next(may_wait).unwrap_or(true)
    }
}

impl Tailer {
    pub(super) fn new(queue: Arc<QuickQueue>, raise_on_dead: bool) -> Self {
        let (reader, is_closed) = (SharedState::default(), AtomicBool::new(false));
        Self { queue, raise_on_dead, reader, is_closed }
    }

    /// The queue.
    #[must_use]
    pub const fn queue(&self) -> &Arc<QuickQueue> {
        &self.queue
    }

    /// Reads the next message, if there is one.
    #[inline]
    pub fn read<T>(
        &self,
        may_wait: &Detached,
        take: impl FnOnce(&Message<'_>) -> T,
    ) -> Result<Option<T>> {
        self.with_reader(may_wait, |reader| match reader.deferred.take() {
            Some(error) => Err(error),
            None => reader.read(self, take),
        })
    }

    /// Calls `take` with up to `count` messages while it returns true; the first message refused is
    /// read again. An error after messages is returned by the next call.
    pub fn read_many(
        &self,
        may_wait: &Detached,
        count: usize,
        take: impl FnMut(&Message<'_>) -> bool,
    ) -> Result<usize> {
        self.with_reader(may_wait, |reader| reader.read_many(self, count, take))
    }

    /// Like [`Self::read_many`]; None while another thread uses the tailer.
    #[inline]
    pub fn try_read_many(
        &self,
        count: usize,
        take: impl FnMut(&Message<'_>) -> bool,
    ) -> Option<Result<usize>> {
        if let Err(error) = self.check_open() {
            return Some(Err(error));
        }
        let mut reader = self.reader.try_lock()?;
        Some(self.check_open().and_then(|()| reader.read_many(self, count, take)))
    }

    /// Makes the next read report an error that followed messages delivered together.
    pub fn defer(&self, may_wait: &Detached, error: Error) -> Result<()> {
        self.with_reader(may_wait, |reader| {
            reader.deferred = Some(error);
            Ok(())
        })
    }

    /// Goes back to a message that was read and could not be delivered.
    pub fn return_to(&self, may_wait: &Detached, index: u64) -> Result<()> {
        self.with_reader(may_wait, |reader| {
            reader.move_to(index);
            Ok(())
        })
    }

    /// Whether there is a message or an error for the next read.
    pub fn has_next(&self, may_wait: &Detached) -> Result<bool> {
        self.with_reader(may_wait, |reader| {
            if reader.deferred.is_some() {
                return Ok(true);
            }
            match reader.next_entry(self) {
                Ok(found) => Ok(found.is_some()),
                Err(error) => {
                    reader.deferred = Some(error);
                    Ok(true)
                }
            }
        })
    }

    /// The index of the next message.
    pub fn index(&self, may_wait: &Detached) -> Result<u64> {
        self.with_reader(may_wait, |reader| Ok(reader.next))
    }

    /// The index of the next message, if known without waiting.
    #[must_use]
    pub fn try_index(&self) -> Option<u64> {
        self.check_open().ok()?;
        self.reader.try_lock().map(|reader| reader.next)
    }

    /// Goes to `index`; returns whether there is an entry. Beyond the end it goes to the end.
    pub fn move_to_index(&self, may_wait: &Detached, index: u64) -> Result<bool> {
        if !index.is_multiple_of(ENTRY) {
            return Err(Error::Invalid(format!(
                "not the index of a message: index={index:#x} expected=a multiple of {ENTRY}"
            )));
        }
        let end = self.queue.end()?;
        self.with_reader(may_wait, |reader| {
            reader.move_to(index.min(end));
            Ok(index < end)
        })
    }

    /// Goes to the first message.
    pub fn to_start(&self, may_wait: &Detached) -> Result<()> {
        let first = self.queue.first_index()?.unwrap_or(0);
        self.with_reader(may_wait, |reader| {
            reader.move_to(first);
            Ok(())
        })
    }

    /// Moves past the last message.
    pub fn to_end(&self, may_wait: &Detached) -> Result<()> {
        let end = self.queue.end()?;
        self.with_reader(may_wait, |reader| {
            reader.move_to(end);
            Ok(())
        })
    }

    /// Whether the tailer was closed.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.queue.is_closed() || self.is_closed.load(Ordering::Acquire)
    }

    /// Closes it.
    pub fn close(&self, may_wait: &Detached) {
        self.is_closed.store(true, Ordering::Release);
        if !self.queue.is_forked() {
            *self.reader.lock(may_wait) = Reader::default();
        }
    }

    /// Returns once the tailer was free, so that the caller can try again.
    pub fn wait_until_free(&self, may_wait: &Detached) {
        self.reader.wait_until_free(may_wait);
    }

    #[inline]
    fn with_reader<T>(
        &self,
        may_wait: &Detached,
        act: impl FnOnce(&mut Reader) -> Result<T>,
    ) -> Result<T> {
        self.check_open()?;
        let mut reader = self.reader.lock(may_wait);
        self.check_open()?; // another thread may have closed it before releasing the reader
        act(&mut reader)
    }

    #[inline]
    fn check_open(&self) -> Result<()> {
        self.queue.check_open("tailer")?;
        if self.is_closed.load(Ordering::Acquire) {
            return Err(Error::closed("tailer", self.queue.path()));
        }
        Ok(())
    }
}

/// The position and open pages of a tailer.
#[derive(Default)]
struct Reader {
    /// The index of the next message.
    next: u64,
    opened: Option<Opened>,
    /// When the producer of the incomplete entry at `next` was last checked.
    looked_at: Option<Instant>,
    /// The error for the next read: it followed messages that were read together.
    deferred: Option<Error>,
    /// A copy of a message that lies in several pages.
    copy: Vec<u8>,
}

struct Opened {
    layout: Layout,
    index: Pages,
    index_page: Option<ReadPage>,
    /// The missing index page after the last one.
    last_missing: Option<u32>,
    data: Vec<Data>,
    /// The producer whose message was read last.
    current: usize,
}

/// The data of one producer.
struct Data {
    producer: Option<Producer>,
    pages: Pages,
    page: Option<ReadPage>,
}

/// The next message.
#[derive(Clone, Copy)]
struct Found {
    begin: u64,
    length: u64,
    producer: Option<Producer>,
    /// Proof that its entry was loaded.
    entry: Observed,
}

impl Reader {
    /// Goes to a requested place.
    fn move_to(&mut self, index: u64) {
        self.go_on_at(index);
        self.deferred = None;
    }

    #[inline]
    fn go_on_at(&mut self, index: u64) {
        self.next = index;
        self.looked_at = None;
    }

    fn read_many(
        &mut self,
        tailer: &Tailer,
        count: usize,
        mut take: impl FnMut(&Message<'_>) -> bool,
    ) -> Result<usize> {
        if let Some(error) = self.deferred.take() {
            return Err(error);
        }
        for taken in 0..count {
            match self.read_if(tailer, &mut take) {
                Ok(true) => {}
                Ok(false) => return Ok(taken),
                Err(error) if taken == 0 => return Err(error),
                Err(error) => {
                    self.deferred = Some(error);
                    return Ok(taken);
                }
            }
        }
        Ok(count)
    }

    #[inline]
    fn read<T>(
        &mut self,
        tailer: &Tailer,
        take: impl FnOnce(&Message<'_>) -> T,
    ) -> Result<Option<T>> {
        let mut taken = None;
        self.read_if(tailer, |message| {
            taken = Some(take(message));
            true
        })?;
        Ok(taken)
    }

    /// Calls `take` with the next message, and moves past it if taken.
    #[inline]
    fn read_if(
        &mut self,
        tailer: &Tailer,
        take: impl FnOnce(&Message<'_>) -> bool,
    ) -> Result<bool> {
        let Some(found) = self.next_entry(tailer)? else { return Ok(false) };
        let index = self.next;
        let Some(opened) = &mut self.opened else { return Ok(false) };
        let bytes = opened.bytes(tailer.queue.path(), found, &mut self.copy)?;
        let is_taken = take(&Message { index, producer: found.producer, bytes });
        if is_taken {
            self.go_on_at(index + ENTRY);
        }
        Ok(is_taken)
    }

    /// The next message that can be read; None if there is none yet.
    #[inline]
    fn next_entry(&mut self, tailer: &Tailer) -> Result<Option<Found>> {
        loop {
            if self.opened.is_none() && !self.open(&tailer.queue)? {
                return Ok(None);
            }
            let Some(opened) = &mut self.opened else { return Ok(None) };
            let Some((entry, seen)) = opened.entry(self.next)? else { return Ok(None) };
            match entry.stamp.state() {
                State::Complete => return opened.found((entry, seen), entry.begin).map(Some),
                State::Free => return Ok(None),
                State::Unknown => return Err(opened.bad_entry(entry, "a last byte of 0 or 0x7f")),
                State::Claimed if opened.layout.form == Form::Single => {
                    return Err(opened.bad_entry(entry, "0, or a last byte of 0x7f"));
                }
                State::Claimed => match self.pending(tailer, entry)? {
                    Pending::Message(found) => return Ok(Some(found)),
                    Pending::Wait => return Ok(None),
                    Pending::Again => {}
                },
            }
        }
    }

    #[cold]
    fn open(&mut self, queue: &QuickQueue) -> Result<bool> {
        let Some(layout) = queue.layout()? else { return Ok(false) };
        let index = Pages::index(queue.path(), layout.form, layout.size);
        self.opened = Some(Opened {
            layout,
            index,
            index_page: None,
            last_missing: None,
            data: Vec::new(),
            current: 0,
        });
        Ok(true)
    }

    /// How to treat an entry that is claimed but not complete.
    #[cold]
    fn pending(&mut self, tailer: &Tailer, entry: Entry) -> Result<Pending> {
        let Some(opened) = &mut self.opened else { return Ok(Pending::Wait) };
        if self.looked_at.is_some_and(|looked_at| looked_at.elapsed() < PATIENCE) {
            return Ok(Pending::Wait);
        }
        self.looked_at = Some(Instant::now());
        let producer = opened.producer(entry)?;
        let verdict = pending::judge(tailer.queue.path(), &opened.index, producer, entry)?;
        let now = opened.entry(entry.index)?;
        let Some((_, seen)) = now.filter(|(now, _)| now.stamp == entry.stamp) else {
            return Ok(Pending::Again);
        };
        match verdict {
            Verdict::Wait => Ok(Pending::Wait),
            Verdict::Begins(begin) => opened.found((entry, seen), begin).map(Pending::Message),
            Verdict::Abandoned => {
                self.go_on_at(entry.index + ENTRY);
                let path = tailer.queue.path();
                if tailer.raise_on_dead {
                    let (producer, path) = (producer.to_string(), path.to_path_buf());
                    return Err(Error::ProducerDied { producer, index: entry.index, path });
                }
                warnings::leave(format!(
                    "skipped the entry of a producer that died while it wrote: \
                     producer={producer} index={:#x} path={}",
                    entry.index,
                    path.display()
                ));
                Ok(Pending::Again)
            }
        }
    }
}

enum Pending {
    Message(Found),
    Wait,
    Again,
}

impl Opened {
    /// The entry at `index` as it is now; None while its page is missing.
    #[inline]
    fn entry(&mut self, index: u64) -> Result<Option<(Entry, Observed)>> {
        let size = self.layout.size;
        let (number, position) = (size.page(index), size.position(index));
        if self.index_page.as_ref().is_none_or(|page| page.number != number)
            && !self.turn_to(number, index)?
        {
            return Ok(None);
        }
        let Some(page) = &mut self.index_page else { return Ok(None) };
        let Some(region) = page.ready(position, ENTRY)? else { return Ok(None) };
        let (begin, stamp, seen) = entry_words::read(region, position);
        Ok(Some((Entry { index, begin, stamp }, seen)))
    }

    #[cold]
    fn turn_to(&mut self, number: u32, index: u64) -> Result<bool> {
        if index >= self.layout.size.capacity() {
            return Ok(false);
        }
        if let Some(page) = ReadPage::open(&self.index, number)? {
            self.index_page = Some(page);
            return Ok(true);
        }
        if self.last_missing != Some(number) {
            let span = Listing::of(self.index.dir())?.index(self.layout.form);
            if span.is_some_and(|span| span.highest > number) && !self.index.is_there(number)? {
                let path = self.index.path(number);
                let expected = "a page, as there are later ones";
                return Err(Error::corrupt(
                    "an index page is missing",
                    &path,
                    0,
                    "no file",
                    expected,
                ));
            }
            self.last_missing = Some(number);
        }
        Ok(false)
    }

    /// A message whose entry is sound.
    #[inline]
    fn found(&self, (entry, seen): (Entry, Observed), begin: u64) -> Result<Found> {
        let length = entry.stamp.length();
        let end = begin.checked_add(length.into());
        if length > MESSAGE_MAX || end.is_none_or(|end| end > self.layout.size.capacity()) {
            return Err(self.bad_entry(entry, "an address and a length within the queue"));
        }
        let producer = match self.layout.form {
            Form::Shared => Some(self.producer(entry)?),
            Form::Single if entry.stamp.producer_bits() == 0 => None,
            Form::Single => return Err(self.bad_entry(entry, "no producer's name")),
        };
        Ok(Found { begin, length: length.into(), producer, entry: seen })
    }

    fn producer(&self, entry: Entry) -> Result<Producer> {
        let producer = Producer::from_bits(entry.stamp.producer_bits());
        producer.ok_or_else(|| self.bad_entry(entry, "the name of a producer"))
    }

    #[cold]
    fn bad_entry(&self, entry: Entry, expected: &str) -> Error {
        let size = self.layout.size;
        let path = self.index.path(size.page(entry.index));
        let found = format!("begin {:#x} stamp {:#018x}", entry.begin, entry.stamp.word());
        let position = size.position(entry.index);
        Error::corrupt("an index entry names no message", &path, position, found, expected)
    }

    /// The bytes of a message: in place, or copied from its pages into `copy`.
    #[inline]
    fn bytes<'a>(
        &'a mut self,
        dir: &Path,
        found: Found,
        copy: &'a mut Vec<u8>,
    ) -> Result<Bytes<'a>> {
        let size = self.layout.size;
        let (number, position) = (size.page(found.begin), size.position(found.begin));
        if found.length == 0 {
            return Ok(Bytes::Copied(&[])); // its address may be in a missing page
        }
        let data = self.data_of(dir, found.producer)?;
        if position + found.length <= size.bytes() {
            let region = data.ready(number, position, found.length)?;
            let at = found.entry.names(position, found.length);
            return Ok(Bytes::InPlace { region, at });
        }
        copy.clear();
        for part in size.parts(found.begin, found.length) {
            let region = data.ready(part.page, part.position, part.length)?;
            // Reserves memory only once the bytes are mapped: until then the length is only
            // claimed.
            let bytes = region.bytes(found.entry.names(part.position, part.length));
            copy.try_reserve(bytes.len()).map_err(|_| Error::OutOfMemory(bytes.len()))?;
            copy.extend_from_slice(bytes);
        }
        Ok(Bytes::Copied(copy))
    }

    #[inline]
    fn data_of(&mut self, dir: &Path, producer: Option<Producer>) -> Result<&mut Data> {
        let is_current = self.data.get(self.current).is_some_and(|data| data.producer == producer);
        if !is_current {
            self.turn_to_producer(dir, producer)?;
        }
        let gone = || Error::gone("not open", dir);
        self.data.get_mut(self.current).ok_or_else(gone)
    }

    fn turn_to_producer(&mut self, dir: &Path, producer: Option<Producer>) -> Result<()> {
        if let Some(known) = self.data.iter().position(|data| data.producer == producer) {
            self.current = known;
            return Ok(());
        }
        if self.data.len() >= OPEN_PAGES {
            self.data.clear();
        }
        let pages = Pages::data(dir, producer, self.layout.size);
        check_directory(pages.dir())?;
        self.current = self.data.len();
        self.data.push(Data { producer, pages, page: None });
        Ok(())
    }
}

impl Data {
    /// Makes a part of a page readable.
    #[inline]
    fn ready(&mut self, number: u32, position: u64, length: u64) -> Result<&Arc<Region>> {
        if self.page.as_ref().is_none_or(|page| page.number != number) {
            self.page = ReadPage::open(&self.pages, number)?;
        }
        let Some(page) = &mut self.page else { return Err(self.pages.missing_data(number)) };
        let length32 = u32::try_from(length).unwrap_or(u32::MAX);
        let hole = || Error::Hole { file: self.pages.path(number), position, length: length32 };
        page.ready(position, length)?.ok_or_else(hole)
    }
}
