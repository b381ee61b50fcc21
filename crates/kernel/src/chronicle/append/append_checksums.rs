//! The checksums of the messages that an appender writes (`docs/integrity.md`): stored after each
//! call, without the write lock, from the bytes in the file.

use crate::chronicle::format::append_checksums::{self, record};
use crate::chronicle::protocol::append_checksums::Records;
use crate::chronicle::protocol::roll_file::{Slot, View};
use crate::chronicle::queue::handle::Queue;
use crate::{Error, Result, warnings};

/// Consecutive appended messages: the index and the position of the first, and the index of the
/// last.
#[derive(Clone, Copy)]
pub struct Span {
    pub first: i64,
    pub position: u64,
    pub last: i64,
}

/// The checksums of the cycle that an appender writes to.
#[derive(Default)]
pub struct AppendChecksums {
    /// The records of the open cycle, and the roll file they are computed from.
    open: Option<(Records, View)>,
    /// A message whose record needs a system call to store: the next append that may wait stores
    /// it.
    pending: Option<Span>,
    /// The cycle whose side file cannot be written; that is not an error of appends.
    failed: Option<i32>,
}

impl AppendChecksums {
    /// Whether the record of an earlier message must be stored first, by a thread that may wait.
    #[inline]
    pub const fn is_behind(&self) -> bool {
        self.pending.is_some()
    }

    /// Stores the record of one message, or defers it if that needs a system call.
    #[inline]
    pub fn note_soon(&mut self, queue: &Queue, span: Span) {
        if !self.try_note(queue, span) {
            self.pending = Some(span);
        }
    }

    #[inline]
    fn try_note(&mut self, queue: &Queue, span: Span) -> bool {
        let Ok((cycle, sequence)) = queue.roll().split(span.first) else { return true };
        match &mut self.open {
            Some((records, view)) if records.cycle == cycle => match view.own_slot(span.position) {
                Some(Slot::Document(found)) => {
                    records.try_put(sequence, record(span.first, view.payload(&found)))
                }
                _ => false,
            },
            _ => self.failed == Some(cycle),
        }
    }

    /// Stores the records of a span, after those of a span that is still pending.
    pub fn note(&mut self, queue: &Queue, span: Option<Span>) {
        for span in [self.pending.take(), span].into_iter().flatten() {
            let Ok((cycle, sequence)) = queue.roll().split(span.first) else { continue };
            if self.failed == Some(cycle) {
                continue;
            }
            if let Err(error) = self.note_all(queue, cycle, sequence, span) {
                (self.open, self.failed) = (None, Some(cycle));
                warnings::leave(format!(
                    "append checksums are no longer written: cycle={cycle} error={error}"
                ));
            }
        }
    }

    fn note_all(&mut self, queue: &Queue, cycle: i32, sequence: u64, span: Span) -> Result<()> {
        let (records, view) = match &mut self.open {
            Some(open) if open.0.cycle == cycle => open,
            open => open.insert(opened(queue, cycle)?),
        };
        let (mut at, mut index, mut sequence) = (span.position, span.first, sequence);
        while index <= span.last {
            let slot = view.own_slot(at).map_or_else(|| view.slot(at), Ok)?;
            let Slot::Document(found) = slot else { break };
            if !found.is_metadata {
                records.put(sequence, record(index, view.payload(&found)))?;
                (index, sequence) = (index + 1, sequence + 1);
            }
            at = found.next;
        }
        Ok(())
    }
}

fn opened(queue: &Queue, cycle: i32) -> Result<(Records, View)> {
    let path = append_checksums::path_for(&queue.file_for_cycle(cycle)?);
    let records = Records::open(&path, cycle, queue.options().file_mode)?;
    match queue.view(cycle)? {
        Some(view) if queue.has_file(cycle) => Ok((records, view)),
        _ => {
            // They would not match the messages of a roll file that is put there later.
            records.remove()?;
            Err(Error::gone("the cycle was removed", &path))
        }
    }
}
