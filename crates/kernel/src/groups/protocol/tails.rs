//! Tail records: the index and the hash of the last message of a claim.
//!
//! If a queue loses its last messages and new ones take their indexes, a group's position lies
//! among the new ones. The newest record that still matches shows up to where the queue is
//! unchanged.
//!
//! Each level keeps the newest of every 16th record of the level below, so a few records reach far
//! back. A record that two members stored at once, or that was not completed, has a wrong checksum
//! and is ignored.

use blake2b_simd::Params;

use crate::groups::format::layout::{TAIL_LEVELS, TAILS_PER_LEVEL, tail_at, tail_sum};
use crate::memory::Cells;
use crate::probe::fault::step;

/// A tail record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tail {
    pub index: u64,
    pub hash: u64,
}

/// How many bytes of a message are hashed.
const HASHED: usize = 4096;

/// The hash of a message: of its length and its first bytes.
#[must_use]
pub fn hash_of(message: &[u8]) -> u64 {
    let length = message.len() as u64;
    let start = &message[..message.len().min(HASHED)];
    let hash = Params::new().hash_length(size_of::<u64>()).salt(&length.to_le_bytes()).hash(start);
    hash.as_bytes().try_into().map_or(0, u64::from_le_bytes)
}

/// Records a message, by the number of changes of the frontier so far.
pub fn note(cells: &Cells, changes: u64, tail: Tail) {
    for level in 0..TAIL_LEVELS {
        let turn = changes >> (4 * level);
        let at = tail_at(level, turn % TAILS_PER_LEVEL);
        if level > 0 && read(cells, at).is_some() && cells.load_acquire(at + 24) == turn {
            continue;
        }
        let sum = tail_sum(tail.index, tail.hash);
        for (place, word) in [sum, tail.index, tail.hash, turn].into_iter().enumerate() {
            cells.store_release(at + place as u64 * 8, word, step!("group.tail.store"));
        }
    }
}

/// Drops the records from an index on, whose messages were lost.
pub fn forget_from(cells: &Cells, index: u64) {
    for at in places().filter(|at| read(cells, *at).is_some_and(|tail| tail.index >= index)) {
        cells.store_release(at, 0, step!("group.tail.store"));
    }
}

fn places() -> impl Iterator<Item = u64> {
    (0..TAIL_LEVELS)
        .flat_map(|level| (0..TAILS_PER_LEVEL).map(move |number| tail_at(level, number)))
}

fn read(cells: &Cells, at: u64) -> Option<Tail> {
    let [sum, index, hash] = [0, 8, 16].map(|place| cells.load_acquire(at + place));
    (sum == tail_sum(index, hash)).then_some(Tail { index, hash })
}

/// All records, the highest index first.
#[must_use]
pub fn all(cells: &Cells) -> Vec<Tail> {
    let mut found: Vec<Tail> = places().filter_map(|at| read(cells, at)).collect();
    found.sort_unstable_by_key(|tail| std::cmp::Reverse(tail.index));
    found.dedup();
    found
}
