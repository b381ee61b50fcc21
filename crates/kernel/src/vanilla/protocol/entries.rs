//! Finding entries of an index without walking through it: they are filled from the first on.

use crate::Result;

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
