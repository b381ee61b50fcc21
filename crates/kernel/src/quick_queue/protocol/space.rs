//! An address space that is written to: pages are created as it grows, and their disk space is
//! reserved before they are touched.

use std::sync::Arc;

use super::pages::Pages;
use crate::Result;
use crate::memory::reserved_range::ReservedRange;
use crate::memory::window::{Region, Window};
use crate::os::detached::Detached;
use crate::probe::fault::step;

/// The data of a writer, or the index.
pub struct Space {
    pages: Pages,
    file_mode: u32,
    current: Option<WritePage>,
}

struct WritePage {
    number: u32,
    window: Window,
    region: Arc<Region>,
    reserved: ReservedRange,
}

impl Space {
    /// The space of `pages`, whose new files get the permissions `file_mode`.
    #[must_use]
    pub const fn new(pages: Pages, file_mode: u32) -> Self {
        Self { pages, file_mode, current: None }
    }

    /// Its pages.
    #[must_use]
    pub const fn pages(&self) -> &Pages {
        &self.pages
    }

    /// Creates the first page, which fixes the queue's form and page size.
    pub fn start(&mut self, may_wait: &Detached) -> Result<()> {
        self.page(0, Some(may_wait)).map(drop)
    }

    /// Memory in which `length` bytes at `position` of a page can be stored; None if the page is
    /// not open and the thread may not wait for it.
    #[inline]
    pub fn ready(
        &mut self,
        page: u32,
        position: u64,
        length: u64,
        may_wait: Option<&Detached>,
    ) -> Result<Option<&Region>> {
        let size = self.pages.size().bytes();
        let Some(current) = self.page(page, may_wait)? else { return Ok(None) };
        current.reserve(position, position + length, size)?;
        Ok(Some(&current.region))
    }

    /// Stores bytes, across pages if necessary. No reader reads them before they are published.
    /// False if a page is not open and the thread may not wait for it.
    pub fn store(&mut self, start: u64, bytes: &[u8], may_wait: Option<&Detached>) -> Result<bool> {
        let mut rest = bytes;
        for part in self.pages.size().parts(start, bytes.len() as u64) {
            let count = usize::try_from(part.length).unwrap_or(rest.len());
            let (now, later) = rest.split_at(count.min(rest.len()));
            let region = self.ready(part.page, part.position, part.length, may_wait)?;
            let Some(region) = region else { return Ok(false) };
            region.copy_in_plain(part.position, now, step!("quick-queue.payload.store"));
            rest = later;
        }
        Ok(true)
    }

    /// Releases the mapping, which is opened again when needed.
    pub fn release(&mut self) {
        self.current = None;
    }

    #[inline]
    fn page(&mut self, number: u32, may_wait: Option<&Detached>) -> Result<Option<&mut WritePage>> {
        if self.current.as_ref().is_none_or(|page| page.number != number) {
            let Some(may_wait) = may_wait else { return Ok(None) };
            self.turn_to(number, may_wait)?;
        }
        Ok(self.current.as_mut())
    }

    #[cold]
    fn turn_to(&mut self, number: u32, may_wait: &Detached) -> Result<()> {
        let window = self.pages.open_or_create(number, self.file_mode, may_wait)?;
        let region = window.region();
        let reserved = ReservedRange::default();
        self.current = Some(WritePage { number, window, region, reserved });
        Ok(())
    }
}

impl WritePage {
    #[inline]
    fn reserve(&mut self, start: u64, end: u64, size: u64) -> Result<()> {
        if self.reserved.covers(start, end) {
            return Ok(());
        }
        self.reserved.extend(&self.window, &mut self.region, start..end, size)
    }
}
