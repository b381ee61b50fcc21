//! Appends of a queue that was opened with metrics.

use std::time::Instant;

use super::{Appender, Claim};
use crate::Result;
use crate::chronicle::protocol::publish::Payload;
use crate::metrics::Metrics;

impl Appender {
    #[cold]
    pub(super) fn append_each_counted(
        &self,
        metrics: &Metrics,
        now_ms: Option<i64>,
        note: Option<&[u8]>,
        count: usize,
        mut each: impl FnMut(usize, &mut dyn FnMut(Payload<'_>) -> Result<()>) -> Result<()>,
    ) -> Result<Option<i64>> {
        let (began, mut messages, mut bytes) = (Instant::now(), 0, 0);
        let appended = self.append_each_now(now_ms, note, count, |number, append| {
            each(number, &mut |payload| {
                let length = payload.len();
                append(payload)?;
                messages += 1;
                bytes += length;
                Ok(())
            })
        });
        metrics.appended(began, messages, bytes); // before an error, too
        appended
    }

    #[cold]
    pub(super) fn publish_counted(
        &self,
        metrics: &Metrics,
        claim: &Claim,
        payload: &[u8],
    ) -> Result<i64> {
        let began = Instant::now();
        let index = self.publish_now(claim, payload)?;
        metrics.appended(began, 1, payload.len() as u64);
        Ok(index)
    }
}
