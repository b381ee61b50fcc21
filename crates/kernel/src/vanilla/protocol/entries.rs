//! Finding entries of an index: the first free one without walking through it, as they are filled
//! from the first on, or all that are taken.

use std::path::Path;

use super::block::Block;
use super::detect::Layout;
use super::directory;
use crate::os::files::{self, Access};
use crate::vanilla::format::names::FileName;
use crate::{Error, Result};

/// The first free number from `from` up to `limit`, if all before a free one are taken.
pub fn first_free(
    from: u64,
    limit: u64,
    mut is_taken: impl FnMut(u64) -> Result<bool>,
) -> Result<u64> {
    if from >= limit || !is_taken(from)? {
        return Ok(from.min(limit));
    }
    let (mut taken, mut step) = (from, 1);
    loop {
        let next = (taken + step).min(limit);
        if next == limit || !is_taken(next)? {
            return between(taken, next, is_taken);
        }
        (taken, step) = (next, step * 2);
    }
}

/// The first free entry between `taken`, which is taken, and `free`, which is free or the limit.
fn between(
    mut taken: u64,
    mut free: u64,
    mut is_taken: impl FnMut(u64) -> Result<bool>,
) -> Result<u64> {
    while free - taken > 1 {
        let middle = taken + (free - taken) / 2;
        if is_taken(middle)? {
            taken = middle;
        } else {
            free = middle;
        }
    }
    Ok(free)
}

/// The numbers of a cycle's index files in ascending order. A file is created when the preceding
/// one is full: if that is missing, a file with entries counts if the last one before it is full.
/// Other files are stray; readers and writers ignore them.
pub fn index_numbers(directory: &Path, per_file: u64) -> Result<Vec<u64>> {
    let found = directory::files(directory)?.into_iter().filter_map(|(name, _)| match name {
        FileName::Index(number) => Some(number),
        FileName::Data { .. } => None,
    });
    let mut found: Vec<_> = found.collect();
    found.sort_unstable();
    let mut numbers: Vec<u64> = Vec::with_capacity(found.len());
    for number in found {
        let is_next = match numbers.last() {
            None => number == 0 || has_entry(directory, number)?,
            Some(last) if last + 1 == number => true,
            Some(last) => is_full(directory, *last, per_file)? && has_entry(directory, number)?,
        };
        if is_next {
            numbers.push(number);
        }
    }
    Ok(numbers)
}

fn has_entry(directory: &Path, number: u64) -> Result<bool> {
    let path = directory::path_of(directory, FileName::Index(number));
    let Some(file) = files::open(&path, Access { write: false, create_mode: None })? else {
        return Ok(false);
    };
    let mut has_entry = false;
    let looked = files::each_used_page(&file, 0, |_, page| {
        has_entry |= page.iter().any(|byte| *byte != 0);
        Ok(())
    });
    looked.map_err(|e| Error::io("cannot read", &path, e))?;
    Ok(has_entry)
}

fn is_full(directory: &Path, number: u64, per_file: u64) -> Result<bool> {
    let path = directory::path_of(directory, FileName::Index(number));
    let block = Block::open(&path, false)?;
    block.map_or(Ok(false), |mut block| Ok(block.word64((per_file - 1) * 8)? != 0))
}

/// Sequence numbers and entries that are not 0, of the index files among those found.
pub fn taken(
    directory: &Path,
    layout: &Layout,
    found: &[(FileName, u64)],
) -> Result<Vec<(u64, u64)>> {
    let mut entries = Vec::new();
    let per_file = layout.entries_per_file();
    for (name, _) in found {
        let FileName::Index(number) = *name else { continue };
        let path = directory::path_of(directory, *name);
        let access = Access { write: false, create_mode: None };
        let Some(file) = files::open(&path, access)? else { continue };
        let looked = files::each_used_page(&file, 0, |at, page| {
            let words = page.as_chunks::<8>().0.iter().zip(at / 8..);
            let taken = words.filter(|(word, slot)| **word != [0; 8] && *slot < per_file);
            entries.extend(
                taken.map(|(word, slot)| (number * per_file + slot, u64::from_le_bytes(*word))),
            );
            Ok(())
        });
        looked.map_err(|e| Error::io("cannot read", &path, e))?;
    }
    entries.sort_unstable();
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_free_number_is_found_in_few_looks() {
        for taken in [0, 1, 2, 3, 7, 8, 9, 1000, 1023, 1024] {
            for from in [0, 1, taken / 2, taken] {
                let mut looks = 0;
                let found = first_free(from.min(taken), 1024, |number| {
                    looks += 1;
                    Ok(number < taken)
                });
                assert_eq!(found.unwrap(), taken);
                assert!(looks <= 24, "{taken} {from} {looks}");
            }
        }
    }
}
