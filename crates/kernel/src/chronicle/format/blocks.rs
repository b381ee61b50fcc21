//! How long a roll file is (`docs/format.md` §7): blocks, and an overlap after the last one.

use std::time::Duration;

use super::document::LENGTH_MASK;

/// Block size when none is given.
pub const DEFAULT_BLOCK: u64 = 64 << 20;
const PAGE: u64 = 4096;
const KIB_64: u64 = 64 << 10;

/// How a roll file grows.
#[derive(Clone, Copy, Debug)]
pub struct Growth {
    /// Block size in bytes.
    pub block: u64,
    /// How long another process may keep the file locked.
    pub timeout: Duration,
}

/// The least block size for index arrays of this many slots.
#[must_use]
pub const fn least_block(index_count: u32) -> u64 {
    let arrays = 32 * index_count as u64;
    if arrays > PAGE { arrays } else { PAGE }
}

/// A block size as Java uses it: at least the least one, in whole pages.
#[must_use]
pub const fn block(asked: u64, index_count: u32) -> u64 {
    let least = least_block(index_count);
    let block = if asked < least { least } else { asked };
    block.next_multiple_of(PAGE)
}

/// Bytes mapped after a block.
#[must_use]
pub const fn overlap(block: u64) -> u64 {
    match block {
        0..KIB_64 => block,
        KIB_64..0x4_0000 => KIB_64,
        0x4_0000..0x1_0000_0000 => (block / 4).next_multiple_of(PAGE),
        _ => 1 << 30,
    }
}

/// The longest payload a writer with such blocks may write.
#[must_use]
pub const fn longest_payload(block: u64) -> u64 {
    let (overlap, mask) = (overlap(block), LENGTH_MASK as u64);
    if overlap < mask { overlap } else { mask }
}

/// The length of a file whose last document starts at `start` and is used up to `end`.
#[must_use]
pub const fn file_len(start: u64, end: u64, block: u64) -> u64 {
    let overlap = overlap(block);
    let by_start = (start / block + 1) * block + overlap;
    if end <= by_start { by_start } else { (end - overlap).next_multiple_of(block) + overlap }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_those_java_gives_its_files() {
        assert_eq!(file_len(0, 1, DEFAULT_BLOCK), 83_886_080);
        assert_eq!(file_len(0, 100, 65_536), 131_072);
        assert_eq!(file_len(100, 131_073, 65_536), 196_608);
        assert_eq!(file_len(6_624, 6_650, 4_096), 12_288);
        assert_eq!(overlap(65_536), 65_536);
        assert_eq!(overlap(DEFAULT_BLOCK), 16 << 20);
    }
}
