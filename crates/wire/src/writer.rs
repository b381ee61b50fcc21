//! Writing BinaryWire (`docs/format.md` §8.2-8.6): values as tokens, in the forms of Java's
//! writers. Each function appends one.

use crate::out::Out;
use std::borrow::Cow;

use crate::codes::{
    BYTES_LENGTH8, BYTES_LENGTH16, BYTES_LENGTH32, COMMENT, EVENT_NAME, EVENT_OBJECT, FALSE,
    FIELD_NAME_ANY, FIELD_NAME0, FIELD_NUMBER, FLOAT_STOP_2, FLOAT_STOP_4, FLOAT_STOP_6, FLOAT32,
    FLOAT64, I64_ARRAY, INT8, INT16, INT32, INT64, INT64_0X, NULL, PADDING, PADDING32,
    SHORT_LENGTH_MAX, STRING_0, STRING_ANY, TRUE, TYPE_LITERAL, TYPE_PREFIX, U8_ARRAY, UINT8,
    UINT16, UINT32, UUID,
};
use crate::error::{Result, WireError};
use crate::latin1;

/// The payload of an empty message: without it, readers would not see the message.
pub const EMPTY_PAYLOAD: [u8; 1] = [PADDING];

/// A scalar value.
#[derive(Clone, Copy, Debug)]
pub enum Scalar<'a> {
    Null,
    Bool(bool),
    /// An integer: 32 bits if it fits, otherwise 64.
    Int(i64),
    Float(f64),
    Text(&'a str),
    Bytes(&'a [u8]),
}

/// Appends a stop-bit integer (`docs/format.md` §8.2).
pub fn put_stop_bit(out: &mut Out, value: i64) {
    let negative = value < 0;
    let mut rest = (if negative { !value } else { value }).cast_unsigned();
    while rest > 0x7F {
        out.push(rest.to_le_bytes()[0] | 0x80);
        rest >>= 7;
    }
    let last = rest.to_le_bytes()[0];
    if negative {
        out.extend_from_slice(&[last | 0x80, 0]);
    } else {
        out.push(last);
    }
}

/// Appends padding so that the byte after the next code is aligned to a multiple of `alignment`
/// (`docs/format.md` §3.2).
pub fn pad_before_code(out: &mut Out, alignment: usize) {
    let code_end = out.len() + 1;
    put_padding(out, code_end.next_multiple_of(alignment) - code_end);
}

/// Appends `count` bytes of padding: as single bytes below 5, otherwise as one block.
pub fn put_padding(out: &mut Out, count: usize) {
    const RUN: usize = 5;
    if let Some(inside) = count.checked_sub(RUN) {
        out.push(PADDING32);
        out.extend_from_slice(&u32::try_from(inside).unwrap_or(0).to_le_bytes());
        out.fill(inside, 0);
    } else {
        out.fill(count, PADDING);
    }
}

/// Appends an integer in the shortest form, as Java's generated writers choose it
/// (`docs/format.md` §8.3).
pub fn put_compact(out: &mut Out, value: i64) {
    if let Ok(value) = u8::try_from(value) {
        out.extend_from_slice(&[UINT8, value]);
    } else if let Ok(value) = i8::try_from(value) {
        put_number(out, INT8, value.to_le_bytes());
    } else if let Ok(value) = i16::try_from(value) {
        put_number(out, INT16, value.to_le_bytes());
    } else if let Ok(value) = u16::try_from(value) {
        put_number(out, UINT16, value.to_le_bytes());
    } else if let Ok(value) = i32::try_from(value) {
        put_number(out, INT32, value.to_le_bytes());
    } else if let Ok(value) = u32::try_from(value) {
        put_number(out, UINT32, value.to_le_bytes());
    } else if let Some(float) = exact_f32(value) {
        put_number(out, FLOAT32, float.to_le_bytes());
    } else {
        put_number(out, INT64, value.to_le_bytes());
    }
}

/// The float that Java's saturating cast converts back to this integer.
#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation)]
fn exact_f32(value: i64) -> Option<f32> {
    let float = value as f32;
    (float as i64 == value).then_some(float)
}

/// Appends a code and the little-endian bytes of a number.
pub fn put_number<const N: usize>(out: &mut Out, code: u8, bytes: [u8; N]) {
    out.push(code);
    out.extend_from_slice(&bytes);
}

/// Appends a string value. Characters above U+FFFF become two surrogates of three bytes
/// each, as Java writes them (CESU-8, `docs/format.md` §8.5).
pub fn put_text(out: &mut Out, text: &str) {
    if text.bytes().any(|byte| byte >= 0xF0) {
        put_text_head(out, cesu8_length(text));
        put_cesu8(out, text);
    } else {
        put_text_bytes(out, text.as_bytes());
    }
}

/// Appends a string value that is already encoded.
pub fn put_text_bytes(out: &mut Out, text: &[u8]) {
    put_text_head(out, text.len());
    out.extend_from_slice(text);
}

fn put_text_head(out: &mut Out, length: usize) {
    if length <= SHORT_LENGTH_MAX {
        out.push(STRING_0 | length.to_le_bytes()[0]);
    } else {
        out.push(STRING_ANY);
        put_stop_bit(out, length.cast_signed() as i64);
    }
}

/// How many bytes [`put_cesu8`] appends.
#[must_use]
pub fn cesu8_length(text: &str) -> usize {
    text.len() + 2 * text.bytes().filter(|byte| *byte >= 0xF0).count()
}

/// Appends UTF-8 with surrogates as three bytes each.
pub fn put_cesu8(out: &mut Out, text: &str) {
    out.reserve(cesu8_length(text));
    let mut buffer = [0; 4];
    for character in text.chars() {
        let mut units = [0; 2];
        if character.len_utf16() == 1 {
            out.extend_from_slice(character.encode_utf8(&mut buffer).as_bytes());
            continue;
        }
        for unit in character.encode_utf16(&mut units) {
            let [low, high] = unit.to_le_bytes();
            let six = 0x80 | ((high & 0x0F) << 2) | (low >> 6);
            out.extend_from_slice(&[0xE0 | (high >> 4), six, 0x80 | (low & 0x3F)]);
        }
    }
}

/// Appends an event name.
pub fn put_event(out: &mut Out, name: impl AsRef<[u8]>) {
    let name = name.as_ref();
    out.push(EVENT_NAME);
    put_stop_bit(out, name.len().cast_signed() as i64);
    out.extend_from_slice(name);
}

/// Appends an ASCII field name shorter than 32 bytes.
pub fn put_short_field(out: &mut Out, name: &'static str) {
    debug_assert!(name.len() <= SHORT_LENGTH_MAX);
    out.push(FIELD_NAME0 | name.len().to_le_bytes()[0]);
    out.extend_from_slice(name.as_bytes());
}

/// Appends a type prefix and opens a block; pass the result to [`close_block`].
pub fn open_object(out: &mut Out, name: &str) -> usize {
    put_type_prefix(out, name);
    open_block(out)
}

/// Appends the type name of the next value.
pub fn put_type_prefix(out: &mut Out, name: &str) {
    out.push(TYPE_PREFIX);
    put_stop_bit(out, name.len().cast_signed() as i64);
    out.extend_from_slice(name.as_bytes());
}

/// Opens a block with a 32-bit length.
pub fn open_block(out: &mut Out) -> usize {
    out.push(BYTES_LENGTH32);
    out.extend_from_slice(&[0; 4]);
    out.len()
}

/// Fills in the length of an open block.
pub fn close_block(out: &mut Out, start: usize) {
    let length = u32::try_from(out.len() - start).unwrap_or(u32::MAX);
    out.replace_before(start, length.to_le_bytes());
}

/// Appends a map key or an event name.
pub fn put_key(out: &mut Out, key: &str) -> Result<()> {
    out.push(EVENT_NAME);
    let latin = latin1(key)?;
    put_stop_bit(out, latin.len().cast_signed() as i64);
    out.extend_from_slice(&latin);
    Ok(())
}

/// Appends a field name; a decimal number becomes a numeric name, as in Java: 7 for 007, too.
pub fn put_field(out: &mut Out, name: &str) -> Result<()> {
    if let Some(number) = number(name) {
        put_field_number(out, number);
        return Ok(());
    }
    let latin = latin1(name)?;
    if latin.len() <= SHORT_LENGTH_MAX {
        out.push(FIELD_NAME0 | latin.len().to_le_bytes()[0]);
    } else {
        out.push(FIELD_NAME_ANY);
        put_stop_bit(out, latin.len().cast_signed() as i64);
    }
    out.extend_from_slice(&latin);
    Ok(())
}

fn number(name: &str) -> Option<i64> {
    name.starts_with(|first: char| first.is_ascii_digit())
        .then(|| name.parse::<i32>().ok())
        .flatten()
        .map(i64::from)
}

fn latin1(name: &str) -> Result<Cow<'_, [u8]>> {
    latin1::encode(name).ok_or_else(|| {
        WireError::new("a name must consist of Latin-1 characters, as in Java")
            .with("name", format_args!("{name:?}"))
    })
}

