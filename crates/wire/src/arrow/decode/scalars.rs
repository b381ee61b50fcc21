//! Lossless conversions between kinds of values.

use std::borrow::Cow;

use crate::arrow::schema::{Kind, Unit};
use crate::codes::{
    BYTES_LENGTH32, FALSE, FLOAT_STOP_2, FLOAT_STOP_4, FLOAT_STOP_6, FLOAT32, FLOAT64, INT8, INT16,
    INT32, INT64, NULL, SHORT_LENGTH_MASK, STRING_0, TRUE, UINT8, UINT16, UINT32,
};
use crate::convert;
use crate::reader::Token;
use crate::temporal::{self, Stamp};

const SECONDS_OF_DAY: i64 = 86_400;

/// Fast path for the common encodings of a number: appends it and returns its encoded length.
/// Otherwise appends nothing, and [`put`] handles the value.
#[inline]
pub fn try_put(out: &mut Vec<u8>, kind: &Kind, bytes: &[u8]) -> Option<usize> {
    match kind {
        Kind::Int { bytes: width, signed: true } => {
            let (value, length) = whole(bytes)?;
            put_signed(out, value, *width)?;
            Some(length)
        }
        Kind::Timestamp(unit) if !matches!(unit, Unit::FromNano | Unit::Guessed) => {
            let (value, length) = whole(bytes)?;
            out.extend_from_slice(&value.to_le_bytes());
            Some(length)
        }
        Kind::Float64 => {
            let (value, length) = number(bytes)?;
            out.extend_from_slice(&value.to_le_bytes());
            Some(length)
        }
        _ => None,
    }
}

/// The short ASCII string at the start of `bytes`.
#[inline]
pub fn try_text(bytes: &[u8]) -> Option<&[u8]> {
    let (code, rest) = bytes.split_first()?;
    let length = code.checked_sub(STRING_0)?;
    rest.get(..usize::from(length)).filter(|text| text.is_ascii())
}

/// The length of the value at the start of `bytes`, if its code or the next bytes give it.
#[inline]
pub fn try_length(bytes: &[u8]) -> Option<usize> {
    let (code, rest) = bytes.split_first()?;
    Some(match *code {
        0..=0x7F | FALSE | TRUE | NULL => 1,
        UINT8 | INT8 => 2,
        UINT16 | INT16 => 3,
        UINT32 | INT32 | FLOAT32 => 5,
        INT64 | FLOAT64 => 9,
        BYTES_LENGTH32 => 5 + usize::try_from(u32::from_le_bytes(*rest.first_chunk()?)).ok()?,
        STRING_0..=0xFF => 1 + usize::from(code & SHORT_LENGTH_MASK),
        FLOAT_STOP_2 | FLOAT_STOP_4 | FLOAT_STOP_6 => {
            let last = rest.iter().take(10).position(|group| group & 0x80 == 0)?;
            2 + last
        }
        _ => return None,
    })
}

/// An integer with its own code, and its encoded length.
#[inline]
fn whole(bytes: &[u8]) -> Option<(i64, usize)> {
    let (code, rest) = bytes.split_first()?;
    Some(match *code {
        UINT8 => (i64::from(*rest.first()?), 2),
        INT8 => (i64::from(i8::from_le_bytes(*rest.first_chunk()?)), 2),
        INT16 => (i64::from(i16::from_le_bytes(*rest.first_chunk()?)), 3),
        UINT16 => (i64::from(u16::from_le_bytes(*rest.first_chunk()?)), 3),
        INT32 => (i64::from(i32::from_le_bytes(*rest.first_chunk()?)), 5),
        UINT32 => (i64::from(u32::from_le_bytes(*rest.first_chunk()?)), 5),
        INT64 => (i64::from_le_bytes(*rest.first_chunk()?), 9),
        _ => return None,
    })
}

