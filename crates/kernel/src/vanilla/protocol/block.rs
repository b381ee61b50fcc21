//! An index or data file, mapped. No page is touched before it is known to exist.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use crate::memory::reserved_range::ReservedRange;
use crate::memory::window::{Readable, Region, Window};
use crate::os::files::{self, Access};
use crate::probe::fault;
use crate::{Error, Result};

/// Ranges that a reader stores into are made writable in pieces of this many bytes.
const PIECE: u64 = 64 << 10;

/// A file of a cycle.
pub struct Block {
    window: Window,
    region: Arc<Region>,
    /// Positions that are known to be readable through the region.
    readable: Range<u64>,
    /// Positions that are reserved and present, for a writer.
    reserved: ReservedRange,
    /// Positions that a reader may store to.
    writable: Range<u64>,
}

impl Block {
    /// Maps a file; None if it is missing.
    pub fn open(path: &Path, writable: bool) -> Result<Option<Self>> {
        let access = Access { write: writable, create_mode: None };
        files::open(path, access)?.map(|file| Self::map(path, file, writable)).transpose()
    }

    /// Opens a file for writing, created with `mode` if missing, and sets its length.
    pub fn open_or_create(path: &Path, length: u64, mode: u32) -> Result<Self> {
        let access = Access { write: true, create_mode: Some(mode) };
        let file = files::open(path, access)?;
        let file = file.ok_or_else(|| Error::gone("cannot open", path))?;
        Self::lengthened(path, file, length)
    }

    /// Creates a file for writing; None if it exists.
    pub fn create_new(path: &Path, length: u64, mode: u32) -> Result<Option<Self>> {
        let file = files::create_new(path, mode)?;
        file.map(|file| Self::lengthened(path, file, length)).transpose()
    }

    fn lengthened(path: &Path, file: std::fs::File, length: u64) -> Result<Self> {
        let found = fault::call!("vanilla.file.stat", file.metadata());
        if found.map_err(|e| Error::io("cannot look at", path, e))?.len() < length {
            let grown = fault::call!("vanilla.file.grow", files::extend(&file, length));
            grown.map_err(|e| Error::io("cannot grow", path, e))?;
        }
        Self::map(path, file, true)
    }

    fn map(path: &Path, file: std::fs::File, writable: bool) -> Result<Self> {
        let window = Window::new(path, file, writable)?;
        let region = window.region();
        Ok(Self {
            window,
            region,
            readable: 0..0,
            reserved: ReservedRange::default(),
            writable: 0..0,
        })
    }

    /// The file's path when it was opened.
    pub fn path(&self) -> &Path {
        self.window.path()
    }

    /// The file.
    pub const fn file(&self) -> &std::fs::File {
        self.window.file()
    }

    /// The file's length when last checked.
    pub fn length(&self) -> u64 {
        self.window.file_len()
    }

    /// The file's length now.
    pub fn refreshed_length(&self) -> Result<u64> {
        self.window.refresh_len()
    }

    /// The mapping; ranges readable through an earlier one are readable through this one too.
    pub(crate) const fn region(&self) -> &Arc<Region> {
        &self.region
    }

    /// Whether a range can be read: false if it extends beyond the end of the file, or into a hole
    /// without disk space, which reads as zeros.
    #[inline]
    pub fn is_readable(&mut self, start: u64, end: u64) -> Result<bool> {
        if start >= self.readable.start && end <= self.readable.end {
            return Ok(true);
        }
        self.make_readable(start, end)
    }

    fn make_readable(&mut self, start: u64, end: u64) -> Result<bool> {
        match self.window.readable(&mut self.region, start, end, u64::MAX)? {
            Readable::UpTo(to) => {
                self.readable = if start <= self.readable.end && start >= self.readable.start {
                    self.readable.start..to.max(end)
                } else {
                    start..to.max(end)
                };
                Ok(true)
            }
            Readable::Beyond(_) | Readable::Hole => Ok(false),
        }
    }

    /// A 64-bit word, load-acquire; 0 if it cannot be read.
    #[inline]
    pub fn word64(&mut self, position: u64) -> Result<u64> {
        let is_readable = self.is_readable(position, position + 8)?;
        Ok(if is_readable { self.region.load_acquire(position) } else { 0 })
    }

    /// A 32-bit word, load-acquire; 0 if it cannot be read.
    #[inline]
    pub fn word32(&mut self, position: u64) -> Result<u32> {
        let is_readable = self.is_readable(position, position + 4)?;
        Ok(if is_readable { self.region.load_header_acquire(position) } else { 0 })
    }

    /// Whether stores into a range cannot fail.
    #[inline]
    pub const fn is_reserved(&self, start: u64, end: u64) -> bool {
        self.reserved.covers(start, end)
    }

    /// Reserves the space of a range, and some after it, up to `limit`, so that stores into it
    /// cannot fail.
    #[inline]
    pub fn reserve(&mut self, start: u64, end: u64, limit: u64) -> Result<()> {
        if self.is_reserved(start, end) {
            return Ok(());
        }
        self.reserved.extend(&self.window, &mut self.region, start..end, limit)
    }

    /// Makes a range of a message by another writer writable.
    pub fn make_writable(&mut self, start: u64, end: u64) -> Result<()> {
        if start >= self.writable.start && end <= self.writable.end {
            return Ok(());
        }
        let from = start / PIECE * PIECE;
        let to = end.next_multiple_of(PIECE).min(self.length()).max(end);
        self.window.reserve(&mut self.region, from, to)?;
        self.writable = from..to;
        Ok(())
    }

    /// Returns when the file is on the medium.
    pub fn sync(&self) -> Result<()> {
        self.window.sync()
    }
}
