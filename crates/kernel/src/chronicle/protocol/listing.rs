//! Which cycles have a file (`docs/protocol.md`, "Listing").
//!
//! The table's `listing.*` words let processes see each other's files without listing the
//! directory: a creator raises `highestCycle`, lowers `lowestCycle` and adds to `modCount`. Names
//! are listed when they are needed, and again when `modCount` or the directory's time of change
//! changed: a creator may die before it adds, and a process that removes a file adds nothing.
//!
//! Java does not read compressed files, so the words leave them out; `quire.firstCompressed` names
//! the first.
//!
//! Opening a queue must not take longer the more files it has. So the words are trusted if the
//! directory has not changed since the file of the highest cycle was created.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use super::compressed;
use super::table::store::TableStore;
use crate::chronicle::format::roll_cycle::{RollCycle, SUFFIX, is_roll_file_name};
use crate::chronicle::format::table::{FIRST_COMPRESSED, NO_HIGHEST, NO_LOWEST};
use crate::os::interrupt::Signals;
use crate::probe::fault::{self, step};
use crate::{Error, Result};

/// Names are listed again after this long even if the table shows no change.
const REFRESH: Duration = Duration::from_secs(60);
/// How many cycles are looked up by name before the directory is listed.
const PROBES: i32 = 3;
/// The directory's modification time and the creation time of the file that changed it differ by at
/// most this.
const SAME_MOMENT: Duration = Duration::from_millis(5);
/// A directory that changed more recently than this may change again without a newer time: file
/// times have a granularity of a few milliseconds.
const SETTLES: Duration = Duration::from_millis(20);
/// Without a table nothing reports changes: list again after this long.
const REFRESH_WITHOUT_TABLE: Duration = Duration::from_millis(20);

/// The cycles of a directory, as last listed.
#[derive(Default)]
pub struct Listing {
    seen: Mutex<Option<Seen>>,
}

struct Seen {
    known: Known,
    stamp: Stamp,
    at: Instant,
}

/// Values that change when files come or go; taken before the directory is listed.
#[derive(Clone, Copy)]
struct Stamp {
    mod_count: i64,
    /// The directory's modification time, if available.
    changed: Option<SystemTime>,
    /// Whether a later change would have a later time.
    is_settled: bool,
}

impl Stamp {
    fn take(names: Names<'_>, table: Option<&TableStore>) -> Self {
        let mod_count = table.map_or(-1, |table| table.value(table.words().mod_count, -1));
        let found = fault::call!("listing.file.stat", std::fs::symlink_metadata(names.dir));
        let changed = found.and_then(|found| found.modified()).ok();
        let age = changed.and_then(|changed| SystemTime::now().duration_since(changed).ok());
        Self { mod_count, changed, is_settled: age.is_none_or(|age| age > SETTLES) }
    }

    /// Whether no file came or went between two stamps.
    fn is_same(self, now: Self) -> bool {
        let same = self.changed == now.changed && self.is_settled;
        self.mod_count == now.mod_count && (same || self.changed.is_none() || now.changed.is_none())
    }
}

enum Known {
    /// First and last cycle.
    Ends((i32, i32)),
    /// All cycles.
    All(BTreeSet<i32>),
}

/// The directory to list, and how to parse its names.
#[derive(Clone, Copy)]
pub struct Names<'a> {
    /// The queue's directory.
    pub dir: &'a Path,
    /// Its roll cycle.
    pub roll: &'a RollCycle,
    /// Its epoch in milliseconds.
    pub epoch_ms: i64,
}

impl Listing {
    /// Calls `look` with the cycles that have a file, listed again if that is due.
    pub fn with<T>(
        &self,
        names: Names<'_>,
        table: Option<&TableStore>,
        look: impl FnOnce(&BTreeSet<i32>) -> T,
    ) -> Result<T> {
        let stamp = Stamp::take(names, table);
        let mut seen = self.lock();
        if let Some(Known::All(cycles)) = fresh(seen.as_ref(), stamp) {
            return Ok(look(cycles));
        }
        let cycles = list_stable(names, table)?;
        let result = look(&cycles);
        *seen = Some(Seen { known: Known::All(cycles), stamp, at: Instant::now() });
        Ok(result)
    }

