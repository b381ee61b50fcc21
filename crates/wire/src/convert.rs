//! Converts values to declared types as Java's readers do (`docs/format.md` §8). Conversions that
//! lose the value in Java are errors; `docs/compatibility.md` has the table.

use std::borrow::Cow;

use crate::codes;
use crate::error::{Result, WireError};
use crate::latin1;
use crate::number::{java_f64, parse_f64, parse_i64};
use crate::reader::{self, Reader, Token, text as decoded};

/// The range of an integer type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Width {
    pub min: i64,
    pub max: i64,
}

impl Width {
    /// Signed 64 bits.
    pub const I64: Self = Self { min: i64::MIN, max: i64::MAX };

    /// A range in bits: up to 64 signed, up to 32 unsigned.
    #[must_use]
    pub const fn of(bits: u32, signed: bool) -> Self {
        if signed {
            Self { min: i64::MIN >> (64 - bits), max: i64::MAX >> (64 - bits) }
        } else {
            Self { min: 0, max: (1 << bits) - 1 }
        }
    }

    fn holds(self, value: i64) -> bool {
        self.min <= value && value <= self.max
    }
}

/// The next value as [`int`] reads it.
#[inline]
pub fn next_int(cursor: &mut Reader<'_>, width: Width) -> Result<i64> {
    // Without a token in the usual case.
    let mut ahead = *cursor;
    if let Some(number) = ahead.integer_if().filter(|number| width.holds(*number)) {
        *cursor = ahead;
        return Ok(number);
    }
    let at = cursor.offset();
    int(cursor.value()?, width, at)
}

/// The next value as [`float`] reads it.
#[inline]
pub fn next_float(cursor: &mut Reader<'_>) -> Result<f64> {
    if let Some(number) = cursor.float_if() {
        return Ok(number);
    }
    let at = cursor.offset();
    float(cursor.value()?, at)
}

/// Reads an integer. Only the 64-bit type accepts floats, which it truncates. Java's value for
/// "no value" results from an empty string and, for 64 bits, from null.
#[inline]
pub fn int(token: Token<'_>, width: Width, at: usize) -> Result<i64> {
    match token {
        Token::Int(value, _) if width.holds(value) => Ok(value),
        token => other_int(token, width, at),
    }
}

#[cold]
#[allow(clippy::cast_possible_truncation)] // saturates, as Java's cast does
fn other_int(token: Token<'_>, width: Width, at: usize) -> Result<i64> {
    let value = match token {
        Token::Int(value, _) => Some(value),
        Token::Float64(value) if width == Width::I64 => Some(value as i64),
        Token::Float32(value) if width == Width::I64 => Some(value as i64),
        Token::Null if width == Width::I64 => Some(i64::MIN),
        Token::Text(bytes) => {
            let text = decoded(bytes, at)?;
            if text.trim().is_empty() { Some(width.min) } else { parse_i64(&text) }
        }
        _ => None,
    };
    let expected = format!("an integer of {} to {}", width.min, width.max);
    match value {
        Some(value) if width.holds(value) => Ok(value),
        _ => Err(misfit(&token, &expected, at)),
    }
}

/// Reads a 64-bit float.
#[inline]
#[allow(clippy::cast_precision_loss)] // as Java does
pub fn float(token: Token<'_>, at: usize) -> Result<f64> {
    match token {
        Token::Float64(value) => Ok(value),
        Token::Int(value, _) => Ok(value as f64),
        Token::Float32(value) => Ok(f64::from(value)),
        Token::Text(bytes) => {
            let number = parse_f64(&decoded(bytes, at)?);
            number.ok_or_else(|| misfit(&token, "a number", at))
        }
        _ => Err(misfit(&token, "a number", at)),
    }
}

/// Reads a 32-bit float; a decimal is converted directly, without rounding twice.
#[inline]
#[allow(clippy::cast_possible_truncation)] // to see whether it is too large
pub fn float32(token: Token<'_>, at: usize) -> Result<f64> {
    let value = float(token, at)?;
    Ok(if (value as f32).is_infinite() { f64::from(value as f32) } else { value })
}

/// As in Java, a one-character string is false; longer strings are an error.
#[inline]
pub fn boolean(token: Token<'_>, at: usize) -> Result<bool> {
    match token {
        Token::Bool(value) => Ok(value),
        Token::Text([] | [0..0x80]) => Ok(false),
        _ => Err(misfit(&token, "true or false", at)),
    }
}

/// A string; None for null. Scalars are formatted, and blobs become one character per byte.
#[inline]
pub fn text(token: Token<'_>, at: usize) -> Result<Option<Cow<'_, str>>> {
    Ok(Some(match token {
        Token::Text(bytes) | Token::Temporal(bytes, _) | Token::TypeLiteral(bytes) => {
            decoded(bytes, at)?
        }
        Token::Null => return Ok(None),
        Token::Bool(value) => Cow::Borrowed(if value { "true" } else { "false" }),
        Token::Int(value, _) => Cow::Owned(value.to_string()),
        Token::Float64(value) => Cow::Owned(java_f64(value)),
        Token::Float32(value) => Cow::Owned(java_f64(f64::from(value))),
        Token::Block(block) => match block.blob() {
            Some(bytes) => latin1::decode(bytes),
            None => return Err(misfit(&token, "a text", at)),
        },
        Token::Uuid(..) | Token::TypePrefix(_) | Token::Longs { .. } => {
            return Err(misfit(&token, "a text", at));
        }
    }))
}

/// A blob; None for null.
#[inline]
pub fn bytes(token: Token<'_>, at: usize) -> Result<Option<&[u8]>> {
    match token {
        Token::Null => Ok(None),
        Token::Block(block) => match block.blob() {
            Some(bytes) => Ok(Some(bytes)),
            None => Err(misfit(&token, "a blob", at)),
        },
        _ => Err(misfit(&token, "a blob", at)),
    }
}

/// The error for a value that is not of the declared type.
#[cold]
#[must_use]
pub fn misfit(token: &Token<'_>, expected: &str, at: usize) -> WireError {
    WireError::new("the value does not fit")
        .with("expected", expected)
        .with("found", shown(token))
        .with("offset", at)
}

/// A short description of a token.
fn shown(token: &Token<'_>) -> String {
    match token {
        Token::Null => "null".into(),
        Token::Bool(value) => value.to_string(),
        Token::Int(value, code) => format!("{value} ({})", codes::name(*code)),
        Token::Float32(value) => format!("{value} (FLOAT32)"),
        Token::Float64(value) => format!("{value} (FLOAT64)"),
        Token::Text(bytes) => {
            let text = String::from_utf8_lossy(bytes);
            format!("{:?}", text.chars().take(40).collect::<String>())
        }
        Token::Temporal(bytes, code) => {
            format!("{} ({})", String::from_utf8_lossy(bytes), codes::name(*code))
        }
        Token::Uuid(..) => "a UUID".into(),
        Token::TypeLiteral(name) => format!("type {}", String::from_utf8_lossy(name)),
        Token::TypePrefix(name) => format!("!{}", String::from_utf8_lossy(name)),
        Token::Block(block) => match block.shape() {
            reader::Shape::Empty => "an empty block".into(),
            reader::Shape::Map => "a map".into(),
            reader::Shape::List => "a list".into(),
            reader::Shape::Blob => format!("a blob of {} bytes", block.rest().len() - 1),
            reader::Shape::History => "history".into(),
            reader::Shape::Longs => "an array of integers".into(),
        },
        Token::Longs { used, .. } => format!("an array of {} integers", used.len() / 8),
    }
}
