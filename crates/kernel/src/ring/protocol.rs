//! Who may change which word of a ring, and in which order.
//!
//! A producer (any number, in any processes):
//! 1. finds the first free slot n, from the tail on, and where its bytes start: at the end of slot
//!    n - 1's bytes, or at the drainer's position;
//! 2. CAS the descriptor from EMPTY(n) to WORKING. EMPTY names the slot, so the CAS cannot succeed
//!    in a later round; if it succeeds, no other producer has taken n, so what step 1 found still
//!    holds;
//! 3. raise the tail; 4. store the bytes; 5. CAS the descriptor from WORKING to COMMITTED.
//!
//! The drainer (only one: it holds the lock on the file) goes from slot to slot:
//! 6. store what it is about to do (the intent), append the message, and note in the queue's table
//!    that it is appended;
//! 7. store the drained bytes; 8. store EMPTY(n + slots); 9. store the drained slots.
//!
//! A drainer that releases the lock before the ring is removed clears its intent: from then on
//! other writers may append messages equal to the intended ones.
//!
//! A producer that dies before 2 has changed nothing. Before 5 it leaves WORKING with its number,
//! and the lock for that number ends with it: the drainer abandons the slot. A drainer that dies in
//! 6 leaves the intent, which lets the next one find out whether the message is in the queue.
//! Between 7 and 9 it leaves a slot that is empty or ends at the drained bytes: the next one
//! continues there.
//!
//! A producer that finds no room may close the ring and continue in a larger one:
//! 10. create the new ring, which no other process knows yet; 11. CAS the successor from 0 to its
//!     name: if another producer was faster, its ring is the successor;
//! 12. CAS the descriptor of the first free slot from EMPTY to CLOSED. Producers try each slot in
//!     turn, so they stop there and continue in the successor.
//!
//! The drainer reaches CLOSED once everything before it is drained:
//! 13. store the statistics in the successor and mark it as started, and sync its header; 14. give
//!     the successor's file the ring's name.
//!
//! A producer that dies before 11 leaves a file that no ring names; before 12, a successor for the
//! next producer that finds no room. A drainer that dies in 13 or before 14 leaves a closed,
//! drained ring: the next one repeats both steps.

use super::format::{
    ALIGNMENT, BEGUN, DRAINED_BYTES, DRAINED_SLOTS, Descriptor, EARLIER_SLOTS, EARLIER_STALLS,
    HIGH_WATER, IDENTITY_AT, INTENT_COUNT, INTENT_INDEX, INTENT_SLOT, Layout, STALLS, SUCCESSOR,
    SUM_LEN, TAIL, Taken, distance, sum,
};
use crate::memory::Cells;
use crate::probe::fault::step;

/// No ring reaches slots or positions beyond this: greater words are damaged.
const LATEST: u64 = 1 << 61;

/// A ring's words.
#[derive(Clone, Copy)]
pub struct Ring<'a> {
    cells: &'a Cells,
    layout: Layout,
}

/// A slot that a producer has taken.
#[derive(Clone, Copy, Debug)]
pub struct Claim {
    slot: u64,
    start: u64,
    taken: Taken,
}

/// Why no slot was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// There is no room now.
    Full,
    /// The ring is closed: messages go into the successor.
    Closed,
    /// The words contradict each other.
    Damaged,
}

/// The next slot for the drainer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Nothing to drain.
    Nothing,
    /// Nothing to drain, ever.
    Closed,
    /// A message.
    Message(Entry),
    /// A slot without a message.
    Abandoned(Entry),
    /// A message that a process is writing.
    Working { slot: u64, producer: u32 },
    /// The words contradict each other.
    Damaged { slot: u64, word: u64 },
}

/// A slot as the drainer sees it.
enum Look {
    Found(Next),
    /// Free for the next round.
    Freed,
    /// Already drained: its bytes end at the drained position.
    Drained,
}

/// A slot to drain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its number.
    pub slot: u64,
    /// Where its bytes start.
    pub start: u64,
    /// How many there are.
    pub length: u64,
    /// The message is metadata.
    pub metadata: bool,
}

