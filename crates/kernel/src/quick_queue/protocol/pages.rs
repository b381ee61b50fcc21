//! The page files of one address space, opened and created; each is exactly one page long.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::memory::window::{Readable, Region, Window};
use crate::os::detached::Detached;
use crate::os::files::{self, Access};
use crate::probe::fault::step;
use crate::quick_queue::format::address::PageSize;
use crate::quick_queue::format::files as names;
use crate::quick_queue::format::producer::Producer;
use crate::quick_queue::protocol::directory::{self, Form};
use crate::{Error, Result};

/// How long another process may take to give a new page its length.
const GROW_TIMEOUT: Duration = Duration::from_secs(10);

/// The page files `{page}.{suffix}` of a directory.
#[derive(Clone, Debug)]
pub struct Pages {
    dir: PathBuf,
    suffix: &'static str,
    size: PageSize,
}

impl Pages {
    /// The pages of the index.
    #[must_use]
    pub fn index(dir: &Path, form: Form, size: PageSize) -> Self {
        let suffix = match form {
            Form::Single => names::SINGLE_INDEX,
            Form::Shared => names::SHARED_INDEX,
        };
        Self { dir: dir.to_path_buf(), suffix, size }
    }

    /// The data pages of a producer, or of the single writer.
    #[must_use]
    pub fn data(dir: &Path, producer: Option<Producer>, size: PageSize) -> Self {
        let dir = producer.map_or_else(|| dir.to_path_buf(), |name| dir.join(name.as_str()));
        Self { dir, suffix: names::DATA, size }
    }

    /// The size of each page.
    #[must_use]
    pub const fn size(&self) -> PageSize {
        self.size
    }

    /// Their directory.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The path of a page.
    #[must_use]
    pub fn path(&self, page: u32) -> PathBuf {
        self.dir.join(format!("{page}.{}", self.suffix))
    }

    /// Opens a page for reading; None while it is missing or has no length yet.
    pub fn open(&self, page: u32) -> Result<Option<Window>> {
        let path = self.path(page);
        let Some(file) = files::open(&path, Access { write: false, create_mode: None })? else {
            return Ok(None);
        };
        let window = Window::new(&path, file, false)?;
        if window.file_len() == 0 {
            return Ok(None);
        }
        self.checked(window).map(Some)
    }

    /// Whether a page has its length.
    pub fn is_there(&self, page: u32) -> Result<bool> {
        directory::length_of(&self.path(page)).map(|length| length.is_some())
    }

    /// An error if the page with the bytes before `end` is missing: readers would see zeros in a
    /// new one.
    pub fn check_before(&self, end: u64) -> Result<()> {
        let page = self.size.page(end);
        let is_new = end >= self.size.capacity() || self.size.position(end) == 0;
        if is_new || self.is_there(page)? { Ok(()) } else { Err(self.missing_data(page)) }
    }

    /// The error of a data page that is missing.
    #[cold]
    #[must_use]
    pub fn missing_data(&self, page: u32) -> Error {
        let expected = "a page, as a message lies in it";
        Error::corrupt("a data page is missing", &self.path(page), 0, "no file", expected)
    }

    /// Opens a page for writing, created if missing.
    pub fn open_or_create(&self, page: u32, file_mode: u32, may_wait: &Detached) -> Result<Window> {
        let path = self.path(page);
        let access = Access { write: true, create_mode: Some(file_mode) };
        let gone = || Error::gone("cannot create, as its directory was removed or renamed", &path);
        let file = files::open(&path, access)?.ok_or_else(gone)?;
        step!("quick-queue.page.open").made();
        let window = Window::new(&path, file, true)?;
        if window.file_len() == 0 {
            window.grow(may_wait, self.size.bytes(), GROW_TIMEOUT)?;
        }
        self.checked(window)
    }

    fn checked(&self, window: Window) -> Result<Window> {
        let (found, expected) = (window.file_len(), self.size.bytes());
        if found == expected {
            return Ok(window);
        }
        let (found, expected) = (found.to_string(), format!("{expected} bytes"));
        Err(Error::corrupt("a page file has another length", window.path(), 0, found, expected))
    }
}

/// A page open for reading.
pub struct ReadPage {
    /// Its number.
    pub number: u32,
    window: Window,
    region: Arc<Region>,
    /// The range known to be readable.
    from: u64,
    to: u64,
}

impl ReadPage {
    /// Opens a page; None while it is missing.
    pub fn open(pages: &Pages, number: u32) -> Result<Option<Self>> {
        let Some(window) = pages.open(number)? else { return Ok(None) };
        let region = window.region();
        Ok(Some(Self { number, window, region, from: 0, to: 0 }))
    }

    /// The page in memory, whose `length` bytes at `position` can be read; None if there is a hole
    /// without disk space, which reads as zeros.
    #[inline]
    pub fn ready(&mut self, position: u64, length: u64) -> Result<Option<&Arc<Region>>> {
        let end = position + length;
        if position >= self.from && end <= self.to {
            return Ok(Some(&self.region));
        }
        let ahead = self.window.file_len();
        match self.window.readable(&mut self.region, position, end, ahead)? {
            Readable::UpTo(to) => {
                (self.from, self.to) = (position, to);
                Ok(Some(&self.region))
            }
            Readable::Hole => Ok(None),
            Readable::Beyond(found) => Err(Error::corrupt(
                "a page file was cut short",
                self.path(),
                position,
                format!("{found} bytes"),
                format!("at least {end}"),
            )),
        }
    }

    /// Its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.window.path()
    }
}
