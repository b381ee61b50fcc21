//! The end of a replica: documents are appended where they are in the source.

use super::End;
use crate::chronicle::append::lost_tail;
use crate::chronicle::format::batch::{self, Batch, Document, ReplicaEnd};
use crate::chronicle::format::table::{LAST_ACKNOWLEDGED, NORMALISED_TO};
use crate::chronicle::protocol::locate;
use crate::chronicle::protocol::lock::guard::DetachedGuard;
use crate::chronicle::protocol::publish::Payload;
use crate::chronicle::protocol::roll_file::{Known, Slot, View};
use crate::chronicle::queue::handle::Queue;
use crate::os::interrupt::Signals;
use crate::probe::fault::step;
use crate::{Error, Result};

/// A place between two documents of a cycle: the sequence of the next message, and how many
/// metadata documents lie between the preceding message and the place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    sequence: u64,
    metadata: u32,
}

impl Place {
    /// The place after one more document.
    fn after(self, is_metadata: bool) -> Self {
        Self {
            sequence: self.sequence + u64::from(!is_metadata),
            metadata: batch::metadata_through(self.metadata, is_metadata),
        }
    }
}

/// Where a queue ends, for a sink; None if it is empty.
pub fn end_of_replica(queue: &Queue) -> Result<Option<ReplicaEnd>> {
    let mut cycle = queue.last_cycle()?;
    while let Some(found) = cycle {
        // A file that is not ready has no documents.
        if let Some(mut view) = queue.view(found)? {
            let (Place { sequence, metadata }, slot) = end_of(&mut view)?;
            let next = queue.roll().to_index(found, sequence)?;
            return Ok(Some(ReplicaEnd { next, metadata, is_ended: slot == Slot::EndOfData }));
        }
        cycle = queue.cycle_before(found)?;
    }
    Ok(None)
}

impl End<'_, DetachedGuard<'_>> {
    /// Appends the documents of a batch that the replica lacks, and ends the cycle if the batch
    /// says so.
    ///
    /// # Errors
    /// The batch leaves a gap, or belongs to a cycle that has ended here; or another directory is
    /// at the queue's path.
    pub fn apply(&mut self, batch: &Batch<'_>) -> Result<()> {
        self.layers = None; // the source has transformed them already
        let (cycle, sequence) = self.queue.roll().split(batch.first)?;
        let mut at = Place { sequence, metadata: batch.metadata_before };
        let start = Place { sequence: 0, metadata: 0 };
        if at > start && self.queue.last_cycle()?.is_none_or(|newest| cycle > newest) {
            // Checked before rolling, which would end a cycle that the source may continue.
            return Err(self.not_next(batch.first, "it leaves a gap", cycle, start));
        }
        let (end, is_ended) = self.go_to_end_of(cycle)?;
        if at > end {
            return Err(self.not_next(batch.first, "it leaves a gap", cycle, end));
        }
        for document in batch.documents() {
            if at >= end {
                if is_ended {
                    return Err(self.not_next(batch.first, "the cycle has ended here", cycle, end));
                }
                self.apply_document(document)?;
            }
            at = at.after(document.is_metadata);
        }
        self.show_run()?;
        if batch.is_ended && !is_ended && at >= end {
            self.end_cycle()?;
        }
        // Checked for every batch: acknowledged messages must be in the directory at the queue's
        // path. No appender waits for the lock.
        self.table.shared.check_present()
    }

    /// Moves table entries back to the queue's new end after the messages from `end` on were
    /// removed: named tailers, synced and acknowledged indexes, ended cycles.
    pub fn forget_from(&mut self, end: i64) -> Result<()> {
        let (queue, table) = (self.queue, self.table);
        let (cycle, _) = queue.roll().split(end)?;
        queue.refresh(Signals::Deferred(self.guard.may_wait()))?;
        lost_tail::rewind_past(queue, table, end, self.guard)?;
        let cells = table.cells();
        let synced = table.words().last_synced;
        cells.lower_acq_rel(synced, end - 1, step!("sync.last-synced.cas"));
        if let Some(acknowledged) = table.find(LAST_ACKNOWLEDGED)? {
            cells.lower_acq_rel(acknowledged, end - 1, step!("replica.acknowledged.cas"));
        }
        if let Some(ended) = table.find(NORMALISED_TO)? {
            cells.lower_acq_rel(ended, i64::from(cycle) - 1, step!("eof.normalised.cas"));
        }
        Ok(())
    }

    fn apply_document(&mut self, document: Document<'_>) -> Result<()> {
        let payload = Payload::new(document.payload);
        if document.is_metadata {
            self.show_run()?;
            return self.append_metadata(payload).map(drop);
        }
        self.add(payload)
    }

    /// Steps 4 to 6 for a given cycle, whose file is created if it is the newest. Returns where the
    /// cycle ends, and whether it has ended for good.
    fn go_to_end_of(&mut self, cycle: i32) -> Result<(Place, bool)> {
        let is_here =
            |end: &Self| end.state.tail.as_ref().is_some_and(|it| it.view.file().cycle == cycle);
        if !is_here(self) {
            self.table.shared.check_present()?; // else a file would be made in another directory
            if self.queue.last_cycle()?.is_some_and(|newest| cycle < newest) {
                return Ok((self.end_in(cycle)?, true));
            }
            self.roll_to(cycle)?;
            if !is_here(self) {
                return Ok((self.end_in(cycle)?, true)); // it is compressed
            }
        }
        self.cycle = cycle;
        let is_ended = match self.catch_up() {
            Ok(()) => {
                let guard = self.guard;
                self.state.tail.as_mut().map_or(Ok(()), |tail| tail.forget_after_end(guard))?;
                false
            }
            Err(Error::WriteAfterEof { .. }) => true,
            Err(error) => return Err(error),
        };
        Ok((self.end_in(cycle)?, is_ended))
    }

    /// Where the documents of a cycle end.
    fn end_in(&self, cycle: i32) -> Result<Place> {
        let end = self.queue.view(cycle)?.map(|mut view| end_of(&mut view)).transpose()?;
        Ok(end.map_or(Place { sequence: 0, metadata: 0 }, |(place, _)| place))
    }

    fn end_cycle(&mut self) -> Result<()> {
        let (queue, guard) = (self.queue, self.guard);
        let Some(tail) = &mut self.state.tail else { return Ok(()) };
        queue.close_cycle(&mut tail.view, guard).map(drop)
    }

    fn not_next(&self, first: i64, why: &str, cycle: i32, end: Place) -> Error {
        let Place { sequence, metadata } = end;
        let reason = format!(
            "reason={why:?} first={first:#x} cycle={cycle} ends_at_sequence={sequence} \
             metadata={metadata}"
        );
        Error::NotNext { path: self.queue.path().to_path_buf(), reason }
    }
}

/// Where the documents of a file end, and the slot found there.
fn end_of(view: &mut View) -> Result<(Place, Slot)> {
    let last = locate::end(view)?.last.unwrap_or(Known { position: 0, sequence: 0 });
    let (mut position, mut place) = (last.position, Place { sequence: last.sequence, metadata: 0 });
    loop {
        let found = match view.slot(position)? {
            Slot::Document(found) => found,
            slot => return Ok((place, slot)),
        };
        position = found.next;
        if !view.is_of_file(&found) {
            place = place.after(found.is_metadata);
        }
    }
}