/// Appends a numeric field name or a method id.
pub fn put_field_number(out: &mut Out, number: i64) {
    out.push(FIELD_NUMBER);
    put_stop_bit(out, number);
}

/// Appends the prefix of a complex key.
pub fn put_object_key(out: &mut Out) {
    out.push(EVENT_OBJECT);
}

/// Appends a value as Java boxes it.
pub fn put_scalar(out: &mut Out, value: Scalar<'_>) -> Result<()> {
    match value {
        Scalar::Null => put_null(out),
        Scalar::Bool(value) => put_bool(out, value),
        Scalar::Int(value) => match i32::try_from(value) {
            Ok(value) => put_number(out, INT32, value.to_le_bytes()),
            Err(_) => put_number(out, INT64, value.to_le_bytes()),
        },
        Scalar::Float(value) => put_boxed_f64(out, value),
        Scalar::Text(value) => put_text(out, value),
        Scalar::Bytes(value) => {
            put_type_prefix(out, "byte[]");
            put_blob(out, value)?;
        }
    }
    Ok(())
}

/// Appends an integer with a fixed width in bits.
pub fn put_boxed_int(out: &mut Out, value: i64, bits: u32) {
    let bytes = value.to_le_bytes();
    match bits {
        8 => out.extend_from_slice(&[INT8, bytes[0]]),
        16 => out.extend_from_slice(&[INT16, bytes[0], bytes[1]]),
        32 => put_number(out, INT32, [bytes[0], bytes[1], bytes[2], bytes[3]]),
        _ => put_number(out, INT64, bytes),
    }
}

