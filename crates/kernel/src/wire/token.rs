//! A message, token by token (`docs/format.md` §8.1): every code of the table, checked against the
//! bytes that are there. Nothing is copied, and nothing is believed before it is bounded.

use std::borrow::Cow;

use super::DEPTH_MAX;
use super::codes::{
    BYTES_LENGTH8, BYTES_LENGTH32, COMMENT, EVENT_NAME, EVENT_OBJECT, FALSE, FIELD_NAME_ANY,
    FIELD_NAME0, FIELD_NUMBER, FLOAT_STOP_2, FLOAT_STOP_4, FLOAT_STOP_6, FLOAT32, FLOAT64, HINT,
    HISTORY_MESSAGE, I64_ARRAY, INT64_0X, NULL, SET_LOW_INT16, SHORT_LENGTH_MASK, STRING_0,
    STRING_ANY, TIME, TRUE, TYPE_LITERAL, TYPE_PREFIX, U8_ARRAY, UINT8, UUID, ZONED_DATE_TIME,
};
use super::cursor::Cursor;
use super::fault::{Fault, Result};

/// The names of the types of maps that need no class.
pub const MAPS: [&[u8]; 3] = [b"!map", b"!omap", b"!seqmap"];

/// The type before an empty map, which nothing else tells from an empty list.
pub const EMPTY_MAP: &str = "!omap";

/// A value, or what stands in front of one.
#[derive(Clone, Copy, Debug)]
pub enum Token<'a> {
    /// No value.
    Null,
    /// True or false.
    Bool(bool),
    /// An integer, and the code that tells its width.
    Int(i64, u8),
    /// A float of 32 bits.
    Float32(f32),
    /// A float of 64 bits, or a stop-bit one.
    Float64(f64),
    /// A string, encoded.
    Text(&'a [u8]),
    /// A date, a time or both, as text, and the code that tells which.
    Temporal(&'a [u8], u8),
    /// A UUID: its high half first.
    Uuid(u64, u64),
    /// The name of a type, as a value.
    TypeLiteral(&'a [u8]),
    /// The name of the following value's type.
    TypePrefix(&'a [u8]),
    /// A block: a map, a list, a blob, history; see [`shape`].
    Block(Cursor<'a>),
    /// An array of 64-bit integers, as many as are used, and how many there is room for.
    Longs {
        /// The integers in use, little-endian.
        used: &'a [u8],
        /// Those there is room for beyond.
        spare: &'a [u8],
    },
}

/// The name in front of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Name<'a> {
    /// A field name.
    Field(&'a [u8]),
    /// An event name, or the key of a map.
    Event(&'a [u8]),
    /// A numeric field name, or a method id.
    Number(i64),
    /// A key that is a value of its own follows.
    Object,
}

/// What the content of a block is, by its first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Nothing: an empty list, map or object.
    Empty,
    /// Names and values.
    Map,
    /// Values.
    List,
    /// The bytes behind the first.
    Blob,
    /// The history of a message, packed.
    History,
    /// An array of 64-bit integers.
    Longs,
}

/// Tells what the content of a block is.
#[must_use]
pub fn shape(block: &Cursor<'_>) -> Shape {
    match block.rest().first() {
        None => Shape::Empty,
        Some(&U8_ARRAY) => Shape::Blob,
        Some(&HISTORY_MESSAGE) => Shape::History,
        Some(&I64_ARRAY) => Shape::Longs,
        _ => match block.clone().peek() {
            None => Shape::Empty,
            Some(COMMENT) => Shape::Map,
            Some(code) if is_name(code) => Shape::Map,
            Some(_) => Shape::List,
        },
    }
}

/// Whether a code begins a name.
#[must_use]
pub const fn is_name(code: u8) -> bool {
    matches!(
        code,
        FIELD_NAME_ANY | EVENT_NAME | FIELD_NUMBER | EVENT_OBJECT | FIELD_NAME0..STRING_0
    )
}

/// The next value's token; padding in front of it is skipped.
#[inline]
pub fn value<'a>(cursor: &mut Cursor<'a>) -> Result<Token<'a>> {
    let Some(code) = cursor.peek() else {
        return Err(Fault::unexpected("a value", None, cursor.offset()));
    };
    let at = cursor.offset();
    cursor.code();
    token(cursor, code).ok_or_else(|| refused(code, at))
}

#[inline]
#[allow(clippy::cast_precision_loss)] // stop-bit floats are integers within 42 bits
fn token<'a>(cursor: &mut Cursor<'a>, code: u8) -> Option<Token<'a>> {
    Some(match code {
        STRING_0..=0xFF => Token::Text(cursor.take(usize::from(code & SHORT_LENGTH_MASK))?),
        0..=0x7F | UINT8..=SET_LOW_INT16 | INT64_0X => {
            Token::Int(cursor.integer_after(code)?, code)
        }
        FLOAT64 => Token::Float64(f64::from_le_bytes(cursor.array()?)),
        FLOAT32 => Token::Float32(f32::from_le_bytes(cursor.array()?)),
        FLOAT_STOP_2 => Token::Float64(cursor.stop_bit()? as f64 / 1e2),
        FLOAT_STOP_4 => Token::Float64(cursor.stop_bit()? as f64 / 1e4),
        FLOAT_STOP_6 => Token::Float64(cursor.stop_bit()? as f64 / 1e6),
        BYTES_LENGTH8..=BYTES_LENGTH32 => Token::Block(cursor.block_after(code)?),
        STRING_ANY => match cursor.stop_bit()? {
            -1 => Token::Null,
            length => Token::Text(cursor.take(usize::try_from(length).ok()?)?),
        },
        FALSE => Token::Bool(false),
        TRUE => Token::Bool(true),
        NULL => Token::Null,
        TYPE_PREFIX => Token::TypePrefix(cursor.stop_bit_bytes()?),
        TIME..=ZONED_DATE_TIME => Token::Temporal(cursor.stop_bit_bytes()?, code),
        UUID => {
            let high = u64::from_le_bytes(cursor.array()?);
            Token::Uuid(high, u64::from_le_bytes(cursor.array()?))
        }
        TYPE_LITERAL => Token::TypeLiteral(cursor.stop_bit_bytes()?),
        I64_ARRAY => longs(cursor)?,
        _ => return None,
    })
}

