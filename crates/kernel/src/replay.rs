//! Where to go on reading, by the history that messages carry (`docs/format.md` §8.8).

use std::sync::Arc;

use crate::queue::Queue;
use crate::tailer::{Direction, OpenDocument, Tailer};
use crate::wire::history::{self, History};
use crate::{Error, Result};

/// The history of the message that a tailer read last; None where there is none.
pub fn history(tailer: &Tailer) -> Result<Option<History>> {
    let Some(index) = tailer.last_read_index()? else { return Ok(None) };
    let look = Tailer::new(Arc::clone(tailer.queue()), None)?;
    if !look.move_to_index(index)? {
        return Ok(None);
    }
    match look.open_document(false)? {
        Some(open) => history_of(&look, &open),
        None => Ok(None),
    }
}

/// Goes behind the message that the newest message of `output` from this queue came from: what
/// follows led to nothing there yet. To the start where nothing of `output` came from this queue.
pub fn after_last_written(tailer: &Tailer, output: &Arc<Queue>) -> Result<()> {
    let queue = tailer.queue();
    let path = queue.path().display();
    if queue.source_id() == 0 {
        return Err(Error::Invalid(format!(
            "history names a queue by its source id: source_id=0 path={path} \
             (create the queue with a source_id of its own)"
        )));
    }
    if queue.path() == output.path() {
        return Err(Error::Invalid(format!(
            "the queue that was written is needed, not the one that is read: path={path}"
        )));
    }
    let Some((index, in_output)) = last_source(output, queue.source_id())? else {
        return tailer.to_start();
    };
    let found = tailer.move_to_index(index)?;
    match tailer.open_document(false)? {
        Some(open) if found => tailer.close_document(&open),
        _ => Err(Error::IndexOutOfRange(format!(
            "a history names a message that is not there: index={index:#x} path={path} \
             named_by={in_output:#x} output={}",
            output.path().display()
        ))),
    }
}

/// The index that the newest history from this source names last, and where that was found.
fn last_source(output: &Arc<Queue>, source_id: i32) -> Result<Option<(i64, i64)>> {
    let tailer = Tailer::new(Arc::clone(output), None)?;
    tailer.set_direction(Direction::Backward)?;
    tailer.to_end()?;
    while let Some(open) = tailer.open_document(false)? {
        let history = history_of(&tailer, &open)?;
        let last = history.and_then(|history| history.sources.last().copied());
        if let Some((_, index)) = last.filter(|(id, _)| *id == source_id) {
            return Ok(Some((index, open.index)));
        }
        tailer.close_document(&open)?;
    }
    Ok(None)
}

fn history_of(tailer: &Tailer, open: &OpenDocument) -> Result<Option<History>> {
    Ok(history::of_message(open.payload()).map_err(|fault| {
        let (file, position) = tailer.place_of(open);
        fault.in_message(open.index, file, position)
    })?)
}
