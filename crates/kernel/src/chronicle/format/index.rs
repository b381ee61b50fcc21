//! The two-level index (`docs/format.md` §4): arrays of positions, each in a metadata document.
//!
//! ```text
//! header word | B9 name | padding | 8D | capacity i64 | used i64 | slot i64 ...
//!                                        8-aligned
//! ```
//! A slot of `index2index` holds the position of an `index` document, a slot of `index` that of a
//! message.

use quire_wire::codes::I64_ARRAY;
use quire_wire::out::Out;
use quire_wire::reader::Reader;
use quire_wire::writer::{pad_before_code, put_event};

use super::document::HEADER_LEN;
use super::roll_cycle;

/// Event name of the upper array.
pub const INDEX2INDEX: &str = "index2index";
/// Event name of a lower array.
pub const INDEX: &str = "index";
/// Room before the slots: name, padding, capacity and used always fit in this.
pub const PREAMBLE_MAX: usize = 64;
const WORD: u64 = 8;

/// The payload of an array document whose header lies at `position`, up to the slots.
#[must_use]
pub fn preamble(name: &str, position: u64, index_count: u32, used: u64) -> Vec<u8> {
    // Offsets must equal positions modulo 8 for the padding to come out right.
    let lead = usize::try_from((position + HEADER_LEN) % WORD).unwrap_or(0);
    let mut out = Out::small();
    out.fill(lead, 0);
    put_event(&mut out, name);
    pad_before_code(&mut out, 8);
    out.push(I64_ARRAY);
    out.extend_from_slice(&i64::from(index_count).to_le_bytes());
    out.extend_from_slice(&used.to_le_bytes());
    out.into_small().split_off(lead)
}

/// Bytes of the slots of an array.
#[must_use]
pub const fn slots_len(index_count: u32) -> u64 {
    index_count as u64 * WORD
}

/// Whether the payload of a metadata document is an array of positions, which only its own file can
/// use.
#[must_use]
pub fn is_array(payload: &[u8]) -> bool {
    let mut reader = Reader::new(payload);
    let is_named = reader
        .name_if()
        .is_some_and(|name| [INDEX, INDEX2INDEX].iter().any(|known| known.as_bytes() == name));
    is_named && reader.code() == Some(I64_ARRAY)
}

/// Where an array's words are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArrayLayout {
    /// Position of `used`.
    pub used: u64,
    /// Position of slot 0.
    pub slots: u64,
}

impl ArrayLayout {
    /// Finds the words from the first bytes of the payload of the document at `position`. None if
    /// it is not an array of this many slots, or its words are not aligned.
    #[must_use]
    pub fn parse(position: u64, payload: &[u8], index_count: u32) -> Option<Self> {
        let mut cursor = Reader::new(payload);
        cursor.name_if()?;
        (cursor.code()? == I64_ARRAY).then_some(())?;
        let capacity = position + HEADER_LEN + cursor.offset() as u64;
        let found = i64::from_le_bytes(cursor.array()?);
        (found == i64::from(index_count)).then_some(())?;
        Some(Self { used: capacity + WORD, slots: capacity + 2 * WORD })
    }

    /// The position of a slot.
    #[must_use]
    pub const fn slot(&self, number: u64) -> u64 {
        self.slots + number * WORD
    }
}

/// How a file's index numbers messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Slots of one array, a power of two.
    pub index_count: u32,
    /// Every n-th message is indexed; a power of two.
    pub index_spacing: u32,
}

impl Shape {
    /// Slot of the upper array for a sequence; not below `index_count` when the index is full.
    #[must_use]
    pub const fn upper_slot(&self, sequence: u64) -> u64 {
        sequence >> (self.index_count.ilog2() + self.index_spacing.ilog2())
    }

    /// Slot of the lower array for a sequence.
    #[must_use]
    pub const fn lower_slot(&self, sequence: u64) -> u64 {
        (sequence >> self.index_spacing.ilog2()) & (self.index_count as u64 - 1)
    }

    /// The sequence that slots stand for.
    #[must_use]
    pub const fn sequence(&self, upper: u64, lower: u64) -> u64 {
        ((upper << self.index_count.ilog2()) + lower) << self.index_spacing.ilog2()
    }

    /// Whether a sequence gets a slot.
    #[must_use]
    pub const fn is_indexed(&self, sequence: u64) -> bool {
        sequence & (self.index_spacing as u64 - 1) == 0
    }

    /// How many messages the arrays can number.
    #[must_use]
    pub const fn max_messages(&self) -> u64 {
        roll_cycle::max_messages(self.index_count, self.index_spacing)
    }

    /// The sequence word (`docs/format.md` §4.5): the low bits of a position above a sequence.
    #[inline]
    #[must_use]
    pub const fn sequence_word(&self, position: u64, sequence: u64) -> u64 {
        let shift = roll_cycle::shift(self.index_count, self.index_spacing);
        position.wrapping_shl(shift).wrapping_add(sequence & ((1 << shift) - 1))
    }

    /// The sequence in a word, if the word belongs to this position.
    #[must_use]
    pub const fn sequence_in_word(&self, word: u64, position: u64) -> Option<u64> {
        let shift = roll_cycle::shift(self.index_count, self.index_spacing);
        let matches = word != 0 && word >> shift == (position << shift) >> shift;
        if matches { Some(word & ((1 << shift) - 1)) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: Shape = Shape { index_count: 32, index_spacing: 4 };

    #[test]
    fn slots_and_sequences_are_inverse() {
        for sequence in (0..4096).step_by(4) {
            let (upper, lower) = (SHAPE.upper_slot(sequence), SHAPE.lower_slot(sequence));
            assert_eq!(SHAPE.sequence(upper, lower), sequence);
        }
        assert_eq!(SHAPE.upper_slot(4096), 32);
    }

    #[test]
    fn the_sequence_word_of_the_format_page() {
        assert_eq!(SHAPE.sequence_word(0x370, 8), 0x0000_0370_0000_0008);
        assert_eq!(SHAPE.sequence_in_word(0x0000_0370_0000_0008, 0x370), Some(8));
        assert_eq!(SHAPE.sequence_in_word(0x0000_0370_0000_0008, 0x360), None);
    }

    #[test]
    fn arrays_are_laid_out_as_java_does() {
        let upper = preamble(INDEX2INDEX, 0xc8, 32, 1);
        let found = ArrayLayout::parse(0xc8, &upper, 32).unwrap();
        assert_eq!(found, ArrayLayout { used: 0xe8, slots: 0xf0 });
        assert_eq!(upper.len() as u64 + slots_len(32), 0x124);
        let lower = preamble(INDEX, 0x1f0, 32, 0);
        assert_eq!(lower.len() as u64 + slots_len(32), 0x11c);
    }
}
