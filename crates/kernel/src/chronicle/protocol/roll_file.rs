//! An open roll file, and checked access to its bytes.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use super::file_events::OpenFile;
use super::lock::guard::DetachedGuard;
use crate::chronicle::format::blocks::{self, Growth};
use crate::chronicle::format::document::{self, HEADER_LEN, Header};
use crate::chronicle::format::index::{self, ArrayLayout, PREAMBLE_MAX, Shape};
use crate::chronicle::format::store::{self, MAX_HEADER_LEN, StoreLayout};
use crate::memory::pages::Pages;
use crate::memory::window::{CHUNK, Readable, Region, Window};
use crate::memory::{Observed, Published};
use crate::os::files::{self, Access};
use crate::{Error, Result};

/// An open roll file whose header document was read.
pub struct RollFile {
    /// The cycle it holds.
    pub cycle: i32,
    /// The mapped file.
    pub(crate) window: Arc<Window>,
    /// Where its words are.
    pub layout: StoreLayout,
    /// How its index numbers messages.
    pub shape: Shape,
    /// Whether its sequence word was right on first use.
    pub word_is_sound: OnceLock<bool>,
    /// Index entries that agreed with the preceding one.
    checked: Mutex<Checked>,
    /// Reports the file as open. The last field, so that the file is unmapped before its release is
    /// reported.
    pub event: Option<OpenFile>,
}

impl RollFile {
    /// A file whose header document was read from `window`.
    #[must_use]
    pub fn new(cycle: i32, window: Window, layout: StoreLayout) -> Self {
        let shape = Shape { index_count: layout.index_count, index_spacing: layout.index_spacing };
        let (window, checked) = (Arc::new(window), Mutex::default());
        let word_is_sound = OnceLock::new();
        Self { cycle, window, layout, shape, word_is_sound, checked, event: None }
    }

    /// Whether an index entry was already found right.
    #[must_use]
    pub fn has_checked(&self, entry: Known) -> bool {
        self.lock_checked().has(entry, self.shape.index_spacing)
    }

    /// Notes that an index entry is right.
    pub fn set_checked(&self, entry: Known) {
        self.lock_checked().add(entry, self.shape.index_spacing);
    }

    fn lock_checked(&self) -> MutexGuard<'_, Checked> {
        self.checked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The file's path.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.window.path()
    }
}

/// A known message: its position and sequence. `None` before the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// Position of its header.
    pub position: u64,
    /// Its sequence.
    pub sequence: u64,
}

/// A bounded, direct-mapped cache of checked index entries: each entry has one possible place, and
/// replaces the entry there. Neighbours in the index have different places.
#[derive(Default)]
struct Checked(Vec<Option<Known>>);

impl Checked {
    const PLACES: u64 = 4096;

    fn has(&self, entry: Known, spacing: u32) -> bool {
        self.0.get(Self::place(entry, spacing)).is_some_and(|found| *found == Some(entry))
    }

    fn add(&mut self, entry: Known, spacing: u32) {
        let place = Self::place(entry, spacing);
        if self.0.len() <= place {
            self.0.resize(place + 1, None);
        }
        self.0[place] = Some(entry);
    }

    #[allow(clippy::cast_possible_truncation)] // below PLACES
    fn place(entry: Known, spacing: u32) -> usize {
        (entry.sequence / u64::from(spacing.max(1)) % Self::PLACES) as usize
    }
}