impl Entry {
    /// Where the next slot's bytes start.
    #[must_use]
    pub const fn next(&self) -> u64 {
        (self.start + self.length).next_multiple_of(ALIGNMENT)
    }
}

/// The append that a drainer announced: messages of `count` slots from `slot` on, at indexes from
/// `index` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Intent {
    pub slot: u64,
    pub index: i64,
    pub count: u64,
}

impl<'a> Ring<'a> {
    /// The words in `cells`, of a ring of this layout.
    #[must_use]
    pub const fn new(cells: &'a Cells, layout: Layout) -> Self {
        Self { cells, layout }
    }

    fn descriptor(self, slot: u64) -> Descriptor {
        Descriptor::parse(self.cells.load_acquire(self.layout.descriptor(slot)))
    }

    /// Steps 1 to 3. `earlier` bytes are in the rings before this one.
    pub fn claim(
        self,
        producer: u32,
        metadata: bool,
        length: u64,
        earlier: u64,
    ) -> Result<Claim, Refused> {
        let mut from = self.cells.load_acquire(TAIL);
        loop {
            let (slot, is_last) = self.first_free(from)?;
            if is_last {
                return Err(Refused::Full);
            }
            // None: another producer took the slot.
            if let Some(claimed) = self.try_claim(slot, producer, metadata, length, earlier) {
                return claimed;
            }
            from = slot;
        }
    }

    /// The first free slot, and whether it is the one kept for CLOSED.
    fn first_free(self, from: u64) -> Result<(u64, bool), Refused> {
        let mut slot = from;
        loop {
            let drained = self.drained();
            if drained > LATEST || from > drained + self.layout.slots {
                return Err(Refused::Damaged);
            }
            // A producer may have died before it raised the tail: the tail may be before the
            // drained slots.
            slot = slot.max(drained);
            if slot >= drained + self.layout.slots {
                return Err(Refused::Full);
            }
            match self.descriptor(slot) {
                Descriptor::Empty(number) if number == slot => {
                    return Ok((slot, slot == drained + self.layout.slots - 1));
                }
                // Drained since the tail was read.
                Descriptor::Empty(number) if self.is_of_later_round(number, slot) => {}
                Descriptor::Empty(_) => return Err(Refused::Damaged),
                Descriptor::Closed => return Err(Refused::Closed),
                _ => {}
            }
            slot += 1;
        }
    }

    /// Whether a slot was drained: its descriptor is free for the next round.
    const fn is_of_later_round(self, number: u64, slot: u64) -> bool {
        number > slot && (number - slot).is_multiple_of(self.layout.slots)
    }

    /// Takes a free slot; None if another producer was faster.
    fn try_claim(
        self,
        slot: u64,
        producer: u32,
        metadata: bool,
        length: u64,
        earlier: u64,
    ) -> Option<Result<Claim, Refused>> {
        let before = if slot == 0 { None } else { Some(self.descriptor(slot - 1)) };
        let drained = self.cells.load_acquire(DRAINED_BYTES);
        let used_before = match before {
            // The first free slot comes after one that was taken.
            Some(Descriptor::Empty(number)) if !self.is_of_later_round(number, slot - 1) => {
                return Some(Err(Refused::Damaged));
            }
            Some(Descriptor::Closed) => return Some(Err(Refused::Damaged)),
            None | Some(Descriptor::Empty(_)) => 0,
            Some(
                Descriptor::Working(taken)
                | Descriptor::Committed(taken)
                | Descriptor::Abandoned(taken),
            ) => distance(drained, taken.end.next_multiple_of(ALIGNMENT)),
        };
        let start = drained.wrapping_add(used_before);
        let used = used_before + length.next_multiple_of(ALIGNMENT);
        let taken = Taken { metadata, producer, end: start.wrapping_add(length) };
        let taken = Taken { end: distance(0, taken.end), ..taken };
        let (at, empty) = (self.layout.descriptor(slot), Descriptor::Empty(slot).word());
        if used > self.layout.capacity {
            // The drainer may have moved on between the two loads, but not past a free slot.
            let is_free = self.cells.load_acquire(at) == empty;
            let is_damaged = used_before > self.layout.capacity;
            let refused = if is_damaged { Refused::Damaged } else { Refused::Full };
            return is_free.then_some(Err(refused));
        }
        let word = Descriptor::Working(taken).word();
        self.cells.swap_acq_rel(at, empty, word, step!("ring.claim.cas")).ok()?;
        self.cells.raise_acq_rel(TAIL, (slot + 1).cast_signed(), step!("ring.tail.cas"));
        self.raise_high_water(used + earlier);
        Some(Ok(Claim { slot, start, taken }))
    }

