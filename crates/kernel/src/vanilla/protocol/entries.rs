//! Finding entries of an index: the first free one without walking through it, as they are filled
//! from the first on, or all that are taken.

use std::path::Path;

use super::detect::Layout;
use super::directory;
use crate::os::files::{self, Access};
use crate::vanilla::format::names::FileName;
use crate::{Error, Result};

/// Index files of a cycle, as many as Java makes.
pub const MOST_INDEX_FILES: u64 = 10_000;

/// The first number from `from` up to `limit` that is free, where all before a free one are taken.
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

/// As above: `taken` is, and `free` is free or the limit.
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
        let Some(file) = files::open(&path, access)?.filter(|_| number < MOST_INDEX_FILES) else {
            continue;
        };
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
