//! Repairs files after a power cut or a crash of the system (`docs/durability.md`).
//!
//! The system writes pages to the medium in any order. Any part of what was not synced may be
//! missing, so documents may end at a hole while words and index slots point past it. Files
//! unchanged since the machine started are checked before they are written to:
//!
//! 1. walk from the last synced message, or the start, to the first header that is not a complete
//!    document: the end;
//! 2. if words or slots point past it: keep the bytes there in a side file;
//! 3. reset those words and slots; 4. zero the bytes after the end, and sync;
//! 5. set the file's time, so that it is checked only once.
//!
//! After a crash in between, the next opener starts over. Older files come first, and before the
//! first change a table key records the cycle from which files are to be checked, since each of
//! these steps makes a file look changed.
//!
//! If the clock was set forward, files of live writers look old. That is harmless: the lock keeps
//! those writers out meanwhile, none of their messages is after the end, and the space that they
//! reserved stays reserved.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use super::beside;
use super::create;
use super::head;
use super::listing::{self, Names};
use super::locate::{self, Located};
use super::lock::guard::DetachedGuard;
use super::roll_file::{Known, Slot, View};
use super::table::store::TableStore;
use super::walk::{Met, Walk};
use crate::chronicle::format::document::HEADER_LEN;
use crate::chronicle::format::index::ArrayLayout;
use crate::chronicle::format::table;
use crate::memory::Cells;
use crate::os::clock;
use crate::os::files::{self, Access};
use crate::os::interrupt::Signals;
use crate::probe::fault::{self, step};
use crate::{Error, Result, warnings};

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

/// A file to check.
struct Due {
    path: PathBuf,
    cycle: i32,
    /// The sequence of its last synced message, if that is known.
    synced: Option<u64>,
}

/// Whether the newest file is unchanged since the machine was started, or a repair is unfinished.
pub fn is_due(names: Names<'_>, table: &TableStore) -> Result<bool> {
    if begun_from(table)?.is_some() {
        return Ok(true);
    }
    let newest = i32::try_from(table.value(table.words().highest, table::NO_HIGHEST));
    let path = newest.ok().and_then(|cycle| path_of(names, cycle).ok());
    let changed = path.map(|path| changed(&path)).transpose()?.flatten();
    Ok(changed.zip(clock::machine_started()).is_some_and(|(changed, started)| changed < started))
}

/// Checks and repairs the newest files.
pub fn repair(names: Names<'_>, table: &TableStore, guard: &DetachedGuard<'_>) -> Result<()> {
    let due = due(names, table)?;
    if let Some(oldest) = due.first() {
        // If the lock was taken by force, another process may be writing at the end that this one
        // found.
        guard.check_held()?;
        set_begun_from(table, guard, i64::from(oldest.cycle))?;
        lower_normalised(table, oldest.cycle)?;
    }
    due.iter().try_for_each(|file| repair_file(names, guard, file))?;
    if begun_from(table)?.is_some() {
        set_begun_from(table, guard, table::NO_LOWEST)
    } else {
        Ok(())
    }
}

/// The files to check, oldest first: if the repair is interrupted, the newest file still shows that
/// it is due.
fn due(names: Names<'_>, table: &TableStore) -> Result<Vec<Due>> {
    let Some(started) = clock::machine_started() else { return Ok(Vec::new()) };
    let begun_from = begun_from(table)?;
    let synced = table.value(table.words().last_synced, -1);
    let synced = names.roll.split(synced).ok().filter(|_| synced >= 0);
    let cycles = listing::list_uncompressed(names)?;
    // A synced index beyond the last cycle is of a file moved away since, and says nothing about
    // the remaining ones.
    let synced = synced.filter(|(synced, _)| cycles.last().is_some_and(|last| synced <= last));
    let (mut due, mut newest) = (Vec::new(), None);
    for cycle in cycles.into_iter().rev() {
        let path = path_of(names, cycle)?;
        let Some(changed) = changed(&path)? else { continue };
        let since = newest.get_or_insert(changed).duration_since(changed);
        let is_whole = changed >= started
            || synced.is_some_and(|(synced, _)| cycle < synced)
            || since.is_ok_and(|since| since > files::WHOLE_AFTER);
        let is_begun = begun_from.is_some_and(|from| cycle >= from);
        if is_whole && !is_begun {
            break;
        }
        let synced = synced.filter(|(synced, _)| *synced == cycle && !is_begun);
        due.push(Due { path, cycle, synced: synced.map(|(_, sequence)| sequence) });
    }
    due.reverse();
    Ok(due)
}

