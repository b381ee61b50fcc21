//! Repair after a power cut: the medium may hold later stores and lack earlier ones.
//!
//! Readers stop at the first free entry, and a writer finds it by a binary search, which assumes
//! that all entries before it are taken. So the first writer after a start of the machine walks
//! over the entries that the system may not have written back. The queue ends before the first
//! entry that is free, or whose message lies in a missing page; later entries are cleared, as no
//! sync covered them. Profiles are set to match the remaining entries.

use std::collections::HashMap;
use std::path::Path;
use std::time::{Duration, SystemTime};

use super::directory::{Layout, Listing, Span, length_of};
use super::entries::{Entries, Entry};
use super::pages::Pages;
use super::pending::{self, profile_path};
use super::profile_file::ProfileFile;
use super::survey::survey;
use crate::os::clock;
use crate::os::detached::Detached;
use crate::os::files::{self, Access};
use crate::os::interrupt::Signals;
use crate::os::locked_file::{self, LockedFile, patiently};
use crate::os::range_lock::{Kind, Range, WHOLE_FILE};
use crate::probe::fault;
use crate::quick_queue::format::address::PageSize;
use crate::quick_queue::format::entry::{ENTRY, Stamp, State};
use crate::quick_queue::format::files as names;
use crate::quick_queue::format::producer::Producer;
use crate::quick_queue::format::profile::Profile;
use crate::{Error, Result, warnings};

/// The byte of the lock file that a repair locks.
const REPAIR: Range = Range { start: 1, length: 1 };
/// How long to wait for another writer's repair.
const TIMEOUT: Duration = Duration::from_secs(60);
/// The length of the lock file while a repair is unfinished.
const BEGUN: u64 = 1;

/// Ends the queue at `dir` before messages that a power cut lost, if the machine was started since
/// its last message, or a repair is unfinished.
pub fn repair(may_wait: &mut Detached, dir: &Path, layout: Layout, file_mode: u32) -> Result<()> {
    if due(dir, layout)?.is_none() {
        return Ok(());
    }
    let path = dir.join(names::LOCK);
    let lock = LockedFile::open_or_create(&path, file_mode)?;
    let keep =
        |may_wait: &Detached, step| lock.keep(&path, REPAIR, Kind::Exclusive, step, may_wait);
    patiently(Signals::Handled(may_wait), TIMEOUT, keep).map_err(|error| match error {
        Error::FileLocked { .. } => {
            let what = "another writer is repairing the queue after a power cut".to_owned();
            Error::WriterInUse { what, path: dir.to_path_buf() }
        }
        error => error,
    })?;
    let Some(due) = due(dir, layout)? else { return Ok(()) };
    for producer in due.listing.producers() {
        // A Java producer, which has appended nothing yet.
        if locked_file::is_held(&profile_path(dir, *producer), WHOLE_FILE)? {
            return Ok(());
        }
    }
    mark(&path, BEGUN)?;
    Repair::new(dir, layout).run(&due, file_mode)?;
    mark(&path, 0)
}

/// A repair that is due.
struct Due {
    listing: Listing,
    span: Span,
    /// Whether a repair has begun, and changed the times of pages.
    is_begun: bool,
}

/// None if a page was changed since the machine was started, and no repair is unfinished.
fn due(dir: &Path, layout: Layout) -> Result<Option<Due>> {
    let Some(span) = survey(dir)?.index(layout.form) else { return Ok(None) };
    let newest = Pages::index(dir, layout.form, layout.size).path(span.highest);
    let known = changed(&newest)?.zip(clock::machine_started());
    let is_outdated = known.is_some_and(|(changed, started)| changed < started);
    let is_begun = length_of(&dir.join(names::LOCK))?.is_some();
    if !is_outdated && !is_begun {
        return Ok(None);
    }
    let listing = Listing::of(dir)?;
    let span = listing.index(layout.form);
    Ok(span.map(|span| Due { listing, span, is_begun }))
}

/// Sets the length of the lock file, which marks an unfinished repair.
fn mark(path: &Path, length: u64) -> Result<()> {
    let access = Access { write: true, create_mode: None };
    let Some(file) = files::open(path, access)? else { return Ok(()) };
    let marked = fault::call!("quick-queue.repair.mark", files::set_len(&file, length));
    marked.map_err(|e| Error::io("cannot mark", path, e))
}

fn changed(path: &Path) -> Result<Option<SystemTime>> {
    match files::changed(path) {
        Ok(changed) => Ok(Some(changed)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::io("cannot look at", path, error)),
    }
}

struct Repair<'a> {
    dir: &'a Path,
    size: PageSize,
    index: Pages,
    /// The newest complete entry of each producer.
    newest: HashMap<u32, Entry>,
    /// The later entry that it claimed but did not complete.
    claimed: HashMap<u32, Entry>,
    /// Whether a page of data exists, by its producer and number.
    data: HashMap<(u32, u32), bool>,
}

