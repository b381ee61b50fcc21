//! Reading index entries through the file, a block at a time: for searches, not for messages.

use super::pages::Pages;
use crate::Result;
use crate::memory::window::Window;
use crate::quick_queue::format::entry::{ENTRY, Stamp};

/// Bytes read at once.
const BLOCK: u64 = 4096;

/// An index entry, read once: another process may change it meanwhile.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Its own address: the index of its message.
    pub index: u64,
    /// The address of the message.
    pub begin: u64,
    /// Its stamp.
    pub stamp: Stamp,
}

impl Entry {
    /// Where the message ends; None if no message can end there.
    #[must_use]
    pub fn end(&self) -> Option<u64> {
        self.begin.checked_add(self.stamp.length().into())
    }
}

/// The entries of an index as they are now.
pub struct Entries<'a> {
    pages: &'a Pages,
    window: Option<(u32, Window)>,
    block: Vec<u8>,
    block_start: u64,
}

impl<'a> Entries<'a> {
    /// The entries in `pages`.
    #[must_use]
    pub const fn new(pages: &'a Pages) -> Self {
        Self { pages, window: None, block: Vec::new(), block_start: 0 }
    }

    /// The entry at `index`; None if its page is missing. The entry may come from the block read
    /// last, and so be outdated.
    pub fn get(&mut self, index: u64) -> Result<Option<Entry>> {
        let is_read = index >= self.block_start
            && index + ENTRY <= self.block_start + self.block.len() as u64;
        if !is_read && !self.read(index)? {
            return Ok(None);
        }
        let at = usize::try_from(index - self.block_start).unwrap_or_default();
        let words = self.block.get(at..).map_or(&[][..], |rest| rest.as_chunks::<8>().0);
        let word = |number| words.get(number).map_or(0, |word| u64::from_le_bytes(*word));
        Ok(Some(Entry { index, begin: word(0), stamp: Stamp::of(word(1)) }))
    }

    fn read(&mut self, index: u64) -> Result<bool> {
        let size = self.pages.size();
        let (page, position) = (size.page(index), size.position(index));
        if self.window.as_ref().is_none_or(|(number, _)| *number != page) {
            self.window = self.pages.open(page)?.map(|window| (page, window));
        }
        let Some((_, window)) = &self.window else { return Ok(false) };
        let start = position / BLOCK * BLOCK;
        let length = BLOCK.min(size.bytes() - start);
        self.block.resize(usize::try_from(length).unwrap_or_default(), 0);
        self.block.fill(0);
        window.read_at(&mut self.block, start)?;
        self.block_start = size.start_of(page) + start;
        Ok(true)
    }
}