    /// First and last cycle that have a file; None when there are no files.
    pub fn ends(&self, names: Names<'_>, table: Option<&TableStore>) -> Result<Option<(i32, i32)>> {
        let stamp = Stamp::take(names, table);
        let mut seen = self.lock();
        if let Some(Known::Ends(ends)) = fresh(seen.as_ref(), stamp) {
            return Ok(Some(*ends));
        }
        if !matches!(fresh(seen.as_ref(), stamp), Some(Known::All(_)))
            && let Some(ends) = table.and_then(|table| try_ends(names, table))
        {
            *seen = Some(Seen { known: Known::Ends(ends), stamp, at: Instant::now() });
            return Ok(Some(ends));
        }
        drop(seen);
        self.with(names, table, |cycles| Some((*cycles.first()?, *cycles.last()?)))
    }

    /// The nearest cycle after this one that has a file. The next few names are probed one by one
    /// before the directory is listed.
    pub fn after(
        &self,
        names: Names<'_>,
        table: Option<&TableStore>,
        cycle: i32,
    ) -> Result<Option<i32>> {
        if !self.has_all(names, table) {
            let mut nearest = (1..=PROBES).map(|step| cycle.saturating_add(step));
            if let Some(next) = nearest.find(|next| has_file(names, i64::from(*next))) {
                return Ok(Some(next));
            }
        }
        self.with(names, table, |cycles| cycles.range(cycle.saturating_add(1)..).next().copied())
    }

    /// The nearest cycle before this one that has a file, searched like in [`Listing::after`].
    pub fn before(
        &self,
        names: Names<'_>,
        table: Option<&TableStore>,
        cycle: i32,
    ) -> Result<Option<i32>> {
        if !self.has_all(names, table) {
            let mut nearest = (1..=PROBES).map(|step| cycle.saturating_sub(step));
            if let Some(next) = nearest.find(|next| *next >= 0 && has_file(names, i64::from(*next)))
            {
                return Ok(Some(next));
            }
        }
        self.with(names, table, |cycles| cycles.range(..cycle).next_back().copied())
    }

    fn has_all(&self, names: Names<'_>, table: Option<&TableStore>) -> bool {
        let stamp = Stamp::take(names, table);
        matches!(fresh(self.lock().as_ref(), stamp), Some(Known::All(_)))
    }

    fn lock(&self) -> MutexGuard<'_, Option<Seen>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Discards the listed names.
    pub fn forget(&self) {
        *self.lock() = None;
    }
}

/// The listed names, if they are still current.
fn fresh(seen: Option<&Seen>, now: Stamp) -> Option<&Known> {
    let longest = if now.mod_count < 0 { REFRESH_WITHOUT_TABLE } else { REFRESH };
    let seen = seen?;
    (seen.stamp.is_same(now) && seen.at.elapsed() < longest).then_some(&seen.known)
}

/// Lists the directory, and again if the lowest cycle changed meanwhile: of a file that was just
/// being compressed, neither name may have been seen.
fn list_stable(names: Names<'_>, table: Option<&TableStore>) -> Result<BTreeSet<i32>> {
    let lowest = || table.map_or(NO_LOWEST, |table| table.value(table.words().lowest, NO_LOWEST));
    loop {
        let before = lowest();
        let cycles = list(names)?;
        if before == lowest() {
            return Ok(cycles);
        }
    }
}

/// Lists the directory.
pub fn list(names: Names<'_>) -> Result<BTreeSet<i32>> {
    cycles_of(names, &roll_file_names(names.dir)?)
}

fn cycles_of(names: Names<'_>, files: &[String]) -> Result<BTreeSet<i32>> {
    let cycle_of = |name: &String| {
        let cycle = names.roll.cycle_of_file(name, names.epoch_ms).filter(|cycle| *cycle >= 0);
        cycle.ok_or_else(|| Error::NotAQueue {
            why: format!("file {name} does not follow the pattern {} of", names.roll.pattern),
            path: names.dir.to_path_buf(),
        })
    };
    files.iter().map(cycle_of).collect()
}

/// Like [`list`], without files whose names do not follow the pattern.
pub fn list_well_named(names: Names<'_>) -> Result<BTreeSet<i32>> {
    Ok(well_named(names, &roll_file_names(names.dir)?))
}