/// Like [`whole`] for a float; stop-bit floats of up to four groups of seven bits.
#[inline]
#[allow(clippy::cast_precision_loss)] // the nearest, as anywhere
fn number(bytes: &[u8]) -> Option<(f64, usize)> {
    let (code, rest) = bytes.split_first()?;
    let scale = match *code {
        FLOAT64 => return Some((f64::from_le_bytes(*rest.first_chunk()?), 9)),
        FLOAT32 => return Some((f64::from(f32::from_le_bytes(*rest.first_chunk()?)), 5)),
        FLOAT_STOP_2 => 1e2,
        FLOAT_STOP_4 => 1e4,
        FLOAT_STOP_6 => 1e6,
        _ => return whole(bytes).map(|(value, length)| (value as f64, length)),
    };
    let groups: &[u8; 4] = rest.first_chunk()?;
    let mut value = 0_u32;
    for (place, group) in groups.iter().enumerate() {
        value |= u32::from(group & 0x7F) << (7 * place);
        if group & 0x80 == 0 {
            // An empty last group makes it negative.
            let positive = *group != 0 || place == 0;
            return positive.then(|| (f64::from(value) / scale, place + 2));
        }
    }
    None
}

/// Appends a number, time or UUID in the layout of `kind`; None if the value is
/// of another kind or out of range.
#[inline]
pub fn put(out: &mut Vec<u8>, kind: &Kind, value: &Token<'_>) -> Option<()> {
    match kind {
        Kind::Int { bytes: 8, signed: true } => {
            out.extend_from_slice(&integer(value)?.to_le_bytes());
        }
        Kind::Float64 => out.extend_from_slice(&float(value)?.to_le_bytes()),
        Kind::Int { bytes, signed: true } => put_signed(out, integer(value)?, *bytes)?,
        Kind::Int { bytes, signed: false } => put_unsigned(out, unsigned(value)?, *bytes)?,
        Kind::Float32 => out.extend_from_slice(&narrow(value)?.to_le_bytes()),
        other => put_other(out, other, value)?,
    }
    Some(())
}

fn put_other(out: &mut Vec<u8>, kind: &Kind, value: &Token<'_>) -> Option<()> {
    match kind {
        Kind::Timestamp(unit) => out.extend_from_slice(&timestamp(value, *unit)?.to_le_bytes()),
        Kind::Date => out.extend_from_slice(&date(value)?.to_le_bytes()),
        Kind::Time(unit @ (Unit::Second | Unit::Milli)) => {
            out.extend_from_slice(&i32::try_from(time(value, *unit)?).ok()?.to_le_bytes());
        }
        Kind::Time(unit) => out.extend_from_slice(&time(value, *unit)?.to_le_bytes()),
        Kind::Uuid => out.extend_from_slice(&uuid(value)?),
        Kind::Decimal { precision, scale } => {
            out.extend_from_slice(&decimal(value, *precision, *scale)?.to_le_bytes());
        }
        _ => return None,
    }
    Some(())
}

/// The size of a value; 0 for kinds that [`put`] does not handle.
pub const fn width(kind: &Kind) -> usize {
    match kind {
        Kind::Int { bytes, .. } => *bytes,
        Kind::Float32 | Kind::Date | Kind::Time(Unit::Second | Unit::Milli) => 4,
        Kind::Float64 | Kind::Timestamp(_) | Kind::Time(_) => 8,
        Kind::Uuid | Kind::Decimal { .. } => 16,
        _ => 0,
    }
}

/// A boolean, or its name.
pub fn truth(value: &Token<'_>) -> Option<bool> {
    match value {
        Token::Bool(value) => Some(*value),
        Token::Text(b"true") => Some(true),
        Token::Text(b"false") => Some(false),
        _ => None,
    }
}

/// A value as text, as Java's readers convert it; also a UUID, which they reject.
pub fn text<'a>(value: &Token<'a>) -> Option<Cow<'a, str>> {
    let Token::Uuid(high, low) = value else { return convert::text(*value, 0).ok().flatten() };
    let digits = format!("{high:016x}{low:016x}");
    let parts = [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]];
    Some(Cow::Owned(parts.join("-")))
}

