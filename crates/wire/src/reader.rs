//! Reading BinaryWire (`docs/format.md` §8): bytes, names and values. Every code is checked against
//! the remaining bytes, nothing is copied, and every length is bounded before use.

use std::borrow::Cow;

use crate::DEPTH_MAX;
use crate::codes::{
    BYTES_LENGTH8, BYTES_LENGTH16, BYTES_LENGTH32, COMMENT, EVENT_NAME, EVENT_OBJECT, FALSE,
    FIELD_NAME_ANY, FIELD_NAME0, FIELD_NUMBER, FLOAT_STOP_2, FLOAT_STOP_4, FLOAT_STOP_6, FLOAT32,
    FLOAT64, HINT, HISTORY_MESSAGE, I64_ARRAY, INT8, INT16, INT32, INT64, INT64_0X, NULL, PADDING,
    PADDING32, SET_LOW_INT8, SET_LOW_INT16, SHORT_LENGTH_MASK, STRING_0, STRING_ANY, TIME, TRUE,
    TYPE_LITERAL, TYPE_PREFIX, U8_ARRAY, UINT8, UINT16, UINT32, UUID, ZONED_DATE_TIME,
};
use crate::error::{Result, WireError};
use crate::out::room;

/// The types of maps that need no Java class.
pub const MAPS: [&[u8]; 3] = [b"!map", b"!omap", b"!seqmap"];

/// The type that precedes an empty map; without it, the map would read as an empty list.
pub const EMPTY_MAP: &str = "!omap";

/// A value, or a prefix of one.
#[derive(Clone, Copy, Debug)]
pub enum Token<'a> {
    Null,
    Bool(bool),
    /// An integer, and the code that gives its width.
    Int(i64, u8),
    Float32(f32),
    /// A 64-bit float, also in stop-bit form.
    Float64(f64),
    /// The encoded bytes of a string.
    Text(&'a [u8]),
    /// A date, a time or both as text, and the code that says which.
    Temporal(&'a [u8], u8),
    /// A UUID, high half first.
    Uuid(u64, u64),
    /// A type name as a value.
    TypeLiteral(&'a [u8]),
    /// The type name of the next value.
    TypePrefix(&'a [u8]),
    /// A block: a map, list, blob or history; see [`Reader::shape`].
    Block(Reader<'a>),
    /// An array of 64-bit integers, of which the first are in use.
    Longs {
        /// The integers in use, little-endian.
        used: &'a [u8],
        /// The unused rest of the capacity.
        spare: &'a [u8],
    },
}

/// The name of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Name<'a> {
    Field(&'a [u8]),
    /// An event name or a map key.
    Event(&'a [u8]),
    /// A numeric field name or a method id.
    Number(i64),
    /// A complex key, encoded as a value, follows.
    Object,
}

/// The content of a block, according to its first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// An empty list, map or object.
    Empty,
    Map,
    List,
    /// Bytes, after the first.
    Blob,
    /// The packed history of a message.
    History,
    Longs,
}

/// Whether a name starts with this code.
#[must_use]
pub const fn is_name(code: u8) -> bool {
    matches!(
        code,
        FIELD_NAME_ANY | EVENT_NAME | FIELD_NUMBER | EVENT_OBJECT | FIELD_NAME0..STRING_0
    )
}

/// A position in the bytes of one document. Methods that return an `Option` return None if the
/// bytes end early or are of another kind. No access goes beyond the bytes.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    /// The offset of `bytes` in the document.
    base: usize,
}

/// Bytes and codes.
impl<'a> Reader<'a> {
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, base: 0 }
    }

    /// The offset of the next byte in the document.
    #[must_use]
    pub const fn offset(&self) -> usize {
        self.base + self.at
    }

    /// A reader at an earlier offset.
    #[must_use]
    pub const fn back_to(&self, offset: usize) -> Self {
        let at = offset.saturating_sub(self.base);
        Self { bytes: self.bytes, at: if at < self.at { at } else { self.at }, base: self.base }
    }

    /// The next code, without consuming it; skips padding. None at the end.
    #[inline]
    pub fn peek(&mut self) -> Option<u8> {
        loop {
            match *self.bytes.get(self.at)? {
                PADDING => self.at += 1,
                PADDING32 => {
                    self.at += 1;
                    let count = self.u32()?;
                    self.take(count as usize)?;
                }
                code => return Some(code),
            }
        }
    }

    /// Consumes the next code; skips padding.
    #[inline]
    pub fn code(&mut self) -> Option<u8> {
        let code = self.peek()?;
        self.at += 1;
        Some(code)
    }

    #[inline]
    pub fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let end = self.at.checked_add(count)?;
        let found = self.bytes.get(self.at..end)?;
        self.at = end;
        Some(found)
    }

    /// Consumes these bytes if they are next.
    #[inline]
    pub fn take_if(&mut self, expected: &[u8]) -> bool {
        let found = self.rest().starts_with(expected);
        if found {
            self.at += expected.len();
        }
        found
    }

    #[inline]
    pub fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    pub fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    /// The next stop-bit integer (`docs/format.md` §8.2).
    #[inline]
    pub fn stop_bit(&mut self) -> Option<i64> {
        let (mut value, mut shift) = (0_u64, 0);
        for (place, &byte) in self.rest().iter().enumerate() {
            if byte < 0x80 {
                self.at += place + 1;
            }
            if byte == 0 && shift > 0 {
                return Some(!value.cast_signed());
            }
            if shift > 63 {
                return None;
            }
            value |= u64::from(byte & 0x7F) << shift;
            shift += 7;
            if byte < 0x80 {
                return i64::try_from(value).ok();
            }
        }
        None
    }

    /// The bytes after a stop-bit length.
    pub fn stop_bit_bytes(&mut self) -> Option<&'a [u8]> {
        let count = usize::try_from(self.stop_bit()?).ok()?;
        self.take(count)
    }

    /// The remaining bytes.
    #[must_use]
    pub fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }
}