/// Capacity, how many are used, and as many integers as the capacity says.
fn longs<'a>(cursor: &mut Cursor<'a>) -> Option<Token<'a>> {
    let capacity = usize::try_from(i64::from_le_bytes(cursor.array()?)).ok()?;
    let used = usize::try_from(i64::from_le_bytes(cursor.array()?)).ok()?;
    let longs = cursor.take(capacity.checked_mul(8)?)?;
    let (used, spare) = longs.split_at_checked(used.checked_mul(8)?)?;
    Some(Token::Longs { used, spare })
}

/// Why a code gave no token: the bytes end early, or it begins no value.
#[cold]
fn refused(code: u8, at: usize) -> Fault {
    match code {
        0..=0x7F
        | BYTES_LENGTH8..=BYTES_LENGTH32
        | I64_ARRAY
        | FLOAT32..=FLOAT_STOP_6
        | UUID..=SET_LOW_INT16
        | INT64_0X..=TYPE_PREFIX
        | STRING_ANY
        | NULL
        | TYPE_LITERAL
        | STRING_0..=0xFF
            if code != 0x93 && code != 0x95 =>
        {
            Fault::early("a value ends early, or its length is none", at)
                .with("code", format_args!("{code:#04x}"))
        }
        _ => Fault::unexpected("a value", Some(code), at),
    }
}

/// The next name; None at the end. Comments in front of it are skipped.
#[inline]
pub fn name<'a>(cursor: &mut Cursor<'a>) -> Result<Option<Name<'a>>> {
    loop {
        let Some(code) = cursor.peek() else { return Ok(None) };
        let at = cursor.offset();
        cursor.code();
        let early = || Fault::early("a name ends early", at);
        return Ok(Some(match code {
            FIELD_NAME0..STRING_0 => {
                let length = usize::from(code & SHORT_LENGTH_MASK);
                Name::Field(cursor.take(length).ok_or_else(early)?)
            }
            EVENT_NAME => Name::Event(cursor.stop_bit_bytes().ok_or_else(early)?),
            FIELD_NUMBER => Name::Number(cursor.stop_bit().ok_or_else(early)?),
            FIELD_NAME_ANY => Name::Field(cursor.stop_bit_bytes().ok_or_else(early)?),
            EVENT_OBJECT => Name::Object,
            COMMENT => {
                cursor.stop_bit_bytes().ok_or_else(early)?;
                continue;
            }
            HINT => {
                cursor.stop_bit().ok_or_else(early)?;
                continue;
            }
            code => return Err(Fault::unexpected("a name", Some(code), at)),
        }));
    }
}

