//! Shared words and bytes at file positions. Each method's name states its memory ordering; each
//! store takes its [`Step`], the name of its fault point.
//!
//! Backed by a file mapping, or in `loom` builds by a model of one; the code above is the same.

use super::Mapping;
use crate::probe::fault::Step;
use crate::probe::recorder;
#[cfg(loom)]
use loom::sync::atomic::Ordering;
#[cfg(not(loom))]
use std::sync::atomic::{Ordering, fence};

/// Proof that this thread has loaded, with acquire order, a word that publishes bytes: the header
/// of a document, which [`Cells::publish_header`] stores with release order, or the entry of a
/// message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Observed(());

impl Observed {
    /// The bytes that the word publishes, or a part of them. No thread stores to them after that.
    #[expect(clippy::unused_self, reason = "having one is the condition")]
    #[inline]
    #[must_use]
    pub const fn names(self, position: u64, length: u64) -> Published {
        Published { position, length }
    }
}

/// The range of bytes that no longer change: the key to borrow them in place. Bytes that may still
/// change, such as the words of an index array or of a claim, have no key and are copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Published {
    position: u64,
    length: u64,
}

/// A range of positions that other threads and processes also write, so no method returns
/// `&mut`. Positions out of range panic: callers check them first.
pub struct Cells {
    memory: Mapping,
}

impl Cells {
    /// The words and bytes of `memory`, from position 0.
    #[must_use]
    pub const fn new(memory: Mapping) -> Self {
        Self { memory }
    }

    /// The number of positions.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.memory.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    #[must_use]
    pub const fn memory(&self) -> &Mapping {
        &self.memory
    }

    /// Header word, load-acquire: stores before its release become visible.
    #[expect(clippy::inline_always, reason = "once a message or more: a call costs 1 %")]
    #[inline(always)]
    #[must_use]
    pub fn load_header_acquire(&self, position: u64) -> u32 {
        self.memory.word32(position).load(Ordering::Acquire)
    }

    /// The same, with a key to borrow the bytes that the header publishes.
    #[expect(clippy::inline_always, reason = "once a message or more: a call costs 1 %")]
    #[inline(always)]
    #[must_use]
    pub fn observe_header_acquire(&self, position: u64) -> (u32, Observed) {
        (self.load_header_acquire(position), Observed(()))
    }

    /// Header word, compare-and-set, sequentially consistent; otherwise returns the current value.
    #[inline]
    pub fn publish_header(&self, position: u64, old: u32, new: u32, step: Step) -> Result<(), u32> {
        step.reached();
        let word = self.to_store().word32(position);
        // SYNC POINT P1, with W1 to W3 in `waiting::word`: this store precedes the load of that
        // word, P2.
        word.compare_exchange(old, new, Ordering::SeqCst, Ordering::Acquire)
            .map(|_| self.stored(position, &new.to_le_bytes(), step))
    }

    /// Header word, store-release: used to clear the header of a dead writer.
    pub fn store_header_release(&self, position: u64, value: u32, step: Step) {
        step.reached();
        self.to_store().word32(position).store(value, Ordering::Release);
        self.stored(position, &value.to_le_bytes(), step);
    }

    /// Header word, relaxed store: for a document that an earlier header, still 0, will publish.
    #[inline]
    pub fn store_header_plain(&self, position: u64, value: u32, step: Step) {
        step.reached();
        self.to_store().word32(position).store(value, Ordering::Relaxed);
        self.stored(position, &value.to_le_bytes(), step);
    }

    /// 32-bit word, sequentially consistent load.
    #[expect(clippy::inline_always, reason = "once a message: a call costs 1 %")]
    #[inline(always)]
    #[must_use]
    pub fn load_word_seq_cst(&self, position: u64) -> u32 {
        // loom treats such a load as an acquire: the fence adds the missing ordering.
        #[cfg(loom)]
        loom::sync::atomic::fence(Ordering::SeqCst);
        self.memory.word32(position).load(Ordering::SeqCst)
    }

    /// 32-bit word, compare-and-set, acquire and release; on failure returns the current value.
    pub fn swap_word_acq_rel(
        &self,
        position: u64,
        old: u32,
        new: u32,
        step: Step,
    ) -> Result<(), u32> {
        step.reached();
        let word = self.to_store().word32(position);
        word.compare_exchange(old, new, Ordering::AcqRel, Ordering::Acquire)
            .map(|_| self.stored(position, &new.to_le_bytes(), step))
    }

    /// 32-bit word, to sleep on.
    #[cfg(not(loom))]
    #[must_use]
    pub fn word(&self, position: u64) -> &std::sync::atomic::AtomicU32 {
        self.memory.word32(position)
    }

    /// 64-bit word, load-acquire.
    #[expect(clippy::inline_always, reason = "once a message or more: a call costs 1 %")]
    #[inline(always)]
    #[must_use]
    pub fn load_acquire(&self, position: u64) -> u64 {
        self.memory.word64(position).load(Ordering::Acquire)
    }

    /// The same, with a key to borrow the bytes that the word publishes.
    #[expect(clippy::inline_always, reason = "once a message or more: a call costs 1 %")]
    #[inline(always)]
    #[must_use]
    pub fn observe_acquire(&self, position: u64) -> (u64, Observed) {
        (self.load_acquire(position), Observed(()))
    }

    /// 64-bit word, store-release.
    #[inline]
    pub fn store_release(&self, position: u64, value: u64, step: Step) {
        step.reached();
        self.to_store().word64(position).store(value, Ordering::Release);
        self.stored(position, &value.to_le_bytes(), step);
    }

