//! The layout of a ring: a header, a descriptor for each slot, and the bytes of the messages.
//!
//! ```text
//!    0  "QUIRERNG"            64  tail: no slot before it is free      192  intent: first index
//!    8  version, 4           128  drained slots                        200  intent: messages
//!   16  capacity in bytes    136  drained bytes                        208  intent: first slot + 1
//!   24  slots                                                          256  high-water mark, stalls,
//!   32  number in the chain  320  successor, or 0                           stalls of those before it
//!   40  identity             328  1: those before it are drained
//!                            336  slots of those before it
//! 4096  descriptors, 8 bytes each; then the bytes, at their position modulo the capacity
//! ```
//!
//! Each message has a slot, whose number is never reused. Messages lie one after the other, at
//! positions that only grow and are multiples of 8. The last 8 bytes of each are a checksum of its
//! slot and its other bytes: after a power cut, a descriptor may be on the medium without them. A
//! descriptor is one word:
//!
//! ```text
//! EMPTY      00 | the number of the slot that may use it: 62 bits
//! WORKING    01 | metadata: 1 bit | producer: 22 bits | end position, modulo 2^39
//! COMMITTED  10 | the same
//! ABANDONED  11 | the same: its producer died
//! CLOSED     11 | no producer: no slot is taken from this one on
//! ```
//!
//! One slot is always left free, for CLOSED.
//!
//! All rings of a chain have one random identity. The key `quire.ringDrained` of the queue's table
//! says of which chain how many slots are in the queue.
//!
//! A producer is identified by a random number, chosen by its process, which holds a lock on that
//! byte of the file: byte 0 is the drainer's lock, byte n that of producer n. A pid would not do:
//! processes of two containers may have the same one.

use std::ops::Range;

/// The first 8 bytes.
pub const MAGIC: u64 = u64::from_le_bytes(*b"QUIRERNG");
/// The version this code reads and writes.
pub const VERSION: u64 = 4;
/// Older versions with the same words: the last had no checksums, and the one before it identified
/// producers by their pid.
pub const OLDER: Range<u64> = 2..VERSION;
/// The length of the header.
pub const HEADER: u64 = 4096;

/// Positions of the header's words.
pub const VERSION_AT: u64 = 8;
pub const CAPACITY_AT: u64 = 16;
pub const SLOTS_AT: u64 = 24;
pub const NUMBER_AT: u64 = 32;
pub const IDENTITY_AT: u64 = 40;
pub const TAIL: u64 = 64;
pub const DRAINED_SLOTS: u64 = 128;
pub const DRAINED_BYTES: u64 = 136;
pub const INTENT_INDEX: u64 = 192;
pub const INTENT_COUNT: u64 = 200;
pub const INTENT_SLOT: u64 = 208;
pub const HIGH_WATER: u64 = 256;
pub const STALLS: u64 = 264;
pub const EARLIER_STALLS: u64 = 272;
pub const SUCCESSOR: u64 = 320;
pub const BEGUN: u64 = 328;
pub const EARLIER_SLOTS: u64 = 336;

/// Identities are less than this.
pub const IDENTITIES: u64 = 1 << 20;

/// The length of the checksum after each message.
pub const SUM_LEN: u64 = 8;

/// Capacities are powers of two between these.
pub const LEAST_CAPACITY: u64 = 64 << 10;
pub const MOST_CAPACITY: u64 = 1 << 30;
/// The default capacity of a new ring.
pub const DEFAULT_CAPACITY: u64 = 8 << 20;
/// There is a slot for this many bytes: smaller messages fill the slots first.
const BYTES_PER_SLOT: u64 = 32;

/// Messages start at multiples of this.
pub const ALIGNMENT: u64 = 8;

const STATE_SHIFT: u32 = 62;
const NUMBER: u64 = (1 << STATE_SHIFT) - 1;
const METADATA: u64 = 1 << 61;
const PRODUCER_SHIFT: u32 = 39;
const PRODUCER: u64 = (1 << 22) - 1;
/// The highest number of a producer; the lowest is 1.
pub const LAST_PRODUCER: u64 = PRODUCER;
const END: u64 = (1 << PRODUCER_SHIFT) - 1;

/// The state of a descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Descriptor {
    /// The slot of this number may use it.
    Empty(u64),
    /// A producer is writing the message.
    Working(Taken),
    /// The message is complete.
    Committed(Taken),
    /// There is no message: its producer died.
    Abandoned(Taken),
    /// There is no message in this slot or any later one.
    Closed,
}

