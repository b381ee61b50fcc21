//! The entries of the table store: finding one, and adding or removing one under the key lock.
//!
//! 1. walk the keys again; 2. write the entry after a 0 header, and zeros after it; 3. CAS the
//!    header. A crash before the last step leaves nothing visible.
//!
//! An entry is removed by one CAS, which turns it into a metadata document: readers, including
//! Java's, skip those. Processes that had looked it up may still store to its value, so its room is
//! not reused while such a process may exist: it is marked as free when a process opens the table
//! and no other process has it open. From then on it may be reused, since a removed key cannot be
//! looked up. Marking is done once the table is full.

use quire_wire::codes::PADDING;
use quire_wire::latin1;

use crate::chronicle::format::document::{self, HEADER_LEN, Header, TAIL_ZEROS};
use crate::chronicle::format::table;
use crate::memory::Cells;
use crate::probe::fault::step;

/// Where a key is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// Its value is at this position.
    At(u64),
    /// The key is missing; the next entry belongs here.
    Missing(u64),
}

/// Why a key was not found or not added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadTable {
    /// An entry at this position, of this length, ends past the end of the table.
    PastTheEnd(u64, u32),
    /// An entry's value is at this position, which is unaligned.
    Unaligned(u64),
    /// There is no room after this position.
    Full(u64),
    /// The header at this position became this without the key lock.
    HeaderTaken(u64, u32),
}

/// Looks for a key, in Latin-1; case does not matter.
pub fn find(cells: &Cells, key: &[u8]) -> Result<Key, BadTable> {
    walk(cells, |_, found, value| latin1::eq_ignore_case(found, key).then_some(value))
}

/// Every key, in Latin-1, and its value, in order of creation.
pub fn all(cells: &Cells) -> Result<Vec<(Vec<u8>, i64)>, BadTable> {
    let mut entries = Vec::new();
    walk(cells, |_, key, value| {
        if value.is_multiple_of(8) {
            entries.push((key.to_vec(), cells.load_acquire(value).cast_signed()));
        }
        None
    })?;
    Ok(entries)
}

/// Calls `look` with each key's document, the key, and the position of its value, until it returns
/// a position.
fn walk(
    cells: &Cells,
    mut look: impl FnMut(u64, &[u8], u64) -> Option<u64>,
) -> Result<Key, BadTable> {
    let mut position = 0;
    while position + HEADER_LEN <= cells.len() {
        let (length, is_data) = match document::parse(cells.load_header_acquire(position)) {
            Header::Waiting | Header::EndOfData => return Ok(Key::Missing(position)),
            Header::Data(length) => (length, true),
            Header::Meta(length) => (length, false),
        };
        let next = document::next(position, length, true);
        if next > cells.len() {
            return Err(BadTable::PastTheEnd(position, length));
        }
        // A copy, as other processes store to the value.
        let copied = || cells.copy_out_relaxed(position + HEADER_LEN, u64::from(length));
        let payload = if is_data { copied() } else { Vec::new() };
        let entry = table::parse_entry(&payload);
        let value =
            entry.and_then(|(key, at)| look(position, key, position + HEADER_LEN + at as u64));
        match value {
            Some(value) if value.is_multiple_of(8) => return Ok(Key::At(value)),
            Some(value) => return Err(BadTable::Unaligned(value)),
            None => position = next,
        }
    }
    Ok(Key::Missing(position))
}

/// The mark in the payload of a removed entry that may be reused.
const FREE: [u8; 4] = *b"free";

/// Marks the removed entries as free. The caller holds the key lock, no other process has the table
/// open, and this process has no handle on it yet.
pub fn free_removed(cells: &Cells) {
    for (position, length) in removed(cells) {
        if length as usize >= FREE.len() {
            cells.copy_in_plain(position + HEADER_LEN, &FREE, step!("table.key.store"));
        }
    }
}