    /// 64-bit word, compare-and-set, acquire and release; on failure returns the current value.
    #[inline]
    pub fn swap_acq_rel(&self, position: u64, old: u64, new: u64, step: Step) -> Result<(), u64> {
        step.reached();
        let word = self.to_store().word64(position);
        word.compare_exchange(old, new, Ordering::AcqRel, Ordering::Acquire)
            .map(|_| self.stored(position, &new.to_le_bytes(), step))
    }

    /// 64-bit signed word, raised to `value` if it is less, acquire and release.
    pub fn raise_acq_rel(&self, position: u64, value: i64, step: Step) {
        self.replace_while(position, value, step, |found| found < value);
    }

    /// 64-bit signed word, raised to `value` if it is less, store-release: for the only writer of a
    /// word. If there is another writer after all, its higher value may be lost.
    #[inline]
    pub fn raise_alone(&self, position: u64, value: i64, step: Step) {
        if self.load_acquire(position).cast_signed() < value {
            self.store_release(position, value.cast_unsigned(), step);
        }
    }

    /// 64-bit signed word, lowered to `value` if it is greater, acquire and release.
    pub fn lower_acq_rel(&self, position: u64, value: i64, step: Step) {
        self.replace_while(position, value, step, |found| found > value);
    }

    fn replace_while(&self, position: u64, value: i64, step: Step, wanted: impl Fn(i64) -> bool) {
        let mut found = self.load_acquire(position);
        while wanted(found.cast_signed()) {
            match self.swap_acq_rel(position, found, value.cast_unsigned(), step) {
                Ok(()) => return,
                Err(other) => found = other,
            }
        }
    }

    /// 64-bit word, added to, acquire and release.
    pub fn add_acq_rel(&self, position: u64, value: u64, step: Step) {
        step.reached();
        let before = self.to_store().word64(position).fetch_add(value, Ordering::AcqRel);
        self.stored(position, &before.wrapping_add(value).to_le_bytes(), step);
    }

    /// Bytes, plain stores: for the only writer of positions after an unpublished header.
    #[expect(clippy::inline_always, reason = "once a message or more: a call costs 1 %")]
    #[inline(always)]
    pub fn copy_in_plain(&self, position: u64, bytes: &[u8], step: Step) {
        step.reached();
        self.memory.copy_in(position, bytes);
        self.stored(position, bytes, step);
    }

    /// Bytes, relaxed stores, one by one: other threads may be copying them.
    pub fn store_each_relaxed(&self, position: u64, bytes: &[u8], step: Step) {
        step.reached();
        self.memory.store_each(position, bytes);
        self.stored(position, bytes, step);
    }

    /// Zero bytes, plain stores: for the only writer of positions after an unpublished header.
    pub fn zero_plain(&self, position: u64, count: u64, step: Step) {
        step.reached();
        self.memory.zero(position, count);
        recorder::zeroed(self.memory.address(), position, count);
        step.made();
    }

    /// The memory, asserted to be writable.
    #[inline]
    fn to_store(&self) -> &Mapping {
        debug_assert!(self.memory.is_writable());
        &self.memory
    }

    #[inline]
    fn stored(&self, position: u64, bytes: &[u8], step: Step) {
        recorder::stored(self.memory.address(), position, bytes);
        step.made();
    }

    /// Bytes, relaxed loads, copied: other threads may be changing them. No word at a multiple of 8
    /// is torn.
    #[must_use]
    pub fn copy_out_relaxed(&self, position: u64, count: u64) -> Vec<u8> {
        self.memory.copy_out(position, count)
    }

    /// The same, appended to `bytes`; an error when out of memory.
    #[cfg(not(loom))]
    #[inline]
    pub fn append_to_relaxed(
        &self,
        bytes: &mut Vec<u8>,
        position: u64,
        count: u64,
    ) -> crate::Result<()> {
        let room = usize::try_from(count).unwrap_or(usize::MAX);
        bytes.try_reserve(room).map_err(|_| crate::Error::OutOfMemory(room))?;
        self.memory.append_to(bytes, position, count);
        Ok(())
    }

    /// Bytes in place that no longer change.
    #[cfg(not(loom))]
    #[inline]
    #[must_use]
    pub fn bytes(&self, at: Published) -> &[u8] {
        self.memory.bytes(at.position, at.length)
    }

    /// A copy of bytes that no longer change.
    #[cfg(loom)]
    #[must_use]
    pub fn bytes(&self, at: Published) -> Vec<u8> {
        self.memory.copy_out(at.position, at.length)
    }

    /// The address of bytes in place that other threads may change, for readers outside of Rust.
    #[cfg(not(loom))]
    #[must_use]
    pub fn address_of(&self, position: u64, count: u64) -> *const u8 {
        self.memory.address_of(position, count)
    }

    /// Header word at any position, load-acquire byte by byte: in version 4 files, whose headers
    /// are unaligned. A complete header no longer changes.
    #[cfg(not(loom))]
    #[must_use]
    pub fn observe_header_unaligned(&self, position: u64) -> (u32, Observed) {
        let word = u32::from_le_bytes(self.memory.array(position));
        fence(Ordering::Acquire);
        (word, Observed(()))
    }

    /// A 64-bit word at any position, byte by byte: for version 4 files.
    #[cfg(not(loom))]
    #[must_use]
    pub fn load_unaligned(&self, position: u64) -> u64 {
        u64::from_le_bytes(self.memory.array(position))
    }
}
