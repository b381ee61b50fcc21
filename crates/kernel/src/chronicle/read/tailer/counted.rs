//! Reads of a queue that was opened with metrics.

use std::time::Instant;

use super::{Ask, AtOnce, OpenDocument, Reading, Scan, Tailer, Take};
use crate::Result;
use crate::metrics::Metrics;

/// Counts a message that was read as a document.
pub(super) fn count_document(began: Option<(&Metrics, Instant)>, open: &OpenDocument) {
    if let (Some((metrics, began)), false) = (began, open.is_metadata()) {
        metrics.read(began, 1, open.payload().len() as u64);
    }
}

impl Tailer {
    #[cold]
    #[inline(never)]
    pub(super) fn read_counted<R>(
        &self,
        ask: Ask,
        take: impl FnOnce(i64, &[u8]) -> Result<R>,
    ) -> Result<AtOnce<R>> {
        let (began, mut length) = (Instant::now(), 0);
        let found = self.read_now(ask, |index, bytes| {
            length = bytes.len() as u64;
            take(index, bytes)
        })?;
        if let (Some(metrics), AtOnce::Found(_)) = (self.queue.metrics(), &found) {
            metrics.read(began, 1, length);
        }
        Ok(found)
    }

    #[cold]
    #[inline(never)]
    pub(super) fn take_counted(
        &self,
        ask: Ask,
        include_metadata: bool,
    ) -> Result<AtOnce<OpenDocument>> {
        let began = self.queue.metrics().map(|metrics| (metrics, Instant::now()));
        let found = self.take_now(ask, include_metadata)?;
        if let AtOnce::Found(open) = &found {
            count_document(began, open);
        }
        Ok(found)
    }

    #[cold]
    pub(super) fn read_many_counted(
        &self,
        metrics: &Metrics,
        reading: &mut Reading,
        count: usize,
        mut take: impl FnMut(&[u8]),
    ) -> Result<AtOnce<()>> {
        let (began, before, mut bytes) = (Instant::now(), reading.taken, 0);
        let ended = self.read_many_now(reading, count, |payload| {
            bytes += payload.len() as u64;
            take(payload);
        });
        metrics.read(began, (reading.taken - before) as u64, bytes);
        ended
    }

    #[cold]
    pub(super) fn scan_many_counted(
        &self,
        metrics: &Metrics,
        reading: &mut Reading,
        count: usize,
        mut take: impl FnMut(i64, &[u8]) -> Take,
    ) -> Result<Scan<()>> {
        let (began, before, mut bytes) = (Instant::now(), reading.taken, 0);
        let scanned = self.scan_many_now(reading, count, |index, payload| {
            let taken = take(index, payload);
            if taken != Take::NotThis {
                bytes += payload.len() as u64;
            }
            taken
        });
        metrics.read(began, (reading.taken - before) as u64, bytes);
        scanned
    }

    fn read_now<R>(
        &self,
        ask: Ask,
        take: impl FnOnce(i64, &[u8]) -> Result<R>,
    ) -> Result<AtOnce<R>> {
        let Some(mut inner) = self.inner.try_lock() else { return Ok(AtOnce::Unknown) };
        self.check_open()?;
        self.step_at_once(&mut inner, ask, take)
    }

    fn take_now(&self, ask: Ask, include_metadata: bool) -> Result<AtOnce<OpenDocument>> {
        let Some(mut inner) = self.inner.try_lock() else { return Ok(AtOnce::Unknown) };
        self.check_open()?;
        self.take_locked(&mut inner, ask, include_metadata)
    }
}
