//! The side file of a cycle's message checksums (`docs/format.md` §1.11): a header, then one record
//! per message, by sequence.

use std::path::{Path, PathBuf};

use crate::memory::crc32c;

/// The suffix that replaces the roll file's.
const SUFFIX: &str = "checksums.quire";

pub const MAGIC: u64 = u64::from_le_bytes(*b"QuireCk1");
pub const MAGIC_AT: u64 = 0;
/// One more than the cycle's number.
pub const CYCLE_AT: u64 = 8;
pub const HEADER_LEN: u64 = 64;
pub const RECORD_LEN: u64 = 8;

/// Set in every record: 0 is no record.
const IS_THERE: u64 = 1 << 63;

/// The path of the side file of a roll file.
#[must_use]
pub fn path_for(roll_file: &Path) -> PathBuf {
    roll_file.with_extension(SUFFIX)
}

/// Where the record of a message lies.
#[must_use]
pub const fn position(sequence: u64) -> u64 {
    HEADER_LEN + sequence * RECORD_LEN
}

/// The record of a message: a set bit, its length, and the CRC-32C of its index, its length and its
/// stored bytes.
#[must_use]
pub fn record(index: i64, payload: &[u8]) -> u64 {
    let length = payload.len() as u64;
    let start = crc32c::add(0, &index.to_le_bytes());
    let sum = crc32c::add(crc32c::add(start, &length.to_le_bytes()), payload);
    IS_THERE | length << 32 | u64::from(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_says_length_bytes_and_index() {
        let found = record(7, b"hello");
        assert_eq!(found >> 32, 1 << 31 | 5);
        assert_ne!(found, record(8, b"hello"));
        assert_ne!(found, record(7, b"jello"));
        assert_ne!(record(7, b""), 0);
    }
}
