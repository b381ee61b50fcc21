//! Reads that may take long: they pause every so often, so that the caller can look for an
//! interrupt while it holds nothing of the tailer, and then go on where they stopped.

use std::time::Instant;

use super::{Ask, AtOnce, OpenDocument, Tailer, wait_toward};
use crate::chronicle::format::table::NO_INDEX;
use crate::{Error, Result};

/// A scan pauses after this many messages, wanted or not.
pub const MESSAGES_BETWEEN_PAUSES: usize = 1 << 16;

/// How far a scan got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scan<T> {
    /// This was found.
    Found(T),
    /// There is nothing yet.
    Nothing,
    /// It is not finished: the same call continues from here.
    Paused,
    /// There are later messages, and only at this instant will it be known whether reading continues
    /// with them, as when a file lacks its end-of-file marker: repeat the call then.
    Held(Instant),
}

impl<T> Scan<T> {
    pub(super) fn map<U>(self, make: impl FnOnce(T) -> U) -> Scan<U> {
        match self {
            Self::Found(found) => Scan::Found(make(found)),
            Self::Nothing => Scan::Nothing,
            Self::Paused => Scan::Paused,
            Self::Held(then) => Scan::Held(then),
        }
    }
}

/// What becomes of a message that a scan hands out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Take {
    /// It is taken.
    This,
    /// It is taken, and it is the last one wanted.
    Last,
    /// It is not stepped over, and the scan ends.
    NotThis,
}

/// Calls `step` until it is through, and waits where it is held up.
fn through<T>(mut step: impl FnMut() -> Result<Scan<T>>) -> Result<Option<T>> {
    loop {
        match step()? {
            Scan::Found(found) => return Ok(Some(found)),
            Scan::Nothing => return Ok(None),
            Scan::Paused => {}
            Scan::Held(then) => wait_toward(then),
        }
    }
}

/// A batch that is being read, in one call or, where a scan pauses, in several.
#[derive(Debug, Default)]
pub struct Reading {
    /// How many messages were taken.
    pub taken: usize,
    is_begun: bool,
    /// The index of the first message taken, and what was read last before it.
    first: i64,
    last_read_before: i64,
    /// How often the tailer had been moved when the batch began.
    moves: u64,
}

impl Reading {
    /// What the next step of this batch asks for.
    #[must_use]
    pub const fn ask(&self) -> Ask {
        if self.is_begun { Ask::OfBatch } else { Ask::First }
    }

    /// What was received before the batch is done, and its first message is prepared.
    pub const fn begin(&mut self) {
        self.is_begun = true;
    }
}

impl Tailer {
    /// As [`Tailer::read_at_once`] for at most `count` messages under one lock. Returns what ended
    /// it before `count`: nothing there yet, or unknown.
    pub fn read_many_at_once(
        &self,
        reading: &mut Reading,
        count: usize,
        take: impl FnMut(&[u8]) -> Result<()>,
    ) -> Result<AtOnce<()>> {
        match self.queue.metrics() {
            None => self.read_many_now(reading, count, take),
            Some(metrics) => self.read_many_counted(metrics, reading, count, take),
        }
    }

    pub(super) fn read_many_now(
        &self,
        reading: &mut Reading,
        count: usize,
        mut take: impl FnMut(&[u8]) -> Result<()>,
    ) -> Result<AtOnce<()>> {
        let Some(mut inner) = self.inner.try_lock() else { return Ok(AtOnce::Unknown) };
        match self.check_open() {
            Err(_) if reading.taken > 0 => return Ok(AtOnce::Nothing),
            checked => checked?,
        }
        let (asked, before) = (reading.ask(), inner.last_read);
        let (mut taken, mut first) = (0, 0);
        let ended = loop {
            if taken == count {
                break Ok(AtOnce::Found(()));
            }
            let ask = if taken == 0 { asked } else { Ask::OfBatch };
            let step = self.step_at_once(&mut inner, ask, |_, bytes| take(bytes));
            if !matches!(step, Ok(AtOnce::Found(()))) {
                break step;
            }
            if taken == 0 {
                first = inner.last_read;
            }
            taken += 1;
        };
        if reading.taken == 0 && taken > 0 {
            reading.start(first, before, inner.moves);
        }
        reading.taken += taken;
        match ended {
            // What was read comes first; the next call meets the error again.
            Err(_) if reading.taken > 0 => Ok(AtOnce::Nothing),
            ended => ended,
        }
    }

