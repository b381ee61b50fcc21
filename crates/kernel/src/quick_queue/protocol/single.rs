//! The single writer of a queue.
//!
//! 1. The message is stored after the last one.
//! 2. Its address is stored in the next index entry.
//! 3. The entry's stamp is stored with release: readers see the message.
//!
//! A writer that dies before the third step leaves bytes that the next one overwrites. The
//! original has no lock; a second Quire writer is refused by the lock on `quick-queue.lock`.

use std::path::Path;

use super::directory::{Form, Listing};
use super::end::end_of_index;
use super::entries::{Entries, Entry};
use super::entry_words;
use super::pages::Pages;
use super::space::Space;
use super::survey::survey;
use crate::os::detached::Detached;
use crate::os::locked_file::LockedFile;
use crate::quick_queue::format::address::PageSize;
use crate::quick_queue::format::entry::{ENTRY, Stamp, State};
use crate::{Error, Result};

/// The single writer of a queue, open.
pub struct Single {
    _lock: LockedFile,
    data: Space,
    index: Space,
    /// Where the next message begins.
    data_end: u64,
    /// The index of the next message.
    next: u64,
}

impl Single {
    /// Continues after the last message of the queue at `dir`.
    pub fn open(
        lock: LockedFile,
        dir: &Path,
        size: PageSize,
        file_mode: u32,
        may_wait: &Detached,
    ) -> Result<Self> {
        let index = Pages::index(dir, Form::Single, size);
        let span = survey(dir)?.index(Form::Single);
        let next = end_of_index(&index, span, |stamp| stamp.state() == State::Complete)?;
        let data_end = match last_entry(&index, next)? {
            Some(entry) => end_of(&index, entry)?,
            None if next == 0 => 0,
            None => {
                let last = Listing::of(dir)?.data();
                last.map_or(0, |span| size.start_of(span.highest) + size.bytes())
            }
        };
        let data = Pages::data(dir, None, size);
        data.check_before(data_end)?;
        let mut data = Space::new(data, file_mode);
        let mut index = Space::new(index, file_mode);
        if span.is_none() {
            data.start(may_wait)?;
            index.start(may_wait)?;
        }
        Ok(Self { _lock: lock, data, index, data_end, next })
    }

    /// Appends a message; returns its index, or None if the next page is not open and the thread
    /// may not wait for it.
    #[inline]
    pub fn append(
        &mut self,
        message: &[u8],
        length: u32,
        may_wait: Option<&Detached>,
    ) -> Result<Option<u64>> {
        let size = self.data.pages().size();
        let (begin, index) = (self.data_end, self.next);
        check_room(size, begin, length, index)?;
        if !self.data.store(begin, message, may_wait)? {
            return Ok(None);
        }
        let position = size.position(index);
        let entry = self.index.ready(size.page(index), position, ENTRY, may_wait)?;
        let Some(entry) = entry else { return Ok(None) };
        entry_words::complete(entry, position, begin, Stamp::single(length));
        self.data_end = begin + u64::from(length);
        self.next = index + ENTRY;
        Ok(Some(index))
    }
}

/// An error if the addresses of a queue are used up.
#[inline]
pub fn check_room(size: PageSize, begin: u64, length: u32, index: u64) -> Result<()> {
    let capacity = size.capacity();
    if begin + u64::from(length) <= capacity && index + ENTRY <= capacity {
        return Ok(());
    }
    Err(Error::Invalid(format!(
        "the queue is full, its addresses are used up: data={begin:#x} index={index:#x} \
         length={length} capacity={capacity:#x} page_bytes={}",
        size.bytes()
    )))
}

/// The entry before `next`; None for the first one, or if its page is missing. Then the end of data
/// is unknown.
fn last_entry(index: &Pages, next: u64) -> Result<Option<Entry>> {
    next.checked_sub(ENTRY).map_or(Ok(None), |last| Entries::new(index).get(last))
}

fn end_of(index: &Pages, entry: Entry) -> Result<u64> {
    let size = index.size();
    entry.end().filter(|end| *end <= size.capacity()).ok_or_else(|| {
        let path = index.path(size.page(entry.index));
        let found = format!("begin {:#x} length {}", entry.begin, entry.stamp.length());
        Error::corrupt(
            "the last index entry names no message",
            &path,
            size.position(entry.index),
            found,
            format!("an end up to {:#x}", size.capacity()),
        )
    })
}
