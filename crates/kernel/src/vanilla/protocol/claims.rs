//! Steps 2 and 4 of an append (`cycle_writer.rs`) as operations on words, which
//! `tests/loom_vanilla.rs` tries in every order.

use crate::memory::Cells;
use crate::probe::fault::step;
use crate::vanilla::format::record;

/// Bytes of an entry.
const ENTRY: u64 = 8;

/// Step 2: the payload after the length word at `header` is complete.
///
/// SYNC POINT with the acquire of a reader (`CycleReader::record`), which sees the payload if it finds
/// this word.
#[inline]
pub fn publish_record(data: &Cells, header: u64, length: u32) {
    data.store_header_release(header, record::word(length), step!("vanilla.length.store"));
}

/// Undoes step 2 of a record that no entry names.
pub fn take_back_record(data: &Cells, header: u64) {
    data.store_header_release(header, 0, step!("vanilla.length.clear"));
}

/// Step 4: stores `entry` in a slot of the index; false where another writer has it.
///
/// SYNC POINT with [`entry`]: a reader that finds this entry sees the record it names.
#[inline]
#[must_use]
pub fn claim_slot(index: &Cells, slot: u64, entry: u64) -> bool {
    index.swap_acq_rel(slot * ENTRY, 0, entry, step!("vanilla.entry.cas")).is_ok()
}

/// The entry in a slot of the index; 0 where it is free.
#[inline]
#[must_use]
pub fn entry(index: &Cells, slot: u64) -> u64 {
    index.load_acquire(slot * ENTRY)
}
