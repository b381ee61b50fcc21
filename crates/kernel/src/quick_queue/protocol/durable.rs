//! Which messages a sync covers: all that are in the queue when it begins, by any writer.
//!
//! Readers stop at an entry that is missing, and deliver what a complete entry names. So a message
//! is durable only together with the entries before it, and with their messages. First the data is
//! synced, with the profiles of producers, then the index.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};

use super::directory::{Form, Layout, Listing, Span};
use super::pages::Pages;
use super::pending::profile_path;
use crate::os::files::{self, Access};
use crate::probe::fault;
use crate::quick_queue::format::producer::Producer;
use crate::{Error, Result};

/// How far the files of a queue were synced by this process.
pub struct Durable {
    dir: PathBuf,
    layout: Layout,
    index: Synced,
    data: HashMap<Option<Producer>, Synced>,
    /// Whether a sync has failed: the system drops pages it could not write, and reports that only
    /// once.
    has_failed: bool,
}

/// The page that was the highest when pages were last synced.
#[derive(Clone, Copy, Default)]
struct Synced(Option<u32>);

impl Durable {
    /// The state of the queue at `dir`, assuming that nothing is synced.
    #[must_use]
    pub fn new(dir: &Path, layout: Layout) -> Self {
        let (index, data) = (Synced::default(), HashMap::new());
        Self { dir: dir.to_path_buf(), layout, index, data, has_failed: false }
    }

    /// Returns when every message of the queue is on the medium.
    pub fn sync(&mut self) -> Result<()> {
        if self.has_failed {
            let what = "an earlier sync failed, and messages written before it may be lost (close \
                        the queue and check its last messages)";
            return Err(Error::io(what, &self.dir, io::Error::from_raw_os_error(libc::EIO)));
        }
        let synced = self.sync_files();
        self.has_failed = matches!(synced, Err(Error::Io { .. }));
        synced
    }

    fn sync_files(&mut self) -> Result<()> {
        let listing = Listing::of(&self.dir)?;
        let before = self.data.len();
        match self.layout.form {
            Form::Single => self.sync_data(None, listing.data())?,
            Form::Shared => {
                for producer in listing.producers() {
                    self.sync_producer(*producer)?;
                }
            }
        }
        let Layout { form, size } = self.layout;
        let pages = Pages::index(&self.dir, form, size);
        let index = self.index.and_now(&pages, listing.index(form))?;
        // Names of index pages, producers' directories and profiles.
        if index != self.index.0 || self.data.len() > before {
            sync_directory(&self.dir)?;
        }
        self.index.0 = index;
        Ok(())
    }

    fn sync_producer(&mut self, producer: Producer) -> Result<()> {
        let dir = self.dir.join(producer.as_str());
        // A producer's profile is created before its directory.
        if dir.is_dir() {
            self.sync_data(Some(producer), Listing::of(&dir)?.data())?;
        }
        sync_file(&profile_path(&self.dir, producer))
    }

    fn sync_data(&mut self, producer: Option<Producer>, span: Option<Span>) -> Result<()> {
        let pages = Pages::data(&self.dir, producer, self.layout.size);
        let known = self.data.entry(producer).or_default();
        let synced = known.and_now(&pages, span)?;
        if synced != known.0 {
            sync_directory(pages.dir())?;
            known.0 = synced;
        }
        Ok(())
    }
}

impl Synced {
    /// Syncs pages from the highest one synced before; returns the highest one now.
    fn and_now(self, pages: &Pages, span: Option<Span>) -> Result<Option<u32>> {
        let Some(span) = span else { return Ok(self.0) };
        let from = self.0.map_or(span.lowest, |known| known.max(span.lowest));
        for page in from..=span.highest {
            sync_file(&pages.path(page))?;
        }
        Ok(Some(span.highest))
    }
}

fn sync_file(path: &Path) -> Result<()> {
    let Some(file) = files::open(path, Access { write: false, create_mode: None })? else {
        return Ok(());
    };
    let synced = fault::call!("quick-queue.file.sync", files::sync(&file));
    synced.map_err(|e| Error::io("cannot sync", path, e))
}

fn sync_directory(path: &Path) -> Result<()> {
    let synced = fault::call!("quick-queue.dir.sync", files::sync_directory(path));
    synced.map_err(|e| Error::io("cannot sync", path, e))
}