/// Names and values, with errors that say what is wrong.
impl<'a> Reader<'a> {
    /// The token of the next value; skips padding.
    #[inline]
    pub fn value(&mut self) -> Result<Token<'a>> {
        let Some(code) = self.peek() else {
            return Err(WireError::unexpected("a value", None, self.offset()));
        };
        let at = self.offset();
        self.code();
        self.token(code).ok_or_else(|| refused(code, at))
    }

    #[inline]
    fn token(&mut self, code: u8) -> Option<Token<'a>> {
        Some(match code {
            STRING_0..=0xFF => Token::Text(self.take(usize::from(code & SHORT_LENGTH_MASK))?),
            0..=0x7F | UINT8..=SET_LOW_INT16 | INT64_0X => {
                Token::Int(self.integer_after(code)?, code)
            }
            FLOAT32 => Token::Float32(f32::from_le_bytes(self.array()?)),
            FLOAT64 | FLOAT_STOP_2 | FLOAT_STOP_4 | FLOAT_STOP_6 => {
                Token::Float64(self.float_after(code)?)
            }
            BYTES_LENGTH8..=BYTES_LENGTH32 => Token::Block(self.block_after(code)?),
            STRING_ANY => match self.stop_bit()? {
                -1 => Token::Null,
                length => Token::Text(self.take(usize::try_from(length).ok()?)?),
            },
            FALSE => Token::Bool(false),
            TRUE => Token::Bool(true),
            NULL => Token::Null,
            TYPE_PREFIX => Token::TypePrefix(self.stop_bit_bytes()?),
            TIME..=ZONED_DATE_TIME => Token::Temporal(self.stop_bit_bytes()?, code),
            UUID => {
                let high = u64::from_le_bytes(self.array()?);
                Token::Uuid(high, u64::from_le_bytes(self.array()?))
            }
            TYPE_LITERAL => Token::TypeLiteral(self.stop_bit_bytes()?),
            I64_ARRAY => self.longs()?,
            _ => return None,
        })
    }

    /// An array: capacity, used count, and as many integers as its capacity.
    fn longs(&mut self) -> Option<Token<'a>> {
        let capacity = usize::try_from(i64::from_le_bytes(self.array()?)).ok()?;
        let used = usize::try_from(i64::from_le_bytes(self.array()?)).ok()?;
        let longs = self.take(capacity.checked_mul(8)?)?;
        let (used, spare) = longs.split_at_checked(used.checked_mul(8)?)?;
        Some(Token::Longs { used, spare })
    }

    /// The integer after `code`.
    #[inline]
    pub fn integer_after(&mut self, code: u8) -> Option<i64> {
        match code {
            0..=0x7F => Some(i64::from(code)),
            UINT8 | SET_LOW_INT8 => self.array().map(|[byte]| i64::from(byte)),
            UINT16 | SET_LOW_INT16 => self.array().map(|b| i64::from(u16::from_le_bytes(b))),
            UINT32 => self.u32().map(i64::from),
            INT8 => self.array().map(|b| i64::from(i8::from_le_bytes(b))),
            INT16 => self.array().map(|b| i64::from(i16::from_le_bytes(b))),
            INT32 => self.array().map(|b| i64::from(i32::from_le_bytes(b))),
            INT64 | INT64_0X => self.array().map(i64::from_le_bytes),
            _ => None,
        }
    }

    /// The float after `code`.
    #[inline]
    #[allow(clippy::cast_precision_loss)] // stop-bit floats are integers within 42 bits
    fn float_after(&mut self, code: u8) -> Option<f64> {
        Some(match code {
            FLOAT64 => f64::from_le_bytes(self.array()?),
            FLOAT32 => f64::from(f32::from_le_bytes(self.array()?)),
            FLOAT_STOP_2 => self.stop_bit()? as f64 / 1e2,
            FLOAT_STOP_4 => self.stop_bit()? as f64 / 1e4,
            FLOAT_STOP_6 => self.stop_bit()? as f64 / 1e6,
            _ => return None,
        })
    }

    /// The block after `code`.
    #[inline]
    pub fn block_after(&mut self, code: u8) -> Option<Self> {
        let count = match code {
            BYTES_LENGTH8 => self.array().map(|[byte]| usize::from(byte))?,
            BYTES_LENGTH16 => self.array().map(|b| usize::from(u16::from_le_bytes(b)))?,
            BYTES_LENGTH32 => self.u32()? as usize,
            _ => return None,
        };
        let base = self.offset();
        self.take(count).map(|bytes| Self { bytes, at: 0, base })
    }

    /// The next name; None at the end. Skips comments before it.
    #[inline]
    pub fn name(&mut self) -> Result<Option<Name<'a>>> {
        loop {
            let Some(code) = self.peek() else { return Ok(None) };
            let at = self.offset();
            self.code();
            let early = || WireError::early("a name ends early", at);
            return Ok(Some(match code {
                FIELD_NAME0..STRING_0 => {
                    let length = usize::from(code & SHORT_LENGTH_MASK);
                    Name::Field(self.take(length).ok_or_else(early)?)
                }
                EVENT_NAME => Name::Event(self.stop_bit_bytes().ok_or_else(early)?),
                FIELD_NUMBER => Name::Number(self.stop_bit().ok_or_else(early)?),
                FIELD_NAME_ANY => Name::Field(self.stop_bit_bytes().ok_or_else(early)?),
                EVENT_OBJECT => Name::Object,
                COMMENT => {
                    self.stop_bit_bytes().ok_or_else(early)?;
                    continue;
                }
                HINT => {
                    self.stop_bit().ok_or_else(early)?;
                    continue;
                }
                code => return Err(WireError::unexpected("a name", Some(code), at)),
            }));
        }
    }

    /// Skips one value of any kind.
    pub fn skip(&mut self) -> Result<()> {
        while let Token::TypePrefix(_) = self.value()? {}
        Ok(())
    }

    /// Fails unless only padding remains.
    pub fn end(mut self) -> Result<()> {
        match self.peek() {
            None => Ok(()),
            code => Err(WireError::unexpected("the end of the message", code, self.offset())),
        }
    }
}

