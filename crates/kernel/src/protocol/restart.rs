//! What a power cut, or a crash of the system, left (`docs/durability.md`). The caller holds the
//! write lock.
//!
//! The system writes pages to the medium in an order of its own. Of what was not synced any part may
//! be missing, so that documents end at a hole while words and index slots lead behind it. Files
//! that were not changed since the machine was started are looked at before they are written to:
//!
//! 1. walk from the last synced message, or the start, to the first header that is no complete
//!    document: the end;
//! 2. take the words and slots back that lead behind it; what lies there is kept in a file beside;
//! 3. zero what lies behind the end, sync, and set the file's time: it is looked at once.
//!
//! A crash in between changes nothing of that: the next opener does it again.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

use super::create;
use super::listing::{self, Names};
use super::locate::{self, Known, Place};
use super::roll_file::{Slot, View};
use super::table_store::TableStore;
use crate::format::document::HEADER_LEN;
use crate::format::index::ArrayLayout;
use crate::format::table;
use crate::memory::space::{self, Access, PAGE};
use crate::memory::{Cells, process};
use crate::{Error, Result, fault, notice};

/// The system writes changes to the medium within a minute; files left alone for longer are whole.
const WHOLE_AFTER: Duration = Duration::from_secs(600);
const CHUNK: usize = 1 << 16;

/// Where the documents of a file end.
struct End {
    position: u64,
    last: Option<Known>,
}

impl End {
    fn next_sequence(&self) -> u64 {
        self.last.map_or(0, |last| last.sequence + 1)
    }
}

/// Whether the newest file was not changed since the machine was started.
pub fn is_due(names: Names<'_>, table: &TableStore) -> Result<bool> {
    let newest = i32::try_from(table.value(table.words().highest, table::NO_HIGHEST));
    let path = newest.ok().and_then(|cycle| path_of(names, cycle).ok());
    let changed = path.map(|path| changed(&path)).transpose()?.flatten();
    Ok(changed.zip(process::machine_started()).is_some_and(|(changed, started)| changed < started))
}

/// Looks at the newest files.
pub fn repair(names: Names<'_>, table: &TableStore) -> Result<()> {
    let Some(started) = process::machine_started() else { return Ok(()) };
    let cycles = listing::list(names)?;
    let synced = table.value(table.words().last_synced, -1);
    let synced = names.roll.split(synced).ok().filter(|_| synced >= 0);
    let mut newest = None;
    for cycle in cycles.into_iter().rev() {
        let path = path_of(names, cycle)?;
        let Some(changed) = changed(&path)?.filter(|changed| *changed < started) else { break };
        let since = newest.get_or_insert(changed).duration_since(changed);
        let is_covered = synced.is_some_and(|(synced, _)| cycle < synced);
        if is_covered || since.is_ok_and(|since| since > WHOLE_AFTER) {
            break;
        }
        let from = synced.filter(|(synced, _)| *synced == cycle).map(|(_, sequence)| sequence);
        repair_file(&path, cycle, from)?;
    }
    Ok(())
}

fn path_of(names: Names<'_>, cycle: i32) -> Result<std::path::PathBuf> {
    Ok(names.dir.join(names.roll.file_name(cycle, names.epoch_ms)?))
}

fn changed(path: &Path) -> Result<Option<SystemTime>> {
    match fault::call!("restart.file.stat", std::fs::symlink_metadata(path)) {
        Ok(found) => Ok(found.modified().ok()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::io("cannot look at", path, error)),
    }
}