    fn raise_high_water(self, used: u64) {
        if used.cast_signed() > self.high_water().cast_signed() {
            self.cells.raise_acq_rel(HIGH_WATER, used.cast_signed(), step!("ring.high-water.cas"));
        }
    }

    /// Step 4: stores bytes at an offset of a claimed message.
    pub fn store(self, claim: &Claim, offset: u64, bytes: &[u8]) {
        let mut rest = (claim.start.wrapping_add(offset), bytes);
        while !rest.1.is_empty() {
            let (position, bytes) = rest;
            let contiguous = self.layout.capacity - position % self.layout.capacity;
            let count =
                usize::try_from(contiguous).map_or(bytes.len(), |most| most.min(bytes.len()));
            let at = self.layout.byte(position);
            self.cells.copy_in_plain(at, &bytes[..count], step!("ring.bytes.store"));
            rest = (position.wrapping_add(count as u64), &bytes[count..]);
        }
    }

    /// Stores the checksum of a claimed message of these parts, after them.
    pub fn store_sum(self, claim: &Claim, head: &[u8], body: &[u8]) {
        let offset = (head.len() + body.len()) as u64;
        self.store(claim, offset, &sum(claim.slot, head, body));
    }

    /// Step 5; false if the slot was abandoned, because the drainer took this process for dead.
    #[must_use]
    pub fn commit(self, claim: &Claim) -> bool {
        let at = self.layout.descriptor(claim.slot);
        let (old, new) = (Descriptor::Working(claim.taken), Descriptor::Committed(claim.taken));
        self.cells.swap_acq_rel(at, old.word(), new.word(), step!("ring.commit.cas")).is_ok()
    }

    /// Counts a producer that found no room.
    pub fn count_stall(self) {
        self.cells.add_acq_rel(STALLS, 1, step!("ring.stalls.add"));
    }

    /// Step 11: gives the ring a successor, unless it has one; returns the one it has.
    #[must_use]
    pub fn name_successor(self, name: u64) -> u64 {
        let swapped = self.cells.swap_acq_rel(SUCCESSOR, 0, name, step!("ring.successor.cas"));
        swapped.err().unwrap_or(name)
    }

    /// The name of the successor.
    #[must_use]
    pub fn successor(self) -> Option<u64> {
        Some(self.cells.load_acquire(SUCCESSOR)).filter(|name| *name != 0)
    }

    /// Step 12: closes a ring that has a successor.
    pub fn close(self) -> Result<(), Refused> {
        let mut from = self.cells.load_acquire(TAIL);
        loop {
            let slot = match self.first_free(from) {
                Ok((slot, _)) => slot,
                Err(Refused::Closed) => return Ok(()),
                Err(_) => return Err(Refused::Damaged),
            };
            let (at, empty) = (self.layout.descriptor(slot), Descriptor::Empty(slot).word());
            let closed = Descriptor::Closed.word();
            if self.cells.swap_acq_rel(at, empty, closed, step!("ring.close.cas")).is_ok() {
                return Ok(());
            }
            from = slot;
        }
    }

    /// Whether it is closed.
    #[must_use]
    pub fn is_closed(self) -> bool {
        self.first_free(self.tail()) == Err(Refused::Closed)
    }

    /// Step 13, for the successor of a ring that is drained; once, as slots are counted from there.
    pub fn begin_after(self, before: Self) {
        if self.has_begun() {
            return;
        }
        self.raise_high_water(before.high_water());
        let stalls = before.earlier_stalls().saturating_add(before.own_stalls());
        self.cells.store_release(EARLIER_STALLS, stalls, step!("ring.stalls.store"));
        let slots = before.in_chain(before.drained());
        self.cells.store_release(EARLIER_SLOTS, slots, step!("ring.earlier-slots.store"));
        self.cells.store_release(BEGUN, 1, step!("ring.begun.store"));
    }

