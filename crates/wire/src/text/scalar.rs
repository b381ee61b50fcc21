//! Strings, numbers and other scalars in text.

use crate::out::Out;
use std::borrow::Cow;

use super::uuid;
use crate::codes::{FLOAT32, FLOAT64, INT8, INT16, INT32, INT64};
use crate::error::{Result, WireError};
use crate::latin1;
use crate::{reader, temporal, writer};

/// The lowest first byte of a four-byte UTF-8 sequence.
const LEAD_OF_FOUR: u8 = 0xF0;
/// The length of the shortest date.
const DATE_MIN: usize = "2024-01-15".len();

/// A parsed scalar.
#[derive(Debug)]
pub enum Scalar<'a> {
    /// Unquoted: its type follows from its content.
    Plain(&'a str),
    /// Quoted: a string, encoded as in messages.
    Quoted(Vec<u8>),
}

impl Scalar<'_> {
    /// A string: UTF-8, or three-byte surrogates.
    #[must_use]
    pub fn quoted(text: Vec<u8>) -> Self {
        Self::Quoted(if text.iter().any(|byte| *byte >= LEAD_OF_FOUR) {
            stored(&text)
        } else {
            text
        })
    }

    pub fn text(&self) -> Result<Cow<'_, str>> {
        match self {
            Self::Plain(text) => Ok(Cow::Borrowed(text)),
            Self::Quoted(text) => reader::text(text, 0),
        }
    }

    /// The string as a name. Java's dump may print characters from U+0080 to U+00FF as those from
    /// U+FF80 to U+FFFF.
    pub fn name(&self) -> Result<Cow<'_, str>> {
        let text = self.text()?;
        let is_shifted = |c: char| ('\u{FF80}'..='\u{FFFF}').contains(&c);
        if !text.contains(is_shifted) {
            return Ok(text);
        }
        let low =
            |c: char| if is_shifted(c) { char::from(u32::from(c).to_le_bytes()[0]) } else { c };
        Ok(Cow::Owned(text.chars().map(low).collect()))
    }

    /// The string as bytes, one per character.
    pub fn latin1(&self) -> Result<Vec<u8>> {
        let text = self.text()?;
        latin1::encode(&text).map(Cow::into_owned).ok_or_else(|| {
            WireError::new("bytes are characters up to U+00FF")
                .with("found", format_args!("{text:?}"))
        })
    }

    /// The digits of an integer that does not fit 64 bits.
    #[must_use]
    pub fn large_integer(&self) -> Option<&str> {
        let Self::Plain(text) = self else { return None };
        is_large_integer(text).then_some(text)
    }

    pub fn put(&self, out: &mut Out) {
        match self {
            Self::Plain("true") => writer::put_bool(out, true),
            Self::Plain("false") => writer::put_bool(out, false),
            Self::Plain("NaN") => put_f64(out, f64::NAN),
            Self::Plain("Infinity") => put_f64(out, f64::INFINITY),
            Self::Plain("-Infinity") => put_f64(out, f64::NEG_INFINITY),
            Self::Plain("") => writer::put_null(out),
            Self::Plain(text) => put_plain(out, text),
            Self::Quoted(text) => writer::put_text_bytes(out, text),
        }
    }
}

/// Encodes four-byte characters as surrogate pairs; escapes may have produced other surrogates.
fn stored(text: &[u8]) -> Vec<u8> {
    let mut out = Out::new();
    let mut rest = text;
    while let Some(at) = rest.iter().position(|byte| *byte >= LEAD_OF_FOUR) {
        let (before, wide) = rest.split_at(at);
        let (wide, after) = wide.split_at(wide.len().min(4));
        out.extend_from_slice(before);
        writer::put_cesu8(&mut out, std::str::from_utf8(wide).unwrap_or_default());
        rest = after;
    }
    out.extend_from_slice(rest);
    out.finish().unwrap_or_default() // memory was checked by the parser
}

fn put_f64(out: &mut Out, value: f64) {
    writer::put_number(out, FLOAT64, value.to_le_bytes());
}

/// Numbers as Java's text wire boxes them, dates and times; anything else is a string.
fn put_plain(out: &mut Out, text: &str) {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if !digits.starts_with(|first: char| first.is_ascii_digit()) {
        return writer::put_text(out, text);
    }
    if let Some(bits) = hex(text) {
        return writer::put_hex(out, bits.cast_signed());
    }
    if let Some(value) = integer(text) {
        return writer::put_int64(out, value);
    }
    if let Some(value) = float(text) {
        return put_f64(out, value);
    }
    match temporal::parse(text).filter(|stamp| stamp.date.is_none() || text.len() >= DATE_MIN) {
        Some(stamp) => writer::put_temporal(out, stamp.code(), text),
        None => writer::put_text(out, text),
    }
}

/// Whether a text is an integer that does not fit 64 bits.
#[must_use]
pub fn is_large_integer(text: &str) -> bool {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let is_integer = digits.starts_with(|first: char| first.is_ascii_digit())
        && digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_');
    is_integer && integer(text).is_none()
}