/// Like [`list_well_named`], without compressed files.
pub fn list_uncompressed(names: Names<'_>) -> Result<BTreeSet<i32>> {
    let mut found = roll_file_names(names.dir)?;
    found.retain(|name| name.ends_with(SUFFIX));
    Ok(well_named(names, &found))
}

fn well_named(names: Names<'_>, files: &[String]) -> BTreeSet<i32> {
    let cycle_of = |name: &String| names.roll.cycle_of_file(name, names.epoch_ms);
    files.iter().filter_map(cycle_of).filter(|cycle| *cycle >= 0).collect()
}

/// The names in a directory that end like those of roll files or compressed ones.
pub fn roll_file_names(dir: &Path) -> Result<Vec<String>> {
    let failed = |e| Error::io("cannot list", dir, e);
    let mut found = Vec::new();
    for entry in fault::call!("listing.dir.read", std::fs::read_dir(dir)).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name().to_string_lossy().into_owned();
        if is_roll_file_name(&name) {
            found.push(name);
        }
    }
    Ok(found)
}

/// First and last cycle according to the words, if no file came or went since the last one was
/// created.
#[must_use]
pub fn try_ends(names: Names<'_>, table: &TableStore) -> Option<(i32, i32)> {
    let end = |position| i32::try_from(table.value(position, NO_HIGHEST)).ok();
    let (first, last) = (end(table.words().lowest)?, end(table.words().highest)?);
    let newest = names.dir.join(names.roll.file_name(last, names.epoch_ms).ok()?);
    let made = fault::call!("listing.file.stat", std::fs::symlink_metadata(newest)).ok()?;
    let changed = fault::call!("listing.file.stat", std::fs::symlink_metadata(names.dir)).ok()?;
    let current = changed.modified().ok()? <= made.created().ok()? + SAME_MOMENT;
    let first = first.min(first_compressed(table));
    (current && has_file(names, i64::from(first))).then_some((first, last))
}

/// The newest cycle according to the table, whether or not its file exists.
#[must_use]
pub fn highest(table: &TableStore) -> Option<i32> {
    i32::try_from(table.value(table.words().highest, NO_HIGHEST)).ok().filter(|it| *it >= 0)
}

/// The first compressed cycle according to the table; [`i32::MAX`] if there is none.
fn first_compressed(table: &TableStore) -> i32 {
    let position = table.find(FIRST_COMPRESSED).ok().flatten();
    let first = position.map_or(NO_LOWEST, |position| table.value(position, NO_LOWEST));
    i32::try_from(first).unwrap_or(i32::MAX)
}

/// Like [`refresh`], but does nothing if the table is known to have both ends.
pub fn refresh_if_needed(names: Names<'_>, table: &TableStore, signals: Signals<'_>) -> Result<()> {
    if try_ends(names, table).is_none() {
        return refresh(names, table, signals);
    }
    table.cells().add_acq_rel(table.words().mod_count, 1, step!("listing.mod-count.add"));
    Ok(())
}

/// Lists the directory and stores its ends in the table: those of the files that Java reads, and
/// separately the first compressed cycle.
pub fn refresh(names: Names<'_>, table: &TableStore, signals: Signals<'_>) -> Result<()> {
    let files = roll_file_names(names.dir)?;
    let (plain, compressed): (Vec<_>, Vec<_>) =
        files.into_iter().partition(|name| name.ends_with(SUFFIX));
    let cycles = cycles_of(names, &plain)?;
    let (words, cells) = (table.words(), table.cells());
    let highest = cycles.last().map_or(NO_HIGHEST, |cycle| i64::from(*cycle));
    let lowest = cycles.first().map_or(NO_LOWEST, |cycle| i64::from(*cycle));
    // A file created since the listing must not be forgotten, so only raise it.
    let seen = cells.load_acquire(words.highest);
    if seen.cast_signed() < highest || !has_plain_file(names, seen.cast_signed()) {
        let new = highest.cast_unsigned();
        let _ = cells.swap_acq_rel(words.highest, seen, new, step!("listing.highest.cas"));
    }
    let seen = cells.load_acquire(words.lowest);
    if seen.cast_signed() > lowest || !has_plain_file(names, seen.cast_signed()) {
        let new = lowest.cast_unsigned();
        let _ = cells.swap_acq_rel(words.lowest, seen, new, step!("listing.lowest.cas"));
    }
    let first = cycles_of(names, &compressed)?.first().copied();
    refresh_compressed(names, table, first, signals)?;
    cells.add_acq_rel(words.mod_count, 1, step!("listing.mod-count.add"));
    Ok(())
}

