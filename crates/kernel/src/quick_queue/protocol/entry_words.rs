//! The steps at an index entry (`single.rs`, `shared.rs`) as operations on words, which
//! `tests/loom_quick_queue.rs` tries in every order.

use crate::memory::{Cells, Observed};
use crate::probe::fault::step;
use crate::quick_queue::format::entry::{STAMP, Stamp};

/// Claims the entry at `position` for a producer; false if another one has claimed it.
#[inline]
#[must_use]
pub fn claim(index: &Cells, position: u64, claim: Stamp) -> bool {
    let free = Stamp::FREE.word();
    index.swap_acq_rel(position + STAMP, free, claim.word(), step!("quick-queue.claim.cas")).is_ok()
}

/// Whether the entry at `position` is free.
#[inline]
#[must_use]
pub fn is_free(index: &Cells, position: u64) -> bool {
    index.load_acquire(position + STAMP) == Stamp::FREE.word()
}

/// Completes an entry that the caller has claimed: its message begins at `begin`.
///
/// SYNC POINT: the release of the stamp pairs with the acquire in [`read`]: a reader that sees the
/// stamp also sees `begin` and the message.
#[inline]
pub fn complete(index: &Cells, position: u64, begin: u64, stamp: Stamp) {
    index.store_release(position, begin, step!("quick-queue.begin.store"));
    index.store_release(position + STAMP, stamp.word(), step!("quick-queue.stamp.store"));
}

/// Where the message of an entry begins, the entry's stamp, and the proof that it was loaded.
#[inline]
#[must_use]
pub fn read(index: &Cells, position: u64) -> (u64, Stamp, Observed) {
    // The stamp first: if it is complete, `begin` and the message are visible afterwards.
    let (stamp, seen) = index.observe_acquire(position + STAMP);
    (index.load_acquire(position), Stamp::of(stamp), seen)
}