/// Appends a 64-bit float without shortening it.
pub fn put_boxed_f64(out: &mut Out, value: f64) {
    put_number(out, FLOAT64, value.to_le_bytes());
}

/// Appends a 32-bit float without shortening it.
pub fn put_boxed_f32(out: &mut Out, value: f32) {
    put_number(out, FLOAT32, value.to_le_bytes());
}

pub fn put_null(out: &mut Out) {
    out.push(NULL);
}

pub fn put_bool(out: &mut Out, value: bool) {
    out.push(if value { TRUE } else { FALSE });
}

/// Appends 64 bits in full width, printed in hexadecimal.
pub fn put_hex(out: &mut Out, value: i64) {
    put_number(out, INT64_0X, value.to_le_bytes());
}

/// Appends 64 bits in full width.
pub fn put_int64(out: &mut Out, value: i64) {
    put_number(out, INT64, value.to_le_bytes());
}

/// Appends a 64-bit float in its shortest form (`docs/format.md` §8.4).
#[allow(clippy::cast_possible_truncation, clippy::float_cmp)] // compared to see what was lost
pub fn put_f64(out: &mut Out, value: f64) {
    if value.trunc() == value {
        return put_integral(out, value);
    }
    let scaled = (value * 1e6).round();
    if scaled / 1e6 == value && -FRACTION_64.0 < scaled && scaled < FRACTION_64.1 {
        return put_fraction(out, scaled as i64);
    }
    let narrow = value as f32;
    if f64::from(narrow) == value || value.is_nan() {
        put_number(out, FLOAT32, narrow.to_le_bytes());
    } else {
        put_number(out, FLOAT64, value.to_le_bytes());
    }
}

