//! Messages read back as values (`docs/format.md` §8). Types that need a registry are refused with
//! their name; nothing here makes more than the message's own bytes allow.

use super::DEPTH_MAX;
use crate::format::cursor::Cursor;
use crate::format::wire::{
    BYTES_LENGTH8, BYTES_LENGTH32, COMMENT, EVENT_NAME, FALSE, FIELD_NAME_ANY, FIELD_NAME0,
    FIELD_NUMBER, FLOAT_STOP_2, FLOAT_STOP_4, FLOAT_STOP_6, FLOAT32, FLOAT64, NULL,
    SHORT_LENGTH_MASK, STRING_0, STRING_ANY, TIME, TRUE, TYPE_PREFIX, U8_ARRAY, ZONED_DATE_TIME,
};
use crate::{Error, Result};

/// A value of a message.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// No value.
    Null,
    /// True or false.
    Bool(bool),
    /// An integer of any width.
    Int(i64),
    /// A float of any width.
    Float(f64),
    /// A string.
    Text(String),
    /// A byte array.
    Bytes(Vec<u8>),
    /// A list.
    List(Vec<Value>),
    /// Named values, in their order.
    Map(Vec<(String, Value)>),
}

/// The text of a message that is one string value, and not null.
pub fn text(message: &[u8]) -> Result<String> {
    let mut cursor = Cursor::new(message);
    let found = match cursor.peek() {
        Some(STRING_0..=0xFF | STRING_ANY) => {
            decode_text(cursor.string().ok_or_else(|| ends_early(&cursor, "a text"))?)?
        }
        code => return Err(unexpected("a text value", code, cursor.offset())),
    };
    end_of_message(cursor)?;
    Ok(found)
}

/// The named values of a message, in their order.
pub fn map(message: &[u8]) -> Result<Vec<(String, Value)>> {
    let mut cursor = Cursor::new(message);
    let entries = entries(&mut cursor, 0)?;
    end_of_message(cursor)?;
    Ok(entries)
}

fn entries(cursor: &mut Cursor<'_>, depth: usize) -> Result<Vec<(String, Value)>> {
    let mut found = Vec::new();
    while let Some(code) = cursor.peek() {
        if code == COMMENT {
            cursor.code();
            cursor.stop_bit_bytes().ok_or_else(|| ends_early(cursor, "a comment"))?;
            continue;
        }
        let name = name(cursor, code)?;
        found.push((name, value(cursor, depth)?));
    }
    Ok(found)
}

fn name(cursor: &mut Cursor<'_>, code: u8) -> Result<String> {
    match code {
        FIELD_NUMBER => {
            cursor.code();
            let number = cursor.stop_bit().ok_or_else(|| ends_early(cursor, "a field number"))?;
            Ok(number.to_string())
        }
        EVENT_NAME | FIELD_NAME_ANY | FIELD_NAME0..STRING_0 => {
            let name = cursor.name().ok_or_else(|| ends_early(cursor, "a name"))?;
            Ok(name.iter().map(|byte| char::from(*byte)).collect())
        }
        code => Err(unexpected("a name", Some(code), cursor.offset())),
    }
}

#[allow(clippy::cast_precision_loss)] // stop-bit floats are integers within 42 bits
fn value(cursor: &mut Cursor<'_>, depth: usize) -> Result<Value> {
    let at = cursor.offset();
    let early = || Error::Wire(format!("a value ends early: offset={at}"));
    let Some(code) = cursor.code() else { return Err(early()) };
    let scaled = |cursor: &mut Cursor<'_>, by: f64| {
        cursor.stop_bit().map(|value| Value::Float(value as f64 / by)).ok_or_else(early)
    };
    match code {
        NULL => Ok(Value::Null),
        FALSE => Ok(Value::Bool(false)),
        TRUE => Ok(Value::Bool(true)),
        FLOAT32 => {
            let bytes = cursor.array().ok_or_else(early)?;
            Ok(Value::Float(f64::from(f32::from_le_bytes(bytes))))
        }
        FLOAT64 => cursor.array().map(|b| Value::Float(f64::from_le_bytes(b))).ok_or_else(early),
        FLOAT_STOP_2 => scaled(cursor, 1e2),
        FLOAT_STOP_4 => scaled(cursor, 1e4),
        FLOAT_STOP_6 => scaled(cursor, 1e6),
        TIME..=ZONED_DATE_TIME | STRING_ANY => {
            decode_text(cursor.stop_bit_bytes().ok_or_else(early)?).map(Value::Text)
        }
        STRING_0..=0xFF => {
            let length = usize::from(code & SHORT_LENGTH_MASK);
            decode_text(cursor.take(length).ok_or_else(early)?).map(Value::Text)
        }
        TYPE_PREFIX => typed(cursor, depth, at),
        BYTES_LENGTH8..=BYTES_LENGTH32 => {
            let block = cursor.block_after(code).ok_or_else(early)?;
            nested(block, depth + 1, at)
        }
        code => cursor
            .integer_after(code)
            .map(Value::Int)
            .ok_or_else(|| unexpected("a value", Some(code), at)),
    }
}