/// Names and values of an expected kind: None, without moving, if the next token is another.
impl<'a> Reader<'a> {
    /// A field or event name.
    pub fn name_if(&mut self) -> Option<&'a [u8]> {
        self.if_next(|reader| match reader.peek() {
            Some(code) if is_name(code) => match reader.name() {
                Ok(Some(Name::Field(name) | Name::Event(name))) => Some(name),
                _ => None,
            },
            _ => None,
        })
    }

    /// An integer of any width.
    #[inline]
    pub fn integer_if(&mut self) -> Option<i64> {
        self.if_next(|reader| reader.code().and_then(|code| reader.integer_after(code)))
    }

    /// A float in any form, except those of integers.
    #[inline]
    pub fn float_if(&mut self) -> Option<f64> {
        self.if_next(|reader| reader.code().and_then(|code| reader.float_after(code)))
    }

    /// An integer, also as the float that is the shortest form of some integers beyond 32 bits.
    pub fn whole_if(&mut self) -> Option<i64> {
        self.integer_if().or_else(|| {
            self.if_next(|reader| match reader.code()? {
                FLOAT32 => whole(f32::from_le_bytes(reader.array()?).into()),
                FLOAT64 => whole(f64::from_le_bytes(reader.array()?)),
                _ => None,
            })
        })
    }

    /// A string of any length.
    #[inline]
    pub fn string_if(&mut self) -> Option<&'a [u8]> {
        self.if_next(|reader| match reader.code()? {
            TIME..=ZONED_DATE_TIME | STRING_ANY => reader.stop_bit_bytes(),
            code @ STRING_0..=0xFF => reader.take(usize::from(code & SHORT_LENGTH_MASK)),
            _ => None,
        })
    }

    /// A type prefix.
    pub fn type_prefix_if(&mut self) -> Option<&'a [u8]> {
        self.if_next(|reader| match reader.code() {
            Some(TYPE_PREFIX) => reader.stop_bit_bytes(),
            _ => None,
        })
    }

    /// The content of a length-prefixed block.
    #[inline]
    pub fn block_if(&mut self) -> Option<Self> {
        self.if_next(|reader| reader.code().and_then(|code| reader.block_after(code)))
    }

    #[inline]
    fn if_next<T>(&mut self, take: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        let mut ahead = *self;
        let found = take(&mut ahead);
        if found.is_some() {
            *self = ahead;
        }
        found
    }
}

