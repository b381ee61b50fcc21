//! One step of a tailer: it finds the next document, hands it out, and steps over it.
//!
//! Steps that may take long pause now and then, so that the caller can check for an interrupt
//! without holding the tailer, and then continue where they stopped.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::document::Message;
use super::{
    Ask, DocumentPlace, Entered, Found, How, Inner, OpenDocument, Scan, Tailer, What, wait_toward,
};
use crate::chronicle::format::document::HEADER_LEN;
use crate::chronicle::format::table::NO_INDEX;
use crate::chronicle::protocol::roll_file::Document;
use crate::chronicle::queue::handle::Queue;
use crate::chronicle::read::position::Direction;
use crate::metrics::Timer;
use crate::os::detached::Detached;
use crate::sealed::cipher::{self, Encryption};
use crate::sealed::packed;
use crate::waiting::side_file::SideFile;
use crate::waiting::wait::{Look, Place};
use crate::{Error, Result};

/// A step pauses after this many messages, wanted or not.
pub const MESSAGES_BETWEEN_PAUSES: usize = 1 << 16;

/// Calls `step` until it is finished, and waits while reading is stalled.
pub(super) fn through<T>(
    may_wait: &Detached,
    mut step: impl FnMut() -> Result<Scan<T>>,
) -> Result<Option<T>> {
    loop {
        match step()? {
            Scan::Found(found) => return Ok(Some(found)),
            Scan::Nothing => return Ok(None),
            Scan::Held(then) => wait_toward(may_wait, then),
            Scan::Paused | Scan::WouldWait => {}
        }
    }
}

