//! Rebuilds a lost or damaged index from the data files.
//!
//! Entries that point to a record keep their places. Records without an entry, due to a lost page
//! of the index or a writer that died before its last entry, fill the free places, thread by
//! thread: files do not record in which order threads wrote. Remaining free places are closed up, as
//! Java's readers do not get over them. The old files stay beside the new ones as
//! `.before-rebuild-index-{n}`. Each file is replaced atomically: an interrupted rebuild is
//! completed by another one.

use std::collections::HashSet;
use std::fs::Metadata;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use super::block::Block;
use super::detect::{self, Asked, Layout};
use super::{directory, entries};
use crate::os::files::{self, Access};
use crate::os::range_lock::{self, WHOLE_FILE};
use crate::os::replacement::{self, PERMISSIONS};
use crate::probe::fault;
use crate::vanilla::format::entry::Location;
use crate::vanilla::format::names::FileName;
use crate::vanilla::format::record::{self, HEADER, Length};
use crate::{Error, Result};

/// The result of rebuilding a cycle's index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rebuilt {
    /// Messages of the cycle.
    pub messages: u64,
    /// Messages that were missing in the index.
    pub recovered: u64,
    /// Entries that pointed to no record.
    pub dropped: u64,
    /// Whether messages have changed their index.
    pub is_moved: bool,
}

impl Rebuilt {
    /// Whether the files were written again.
    #[must_use]
    pub const fn is_changed(&self) -> bool {
        self.recovered > 0 || self.dropped > 0 || self.is_moved
    }
}

/// Checks a cycle's directory. Returns what a rebuild of its index changes, and the plan that
/// writes the index again if necessary. No process may write to the cycle meanwhile; Quire's
/// writers are detected.
pub fn plan(directory: &Path, asked: Asked) -> Result<(Rebuilt, Option<Plan>)> {
    let found = directory::files(directory)?;
    for (name, _) in &found {
        check_nobody_writes(directory, *name)?;
    }
    let Some(Compared { layout, entries, kept, mut lost }) = compare(directory, asked, &found)?
    else {
        let empty = Rebuilt { messages: 0, recovered: 0, dropped: 0, is_moved: false };
        return Ok((empty, None));
    };
    let (recovered, dropped) = (lost.len() as u64, (entries.len() - kept.len()) as u64);
    lost.reverse();
    let (entries, places) = joined(&kept, lost);
    let messages = entries.len() as u64;
    let rebuilt = Rebuilt { messages, recovered, dropped, is_moved: places.is_moved() };
    let plan = Plan { directory: directory.to_path_buf(), layout, found, entries, places };
    Ok((rebuilt, rebuilt.is_changed().then_some(plan)))
}

/// The new index of a cycle.
pub struct Plan {
    directory: PathBuf,
    layout: Layout,
    found: Vec<(FileName, u64)>,
    entries: Vec<u64>,
    /// Where the entries go that stay.
    pub places: Places,
}

/// The sequence numbers of the entries that stay: the old one and the new one of each.
#[derive(Debug, PartialEq, Eq)]
pub struct Places(Vec<(u64, u64)>);

impl Places {
    fn is_moved(&self) -> bool {
        self.0.iter().any(|(old, new)| old != new)
    }

    /// Where a reader goes on that would have gone on at a sequence number: after the last entry that
    /// stays and that it has passed. What is recovered after that it may read again.
    #[must_use]
    pub fn next(&self, sequence: u64) -> u64 {
        let passed = self.0.partition_point(|(old, _)| *old < sequence);
        self.0[..passed].last().map_or(0, |(_, new)| new + 1)
    }
}

/// Index entries of a cycle, with the records they point to.
pub struct Compared {
    pub layout: Layout,
    /// Sequence numbers and entries that are not 0.
    pub entries: Vec<(u64, u64)>,
    /// Entries that point to a record, each record once.
    pub kept: Vec<(u64, u64)>,
    /// The entries that are missing for records without one.
    pub lost: Vec<u64>,
}

/// Compares a cycle's entries with its records; None if there are neither.
pub fn compare(
    directory: &Path,
    asked: Asked,
    found: &[(FileName, u64)],
) -> Result<Option<Compared>> {
    let mut data: Vec<_> = found.iter().filter_map(|(name, _)| data_file(*name)).collect();
    data.sort_unstable(); // in the order in which each thread filled them, not the directory's
    let mut records = Vec::new();
    for (tid, file) in data {
        add_records(directory, tid, file, &mut records)?;
    }
    let Some(layout) = layout_of(directory, asked, found, &records)? else { return Ok(None) };
    let entries = entries::taken(directory, &layout, found)?;
    let kept = named_records(directory, &layout, &entries)?;
    let named: HashSet<_> = kept.iter().map(|(_, entry)| *entry).collect();
    let packed = records.iter().filter_map(|at| layout.packing.pack(*at));
    let lost = packed.filter(|entry| !named.contains(entry)).collect();
    Ok(Some(Compared { layout, entries, kept, lost }))
}

