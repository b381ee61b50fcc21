//! The 4-byte header before every document (`docs/format.md` §2).
//!
//! ```text
//!  31 30 29                                 0     little-endian u32, 4-byte aligned
//! +--+--+------------------------------------+
//! |N |M |        payload length (bytes)      |    N = not complete, M = metadata
//! +--+--+------------------------------------+
//! |  payload, then 0..=3 zero bytes to align |
//! +------------------------------------------+
//! ```

/// Bytes of a document header.
pub const HEADER_LEN: u64 = 4;
/// Documents start at multiples of this, in files with `dataFormat` 1.
pub const ALIGNMENT: u64 = 4;
/// Zero bytes a writer stores after a payload before it publishes the header.
pub const TAIL_ZEROS: u64 = 8;

/// Not ready to be read.
pub const NOT_COMPLETE: u32 = 0x8000_0000;
/// Metadata: takes no sequence number.
pub const META_DATA: u32 = 0x4000_0000;
/// The bits that hold the payload length.
pub const LENGTH_MASK: u32 = 0x3FFF_FFFF;
/// Nothing has been written here yet.
pub const NOT_INITIALIZED: u32 = 0;
/// The file holds no more documents.
pub const END_OF_DATA: u32 = NOT_COMPLETE | META_DATA;
/// "EOF" as a field name: stored after an end-of-data header for people who read hex.
pub const EOF_DECORATION: [u8; 4] = [0xC3, b'E', b'O', b'F'];

const _: () = assert!(ALIGNMENT.is_power_of_two() && HEADER_LEN.is_multiple_of(ALIGNMENT));
const _: () = assert!(NOT_COMPLETE ^ META_DATA ^ LENGTH_MASK == u32::MAX);

/// What a reader may conclude from a header word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Header {
    /// Nothing to read yet: unwritten, or a writer is at work, or one died.
    Waiting,
    /// A message of this many bytes.
    Data(u32),
    /// A metadata document of this many bytes.
    Meta(u32),
    /// The end of the file's documents.
    EndOfData,
}

/// Reads a header word.
#[must_use]
pub const fn parse(word: u32) -> Header {
    match word {
        END_OF_DATA => Header::EndOfData,
        NOT_INITIALIZED => Header::Waiting,
        _ if word & NOT_COMPLETE != 0 => Header::Waiting,
        _ if word & META_DATA != 0 => Header::Meta(word & LENGTH_MASK),
        _ => Header::Data(word),
    }
}

/// Reads the first header word of a file. Here end-of-data is not special: like any incomplete
/// word, Java takes it for the header of a dead creator.
#[must_use]
pub const fn parse_first(word: u32) -> Header {
    match parse(word) {
        Header::EndOfData => Header::Waiting,
        header => header,
    }
}

/// The header word of a complete document of `length` bytes (at most [`LENGTH_MASK`]).
#[must_use]
pub const fn word(length: u32, metadata: bool) -> u32 {
    if metadata { length | META_DATA } else { length }
}

/// The position after a document at `position` with `length` payload bytes.
#[must_use]
pub const fn next(position: u64, length: u32, aligned: bool) -> u64 {
    let end = position + HEADER_LEN + length as u64;
    if aligned { end.next_multiple_of(ALIGNMENT) } else { end }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parse_tells_the_four_cases_apart() {
        assert_eq!(parse(0), Header::Waiting);
        assert_eq!(parse(0x8000_0064), Header::Waiting);
        assert_eq!(parse(0x0000_0005), Header::Data(5));
        assert_eq!(parse(0x4000_0009), Header::Meta(9));
        assert_eq!(parse(0xC000_0000), Header::EndOfData);
        assert_eq!(parse(0xC000_0010), Header::Waiting);
        assert_eq!(parse_first(0xC000_0000), Header::Waiting);
        assert_eq!(parse_first(0x4000_0009), Header::Meta(9));
    }

    #[test]
    fn next_skips_header_payload_and_pad() {
        assert_eq!(next(0x310, 5, true), 0x31c);
        assert_eq!(next(0x310, 5, false), 0x319);
    }
}
