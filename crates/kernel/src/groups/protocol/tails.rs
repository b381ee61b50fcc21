//! What messages looked like that a group claimed: an index, and a hash of the message there.
//!
//! If the queue lost its last messages and others took their indexes, the group's position is in
//! the middle of those. The newest record that still fits says how far the queue is as it was.
//!
//! A level keeps the newest of every 16th record of the level below, so that a few records reach far
//! back. A record that two members stored at once, or that one did not complete, has a wrong sum and
//! counts for nothing.

use crate::groups::format::layout::{TAIL_LEVELS, TAILS_PER_LEVEL, tail_at, tail_sum};
use crate::memory::Cells;
use crate::probe::fault::step;

/// What a message looked like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tail {
    pub index: u64,
    pub hash: u64,
}

/// Notes what a message looked like after so many changes of the frontier.
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

/// Forgets messages from an index on, which were lost.
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