impl Tailer {
    /// Calls `take` with the next document and steps over it, unless `stays` is set or `take`
    /// fails. If a step that only tries [would wait](Scan::WouldWait), a waiting step with `stays`
    /// leaves the document prepared for the next try.
    #[inline]
    pub fn step<R>(
        &self,
        what: What,
        how: How<'_>,
        mut take: impl FnMut(Found<'_>) -> Result<R>,
    ) -> Result<Scan<R>> {
        match how {
            How::Try => self.step_once(what, how, take),
            How::Wait(may_wait) => {
                self.through_buffer(may_wait, || self.step_once(what, how, &mut take))
            }
        }
    }

    #[expect(clippy::inline_always, reason = "once a message, and each caller tries or waits")]
    #[inline(always)]
    fn step_once<R>(
        &self,
        what: What,
        how: How<'_>,
        take: impl FnOnce(Found<'_>) -> Result<R>,
    ) -> Result<Scan<R>> {
        let Some((mut inner, timer)) = self.enter_to(how)? else { return Ok(Scan::WouldWait) };
        let (mut looks, mut counted) = (MESSAGES_BETWEEN_PAUSES, None);
        let found = self.advance(&mut inner, what, how, &mut looks, |found| {
            if !what.include_metadata || !found.message.document.is_metadata {
                counted = Some(u64::from(found.message.document.length));
            }
            take(found).map(|taken| (taken, !what.stays))
        })?;
        if let (Scan::Found(_), Some(length), false) = (&found, counted, what.stays) {
            timer.read(1, length);
        }
        Ok(found)
    }

    /// Finds the next document and calls `take` with it; steps over it if `take` says so,
    /// otherwise leaves it for the next step.
    #[expect(clippy::inline_always, reason = "once a message, and each caller tries or waits")]
    #[inline(always)]
    pub(super) fn advance<R>(
        &self,
        inner: &mut Inner,
        what: What,
        how: How<'_>,
        looks: &mut usize,
        take: impl FnOnce(Found<'_>) -> Result<(R, bool)>,
    ) -> Result<Scan<R>> {
        let message = match self.find(inner, what, how, looks)?.or_end() {
            Ok(message) => message,
            Err(end) => return Ok(end),
        };
        let index = inner.cursor.index(&self.queue)?;
        let is_metadata = what.include_metadata && message.document.is_metadata;
        let stored = if is_metadata { &[] } else { inner.cursor.payload(&message.document) };
        let plain = if what.stored {
            None
        } else {
            inner.opened(&self.queue, &message.document, stored, index)?
        };
        let (cursor, message, plain) = (&inner.cursor, &message, plain.as_deref());
        let bytes = message.after_key(plain.unwrap_or(stored));
        let (taken, is_taken) = take(Found { index, tailer: self, cursor, message, bytes, plain })?;
        if is_taken {
            inner.step_over(&self.queue, &message.document, (!is_metadata).then_some(index))?;
        } else if !is_metadata {
            inner.prepared = Some(*message);
        }
        Ok(Scan::Found(taken))
    }

    #[expect(clippy::inline_always, reason = "once a message, and each caller tries or waits")]
    #[inline(always)]
    fn find(
        &self,
        inner: &mut Inner,
        what: What,
        how: How<'_>,
        looks: &mut usize,
    ) -> Result<Scan<Message>> {
        let What { ask, include_metadata, .. } = what;
        if let How::Wait(may_wait) = how {
            return self.find_waiting(may_wait, inner, what, looks);
        }
        if ask == Ask::First && !self.finish(how, inner)? {
            return Ok(Scan::WouldWait);
        }
        // Checked before taking: there hardly ever is one.
        if inner.prepared.is_some()
            && let Some(prepared) = inner.prepared.take()
        {
            return Ok(Scan::Found(prepared));
        }
        Ok(match inner.cursor.try_find(&self.queue, include_metadata) {
            // With a filter, a try never finds anything.
            Scan::Found(document) => Scan::Found(Message { document, start: 0 }),
            Scan::Nothing => self.at_end(inner),
            _ => Scan::WouldWait,
        })
    }

    #[inline(never)]
    fn find_waiting(
        &self,
        may_wait: &Detached,
        inner: &mut Inner,
        what: What,
        looks: &mut usize,
    ) -> Result<Scan<Message>> {
        if what.ask == Ask::First {
            self.finish(How::Wait(may_wait), inner)?;
        }
        inner.find(&self.queue, what.include_metadata, looks)
    }

    /// Locks the tailer; None if a step that only tries would have to wait.
    #[expect(clippy::inline_always, reason = "once a message, and each caller tries or waits")]
    #[inline(always)]
    pub(super) fn enter_to<'a>(&'a self, how: How<'a>) -> Result<Option<(Entered<'a>, Timer<'a>)>> {
        if let How::Wait(may_wait) = how {
            let timer = Timer::start(self.queue.metrics());
            return Ok(Some((self.enter(may_wait)?, timer)));
        }
        let Some(inner) = self.inner.try_lock() else { return Ok(None) };
        self.queue.check_open("queue")?;
        let is_special = self.is_special.load(Ordering::Acquire);
        Ok(Some((inner, if is_special { self.begin()? } else { Timer::default() })))
    }

    /// Begins a try of a tailer that was closed, or that counts.
    #[cold]
    fn begin(&self) -> Result<Timer<'_>> {
        self.check_open()?;
        Ok(Timer::start(self.queue.metrics()))
    }

    /// Polls for the next message up to `looks` times: a poll costs a few nanoseconds, a call from
    /// Python many. Paused if there was none yet. The position stays. If `how` is a try, omits the
    /// processor's pause between polls, which takes longer than a poll.
    pub fn spin(&self, how: How<'_>, looks: usize) -> Result<Scan<()>> {
        let next = What::message(Ask::First).staying();
        for _ in 0..looks {
            let found = match (self.step(next, How::Try, |_| Ok(()))?, how) {
                (Scan::WouldWait, How::Wait(_)) => self.step(next, how, |_| Ok(()))?,
                (found, _) => found,
            };
            match (found, how) {
                (Scan::Nothing, How::Try) => {}
                (Scan::Nothing, How::Wait(_)) => std::hint::spin_loop(),
                (found_or_paused, _) => return Ok(found_or_paused),
            }
        }
        Ok(Scan::Paused)
    }

    /// Whether a sleeping reader should wake. Received messages stay unprocessed. A tailer that
    /// another thread is using is skipped, and polled again soon.
    fn has_news(&self, may_wait: &Detached) -> bool {
        let next = What::message(Ask::OfBatch).staying();
        let found = match self.step(next, How::Try, |_| Ok(())) {
            // Reading through a buffer may wait for the write lock, so it is left to the reader.
            Ok(Scan::WouldWait) if self.buffer.is_none() => match self.inner.try_lock() {
                Some(inner) => {
                    drop(inner);
                    self.step(next, How::Wait(may_wait), |_| Ok(()))
                }
                None => return false,
            },
            found => found,
        };
        !matches!(found, Ok(Scan::Nothing | Scan::Held(_)))
    }

    /// The next document, which [`Tailer::close_document`] then steps over.
    pub fn open_document(
        &self,
        may_wait: &Detached,
        include_metadata: bool,
    ) -> Result<Option<OpenDocument>> {
        let next = What::document(Ask::First, include_metadata).staying();
        through(may_wait, || self.step(next, How::Wait(may_wait), |found| found.open()))
    }

    /// Steps over an open document, unless the tailer was moved meanwhile, and stores the position.
    pub fn close_document(&self, may_wait: &Detached, open: &OpenDocument) -> Result<()> {
        let timer = Timer::start(self.queue.metrics());
        let mut inner = self.enter(may_wait)?;
        let DocumentPlace { document, index, .. } = open.place();
        if inner.cursor.is_at(document) {
            let index = (!document.is_metadata).then_some(*index);
            inner.step_over(&self.queue, document, index)?;
        }
        if !document.is_metadata {
            timer.read(1, u64::from(document.length));
        }
        self.finish(How::Wait(may_wait), &mut inner).map(drop)
    }

    /// Goes back to a document that was stepped over but not processed.
    pub fn return_to(&self, may_wait: &Detached, place: &DocumentPlace) -> Result<()> {
        let mut inner = self.enter(may_wait)?;
        inner.cursor.return_to(&self.queue, &place.document, place.index)?;
        inner.turn_back();
        Ok(())
    }

    /// The file and the position of a document, for messages to users.
    #[must_use]
    pub fn place_of(&self, place: &DocumentPlace) -> (String, u64) {
        let split = self.queue.roll().split(place.index);
        let file = split.and_then(|(cycle, _)| self.queue.file_for_cycle(cycle));
        (file.map(|file| file.display().to_string()).unwrap_or_default(), place.document.position)
    }

    /// The index of the message stepped over last.
    pub fn last_read_index(&self, may_wait: &Detached) -> Result<Option<i64>> {
        let last = self.enter(may_wait)?.last_read;
        Ok((last != NO_INDEX).then_some(last))
    }
}

impl Look for Tailer {
    fn is_due(&self, may_wait: &Detached) -> bool {
        self.has_news(may_wait)
    }

