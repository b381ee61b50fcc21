//! Reads of a queue that was opened with metrics.

use std::time::Instant;

use super::{AtOnce, OpenDocument, Reading, Tailer};
use crate::Result;
use crate::metrics::Metrics;

/// Counts a message that was read as a document.
pub(super) fn count_document(began: Option<(&Metrics, Instant)>, open: &OpenDocument) {
    if let (Some((metrics, began)), false) = (began, open.is_metadata()) {
        metrics.read(began, 1, open.payload().len() as u64);
    }
}

impl Tailer {
    /// Begins a read of a tailer that was closed, or that counts.
    #[cold]
    pub(super) fn begin(&self) -> Result<Option<(&Metrics, Instant)>> {
        self.check_open()?;
        Ok(self.queue.metrics().map(|metrics| (metrics, Instant::now())))
    }

    #[cold]
    pub(super) fn read_many_counted(
        &self,
        metrics: &Metrics,
        reading: &mut Reading,
        count: usize,
        mut take: impl FnMut(&[u8]) -> Result<()>,
    ) -> Result<AtOnce<()>> {
        let (began, before, mut bytes) = (Instant::now(), reading.taken, 0);
        let ended = self.read_many_now(reading, count, |payload| {
            bytes += payload.len() as u64;
            take(payload)
        });
        metrics.read(began, (reading.taken - before) as u64, bytes);
        ended
    }
}