fn put_signed(out: &mut Vec<u8>, value: i64, bytes: usize) -> Option<()> {
    match bytes {
        1 => out.extend_from_slice(&i8::try_from(value).ok()?.to_le_bytes()),
        2 => out.extend_from_slice(&i16::try_from(value).ok()?.to_le_bytes()),
        4 => out.extend_from_slice(&i32::try_from(value).ok()?.to_le_bytes()),
        _ => out.extend_from_slice(&value.to_le_bytes()),
    }
    Some(())
}

fn put_unsigned(out: &mut Vec<u8>, value: u64, bytes: usize) -> Option<()> {
    match bytes {
        1 => out.extend_from_slice(&u8::try_from(value).ok()?.to_le_bytes()),
        2 => out.extend_from_slice(&u16::try_from(value).ok()?.to_le_bytes()),
        4 => out.extend_from_slice(&u32::try_from(value).ok()?.to_le_bytes()),
        _ => out.extend_from_slice(&value.to_le_bytes()),
    }
    Some(())
}

/// Java stores some integers as floats, and 2^63 - 1 as 2^63; the cast saturates like Java's.
#[inline]
fn integer(value: &Token<'_>) -> Option<i64> {
    match value {
        Token::Int(value, _) => Some(*value),
        other => integer_of(other),
    }
}

#[allow(clippy::cast_possible_truncation)] // whole, and bounded
fn integer_of(value: &Token<'_>) -> Option<i64> {
    const BOUND: f64 = 9_223_372_036_854_775_808.0;
    match value {
        Token::Float32(_) | Token::Float64(_) => {
            let value = float(value)?;
            (value.fract() == 0.0 && value.abs() <= BOUND).then_some(value as i64)
        }
        Token::Text(text) => std::str::from_utf8(text).ok()?.parse().ok(),
        _ => None,
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // whole, and bounded
fn unsigned(value: &Token<'_>) -> Option<u64> {
    const BOUND: f64 = 18_446_744_073_709_551_616.0;
    match value {
        Token::Int(value, _) => u64::try_from(*value).ok(),
        Token::Float32(_) | Token::Float64(_) => {
            let value = float(value)?;
            (value.fract() == 0.0 && (0.0..BOUND).contains(&value)).then_some(value as u64)
        }
        Token::Text(text) => std::str::from_utf8(text).ok()?.parse().ok(),
        _ => None,
    }
}

#[inline]
#[allow(clippy::cast_precision_loss)] // the nearest, as anywhere
fn float(value: &Token<'_>) -> Option<f64> {
    match value {
        Token::Float64(value) => Some(*value),
        Token::Float32(value) => Some(f64::from(*value)),
        Token::Int(value, _) => Some(*value as f64),
        Token::Text(text) => std::str::from_utf8(text).ok()?.parse().ok(),
        _ => None,
    }
}

/// The nearest 32-bit float; None if it would overflow.
#[allow(clippy::cast_possible_truncation)]
fn narrow(value: &Token<'_>) -> Option<f32> {
    if let Token::Float32(value) = value {
        return Some(*value);
    }
    let wide = float(value)?;
    let narrow = wide as f32;
    (narrow.is_infinite() == wide.is_infinite()).then_some(narrow)
}

fn stamp<'a>(value: &Token<'a>) -> Option<Stamp<'a>> {
    let (Token::Text(text) | Token::Temporal(text, _)) = value else { return None };
    temporal::parse(std::str::from_utf8(text).ok()?)
}

