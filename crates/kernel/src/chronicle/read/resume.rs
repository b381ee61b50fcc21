//! Where to resume reading, by the history in messages (`docs/format.md` §8.8).

use std::sync::Arc;

use quire_wire::history::{self, History};

use super::tailer::{Direction, MESSAGES_BETWEEN_PAUSES, OpenDocument, Scan, Tailer};
use crate::chronicle::queue::handle::Queue;
use crate::os::detached::Detached;
use crate::os::interrupt::Signals;
use crate::{Error, Result};

/// The history of the message that a tailer read last; None if it has none.
pub fn history(tailer: &Tailer, may_wait: &Detached) -> Result<Option<History>> {
    let Some(index) = tailer.last_read_index(may_wait)? else { return Ok(None) };
    let look = Tailer::new(Arc::clone(tailer.queue()), None, Signals::Deferred(may_wait))?;
    if !look.move_to_index(may_wait, index)? {
        return Ok(None);
    }
    match look.open_document(may_wait, false)? {
        Some(open) => history_of(&look, &open),
        None => Ok(None),
    }
}

/// Searches an output queue backward for the newest message with history from a queue.
pub struct LastWritten {
    tailer: Arc<Tailer>,
    source_id: i32,
}

impl LastWritten {
    /// Starts at the end of `output`, which a reader of `queue` writes.
    pub fn new(queue: &Queue, output: &Arc<Queue>, may_wait: &Detached) -> Result<Self> {
        let path = queue.path().display();
        if queue.source_id() == 0 {
            return Err(Error::Invalid(format!(
                "history names a queue by its source id: source_id=0 path={path} \
                 (create the queue with a source_id of its own)"
            )));
        }
        if queue.path() == output.path() {
            return Err(Error::Invalid(format!(
                "expected the queue that was written, not the one that is read: path={path}"
            )));
        }
        let tailer = Tailer::new(Arc::clone(output), None, Signals::Deferred(may_wait))?;
        tailer.set_direction(may_wait, Direction::Backward)?;
        tailer.to_end(may_wait)?;
        Ok(Self { tailer, source_id: queue.source_id() })
    }

    /// The last index in the newest history from the queue, and the index where that was found.
    pub fn look(&self, may_wait: &Detached) -> Result<Scan<(i64, i64)>> {
        for _ in 0..MESSAGES_BETWEEN_PAUSES {
            let Some(open) = self.tailer.open_document(may_wait, false)? else {
                return Ok(Scan::Nothing);
            };
            let history = history_of(&self.tailer, &open)?;
            let last = history.and_then(|history| history.sources.last().copied());
            if let Some((_, index)) = last.filter(|(id, _)| *id == self.source_id) {
                return Ok(Scan::Found((index, open.index())));
            }
            self.tailer.close_document(may_wait, &open)?;
        }
        Ok(Scan::Paused)
    }

    /// Moves `tailer` past the message that [`LastWritten::look`] found: later messages are not yet
    /// reflected in the output. Moves to the start if it found nothing.
    pub fn go_past(
        &self,
        tailer: &Tailer,
        found: Option<(i64, i64)>,
        may_wait: &Detached,
    ) -> Result<()> {
        let Some((index, in_output)) = found else { return tailer.to_start(may_wait) };
        let found = tailer.move_to_index(may_wait, index)?;
        match tailer.open_document(may_wait, false)? {
            Some(open) if found => tailer.close_document(may_wait, &open),
            _ => Err(Error::IndexOutOfRange(format!(
                "a history names a missing message: index={index:#x} path={} \
                 named_by={in_output:#x} output={}",
                tailer.queue().path().display(),
                self.tailer.queue().path().display()
            ))),
        }
    }
}

fn history_of(tailer: &Tailer, open: &OpenDocument) -> Result<Option<History>> {
    Ok(history::of_message(open.payload()).map_err(|fault| {
        let (file, position) = tailer.place_of(open.place());
        fault.in_message(open.index(), file, position)
    })?)
}