/// A value behind a type prefix: those of the standard containers, the prefix left out.
fn typed(cursor: &mut Cursor<'_>, depth: usize, at: usize) -> Result<Value> {
    let early = || Error::Wire(format!("a type ends early: offset={at}"));
    let name = String::from_utf8_lossy(cursor.stop_bit_bytes().ok_or_else(early)?);
    match name.as_ref() {
        "byte[]" | "!omap" | "!oset" => value(cursor, depth),
        _ => Err(Error::Wire(format!("a type that is not known here: type={name} offset={at}"))),
    }
}

/// The content of a length-prefixed block: what it is shows in its first byte.
fn nested(mut block: Cursor<'_>, depth: usize, at: usize) -> Result<Value> {
    if depth > DEPTH_MAX {
        return Err(Error::Wire(format!("nested too deep: depth={depth} limit={DEPTH_MAX}")));
    }
    match block.peek() {
        Some(U8_ARRAY) => {
            block.code();
            Ok(Value::Bytes(block.rest().to_vec()))
        }
        Some(EVENT_NAME | FIELD_NAME_ANY | FIELD_NUMBER | FIELD_NAME0..STRING_0) => {
            entries(&mut block, depth).map(Value::Map)
        }
        _ => {
            let mut items = Vec::new();
            while block.peek().is_some() {
                items.push(value(&mut block, depth).map_err(|error| match error {
                    Error::Wire(what) => Error::Wire(format!("{what} in the block at {at}")),
                    other => other,
                })?);
            }
            Ok(Value::List(items))
        }
    }
}

/// UTF-8 with surrogates encoded as three bytes each (CESU-8), and plain UTF-8 too.
fn decode_text(bytes: &[u8]) -> Result<String> {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return Ok(text.to_owned());
    }
    let bad = || Error::Wire(format!("not a text: bytes={:02x?}", &bytes[..bytes.len().min(32)]));
    let mut units = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some(lead) = rest.first() {
        let length = match lead {
            0..0x80 => 1,
            0xC0..0xE0 => 2,
            0xE0..0xF0 => 3,
            _ => 4,
        };
        let (character, after) = rest.split_at_checked(length).ok_or_else(bad)?;
        match character {
            [0xED, second @ 0xA0..=0xBF, third @ 0x80..=0xBF] => {
                let (second, third) = (u16::from(*second), u16::from(*third));
                units.push(0xD000 | ((second & 0x3F) << 6) | (third & 0x3F));
            }
            other => units.extend(std::str::from_utf8(other).map_err(|_| bad())?.encode_utf16()),
        }
        rest = after;
    }
    String::from_utf16(&units).map_err(|_| bad())
}

fn end_of_message(mut cursor: Cursor<'_>) -> Result<()> {
    match cursor.peek() {
        None => Ok(()),
        code => Err(unexpected("the end of the message", code, cursor.offset())),
    }
}

fn unexpected(expected: &str, found: Option<u8>, offset: usize) -> Error {
    let found = found.map_or("the end".to_owned(), |code| format!("{code:#04x}"));
    Error::Wire(format!("expected {expected}: found={found} offset={offset}"))
}

fn ends_early(cursor: &Cursor<'_>, what: &str) -> Error {
    Error::Wire(format!("{what} ends early: offset={}", cursor.offset()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::writer::{self, Scalar};

    #[test]
    fn a_map_reads_back_what_was_written() {
        let mut out = Vec::new();
        writer::put_key(&mut out, "n").unwrap();
        writer::put_scalar(&mut out, Scalar::Int(-7)).unwrap();
        writer::put_key(&mut out, "list").unwrap();
        let block = writer::open_block(&mut out);
        writer::put_scalar(&mut out, Scalar::Text("\u{1F600}")).unwrap();
        writer::put_scalar(&mut out, Scalar::Bytes(b"xy")).unwrap();
        writer::close_block(&mut out, block);
        let list = vec![Value::Text("\u{1F600}".into()), Value::Bytes(b"xy".to_vec())];
        let expected = vec![("n".into(), Value::Int(-7)), ("list".into(), Value::List(list))];
        assert_eq!(map(&out).unwrap(), expected);
    }

    #[test]
    fn what_is_no_text_is_refused_with_its_code() {
        let error = text(&[0xA1, 1]).unwrap_err().to_string();
        assert_eq!(error, "expected a text value: found=0xa1 offset=0");
        assert!(text(&[0xE5, b'x']).is_err());
    }

    #[test]
    fn nesting_has_a_bound() {
        let mut message = vec![0xBB];
        for _ in 0..DEPTH_MAX + 2 {
            let mut outer = Vec::new();
            let block = writer::open_block(&mut outer);
            outer.extend_from_slice(&message);
            writer::close_block(&mut outer, block);
            message = outer;
        }
        let mut named = Vec::new();
        writer::put_key(&mut named, "n").unwrap();
        named.extend_from_slice(&message);
        assert!(map(&named).unwrap_err().to_string().contains("nested too deep"));
    }
}