/// Reads the header document, through the file; None while it is not ready.
pub fn read_layout(window: &Window) -> Result<Option<StoreLayout>> {
    let Some(word) = first_word(window)? else { return Ok(None) };
    let length = match document::parse_first(word) {
        Header::Waiting => return Ok(None),
        Header::Meta(length) if length <= MAX_HEADER_LEN => length,
        _ => return Err(not_a_roll_file(window.path(), word)),
    };
    let mut payload = vec![0; length as usize];
    let got = window.read_at(&mut payload, HEADER_LEN)?;
    if got < payload.len() {
        return Err(cut_short(window.path(), 0, u64::from(length), HEADER_LEN + got as u64));
    }
    store::parse(&payload).map(Some).ok_or_else(|| {
        if store::is_nameless_version_4(&payload) {
            return Error::Unsupported(format!(
                "a version 4 file of the wire type FIELDLESS_BINARY, whose header has no names and \
                 cannot be read by Java 5 either (read it with Java 4, and append its messages to \
                 another queue): file={}",
                window.path().display()
            ));
        }
        not_a_roll_file(window.path(), word)
    })
}

/// The word at position 0, with missing bytes read as 0; None for an empty file.
pub fn first_word(window: &Window) -> Result<Option<u32>> {
    let mut word = [0; 4];
    let found = window.read_at(&mut word, 0)?;
    Ok((found > 0).then(|| u32::from_le_bytes(word)))
}

/// Whether a file ends before its header document does: it never had a message, or lost all of
/// them.
pub fn is_cut_in_header(window: &Window) -> Result<bool> {
    let len = window.refresh_len()?;
    Ok(match first_word(window)?.map(document::parse) {
        Some(Header::Meta(length)) if length <= MAX_HEADER_LEN => {
            len < HEADER_LEN + u64::from(length)
        }
        Some(_) => len < HEADER_LEN,
        None => false,
    })
}

/// A file's length and first header, for messages to users.
pub fn first_bytes(path: &Path) -> Result<String> {
    let Some(file) = files::open(path, Access { write: false, create_mode: None })? else {
        return Ok("no file".to_owned());
    };
    let window = Window::new(path, file, false)?;
    let word = first_word(&window)?.unwrap_or_default();
    Ok(format!("{word:#010x} in {} bytes", window.file_len()))
}

fn not_a_roll_file(path: &Path, word: u32) -> Error {
    Error::corrupt(
        "not a roll file",
        path,
        0,
        format!("{word:#010x}"),
        "a metadata document `header: !SCQStore` with powers of two for its index",
    )
}

fn cut_short(path: &Path, position: u64, length: u64, file_len: u64) -> Error {
    Error::corrupt(
        "document ends past the end of the file",
        path,
        position,
        format!("length {length}"),
        format!("at most {} bytes", file_len.saturating_sub(position + HEADER_LEN)),
    )
}

/// A complete document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Document {
    /// Position of its header.
    pub position: u64,
    /// Payload bytes.
    pub length: u32,
    /// It is metadata.
    pub is_metadata: bool,
    /// Position of the header after it.
    pub next: u64,
    /// Proof that its header was loaded.
    header: Observed,
}

impl Document {
    /// The payload of a message. Metadata is excluded: its words may change.
    #[inline]
    #[must_use]
    pub fn payload(&self) -> Published {
        self.payload_start(self.length)
    }

    /// The first `count` bytes of the payload of a message.
    #[inline]
    #[must_use]
    pub fn payload_start(&self, count: u32) -> Published {
        debug_assert!(!self.is_metadata, "metadata at {:#x} changes", self.position);
        self.header.names(self.position + HEADER_LEN, u64::from(count.min(self.length)))
    }

    /// The document without its first `count` bytes of payload, as if its header preceded the rest.
    #[must_use]
    pub fn from(self, count: u32) -> Self {
        let count = count.min(self.length);
        Self { position: self.position + u64::from(count), length: self.length - count, ..self }
    }
}

/// The content of a header position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slot {
    /// Nothing to read yet; the header word found.
    Waiting(u32),
    /// A complete document, all of it inside the file.
    Document(Document),
    /// The end-of-file marker.
    EndOfData,
}

/// How many bytes after its position a waiting reader keeps prefaulted. Less than an appender's
/// reserve ([`crate::chronicle::append::tail::LOW`]), so that the space is already reserved.
const LOOK_AHEAD: u64 = 4096;

