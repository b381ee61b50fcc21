//! Records of a data file: a word with the inverted length, the payload, padding to 4 bytes. Before
//! a record whose payload has to lie at a multiple of 8 there may be a word of padding.

/// Bytes of the length word.
pub const HEADER: u64 = 4;
/// A padding word instead of a length: the record begins after it.
pub const PADDING: u32 = 1;
/// Payloads are shorter than this.
pub const LENGTH_LIMIT: u64 = 1 << 30;

/// The meaning of a length word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// Nothing is published here.
    Unpublished,
    /// This number of payload bytes follows.
    Bytes(u32),
    /// Not a length: other bytes were stored here.
    Invalid,
}

/// Reads a length word.
#[must_use]
pub const fn length(word: u32) -> Length {
    match !word {
        u32::MAX => Length::Unpublished,
        length if length as u64 >= LENGTH_LIMIT => Length::Invalid,
        length => Length::Bytes(length),
    }
}

/// The word for a length.
#[must_use]
pub const fn word(length: u32) -> u32 {
    !length
}

/// Bytes of padding before a record at `position`, for its payload to lie at a multiple of 8.
#[must_use]
pub const fn padding(position: u64) -> u64 {
    if (position + HEADER).is_multiple_of(8) { 0 } else { HEADER }
}

/// Where the next record's length word is, for a payload at `position`.
#[must_use]
pub const fn next(position: u64, length: u64) -> u64 {
    (position + length).next_multiple_of(4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_inverted() {
        assert_eq!(word(13).to_le_bytes(), [0xf2, 0xff, 0xff, 0xff]);
        assert_eq!(length(word(0)), Length::Bytes(0));
        assert_eq!(length(0), Length::Unpublished);
        assert_eq!(length(word((1 << 30) - 1)), Length::Bytes((1 << 30) - 1));
        assert_eq!(length(word(1 << 30)), Length::Invalid);
        assert_eq!(length(13), Length::Invalid);
        assert_eq!(length(PADDING), Length::Invalid);
        assert_eq!([0, 4, 8, 12].map(padding), [4, 0, 4, 0]);
    }

    #[test]
    fn records_start_at_multiples_of_four() {
        assert_eq!([0, 1, 4, 13].map(|length| next(4, length)), [4, 8, 8, 20]);
    }
}