impl<'a> Repair<'a> {
    fn new(dir: &'a Path, layout: Layout) -> Self {
        let Layout { form, size } = layout;
        let index = Pages::index(dir, form, size);
        Self {
            dir,
            size,
            index,
            newest: HashMap::new(),
            claimed: HashMap::new(),
            data: HashMap::new(),
        }
    }

    fn run(mut self, due: &Due, file_mode: u32) -> Result<()> {
        let first = if due.is_begun { due.span.lowest } else { self.first_page(due.span)? };
        let end = self.end(self.size.start_of(first))?;
        for producer in due.listing.producers() {
            self.set_profile(*producer, end, file_mode)?;
        }
        if self.clear(end, due.span)? {
            warnings::leave(format!(
                "messages were lost in a power cut: the queue ends before them: index={end:#x} \
                 path={}",
                self.dir.display()
            ));
        }
        self.touch(due.span.highest)
    }

    /// The first index page that the system may not have written back.
    fn first_page(&self, span: Span) -> Result<u32> {
        let latest = changed(&self.index.path(span.highest))?;
        for page in (span.lowest..span.highest).rev() {
            let age = latest.zip(changed(&self.index.path(page))?);
            let age = age.and_then(|(latest, changed)| latest.duration_since(changed).ok());
            if age.is_some_and(|age| age > files::WHOLE_AFTER) {
                return Ok(page + 1);
            }
        }
        Ok(span.lowest)
    }

    /// The first entry from `from` on that is free, or whose message is missing.
    fn end(&mut self, from: u64) -> Result<u64> {
        let index = self.index.clone();
        let mut entries = Entries::new(&index);
        let mut at = from;
        while let Some(entry) = entries.get(at)? {
            let bits = entry.stamp.producer_bits();
            match entry.stamp.state() {
                _ if entry.stamp == Stamp::FREE => break,
                State::Complete if !self.has_data(entry)? => break,
                State::Complete => {
                    self.newest.insert(bits, entry);
                    self.claimed.remove(&bits);
                }
                _ => drop(self.claimed.insert(bits, entry)),
            }
            at += ENTRY;
        }
        Ok(at)
    }

    fn has_data(&mut self, entry: Entry) -> Result<bool> {
        let bits = entry.stamp.producer_bits();
        let pages = Pages::data(self.dir, Producer::from_bits(bits), self.size);
        for part in self.size.parts(entry.begin, entry.stamp.length().into()) {
            let known = match self.data.get(&(bits, part.page)) {
                Some(known) => *known,
                None => length_of(&pages.path(part.page))?.is_some(),
            };
            self.data.insert((bits, part.page), known);
            if !known {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Clears all entries from `end` on; returns whether there were any.
    fn clear(&self, end: u64, span: Span) -> Result<bool> {
        let mut is_cleared = false;
        for page in self.size.page(end)..=span.highest {
            let path = self.index.path(page);
            let access = Access { write: true, create_mode: None };
            let Some(file) = files::open(&path, access)? else { continue };
            let start = if page == self.size.page(end) { self.size.position(end) } else { 0 };
            let cleared = files::zero(&file, start);
            is_cleared |= cleared.map_err(|e| Error::io("cannot clear", &path, e))?;
        }
        Ok(is_cleared)
    }

    fn set_profile(&mut self, producer: Producer, end: u64, file_mode: u32) -> Result<()> {
        let file = ProfileFile::open(self.dir, producer, file_mode)?;
        let found = file.read();
        if self.is_whole(producer, found)? {
            return Ok(());
        }
        let newest = self.newest.get(&producer.bits());
        let is_known = found.last < end;
        let ends = newest.and_then(Entry::end).map_or(found.ends, |end| [end; 2]);
        let last = newest.map_or(if is_known { found.last } else { 0 }, |entry| entry.index);
        file.store(Profile { ends, last, attempt: 0 });
        Ok(())
    }

    /// Whether a profile proves the message of an entry that is only claimed: readers deliver it.
    fn is_whole(&mut self, producer: Producer, profile: Profile) -> Result<bool> {
        let Some(entry) = self.claimed.get(&producer.bits()).copied() else { return Ok(false) };
        let begin = pending::proven_begin(&self.index, producer, entry, profile)?;
        begin.map_or(Ok(false), |begin| self.has_data(Entry { begin, ..entry }))
    }

    /// Sets the page's time, so that the next writer need not check again.
    fn touch(&self, page: u32) -> Result<()> {
        let path = self.index.path(page);
        let access = Access { write: true, create_mode: None };
        let Some(file) = files::open(&path, access)? else { return Ok(()) };
        files::touch(&file).map_err(|e| Error::io("cannot touch", &path, e))
    }
}