/// The error for an integer that does not fit 64 bits.
#[must_use]
pub fn too_large(digits: &str) -> WireError {
    WireError::new("an integer of more than 64 bits").with("value", digits)
}

fn hex(text: &str) -> Option<u64> {
    u64::from_str_radix(text.strip_prefix("0x")?, 16).ok()
}

fn integer(text: &str) -> Option<i64> {
    if text.contains('_') {
        return text.replace('_', "").parse().ok();
    }
    text.parse().ok()
}

fn float(text: &str) -> Option<f64> {
    let is_number = text.bytes().all(|byte| b"+-.eE0123456789".contains(&byte));
    is_number.then(|| text.parse().ok()).flatten()
}

/// Appends a field name or a key. Names are Latin-1: other keys must be given as complex keys.
pub fn put_name(out: &mut Out, name: &str, is_field: bool) -> Result<()> {
    // Java's dump refuses control characters in field names, and numeric names have no zeros first.
    let has_zeros = name.len() > 1 && name.starts_with('0');
    if is_field && !has_zeros && !name.bytes().any(|byte| byte < b' ') {
        return writer::put_field(out, name);
    }
    writer::put_key(out, name)
}

/// Appends a value of an explicit type.
pub fn put_typed(out: &mut Out, name: &[u8], value: &Scalar<'_>) -> Result<()> {
    let text = value.text()?;
    let wrong = || {
        WireError::new("invalid value for the type")
            .with("type", String::from_utf8_lossy(name))
            .with("found", format_args!("{text:?}"))
    };
    let number = || {
        let bits = hex(&text).map(u64::cast_signed);
        bits.or_else(|| integer(&text)).ok_or_else(wrong)
    };
    let decimal = || match &*text {
        "NaN" => Ok(f64::NAN),
        "Infinity" => Ok(f64::INFINITY),
        "-Infinity" => Ok(f64::NEG_INFINITY),
        text => float(text).ok_or_else(wrong),
    };
    match name {
        b"byte" => {
            let value = i8::try_from(number()?).map_err(|_| wrong())?;
            writer::put_number(out, INT8, value.to_le_bytes());
        }
        b"short" => {
            let value = i16::try_from(number()?).map_err(|_| wrong())?;
            writer::put_number(out, INT16, value.to_le_bytes());
        }
        b"int" => {
            let value = i32::try_from(number()?).map_err(|_| wrong())?;
            writer::put_number(out, INT32, value.to_le_bytes());
        }
        b"long" => writer::put_number(out, INT64, number()?.to_le_bytes()),
        #[allow(clippy::cast_possible_truncation)] // as requested by the type
        b"float" => writer::put_number(out, FLOAT32, (decimal()? as f32).to_le_bytes()),
        b"double" => put_f64(out, decimal()?),
        _ => {
            let (high, low) = uuid::parse(&text).ok_or_else(wrong)?;
            writer::put_uuid(out, high, low);
        }
    }
    Ok(())
}

/// Appends the character of an escape, given the text after its backslash; returns its length.
pub fn put_escaped(text: &mut Vec<u8>, rest: &[u8]) -> Option<usize> {
    let byte = match *rest.first()? {
        b'0' => 0,
        b'a' => 7,
        b'b' => 8,
        b't' | b'\t' => b'\t',
        b'n' => b'\n',
        b'v' => 0xB,
        b'f' => 0xC,
        b'r' => b'\r',
        b'e' => 0x1B,
        mark @ (b' ' | b'"' | b'/' | b'\\' | b'\'') => mark,
        b'N' => return put_unit(text, 0x85, 1),
        b'_' => return put_unit(text, 0xA0, 1),
        b'L' => return put_unit(text, 0x2028, 1),
        b'P' => return put_unit(text, 0x2029, 1),
        b'x' => return put_unit(text, digits(rest, 2)?, 3),
        b'u' => return put_unit(text, digits(rest, 4)?, 5),
        b'U' => return put_unit(text, digits(rest, 8)?, 9),
        b'\n' => {
            // An escaped line break.
            let more = &rest[1..];
            return Some(1 + more.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count());
        }
        _ => return None,
    };
    text.push(byte);
    Some(1)
}

fn digits(rest: &[u8], count: usize) -> Option<u32> {
    let digits = std::str::from_utf8(rest.get(1..=count)?).ok()?;
    let is_number = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_number.then(|| u32::from_str_radix(digits, 16).ok()).flatten()
}

/// Appends a character; surrogates take three bytes each, and a pair of them is one character.
fn put_unit(text: &mut Vec<u8>, unit: u32, taken: usize) -> Option<usize> {
    if let Some(character) = char::from_u32(unit) {
        text.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
    } else {
        let tail = |bits: u32| 0x80 | (bits & 0x3F).to_le_bytes()[0];
        (0xD800..0xE000).contains(&unit).then_some(())?;
        text.extend_from_slice(&[0xED, tail(unit >> 6), tail(unit)]);
    }
    Some(taken)
}