/// A number is in the column's unit. Text without a zone is in UTC; digits finer than the
/// unit are truncated.
fn timestamp(value: &Token<'_>, unit: Unit) -> Option<i64> {
    if let Token::Int(count, _) = value
        && !matches!(unit, Unit::FromNano | Unit::Guessed)
    {
        return Some(*count);
    }
    let Some(stamp) = stamp(value) else {
        return match unit {
            Unit::Guessed => guessed(value),
            Unit::FromNano => integer(value).map(|nanos| nanos / 1_000),
            _ => integer_of(value),
        };
    };
    let days = stamp.date?.epoch_day();
    let time = stamp.time.unwrap_or_default();
    let offset_s = i64::from(stamp.zone.map_or(0, |zone| zone.offset_s));
    let seconds = days * SECONDS_OF_DAY + time.second_of_day() - offset_s;
    let part = i64::from(time.nanos) / (Unit::Nano.per_second() / unit.per_second());
    seconds.checked_mul(unit.per_second())?.checked_add(part)
}

/// A number as microseconds, in the unit that gives a plausible date.
#[allow(clippy::cast_possible_truncation)] // bounded
fn guessed(value: &Token<'_>) -> Option<i64> {
    const BOUND: f64 = 9_223_372_036_854_775_808.0;
    let scale = |size: f64| match size {
        _ if size < 1e11 => 1e9,
        _ if size < 1e14 => 1e6,
        _ if size < 1e17 => 1e3,
        _ => 1.0,
    };
    let number = float(value)?;
    let scale = scale(number.abs());
    if let Some(count) = integer(value) {
        let count = i128::from(count) * (scale as i128);
        return i64::try_from(count / 1_000).ok();
    }
    let nanos = number * scale;
    if nanos.abs() < BOUND {
        return Some(nanos.round() as i64 / 1_000);
    }
    let micros = nanos / 1e3;
    (micros.abs() < BOUND).then_some(micros.round() as i64)
}

fn date(value: &Token<'_>) -> Option<i32> {
    let days = match stamp(value) {
        Some(Stamp { date: Some(date), time: None, .. }) => date.epoch_day(),
        Some(_) => return None,
        None => integer(value)?,
    };
    i32::try_from(days).ok()
}

fn time(value: &Token<'_>, unit: Unit) -> Option<i64> {
    let count = match stamp(value) {
        Some(Stamp { date: None, time: Some(time), .. }) => {
            let part = i64::from(time.nanos) / (Unit::Nano.per_second() / unit.per_second());
            time.second_of_day() * unit.per_second() + part
        }
        Some(_) => return None,
        None => integer(value)?,
    };
    (0..SECONDS_OF_DAY * unit.per_second()).contains(&count).then_some(count)
}

fn uuid(value: &Token<'_>) -> Option<[u8; 16]> {
    let number = match value {
        Token::Uuid(high, low) => u128::from(*high) << 64 | u128::from(*low),
        Token::Text(text) => {
            let text = std::str::from_utf8(text).ok()?;
            let lengths = [8, 4, 4, 4, 12];
            let fits = text.split('-').map(str::len).eq(lengths) && !text.contains('+');
            u128::from_str_radix(&text.replace('-', ""), 16).ok().filter(|_| fits)?
        }
        _ => return None,
    };
    Some(number.swap_bytes().to_le_bytes())
}