/// Appends a 32-bit float in its shortest form (`docs/format.md` §8.4).
#[allow(clippy::cast_possible_truncation, clippy::float_cmp)] // compared to see what was lost
pub fn put_f32(out: &mut Out, value: f32) {
    if value.trunc() == value && value.abs() < INTEGRAL_32 {
        return put_integral(out, f64::from(value));
    }
    let scaled = (f64::from(value) * 1e6).round();
    if (scaled / 1e6) as f32 == value && -FRACTION_32.0 < scaled && scaled < FRACTION_32.1 {
        return put_fraction(out, scaled as i64);
    }
    put_number(out, FLOAT32, value.to_le_bytes());
}

/// Bounds between which fractions are stored as millionths: minus the first, and the second.
const FRACTION_64: (f64, f64) = (34_359_738_368.0, 4_398_046_511_104.0);
const FRACTION_32: (f64, f64) = (16_384.0, 2_097_152.0);
/// From here up, 32-bit floats have no shorter form.
const INTEGRAL_32: f32 = 65_536.0;

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::float_cmp)]
fn put_integral(out: &mut Out, value: f64) {
    let fits_f32 = f64::from(value as f32) == value;
    let number = value as i64; // saturates: the bounds were checked
    match value {
        // An integer has no sign of zero.
        0.0 if value.is_sign_negative() => put_number(out, FLOAT32, (-0.0_f32).to_le_bytes()),
        0.0..=255.0 => put_number(out, UINT8, (number as u8).to_le_bytes()),
        0.0..=65_535.0 => put_number(out, UINT16, (number as u16).to_le_bytes()),
        -128.0..0.0 => put_number(out, INT8, (number as i8).to_le_bytes()),
        -32_768.0..0.0 => put_number(out, INT16, (number as i16).to_le_bytes()),
        _ if fits_f32 => put_number(out, FLOAT32, (value as f32).to_le_bytes()),
        0.0..=4_294_967_295.0 => put_number(out, UINT32, (number as u32).to_le_bytes()),
        -2_147_483_648.0..0.0 => put_number(out, INT32, (number as i32).to_le_bytes()),
        _ => put_number(out, FLOAT64, value.to_le_bytes()),
    }
}

fn put_fraction(out: &mut Out, millionths: i64) {
    let (code, value) = match millionths {
        scaled if scaled % 10_000 == 0 => (FLOAT_STOP_2, scaled / 10_000),
        scaled if scaled % 100 == 0 => (FLOAT_STOP_4, scaled / 100),
        scaled => (FLOAT_STOP_6, scaled),
    };
    out.push(code);
    put_stop_bit(out, value);
}

/// Appends a UUID, high half first.
pub fn put_uuid(out: &mut Out, high: u64, low: u64) {
    put_number(out, UUID, high.to_le_bytes());
    out.extend_from_slice(&low.to_le_bytes());
}

/// Appends a date, a time or both as text, with this code.
pub fn put_temporal(out: &mut Out, code: u8, text: &str) {
    put_long_text(out, code, text.as_bytes());
}

/// Appends a type name as a value.
pub fn put_type_literal(out: &mut Out, name: &str) {
    put_long_text(out, TYPE_LITERAL, name.as_bytes());
}

pub fn put_comment(out: &mut Out, text: &str) {
    put_long_text(out, COMMENT, text.as_bytes());
}

fn put_long_text(out: &mut Out, code: u8, text: &[u8]) {
    out.push(code);
    put_stop_bit(out, text.len().cast_signed() as i64);
    out.extend_from_slice(text);
}

