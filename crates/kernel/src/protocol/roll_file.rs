//! An open roll file, and the checked way to look into it.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use super::locate::Known;
use crate::format::document::{self, HEADER_LEN, Header};
use crate::format::index::{ArrayLayout, PREAMBLE_MAX, Shape};
use crate::format::store::{self, MAX_HEADER_LEN, StoreLayout};
use crate::memory::window::{Readable, Region, Window};
use crate::{Error, Result};

/// A roll file whose header document was read.
pub struct RollFile {
    /// The cycle it holds.
    pub cycle: i32,
    /// The mapped file.
    pub window: Arc<Window>,
    /// Where its words are.
    pub layout: StoreLayout,
    /// How its index numbers messages.
    pub shape: Shape,
    /// Whether its sequence word told the truth when it was first looked at.
    pub word_is_sound: OnceLock<bool>,
    /// Index entries that agreed with the one before them, by sequence.
    checked: Mutex<HashMap<u64, u64>>,
}

impl RollFile {
    /// A file whose header document was read from `window`.
    #[must_use]
    pub fn new(cycle: i32, window: Window, layout: StoreLayout) -> Self {
        let shape = Shape { index_count: layout.index_count, index_spacing: layout.index_spacing };
        let (window, checked) = (Arc::new(window), Mutex::default());
        Self { cycle, window, layout, shape, word_is_sound: OnceLock::new(), checked }
    }

    /// Whether an index entry was found right before.
    #[must_use]
    pub fn has_checked(&self, entry: Known) -> bool {
        self.lock_checked().get(&entry.sequence) == Some(&entry.position)
    }

    /// Notes that an index entry is right.
    pub fn set_checked(&self, entry: Known) {
        self.lock_checked().insert(entry.sequence, entry.position);
    }

    fn lock_checked(&self) -> MutexGuard<'_, HashMap<u64, u64>> {
        self.checked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The file's path.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.window.path()
    }
}

/// Reads the header document, through the file; None while it is not ready.
pub fn read_layout(window: &Window) -> Result<Option<StoreLayout>> {
    let Some(word) = first_word(window)? else { return Ok(None) };
    let length = match document::parse(word) {
        Header::Waiting => return Ok(None),
        Header::Meta(length) if length <= MAX_HEADER_LEN => length,
        _ => return Err(not_a_roll_file(window.path(), word)),
    };
    let mut payload = vec![0; length as usize];
    let got = window.read_at(&mut payload, HEADER_LEN)?;
    if got < payload.len() {
        return Err(cut_short(window.path(), 0, u64::from(length), HEADER_LEN + got as u64));
    }
    store::parse(&payload).map(Some).ok_or_else(|| not_a_roll_file(window.path(), word))
}

/// The word at position 0; None in a file of less than a word.
pub fn first_word(window: &Window) -> Result<Option<u32>> {
    let mut word = [0; 4];
    let found = window.read_at(&mut word, 0)?;
    Ok((found == word.len()).then(|| u32::from_le_bytes(word)))
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
}

impl Document {
    /// The document without its first `count` bytes of payload: its header is as if in front.
    #[must_use]
    pub fn from(self, count: u32) -> Self {
        let count = count.min(self.length);
        Self { position: self.position + u64::from(count), length: self.length - count, ..self }
    }
}

/// What lies at a header position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slot {
    /// Nothing to read yet; the header word found.
    Waiting(u32),
    /// A complete document, all of it inside the file.
    Document(Document),
    /// The end-of-file marker.
    EndOfData,
}

/// A handle's way into a roll file: it remembers which positions are known to be readable.
#[derive(Clone)]
pub struct View {
    file: Arc<RollFile>,
    region: Arc<Region>,
    clear_from: u64,
    clear_to: u64,
}

impl View {
    /// A view of `file`.
    #[must_use]
    pub fn new(file: Arc<RollFile>) -> Self {
        let region = file.window.region();
        Self { file, region, clear_from: 0, clear_to: 0 }
    }

    /// The file.
    #[must_use]
    pub fn file(&self) -> &Arc<RollFile> {
        &self.file
    }

    /// The mapping; positions up to what was checked may be touched.
    #[must_use]
    pub fn region(&self) -> &Arc<Region> {
        &self.region
    }

