//! A queue: a directory of page files.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use super::append::Appender;
use super::{open, snapshot, verify};
use crate::finding::Report;
use crate::os::detached::{Detached, SharedState};
use crate::os::files::OwnName;
use crate::os::handles::Handles;
use crate::os::process;
use crate::quick_queue::format::address::PageSize;
use crate::quick_queue::format::entry::{ENTRY, State};
use crate::quick_queue::format::producer::Producer;
use crate::quick_queue::protocol::directory::{Form, Layout, Span};
use crate::quick_queue::protocol::durable::Durable;
use crate::quick_queue::protocol::end::{end_of_index, is_taken};
use crate::quick_queue::protocol::entries::Entries;
use crate::quick_queue::protocol::pages::Pages;
use crate::quick_queue::protocol::survey::survey;
use crate::quick_queue::read::Tailer;
use crate::snapshot::Snapshot;
use crate::{Error, Result};

/// How to open a queue.
#[derive(Clone, Debug)]
pub struct Options {
    /// Change no byte of the directory.
    pub read_only: bool,
    /// Create the directory if missing.
    pub create: bool,
    /// Page size of a new queue in bytes; by default the original's 1 GiB.
    pub page_bytes: Option<u64>,
    /// Permission bits of new files.
    pub file_mode: u32,
    /// Write on a network file system.
    pub allow_network: bool,
}

/// An open queue; appenders and tailers share it.
pub struct QuickQueue {
    dir: PathBuf,
    own_name: OwnName,
    options: Options,
    generation: u32,
    closed: AtomicBool,
    /// Known once the first page exists.
    layout: OnceLock<Layout>,
    /// How far it was synced by this process.
    durable: SharedState<Option<Durable>>,
    handles: Handles,
}

impl QuickQueue {
    /// Opens the queue in the directory `path`.
    pub fn open(path: &Path, options: Options) -> Result<Arc<Self>> {
        let (dir, own_name, layout) = open::open(path, &options)?;
        Ok(Arc::new(Self {
            dir,
            own_name,
            options,
            generation: process::generation(),
            closed: AtomicBool::new(false),
            layout: layout.map_or_else(OnceLock::new, OnceLock::from),
            durable: SharedState::default(),
            handles: Handles::default(),
        }))
    }

