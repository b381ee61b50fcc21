//! Repairs one roll file, in the order in which a writer would have written it:
//!
//! 1. its first header;
//! 2. bytes after the last message are kept in a side file and zeroed, header last, once they no
//!    longer count as replicated, and while no service writes to the queue;
//! 3. index entries and counts; 4. `writePosition`, the sequence word; 5. the end-of-file marker.
//!
//! `writePosition` shows that messages are missing (step 2), so it is stored after them.

use std::path::Path;
use std::sync::Arc;

use super::{Action, index, replicas, service, side_file};
use crate::chronicle::format::document::{EOF_DECORATION, HEADER_LEN};
use crate::chronicle::protocol::beside;
use crate::chronicle::protocol::create;
use crate::chronicle::protocol::head;
use crate::chronicle::protocol::lock::guard::DetachedGuard;
use crate::chronicle::protocol::publish;
use crate::chronicle::protocol::roll_file::{RollFile, Slot, View};
use crate::chronicle::protocol::unfinished;
use crate::chronicle::queue::handle::Queue;
use crate::chronicle::verify::roll_file::{is_early, lost_end};
use crate::chronicle::verify::walk::{Ending, Walked};
use crate::finding::Kind;
use crate::os::files;
use crate::os::interrupt::Signals;
use crate::probe::fault::step;
use crate::{Error, Result};

/// Repairs the file of a cycle; an unreadable file is left unchanged.
pub fn repair(
    queue: &Queue,
    cycle: i32,
    guard: &DetachedGuard<'_>,
    actions: &mut Vec<Action>,
) -> Result<()> {
    let path = queue.file_for_cycle(cycle)?;
    let before = actions.len();
    let Some(mut view) = ready_view(queue, cycle, &path, guard, actions)? else { return Ok(()) };
    let is_older = has_later(queue, cycle)?;
    if create::is_of_version_4(view.file()) {
        if is_older && queue.close_cycle(&mut view, guard)? {
            actions.push(Action::at(Kind::MissingEndMark, &path, 0, "the marker was written"));
        }
        return Ok(());
    }
    if create::check_writable(view.file()).is_err() {
        return Ok(());
    }
    repair_documents(queue, &mut view, is_older, guard, actions)?;
    if actions.len() > before { view.file().window.sync() } else { Ok(()) }
}

/// Whether a later cycle has begun: a file that was created ahead of its cycle does not count.
fn has_later(queue: &Queue, mut cycle: i32) -> Result<bool> {
    while let Some(later) = queue.cycle_after(cycle)? {
        if !is_early(&queue.file_for_cycle(later)?, later)? {
            return Ok(true);
        }
        cycle = later;
    }
    Ok(false)
}