/// The first cycle of an unfinished repair.
fn begun_from(table: &TableStore) -> Result<Option<i32>> {
    let Some(position) = table.find(table::REPAIR_FROM)? else { return Ok(None) };
    let from = table.value(position, table::NO_LOWEST);
    Ok(i32::try_from(from).ok().filter(|_| from != table::NO_LOWEST))
}

fn set_begun_from(table: &TableStore, guard: &DetachedGuard<'_>, cycle: i64) -> Result<()> {
    let signals = Signals::Deferred(guard.may_wait());
    match table.find_or_create(table::REPAIR_FROM, cycle, signals) {
        Ok(position) => {
            let cycle = cycle.cast_unsigned();
            table.cells().store_release(position, cycle, step!("restart.from.store"));
            Ok(())
        }
        // The table is full: without this word, a crash leaves the files as they are then.
        Err(Error::Invalid(_)) => Ok(()),
        Err(error) => Err(error),
    }
}

/// The end-of-file markers of these files may be lost: the next appender examines them again.
fn lower_normalised(table: &TableStore, oldest: i32) -> Result<()> {
    if let Some(position) = table.find(table::NORMALISED_TO)? {
        let below = i64::from(oldest) - 1;
        table.cells().lower_acq_rel(position, below, step!("restart.normalised.cas"));
    }
    Ok(())
}

fn path_of(names: Names<'_>, cycle: i32) -> Result<PathBuf> {
    Ok(names.dir.join(names.roll.file_name(cycle, names.epoch_ms)?))
}

fn changed(path: &Path) -> Result<Option<SystemTime>> {
    match fault::call!("restart.file.stat", std::fs::symlink_metadata(path)) {
        Ok(found) => Ok(found.modified().ok()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::io("cannot look at", path, error)),
    }
}

fn repair_file(names: Names<'_>, guard: &DetachedGuard<'_>, due: &Due) -> Result<()> {
    let path = &due.path;
    head::restore(path, names.roll.index_count, names.roll.index_spacing, guard)?;
    let file = match create::open_existing(path, due.cycle, true) {
        Ok(Some(file)) => Arc::new(file),
        Ok(None) => {
            guard.check_held()?;
            beside::forget_beyond(path, due.cycle, 0)?;
            return create::put_aside_unfinished(path, guard).map(drop);
        }
        Err(Error::Corrupt { .. }) => return Ok(()),
        Err(error) => return Err(error),
    };
    if create::check_writable(&file).is_err() {
        return Ok(());
    }
    let mut view = View::new(Arc::clone(&file));
    let Some(end) = end_of(&mut view, due.synced)? else {
        done(file.window.file(), path);
        return Ok(());
    };
    beside::forget_beyond(path, due.cycle, end.next_sequence())?;
    if end.last.is_none() && upper(&mut view, &end)?.is_none() {
        guard.check_held()?;
        return create::discard(path, guard);
    }
    file.window.refresh_len()?;
    if leads_past(&mut view, &end)? {
        keep_aside(file.window.file(), path, end.position)?;
        warnings::leave(format!(
            "messages were lost, as by a power cut: the file ends before messages that its index \
             names: file={} position={:#x} sequence={}",
            path.display(),
            end.position,
            end.next_sequence()
        ));
    }
    guard.check_held()?;
    view.make_words_writable()?;
    take_back(&mut view, &end, guard)?;
    guard.check_held()?;
    let failed = |e| Error::io("cannot zero", path, e);
    files::zero(file.window.file(), end.position).map_err(failed)?;
    file.window.sync()?;
    done(file.window.file(), path);
    Ok(())
}

/// Marks the file as checked until the machine is started again.
fn done(file: &File, path: &Path) {
    if let Err(error) = fault::call!("restart.file.touch", files::touch(file)) {
        warnings::leave(format!(
            "cannot set the time of a file that was examined, so the next process that opens the \
             queue examines it again: file={} error={error}",
            path.display()
        ));
    }
}