/// A handle's access to a roll file, which remembers the positions known to be readable.
#[derive(Clone)]
pub struct View {
    file: Arc<RollFile>,
    region: Arc<Region>,
    clear_from: u64,
    clear_to: u64,
    /// How far beyond the requested range to clear: a page after a wait, then doubled each time.
    step: u64,
    /// Clearing ahead beyond this position has failed while waiting.
    stuck_at: u64,
}

impl View {
    /// A view of `file`.
    #[must_use]
    pub fn new(file: Arc<RollFile>) -> Self {
        let region = file.window.region();
        Self { file, region, clear_from: 0, clear_to: 0, step: CHUNK, stuck_at: u64::MAX }
    }

    /// The file.
    #[must_use]
    pub fn file(&self) -> &Arc<RollFile> {
        &self.file
    }

    /// The mapping; only positions that were cleared may be accessed.
    #[must_use]
    pub(crate) fn region(&self) -> &Arc<Region> {
        &self.region
    }

    /// The file's path.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.file.path().to_path_buf()
    }

    /// The slot at a header position, if that needs no system call.
    #[inline]
    #[must_use]
    pub fn try_slot(&self, position: u64) -> Option<Slot> {
        let known = position >= self.clear_from && position + HEADER_LEN <= self.clear_to;
        if !known || !self.file.layout.aligned {
            return None;
        }
        self.slot_before(position, self.clear_to)
    }

    /// The slot at a position that this process has written: it has reserved the space, so no page
    /// must be checked.
    #[inline]
    pub fn own_slot(&mut self, position: u64) -> Option<Slot> {
        let end = self.file.window.written_to();
        if end > self.region.len() {
            self.region = self.file.window.region();
        }
        let end = end.min(self.region.len());
        if position + HEADER_LEN > end || !self.file.layout.aligned {
            return None;
        }
        self.slot_before(position, end)
    }

    /// The slot at a position whose header is readable; None if its document goes beyond `end`.
    #[inline]
    fn slot_before(&self, position: u64, end: u64) -> Option<Slot> {
        let (word, header) = self.region.observe_header_acquire(position);
        let (length, is_metadata) = match document::parse(word) {
            Header::Waiting => return Some(Slot::Waiting(word)),
            Header::EndOfData => return Some(Slot::EndOfData),
            Header::Data(length) => (length, false),
            Header::Meta(length) => (length, true),
        };
        let next = document::next(position, length, true);
        let document = Document { position, length, is_metadata, next, header };
        (position + HEADER_LEN + u64::from(length) <= end).then_some(Slot::Document(document))
    }

    /// Whether a reader that waits at a position should call [`View::look_ahead`].
    #[inline]
    #[must_use]
    pub const fn is_near_end(&self, position: u64) -> bool {
        position + LOOK_AHEAD > self.clear_to && self.clear_to != self.stuck_at
    }

    /// Clears one more page while there is nothing to read, so that the next message need not wait
    /// for it. Not more, as a file system may have to allocate space that the writer has not
    /// reached.
    #[cold]
    pub fn look_ahead(&mut self) {
        self.step = Pages::here().bytes();
        let to = Pages::here().up(self.clear_to + 1);
        if self.file.window.look_ahead(&self.region, Pages::here().down(self.clear_to), to) {
            self.clear_to = to;
        } else {
            self.stuck_at = self.clear_to;
        }
    }

    /// The slot at a header position, with its bounds checked.
    #[inline]
    pub fn slot(&mut self, position: u64) -> Result<Slot> {
        match self.try_slot(position) {
            Some(slot) => Ok(slot),
            None => self.slot_checked(position),
        }
    }

    fn slot_checked(&mut self, position: u64) -> Result<Slot> {
        let Some((word, header)) = self.header_word(position)? else {
            return Ok(Slot::Waiting(0));
        };
        let (length, is_metadata) = match document::parse(word) {
            Header::Waiting => return Ok(Slot::Waiting(word)),
            Header::EndOfData => return Ok(Slot::EndOfData),
            Header::Data(length) => (length, false),
            Header::Meta(length) => (length, true),
        };
        let end = position + HEADER_LEN + u64::from(length);
        if end > self.clear_to && !self.clear(position, end)? {
            return Err(self.why_not_clear(position, length)?);
        }
        let next = document::next(position, length, self.file.layout.aligned);
        Ok(Slot::Document(Document { position, length, is_metadata, next, header }))
    }

    /// The error for an unreadable document: it extends past the end of the file, or into a hole
    /// that a full disk cannot back.
    fn why_not_clear(&self, position: u64, length: u32) -> Result<Error> {
        let (file, file_len) = (self.file.path(), self.file.window.refresh_len()?);
        Ok(if position + HEADER_LEN + u64::from(length) > file_len {
            cut_short(file, position, u64::from(length), file_len)
        } else {
            Error::Hole { file: file.to_path_buf(), position, length }
        })
    }

    /// The header word at a position; None beyond the end of the file or in a hole.
    fn header_word(&mut self, position: u64) -> Result<Option<(u32, Observed)>> {
        let end = position + HEADER_LEN;
        if (position < self.clear_from || end > self.clear_to) && !self.clear(position, end)? {
            return self.check_cut_header(position).map(|()| None);
        }
        Ok(Some(if self.file.layout.aligned {
            self.region.observe_header_acquire(position)
        } else {
            self.region.observe_header_unaligned(position)
        }))
    }

    /// An error if the file ends inside a header: growing the file would turn that into a wrong
    /// one.
    fn check_cut_header(&self, position: u64) -> Result<()> {
        let mut part = [0; 3];
        let cut = self.file.window.file_len().saturating_sub(position) < HEADER_LEN;
        let found = if cut { self.file.window.read_at(&mut part, position)? } else { 0 };
        if part[..found].iter().all(|byte| *byte == 0) {
            return Ok(());
        }
        let found = format!("{found} bytes of a header");
        Err(Error::corrupt("the file is cut short", self.file.path(), position, found, "4 bytes"))
    }

    /// Whether there is a complete message at a position given by a hint.
    pub fn is_message(&mut self, position: u64) -> Result<bool> {
        match self.slot(position) {
            Ok(Slot::Document(document)) => Ok(!document.is_metadata),
            Ok(_) | Err(Error::Corrupt { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Makes sure that a range can be read; false if it cannot.
    #[cold]
    fn clear(&mut self, start: u64, end: u64) -> Result<bool> {
        let ahead = Pages::here().up(end + self.step);
        self.step = (2 * self.step).min(CHUNK);
        let window = &self.file.window;
        let Readable::UpTo(to) = window.readable(&mut self.region, start, end, ahead)? else {
            return Ok(false);
        };
        if start < self.clear_from || start > self.clear_to {
            self.clear_from = start;
        }
        self.clear_to = to;
        Ok(true)
    }

    /// The payload of a message that [`View::slot`] returned.
    #[inline]
    #[must_use]
    pub fn payload(&self, document: &Document) -> &[u8] {
        self.region.bytes(document.payload())
    }

    /// A copy of any bytes of the file, as they are now; None in a hole or beyond the end.
    pub fn copied(&mut self, position: u64, length: u64) -> Result<Option<Vec<u8>>> {
        let end = position + length;
        if (position < self.clear_from || end > self.clear_to) && !self.clear(position, end)? {
            return Ok(None);
        }
        let mut copy = Vec::new();
        self.region.append_to_relaxed(&mut copy, position, length)?;
        Ok(Some(copy))
    }

    /// A mutable word, load-acquire; 0 beyond the end of the file.
    pub fn word(&mut self, position: u64) -> Result<u64> {
        let end = position + 8;
        if (position < self.clear_from || end > self.clear_to) && !self.clear(position, end)? {
            return Ok(0);
        }
        Ok(if position.is_multiple_of(8) {
            self.region.load_acquire(position)
        } else {
            self.region.load_unaligned(position)
        })
    }

    /// `writePosition`; 0 if its value cannot be a position.
    pub fn write_position(&mut self) -> Result<u64> {
        let position = self.word(self.file.layout.write_position)?;
        Ok(if self.is_document_position(position) { position } else { 0 })
    }

    /// Whether a document can start at this position, by its value alone.
    #[must_use]
    pub fn is_document_position(&self, position: u64) -> bool {
        let aligned = !self.file.layout.aligned || position.is_multiple_of(document::ALIGNMENT);
        aligned && position != 0 && position < self.file.window.file_len()
    }

    /// The index array whose document starts at a position; None if there is none.
    pub fn array(&mut self, position: u64) -> Result<Option<ArrayLayout>> {
        if !self.is_document_position(position) {
            return Ok(None);
        }
        let Ok(Slot::Document(document)) = self.slot(position) else { return Ok(None) };
        let preamble = self.preamble(&document);
        let array = ArrayLayout::parse(position, &preamble, self.file.shape.index_count);
        let end = document.position + HEADER_LEN + u64::from(document.length);
        let count = u64::from(self.file.shape.index_count);
        Ok(array.filter(|array| document.is_metadata && array.slot(count) <= end))
    }

    /// A copy of the first bytes of a document; for an index array, those before its slots.
    #[must_use]
    pub fn preamble(&self, document: &Document) -> Vec<u8> {
        let length = u64::from(document.length).min(PREAMBLE_MAX as u64);
        self.region.copy_out_relaxed(document.position + HEADER_LEN, length)
    }

    /// Whether a document is metadata of the file itself: its header, or an index array.
    #[must_use]
    pub fn is_of_file(&self, document: &Document) -> bool {
        document.is_metadata
            && (document.position == 0 || index::is_array(&self.preamble(document)))
    }

    /// Makes the words of an array writable: in files by other writers they may lie in holes.
    pub fn make_array_writable(&mut self, array: &ArrayLayout) -> Result<()> {
        let end = array.slot(u64::from(self.file.shape.index_count));
        self.file.window.reserve(&mut self.region, array.used, end)
    }

    /// Makes the words of the first document writable, as [`View::make_array_writable`] does.
    pub fn make_words_writable(&mut self) -> Result<()> {
        let layout = &self.file.layout;
        let end = layout.last_index.max(layout.index2index).max(layout.write_position) + 16;
        self.file.window.reserve(&mut self.region, 0, end)
    }

    /// Makes positions inside the file writable, without changing its length.
    pub fn make_range_writable(&mut self, start: u64, end: u64) -> Result<()> {
        self.file.window.reserve(&mut self.region, start, end)
    }

    /// Makes positions up to `end` writable, for a document at `start`.
    pub fn make_writable(
        &mut self,
        start: u64,
        end: u64,
        growth: Growth,
        guard: &DetachedGuard<'_>,
    ) -> Result<u64> {
        let len = blocks::file_len(start, end, growth.block);
        let window = &self.file.window;
        let to =
            window.writable(guard.may_wait(), &mut self.region, start, end, len, growth.timeout)?;
        // Pages populated for writing are readable as well.
        (self.clear_from, self.clear_to) = (start, to);
        Ok(to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checked_entries_take_the_places_of_older_ones() {
        let entry = |slot: u64| Known { position: slot * 1000, sequence: slot * 256 };
        let mut checked = Checked::default();
        for slot in 0..1_000_000 {
            checked.add(entry(slot), 256);
            assert!(checked.has(entry(slot), 256));
            assert!(!checked.has(Known { position: 1, ..entry(slot) }, 256));
        }
        assert_eq!(checked.0.len() as u64, Checked::PLACES);
        assert!(checked.has(entry(999_999 - 4095), 256));
        assert!(!checked.has(entry(999_999 - 4096), 256));
    }
}
