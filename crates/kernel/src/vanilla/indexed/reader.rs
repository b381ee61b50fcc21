//! Finding entries of the index, and the messages they name.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::line::{self, DATA_LIMIT, ENTRIES, LINE, Slot};
use crate::os::files;
use crate::vanilla::format::entry::Location;
use crate::vanilla::message::Message;
use crate::vanilla::protocol::block::Block;
use crate::vanilla::protocol::entries;
use crate::{Error, Result};

/// The meaning of an index entry.
pub enum Entry {
    /// A message.
    Message(Message),
    /// The end of a block of the data file, which no message crosses.
    Padding,
    /// A free entry.
    Free,
}

/// The two files, open.
pub struct Reader {
    index: Block,
    data: Block,
}

impl Reader {
    /// Opens the files of `base`; None if one is missing.
    pub fn open(base: &Path) -> Result<Option<Self>> {
        let index = Block::open(&with_suffix(base, ".index"), false)?;
        let data = Block::open(&with_suffix(base, ".data"), false)?;
        Ok(index.zip(data).map(|(index, data)| Self { index, data }))
    }

    /// The path of the index.
    pub fn path(&self) -> &Path {
        self.index.path()
    }

    /// The entry of a sequence number.
    #[inline]
    pub fn entry(&mut self, sequence: u64) -> Result<Entry> {
        let slot = Slot::of(sequence);
        let mut end = self.end_of(slot)?;
        if end == 0 {
            if !self.is_passed(slot)? {
                return Ok(Entry::Free);
            }
            end = self.end_of(slot)?;
        }
        if end < 0 { Ok(Entry::Padding) } else { self.message(slot, end).map(Entry::Message) }
    }

    /// Whether an entry is of a message, without checking the message.
    pub fn is_message(&mut self, sequence: u64) -> Result<bool> {
        let slot = Slot::of(sequence);
        Ok(match self.end_of(slot)? {
            0 => self.is_passed(slot)?,
            end => end > 0,
        })
    }

    /// Whether the writer has passed a slot whose end is 0: a later slot of its line, or one of the
    /// next line, has an end. This happens for an empty message at the start of a line.
    fn is_passed(&mut self, slot: Slot) -> Result<bool> {
        if !self.is_begun(slot.line)? {
            return Ok(false);
        }
        for (line, from) in [(slot.line, slot.number + 1), (slot.line.saturating_add(1), 0)] {
            for number in from..ENTRIES {
                // Paddings are stored without memory ordering.
                if self.end_of(Slot { line, number })? > 0 {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// The end of an entry relative to its line's base: 0 while free, negative for a padding.
    #[inline]
    fn end_of(&mut self, slot: Slot) -> Result<i32> {
        match slot.position() {
            Some(position) => Ok(self.index.word32(position)?.cast_signed()),
            None => Ok(0),
        }
    }

    fn base_of(&mut self, slot: Slot) -> Result<u64> {
        self.index.word64(slot.base_position().unwrap_or_default())
    }

    fn message(&mut self, slot: Slot, end: i32) -> Result<Message> {
        let before = match slot.number.checked_sub(1) {
            Some(number) => self.end_of(Slot { number, ..slot })?,
            None => 0,
        };
        let base = self.base_of(slot)?;
        if base >= DATA_LIMIT || !self.is_begun(slot.line)? {
            let (found, expected) = (format!("base {base:#x}"), "a position in the data file");
            return Err(Error::corrupt(
                "a line of the index names no data",
                self.index.path(),
                slot.base_position().unwrap_or_default(),
                found,
                expected,
            ));
        }
        let (start, end) = (
            base + u64::from(before.unsigned_abs()),
            base + u64::try_from(end).unwrap_or_default(),
        );
        if end < start {
            return Err(self.ends_early(slot, start, end));
        }
        self.message_at(slot, start, end - start)
    }

    fn message_at(&mut self, slot: Slot, start: u64, length: u64) -> Result<Message> {
        // An empty message may be at the end of the file, where nothing is mapped.
        let position = if length == 0 { 0 } else { start };
        if length > 0 && !self.data.is_readable(start, start + length)? {
            let found = format!("a file of {} bytes, or a hole", self.data.length());
            let expected = format!("a message of {length} bytes");
            let what = "an entry names no message";
            return Err(Error::corrupt(what, self.data.path(), start, found, expected));
        }
        let index = i64::try_from(slot.sequence()).unwrap_or(i64::MAX);
        let at = Location { tid: 0, file: 0, position };
        Ok(Message { index, cycle: 0, at, region: Arc::clone(self.data.region()), length })
    }

    #[cold]
    fn ends_early(&self, slot: Slot, start: u64, end: u64) -> Error {
        let (found, expected) = (format!("end {end:#x}"), format!("at least {start:#x}"));
        let position = slot.position().unwrap_or_default();
        Error::corrupt(
            "a message ends before it starts",
            self.index.path(),
            position,
            found,
            expected,
        )
    }

    /// The sequence number after the last entry.
    pub fn end(&mut self) -> Result<u64> {
        let mut end = self.end_from(0)?;
        while let Some(taken) = self.taken_after(end)? {
            // A damaged line may lack its base.
            end = self.end_from(Slot::of(taken).line)?.max(taken + 1);
        }
        Ok(end)
    }

    /// The end of the index, assuming that no page from a line on is lost.
    fn end_from(&mut self, line: u64) -> Result<u64> {
        let lines = self.index.refreshed_length()?.min(DATA_LIMIT).div_ceil(LINE);
        let free = entries::first_free(line, lines, |line| self.is_begun(line))?;
        let last = Slot { line: free.saturating_sub(1), number: 0 };
        for number in (0..ENTRIES).rev() {
            if self.end_of(Slot { number, ..last })? != 0 {
                return Ok(last.sequence() + number + 1);
            }
        }
        Ok(last.sequence())
    }

    /// Whether a line has its base; that of the first line is 0.
    fn is_begun(&mut self, line: u64) -> Result<bool> {
        let first = Slot { line, number: 0 };
        Ok(line == 0 || self.base_of(first)? != 0)
    }

    /// The first taken sequence number on a later page than `sequence`: a lost page of the index
    /// leaves free entries before it.
    pub fn taken_after(&self, sequence: u64) -> Result<Option<u64>> {
        let Some(position) = Slot::of(sequence).position() else { return Ok(None) };
        let mut found = None;
        self.each_page(position, |slots| {
            found = found.or_else(|| slots.map(Slot::sequence).find(|it| *it > sequence));
        })?;
        Ok(found)
    }

    /// The last taken sequence number before `sequence`.
    pub fn taken_before(&self, sequence: u64) -> Result<Option<u64>> {
        let mut found = None;
        self.each_page(0, |slots| {
            found = slots.map(Slot::sequence).rfind(|it| *it < sequence).or(found);
        })?;
        Ok(found)
    }

    fn each_page(
        &self,
        from: u64,
        mut each: impl FnMut(&mut dyn DoubleEndedIterator<Item = Slot>),
    ) -> Result<()> {
        let looked = files::each_used_page(self.index.file(), from, |at, page| {
            each(&mut line::taken(page, at / LINE));
            Ok(())
        });
        looked.map_err(|e| Error::io("cannot read", self.index.path(), e))
    }
}

/// The path of one of the files.
fn with_suffix(base: &Path, suffix: &str) -> PathBuf {
    let mut path = base.as_os_str().to_owned();
    path.push(suffix);
    path.into()
}
