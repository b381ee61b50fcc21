//! Steps 2 and 4 of an append (`cycle_writer.rs`) as operations on words, which
//! `tests/loom_vanilla.rs` tries in every order.

use crate::memory::Cells;
use crate::probe::fault::step;
use crate::vanilla::format::record;

/// Bytes of an entry.
const ENTRY: u64 = 8;

/// Step 2: the payload after the length word at `header` is complete.
///
/// SYNC POINT: this release pairs with the acquire load in `CycleReader::record`: a reader that
/// sees this word also sees the payload.
#[inline]
pub fn publish_record(data: &Cells, header: u64, length: u32) {
    data.store_header_release(header, record::word(length), step!("vanilla.length.store"));
}

/// Undoes step 2 for a record that no entry points to.
pub fn take_back_record(data: &Cells, header: u64) {
    data.store_header_release(header, 0, step!("vanilla.length.clear"));
}

/// Step 4: stores `entry` in a slot of the index; false if another writer has taken it.
///
/// SYNC POINT: this pairs with the acquire load in [`entry`]: a reader that sees this entry also
/// sees its record.
#[inline]
#[must_use]
pub fn claim_slot(index: &Cells, slot: u64, entry: u64) -> bool {
    index.swap_acq_rel(slot * ENTRY, 0, entry, step!("vanilla.entry.cas")).is_ok()
}

/// The entry in a slot of the index; 0 if free.
#[inline]
#[must_use]
pub fn entry(index: &Cells, slot: u64) -> u64 {
    index.load_acquire(slot * ENTRY)
}
