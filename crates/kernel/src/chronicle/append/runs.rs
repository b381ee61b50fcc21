//! Appends of many messages under one lock.

use quire_wire::out::Out;
use quire_wire::writer;

use super::appender::{Appender, Purpose};
use crate::Result;
use crate::chronicle::protocol::publish::Payload;
use crate::os::interrupt::Signals;
use crate::sealed::packing::packed;

impl Appender {
    /// Appends `count` messages from `payload` under one lock; returns the last index. Messages
    /// published before an error stay published. A `note` is a metadata document that comes first,
    /// under the same lock, so that no other message comes between.
    pub fn append_all<'p>(
        &self,
        signals: Signals<'_>,
        now_ms: Option<i64>,
        note: Option<&[u8]>,
        count: usize,
        payload: impl Fn(usize) -> Result<Payload<'p>>,
    ) -> Result<Option<i64>> {
        self.with_write_lock(signals, Purpose::Message, now_ms, |end| {
            if let Some(note) = note {
                end.choose_cycle()?;
                end.append_metadata(Payload::new(note))?;
            }
            end.append_all(count, |number, end| {
                packed(self.compression(), payload(number)?, |stored| end.add(stored))
            })?;
            Ok(end.appended.last)
        })
    }

    /// Appends `count` text values under one lock; `text` gives each one's UTF-8.
    pub fn append_texts<'p>(
        &self,
        signals: Signals<'_>,
        now_ms: Option<i64>,
        count: usize,
        text: impl Fn(usize) -> Result<&'p [u8]>,
    ) -> Result<Option<i64>> {
        let mut buffer = Out::new();
        self.with_write_lock(signals, Purpose::Message, now_ms, |end| {
            end.append_all(count, |number, end| {
                let text = text(number)?;
                let stored = writer::stored_text(text)?;
                buffer.clear();
                writer::put_text_bytes(&mut buffer, stored.as_deref().unwrap_or(text));
                let payload = Payload::new(buffer.written()?);
                packed(self.compression(), payload, |stored| end.add(stored))
            })?;
            Ok(end.appended.last)
        })
    }

    /// Appends the first of `count` messages, as many as one header can show, and returns how many.
    /// `intend` gets the index of the first, and how many, before they become visible.
    pub fn append_run<'p>(
        &self,
        signals: Signals<'_>,
        count: usize,
        payload: impl Fn(usize) -> Payload<'p>,
        intend: impl FnOnce(i64, usize),
    ) -> Result<usize> {
        self.with_write_lock(signals, Purpose::Message, None, |end| {
            end.choose_cycle()?;
            let (first, mut stored) = (end.next_index(false)?, 0);
            let how = self.compression();
            while stored < count
                && packed(how, payload(stored), |payload| end.store_in_run(payload))?
            {
                stored += 1;
            }
            intend(first, stored.max(1));
            end.show_run()?;
            if stored == 0 && count > 0 {
                packed(how, payload(0), |payload| end.append(payload))?;
                stored = 1;
            }
            Ok(stored)
        })
    }
}