    /// The identity of its chain.
    #[must_use]
    pub fn identity(self) -> u64 {
        self.cells.load_acquire(IDENTITY_AT)
    }

    /// How many slots of its chain come before one of its own, once it has started.
    #[must_use]
    pub fn in_chain(self, slot: u64) -> u64 {
        self.cells.load_acquire(EARLIER_SLOTS).saturating_add(slot)
    }

    /// Whether its predecessors are drained.
    #[must_use]
    pub fn has_begun(self) -> bool {
        self.cells.load_acquire(BEGUN) != 0
    }

    /// The most bytes that can be in it.
    #[must_use]
    pub const fn capacity(self) -> u64 {
        self.layout.capacity
    }

    /// How often producers found no room in its predecessors, once it has started.
    #[must_use]
    pub fn earlier_stalls(self) -> u64 {
        self.cells.load_acquire(EARLIER_STALLS)
    }

    /// How often producers found no room in it.
    #[must_use]
    pub fn own_stalls(self) -> u64 {
        self.cells.load_acquire(STALLS)
    }

    /// The most bytes that have been in it and its predecessors.
    #[must_use]
    pub fn high_water(self) -> u64 {
        self.cells.load_acquire(HIGH_WATER)
    }

    /// What to drain next.
    #[must_use]
    pub fn next(self) -> Next {
        let tail = self.tail();
        // This loop ends: each slot it skips is empty in the next round.
        loop {
            let slot = self.drained();
            let start = self.cells.load_acquire(DRAINED_BYTES);
            if slot > LATEST || start > LATEST || tail > slot + self.layout.slots {
                return Next::Damaged { slot, word: start };
            }
            match self.look(slot, start) {
                Look::Found(next) => return next,
                // The drainer died between 8 and 9.
                Look::Freed => {
                    let next = slot + 1;
                    self.cells.store_release(DRAINED_SLOTS, next, step!("ring.drained.store"));
                }
                // It died between 7 and 8: no message is empty, so this one was drained.
                Look::Drained => self.free_slot(slot),
            }
        }
    }

    /// How many slots were drained, and whether the next one is taken; for callers that do not
    /// drain.
    #[must_use]
    pub fn counts(self) -> (u64, bool) {
        let slot = self.drained();
        (slot, self.descriptor(slot) != Descriptor::Empty(slot))
    }

    /// What to drain after an entry that is not freed yet.
    #[must_use]
    pub fn after(self, entry: &Entry) -> Next {
        match self.look(entry.slot + 1, entry.next()) {
            Look::Found(next) => next,
            // Only the first slot that is not drained can be in this state.
            Look::Freed | Look::Drained => Next::Nothing,
        }
    }

    fn look(self, slot: u64, start: u64) -> Look {
        let word = self.cells.load_acquire(self.layout.descriptor(slot));
        let damaged = Look::Found(Next::Damaged { slot, word });
        let (taken, is_message) = match Descriptor::parse(word) {
            Descriptor::Empty(number) if number == slot => return Look::Found(Next::Nothing),
            Descriptor::Empty(number) if number == slot + self.layout.slots => return Look::Freed,
            Descriptor::Empty(_) => return damaged,
            Descriptor::Working(taken) => {
                return Look::Found(Next::Working { slot, producer: taken.producer });
            }
            Descriptor::Closed => return Look::Found(Next::Closed),
            Descriptor::Committed(taken) => (taken, true),
            Descriptor::Abandoned(taken) => (taken, false),
        };
        if distance(taken.end, start) < ALIGNMENT {
            return Look::Drained;
        }
        let entry =
            Entry { slot, start, length: distance(start, taken.end), metadata: taken.metadata };
        if entry.length > self.layout.capacity {
            return damaged;
        }
        Look::Found(if is_message { Next::Message(entry) } else { Next::Abandoned(entry) })
    }

