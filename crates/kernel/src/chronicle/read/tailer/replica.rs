//! Reading for a replica: documents as they are in the files, including metadata
//! (`docs/replication.md`).

use super::step::MESSAGES_BETWEEN_PAUSES;
use super::{Ask, Found, How, Inner, Scan, State, Tailer, What};
use crate::Result;
use crate::chronicle::format::batch::{BatchWriter, ReplicaEnd};
use crate::chronicle::format::document::HEADER_LEN;
use crate::os::detached::Detached;

/// Documents for a replica, as one batch.
pub struct Sent {
    /// The bytes of the batch.
    pub batch: Vec<u8>,
    /// Where the replica ends after applying it.
    pub end: ReplicaEnd,
}

/// What a step did with a document.
enum Taken {
    This,
    /// Skipped: it belongs to its file.
    Passed,
    /// Left: it belongs to a later cycle.
    NotThis,
}

impl Tailer {
    /// Goes to where a replica ends; false if this queue has no such place.
    pub fn go_to_end_of_replica(&self, may_wait: &Detached, end: ReplicaEnd) -> Result<bool> {
        let (cycle, sequence) = self.queue.roll().split(end.next)?;
        if sequence > 0 && !self.move_to_index(may_wait, end.next - 1)? {
            return Ok(false);
        }
        let mut inner = self.enter(may_wait)?;
        inner.see_all();
        if sequence == 0 && !inner.cursor.go_to_start_of(&self.queue, cycle)? {
            return Ok(false);
        }
        let (mut messages, mut metadata) = (u64::from(sequence > 0), end.metadata);
        while messages > 0 || metadata > 0 {
            let step = self.next_document(may_wait, &mut inner, |found| {
                Ok(match (found.is_metadata(), found.is_of_file()) {
                    (true, true) => (true, true),
                    (true, false) if messages == 0 => {
                        metadata -= 1;
                        (true, true)
                    }
                    (false, _) if messages > 0 => {
                        messages -= 1;
                        (true, true)
                    }
                    _ => (false, false),
                })
            })?;
            if !matches!(step, Scan::Found(true)) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The documents of one cycle after `from`, where the replica ends and the tailer is, up to
    /// about `most_bytes`, and only before the message `until`, if given. An empty batch says that
    /// the cycle has ended.
    pub fn read_for_replica(
        &self,
        may_wait: &Detached,
        from: ReplicaEnd,
        most_bytes: usize,
        until: Option<i64>,
    ) -> Result<Scan<Sent>> {
        let mut inner = self.enter(may_wait)?;
        inner.see_all();
        let (cycle_before, _) = self.queue.roll().split(from.next)?;
        let mut batch = BatchWriter::new(from.metadata);
        let mut cycle = None;
        let end = loop {
            if batch.len() >= most_bytes {
                break Scan::Paused;
            }
            let step = self.next_document(may_wait, &mut inner, |found| {
                let (its, _) = self.queue.roll().split(found.index)?;
                if cycle.is_none_or(|cycle| cycle == its) && found.is_of_file() {
                    return Ok((Taken::Passed, true));
                }
                if *cycle.get_or_insert(its) != its || until.is_some_and(|it| found.index >= it) {
                    return Ok((Taken::NotThis, false));
                }
                if batch.is_empty() {
                    batch.begin(found.index, its != cycle_before);
                }
                batch.add(found.is_metadata(), |out| found.append_to(out))?;
                Ok((Taken::This, true))
            });
            match step {
                Ok(Scan::Found(Taken::This | Taken::Passed)) => {}
                Ok(Scan::Held(then)) => break Scan::Held(then),
                Ok(Scan::Paused) => break Scan::Paused,
                Ok(_) => break Scan::Nothing,
                // Return the documents read so far; the next call meets the error again.
                Err(_) if !batch.is_empty() => break Scan::Paused,
                Err(error) => return Err(error),
            }
        };
        let left =
            |cycle| inner.cursor.cycle() != cycle || inner.cursor.state() == State::EndOfCycle;
        let is_ended = left(cycle.unwrap_or(cycle_before));
        if batch.is_empty() {
            if from.is_ended || !is_ended {
                return Ok(end);
            }
            batch.begin(from.next, false);
        }
        let (batch, end) = batch.finish(is_ended);
        Ok(Scan::Found(Sent { batch, end }))
    }

    fn next_document<R>(
        &self,
        may_wait: &Detached,
        inner: &mut Inner,
        take: impl FnOnce(Found<'_>) -> Result<(R, bool)>,
    ) -> Result<Scan<R>> {
        let mut looks = MESSAGES_BETWEEN_PAUSES;
        self.advance(
            inner,
            What::document(Ask::OfBatch, true).as_stored(),
            How::Wait(may_wait),
            &mut looks,
            take,
        )
    }
}

impl Inner {
    /// Removes the limit to acknowledged messages, since this reads for a replica.
    fn see_all(&mut self) {
        if self.acknowledged.take().is_some() {
            self.cursor.set_looked_through(self.filter.is_some());
        }
    }
}

impl Found<'_> {
    /// It is metadata.
    const fn is_metadata(&self) -> bool {
        self.message.document.is_metadata
    }

    /// It is metadata that belongs to its file.
    fn is_of_file(&self) -> bool {
        self.cursor.is_of_file(&self.message.document)
    }

    /// Appends the payload to `out`.
    fn append_to(&self, out: &mut Vec<u8>) -> Result<()> {
        if self.is_metadata() {
            return self.copy_to(out, self.message.document.length);
        }
        out.extend_from_slice(self.bytes());
        Ok(())
    }

    /// Appends the start of the payload of metadata, whose words may change meanwhile.
    fn copy_to(&self, out: &mut Vec<u8>, length: u32) -> Result<()> {
        let region = self.cursor.region().ok_or_else(|| self.tailer.closed())?;
        let position = self.message.document.position + HEADER_LEN;
        region.append_to_relaxed(out, position, u64::from(length))
    }
}
