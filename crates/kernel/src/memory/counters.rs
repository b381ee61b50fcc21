//! Shared counters: no protocol depends on them, so accesses are relaxed, and stores have no fault
//! point.

use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use super::Mapping;

/// A mapping of counters. Positions are multiples of 8; one out of range panics.
pub struct Counters(Mapping);

impl Counters {
    /// Maps the first `len` bytes of a file.
    pub fn map(file: &File, len: u64, writable: bool) -> io::Result<Self> {
        Mapping::new(file, len, writable).map(Self)
    }

    /// Maps a part of a file for writing: positions are relative to its start.
    pub fn part(file: &File, start: u64, len: u64) -> io::Result<Self> {
        Mapping::part(file, start, len).map(Self)
    }

    /// The value at a position.
    #[inline]
    #[must_use]
    pub fn load(&self, position: u64) -> u64 {
        self.0.word64(position).load(Ordering::Relaxed)
    }

    /// Stores the value of a position.
    #[inline]
    pub fn store(&self, position: u64, value: u64) {
        self.to_store(position).store(value, Ordering::Relaxed);
    }

    /// Adds to the value at a position; it wraps around.
    pub fn add(&self, position: u64, value: u64) {
        self.to_store(position).fetch_add(value, Ordering::Relaxed);
    }

    /// Raises the value at a position to `value`.
    pub fn raise(&self, position: u64, value: u64) {
        let word = self.to_store(position);
        if word.load(Ordering::Relaxed) < value {
            word.fetch_max(value, Ordering::Relaxed);
        }
    }

    /// Stores the first value of a position; later calls change nothing.
    pub fn set_once(&self, position: u64, value: u64) {
        let word = self.to_store(position);
        let _ = word.compare_exchange(0, value, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Unmaps the file: counts from here on are discarded.
    pub fn leave_file(&self) {
        let _ = self.0.leave_file(&[]); // on failure it stays mapped until this is dropped
    }

    fn to_store(&self, position: u64) -> &AtomicU64 {
        debug_assert!(self.0.is_writable());
        self.0.word64(position)
    }
}