fn repair_file(path: &Path, cycle: i32, synced: Option<u64>) -> Result<()> {
    let file = match create::open_existing(path, cycle, true) {
        Ok(Some(file)) => std::sync::Arc::new(file),
        Ok(None) => return create::discard(path),
        Err(Error::Corrupt { .. }) => return Ok(()),
        Err(error) => return Err(error),
    };
    if create::check_writable(&file).is_err() {
        return Ok(());
    }
    let mut view = View::new(std::sync::Arc::clone(&file));
    let Some(end) = end_of(&mut view, synced)? else { return done(file.window.file(), path) };
    if end.last.is_none() && upper(&mut view, &end)?.is_none() {
        return create::discard(path);
    }
    let file_len = file.window.refresh_len()?;
    let is_cut = leads_behind(&mut view, &end)?;
    let before = changed(path)?;
    let made = make_writable(&mut view, &end);
    // Not a change that counts: should this process die, the next opener begins again.
    let before = before.unwrap_or_else(SystemTime::now);
    let reset = || set_time(file.window.file(), path, before);
    reset().or_else(|_| reset())?;
    made?;
    take_back(&mut view, &end)?;
    if is_cut {
        keep_aside(file.window.file(), path, end.position)?;
        notice::leave(format!(
            "messages were lost, as by a power cut: the file ends before what its index says: \
             file={} position={:#x} sequence={}",
            path.display(),
            end.position,
            end.next_sequence()
        ));
    }
    let failed = |e| Error::io("cannot zero", path, e);
    space::zero(file.window.file(), end.position, file_len).map_err(failed)?;
    file.window.sync()?;
    done(file.window.file(), path)
}

/// The file counts as looked at until the machine is started again.
fn done(file: &File, path: &Path) -> Result<()> {
    set_time(file, path, SystemTime::now())
}

fn set_time(file: &File, path: &Path, time: SystemTime) -> Result<()> {
    fault::call!("restart.file.touch", file.set_modified(time))
        .map_err(|e| Error::io("cannot set the time of", path, e))
}

/// Step 1; None where the file has its end marker, or holds what a power cut does not leave.
fn end_of(view: &mut View, synced: Option<u64>) -> Result<Option<End>> {
    let from = match synced.map(|sequence| (sequence, locate::place_of(view, sequence))) {
        Some((sequence, Ok(Place::Found(position)))) => Some(Known { position, sequence }),
        _ => None,
    };
    let (mut position, mut sequence) = from.map_or((0, 0), |at| (at.position, at.sequence));
    let mut last = None;
    loop {
        match view.slot(position) {
            Ok(Slot::Document(document)) => {
                if !document.is_metadata {
                    last = Some(Known { position, sequence });
                    sequence += 1;
                }
                position = document.next;
            }
            Ok(Slot::EndOfData) => return Ok(None),
            Ok(Slot::Waiting(_)) => return Ok(Some(End { position, last })),
            Err(Error::Corrupt { .. }) => {
                // The file's last document, and its growth is lost: nothing names a later one.
                let end = End { position, last };
                let after = End { position: position + HEADER_LEN, last };
                return Ok(if leads_behind(view, &after)? { None } else { Some(end) });
            }
            Err(error) => return Err(error),
        }
    }
}

/// The upper index array, if it is one of the documents before the end.
fn upper(view: &mut View, end: &End) -> Result<Option<ArrayLayout>> {
    let position = view.word(view.file().layout.index2index)?;
    if position < end.position { view.array(position) } else { Ok(None) }
}