/// Step 1: a view of the file; None if it is unreadable, or was discarded.
fn ready_view(
    queue: &Queue,
    cycle: i32,
    path: &Path,
    guard: &DetachedGuard<'_>,
    actions: &mut Vec<Action>,
) -> Result<Option<View>> {
    restore_head(queue, path, guard, actions)?;
    match create::is_unfinished(path) {
        Err(Error::Corrupt { .. }) => return Ok(None),
        is_unfinished => {
            if is_unfinished? && !finish(queue, path, guard, actions)? {
                return Ok(None);
            }
        }
    }
    match create::open_existing(path, cycle, true) {
        Ok(file) => Ok(file.map(|file: RollFile| View::new(Arc::new(file)))),
        Err(Error::Corrupt { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Discards a file that was never finished. Returns whether the file remains. A file with messages
/// is left unchanged: its first header could not be restored.
fn finish(
    queue: &Queue,
    path: &Path,
    guard: &DetachedGuard<'_>,
    actions: &mut Vec<Action>,
) -> Result<bool> {
    if unfinished::holds_messages(path, queue.index_count())? {
        return Ok(false);
    }
    let was_put_aside = create::put_aside_unfinished(path, guard)?;
    if was_put_aside {
        let done = "put aside as .discard";
        actions.push(Action::at(Kind::UnfinishedFile, path, 0, done));
    }
    Ok(!was_put_aside)
}

/// Restores the first documents, if the documents after them prove their content.
fn restore_head(
    queue: &Queue,
    path: &Path,
    guard: &DetachedGuard<'_>,
    actions: &mut Vec<Action>,
) -> Result<()> {
    let spacing = queue.roll().index_spacing;
    if let Some(position) = head::restore(path, queue.index_count(), spacing, guard)? {
        let done = "the header was restored";
        actions.push(Action::at(Kind::LostHeader, path, position, done));
    }
    Ok(())
}

fn repair_documents(
    queue: &Queue,
    view: &mut View,
    is_older: bool,
    guard: &DetachedGuard<'_>,
    actions: &mut Vec<Action>,
) -> Result<()> {
    let mut walked = Walked::through(view, None, Signals::Deferred(guard.may_wait()))?;
    while let Some((position, word)) = walked.unmarked {
        guard.check_held()?;
        mark(view, position, word, actions)?;
        walked = Walked::through(view, None, Signals::Deferred(guard.may_wait()))?;
    }
    if !walked.gaps.is_empty() {
        return Ok(()); // readers find the remaining messages by the present words and entries
    }
    guard.check_held()?;
    let loses_messages = lost_end(view, &walked)?.is_some();
    if loses_messages || matches!(walked.ending, Ending::Waiting(1..)) {
        let _no_service = loses_messages.then(|| service::keep_out(queue)).transpose()?;
        let cut = loses_messages.then(|| replicas::note_cut(queue, view, &walked, guard));
        let _no_source = cut.transpose()?.flatten();
        cut_off(view, &mut walked, guard, actions)?;
        beside::forget_beyond(&view.path(), view.file().cycle, walked.next_sequence)?;
    }
    guard.check_held()?;
    view.make_words_writable()?;
    index::repair(queue, view, &mut walked, guard, actions)?;
    guard.check_held()?;
    store_words(view, &walked, guard, actions)?;
    if is_older && walked.ending == Ending::Waiting(0) {
        end(queue, view, &walked, guard, actions)?;
    }
    Ok(())
}

/// Marks a message as complete: the documents after it prove that only its mark was damaged.
fn mark(view: &View, position: u64, word: u32, actions: &mut Vec<Action>) -> Result<()> {
    let mut region = view.file().window.region();
    view.file().window.reserve(&mut region, position, position + HEADER_LEN)?;
    let found = region.load_header_acquire(position);
    let step = step!("repair.header.cas");
    region.publish_header(position, found, word, step).map_err(|found| {
        let found = format!("{found:#010x}");
        Error::corrupt("header changed under the write lock", &view.path(), position, found, "")
    })?;
    let done = format!("{found:#010x} became {word:#010x}");
    actions.push(Action::at(Kind::UnmarkedMessage, &view.path(), position, done));
    Ok(())
}

/// Step 2. Entries that point there are cleared with the index.
fn cut_off(
    view: &mut View,
    walked: &mut Walked,
    guard: &DetachedGuard<'_>,
    actions: &mut Vec<Action>,
) -> Result<()> {
    let (path, position) = (view.path(), walked.position);
    let is_ended = walked.ending == Ending::EndOfData;
    let kept =
        if is_ended { position + HEADER_LEN + EOF_DECORATION.len() as u64 } else { position };
    let file = Arc::clone(view.file());
    let side = side_file::keep(file.window.file(), &path, kept)?;
    guard.check_held()?;
    let from = position + HEADER_LEN + if is_ended { EOF_DECORATION.len() as u64 } else { 0 };
    let failed = |e| Error::io("cannot zero", &path, e);
    files::zero(file.window.file(), from).map_err(failed)?;
    if !is_ended {
        clear_header(view, position, guard)?;
    }
    let side = side.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let (kind, done) = match walked.ending {
        Ending::Waiting(1..) => (Kind::DeadHeader, "set to 0"),
        _ => (Kind::LostEnd, "cut off"),
    };
    actions.push(Action::at(
        kind,
        &path,
        position,
        format!("{done}; its bytes are kept in {side}"),
    ));
    if !is_ended {
        walked.ending = Ending::Waiting(0);
    }
    Ok(())
}

/// Clears the header last: until then it shows that the step is unfinished.
fn clear_header(view: &View, position: u64, _guard: &DetachedGuard<'_>) -> Result<()> {
    let window = &view.file().window;
    let mut word = [0; 4];
    let found = window.read_at(&mut word, position)?;
    let found = if found < word.len() { 0 } else { u32::from_le_bytes(word) };
    if found == 0 {
        files::zero(window.file(), position)
            .map_err(|e| Error::io("cannot zero", view.file().path(), e))?;
        return Ok(());
    }
    let mut region = window.region();
    window.reserve(&mut region, position, position + HEADER_LEN)?;
    let step = step!("repair.header.cas");
    let _ = region.publish_header(position, found, 0, step);
    Ok(())
}

/// Step 4.
fn store_words(
    view: &mut View,
    walked: &Walked,
    _guard: &DetachedGuard<'_>,
    actions: &mut Vec<Action>,
) -> Result<()> {
    let (layout, shape, path) = (view.file().layout.clone(), view.file().shape, view.path());
    let position = view.word(layout.write_position)?;
    let expected = walked.last.map_or(0, |last| last.position);
    let is_before_first =
        walked.last.is_none() && position == view.word(layout.index2index)? && position != 0;
    let is_stored = position != expected && !is_before_first;
    let cells = view.region();
    if is_stored {
        let step = step!("repair.write-position.store");
        cells.store_release(layout.write_position, expected, step);
        let done = format!("{position:#x} became {expected:#x}");
        actions.push(Action::at(Kind::WritePosition, &path, layout.write_position, done));
    }
    let Some((at, last)) = layout.sequence.zip(walked.last) else { return Ok(()) };
    let word = cells.load_acquire(at);
    if shape.sequence_in_word(word, last.position) != Some(last.sequence) {
        let expected = shape.sequence_word(last.position, last.sequence);
        cells.store_release(at, expected, step!("repair.sequence.store"));
        let done = format!("{word:#x} became {expected:#x}");
        actions.push(Action::at(Kind::SequenceWord, &path, at, done));
    }
    Ok(())
}

/// Step 5.
fn end(
    queue: &Queue,
    view: &mut View,
    walked: &Walked,
    guard: &DetachedGuard<'_>,
    actions: &mut Vec<Action>,
) -> Result<()> {
    let (path, position) = (view.path(), walked.position);
    if !matches!(view.slot(position)?, Slot::Waiting(0)) {
        return Ok(());
    }
    let after = position + HEADER_LEN + EOF_DECORATION.len() as u64;
    if after > view.file().window.file_len() {
        view.make_writable(position, after, queue.growth(), guard)?;
    } else {
        view.make_range_writable(position, after)?;
    }
    // The text first: the marker shows that this step is complete.
    let text = step!("eof.mark.store");
    view.region().store_each_relaxed(position + HEADER_LEN, &EOF_DECORATION, text);
    if publish::end_file(view.region(), position, 0, guard).is_ok() {
        actions.push(Action::at(Kind::MissingEndMark, &path, position, "the marker was written"));
    }
    Ok(())
}