    fn place(&self) -> Option<Place> {
        let inner = self.inner.try_lock()?;
        let goes_on = inner.cursor.direction() == Direction::Forward && inner.filter.is_none();
        let queue = Arc::as_ptr(&self.queue) as usize;
        (goes_on && self.buffer.is_none()).then(|| {
            let (cycle, position) = inner.cursor.place_in_queue();
            (queue, cycle, position)
        })
    }

    fn side_file(&self, may_wait: &Detached) -> Option<Arc<SideFile>> {
        self.queue.side_file_to_wait_at(may_wait)
    }
}

impl Inner {
    /// Steps over a document; a message has an index. It counts as processed when the next one is
    /// requested.
    #[inline]
    fn step_over(&mut self, queue: &Queue, document: &Document, index: Option<i64>) -> Result<()> {
        self.cursor.step_over(queue, document)?;
        self.unfinished = true;
        if let Some(index) = index {
            self.last_read = index;
        }
        Ok(())
    }

    /// The next document, not stepped over. `looks` is reduced by one per message examined.
    fn find(
        &mut self,
        queue: &Queue,
        include_metadata: bool,
        looks: &mut usize,
    ) -> Result<Scan<Message>> {
        while *looks > 0 {
            *looks -= 1;
            match self.cursor.find(queue, include_metadata)? {
                Some(document) if !self.may_see(queue)? => {
                    let is_backward = self.cursor.direction() == Direction::Backward;
                    if !is_backward || !self.pass(queue, &document)? {
                        return Ok(Scan::Nothing);
                    }
                }
                Some(document) if !document.is_metadata && !self.is_wanted(queue, &document)? => {
                    if !self.pass(queue, &document)? {
                        return Ok(Scan::Nothing);
                    }
                }
                Some(document) => {
                    let start = if document.is_metadata { 0 } else { self.start() };
                    return Ok(Scan::Found(Message { document, start }));
                }
                None => return Ok(self.cursor.decides_at().map_or(Scan::Nothing, Scan::Held)),
            }
        }
        Ok(Scan::Paused)
    }

