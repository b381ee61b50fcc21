//! Reading many messages with one call.

use super::step::{MESSAGES_BETWEEN_PAUSES, through};
use super::{Ask, How, Inner, Scan, Tailer, Take, What};
use crate::chronicle::read::position::Stretch;
use crate::metrics::Timer;
use crate::os::detached::Detached;
use crate::sealed::packed;
use crate::{Error, Result};

/// A batch that is being read, in one call or, with pauses, in several.
#[derive(Debug, Default)]
pub struct Reading {
    /// How many messages were taken.
    pub taken: usize,
    is_begun: bool,
    /// The index of the first message taken, and of the message read before it.
    first: i64,
    last_read_before: i64,
    /// How often the tailer had been moved when the batch began.
    moves: u64,
}

impl Reading {
    /// The request of this batch's next step.
    #[must_use]
    pub const fn ask(&self) -> Ask {
        if self.is_begun { Ask::OfBatch } else { Ask::First }
    }

    /// Notes that the batch has begun: earlier messages are processed, and its first one is
    /// prepared.
    pub const fn begin(&mut self) {
        self.is_begun = true;
    }

    const fn start(&mut self, first: i64, last_read_before: i64, moves: u64) {
        (self.is_begun, self.first) = (true, first);
        (self.last_read_before, self.moves) = (last_read_before, moves);
    }
}

impl Tailer {
    /// Calls `take` with messages until the batch has `count`, or `take` ends it.
    pub fn read_batch(
        &self,
        reading: &mut Reading,
        count: usize,
        how: How<'_>,
        mut take: impl FnMut(i64, &[u8]) -> Result<Take>,
    ) -> Result<Scan<()>> {
        let timer = Timer::start(self.queue.metrics());
        let (before, mut bytes) = (reading.taken, 0);
        let read = match how {
            How::Try => self.read_some(reading, count, how, &mut bytes, take),
            How::Wait(may_wait) => self.through_buffer(may_wait, || {
                self.read_waiting(may_wait, reading, count, &mut bytes, &mut take)
            }),
        };
        timer.read((reading.taken - before) as u64, bytes);
        match read {
            // Return the messages read so far; the next call meets the error again.
            Err(_) if reading.taken > 0 => Ok(Scan::Nothing),
            read => read,
        }
    }

    /// Reads by tries, which cost less per message. If a try would have to wait, a step that may
    /// wait reads one message, and twice as many each time that tries fail at once, as with a
    /// filter.
    fn read_waiting(
        &self,
        may_wait: &Detached,
        reading: &mut Reading,
        count: usize,
        bytes: &mut u64,
        mut take: impl FnMut(i64, &[u8]) -> Result<Take>,
    ) -> Result<Scan<()>> {
        let until = count.min(reading.taken.saturating_add(MESSAGES_BETWEEN_PAUSES));
        let mut step = 1_usize;
        loop {
            let (mut became, before) = (Take::This, reading.taken);
            let mut noted = |index, bytes: &[u8]| {
                became = take(index, bytes)?;
                Ok(became)
            };
            let tried = self.read_some(reading, until, How::Try, bytes, &mut noted)?;
            let read = if tried == Scan::WouldWait {
                step = if reading.taken > before { 1 } else { step.saturating_mul(2) };
                let next = until.min(reading.taken.saturating_add(step));
                self.read_some(reading, next, How::Wait(may_wait), bytes, &mut noted)?
            } else {
                tried
            };
            match read {
                Scan::Found(()) if became != Take::This || reading.taken == count => {
                    return Ok(read);
                }
                Scan::Found(()) if reading.taken == until => return Ok(Scan::Paused),
                Scan::Found(()) => {}
                end => return Ok(end),
            }
        }
    }

    #[inline]
    fn read_some(
        &self,
        reading: &mut Reading,
        count: usize,
        how: How<'_>,
        bytes: &mut u64,
        mut take: impl FnMut(i64, &[u8]) -> Result<Take>,
    ) -> Result<Scan<()>> {
        let Some((mut inner, _)) = self.enter_to(how)? else { return Ok(Scan::WouldWait) };
        let (mut ask, mut taken, before) = (reading.ask(), reading.taken, inner.last_read);
        let mut looks = MESSAGES_BETWEEN_PAUSES;
        let ended = loop {
            if taken >= count {
                break Ok(Scan::Found(()));
            }
            let step = self.advance(&mut inner, What::message(ask), how, &mut looks, |found| {
                let taken = take(found.index, found.bytes())?;
                let is_taken = taken != Take::NotThis;
                if is_taken {
                    *bytes += u64::from(found.message.document.length);
                }
                Ok((taken, is_taken))
            });
            let became = match step {
                Ok(Scan::Found(Take::NotThis)) => break Ok(Scan::Found(())),
                Ok(Scan::Found(became)) => became,
                ended => break ended.map(|end| end.map(drop)),
            };
            if taken == 0 {
                reading.start(inner.last_read, before, inner.moves);
                ask = Ask::OfBatch;
            }
            taken += 1;
            if became == Take::Last {
                break Ok(Scan::Found(()));
            }
            if let How::Try = how {
                let stretch = self.take_stretch(&mut inner, count - taken, bytes, &mut take);
                taken += stretch.taken;
                match stretch.became {
                    Ok(Take::This) => {}
                    ended => break ended.map(|_| Scan::Found(())),
                }
            }
        };
        reading.taken = taken;
        ended
    }

    /// Calls `take` with the following messages, if found without waiting and stored as given.
    #[inline]
    fn take_stretch(
        &self,
        inner: &mut Inner,
        count: usize,
        bytes: &mut u64,
        take: &mut impl FnMut(i64, &[u8]) -> Result<Take>,
    ) -> Stretch {
        if self.queue.options().encryption.is_on() {
            return Stretch::default();
        }
        let stretch = inner.cursor.take_stretch(&self.queue, count, |index, stored| {
            if packed::may_be_packed(stored) {
                return Ok(None);
            }
            let became = take(index, stored)?;
            *bytes += if became == Take::NotThis { 0 } else { stored.len() as u64 };
            Ok(Some(became))
        });
        if stretch.taken > 0 {
            (inner.unfinished, inner.last_read) = (true, stretch.last);
        }
        stretch
    }

    /// Like [`Tailer::read_batch`] without pauses; returns how many were taken. `take` ends it by
    /// returning false: its last message is then not stepped over.
    pub fn read_many(
        &self,
        may_wait: &Detached,
        count: usize,
        mut take: impl FnMut(i64, &[u8]) -> bool,
    ) -> Result<usize> {
        let mut reading = Reading::default();
        through(may_wait, || {
            self.read_batch(&mut reading, count, How::Wait(may_wait), |index, bytes| {
                Ok(if take(index, bytes) { Take::This } else { Take::NotThis })
            })
        })?;
        Ok(reading.taken)
    }

    /// Goes back to the first message of a batch that is not delivered after all, unless the tailer
    /// was moved or closed since.
    pub fn put_back(&self, may_wait: &Detached, reading: &Reading) -> Result<()> {
        if reading.taken == 0 {
            return Ok(());
        }
        let mut inner = match self.enter(may_wait) {
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