/// Positions and lengths of the metadata documents after the header: removed entries.
fn removed(cells: &Cells) -> Vec<(u64, u32)> {
    let (mut found, mut position) = (Vec::new(), 0);
    while position + HEADER_LEN <= cells.len() {
        let (length, is_removed) = match document::parse(cells.load_header_acquire(position)) {
            Header::Waiting | Header::EndOfData => break,
            Header::Data(length) => (length, false),
            Header::Meta(length) => (length, position > 0),
        };
        let next = document::next(position, length, true);
        if next > cells.len() {
            break;
        }
        if is_removed {
            found.push((position, length));
        }
        position = next;
    }
    found
}

/// How many bytes the entries take, including removed ones that are not free.
#[must_use]
pub fn used(cells: &Cells) -> u64 {
    let end = match walk(cells, |_, _, _| None) {
        Ok(Key::Missing(end)) => end,
        _ => cells.len(),
    };
    let free = removed(cells).into_iter().filter(|it| is_free(cells, *it));
    end.saturating_sub(free.map(|(_, length)| u64::from(length)).sum())
}

fn is_free(cells: &Cells, (position, length): (u64, u32)) -> bool {
    length as usize >= FREE.len()
        && cells.copy_out_relaxed(position + HEADER_LEN, FREE.len() as u64) == FREE
}

/// Adds a key in the smallest free removed entry that has room for it. A crash
/// before the last step leaves a removed entry.
fn add_in_free(cells: &Cells, key: &[u8], initial: i64) -> Result<Option<u64>, BadTable> {
    let fits = |(position, length): &(u64, u32)| {
        let needed = table::encode_entry(key, *position, initial).0.len();
        *length as usize >= needed && is_free(cells, (*position, *length))
    };
    let free = removed(cells).into_iter().filter(fits).min_by_key(|(_, length)| *length);
    let Some((position, length)) = free else { return Ok(None) };
    let (mut payload, value_at) = table::encode_entry(key, position, initial);
    payload.resize(length as usize, PADDING);
    cells.store_each_relaxed(position + HEADER_LEN, &payload, step!("table.key.store"));
    let (found, word) = (document::word(length, true), document::word(length, false));
    cells
        .publish_header(position, found, word, step!("table.key.cas"))
        .map_err(|found| BadTable::HeaderTaken(position, found))?;
    Ok(Some(position + HEADER_LEN + value_at as u64))
}

/// Adds a key unless it is there. The caller holds the key lock. Returns the position of its value,
/// and whether it was added.
pub fn find_or_add(cells: &Cells, key: &[u8], initial: i64) -> Result<(u64, bool), BadTable> {
    let slot = match find(cells, key)? {
        Key::At(value) => return Ok((value, false)),
        Key::Missing(slot) => slot,
    };
    let (payload, value_at) = table::encode_entry(key, slot, initial);
    let past = slot + HEADER_LEN + payload.len() as u64;
    if past + HEADER_LEN > cells.len() {
        let added = add_in_free(cells, key, initial)?;
        return added.map(|value| (value, true)).ok_or(BadTable::Full(slot));
    }
    let found = cells.load_header_acquire(slot);
    cells.copy_in_plain(slot + HEADER_LEN, &payload, step!("table.key.store"));
    cells.zero_plain(past, TAIL_ZEROS.min(cells.len() - past), step!("table.key.store"));
    // Lengths were bounded by the table's above.
    let word = document::word(u32::try_from(payload.len()).unwrap_or(0), false);
    cells
        .publish_header(slot, found, word, step!("table.key.cas"))
        .map_err(|found| BadTable::HeaderTaken(slot, found))?;
    Ok((slot + HEADER_LEN + value_at as u64, true))
}

/// Removes a key, in Latin-1; false if it was missing. The caller holds the key lock.
pub fn remove(cells: &Cells, key: &[u8]) -> Result<bool, BadTable> {
    let mut document = None;
    walk(cells, |position, found, value| {
        document = latin1::eq_ignore_case(found, key).then_some(position);
        document.map(|_| value)
    })?;
    let Some(position) = document else { return Ok(false) };
    let found = cells.load_header_acquire(position);
    let Header::Data(length) = document::parse(found) else {
        return Err(BadTable::HeaderTaken(position, found));
    };
    cells
        .publish_header(position, found, document::word(length, true), step!("table.key.remove"))
        .map_err(|found| BadTable::HeaderTaken(position, found))?;
    Ok(true)
}
