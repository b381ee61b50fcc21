//! The ring's progress as noted in the queue's table: how many slots of which chain are in the
//! queue.
//!
//! The table is synced with the queue's files and the ring is not, so that after a power cut the
//! ring may be that of an earlier moment, with messages that the queue has kept. The word may reach
//! the medium before the messages it counts, but then these were not synced.

use super::file::RingFile;
use super::format::IDENTITIES;
use super::protocol::{Next, Ring as Words};
use crate::Result;
use crate::chronicle::format::table::RING_DRAINED;
use crate::chronicle::protocol::table::store::TableStore;
use crate::chronicle::queue::handle::Queue;
use crate::os::interrupt::Signals;
use crate::probe::fault::step;

/// The word has the identity of a chain in its high bits, and in the low bits how many of the
/// chain's slots are in the queue, so that counts of different chains are never confused.
const COUNT_BITS: u32 = 43;
const _: () = assert!(IDENTITIES << COUNT_BITS == 1 << 63);

/// The position of the word in the table.
pub struct Noted(u64);

impl Noted {
    /// Finds or makes the word, for a ring that is being opened. In rings of its chain that no
    /// other process has open, slots that are in the queue are freed, and the count starts from the
    /// chain's own.
    pub fn of(queue: &Queue, file: &RingFile, mut signals: Signals<'_>) -> Result<Self> {
        let table = queue.writable_table("a ring")?;
        let noted = Self(table.find_or_create(RING_DRAINED, 0, signals.again())?);
        noted.examine(table, file, signals)?;
        Ok(noted)
    }

    /// Follows the chain using the word as it was when the ring was opened, since noting one ring
    /// would overwrite the count that covers its successors.
    fn examine(&self, table: &TableStore, head: &RingFile, mut signals: Signals<'_>) -> Result<()> {
        let word = table.cells().load_acquire(self.0);
        let mut successor: Option<RingFile> = None;
        loop {
            let file = successor.as_ref().unwrap_or(head);
            if !file.is_alone {
                return Ok(()); // the processes that have it open note what they drain
            }
            let words = file.words();
            free_those_in_queue(words, word);
            if !is_over(words, word) {
                self.note(table, words, words.drained());
                return Ok(());
            }
            let Some(next) = file.open_successor(&mut signals)? else { return Ok(()) };
            if next.is_alone {
                next.words().begin_after(words);
            }
            successor = Some(next);
        }
    }

    /// Notes that the slots before this one are in the queue.
    pub fn note(&self, table: &TableStore, words: Words<'_>, slot: u64) {
        if let Some(word) = word_of(words, slot) {
            table.cells().store_release(self.0, word, step!("ring.noted.store"));
            table.note_change();
        }
    }
}

fn free_those_in_queue(words: Words<'_>, word: u64) {
    let is_in_queue = |slot| word_of(words, slot).is_some_and(|own| is_less(own, word));
    loop {
        match words.next() {
            Next::Message(entry) | Next::Abandoned(entry) if is_in_queue(entry.slot) => {
                words.free(&entry);
            }
            // Its producer died.
            Next::Working { slot, .. } if is_in_queue(slot) && words.abandon(slot) => {}
            _ => return,
        }
    }
}

/// Whether the chain continues after an empty ring, because it is closed. A ring that was closed
/// before a power cut but is no longer is closed again, if the queue has later messages of the
/// chain.
fn is_over(words: Words<'_>, word: u64) -> bool {
    match words.next() {
        Next::Closed => true,
        Next::Nothing if words.successor().is_some() => {
            let is_cut = word_of(words, words.drained()).is_some_and(|own| is_less(own, word));
            is_cut && words.close().is_ok()
        }
        _ => false,
    }
}

/// None for a count that no ring reaches.
fn word_of(words: Words<'_>, slot: u64) -> Option<u64> {
    let count = words.in_chain(slot);
    let identity = words.identity() % IDENTITIES;
    (count >> COUNT_BITS == 0).then_some((identity << COUNT_BITS) | count)
}

/// Whether a word has the identity of another one, and a smaller count.
const fn is_less(word: u64, other: u64) -> bool {
    word >> COUNT_BITS == other >> COUNT_BITS && word < other
}