fn check_nobody_writes(directory: &Path, name: FileName) -> Result<()> {
    let path = directory::path_of(directory, name);
    if data_file(name).is_some() && is_written_to(&path)? {
        return Err(Error::WriterInUse { what: "an appender writes to the cycle:".into(), path });
    }
    Ok(())
}

/// Whether an appender of this kernel has a data file open.
pub fn is_written_to(path: &Path) -> Result<bool> {
    let Some(file) = files::open(path, Access { write: false, create_mode: None })? else {
        return Ok(false);
    };
    let held = range_lock::is_held_elsewhere(&file, WHOLE_FILE);
    held.map_err(|e| Error::io("cannot look at", path, e))
}

const fn data_file(name: FileName) -> Option<(u32, u64)> {
    match name {
        FileName::Data { tid, file } => Some((tid, file)),
        FileName::Index(_) => None,
    }
}

/// Adds the records of a data file, in its order.
fn add_records(directory: &Path, tid: u32, file: u64, records: &mut Vec<Location>) -> Result<()> {
    let path = directory::path_of(directory, FileName::Data { tid, file });
    let Some(mut block) = Block::open(&path, false)? else { return Ok(()) };
    let start = records.len();
    let mut at = 0;
    while let Some((position, length)) = record_from(&mut block, at)? {
        records.push(Location { tid, file, position });
        at = record::next(position, length);
    }
    records[start..].sort_unstable();
    Ok(())
}

/// The length of the record whose header is at a position; None if none is published there.
fn record_at(block: &mut Block, at: u64) -> Result<Option<u64>> {
    let Length::Bytes(length) = record::length(block.word32(at)?) else { return Ok(None) };
    let length = u64::from(length);
    Ok((at + HEADER + length <= block.length()).then_some(length))
}

/// The start and length of the next record's payload, skipping padding.
pub fn record_from(block: &mut Block, at: u64) -> Result<Option<(u64, u64)>> {
    let is_padding = block.word32(at)? == record::PADDING;
    let at = if is_padding { at + HEADER } else { at };
    Ok(record_at(block, at)?.map(|length| (at + HEADER, length)))
}

/// Whether a data file has at least this many records.
pub fn has_records(path: &Path, count: u64) -> Result<bool> {
    let Some(mut block) = Block::open(path, false)? else { return Ok(false) };
    let mut at = 0;
    for _ in 0..count {
        let Some((position, length)) = record_from(&mut block, at)? else { return Ok(false) };
        at = record::next(position, length);
    }
    Ok(true)
}

/// The layout by the entries or, if they are lost, by the lengths of the files.
fn layout_of(
    directory: &Path,
    asked: Asked,
    found: &[(FileName, u64)],
    records: &[Location],
) -> Result<Option<Layout>> {
    if let Ok(Some(fit)) = detect::detect(directory, asked) {
        return Ok(Some(fit.layout));
    }
    if records.is_empty() {
        return Ok(None);
    }
    let longest = |is_data: bool| {
        let of_kind = found.iter().filter(|(name, _)| data_file(*name).is_some() == is_data);
        of_kind.map(|(_, len)| *len).max().filter(|len| *len >= 64 && len.is_power_of_two())
    };
    let layout = detect::default_layout(Asked {
        tid_bits: asked.tid_bits,
        data_block: asked.data_block.or_else(|| longest(true)),
        index_block: asked.index_block.or_else(|| longest(false)),
    })?;
    if let Some(unfit) = records.iter().find(|at| layout.packing.pack(**at).is_none()) {
        let (tid, bits) = (unfit.tid, layout.packing.tid_bits);
        return Err(Error::Invalid(format!(
            "the thread id of a data file needs more bits: thread_id={tid} tid_bits={bits} path={}",
            directory.display()
        )));
    }
    Ok(Some(layout))
}

/// The entries that point to a record, each record once.
fn named_records(
    directory: &Path,
    layout: &Layout,
    entries: &[(u64, u64)],
) -> Result<Vec<(u64, u64)>> {
    let mut seen = HashSet::new();
    let mut open: Option<((u32, u64), Option<Block>)> = None;
    let mut kept = Vec::with_capacity(entries.len());
    for &(sequence, entry) in entries {
        let at = layout.packing.unpack(entry);
        let key = (at.tid, at.file);
        if !matches!(&open, Some((it, _)) if *it == key) {
            let name = FileName::Data { tid: at.tid, file: at.file };
            open = Some((key, Block::open(&directory::path_of(directory, name), false)?));
        }
        let Some((_, Some(block))) = &mut open else { continue };
        let is_aligned = at.position >= HEADER && at.position.is_multiple_of(4);
        if is_aligned && record_at(block, at.position - HEADER)?.is_some() && seen.insert(entry) {
            kept.push((sequence, entry));
        }
    }
    Ok(kept)
}

