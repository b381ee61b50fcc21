//! A roll file, mapped whole: growing it, reserving its space, and populating its pages.
//!
//! No page is touched for the first time unless it is known to exist. Readers have a range checked
//! by [`Window::readable`], which populates it or reports that it cannot; writers reserve space
//! by [`Window::writable`] before they store. So a hole, a short file or a full disk is an error,
//! not a signal that kills the process. A file that others truncate while it is mapped is not
//! covered.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::known_length::KnownLength;
use super::pages::Pages;
use super::reservation::Reservation;
use super::{Cells, Mapping, is_unsupported};
use crate::os::detached::Detached;
use crate::os::files;
use crate::os::range_lock::{InProcessMutex, Kind, RecordLock, WHOLE_FILE};
use crate::probe::fault;
use crate::{Error, Result};

/// Pages are populated for readers in chunks of this many bytes.
pub const CHUNK: u64 = 64 << 10;
/// Address space reserved after a file that may grow.
const HEADROOM: u64 = 1 << 30;
/// The pretoucher's step in bytes.
const TOUCH_STEP: u64 = 128 << 10;

/// One mapping of the file. The window creates a larger one when the file outgrows it; holders of
/// the old one may continue to use it.
pub struct Region {
    cells: Cells,
    /// One bit per chunk whose pages have been populated.
    present: Vec<AtomicU64>,
}

impl Region {
    fn new(file: &File, len: u64, writable: bool) -> io::Result<Self> {
        let cells = Cells::new(Mapping::new(file, len, writable)?);
        let present = (0..len.div_ceil(CHUNK * 64)).map(|_| AtomicU64::new(0)).collect();
        Ok(Self { cells, present })
    }

    fn is_present(&self, chunk: u64) -> bool {
        self.bit(chunk).is_some_and(|(word, bit)| word.load(Ordering::Acquire) & bit != 0)
    }

    fn set_present(&self, chunk: u64) {
        if let Some((word, bit)) = self.bit(chunk) {
            word.fetch_or(bit, Ordering::Release);
        }
    }

    fn bit(&self, chunk: u64) -> Option<(&AtomicU64, u64)> {
        let word = usize::try_from(chunk / 64).ok()?;
        Some((self.present.get(word)?, 1 << (chunk % 64)))
    }
}

impl std::ops::Deref for Region {
    type Target = Cells;

    fn deref(&self) -> &Cells {
        &self.cells
    }
}

/// How much of a range is readable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readable {
    /// Positions from the start of the range to this one.
    UpTo(u64),
    /// The file ends before the range does, at this length.
    Beyond(u64),
    /// The range has no memory: a hole in a file on a full file system. It reads as 0.
    Hole,
}

/// A range to be read, and the limit of useful read-ahead.
#[derive(Clone, Copy)]
struct Wanted {
    start: u64,
    end: u64,
    ahead: u64,
}

/// Supplies the content of a file piece by piece, as it is needed.
pub trait Source: Send + Sync {
    /// Writes the missing parts of a range into the file, and leaves present parts unchanged.
    fn fill(&self, file: &File, start: u64, end: u64) -> Result<()>;
}

/// A roll file.
pub struct Window {
    path: PathBuf,
    file: File,
    /// Supplies the file's content; None if the file is complete.
    source: Option<Box<dyn Source>>,
    writable: bool,
    region: Mutex<Arc<Region>>,
    growth: InProcessMutex,
    file_len: KnownLength,
    reservation: Reservation,
    pages: Pages,
}

impl Window {
    /// Maps `file` at its current length.
    pub fn new(path: &Path, file: File, writable: bool) -> Result<Self> {
        Self::with(path, file, writable, None)
    }

    /// Maps `file` read-only; a source fills it as it is read.
    pub fn filled_by(path: &Path, file: File, source: Box<dyn Source>) -> Result<Self> {
        Self::with(path, file, false, Some(source))
    }

    fn with(
        path: &Path,
        file: File,
        writable: bool,
        source: Option<Box<dyn Source>>,
    ) -> Result<Self> {
        let found = fault::call!("window.stat", file.metadata());
        let len = found.map_err(|e| Error::io("cannot look at", path, e))?.len();
        let pages = Pages::here();
        let room = if writable { reserve_addresses(len, pages) } else { len.max(pages.bytes()) };
        let region = Region::new(&file, room, writable);
        let region = region.map_err(|e| Error::io("cannot map", path, e))?;
        Ok(Self {
            path: path.to_path_buf(),
            file,
            source,
            writable,
            region: Mutex::new(Arc::new(region)),
            growth: InProcessMutex::default(),
            file_len: KnownLength::new(len),
            reservation: Reservation::new(pages),
            pages,
        })
    }

