//! Values in the form Java gives the boxed values of a `Map` (`docs/format.md` §8.5, §8.6).

use crate::format::tokens::{self, put_number, put_stop_bit, put_text, put_type_prefix};
use crate::format::wire::{
    BYTES_LENGTH8, BYTES_LENGTH16, BYTES_LENGTH32, EVENT_NAME, FALSE, FLOAT64, INT32, INT64, NULL,
    SHORT_LENGTH_MAX, STRING_0, STRING_ANY, TRUE, U8_ARRAY,
};
use crate::{Error, Result};

pub use crate::format::tokens::{close_block, open_block};

/// A value without parts.
#[derive(Clone, Copy, Debug)]
pub enum Scalar<'a> {
    /// No value.
    Null,
    /// True or false.
    Bool(bool),
    /// An integer: 32 bits where it fits, else 64.
    Int(i64),
    /// A 64-bit float.
    Float(f64),
    /// A string.
    Text(&'a str),
    /// A byte array.
    Bytes(&'a [u8]),
}

/// Appends a map key.
pub fn put_key(out: &mut Vec<u8>, key: &str) -> Result<()> {
    out.push(EVENT_NAME);
    let mut latin = Vec::with_capacity(key.len());
    for character in key.chars() {
        let byte = u8::try_from(u32::from(character)).map_err(|_| {
            Error::Wire(format!("a key is made of Latin-1 characters: key={key:?}"))
        })?;
        latin.push(byte);
    }
    put_stop_bit(out, latin.len().cast_signed() as i64);
    out.extend_from_slice(&latin);
    Ok(())
}

/// Appends a value.
pub fn put_scalar(out: &mut Vec<u8>, value: Scalar<'_>) -> Result<()> {
    match value {
        Scalar::Null => out.push(NULL),
        Scalar::Bool(value) => out.push(if value { TRUE } else { FALSE }),
        Scalar::Int(value) => match i32::try_from(value) {
            Ok(value) => put_number(out, INT32, value.to_le_bytes()),
            Err(_) => put_number(out, INT64, value.to_le_bytes()),
        },
        Scalar::Float(value) => put_number(out, FLOAT64, value.to_le_bytes()),
        Scalar::Text(value) => put_text(out, value),
        Scalar::Bytes(value) => put_bytes(out, value)?,
    }
    Ok(())
}

/// Appends a typed byte array.
fn put_bytes(out: &mut Vec<u8>, value: &[u8]) -> Result<()> {
    put_type_prefix(out, "byte[]");
    let length = value.len() + 1;
    if let Ok(length) = u8::try_from(length) {
        put_number(out, BYTES_LENGTH8, length.to_le_bytes());
    } else if let Ok(length) = u16::try_from(length) {
        put_number(out, BYTES_LENGTH16, length.to_le_bytes());
    } else {
        let length = u32::try_from(length)
            .map_err(|_| Error::Wire(format!("a byte array too long: length={}", value.len())))?;
        put_number(out, BYTES_LENGTH32, length.to_le_bytes());
    }
    out.push(U8_ARRAY);
    out.extend_from_slice(value);
    Ok(())
}

/// The token in front of a string of `length` bytes, for strings that are not copied; how many of
/// its bytes count.
#[must_use]
pub fn text_head(length: usize) -> ([u8; 11], usize) {
    let mut head = [0; 11];
    if length <= SHORT_LENGTH_MAX {
        head[0] = STRING_0 | length.to_le_bytes()[0];
        return (head, 1);
    }
    let mut out = vec![STRING_ANY];
    put_stop_bit(&mut out, length.cast_signed() as i64);
    head[..out.len()].copy_from_slice(&out);
    (head, out.len())
}

/// A string's bytes as Java stores them; None where they are its UTF-8 already.
#[must_use]
pub fn stored_text(text: &[u8]) -> Option<Vec<u8>> {
    let has_wide = text.iter().any(|byte| *byte >= 0xF0);
    let text = std::str::from_utf8(text).ok().filter(|_| has_wide)?;
    Some(tokens::cesu8(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(value: Scalar<'_>) -> Vec<u8> {
        let mut out = Vec::new();
        put_scalar(&mut out, value).unwrap();
        out
    }

    #[test]
    fn values_are_those_of_javas_maps() {
        assert_eq!(written(Scalar::Int(5)), [0xA6, 5, 0, 0, 0]);
        assert_eq!(written(Scalar::Int(1 << 31)), [0xA7, 0, 0, 0, 0x80, 0, 0, 0, 0]);
        assert_eq!(written(Scalar::Null), [0xBB]);
        assert_eq!(written(Scalar::Text("hello")), *b"\xE5hello");
        assert_eq!(
            written(Scalar::Bytes(&[1, 2, 255])),
            *b"\xB6\x06byte[]\x80\x04\x8A\x01\x02\xFF"
        );
    }

    #[test]
    fn a_key_outside_latin_1_is_refused() {
        let mut out = Vec::new();
        put_key(&mut out, "\u{e9}").unwrap();
        assert_eq!(out, [0xB9, 1, 0xE9]);
        assert!(put_key(&mut out, "\u{20ac}").is_err());
    }
}