/// Stores the first compressed cycle. An announced cycle that still has its roll file is kept.
fn refresh_compressed(
    names: Names<'_>,
    table: &TableStore,
    first: Option<i32>,
    signals: Signals<'_>,
) -> Result<()> {
    let position = match first {
        Some(first) => table.find_or_create(FIRST_COMPRESSED, i64::from(first), signals).map(Some),
        None => table.find(FIRST_COMPRESSED),
    };
    let Some(position) = position? else { return Ok(()) };
    let (cells, first) = (table.cells(), first.map_or(NO_LOWEST, i64::from));
    let seen = cells.load_acquire(position);
    if seen.cast_signed() > first || !has_file(names, seen.cast_signed()) {
        let new = first.cast_unsigned();
        let _ = cells.swap_acq_rel(position, seen, new, step!("listing.lowest.cas"));
    }
    Ok(())
}

/// Whether the file of a cycle exists, compressed or not.
#[must_use]
pub fn has_file(names: Names<'_>, cycle: i64) -> bool {
    path_of(names, cycle).is_some_and(|path| exists(&path) || exists(&compressed::path_for(&path)))
}

/// Whether a cycle has only a compressed file.
#[must_use]
pub fn is_compressed(names: Names<'_>, cycle: i32) -> bool {
    path_of(names, i64::from(cycle))
        .is_some_and(|path| !exists(&path) && exists(&compressed::path_for(&path)))
}

fn has_plain_file(names: Names<'_>, cycle: i64) -> bool {
    path_of(names, cycle).is_some_and(|path| exists(&path))
}

fn path_of(names: Names<'_>, cycle: i64) -> Option<PathBuf> {
    let name = names.roll.file_name(i32::try_from(cycle).ok()?, names.epoch_ms).ok()?;
    Some(names.dir.join(name))
}

/// Whether a path exists.
#[must_use]
pub fn exists(path: &Path) -> bool {
    fault::call!("listing.file.stat", std::fs::symlink_metadata(path)).is_ok()
}

/// Notes a new file: step 6 of its creation.
pub fn note_created(table: &TableStore, cycle: i32) {
    let (words, cells) = (table.words(), table.cells());
    cells.lower_acq_rel(words.lowest, i64::from(cycle), step!("create.lowest.cas"));
    cells.raise_acq_rel(words.highest, i64::from(cycle), step!("create.highest.cas"));
    // By 2, as Java counts the creation and the roll.
    cells.add_acq_rel(words.mod_count, 2, step!("create.mod-count.add"));
}

/// Raises the first cycle before the files of earlier ones are removed, so that the word never
/// names a removed file. [`refresh`] lowers it again if files remained.
pub fn announce_removal(table: &TableStore, first_left: i32) {
    let (words, cells) = (table.words(), table.cells());
    cells.raise_acq_rel(words.lowest, i64::from(first_left), step!("listing.lowest.cas"));
    cells.add_acq_rel(words.mod_count, 1, step!("listing.mod-count.add"));
}

/// Notes a cycle before it gets a compressed file. [`refresh`] resets the word if it has none.
pub fn announce_compression(table: &TableStore, cycle: i32, signals: Signals<'_>) -> Result<()> {
    let position = table.find_or_create(FIRST_COMPRESSED, i64::from(cycle), signals)?;
    table.cells().lower_acq_rel(position, i64::from(cycle), step!("listing.lowest.cas"));
    Ok(())
}

/// This cycle, or the newest that has a file.
#[inline]
#[must_use]
pub fn newest(table: &TableStore, cycle: i32) -> i32 {
    let highest = table.value(table.words().highest, NO_HIGHEST);
    cycle.max(i32::try_from(highest).unwrap_or(cycle))
}
