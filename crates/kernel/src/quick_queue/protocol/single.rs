//! The single writer.
//!
//! 1. The message is stored after the last one.
//! 2. Its address is stored in the next index entry.
//! 3. The entry's stamp is stored with release: readers see the message.
//!
//! A writer that dies before the third step leaves bytes that the next one stores over. The
//! original has no lock; a second writer of Quire is refused by that of `quick-queue.lock`.

use std::path::Path;

use super::directory::{Form, Listing};
use super::end::end_of_index;
use super::entries::Entries;
use super::lock::Lock;
use super::pages::Pages;
use super::space::Space;
use crate::probe::fault::step;
use crate::quick_queue::format::address::PageSize;
use crate::quick_queue::format::entry::{ENTRY, STAMP, Stamp, State};
use crate::{Error, Result};

/// The one writer of a queue.
pub struct Single {
    _lock: Lock,
    data: Space,
    index: Space,
    /// Where the next message begins.
    data_end: u64,
    /// Its index.
    next: u64,
}

impl Single {
    /// Goes on after the last message of the queue at `dir`.
    pub fn open(lock: Lock, dir: &Path, size: PageSize, file_mode: u32) -> Result<Self> {
        let index = Pages::index(dir, Form::Single, size);
        let span = Listing::of(dir)?.index(Form::Single);
        let next = end_of_index(&index, span, |stamp| stamp.state() == State::Complete)?;
        let data_end = data_end(&index, next)?;
        let mut data = Space::new(Pages::data(dir, None, size), file_mode);
        let mut index = Space::new(index, file_mode);
        if span.is_none() {
            data.start()?;
            index.start()?;
        }
        Ok(Self { _lock: lock, data, index, data_end, next })
    }

    /// Appends a message; its index.
    #[inline]
    pub fn append(&mut self, message: &[u8], length: u32) -> Result<u64> {
        let size = self.data.pages().size();
        let (begin, index) = (self.data_end, self.next);
        check_room(size, begin, length, index)?;
        self.data.store(begin, message)?;
        let position = size.position(index);
        let entry = self.index.ready(size.page(index), position, ENTRY)?;
        entry.store_release(position, begin, step!("quick-queue.begin.store"));
        let stamp = Stamp::single(length).word();
        entry.store_release(position + STAMP, stamp, step!("quick-queue.stamp.store"));
        self.data_end = begin + u64::from(length);
        self.next = index + ENTRY;
        Ok(index)
    }

    /// Returns when every message is on the medium: the data before the index that names it.
    pub fn sync(&mut self) -> Result<()> {
        self.data.sync()?;
        self.index.sync()
    }
}

/// An error where the addresses of a queue are used up.
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

/// Where the data ends of which the entry before `next` is the last.
fn data_end(index: &Pages, next: u64) -> Result<u64> {
    let size = index.size();
    let Some(last) = next.checked_sub(ENTRY) else { return Ok(0) };
    // The page before the first one that is left may be gone: then nothing says where data ends.
    let missing = || {
        let path = index.path(size.page(last));
        Error::corrupt("an index page is missing", &path, size.position(last), "no file", "a page")
    };
    let entry = Entries::new(index).get(last)?.ok_or_else(missing)?;
    entry.end().filter(|end| *end <= size.capacity()).ok_or_else(|| {
        let path = index.path(size.page(last));
        let found = format!("begin {:#x} length {}", entry.begin, entry.stamp.length());
        Error::corrupt(
            "the last index entry names no message",
            &path,
            size.position(last),
            found,
            format!("an end up to {:#x}", size.capacity()),
        )
    })
}
