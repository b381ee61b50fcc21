//! The content of a copy of a cycle whose writers are still running.
//!
//! 1. The index is read up to its end. Entries before it are complete and do not change.
//! 2. Each of them points to a record, which was complete before it. Data files are only appended
//!    to, so the copy has each up to its last record with an entry. Later records have no
//!    entry yet, or never got one as their writer died.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::cycle_length;
use super::format::names::FileName;
use super::format::record;
use super::protocol::block::Block;
use super::protocol::cycle_reader::CycleReader;
use super::protocol::detect::Layout;
use super::protocol::{directory, entries, rebuild};
use crate::probe::fault;
use crate::snapshot::{File, Snapshot};
use crate::{Error, Result};

/// The end of the last record with an entry, for each data file.
type Ends = HashMap<(u32, u64), u64>;

/// Adds the file with the cycle length.
pub fn add_cycle_length(base: &Path, snapshot: &mut Snapshot) {
    let name = PathBuf::from(cycle_length::NAME);
    let found = fault::call!("vanilla.cycle-length.stat", base.join(&name).symlink_metadata());
    let length = cycle_length::LENGTH as u64;
    let is_kept = found.is_ok_and(|found| found.is_file() && found.len() == length);
    if is_kept && !snapshot.files.is_empty() {
        snapshot.files.push(File { name, used: length, length });
    }
}

/// Adds the files of a cycle whose index ended at `end` when it was read.
pub fn add_cycle(
    reader: &mut CycleReader,
    name: &str,
    end: u64,
    snapshot: &mut Snapshot,
) -> Result<()> {
    let directory = reader.directory().to_path_buf();
    // Listed only now: files are created before the entries that point to them.
    let found = directory::files(&directory)?;
    let mut ends = Ends::new();
    let mut per_file = 0;
    if let Some(layout) = reader.layout_of_any()? {
        let mut taken = entries::taken(&directory, &layout, &found)?;
        taken.retain(|(sequence, _)| *sequence < end);
        snapshot.messages += taken.len() as u64;
        for (sequence, entry) in taken {
            let payload = reader.payload(sequence, entry)?;
            let after = record::next(payload.at.position, payload.length);
            let known = ends.entry((payload.at.tid, payload.at.file)).or_default();
            *known = after.max(*known);
        }
        check_named(&directory, &layout, &found, &ends, end)?;
        per_file = layout.entries_per_file();
    }
    snapshot.files.extend(found.into_iter().filter_map(|(file, length)| {
        let used = match file {
            FileName::Index(number) => {
                8 * end.saturating_sub(number.saturating_mul(per_file)).min(per_file)
            }
            FileName::Data { tid, file } => *ends.get(&(tid, file))?,
        };
        let name = Path::new(name).join(file.to_string());
        Some(File { name, used: used.min(length), length })
    }));
    Ok(())
}

/// An error if the index has lost entries: a writer publishes a record only after the preceding one
/// has its entry, so at most one record of each data file may lack its entry.
fn check_named(
    directory: &Path,
    layout: &Layout,
    found: &[(FileName, u64)],
    ends: &Ends,
    end: u64,
) -> Result<()> {
    let mut unnamed = Vec::new();
    for (name, _) in found {
        let FileName::Data { tid, file } = *name else { continue };
        let from = ends.get(&(tid, file)).copied().unwrap_or_default();
        let count = records_from(&directory::path_of(directory, *name), from)?;
        if count > 1 {
            unnamed.push((*name, (tid, file), from, count));
        }
    }
    if unnamed.is_empty() {
        return Ok(());
    }
    // Read only now, to include entries made meanwhile.
    let mut named = HashMap::<_, u64>::new();
    for (sequence, entry) in entries::taken(directory, layout, &directory::files(directory)?)? {
        let at = layout.packing.unpack(entry);
        *named.entry((at.tid, at.file)).or_default() += u64::from(sequence >= end);
    }
    for (name, key, from, count) in unnamed {
        let lost = count - named.get(&key).copied().unwrap_or_default().min(count);
        if lost > 1 {
            return Err(Error::corrupt(
                "records have no entry in the index",
                &directory::path_of(directory, name),
                from,
                format!("{lost} records"),
                "an entry for each (stop the writers and rebuild the index: quire repair)",
            ));
        }
    }
    Ok(())
}

/// How many records follow a position.
fn records_from(path: &Path, mut at: u64) -> Result<u64> {
    let Some(mut block) = Block::open(path, false)? else { return Ok(0) };
    let mut count = 0;
    while let Some((position, length)) = rebuild::record_from(&mut block, at)? {
        at = record::next(position, length);
        count += 1;
    }
    Ok(count)
}
