//! The seek table of a compressed roll file (`docs/format.md` §1.7): where each zstd frame is, and
//! which part of the content it holds. The layout is that of zstd's seekable format.

/// How the skippable frame with the table begins.
const FRAME_MAGIC: [u8; 4] = [0x5E, 0x2A, 0x4D, 0x18];
/// How the file ends.
const MAGIC: [u8; 4] = [0xB1, 0xEA, 0x92, 0x8F];
/// Bytes before the entries: the magic number of the frame, and its length.
const HEAD: u64 = 8;
/// Bytes after the entries: their number, the descriptor, and the magic number.
pub const FOOT: usize = 9;
/// The bit of the descriptor that is set if each entry ends with a checksum.
const HAS_CHECKSUMS: u8 = 0x80;
/// Bits of the descriptor that must be 0.
const RESERVED: u8 = 0x7C;
/// The most content of one frame: it is decompressed at once.
pub const CONTENT_MAX: u64 = 16 << 20;

/// The last bytes of a file with a seek table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Foot {
    count: u32,
    descriptor: u8,
}

impl Foot {
    /// None if the bytes are not the end of a seek table.
    #[must_use]
    pub fn parse(bytes: &[u8; FOOT]) -> Option<Self> {
        let [a, b, c, d, descriptor, magic @ ..] = *bytes;
        (magic == MAGIC).then(|| Self { count: u32::from_le_bytes([a, b, c, d]), descriptor })
    }

    const fn entry_len(self) -> usize {
        if self.descriptor & HAS_CHECKSUMS == 0 { 8 } else { 12 }
    }

    /// The length of the whole skippable frame.
    #[must_use]
    pub const fn table_len(self) -> u64 {
        HEAD + self.count as u64 * self.entry_len() as u64 + FOOT as u64
    }
}

/// The start of a frame: in the file, and in the content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// In the file.
    pub at: u64,
    /// In the content.
    pub content: u64,
}

/// Where the frames of a file are.
#[derive(Debug, PartialEq, Eq)]
pub struct SeekTable {
    /// The start of each frame, and the end of the last one.
    places: Vec<Place>,
}

impl SeekTable {
    /// Parses the bytes of a table whose frame begins at `at`; the error says what is wrong. No
    /// frame may hold more than `ratio` times its own length.
    pub fn parse(bytes: &[u8], foot: Foot, at: u64, ratio: u64) -> Result<Self, String> {
        let length = u32::try_from(foot.table_len() - HEAD).map_err(|_| "too many frames")?;
        if foot.descriptor & RESERVED != 0 || bytes.len() as u64 != foot.table_len() {
            return Err(format!("a seek table of unknown form {:#04x}", foot.descriptor));
        }
        if bytes[..4] != FRAME_MAGIC || bytes[4..8] != length.to_le_bytes() {
            return Err(format!("a seek table of {} frames without its start", foot.count));
        }
        let mut places = vec![Place { at: 0, content: 0 }];
        let mut end = places[0];
        let entries = &bytes[8..bytes.len() - FOOT];
        for (number, entry) in entries.chunks_exact(foot.entry_len()).enumerate() {
            let word = |n: usize| u32::from_le_bytes([0, 1, 2, 3].map(|byte| entry[4 * n + byte]));
            let (packed, content) = (u64::from(word(0)), u64::from(word(1)));
            let is_small = content <= CONTENT_MAX && content / ratio <= packed;
            // Incompressible content takes little more than its own length.
            let is_dense = content == 0 || packed <= content + content / 64 + 1024;
            if packed == 0 || !is_small || !is_dense {
                return Err(format!("frame {number} with {content} bytes of content in {packed}"));
            }
            end.at += packed;
            end.content += content;
            places.push(end);
        }
        if end.at != at {
            return Err(format!("frames of {} bytes before a seek table at {at}", end.at));
        }
        Ok(Self { places })
    }

    /// How many frames there are.
    #[must_use]
    pub const fn count(&self) -> usize {
        self.places.len() - 1
    }

    /// The length of the content.
    #[must_use]
    pub fn content(&self) -> u64 {
        self.places[self.count()].content
    }

    /// Where a frame begins, and where it ends.
    #[must_use]
    pub fn frame(&self, number: usize) -> (Place, Place) {
        (self.places[number], self.places[number + 1])
    }

    /// The frames that hold a part of the content.
    #[must_use]
    pub fn frames_of(&self, start: u64, end: u64) -> std::ops::Range<usize> {
        let ends = &self.places[1..];
        let first = ends.partition_point(|place| place.content <= start);
        let starts = &self.places[..self.count()];
        first..starts.partition_point(|place| place.content < end).max(first)
    }
}

/// The seek table of frames, each given by its length and that of its content.
#[must_use]
pub fn bytes_of(frames: &[(u32, u32)]) -> Vec<u8> {
    // Content of at most a tebibyte in frames of 256 KiB: far from the limits.
    let count = u32::try_from(frames.len()).unwrap_or(u32::MAX);
    let foot = Foot { count, descriptor: 0 };
    let length = u32::try_from(foot.table_len() - HEAD).unwrap_or(u32::MAX);
    let mut bytes = [FRAME_MAGIC, length.to_le_bytes()].concat();
    for (packed, content) in frames {
        bytes.extend(packed.to_le_bytes());
        bytes.extend(content.to_le_bytes());
    }
    bytes.extend(foot.count.to_le_bytes());
    bytes.push(foot.descriptor);
    bytes.extend(MAGIC);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(bytes: &[u8], at: u64) -> Result<SeekTable, String> {
        let foot = bytes.last_chunk().and_then(Foot::parse).ok_or("no foot")?;
        SeekTable::parse(bytes, foot, at, 1 << 15)
    }

    #[test]
    fn a_table_says_which_frames_hold_a_part() {
        let table = parsed(&bytes_of(&[(24, 0), (100, 1000), (50, 1000), (9, 1)]), 183);
        let table = table.expect("a table");
        assert_eq!((table.count(), table.content()), (4, 2001));
        assert_eq!(
            table.frame(2),
            (Place { at: 124, content: 1000 }, Place { at: 174, content: 2000 })
        );
        for (start, end, frames) in [
            (0, 1, 1..2),
            (999, 1000, 1..2),
            (999, 1001, 1..3),
            (1000, 2001, 2..4),
            (2001, 2002, 4..4),
        ] {
            assert_eq!(table.frames_of(start, end), frames, "{start}..{end}");
        }
    }

    #[test]
    fn entries_may_end_with_checksums() {
        let mut bytes = [FRAME_MAGIC, 21_u32.to_le_bytes()].concat();
        bytes.extend([100, 0, 0, 0, 200, 0, 0, 0, 1, 2, 3, 4, 1, 0, 0, 0, HAS_CHECKSUMS]);
        bytes.extend(MAGIC);
        assert_eq!(parsed(&bytes, 100).expect("a table").content(), 200);
    }

    #[test]
    fn what_cannot_be_is_refused() {
        for frames in [
            [(100, (16 << 20) + 1)],
            [(100, (100 << 15) + (1 << 15))],
            [(5000, 100)],
            [(0, 0)],
            [(99, 100)],
        ] {
            assert!(parsed(&bytes_of(&frames), 100).is_err(), "{frames:?}");
        }
        let sound = bytes_of(&[(100, 200)]);
        assert!(parsed(&sound, 100).is_ok());
        for at in 0..sound.len() - 1 {
            let is_content = (12..16).contains(&at);
            let mut bytes = sound.clone();
            bytes[at] ^= 0x10;
            assert!(parsed(&bytes, 100).is_err() || is_content, "{at}");
        }
    }
}
