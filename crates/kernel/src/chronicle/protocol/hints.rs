//! The words that an appender stores after a message, and how readers use them. They are hints:
//! readers confirm them by walking.
//!
//! - 9a. `writePosition` is raised; 9b. the sequence word is stored: the low bits of the position
//!   above the sequence. A reader that loads them between the two stores notices the mismatch;
//! - 9d. a slot of an index array is stored, the array's `used` and the file's `lastIndex` are
//!   raised. A reader that sees one of these stores also sees the message.

use super::lock::guard::WriteGuard;
use crate::chronicle::format::index::{ArrayLayout, Shape};
use crate::chronicle::format::store::StoreLayout;
use crate::memory::Cells;
use crate::probe::fault::step;

/// How often a reader reloads a pair of words that a writer is about to complete.
const PAIR_RETRIES: u32 = if cfg!(loom) { 2 } else { 128 };
/// With fewer position bits in a sequence word two positions may look the same.
const LEAST_POSITION_BITS: u32 = 24;

/// The meaning of the write position and the sequence word together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pair {
    /// There is no message yet.
    Empty,
    /// The message at this position has this sequence.
    Known(u64, u64),
    /// There is a message at this position, but the sequence word belongs to another message.
    Unnumbered(u64),
}

/// Steps 9a and 9b.
#[expect(clippy::inline_always, reason = "once a message: a call costs 2 %")]
#[inline(always)]
pub fn record(
    cells: &Cells,
    layout: &StoreLayout,
    shape: Shape,
    position: u64,
    sequence: u64,
    _guard: &WriteGuard<'_>,
) {
    let named = position.cast_signed();
    cells.raise_alone(layout.write_position, named, step!("append.write-position.store"));
    if let Some(word) = layout.sequence {
        let numbered = shape.sequence_word(position, sequence);
        cells.store_release(word, numbered, step!("append.sequence.store"));
    }
}

/// Reads the pair through `position`, for the write position, and `word`.
pub fn read_pair<E>(
    layout: &StoreLayout,
    shape: Shape,
    mut position: impl FnMut() -> Result<u64, E>,
    mut word: impl FnMut(u64) -> Result<u64, E>,
) -> Result<Pair, E> {
    let shift = crate::chronicle::format::roll_cycle::shift(shape.index_count, shape.index_spacing);
    let word_at = layout.sequence.filter(|_| 64 - shift >= LEAST_POSITION_BITS);
    let mut found = position()?;
    for _ in 0..PAIR_RETRIES {
        let Some(word_at) = word_at else { break };
        let numbered = word(word_at)?;
        if found == 0 || numbered == 0 {
            break;
        }
        if let Some(sequence) = shape.sequence_in_word(numbered, found) {
            return Ok(Pair::Known(found, sequence));
        }
        found = position()?;
        std::hint::spin_loop();
    }
    Ok(if found == 0 { Pair::Empty } else { Pair::Unnumbered(found) })
}

/// Step 9d.
pub fn store_slot(
    cells: &Cells,
    layout: &StoreLayout,
    shape: Shape,
    array: &ArrayLayout,
    position: u64,
    sequence: u64,
    _guard: &WriteGuard<'_>,
) {
    let slot = shape.lower_slot(sequence);
    let was_empty = cells.load_acquire(array.slot(slot)) == 0;
    cells.store_release(array.slot(slot), position, step!("index.slot.store"));
    if was_empty {
        cells.raise_acq_rel(array.used, (slot + 1).cast_signed(), step!("index.used.cas"));
        let next = sequence + u64::from(shape.index_spacing);
        cells.raise_acq_rel(layout.last_index, next.cast_signed(), step!("index.last-index.cas"));
    }
}
