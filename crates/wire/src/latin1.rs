//! Names as Java writes them (`docs/format.md` §8.4): Latin-1, one byte per character.

use std::borrow::Cow;

/// Decodes a name.
#[inline]
#[must_use]
pub fn decode(bytes: &[u8]) -> Cow<'_, str> {
    if bytes.is_ascii() {
        String::from_utf8_lossy(bytes)
    } else {
        Cow::Owned(bytes.iter().map(|byte| char::from(*byte)).collect())
    }
}

/// Encodes a name; None if it has characters above U+00FF.
#[inline]
#[must_use]
pub fn encode(text: &str) -> Option<Cow<'_, [u8]>> {
    if text.is_ascii() {
        return Some(Cow::Borrowed(text.as_bytes()));
    }
    let bytes = text.chars().map(|character| u8::try_from(u32::from(character)).ok());
    bytes.collect::<Option<_>>().map(Cow::Owned)
}

/// Compares two names case-insensitively, by the rules of Java's `Character.toLowerCase`.
#[must_use]
pub fn eq_ignore_case(one: &[u8], other: &[u8]) -> bool {
    let same = |(a, b): (&u8, &u8)| lower(*a) == lower(*b);
    one.len() == other.len() && one.iter().zip(other).all(same)
}

const fn lower(byte: u8) -> u8 {
    match byte {
        b'A'..=b'Z' | 0xC0..=0xD6 | 0xD8..=0xDE => byte + 0x20,
        _ => byte,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_character_is_a_byte() {
        assert_eq!(encode("caf\u{e9}").unwrap().as_ref(), b"caf\xe9");
        assert_eq!(decode(b"caf\xe9"), "caf\u{e9}");
        assert_eq!(encode("\u{20ac}"), None);
    }

    #[test]
    fn case_is_that_of_java() {
        for byte in 0..=255 {
            let lowered = char::from(byte).to_lowercase().next().unwrap();
            assert_eq!(char::from(lower(byte)), lowered, "{byte:#x}");
        }
        assert!(eq_ignore_case(b"\xc9t\xc9", b"\xe9T\xe9"));
        assert!(!eq_ignore_case(b"\xd7", b"\xf7"));
    }
}