/// Appends an array of 64-bit integers with this capacity, 8-aligned in the document.
pub fn put_longs(out: &mut Out, used: &[i64], capacity: usize) {
    pad_before_code(out, 8);
    let count = |count: usize| (count.cast_signed() as i64).to_le_bytes();
    put_number(out, I64_ARRAY, count(capacity.max(used.len())));
    out.extend_from_slice(&count(used.len()));
    for value in used {
        out.extend_from_slice(&value.to_le_bytes());
    }
    out.fill(8 * capacity.saturating_sub(used.len()), 0);
}

/// Appends a block of bytes in its shortest form.
pub fn put_blob(out: &mut Out, value: &[u8]) -> Result<()> {
    put_length(out, value.len() + 1)?;
    out.push(U8_ARRAY);
    out.extend_from_slice(value);
    Ok(())
}

/// Appends the code and length of a block in the shortest form.
pub fn put_length(out: &mut Out, length: usize) -> Result<()> {
    if let Ok(length) = u8::try_from(length) {
        put_number(out, BYTES_LENGTH8, length.to_le_bytes());
    } else if let Ok(length) = u16::try_from(length) {
        put_number(out, BYTES_LENGTH16, length.to_le_bytes());
    } else {
        let length = u32::try_from(length)
            .map_err(|_| WireError::new("the block is too long").with("length", length))?;
        put_number(out, BYTES_LENGTH32, length.to_le_bytes());
    }
    Ok(())
}

/// The token before a string of `length` bytes, for strings that are not copied, and how many of
/// its bytes are in use.
#[must_use]
pub fn text_head(length: usize) -> ([u8; 11], usize) {
    let mut head = [0; 11];
    if length <= SHORT_LENGTH_MAX {
        head[0] = STRING_0 | length.to_le_bytes()[0];
        return (head, 1);
    }
    head[0] = STRING_ANY;
    let (mut used, mut rest) = (1, length);
    while rest > 0x7F {
        head[used] = rest.to_le_bytes()[0] | 0x80;
        (used, rest) = (used + 1, rest >> 7);
    }
    head[used] = rest.to_le_bytes()[0];
    (head, used + 1)
}

