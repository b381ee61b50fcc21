//! Checks the table: its keys, its locks, the listing, and the positions of named tailers.

use std::collections::BTreeMap;
use std::path::Path;

use super::quiet::Quiet;
use crate::Result;
use crate::chronicle::format::roll_cycle::RollCycle;
use crate::chronicle::format::table::{self, NO_LOWEST, UNLOCKED};
use crate::chronicle::protocol::listing::{self, Names};
use crate::chronicle::protocol::lock::recovery;
use crate::chronicle::protocol::table::store::TableStore;
use crate::finding::{Finding, Kind};

/// Keys that a queue needs; others are added when needed.
const NEEDED: [&str; 4] =
    [table::HIGHEST_CYCLE, table::LOWEST_CYCLE, table::MOD_COUNT, table::WRITE_LOCK];

/// Checks entries, keys and locks.
pub fn check(table: &TableStore) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    let entries = match table.entries() {
        Ok(entries) => entries,
        Err(crate::Error::Corrupt { position, found, expected, .. }) => {
            let kind = Kind::TableEntry;
            findings.push(Finding::at(kind, table.path(), position, found, expected));
            Vec::new()
        }
        Err(error) => return Err(error),
    };
    let is_known = |key: &str| entries.iter().any(|(known, _)| known.eq_ignore_ascii_case(key));
    if findings.is_empty() {
        let missing = NEEDED.iter().filter(|key| !is_known(key));
        findings.extend(missing.map(|key| {
            Finding::of(Kind::TableKey, table.path(), "no such key", (*key).to_owned())
        }));
    }
    for (key, _) in entries.iter().filter(|(key, _)| is_lock(key)) {
        findings.extend(stale(table, key)?);
    }
    findings.extend(almost_full(table));
    findings.extend(unfinished_restart(table));
    Ok(findings)
}

/// Whether a key is a lock word.
#[must_use]
pub fn is_lock(key: &str) -> bool {
    let is_tailers = || {
        let name = key.get(table::TAILER_PREFIX.len()..).unwrap_or_default();
        name.starts_with(table::REPLICATED_PREFIX)
            && name.rsplit_once('.').is_some_and(|(_, end)| end == "lock")
    };
    key == table::WRITE_LOCK || key == table::APPEND_LOCK || is_tailers()
}

/// A finding for a lock whose holder is dead, if the word is unchanged after the check.
fn stale(table: &TableStore, key: &str) -> Result<Option<Finding>> {
    let Some(position) = table.find(key)? else { return Ok(None) };
    let word = table.cells().load_acquire(position);
    if word == UNLOCKED || !matches!(recovery::holder_of(table, word), Some((_, false))) {
        return Ok(None);
    }
    let is_same = table.cells().load_acquire(position) == word;
    let found = format!("{key} held by process {}, which is dead", table::holder(word));
    let finding = Finding::at(Kind::StaleLock, table.path(), position, found, "unlocked");
    Ok(is_same.then_some(finding))
}

fn almost_full(table: &TableStore) -> Option<Finding> {
    let (found, expected) = (format!("{} % used", table.used_percent()), "less than 80 %");
    table
        .is_almost_full()
        .then(|| Finding::of(Kind::TableFull, table.path(), found, expected.to_owned()))
}

fn unfinished_restart(table: &TableStore) -> Option<Finding> {
    let Ok(Some(position)) = table.find(table::REPAIR_FROM) else { return None };
    let from = table.value(position, NO_LOWEST);
    let finding = || {
        let found = format!("files from cycle {from} on");
        Finding::at(Kind::Restart, table.path(), position, found, "none")
    };
    (from != NO_LOWEST).then(finding)
}

/// Checks the ends of the listing against the directory, and once more if they differ: a process
/// may be adding a file. Files created ahead of their cycle need not be listed: `begun` is the last
/// cycle before those.
pub fn check_listing(
    names: Names<'_>,
    table: &TableStore,
    quiet: &Quiet<'_>,
    begun: Option<i32>,
) -> Result<Option<Finding>> {
    let first = listing_finding(names, table, begun)?;
    if first.is_none() || !quiet.is_reached()? {
        return Ok(None);
    }
    Ok(listing_finding(names, table, begun)?.filter(|again| first.as_ref() == Some(again)))
}

fn listing_finding(
    names: Names<'_>,
    table: &TableStore,
    begun: Option<i32>,
) -> Result<Option<Finding>> {
    let words = table.words();
    if words.lowest == 0 || words.highest == 0 {
        return Ok(None);
    }
    let cycles = listing::list_uncompressed(names)?;
    let found = (table.value(words.lowest, 0), table.value(words.highest, 0));
    let Some((first, last)) = cycles.first().zip(cycles.last()) else {
        return Ok(None); // the values of an empty queue differ between releases
    };
    let expected = (i64::from(*first), i64::from(*last));
    // Java keeps the old upper bits beyond the 32 bits that it uses.
    let used = (low_bits(found.0), low_bits(found.1));
    let text = |(first, last)| format!("cycles {first} to {last}");
    let finding = || {
        let (found, expected) = (text(found), text(expected));
        Finding::at(Kind::Listing, table.path(), words.lowest, found, expected)
    };
    let is_right =
        used == expected || Some(used) == begun.map(|begun| (expected.0, i64::from(begun)));
    Ok((!is_right).then(finding))
}

#[allow(clippy::cast_possible_truncation)] // as Java does
const fn low_bits(cycle: i64) -> i64 {
    cycle as i32 as i64
}

/// The named tailers, read before the files are walked.
#[must_use]
pub fn tailers(table: &TableStore) -> Vec<(String, i64)> {
    table::named_tailers(&table.entries().unwrap_or_default())
}

/// Checks the positions of named tailers against the messages of each cycle.
#[must_use]
pub fn check_tailers(
    file: &Path,
    tailers: &[(String, i64)],
    roll: &RollCycle,
    next: &BTreeMap<i32, u64>,
) -> Vec<Finding> {
    let Some((last, _)) = next.last_key_value() else { return Vec::new() };
    let check = |(name, index): &(String, i64)| {
        let (cycle, sequence) = roll.split(*index).ok()?;
        let end = next.get(&cycle).copied();
        let is_after = cycle > *last || end.is_some_and(|end| sequence > end);
        let expected = roll.to_index(*last, next.get(last).copied()?).ok()?;
        is_after.then(|| {
            let found = format!("tailer {name} at {index:#x}");
            Finding::of(Kind::TailerPosition, file, found, format!("at most {expected:#x}"))
        })
    };
    tailers.iter().filter_map(check).collect()
}