/// Steps over one value, whatever it is.
pub fn skip(cursor: &mut Cursor<'_>) -> Result<()> {
    while let Token::TypePrefix(_) = value(cursor)? {}
    Ok(())
}

/// The bytes of a blob, if the block is one.
#[must_use]
pub fn blob<'a>(block: &Cursor<'a>) -> Option<&'a [u8]> {
    block.rest().split_first().filter(|(first, _)| **first == U8_ARRAY).map(|(_, rest)| rest)
}

/// One level deeper, or an error where that is too deep.
pub fn deeper(depth: usize, at: usize) -> Result<usize> {
    if depth < DEPTH_MAX {
        return Ok(depth + 1);
    }
    Err(Fault::new("nested too deep").with("limit", DEPTH_MAX).with("offset", at))
}

/// Nothing may follow but padding.
pub fn end(mut cursor: Cursor<'_>) -> Result<()> {
    match cursor.peek() {
        None => Ok(()),
        code => Err(Fault::unexpected("the end of the message", code, cursor.offset())),
    }
}

/// A string's text: UTF-8, with surrogates encoded as three bytes each (CESU-8) or as one character.
pub fn text(bytes: &[u8], at: usize) -> Result<Cow<'_, str>> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(Cow::Borrowed(text)),
        Err(_) => surrogates(bytes)
            .and_then(|units| String::from_utf16(&units).ok())
            .map(Cow::Owned)
            .ok_or_else(|| {
                Fault::new("not a text")
                    .with("offset", at)
                    .with("found", format_args!("{:02x?}", &bytes[..bytes.len().min(32)]))
                    .with("expected", "UTF-8")
            }),
    }
}

/// The UTF-16 units of CESU-8.
fn surrogates(bytes: &[u8]) -> Option<Vec<u16>> {
    let mut units = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some(lead) = rest.first() {
        let length = match lead {
            0..0x80 => 1,
            0xC0..0xE0 => 2,
            0xE0..0xF0 => 3,
            _ => 4,
        };
        let (character, after) = rest.split_at_checked(length)?;
        match character {
            [0xED, second @ 0xA0..=0xBF, third @ 0x80..=0xBF] => {
                let (second, third) = (u16::from(*second), u16::from(*third));
                units.push(0xD000 | ((second & 0x3F) << 6) | (third & 0x3F));
            }
            other => units.extend(std::str::from_utf8(other).ok()?.encode_utf16()),
        }
        rest = after;
    }
    Some(units)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(bytes: &[u8]) -> Result<Token<'_>> {
        value(&mut Cursor::new(bytes))
    }

    #[test]
    fn every_code_is_a_token_or_a_refusal() {
        for code in 0..=0xFF {
            let mut bytes = vec![0; 40];
            bytes[0] = code;
            let _ = one(&bytes);
            let cut = one(&bytes[..1]).map(|_| ());
            if let Err(fault) = cut {
                assert!(fault.to_string().contains("offset="), "{fault}");
            }
        }
    }

    #[test]
    fn a_refusal_names_the_code_and_what_was_expected() {
        let fault = one(&[0x8B]).unwrap_err().inside("b").inside("a");
        assert_eq!(
            fault.in_message(16, "x.cq4", 32).to_string(),
            "cannot read the message: field=a.b expected=a value found=0x8b (U16_ARRAY) offset=0 \
             index=0x10 file=x.cq4 position=0x20"
        );
    }

    #[test]
    fn lengths_are_bounded_by_the_bytes() {
        let mut longs = vec![0x8D];
        longs.extend_from_slice(&[0xFF; 7]);
        longs.push(0x1F);
        longs.extend_from_slice(&[0; 16]);
        for bytes in [&[0x82, 0xFF, 0xFF, 0xFF, 0x7F, 1][..], &[0xB8, 0xFF, 0x7F], &longs] {
            assert!(one(bytes).is_err(), "{bytes:02x?}");
        }
    }
}