    /// The file's path when it was opened.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    #[must_use]
    pub const fn file(&self) -> &File {
        &self.file
    }

    /// The current mapping.
    #[must_use]
    pub fn region(&self) -> Arc<Region> {
        Arc::clone(&self.lock_region())
    }

    /// The file's length when last checked.
    #[must_use]
    pub fn file_len(&self) -> u64 {
        self.file_len.get()
    }

    /// Positions below this one, from the first append of this process on, are in its mapping.
    #[inline]
    #[must_use]
    pub fn written_to(&self) -> u64 {
        self.reservation.present_to()
    }

    /// Makes `start..end` readable through `region`, which is replaced if the file outgrew it, and
    /// reads ahead up to `ahead`, at most to the end of the last chunk.
    pub fn readable(
        &self,
        region: &mut Arc<Region>,
        start: u64,
        end: u64,
        ahead: u64,
    ) -> Result<Readable> {
        if end > self.file_len() && end > self.refresh_len()? {
            return Ok(Readable::Beyond(self.file_len()));
        }
        if end > region.len() {
            *region = self.region_of(end)?;
        }
        let file_len = self.file_len().min(region.len());
        let mut to = end.next_multiple_of(CHUNK);
        for chunk in start / CHUNK..=(end - 1) / CHUNK {
            if !region.is_present(chunk) {
                self.fill(chunk * CHUNK, (chunk + 1) * CHUNK)?;
                let wanted = Wanted { start, end, ahead: ahead.max(end).min(file_len) };
                match self.populate(region, chunk, wanted)? {
                    Some(present) => to = to.min(present.max(end)),
                    None => return Ok(Readable::Hole),
                }
            }
        }
        Ok(Readable::UpTo(to.min(file_len)))
    }

    /// Makes the source supply the missing parts of a range.
    pub fn fill(&self, start: u64, end: u64) -> Result<()> {
        let Some(source) = &self.source else { return Ok(()) };
        source.fill(&self.file, start, end.min(self.file_len()))
    }

    /// Populates one chunk as far as is wanted or, if that fails, only the pages of the range
    /// itself. Returns the end of the populated part: there may be a hole after it.
    fn populate(&self, region: &Region, chunk: u64, wanted: Wanted) -> Result<Option<u64>> {
        let Wanted { start, end, ahead } = wanted;
        let (first, last) = (chunk * CHUNK, (chunk + 1) * CHUNK);
        let is_whole = last <= ahead;
        // If the chunk cannot be populated, only the pages from the range on matter.
        let from = if is_whole { first } else { first.max(self.pages.down(start)) };
        match region.memory().populate_read(from, last.min(ahead)) {
            Ok(()) if is_whole => {
                region.set_present(chunk);
                Ok(Some(last.max(end.next_multiple_of(CHUNK))))
            }
            Ok(()) => Ok(Some(ahead)),
            Err(error) if is_unsupported(&error) => {
                self.probe(first.max(start))?;
                Ok(Some(last.max(end.next_multiple_of(CHUNK))))
            }
            Err(_) => {
                let is_present = self.populate_pages(region, first.max(start), last.min(end))?;
                Ok(is_present.then(|| self.pages.up(end)))
            }
        }
    }

    /// Populates the pages of a range one by one; false at a hole. A page that cannot be populated
    /// is a hole only if it reads as zeros: a writer would otherwise take data for free space.
    fn populate_pages(&self, region: &Region, start: u64, end: u64) -> Result<bool> {
        let mut is_present = true;
        let mut page = Vec::new();
        for (from, to) in self.pages.parts(start, end) {
            let Err(error) = region.memory().populate_read(from, to) else { continue };
            page.resize(usize::try_from(to - from).unwrap_or_default(), 0);
            let bytes = page.as_mut_slice();
            if self.read_at(bytes, from)? < bytes.len() || bytes.iter().any(|byte| *byte != 0) {
                return Err(Error::io("cannot read", &self.path, error));
            }
            is_present = false;
        }
        Ok(is_present)
    }

