//! Index entries: 16 bytes, the address of a message and a stamp.
//!
//! ```text
//! 0  int64  where the message begins, in the data of its producer
//! 8  int32  its length
//! 12 int24  its producer's name; 0 in a queue with one writer
//! 15 int8   0x7F once the entry is complete, else 0
//! ```

use super::producer::Producer;

/// Bytes of an entry.
pub const ENTRY: u64 = 16;
/// Where an entry's stamp is in it.
pub const STAMP: u64 = 8;
/// The longest message.
pub const MESSAGE_MAX: u32 = i32::MAX as u32;

const COMPLETE: u8 = 0x7F;

/// The second word of an entry. One store of it publishes a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp(u64);

/// The state of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The entry is unclaimed.
    Free,
    /// A producer has claimed the entry but not completed it.
    Claimed,
    /// The entry points to a message.
    Complete,
    /// The last byte is not one that a writer stores.
    Unknown,
}

impl Stamp {
    /// The stamp of an unclaimed entry.
    pub const FREE: Self = Self(0);

    /// The stamp in a word.
    #[must_use]
    pub const fn of(word: u64) -> Self {
        Self(word)
    }

    /// The word of a stamp.
    #[must_use]
    pub const fn word(self) -> u64 {
        self.0
    }

    /// The word of a complete entry in a queue with one writer.
    #[must_use]
    pub const fn single(length: u32) -> Self {
        Self(length as u64).completed()
    }

    /// The word of an entry that a producer has claimed.
    #[must_use]
    pub const fn claim(producer: Producer, length: u32) -> Self {
        Self((producer.bits() as u64) << 32 | length as u64)
    }

    /// The word of this entry, completed.
    #[must_use]
    pub const fn completed(self) -> Self {
        Self(self.0 | (COMPLETE as u64) << 56)
    }

    /// Length of the message; may exceed [`MESSAGE_MAX`] in hostile files.
    #[must_use]
    #[allow(clippy::cast_possible_truncation)] // its lower half
    pub const fn length(self) -> u32 {
        self.0 as u32
    }

    /// The bits of the producer's name.
    #[must_use]
    #[allow(clippy::cast_possible_truncation)] // masked
    pub const fn producer_bits(self) -> u32 {
        (self.0 >> 32) as u32 & 0xFF_FFFF
    }

    /// The state of the entry.
    #[must_use]
    pub const fn state(self) -> State {
        match (self.0, (self.0 >> 56) as u8) {
            (0, _) => State::Free,
            (_, 0) => State::Claimed,
            (_, COMPLETE) => State::Complete,
            _ => State::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_are_those_of_the_original() {
        let producer = Producer::new("AA0").unwrap();
        let stamp = Stamp::claim(producer, 9);
        assert_eq!(stamp.word().to_le_bytes(), [9, 0, 0, 0, b'0', b'A', b'A', 0]);
        assert_eq!(stamp.state(), State::Claimed);
        let stamp = stamp.completed();
        assert_eq!(stamp.word().to_le_bytes(), [9, 0, 0, 0, b'0', b'A', b'A', 0x7F]);
        assert_eq!((stamp.length(), stamp.producer_bits()), (9, producer.bits()));
        assert_eq!(stamp.state(), State::Complete);
        assert_eq!(Stamp::single(5).word().to_le_bytes(), [5, 0, 0, 0, 0, 0, 0, 0x7F]);
        assert_eq!(Stamp::single(0).state(), State::Complete);
    }

    #[test]
    fn other_flags_are_unknown() {
        assert_eq!(Stamp::FREE.state(), State::Free);
        for flag in [1, 0x7E, 0x80, 0xFF_u64] {
            assert_eq!(Stamp::of(flag << 56 | 5).state(), State::Unknown);
        }
    }
}