    /// Hands messages to `take` until there are `count` in the batch, or `take` ends it.
    pub fn scan_many(
        &self,
        reading: &mut Reading,
        count: usize,
        mut take: impl FnMut(i64, &[u8]) -> Take,
    ) -> Result<Scan<()>> {
        let began = self.queue.metrics().map(|metrics| (metrics, Instant::now()));
        let (before, mut bytes) = (reading.taken, 0);
        let scanned = self.through_buffer(|| {
            self.scan_many_now(reading, count, |index, payload| {
                let taken = take(index, payload);
                if taken != Take::NotThis {
                    bytes += payload.len() as u64;
                }
                taken
            })
        });
        if let Some((metrics, began)) = began {
            metrics.read(began, (reading.taken - before) as u64, bytes);
        }
        match scanned {
            // What was read comes first; the next call meets the error again.
            Err(_) if reading.taken > 0 => Ok(Scan::Nothing),
            scanned => scanned,
        }
    }

    #[inline]
    fn scan_many_now(
        &self,
        reading: &mut Reading,
        count: usize,
        mut take: impl FnMut(i64, &[u8]) -> Take,
    ) -> Result<Scan<()>> {
        let mut inner = match self.enter() {
            // Closed while the scan paused: what was read comes first.
            Err(_) if reading.taken > 0 => return Ok(Scan::Nothing),
            entered => entered?,
        };
        if reading.ask() == Ask::First {
            self.finish(&mut inner)?;
            reading.begin();
        }
        let mut looks = MESSAGES_BETWEEN_PAUSES;
        while reading.taken < count {
            let document = match inner.find_message(&self.queue, &mut looks) {
                Ok(Scan::Found(document)) => document,
                Ok(end) => return Ok(end.map(drop)),
                Err(error) => return Err(error),
            };
            let index = inner.cursor.index(&self.queue)?;
            let taken = take(index, inner.cursor.payload(&document));
            if taken == Take::NotThis {
                break;
            }
            if reading.taken == 0 {
                reading.start(index, inner.last_read, inner.moves);
            }
            inner.cursor.step_over(&self.queue, &document)?;
            inner.unfinished = true;
            inner.last_read = index;
            reading.taken += 1;
            if taken == Take::Last {
                break;
            }
        }
        Ok(Scan::Found(()))
    }

    /// As [`Tailer::scan_many`] without a pause; returns how many were taken. `take` ends it by
    /// returning false: then the message it was given last is not stepped over.
    pub fn read_many(
        &self,
        count: usize,
        mut take: impl FnMut(i64, &[u8]) -> bool,
    ) -> Result<usize> {
        let mut reading = Reading::default();
        through(|| {
            self.scan_many(&mut reading, count, |index, bytes| {
                if take(index, bytes) { Take::This } else { Take::NotThis }
            })
        })?;
        Ok(reading.taken)
    }

    /// Opens the next document; [`Tailer::close_document`] steps over it.
    pub fn scan_document(&self, include_metadata: bool) -> Result<Scan<OpenDocument>> {
        self.through_buffer(|| {
            let mut inner = self.enter()?;
            self.open_locked(&mut inner, Ask::First, include_metadata)
        })
    }

    /// As [`Tailer::scan_document`] without a pause.
    pub fn open_document(&self, include_metadata: bool) -> Result<Option<OpenDocument>> {
        through(|| self.scan_document(include_metadata))
    }

    /// Goes back to the first message of a batch that is not delivered after all, unless the tailer
    /// was moved or closed since.
    pub fn put_back(&self, reading: &Reading) -> Result<()> {
        if reading.taken == 0 {
            return Ok(());
        }
        let mut inner = match self.enter() {
            Err(Error::Closed { .. }) => return Ok(()),
            entered => entered?,
        };
        if inner.moves != reading.moves {
            return Ok(());
        }
        inner.cursor.move_to_index(&self.queue, reading.first)?;
        inner.last_read = reading.last_read_before;
        inner.turn_back();
        Ok(())
    }
}

impl Reading {
    const fn start(&mut self, first: i64, last_read_before: i64, moves: u64) {
        (self.is_begun, self.first) = (true, first);
        (self.last_read_before, self.moves) = (last_read_before, moves);
    }
}

impl Tailer {
    /// The index of the message stepped over last.
    pub fn last_read_index(&self) -> Result<Option<i64>> {
        let last = self.enter()?.last_read;
        Ok((last != NO_INDEX).then_some(last))
    }
}
