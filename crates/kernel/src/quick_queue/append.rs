//! Appenders: the single writer of a queue, or one of its named producers.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::queue::QuickQueue;
use crate::os::detached::{Detached, SharedState};
use crate::os::handles::Handle;
use crate::os::locked_file::LockedFile;
use crate::quick_queue::format::entry::MESSAGE_MAX;
use crate::quick_queue::format::producer::Producer;
use crate::quick_queue::protocol::directory::Layout;
use crate::quick_queue::protocol::shared::Shared;
use crate::quick_queue::protocol::single::Single;
use crate::{Error, Result};

/// Writes messages at the end of a queue; one thread at a time.
pub struct Appender {
    queue: Arc<QuickQueue>,
    producer: Option<Producer>,
    writer: SharedState<Option<Writer>>,
    /// Outside the state, so that checking it does not wait for a writer.
    is_closed: AtomicBool,
}

enum Writer {
    Single(Single),
    Shared(Shared),
}

impl Writer {
    #[inline]
    fn append(&mut self, message: &[u8], may_wait: &Detached) -> Result<u64> {
        match self.append_or_turn(message, Some(may_wait))? {
            Some(index) => Ok(index),
            None => unreachable!("a page that was waited for is open"),
        }
    }

    /// Appends a message; None if the next page is not open and the thread may not wait for it.
    #[inline]
    fn append_or_turn(
        &mut self,
        message: &[u8],
        may_wait: Option<&Detached>,
    ) -> Result<Option<u64>> {
        let length = checked_length(message)?;
        match self {
            Self::Single(writer) => writer.append(message, length, may_wait),
            Self::Shared(writer) => writer.append(message, length, may_wait),
        }
    }
}

impl Handle for Appender {
    fn close_with_queue(&self, may_wait: &Detached) {
        self.close(may_wait);
    }
}

impl Appender {
    pub(super) fn single(
        queue: &Arc<QuickQueue>,
        held: LockedFile,
        layout: Layout,
        may_wait: &Detached,
    ) -> Result<Self> {
        let mode = queue.options().file_mode;
        let writer = Single::open(held, queue.path(), layout.size, mode, may_wait)?;
        Ok(Self::new(queue, None, Writer::Single(writer)))
    }

    pub(super) fn producer(
        queue: &Arc<QuickQueue>,
        held: (LockedFile, LockedFile),
        name: Producer,
        layout: Layout,
        may_wait: &Detached,
    ) -> Result<Self> {
        let mode = queue.options().file_mode;
        let writer = Shared::open(held, name, queue.path(), layout.size, mode, may_wait)?;
        Ok(Self::new(queue, Some(name), Writer::Shared(writer)))
    }

    fn new(queue: &Arc<QuickQueue>, producer: Option<Producer>, writer: Writer) -> Self {
        let (queue, is_closed) = (Arc::clone(queue), AtomicBool::new(false));
        Self { queue, producer, writer: SharedState::new(Some(writer)), is_closed }
    }

    /// The queue.
    #[must_use]
    pub const fn queue(&self) -> &Arc<QuickQueue> {
        &self.queue
    }

    /// The producer's name; None for the single writer.
    #[must_use]
    pub const fn name(&self) -> Option<Producer> {
        self.producer
    }

    /// The directory of the queue.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.queue.path()
    }

    /// Appends a message; returns its index.
    #[inline]
    pub fn append(&self, may_wait: &Detached, message: &[u8]) -> Result<u64> {
        self.with_writer(may_wait, |writer| writer.append(message, may_wait))
    }

    /// Like [`Appender::append`]; None if another thread is appending, or the next page must be
    /// opened.
    #[inline]
    pub fn try_append(&self, message: &[u8]) -> Option<Result<u64>> {
        if let Err(error) = self.queue.check_open("appender") {
            return Some(Err(error));
        }
        let mut writer = self.writer.try_lock()?;
        let closed = || Error::closed("appender", self.path());
        let writer = writer.as_mut().ok_or_else(closed);
        writer.and_then(|writer| writer.append_or_turn(message, None)).transpose()
    }

    /// Appends messages; returns the index of the last one. Messages before a failed one stay.
    pub fn append_all<'m>(
        &self,
        may_wait: &Detached,
        messages: impl Iterator<Item = Result<&'m [u8]>>,
    ) -> Result<Option<u64>> {
        self.with_writer(may_wait, |writer| {
            let mut last = None;
            for message in messages {
                last = Some(writer.append(message?, may_wait)?);
            }
            Ok(last)
        })
    }

    /// Returns when every message of the queue is on the medium.
    pub fn sync(&self, may_wait: &Detached) -> Result<()> {
        self.with_writer(may_wait, |_| Ok(()))?;
        self.queue.sync(may_wait)
    }

    /// Whether the appender was closed.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.queue.is_closed() || self.is_closed.load(Ordering::Acquire)
    }

    /// Closes it; another one may be opened.
    pub fn close(&self, may_wait: &Detached) {
        self.is_closed.store(true, Ordering::Release);
        if !self.queue.is_forked() {
            *self.writer.lock(may_wait) = None;
        }
    }

    #[inline]
    fn with_writer<T>(
        &self,
        may_wait: &Detached,
        act: impl FnOnce(&mut Writer) -> Result<T>,
    ) -> Result<T> {
        self.queue.check_open("appender")?;
        let mut writer = self.writer.lock(may_wait);
        let writer = writer.as_mut().ok_or_else(|| Error::closed("appender", self.path()))?;
        act(writer)
    }
}

#[inline]
fn checked_length(message: &[u8]) -> Result<u32> {
    match u32::try_from(message.len()) {
        Ok(0) => Err(Error::Invalid("a message holds at least one byte: length=0".into())),
        Ok(length) if length <= MESSAGE_MAX => Ok(length),
        _ => Err(Error::MessageTooLong { length: message.len() as u64, limit: MESSAGE_MAX.into() }),
    }
}
