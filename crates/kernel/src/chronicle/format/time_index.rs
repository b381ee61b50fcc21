//! The append times of a cycle (`docs/format.md` §1.8): a header, then points. A point says that
//! the first `messages` messages of the cycle had been appended by a time.
//!
//! Each half of a point is one word: a number above 16 check bits. So it is stored at once, and
//! words compare as their numbers do.

use std::path::{Path, PathBuf};

/// The suffix that replaces the roll file's.
const SUFFIX: &str = "times.quire";

pub const MAGIC: u64 = u64::from_le_bytes(*b"QuireTm1");
/// The magic word of a file that must no longer be used, because messages of its cycle were lost.
pub const RETIRED: u64 = u64::from_le_bytes(*b"QuireTm0");
pub const MAGIC_AT: u64 = 0;
/// The word of the cycle's number.
pub const CYCLE_AT: u64 = 8;
pub const HEADER_LEN: u64 = 64;
pub const POINT_LEN: u64 = 16;
/// A point is the word of its time, in epoch milliseconds, and this far after it that of
/// `messages`.
pub const MESSAGES_AT: u64 = 8;
/// The most points of a file, 2 GiB: later messages have none.
pub const MOST_POINTS: u64 = 1 << 27;

const CHECK_BITS: u32 = 16;
const LARGEST: u64 = (1 << (u64::BITS - CHECK_BITS)) - 2;

/// The path of the side file of a roll file.
#[must_use]
pub fn path_for(roll_file: &Path) -> PathBuf {
    roll_file.with_extension(SUFFIX)
}

/// Where a point lies.
#[must_use]
pub const fn position(number: u64) -> u64 {
    HEADER_LEN + number * POINT_LEN
}

/// How many points a file of this length has room for.
#[must_use]
pub const fn room(len: u64) -> u64 {
    let room = len.saturating_sub(HEADER_LEN) / POINT_LEN;
    if room < MOST_POINTS { room } else { MOST_POINTS }
}

/// The word of a number at a position, never 0; None if the number is too large.
#[must_use]
pub fn word(number: u64, position: u64) -> Option<u64> {
    (number <= LARGEST).then(|| (number + 1) << CHECK_BITS | check(number + 1, position))
}

/// The number of a word at a position; None if its check bits do not match.
#[must_use]
pub fn number(word: u64, position: u64) -> Option<u64> {
    let stored = word >> CHECK_BITS;
    let is_whole = stored > 0 && check(stored, position) == word & ((1 << CHECK_BITS) - 1);
    is_whole.then(|| stored - 1)
}

const fn check(stored: u64, position: u64) -> u64 {
    let mixed = (stored ^ position.rotate_left(40)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed ^ mixed >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> (u64::BITS - CHECK_BITS)
}

/// A whole file of points, in order.
#[must_use]
pub fn file(cycle: u64, points: &[(u64, u64)]) -> Option<Vec<u8>> {
    let mut words = vec![MAGIC, word(cycle, CYCLE_AT)?];
    words.resize(usize::try_from(HEADER_LEN / 8).ok()?, 0);
    for (&(time, messages), at) in points.iter().zip((0..MOST_POINTS).map(position)) {
        words.extend([word(time, at)?, word(messages, at + MESSAGES_AT)?]);
    }
    Some(words.into_iter().flat_map(u64::to_le_bytes).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_read_back_where_it_was_stored_and_greater_numbers_have_greater_words() {
        for value in [0, 1, 255, 1 << 32, LARGEST] {
            let stored = word(value, 64).unwrap();
            assert_eq!(number(stored, 64), Some(value));
            assert_eq!(number(stored, 80), None);
            assert!(value == LARGEST || word(value + 1, 64).unwrap() > stored);
        }
        assert_eq!((number(0, 64), word(LARGEST + 1, 64)), (None, None));
    }

    #[test]
    fn a_flipped_bit_is_noticed() {
        let stored = word(1_705_314_600_000, 64).unwrap();
        assert!((0..64).all(|bit| number(stored ^ 1 << bit, 64).is_none()));
    }
}