    /// Reads a byte through the file where pages cannot be populated: it fails with an error.
    fn probe(&self, position: u64) -> Result<()> {
        let found = fault::call!("window.read", self.file.read_at(&mut [0], position));
        found.map(drop).map_err(|e| Error::io("cannot read", &self.path, e))
    }

    /// Reads through the file, for a first access to bytes that may not exist. Returns the number
    /// of bytes read.
    pub fn read_at(&self, buffer: &mut [u8], position: u64) -> Result<usize> {
        self.fill(position, position.saturating_add(buffer.len() as u64))?;
        let mut done = 0;
        while done < buffer.len() {
            let rest = &mut buffer[done..];
            match fault::call!("window.read", self.file.read_at(rest, position + done as u64)) {
                Ok(0) => break,
                Ok(count) => done += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Error::io("cannot read", &self.path, error)),
            }
        }
        Ok(done)
    }

    /// Makes positions from `start` to `end` writable through `region`: extends the file to at
    /// least `len` bytes, reserves its blocks, populates its pages. Returns the end of the writable
    /// part. Other processes may keep the file locked for up to `timeout`. After an error, nothing
    /// was stored.
    pub fn writable(
        &self,
        may_wait: &Detached,
        region: &mut Arc<Region>,
        start: u64,
        end: u64,
        len: u64,
        timeout: Duration,
    ) -> Result<u64> {
        if len > self.file_len() {
            self.grow(may_wait, len, timeout)?;
        }
        self.reservation.measure(end);
        let present = self.reservation.present_to();
        if end <= present {
            *region = self.region_of(present)?;
            return Ok(present);
        }
        // Appends only move up: this appender does not reserve positions below its first append.
        let from = present.max(self.pages.down(start));
        let target = self.reservation.step(end).min(self.file_len());
        let exactly = self.pages.up(end).min(self.file_len());
        let target = self.reserve_step(region, from, target, exactly)?;
        self.reservation.raise(target);
        Ok(target)
    }

    /// Reserves the next step of space for a slow appender whose messages end at `end`, so that the
    /// next ones need not wait. Needs no lock: no byte changes. Returns the writable end;
    /// None if the pretoucher takes care of it or it fails: the next append then reports the error.
    #[must_use]
    pub fn take_ahead(&self, end: u64) -> Option<u64> {
        self.reservation.measure(end);
        let present = self.reservation.present_to();
        let target = self.pages.down(Reservation::between(end).min(self.file_len()));
        if present == 0 || self.reservation.is_fast() || target <= present {
            return (present > 0).then_some(present);
        }
        let mut region = self.region();
        self.reserve(&mut region, present, target).ok()?;
        self.reservation.raise(target);
        Some(target)
    }

    /// Populates a range for a reader that has nothing to read yet; false if that fails, or if the
    /// file has a source and so is never appended to.
    #[must_use]
    pub fn look_ahead(&self, region: &Region, from: u64, to: u64) -> bool {
        let is_mapped = to <= self.file_len().min(region.len());
        is_mapped && self.source.is_none() && region.memory().populate_read(from, to).is_ok()
    }

    /// How far the pretoucher should go for an appender at `end`; None if it is not worthwhile.
    #[must_use]
    pub fn wanted_ahead_of(&self, end: u64) -> Option<u64> {
        let (present, wanted) = (self.reservation.present_to(), Reservation::ahead_of(end));
        let is_due =
            self.reservation.is_fast() && wanted - present.min(wanted) > (wanted - end) / 2;
        (is_due && present > 0).then_some(wanted)
    }

    /// The pretoucher's step: reserves and populates a little more, at most up to `to`; false when
    /// done or on failure. The appender reports the error itself.
    pub fn touch_ahead(&self, to: u64) -> bool {
        let from = self.reservation.present_to();
        let to = self.pages.down(to.min(from + TOUCH_STEP).min(self.file_len()));
        let mut region = self.region();
        if to <= from || self.reserve(&mut region, from, to).is_err() {
            return false;
        }
        self.reservation.raise(to);
        true
    }

    /// Reserves and populates positions from `start` to `to` in small steps, in a file of at least
    /// `len` bytes: for appends from `start` on, which then find them present.
    pub fn prepare(
        &self,
        may_wait: &Detached,
        start: u64,
        to: u64,
        len: u64,
        timeout: Duration,
    ) -> Result<()> {
        if len > self.file_len() {
            self.grow(may_wait, len, timeout)?;
        }
        let mut region = self.region();
        let mut from = self.reservation.present_to().max(self.pages.down(start));
        let to = self.pages.down(to.min(self.file_len()));
        while from < to {
            let next = to.min(from + TOUCH_STEP);
            self.reserve(&mut region, from, next)?;
            self.reservation.raise(next);
            from = next;
        }
        Ok(())
    }

    /// Releases the pages of a range from this process's mapping: they are not accessed soon.
    pub fn release(&self, start: u64, end: u64) -> Result<()> {
        let region = self.region();
        let released = region.memory().release(start, end.min(region.len()));
        released.map_err(|e| Error::io("cannot release pages", &self.path, e))
    }

    /// Like [`Window::reserve`] from `start` to `target`; if the disk has no room for that, only to
    /// `exactly`, the required end. Returns the reserved end.
    pub fn reserve_step(
        &self,
        region: &mut Arc<Region>,
        start: u64,
        target: u64,
        exactly: u64,
    ) -> Result<u64> {
        match self.reserve(region, start, target) {
            Ok(()) => Ok(target),
            Err(_) => self.reserve(region, start, exactly).map(|()| exactly),
        }
    }

    /// Reserves the blocks of a range of the file and populates its pages for writing. No byte
    /// changes.
    pub fn reserve(&self, region: &mut Arc<Region>, start: u64, end: u64) -> Result<()> {
        files::reserve(&self.file, start, end)
            .map_err(|e| Error::io("cannot reserve space", &self.path, e))?;
        *region = self.region_of(end)?;
        match region.memory().populate_write(start, end) {
            Ok(()) => Ok(()),
            Err(error) if is_unsupported(&error) => Ok(()),
            Err(error) => Err(Error::io("cannot write", &self.path, error)),
        }
    }

    /// Extends the file to at least `len`, never shrinks it, under the lock that Java takes for it.
    /// Appenders and pretouchers share the description, so they take turns at that lock.
    pub fn grow(&self, may_wait: &Detached, len: u64, timeout: Duration) -> Result<()> {
        let failed = |e| Error::io("cannot grow", &self.path, e);
        let (nobodys, is_unmended) = (InProcessMutex::default(), fault::is_unmended("window.grow"));
        let in_process = if is_unmended { &nobodys } else { &self.growth };
        let extend = if is_unmended { files::set_len } else { files::extend };
        let lock = RecordLock::wait(
            &self.file,
            in_process,
            may_wait,
            WHOLE_FILE,
            Kind::Exclusive,
            timeout,
        );
        let locked = |locked| Error::FileLocked { file: self.path.clone(), locked };
        let _lock = lock.map_err(failed)?.map_err(locked)?;
        if self.refresh_len()? < len {
            fault::call!("window.grow", extend(&self.file, len)).map_err(failed)?;
            self.refresh_len()?;
        }
        Ok(())
    }

    /// Refreshes the file's length.
    pub fn refresh_len(&self) -> Result<u64> {
        self.file_len.refresh(|| {
            let found = fault::call!("window.stat", self.file.metadata());
            found.map(|it| it.len()).map_err(|e| Error::io("cannot look at", &self.path, e))
        })
    }

    /// Syncs the file: mapped pages and length.
    pub fn sync(&self) -> Result<()> {
        fault::call!("window.sync", files::sync(&self.file))
            .map_err(|e| Error::io("cannot sync", &self.path, e))
    }

    /// A mapping that reaches `end`.
    fn region_of(&self, end: u64) -> Result<Arc<Region>> {
        let mut region = self.lock_region();
        if end > region.len() {
            let room = reserve_addresses(end.max(self.file_len()), self.pages);
            let larger = Region::new(&self.file, room, self.writable);
            *region = Arc::new(larger.map_err(|e| Error::io("cannot map", &self.path, e))?);
        }
        Ok(Arc::clone(&region))
    }

    fn lock_region(&self) -> MutexGuard<'_, Arc<Region>> {
        self.region.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn reserve_addresses(len: u64, pages: Pages) -> u64 {
    pages.up(len) + HEADROOM
}