    /// Abandons the slot of a dead producer; false if it was committed.
    #[must_use]
    pub fn abandon(self, slot: u64) -> bool {
        let at = self.layout.descriptor(slot);
        let word = self.cells.load_acquire(at);
        let Descriptor::Working(taken) = Descriptor::parse(word) else { return false };
        let abandoned = Descriptor::Abandoned(taken).word();
        self.cells.swap_acq_rel(at, word, abandoned, step!("ring.abandon.cas")).is_ok()
    }

    /// The bytes of a message.
    #[must_use]
    pub fn bytes(self, entry: &Entry) -> Vec<u8> {
        let contiguous = self.layout.capacity - entry.start % self.layout.capacity;
        let first = entry.length.min(contiguous);
        let mut bytes = self.cells.copy_out_relaxed(self.layout.byte(entry.start), first);
        if first < entry.length {
            bytes.extend(self.cells.copy_out_relaxed(self.layout.byte(0), entry.length - first));
        }
        bytes
    }

    /// A message; None if not all of its bytes were stored, as a power cut may leave it.
    #[must_use]
    pub fn message(self, entry: &Entry) -> Option<Vec<u8>> {
        let mut bytes = self.bytes(entry);
        let end = bytes.len().checked_sub(usize::try_from(SUM_LEN).ok()?)?;
        let is_whole = bytes[end..] == sum(entry.slot, &bytes[..end], &[]);
        bytes.truncate(end);
        is_whole.then_some(bytes)
    }

    /// Steps 7 to 9, for the first slot that is not drained.
    pub fn free(self, entry: &Entry) {
        self.cells.store_release(DRAINED_BYTES, entry.next(), step!("ring.drained-bytes.store"));
        self.free_slot(entry.slot);
    }

    fn free_slot(self, slot: u64) {
        let empty = Descriptor::Empty(slot + self.layout.slots).word();
        self.cells.store_release(self.layout.descriptor(slot), empty, step!("ring.free.store"));
        self.cells.store_release(DRAINED_SLOTS, slot + 1, step!("ring.drained.store"));
    }

    /// Stores the intent: what the drainer is about to append.
    pub fn intend(self, intent: Intent) {
        // Until then the slot is invalid, so that words of two intents are never combined.
        self.cells.store_release(INTENT_SLOT, 0, step!("ring.intent.store"));
        let index = intent.index.cast_unsigned();
        self.cells.store_release(INTENT_INDEX, index, step!("ring.intent.store"));
        self.cells.store_release(INTENT_COUNT, intent.count, step!("ring.intent.store"));
        self.cells.store_release(INTENT_SLOT, intent.slot + 1, step!("ring.intent.store"));
    }

    /// Clears the intent.
    pub fn intend_nothing(self) {
        self.cells.store_release(INTENT_SLOT, 0, step!("ring.intent.store"));
    }

    /// The last intent.
    #[must_use]
    pub fn intent(self) -> Option<Intent> {
        let slot = self.cells.load_acquire(INTENT_SLOT).checked_sub(1)?;
        let index = self.cells.load_acquire(INTENT_INDEX).cast_signed();
        Some(Intent { slot, index, count: self.cells.load_acquire(INTENT_COUNT) })
    }

    /// The first slot that no producer had taken at some time during the call.
    #[must_use]
    pub fn tail(self) -> u64 {
        self.cells.load_acquire(TAIL)
    }

    /// How many slots were drained.
    #[must_use]
    pub fn drained(self) -> u64 {
        self.cells.load_acquire(DRAINED_SLOTS)
    }

    /// Approximately how many slots are taken.
    #[must_use]
    pub fn pending(self) -> u64 {
        self.tail().saturating_sub(self.drained()).min(self.layout.slots)
    }

    /// Approximately how many bytes are taken.
    #[must_use]
    pub fn used(self) -> u64 {
        let (tail, drained) = (self.tail(), self.cells.load_acquire(DRAINED_BYTES));
        match tail.checked_sub(1).map(|last| self.descriptor(last)) {
            None | Some(Descriptor::Empty(_) | Descriptor::Closed) => 0,
            Some(
                Descriptor::Working(taken)
                | Descriptor::Committed(taken)
                | Descriptor::Abandoned(taken),
            ) => match distance(drained, taken.end) {
                used if used <= self.layout.capacity => used,
                _ => 0, // drained between the two loads
            },
        }
    }
}