/// Whether the write position, or an index slot, names a place behind the end.
fn leads_behind(view: &mut View, end: &End) -> Result<bool> {
    let len = view.file().window.file_len();
    let is_behind = |position| position >= end.position && position < len;
    if is_behind(view.write_position()?) {
        return Ok(true);
    }
    let Some(upper) = upper(view, end)? else { return Ok(false) };
    let shape = view.file().shape;
    let next = shape.upper_slot(end.next_sequence());
    for number in next..u64::from(shape.index_count) {
        let position = view.word(upper.slot(number))?;
        if is_behind(position) {
            return Ok(true);
        }
        let Some(lower) = view.array(position)?.filter(|_| number == next) else { continue };
        for slot in first_free(view, end)..u64::from(shape.index_count) {
            if is_behind(view.word(lower.slot(slot))?) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// The slot, in its lower array, of the first message behind the end that gets one.
fn first_free(view: &View, end: &End) -> u64 {
    let shape = view.file().shape;
    let spacing = u64::from(shape.index_spacing);
    let next = end.next_sequence();
    let due = next.next_multiple_of(spacing);
    if shape.upper_slot(due) == shape.upper_slot(next) {
        shape.lower_slot(due)
    } else {
        u64::from(shape.index_count)
    }
}

/// Makes all that step 2 changes present: the system notes a change when it does that.
fn make_writable(view: &mut View, end: &End) -> Result<()> {
    view.make_words_writable()?;
    let Some(upper) = upper(view, end)? else { return Ok(()) };
    view.make_array_writable(&upper)?;
    let number = view.file().shape.upper_slot(end.next_sequence());
    let position = view.word(upper.slot(number))?;
    let lower = if position < end.position { view.array(position)? } else { None };
    lower.map_or(Ok(()), |lower| view.make_array_writable(&lower))
}

/// Step 2: what is behind the end gets no name any more.
fn take_back(view: &mut View, end: &End) -> Result<()> {
    let (layout, shape) = (view.file().layout.clone(), view.file().shape);
    let next = end.next_sequence();
    if let Some(upper) = upper(view, end)? {
        let first = shape.upper_slot(next);
        for number in first..u64::from(shape.index_count) {
            let position = view.word(upper.slot(number))?;
            let lower = if position < end.position { view.array(position)? } else { None };
            match lower.filter(|_| number == first) {
                Some(lower) => {
                    let free = first_free(view, end);
                    clear(view.region(), &lower, free..u64::from(shape.index_count));
                }
                None if position != 0 => {
                    view.region().store_release(upper.slot(number), 0);
                    fault::point!("restart.link.store");
                }
                None => {}
            }
        }
        lower_to(view.region(), upper.used, first + 1);
    }
    let cells = view.region();
    lower_to(cells, layout.last_index, next.next_multiple_of(u64::from(shape.index_spacing)));
    let (position, word) = end
        .last
        .map_or((0, 0), |last| (last.position, shape.sequence_word(last.position, last.sequence)));
    cells.store_release(layout.write_position, position);
    fault::point!("restart.write-position.store");
    if let Some(sequence) = layout.sequence {
        cells.store_release(sequence, word);
        fault::point!("restart.sequence.store");
    }
    Ok(())
}

fn clear(cells: &Cells, array: &ArrayLayout, slots: std::ops::Range<u64>) {
    let first = slots.start;
    for slot in slots {
        if cells.load_acquire(array.slot(slot)) != 0 {
            cells.store_release(array.slot(slot), 0);
            fault::point!("restart.slot.store");
        }
    }
    lower_to(cells, array.used, first);
}

fn lower_to(cells: &Cells, position: u64, value: u64) {
    if cells.load_acquire(position) > value {
        cells.store_release(position, value);
        fault::point!("restart.lowered.store");
    }
}

/// Keeps the bytes behind the end, at their positions, for whoever wants to look at them.
fn keep_aside(file: &File, path: &Path, from: u64) -> Result<()> {
    let aside = create::aside(path);
    let failed = |e| Error::io("cannot keep what a power cut left", &aside, e);
    let access = Access { write: true, create_mode: Some(0o600) };
    let Some(kept) = space::open(&aside, access)? else { return Ok(()) };
    let mut chunk = vec![0; CHUNK];
    let mut at = from / PAGE * PAGE;
    loop {
        match fault::call!("restart.aside.read", file.read_at(&mut chunk, at)).map_err(failed)? {
            0 => return Ok(()),
            count => {
                if chunk[..count].iter().any(|byte| *byte != 0) {
                    fault::call!("restart.aside.write", kept.write_all_at(&chunk[..count], at))
                        .map_err(failed)?;
                }
                at += count as u64;
            }
        }
    }
}