/// All entries in their new order, and the places of those that were kept. Lost entries are taken
/// from the end of `lost`.
fn joined(kept: &[(u64, u64)], mut lost: Vec<u64>) -> (Vec<u64>, Places) {
    let mut entries = Vec::with_capacity(kept.len() + lost.len());
    let mut places = Vec::with_capacity(kept.len());
    for (sequence, entry) in kept {
        while (entries.len() as u64) < *sequence
            && let Some(found) = lost.pop()
        {
            entries.push(found);
        }
        places.push((*sequence, entries.len() as u64));
        entries.push(*entry);
    }
    entries.extend(lost.into_iter().rev());
    (entries, Places(places))
}

impl Plan {
    /// Replaces the index files: the new ones are on the medium before they get their names, and
    /// `before` is called in between.
    pub fn write(&self, before: impl FnOnce()) -> Result<()> {
        let directory = self.directory.as_path();
        let like = like(directory, &self.found)?;
        let per_file = usize::try_from(self.layout.entries_per_file()).unwrap_or(usize::MAX);
        let mut written = Vec::new();
        for (number, part) in self.entries.chunks(per_file).enumerate() {
            let length = self.layout.index_block;
            written.push(write_part(directory, number as u64, part, length, &like)?);
        }
        let mode = like.mode() & PERMISSIONS;
        let old = self.found.iter().filter(|(name, _)| data_file(*name).is_none());
        for (name, _) in old.clone() {
            let kept = directory.join(format!(".before-rebuild-{name}"));
            remove(&kept)?;
            let path = directory::path_of(directory, *name);
            let copied = fault::call!("vanilla.rebuild.keep", files::copy(&path, &kept, mode));
            copied.map_err(|e| Error::io("cannot copy", &kept, e))?;
        }
        before();
        for (number, path) in written.iter().enumerate() {
            let name = directory::path_of(directory, FileName::Index(number as u64));
            let renamed = fault::call!("vanilla.rebuild.rename", files::rename(path, &name));
            renamed.map_err(|e| Error::io("cannot rename", path, e))?;
        }
        for (name, _) in old {
            if matches!(name, FileName::Index(number) if *number >= written.len() as u64) {
                remove(&directory::path_of(directory, *name))?;
            }
        }
        directory::sync(directory, directory)
    }
}

/// An index file, or else a data file: the new index files are for the same users.
fn like(directory: &Path, found: &[(FileName, u64)]) -> Result<Metadata> {
    let index = found.iter().find(|(name, _)| data_file(*name).is_none());
    let path = index
        .or(found.first())
        .map_or_else(|| directory.to_path_buf(), |(name, _)| directory::path_of(directory, *name));
    let found = fault::call!("vanilla.file.stat", std::fs::symlink_metadata(&path));
    found.map_err(|e| Error::io("cannot look at", &path, e))
}

fn write_part(
    directory: &Path,
    number: u64,
    entries: &[u64],
    length: u64,
    like: &Metadata,
) -> Result<PathBuf> {
    let path = directory.join(format!(".rebuilt-index-{number}"));
    let failed = |e| Error::io("cannot write", &path, e);
    remove(&path)?;
    let file = replacement::create(&path, like)?;
    let bytes: Vec<u8> = entries.iter().flat_map(|entry| entry.to_le_bytes()).collect();
    fault::call!("vanilla.rebuild.write", file.write_all_at(&bytes, 0)).map_err(failed)?;
    fault::call!("vanilla.rebuild.grow", files::set_len(&file, length)).map_err(failed)?;
    fault::call!("vanilla.rebuild.sync", files::sync(&file)).map_err(failed)?;
    Ok(path)
}

fn remove(path: &Path) -> Result<()> {
    match fault::call!("vanilla.rebuild.remove", std::fs::remove_file(path)) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(Error::io("cannot remove", path, error))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lost_entries_fill_the_free_places_and_the_rest_is_closed_up() {
        let joined = |kept: &[(u64, u64)], lost| {
            let (entries, places) = super::joined(kept, lost);
            (entries, places.is_moved())
        };
        assert_eq!(joined(&[(0, 10), (3, 13)], vec![12, 11]), (vec![10, 11, 12, 13], false));
        assert_eq!(joined(&[(0, 10), (3, 13)], vec![11]), (vec![10, 11, 13], true));
        assert_eq!(joined(&[(0, 10)], vec![12, 11]), (vec![10, 11, 12], false));
        assert_eq!(joined(&[], vec![2, 1]), (vec![1, 2], false));
    }

    #[test]
    fn a_reader_goes_on_after_the_last_entry_that_it_passed_and_that_stays() {
        let places = Places(vec![(0, 0), (1, 1), (5, 3), (6, 4)]);
        let next = [(0, 0), (1, 1), (2, 2), (4, 2), (5, 2), (6, 4), (7, 5), (99, 5)];
        for (old, new) in next {
            assert_eq!(places.next(old), new, "{old}");
        }
        assert_eq!(Places(vec![]).next(7), 0);
    }
}
