//! Names of producers: three characters, stored in index entries and used in file names.

use std::fmt;

/// A producer's name.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Producer([u8; 3]);

impl Producer {
    /// A name for a new producer: three ASCII letters or digits.
    #[must_use]
    pub fn new(name: &str) -> Option<Self> {
        let name: [u8; 3] = name.as_bytes().try_into().ok()?;
        name.iter().all(u8::is_ascii_alphanumeric).then_some(Self(name))
    }

    /// The name in an index entry. Java's pattern `[0-9A-z]+` also accepts the six characters
    /// between `Z` and `a`; no accepted name leads out of the queue's directory.
    #[must_use]
    pub fn from_bits(bits: u32) -> Option<Self> {
        let [last, middle, first, _] = bits.to_le_bytes();
        Self::stored([first, middle, last])
    }

    /// The producer of a profile's or directory's name, as Java accepts it.
    #[must_use]
    pub fn from_file_name(name: &str) -> Option<Self> {
        Self::stored(name.as_bytes().try_into().ok()?)
    }

    fn stored(name: [u8; 3]) -> Option<Self> {
        let is_valid = |byte: &u8| byte.is_ascii_digit() || (b'A'..=b'z').contains(byte);
        name.iter().all(is_valid).then_some(Self(name))
    }

    /// Its bits in an index entry: the first character is the highest byte.
    #[must_use]
    pub const fn bits(self) -> u32 {
        u32::from_le_bytes([self.0[2], self.0[1], self.0[0], 0])
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

impl fmt::Display for Producer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

impl fmt::Debug for Producer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_names_are_letters_and_digits() {
        for name in ["AA0", "zzZ", "123"] {
            let producer = Producer::new(name).unwrap();
            assert_eq!(producer.as_str(), name);
            assert_eq!(Producer::from_bits(producer.bits()), Some(producer));
        }
        for name in ["", "A", "AB", "ABCD", "A_^", "A/B", "../", "é1", "A\0B", "ÄB"] {
            assert_eq!(Producer::new(name), None, "{name}");
        }
    }

    #[test]
    fn stored_names_never_leave_the_directory() {
        assert!(Producer::from_file_name("A_^").is_some());
        for name in ["../", "a/b", "...", "\0\0\0", "~~~", "a b"] {
            assert_eq!(Producer::from_file_name(name), None, "{name}");
        }
        assert_eq!(Producer::from_bits(0), None);
        assert_eq!(Producer::from_bits(u32::from_le_bytes([b'.', b'.', b'/', 0])), None);
    }
}
