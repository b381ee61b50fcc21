//! Appends of a replica's sink, which keeps the append lock.

use super::appender::{Appender, Purpose};
use super::end;
use crate::Result;
use crate::chronicle::format::batch::{Batch, ReplicaEnd};
use crate::os::interrupt::Signals;

impl Appender {
    /// Appends the documents of a batch from the source that the replica lacks, for the sink that
    /// keeps the append lock.
    pub fn apply(
        &self,
        signals: Signals<'_>,
        now_ms: Option<i64>,
        batch: &Batch<'_>,
    ) -> Result<()> {
        self.with_write_lock(signals, Purpose::Replica, now_ms, |end| end.apply(batch))
    }

    /// Returns once all appends have ended that were in progress when the append lock was taken.
    pub fn settle(&self, signals: Signals<'_>) -> Result<()> {
        self.with_write_lock(signals, Purpose::Replica, None, |_| Ok(()))
    }

    /// Moves table entries back to the queue's new end after the sink, which keeps the append lock,
    /// removed the messages from `end` on.
    pub fn forget_from(&self, signals: Signals<'_>, end: i64) -> Result<()> {
        self.with_write_lock(signals, Purpose::Replica, None, |found| found.forget_from(end))
    }

    /// Where the queue ends, for a sink; None if it is empty.
    pub fn end_of_replica(&self) -> Result<Option<ReplicaEnd>> {
        self.check_open()?;
        end::end_of_replica(self.queue())
    }
}
