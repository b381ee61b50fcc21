//! The 64-bit index of a message: its cycle, and its sequence within the cycle.

/// How an index is split.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexSplit {
    /// Bits of the sequence.
    pub sequence_bits: u32,
}

impl IndexSplit {
    /// The index of a message; None if a number is too large.
    #[must_use]
    pub fn join(self, cycle: i32, sequence: u64) -> Option<i64> {
        let cycle = i64::from(cycle);
        let high = cycle.checked_mul(1 << self.sequence_bits)?;
        let fits = sequence >> self.sequence_bits == 0 && cycle >= 0;
        fits.then(|| high + sequence.cast_signed())
    }

    /// Cycle and sequence; None for an index that no message can have.
    #[must_use]
    pub fn split(self, index: i64) -> Option<(i32, u64)> {
        let cycle = i32::try_from(index >> self.sequence_bits).ok().filter(|cycle| *cycle >= 0)?;
        Some((cycle, index.cast_unsigned() & ((1 << self.sequence_bits) - 1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indexes_are_those_of_java() {
        let daily = IndexSplit { sequence_bits: 40 };
        assert_eq!(daily.join(16_436, 1), Some(18_071_573_114_126_337));
        assert_eq!(daily.split(18_071_573_114_126_337), Some((16_436, 1)));
        let minutes = IndexSplit { sequence_bits: 34 };
        assert_eq!(minutes.join(24_480_001, 0), Some(420_563_214_804_189_184));
    }

    #[test]
    fn numbers_that_do_not_fit_have_no_index() {
        let daily = IndexSplit { sequence_bits: 40 };
        assert_eq!(daily.join(1 << 24, 0), None);
        assert_eq!(daily.join(0, 1 << 40), None);
        assert_eq!(daily.join(-1, 0), None);
        assert_eq!(daily.split(-1), None);
    }
}