    /// Its directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.dir
    }

    /// Whether it was opened read-only.
    #[must_use]
    pub const fn is_read_only(&self) -> bool {
        self.options.read_only
    }

    /// The options it was opened with.
    #[must_use]
    pub const fn options(&self) -> &Options {
        &self.options
    }

    /// Whether the queue was closed.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// An error when the queue was closed, or belongs to a parent process.
    #[inline]
    pub fn check_open(&self, what: &'static str) -> Result<()> {
        if self.is_forked() {
            return Err(Error::Forked);
        }
        if self.is_closed() { Err(Error::closed(what, &self.dir)) } else { Ok(()) }
    }

    /// Whether it belongs to a parent process: its locks may be held by threads that do not exist
    /// here.
    #[must_use]
    pub fn is_forked(&self) -> bool {
        self.generation != process::generation()
    }

    /// Closes the queue and its handles.
    pub fn close(&self, may_wait: &Detached) {
        if self.closed.swap(true, Ordering::AcqRel) || self.is_forked() {
            return;
        }
        self.handles.close(may_wait);
    }

    /// The single writer of a queue.
    pub fn appender(self: &Arc<Self>, may_wait: &mut Detached) -> Result<Arc<Appender>> {
        self.check_writable("an appender")?;
        let (held, layout) = open::claim_single(may_wait, &self.dir, &self.options)?;
        Ok(self.handles.adopt(Appender::single(self, held, layout, may_wait)?))
    }

    /// The producer of this name.
    pub fn producer(
        self: &Arc<Self>,
        may_wait: &mut Detached,
        name: &str,
    ) -> Result<Arc<Appender>> {
        self.check_writable("an appender")?;
        let producer = Producer::new(name).ok_or_else(|| {
            Error::Invalid(format!(
                "not the name of a producer: name={name:?} expected=3 ASCII letters or digits"
            ))
        })?;
        let (held, layout) = open::claim_producer(may_wait, &self.dir, producer, &self.options)?;
        Ok(self.handles.adopt(Appender::producer(self, held, producer, layout, may_wait)?))
    }

    /// A tailer at the first message.
    pub fn tailer(self: &Arc<Self>, raise_on_dead: bool) -> Result<Arc<Tailer>> {
        self.check_open("queue")?;
        Ok(self.handles.adopt(Tailer::new(Arc::clone(self), raise_on_dead)))
    }

    /// The form and page size; None before the first write.
    pub fn layout(&self) -> Result<Option<Layout>> {
        if let Some(layout) = self.layout.get() {
            return Ok(Some(*layout));
        }
        let found = survey(&self.dir)?.layout(&self.dir)?;
        Ok(found.map(|layout| *self.layout.get_or_init(|| layout)))
    }

    /// Checks every entry and page; nothing is changed.
    pub fn verify(&self) -> Result<Report> {
        match self.layout()? {
            Some(layout) => verify::verify(&self.dir, layout),
            None => Ok(Report::default()),
        }
    }

    /// The content of a copy of the queue.
    pub fn snapshot(&self) -> Result<Snapshot> {
        self.check_open("queue")?;
        match self.layout()? {
            Some(layout) => snapshot::snapshot(&self.dir, layout),
            None => Ok(Snapshot::default()),
        }
    }

    /// The page size of the queue, or of a new one.
    pub fn page_size(&self) -> Result<PageSize> {
        match self.layout()? {
            Some(layout) => Ok(layout.size),
            None => open::page_size(&self.options),
        }
    }

    /// The index of the first message; None while there is none.
    pub fn first_index(&self) -> Result<Option<u64>> {
        let Some(Index { pages, span, form }) = self.index()? else { return Ok(None) };
        let first = pages.size().start_of(span.map_or(0, |span| span.lowest));
        Ok((first < end_of(&pages, span, form)?).then_some(first))
    }

    /// The index of the last message that can be read; None while there is none.
    pub fn last_index(&self) -> Result<Option<u64>> {
        let Some(Index { pages, span, form }) = self.index()? else { return Ok(None) };
        let mut entries = Entries::new(&pages);
        let mut at = end_of(&pages, span, form)?;
        while at > 0 {
            at -= ENTRY;
            match entries.get(at)? {
                Some(entry) if entry.stamp.state() == State::Complete => return Ok(Some(at)),
                Some(_) => {}
                None => return Ok(None),
            }
        }
        Ok(None)
    }

    /// The lowest index that the next message can have.
    pub fn end(&self) -> Result<u64> {
        let Some(Index { pages, span, form }) = self.index()? else { return Ok(0) };
        end_of(&pages, span, form)
    }

    fn index(&self) -> Result<Option<Index>> {
        self.check_open("queue")?;
        let Some(Layout { form, size }) = self.layout()? else { return Ok(None) };
        let span = survey(&self.dir)?.index(form);
        Ok(Some(Index { pages: Pages::index(&self.dir, form, size), span, form }))
    }

    /// Returns when every message of the queue is on the medium, by any writer.
    pub fn sync(&self, may_wait: &Detached) -> Result<()> {
        self.check_writable("force()")?;
        let Some(layout) = self.layout()? else { return Ok(()) };
        let mut durable = self.durable.lock(may_wait);
        durable.get_or_insert_with(|| Durable::new(&self.dir, layout)).sync()?;
        self.own_name.sync(&self.dir)
    }

    fn check_writable(&self, what: &'static str) -> Result<()> {
        self.check_open("queue")?;
        if self.is_read_only() {
            return Err(Error::ReadOnly { what, path: self.dir.clone() });
        }
        Ok(())
    }
}

/// The index of a queue.
struct Index {
    pages: Pages,
    span: Option<Span>,
    form: Form,
}

fn end_of(pages: &Pages, span: Option<Span>, form: Form) -> Result<u64> {
    end_of_index(pages, span, |stamp| is_taken(form, stamp))
}
