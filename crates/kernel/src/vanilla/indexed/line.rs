//! Lines of the index: a base of 8 bytes, and 14 ends of 4 bytes relative to it.

/// Bytes of a line.
pub const LINE: u64 = 64;
/// Entries of a line.
pub const ENTRIES: u64 = 14;
/// Positions of data files are below this.
pub const DATA_LIMIT: u64 = 1 << 48;

const LINE_LEN: usize = 64;
const BASE_LEN: usize = 8;

/// Where an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// The number of the line.
    pub line: u64,
    /// The number of the entry within the line.
    pub number: u64,
}

impl Slot {
    /// The entry of a sequence number.
    pub const fn of(sequence: u64) -> Self {
        Self { line: sequence / ENTRIES, number: sequence % ENTRIES }
    }

    /// The sequence number of the entry.
    pub const fn sequence(self) -> u64 {
        self.line * ENTRIES + self.number
    }

    /// The position of the line's base; None after the end of any file.
    pub fn base_position(self) -> Option<u64> {
        self.line.checked_mul(LINE).filter(|position| *position < DATA_LIMIT)
    }

    /// The position of the entry; None after the end of any file.
    pub fn position(self) -> Option<u64> {
        Some(self.base_position()? + 8 + self.number * 4)
    }
}

/// The entries that are not free within bytes of the index that start at a line.
pub fn taken(bytes: &[u8], first_line: u64) -> impl DoubleEndedIterator<Item = Slot> {
    let lines = bytes.as_chunks::<LINE_LEN>().0;
    lines.iter().enumerate().flat_map(move |(at, line)| {
        let ends = line[BASE_LEN..].as_chunks::<4>().0;
        let line = first_line + at as u64;
        let taken = (0..ENTRIES).zip(ends).filter(|(_, end)| **end != [0; 4]);
        taken.map(move |(number, _)| Slot { line, number }).collect::<Vec<_>>()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_where_java_puts_them() {
        for (sequence, base, position) in
            [(0, 0, 8), (13, 0, 60), (14, 64, 72), (213, 15 * 64, 15 * 64 + 8 + 3 * 4)]
        {
            let slot = Slot::of(sequence);
            assert_eq!(slot.base_position(), Some(base));
            assert_eq!(slot.position(), Some(position));
            assert_eq!(slot.sequence(), sequence);
        }
        assert_eq!(Slot::of(u64::MAX).position(), None);
    }

    #[test]
    fn only_ends_that_are_stored_are_taken() {
        let mut bytes = [0; 128];
        (bytes[0], bytes[12], bytes[64 + 60]) = (1, 1, 1);
        let found: Vec<_> = taken(&bytes, 3).map(Slot::sequence).collect();
        assert_eq!(found, [3 * 14 + 1, 4 * 14 + 13]);
    }
}
