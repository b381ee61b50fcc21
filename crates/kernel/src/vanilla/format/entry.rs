//! Entries of an index file: which thread's file holds a record, and where in it.

/// The numbers of thread-id bits that Java chooses from, the most frequent first.
pub const TID_BITS: [u32; 10] = [22, 16, 24, 15, 17, 18, 19, 20, 21, 23];
/// Thread-id bits that fit an entry beside an offset.
pub const TID_BITS_RANGE: std::ops::RangeInclusive<u32> = 15..=24;

/// How entries are packed. Files do not state it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packing {
    /// Bits of the thread id, the highest of an entry.
    pub tid_bits: u32,
    /// Length of a whole data file in bytes.
    pub data_block: u64,
}

/// Where a record's payload starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Location {
    /// The writer's thread id.
    pub tid: u32,
    /// The number of its data file.
    pub file: u64,
    /// The payload's first byte in that file.
    pub position: u64,
}

/// Quotient and remainder. Block sizes are nearly always powers of two, which need no division.
#[inline]
#[must_use]
pub const fn quotient(value: u64, by: u64) -> (u64, u64) {
    if by.is_power_of_two() {
        (value >> by.trailing_zeros(), value & (by - 1))
    } else {
        (value / by, value % by)
    }
}

impl Packing {
    /// The entry for a location; None if its parts need too many bits.
    #[must_use]
    pub fn pack(self, at: Location) -> Option<u64> {
        let shift = 64 - self.tid_bits;
        let offset = at.file.checked_mul(self.data_block)?.checked_add(at.position)?;
        let fits = u64::from(at.tid) >> self.tid_bits == 0 && offset >> shift == 0;
        fits.then_some(u64::from(at.tid) << shift | offset)
    }

    /// The location an entry names. No payload begins at the start of a file, as its length comes
    /// first: such a location is an empty payload at the end of the preceding file.
    #[must_use]
    pub fn unpack(self, entry: u64) -> Location {
        let shift = 64 - self.tid_bits;
        let offset = entry & ((1 << shift) - 1);
        let tid = u32::try_from(entry >> shift).unwrap_or(u32::MAX);
        match quotient(offset, self.data_block) {
            (file @ 1.., 0) => Location { tid, file: file - 1, position: self.data_block },
            (file, position) => Location { tid, file, position },
        }
    }

    /// How many data files a thread can have in a cycle.
    #[must_use]
    pub const fn file_limit(self) -> u64 {
        (1 << (64 - self.tid_bits)) / self.data_block
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_what_java_stored() {
        let packing = Packing { tid_bits: 16, data_block: 1 << 20 };
        let at = Location { tid: 10_884, file: 0, position: 4 };
        assert_eq!(packing.pack(at), Some(0x2a84_0000_0000_0004));
        assert_eq!(packing.unpack(0x2a84_0000_0000_0004), at);
    }

    #[test]
    fn every_split_is_undone() {
        for tid_bits in TID_BITS_RANGE {
            let packing = Packing { tid_bits, data_block: 4096 };
            let tid = u32::try_from((1_u64 << tid_bits) - 1).unwrap();
            let at = Location { tid, file: packing.file_limit() - 1, position: 4095 };
            assert_eq!(packing.unpack(packing.pack(at).unwrap()), at, "{tid_bits}");
            let at_end = Location { file: 1, position: 4096, ..at };
            assert_eq!(packing.unpack(packing.pack(at_end).unwrap()), at_end, "{tid_bits}");
            assert_eq!(packing.pack(Location { file: packing.file_limit(), ..at }), None);
            assert_eq!(packing.pack(Location { tid: tid + 1, ..at }), None);
        }
    }
}
