//! Reuses the memory of batches that Python has released for the next batch. Fresh memory costs a
//! page fault per page, more than decoding the messages in it.

use std::sync::{Arc, Mutex, Weak};

/// At most this many bytes are kept for each column.
const KEPT_MAX: usize = 64 << 20;
/// Smaller memory is kept by the allocator itself.
const KEPT_MIN: usize = 64 << 10;

/// The columns of a batch: indexes, offsets, data.
const COLUMNS: usize = 3;

/// The spare memory of one tailer, freed with it.
#[derive(Default)]
pub struct Spare(Mutex<State>);

#[derive(Default)]
struct State {
    /// Whether the last batch had messages, so that there may be more.
    is_reading: bool,
    /// Two for each column: one batch is usually read while the one before is still in use. An
    /// empty vector has no memory.
    columns: [[Vec<u8>; 2]; COLUMNS],
}

impl Spare {
    /// Memory for the columns of a batch, empty.
    pub fn take(&self) -> [Vec<u8>; COLUMNS] {
        // None if another thread is using it, or was using it when this process was forked.
        let Ok(mut state) = self.0.try_lock() else { return Default::default() };
        state.columns.each_mut().map(|kept| {
            let largest = kept.iter_mut().max_by_key(|it| it.capacity());
            largest.map(std::mem::take).unwrap_or_default()
        })
    }

    /// The columns of a batch of messages, whose memory comes back when they are dropped.
    pub fn lend(self: &Arc<Self>, columns: [Vec<u8>; COLUMNS]) -> [Lent; COLUMNS] {
        if let Ok(mut state) = self.0.try_lock() {
            state.is_reading = true;
        }
        let mut number = 0;
        columns.map(|mut bytes| {
            if bytes.len() < bytes.capacity() / 4 {
                bytes.shrink_to_fit(); // a small batch may stay for long
            }
            number += 1;
            Lent { bytes, column: number - 1, to: Arc::downgrade(self) }
        })
    }

    /// Frees the spare memory; buffers still lent are freed when they return. The reader has
    /// closed.
    pub fn clear(&self) {
        // The memory is freed without the lock.
        let _kept = self.0.try_lock().map(|mut state| std::mem::take(&mut *state));
    }

    fn give_back(&self, column: usize, mut bytes: Vec<u8>) {
        let Ok(mut state) = self.0.try_lock() else { return };
        if !state.is_reading {
            return;
        }
        let kept = &mut state.columns[column];
        let total: usize = kept.iter().map(Vec::capacity).sum();
        let place = kept.iter_mut().find(|it| it.capacity() == 0);
        if let Some(place) = place.filter(|_| total + bytes.capacity() <= KEPT_MAX) {
            bytes.clear();
            *place = bytes;
        }
    }
}

/// A column that was lent.
pub struct Lent {
    bytes: Vec<u8>,
    column: usize,
    to: Weak<Spare>,
}

impl Lent {
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if self.bytes.capacity() >= KEPT_MIN
            && let Some(spare) = self.to.upgrade()
        {
            spare.give_back(self.column, std::mem::take(&mut self.bytes));
        }
    }
}