/// A slot in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// Whether its message is metadata.
    pub metadata: bool,
    /// The number of its producer.
    pub producer: u32,
    /// Where its bytes end, modulo 2^39.
    pub end: u64,
}

impl Descriptor {
    /// Decodes a word.
    #[must_use]
    #[allow(clippy::cast_possible_truncation)] // 22 bits
    pub const fn parse(word: u64) -> Self {
        let taken = Taken {
            metadata: word & METADATA != 0,
            producer: (word >> PRODUCER_SHIFT & PRODUCER) as u32,
            end: word & END,
        };
        match word >> STATE_SHIFT {
            0 => Self::Empty(word & NUMBER),
            1 => Self::Working(taken),
            2 => Self::Committed(taken),
            _ if taken.producer == 0 => Self::Closed,
            _ => Self::Abandoned(taken),
        }
    }

    /// The encoded word.
    #[must_use]
    pub const fn word(self) -> u64 {
        match self {
            Self::Empty(number) => number & NUMBER,
            Self::Working(taken) => taken.word(1),
            Self::Committed(taken) => taken.word(2),
            Self::Abandoned(taken) => taken.word(3),
            Self::Closed => 3 << STATE_SHIFT,
        }
    }
}

impl Taken {
    const fn word(self, state: u64) -> u64 {
        let metadata = if self.metadata { METADATA } else { 0 };
        state << STATE_SHIFT
            | metadata
            | (self.producer as u64 & PRODUCER) << PRODUCER_SHIFT
            | self.end & END
    }
}

/// The checksum of a message and its slot, so that bytes left there by an earlier round do not
/// match.
#[must_use]
pub fn sum(slot: u64, head: &[u8], body: &[u8]) -> [u8; 8] {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&slot.to_le_bytes());
    hasher.update(head);
    hasher.update(body);
    u64::from(hasher.finalize()).to_le_bytes()
}

/// The distance in bytes from a position to one that is known modulo 2^39.
#[must_use]
pub const fn distance(from: u64, to: u64) -> u64 {
    to.wrapping_sub(from) & END
}

/// The layout of a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The most bytes of messages in it at once, a power of two.
    pub capacity: u64,
    /// The most messages in it at once, a power of two.
    pub slots: u64,
}

impl Layout {
    /// The layout of a new ring: the next power of two in range.
    #[must_use]
    pub fn of(capacity: u64) -> Self {
        let capacity = capacity.clamp(LEAST_CAPACITY, MOST_CAPACITY).next_power_of_two();
        Self { capacity, slots: capacity / BYTES_PER_SLOT }
    }

    /// Whether a file may have this layout.
    #[must_use]
    pub fn is_credible(self) -> bool {
        (LEAST_CAPACITY..=MOST_CAPACITY).contains(&self.capacity) && self == Self::of(self.capacity)
    }

    /// The position of a slot's descriptor.
    #[must_use]
    pub const fn descriptor(self, slot: u64) -> u64 {
        HEADER + slot % self.slots * 8
    }

    /// Where in the file the byte at this position of the messages is.
    #[must_use]
    pub const fn byte(self, position: u64) -> u64 {
        HEADER + self.slots * 8 + position % self.capacity
    }

    /// The length of the file.
    #[must_use]
    pub const fn file_len(self) -> u64 {
        HEADER + self.slots * 8 + self.capacity
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_come_back_from_their_words() {
        let taken = Taken { metadata: true, producer: (1 << 22) - 1, end: END };
        for found in [
            Descriptor::Empty(0),
            Descriptor::Empty(NUMBER),
            Descriptor::Working(taken),
            Descriptor::Committed(Taken { metadata: false, producer: 1, end: 8 }),
            Descriptor::Abandoned(taken),
            Descriptor::Closed,
        ] {
            assert_eq!(Descriptor::parse(found.word()), found);
        }
    }

    #[test]
    fn capacities_are_powers_of_two_in_range() {
        assert_eq!(Layout::of(0).capacity, LEAST_CAPACITY);
        assert_eq!(Layout::of(LEAST_CAPACITY + 1).capacity, 2 * LEAST_CAPACITY);
        assert_eq!(Layout::of(u64::MAX).capacity, MOST_CAPACITY);
        assert!(!Layout { capacity: 3 << 20, slots: 1 }.is_credible());
        assert_eq!(distance(END - 7, 8), 16);
    }
}