/// The integer that a float equals.
#[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss, clippy::float_cmp)]
fn whole(value: f64) -> Option<i64> {
    let integer = value as i64;
    (integer as f64 == value).then_some(integer)
}

/// The content of a block.
impl<'a> Reader<'a> {
    /// The kind of content.
    #[must_use]
    pub fn shape(&self) -> Shape {
        match self.rest().first() {
            None => Shape::Empty,
            Some(&code) if is_name(code) => Shape::Map,
            Some(&U8_ARRAY) => Shape::Blob,
            Some(&HISTORY_MESSAGE) => Shape::History,
            Some(&I64_ARRAY) => Shape::Longs,
            _ => match { *self }.peek() {
                None => Shape::Empty,
                Some(COMMENT) => Shape::Map,
                Some(code) if is_name(code) => Shape::Map,
                Some(_) => Shape::List,
            },
        }
    }

    /// The bytes of a blob, or None.
    #[must_use]
    pub fn blob(&self) -> Option<&'a [u8]> {
        self.rest().split_first().filter(|(first, _)| **first == U8_ARRAY).map(|(_, rest)| rest)
    }
}

/// The error for a code that gave no token: the bytes end early, or no value has this code.
#[cold]
fn refused(code: u8, at: usize) -> WireError {
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
            WireError::early("a value ends early, or its length is invalid", at)
                .with("code", format_args!("{code:#04x}"))
        }
        _ => WireError::unexpected("a value", Some(code), at),
    }
}

/// One level deeper; an error beyond [`DEPTH_MAX`].
pub fn deeper(depth: usize, at: usize) -> Result<usize> {
    if depth < DEPTH_MAX {
        return Ok(depth + 1);
    }
    Err(WireError::new("nested too deep").with("limit", DEPTH_MAX).with("offset", at))
}

/// Decodes a string: UTF-8, with surrogates as three bytes each (CESU-8) or as one character.
pub fn text(bytes: &[u8], at: usize) -> Result<Cow<'_, str>> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(Cow::Borrowed(text)),
        Err(_) => of_surrogates(bytes, at),
    }
}

#[cold]
fn of_surrogates(bytes: &[u8], at: usize) -> Result<Cow<'_, str>> {
    room(bytes.len().saturating_mul(4))?; // two bytes for a unit, and as many as there are
    let text = surrogates(bytes).and_then(|units| String::from_utf16(&units).ok());
    text.map(Cow::Owned).ok_or_else(|| {
        WireError::new("not a text")
            .with("offset", at)
            .with("found", format_args!("{:02x?}", &bytes[..bytes.len().min(32)]))
            .with("expected", "UTF-8")
    })
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
    use crate::out::Out;
    use crate::writer;

    fn one(bytes: &[u8]) -> Result<Token<'_>> {
        Reader::new(bytes).value()
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

    #[test]
    fn a_stop_bit_without_an_end_is_refused() {
        assert_eq!(Reader::new(&[0x80; 20]).stop_bit(), None);
        assert_eq!(Reader::new(&[0x80; 9]).stop_bit(), None);
        assert_eq!(Reader::new(&[]).stop_bit(), None);
    }

    #[test]
    fn a_stop_bit_ends_where_its_last_byte_does() {
        for number in [0, 1, 0x7F, 0x80, 10_001, 1 << 42, i64::MAX, -1, -2, -0x81, i64::MIN] {
            let mut out = Out::new();
            writer::put_stop_bit(&mut out, number);
            out.push(7);
            let mut cursor = Reader::new(&out);
            assert_eq!(cursor.stop_bit(), Some(number));
            assert_eq!(cursor.rest(), [7], "{number}");
        }
    }

    #[test]
    fn values_of_another_kind_are_not_moved_over() {
        let mut cursor = Reader::new(&[0x8F, 0x91, 1, 2]); // padding, and a float that ends early
        assert_eq!(
            (cursor.float_if(), cursor.integer_if(), cursor.string_if()),
            (None, None, None)
        );
        assert_eq!(cursor.offset(), 0);
    }
}