/// A decimal with at most this many digits, as an integer in units of its last digit.
fn decimal(value: &Token<'_>, precision: u8, scale: u8) -> Option<i128> {
    let text = match value {
        Token::Int(_, _) | Token::Text(_) | Token::Float32(_) | Token::Float64(_) => text(value)?,
        _ => return None,
    };
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (&*text, 0),
    };
    let (negative, digits) = match mantissa.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, mantissa.strip_prefix('+').unwrap_or(mantissa)),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let mut figures = [whole, fraction].concat();
    if figures.is_empty() || !figures.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    // The number is `figures` times ten to the power of minus this.
    let places = i32::try_from(fraction.len()).ok()?.checked_sub(exponent)?;
    let missing = i32::from(scale).checked_sub(places)?;
    if missing < 0 {
        let cut = figures.len().saturating_sub(usize::try_from(-missing).ok()?);
        if figures[cut..].bytes().any(|digit| digit != b'0') {
            return None;
        }
        figures.truncate(cut);
    }
    let figures = figures.trim_start_matches('0');
    if figures.is_empty() {
        return Some(0);
    }
    let zeros = usize::try_from(missing.max(0)).ok()?;
    if figures.len().checked_add(zeros)? > usize::from(precision) {
        return None;
    }
    let number: i128 = format!("{figures}{:0<zeros$}", "").parse().ok()?;
    Some(if negative { -number } else { number })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_fit_whole_or_not_at_all() {
        let cases = [
            ("1.50", 5, 2, Some(150)),
            ("-1.5", 5, 2, Some(-150)),
            ("1.500", 5, 2, Some(150)),
            ("1.505", 5, 2, None),
            ("1E+2", 5, 2, Some(10_000)),
            ("1E+3", 5, 2, None),
            ("12e-4", 9, 4, Some(12)),
            ("0E-1000000", 5, 2, Some(0)),
            ("0E+1000000", 5, 2, Some(0)),
            ("1E+1000000000", 38, 0, None),
            ("00012.0", 4, 2, Some(1200)),
            ("99999999999999999999999999999999999999", 38, 0, Some(10_i128.pow(38) - 1)),
            ("", 5, 2, None),
            (".", 5, 2, None),
            ("1,5", 5, 2, None),
            ("--1", 5, 2, None),
        ];
        for (text, precision, scale, expected) in cases {
            assert_eq!(
                decimal(&Token::Text(text.as_bytes()), precision, scale),
                expected,
                "{text}"
            );
        }
    }

    #[test]
    fn floats_are_integers_where_they_are_whole() {
        let cases = [
            (Token::Float32(1_099_511_627_776.0), Some(1 << 40)),
            (Token::Float32(9_223_372_036_854_775_808.0), Some(i64::MAX)),
            (Token::Float64(-9_223_372_036_854_775_808.0), Some(i64::MIN)),
            (Token::Float64(1.5), None),
            (Token::Float64(f64::NAN), None),
            (Token::Float64(1e19), None),
            (Token::Text(b"-12"), Some(-12)),
            (Token::Text(b""), None),
            (Token::Bool(true), None),
        ];
        for (value, expected) in cases {
            assert_eq!(integer(&value), expected, "{value:?}");
        }
    }

    #[test]
    fn times_count_in_the_unit_of_the_column() {
        let text = Token::Text(b"1970-01-01T00:00:01.123456789Z");
        let found =
            [Unit::Second, Unit::Milli, Unit::Micro, Unit::Nano].map(|it| timestamp(&text, it));
        assert_eq!(found, [Some(1), Some(1_123), Some(1_123_456), Some(1_123_456_789)]);
        assert_eq!(timestamp(&Token::Text(b"1969-12-31T23:59:59.5Z"), Unit::Second), Some(-1));
        assert_eq!(timestamp(&Token::Text(b"9999-12-31T00:00Z"), Unit::Nano), None);
        assert_eq!(timestamp(&Token::Text(b"01:02"), Unit::Nano), None);
        assert_eq!(time(&Token::Text(b"01:02"), Unit::Second), Some(3_720));
        assert_eq!(date(&Token::Text(b"1970-01-02")), Some(1));
        assert_eq!(date(&Token::Text(b"1970-01-02T00:00")), None);
    }

    #[test]
    fn a_uuid_is_its_sixteen_bytes_in_the_order_of_its_text() {
        let text = "00112233-4455-6677-8899-aabbccddeeff";
        let bytes = uuid(&Token::Text(text.as_bytes())).unwrap();
        assert_eq!(bytes[..4], [0, 0x11, 0x22, 0x33]);
        let token = Token::Uuid(0x0011_2233_4455_6677, 0x8899_AABB_CCDD_EEFF);
        assert_eq!(uuid(&token), Some(bytes));
        assert_eq!(self::text(&token).unwrap(), text);
        assert_eq!(uuid(&Token::Text(b"00112233445566778899aabbccddeeff")), None);
    }
}