/// A string's bytes as Java stores them; None if they are plain UTF-8.
pub fn stored_text(text: &[u8]) -> Result<Option<Vec<u8>>> {
    let has_wide = text.iter().any(|byte| *byte >= 0xF0);
    let Some(text) = std::str::from_utf8(text).ok().filter(|_| has_wide) else { return Ok(None) };
    let mut out = Out::new();
    put_cesu8(&mut out, text);
    out.finish().map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reader::Reader;

    fn scalar(value: Scalar<'_>) -> Out {
        let mut out = Out::new();
        put_scalar(&mut out, value).unwrap();
        out
    }

    #[test]
    fn values_are_those_of_javas_maps() {
        assert_eq!(scalar(Scalar::Int(5)), [0xA6, 5, 0, 0, 0]);
        assert_eq!(scalar(Scalar::Int(1 << 31)), [0xA7, 0, 0, 0, 0x80, 0, 0, 0, 0]);
        assert_eq!(scalar(Scalar::Null), [0xBB]);
        assert_eq!(scalar(Scalar::Text("hello")), *b"\xE5hello");
        assert_eq!(scalar(Scalar::Bytes(&[1, 2, 255])), *b"\xB6\x06byte[]\x80\x04\x8A\x01\x02\xFF");
    }

    #[test]
    fn a_key_outside_latin_1_is_refused() {
        let mut out = Out::new();
        put_key(&mut out, "\u{e9}").unwrap();
        assert_eq!(out, [0xB9, 1, 0xE9]);
        assert!(put_key(&mut out, "\u{20ac}").is_err());
    }

    #[test]
    fn floats_are_those_of_the_table() {
        let cases: [(f64, &[u8]); 18] = [
            (1.0, &[0xA1, 1]),
            (-0.0, &[0x90, 0, 0, 0, 0x80]),
            (0.0, &[0xA1, 0]),
            (256.0, &[0xA2, 0, 1]),
            (65_536.0, &[0x90, 0, 0, 0x80, 0x47]),
            (16_777_217.0, &[0xA3, 1, 0, 0, 1]),
            (1e15, &[0x91, 0, 0, 0x34, 0x26, 0xF5, 0x6B, 0x0C, 0x43]),
            (-1.0, &[0xA4, 0xFF]),
            (-40_000.0, &[0x90, 0, 0x40, 0x1C, 0xC7]),
            (1.5, &[0x92, 0x96, 1]),
            (0.001, &[0x94, 0x0A]),
            (1e-6, &[0x96, 1]),
            (-2.5, &[0x92, 0xF9, 0x81, 0]),
            (1.000_001, &[0x96, 0xC1, 0x84, 0x3D]),
            (123_456.789, &[0x94, 0xD2, 0x85, 0xD8, 0xCC, 4]),
            (f64::NAN, &[0x90, 0, 0, 0xC0, 0x7F]),
            (f64::INFINITY, &[0x90, 0, 0, 0x80, 0x7F]),
            (std::f64::consts::PI, &[0x91, 0x18, 0x2D, 0x44, 0x54, 0xFB, 0x21, 9, 0x40]),
        ];
        for (value, bytes) in cases {
            let mut out = Out::new();
            put_f64(&mut out, value);
            assert_eq!(out, bytes, "{value}");
        }
    }

    #[test]
    fn field_names_of_digits_are_numbers() {
        let cases: [(&str, &[u8]); 5] = [
            ("12", &[0xBA, 12]),
            ("0", &[0xBA, 0]),
            ("007", &[0xBA, 7]),
            ("1a", b"\xC21a"),
            ("", &[0xC0]),
        ];
        for (name, bytes) in cases {
            let mut out = Out::new();
            put_field(&mut out, name).unwrap();
            assert_eq!(out, bytes, "{name}");
        }
        let mut out = Out::new();
        put_field(&mut out, &"x".repeat(32)).unwrap();
        assert_eq!(out[..2], [0xB7, 32]);
    }

    fn written(put: impl FnOnce(&mut Out)) -> Out {
        let mut out = Out::new();
        put(&mut out);
        out
    }

    #[test]
    fn stop_bits_are_those_of_the_table() {
        let cases: [(i64, &[u8]); 8] = [
            (0, &[0]),
            (-1, &[0x80, 0]),
            (127, &[0x7f]),
            (128, &[0x80, 1]),
            (-129, &[0x80, 0x81, 0]),
            (16384, &[0x80, 0x80, 1]),
            (i64::MAX, &[255, 255, 255, 255, 255, 255, 255, 255, 0x7f]),
            (i64::MIN, &[255, 255, 255, 255, 255, 255, 255, 255, 255, 0]),
        ];
        for (value, bytes) in cases {
            assert_eq!(written(|out| put_stop_bit(out, value)), bytes, "{value}");
            assert_eq!(Reader::new(bytes).stop_bit(), Some(value));
        }
    }

    #[test]
    fn compact_integers_are_those_of_the_table() {
        let cases: [(i64, &[u8]); 9] = [
            (255, &[0xA1, 255]),
            (256, &[0xA5, 0, 1]),
            (32_768, &[0xA2, 0, 0x80]),
            (65_536, &[0xA6, 0, 0, 1, 0]),
            (1 << 31, &[0xA3, 0, 0, 0, 0x80]),
            (-1, &[0xA4, 0xFF]),
            (1 << 32, &[0x90, 0, 0, 0x80, 0x4F]),
            ((1 << 32) + 1, &[0xA7, 1, 0, 0, 0, 1, 0, 0, 0]),
            (i64::MAX, &[0x90, 0, 0, 0, 0x5F]),
        ];
        for (value, bytes) in cases {
            assert_eq!(written(|out| put_compact(out, value)), bytes, "{value}");
        }
    }

    #[test]
    fn a_character_beyond_the_first_plane_becomes_two_surrogates() {
        let expected = [0xE6, 0xED, 0xA0, 0xBD, 0xED, 0xB8, 0x80];
        assert_eq!(written(|out| put_text(out, "\u{1F600}")), expected);
    }
}