    /// Whether the document found last may be seen: metadata like the message after it.
    fn may_see(&mut self, queue: &Queue) -> Result<bool> {
        let Some(acknowledged) = self.acknowledged.as_mut() else { return Ok(true) };
        acknowledged.allows(queue, self.cursor.index(queue)?)
    }

    /// Where the message found last begins in its payload.
    fn start(&self) -> u32 {
        self.filter.as_ref().and_then(|filter| filter.found).map_or(0, |it| it.start)
    }

    fn is_wanted(&mut self, queue: &Queue, document: &Document) -> Result<bool> {
        if self.filter.is_none() {
            return Ok(true);
        }
        let stored = self.cursor.payload(document);
        let plain = self.opened(queue, document, stored, self.cursor.index(queue)?)?;
        let Some(filter) = self.filter.as_mut() else { return Ok(true) };
        filter.found = filter.topics.find(plain.as_deref().unwrap_or(stored));
        Ok(filter.found.is_some())
    }

    /// The decoded content of an encrypted or compressed document; None if it is neither. `stored`
    /// is the payload of a message.
    #[expect(clippy::inline_always, reason = "once a message: a call costs 5 %")]
    #[inline(always)]
    fn opened(
        &self,
        queue: &Queue,
        document: &Document,
        stored: &[u8],
        index: i64,
    ) -> Result<Option<Vec<u8>>> {
        if packed::may_be_packed(stored) || queue.options().encryption.is_on() {
            self.open(queue, document, stored, index)
        } else {
            Ok(None)
        }
    }

    #[cold]
    #[inline(never)]
    fn open(
        &self,
        queue: &Queue,
        document: &Document,
        stored: &[u8],
        index: i64,
    ) -> Result<Option<Vec<u8>>> {
        if document.is_metadata {
            return self.decrypted_metadata(queue, document, index);
        }
        queue.opened_message(stored, index)
    }

    fn decrypted_metadata(
        &self,
        queue: &Queue,
        document: &Document,
        index: i64,
    ) -> Result<Option<Vec<u8>>> {
        let cipher = match &queue.options().encryption {
            Encryption::No => return Ok(None),
            Encryption::By(cipher) => cipher,
            Encryption::WithoutKey => {
                return Err(Error::Encrypted { path: queue.path().to_path_buf() });
            }
        };
        if self.cursor.is_of_file(document) {
            return Ok(None);
        }
        let Some(region) = self.cursor.region() else { return Ok(None) };
        let mut stored = Vec::new();
        let (position, length) = (document.position + HEADER_LEN, u64::from(document.length));
        region.append_to_relaxed(&mut stored, position, length)?;
        cipher.open(cipher::Place { cycle: self.cursor.cycle(), index, is_metadata: true }, &stored)
    }

    /// Steps over an unwanted message; false if the direction is none.
    fn pass(&mut self, queue: &Queue, document: &Document) -> Result<bool> {
        self.cursor.step_over(queue, document)?;
        Ok(self.cursor.direction() != Direction::None)
    }
}