    /// The file's path.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.file.path().to_path_buf()
    }

    /// What lies at a header position, if finding out takes no system call.
    #[inline]
    #[must_use]
    pub fn slot_at_once(&self, position: u64) -> Option<Slot> {
        let known = position >= self.clear_from && position + HEADER_LEN <= self.clear_to;
        if !known || !self.file.layout.aligned {
            return None;
        }
        let word = self.region.load_header_acquire(position);
        let (length, is_metadata) = match document::parse(word) {
            Header::Waiting => return Some(Slot::Waiting(word)),
            Header::EndOfData => return Some(Slot::EndOfData),
            Header::Data(length) => (length, false),
            Header::Meta(length) => (length, true),
        };
        let next = document::next(position, length, true);
        let document = Document { position, length, is_metadata, next };
        (position + HEADER_LEN + u64::from(length) <= self.clear_to)
            .then_some(Slot::Document(document))
    }

    /// What lies at a header position, bounds checked.
    #[inline]
    pub fn slot(&mut self, position: u64) -> Result<Slot> {
        match self.slot_at_once(position) {
            Some(slot) => Ok(slot),
            None => self.slot_checked(position),
        }
    }

    fn slot_checked(&mut self, position: u64) -> Result<Slot> {
        let Some(word) = self.header_word(position)? else { return Ok(Slot::Waiting(0)) };
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
        Ok(Slot::Document(Document { position, length, is_metadata, next }))
    }

    /// The document ends behind the file, or a full disk has no memory for a hole in it.
    fn why_not_clear(&self, position: u64, length: u32) -> Result<Error> {
        let (file, file_len) = (self.file.path(), self.file.window.refresh_len()?);
        Ok(if position + HEADER_LEN + u64::from(length) > file_len {
            cut_short(file, position, u64::from(length), file_len)
        } else {
            Error::Hole { file: file.to_path_buf(), position, length }
        })
    }

    /// The header word at a position; None where the file does not reach or has a hole.
    fn header_word(&mut self, position: u64) -> Result<Option<u32>> {
        let end = position + HEADER_LEN;
        if (position < self.clear_from || end > self.clear_to) && !self.clear(position, end)? {
            return self.check_cut_header(position).map(|()| None);
        }
        Ok(Some(if self.file.layout.aligned {
            self.region.load_header_acquire(position)
        } else {
            self.region.load_header_unaligned(position)
        }))
    }

    /// An error where the file ends inside a header: grown, it would make a message up.
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

    /// Whether there is a complete message at a position that was told by a hint.
    pub fn is_message(&mut self, position: u64) -> Result<bool> {
        match self.slot(position) {
            Ok(Slot::Document(document)) => Ok(!document.is_metadata),
            Ok(_) | Err(Error::Corrupt { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Checks that a range can be read; false where it cannot.
    #[cold]
    fn clear(&mut self, start: u64, end: u64) -> Result<bool> {
        let Readable::UpTo(to) = self.file.window.readable(&mut self.region, start, end)? else {
            return Ok(false);
        };
        if start < self.clear_from || start > self.clear_to {
            self.clear_from = start;
        }
        self.clear_to = to;
        Ok(true)
    }

    /// The payload of a document that [`View::slot`] returned.
    #[inline]
    #[must_use]
    pub fn payload(&self, document: &Document) -> &[u8] {
        self.region.bytes(document.position + HEADER_LEN, u64::from(document.length))
    }

    /// Any bytes of the file; None where they are in a hole or behind its end.
    pub fn bytes(&mut self, position: u64, length: u64) -> Result<Option<&[u8]>> {
        let end = position + length;
        if (position < self.clear_from || end > self.clear_to) && !self.clear(position, end)? {
            return Ok(None);
        }
        Ok(Some(self.region.bytes(position, length)))
    }

    /// A mutable word, load-acquire; 0 where the file does not reach.
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

    /// `writePosition`; 0 where it cannot be a position.
    pub fn write_position(&mut self) -> Result<u64> {
        let position = self.word(self.file.layout.write_position)?;
        Ok(if self.is_document_position(position) { position } else { 0 })
    }

    /// Whether a document can start at this position, as far as arithmetic tells.
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
        let payload = self.payload(&document);
        let preamble = &payload[..payload.len().min(PREAMBLE_MAX)];
        let array = ArrayLayout::parse(position, preamble, self.file.shape.index_count);
        let end = document.position + HEADER_LEN + u64::from(document.length);
        let count = u64::from(self.file.shape.index_count);
        Ok(array.filter(|array| document.is_metadata && array.slot(count) <= end))
    }

    /// Makes the words of an array writable: in files of others they may lie in holes.
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

    /// Makes positions up to `end` writable, for a document at `start`. The caller holds the write lock.
    pub fn make_writable(&mut self, start: u64, end: u64, block: u64) -> Result<u64> {
        let to = self.file.window.writable(&mut self.region, start, end, block)?;
        // What is present for writing can be read as well.
        (self.clear_from, self.clear_to) = (start, to);
        Ok(to)
    }
}
