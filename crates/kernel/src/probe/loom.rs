//! A stand-in for a mapping in `loom` builds: every word is an atomic that `loom` schedules.
//!
//! A position is used at one width only, as in the files: 64-bit words and 32-bit words are kept
//! apart, and payload bytes are 32-bit words with relaxed access.
//!
//! `loom` only tries to reorder an access with the last one of the same word, and a load by the
//! same thread hides a load by another: if a thread loads a word and then stores to it, that store
//! is never tried before another thread's load (<https://github.com/tokio-rs/loom/issues/166>). So
//! each access first stores to a companion of its word, which is never read: this adds no ordering,
//! but makes `loom` try both orders of any two accesses of a word.
//!
//! Bytes that the mapping copies in with plain stores must not race with any other access of them
//! in this process: a data race is undefined behaviour, whatever the bytes are. So each plain store
//! takes the cell of its 32 bits exclusively, each other access shares it, and `loom` reports
//! accesses that are not ordered.

use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Zeroed words for `len` positions.
pub struct Mapping {
    narrow: Vec<AtomicU32>,
    wide: Vec<AtomicU64>,
    /// The companion words, one per 32 bits of the file.
    touched: Vec<AtomicU32>,
    /// The cells, one per 32 bits of the file; empty if threads stand for processes.
    shared: Vec<UnsafeCell<()>>,
}

impl Mapping {
    /// A model of `len` bytes, a multiple of 8.
    #[must_use]
    pub fn zeroed(len: u64) -> Self {
        let count = usize::try_from(len).expect("a small model");
        Self {
            narrow: (0..count / 4).map(|_| AtomicU32::new(0)).collect(),
            wide: (0..count / 8).map(|_| AtomicU64::new(0)).collect(),
            touched: (0..count / 4).map(|_| AtomicU32::new(0)).collect(),
            shared: (0..count / 4).map(|_| UnsafeCell::new(())).collect(),
        }
    }

    /// The same, for threads that stand for processes: stores of a process that lost its lock by
    /// force may race. That changes what is read, but is outside of Rust's memory model.
    #[must_use]
    pub fn between_processes(len: u64) -> Self {
        Self { shared: Vec::new(), ..Self::zeroed(len) }
    }

    /// Always true.
    #[must_use]
    pub const fn is_writable(&self) -> bool {
        true
    }

    /// An address that no recorder knows.
    #[must_use]
    pub const fn address(&self) -> usize {
        0
    }

    /// Length in bytes.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.narrow.len() as u64 * 4
    }

    /// The atomic at an aligned position.
    #[must_use]
    pub(crate) fn word32(&self, position: u64) -> &AtomicU32 {
        self.cells(position, 4).for_each(|cell| cell.with(|_| ()));
        &self.narrow[self.touch(position)]
    }

    /// The atomic at an aligned position.
    #[must_use]
    pub(crate) fn word64(&self, position: u64) -> &AtomicU64 {
        self.cells(position, 8).for_each(|cell| cell.with(|_| ()));
        &self.wide[self.touch(position) / 2]
    }

    /// Stores to the companion of the word at a position; returns the number of its 32 bits.
    fn touch(&self, position: u64) -> usize {
        let number = usize::try_from(position / 4).expect("a small model");
        self.touched[number].store(0, Ordering::Relaxed);
        number
    }

    /// The cells of a range.
    fn cells(&self, position: u64, count: u64) -> impl Iterator<Item = &UnsafeCell<()>> {
        let numbers = position / 4..(position + count).div_ceil(4);
        let cell = |number| self.shared.get(usize::try_from(number).expect("a small model"));
        numbers.filter_map(cell)
    }

    /// Stores whole words, relaxed: the publish protocol must order them.
    pub(crate) fn copy_in(&self, position: u64, bytes: &[u8]) {
        self.cells(position, bytes.len() as u64).for_each(|cell| cell.with_mut(|_| ()));
        self.store(position, bytes);
    }

    /// Stores whole words, relaxed; other threads may be loading them.
    pub(crate) fn store_each(&self, position: u64, bytes: &[u8]) {
        self.cells(position, bytes.len() as u64).for_each(|cell| cell.with(|_| ()));
        self.store(position, bytes);
    }

    fn store(&self, position: u64, bytes: &[u8]) {
        for (number, chunk) in bytes.chunks(4).enumerate() {
            let mut word = [0; 4];
            word[..chunk.len()].copy_from_slice(chunk);
            let at = &self.narrow[self.touch(position + number as u64 * 4)];
            at.store(u32::from_le_bytes(word), Ordering::Relaxed);
        }
    }

    /// Stores zeros, relaxed.
    pub(crate) fn zero(&self, position: u64, count: u64) {
        self.copy_in(position, &vec![0; usize::try_from(count).expect("a small model")]);
    }

    /// Loads whole words, relaxed.
    #[must_use]
    pub fn copy_out(&self, position: u64, count: u64) -> Vec<u8> {
        let words = (0..count.div_ceil(4)).map(|number| self.word32(position + number * 4));
        let mut bytes: Vec<u8> =
            words.flat_map(|word| word.load(Ordering::Relaxed).to_le_bytes()).collect();
        bytes.truncate(usize::try_from(count).expect("a small model"));
        bytes
    }
}