/// Step 1; None if the file has its end marker, or damage that a power cut does not cause.
fn end_of(view: &mut View, synced: Option<u64>) -> Result<Option<End>> {
    let from = match synced.map(|sequence| (sequence, locate::locate(view, sequence))) {
        Some((sequence, Ok(Located::Found(position)))) => Some(Known { position, sequence }),
        _ => None,
    };
    let mut walk = Walk::from(view, from);
    let mut last = None;
    loop {
        match walk.next_message() {
            Ok(Met::Message(message)) => last = Some(message),
            Ok(Met::End(Slot::EndOfData)) => return Ok(None),
            Ok(Met::End(_)) => return Ok(Some(End { position: walk.at.position, last })),
            Err(Error::Corrupt { .. }) => {
                // The file's last document, whose file growth was lost: no hint points to a later
                // one.
                let position = walk.at.position;
                let end = End { position, last };
                let after = End { position: position + HEADER_LEN, last };
                return Ok(if leads_past(view, &after)? { None } else { Some(end) });
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

/// Whether the write position, or an index slot, points past the end.
fn leads_past(view: &mut View, end: &End) -> Result<bool> {
    let len = view.file().window.file_len();
    let is_past = |position| position >= end.position && position < len;
    if is_past(view.write_position()?) {
        return Ok(true);
    }
    let Some(upper) = upper(view, end)? else { return Ok(false) };
    let shape = view.file().shape;
    let next = shape.upper_slot(end.next_sequence());
    for number in next..u64::from(shape.index_count) {
        let position = view.word(upper.slot(number))?;
        if is_past(position) {
            return Ok(true);
        }
        let Some(lower) = view.array(position)?.filter(|_| number == next) else { continue };
        for slot in first_free(view, end)..u64::from(shape.index_count) {
            if is_past(view.word(lower.slot(slot))?) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// The slot, in its lower array, of the first message after the end that gets one.
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

/// Step 3: resets the words and slots that point past the end.
fn take_back(view: &mut View, end: &End, _guard: &DetachedGuard<'_>) -> Result<()> {
    let (layout, shape) = (view.file().layout.clone(), view.file().shape);
    let next = end.next_sequence();
    if let Some(upper) = upper(view, end)? {
        view.make_array_writable(&upper)?;
        let first = shape.upper_slot(next);
        for number in first..u64::from(shape.index_count) {
            let position = view.word(upper.slot(number))?;
            let lower = if position < end.position { view.array(position)? } else { None };
            match lower.filter(|_| number == first) {
                Some(lower) => {
                    view.make_array_writable(&lower)?;
                    let free = first_free(view, end);
                    clear(view.region(), &lower, free..u64::from(shape.index_count));
                }
                None if position != 0 => {
                    view.region().store_release(upper.slot(number), 0, step!("restart.link.store"));
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
    cells.store_release(layout.write_position, position, step!("restart.write-position.store"));
    if let Some(sequence) = layout.sequence {
        cells.store_release(sequence, word, step!("restart.sequence.store"));
    }
    Ok(())
}

fn clear(cells: &Cells, array: &ArrayLayout, slots: std::ops::Range<u64>) {
    let first = slots.start;
    for slot in slots {
        if cells.load_acquire(array.slot(slot)) != 0 {
            cells.store_release(array.slot(slot), 0, step!("restart.slot.store"));
        }
    }
    lower_to(cells, array.used, first);
}

fn lower_to(cells: &Cells, position: u64, value: u64) {
    if cells.load_acquire(position) > value {
        cells.store_release(position, value, step!("restart.lowered.store"));
    }
}

/// Step 2: keeps the bytes after the end, at their positions, for later inspection.
fn keep_aside(file: &File, path: &Path, from: u64) -> Result<()> {
    let aside = create::aside(path);
    let failed = |e| Error::io("cannot keep what a power cut left", &aside, e);
    let access = Access { write: true, create_mode: Some(0o600) };
    let Some(kept) = files::open(&aside, access)? else { return Ok(()) };
    files::each_used_page(file, from, |at, page| {
        fault::call!("restart.aside.write", kept.write_all_at(page, at))
    })
    .and_then(|()| fault::call!("restart.aside.sync", files::sync(&kept)))
    .map_err(failed)
}
