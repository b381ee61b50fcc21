//! A producer's profile, `{name}.qm`: 32 bytes.
//!
//! ```text
//! 0  int64  one of two ends of its data, stored in turn
//! 8  int64  the other one: the greater is the end, the lesser where the last message begins
//! 16 int64  index of the last entry it claimed
//! 24 int64  index it tries to claim; Quire's own, unused and 0 in Java's
//! ```

/// Bytes of a profile.
pub const PROFILE: u64 = PROFILE_LEN as u64;
/// Bytes of a profile, as a length in memory.
pub const PROFILE_LEN: usize = 32;
/// Where the index of the last claimed entry is.
pub const LAST: u64 = 16;
/// Where the index of the entry to be claimed is.
pub const ATTEMPT: u64 = 24;

/// The content of a profile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    /// The two ends, in the order of the file.
    pub ends: [u64; 2],
    /// Index of the last entry claimed; 0 also if there was none.
    pub last: u64,
    /// Index that its producer tries to claim.
    pub attempt: u64,
}

impl Profile {
    /// Reads a profile; the missing part of a short one is 0.
    #[must_use]
    pub fn read(bytes: &[u8; PROFILE_LEN]) -> Self {
        let (words, _) = bytes.as_chunks::<8>();
        let word = |number: usize| u64::from_le_bytes(words[number]);
        Self { ends: [word(0), word(1)], last: word(2), attempt: word(3) }
    }

    /// The profile as stored.
    #[must_use]
    pub fn bytes(&self) -> [u8; PROFILE_LEN] {
        let mut bytes = [0; PROFILE_LEN];
        let words = [self.ends[0], self.ends[1], self.last, self.attempt];
        for (place, word) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(words) {
            *place = word.to_le_bytes();
        }
        bytes
    }

    /// The end of the producer's data.
    #[must_use]
    pub fn data_end(&self) -> u64 {
        self.ends[0].max(self.ends[1])
    }

    /// The lesser of the two ends: where its last message begins.
    #[must_use]
    pub fn previous_end(&self) -> u64 {
        self.ends[0].min(self.ends[1])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ends_take_turns() {
        let mut bytes = [0; PROFILE_LEN];
        assert_eq!(Profile::read(&bytes), Profile::default());
        bytes[0] = 0x4A;
        bytes[8] = 0x41;
        bytes[16] = 0xB0;
        let profile = Profile::read(&bytes);
        assert_eq!((profile.data_end(), profile.previous_end()), (0x4A, 0x41));
        assert_eq!((profile.last, profile.attempt), (0xB0, 0));
        assert_eq!(profile.bytes(), bytes);
    }
}
