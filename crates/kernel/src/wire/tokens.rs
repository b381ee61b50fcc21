//! BinaryWire tokens, written (`docs/format.md` §8.2-8.5). Each function appends one.

use super::codes::{
    BYTES_LENGTH32, EVENT_NAME, FIELD_NAME0, FLOAT32, INT8, INT16, INT32, INT64, PADDING,
    PADDING32, SHORT_LENGTH_MAX, STRING_0, STRING_ANY, TYPE_PREFIX, UINT8, UINT16, UINT32,
};

/// Appends a stop-bit integer (`docs/format.md` §8.2).
pub fn put_stop_bit(out: &mut Vec<u8>, value: i64) {
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

/// Appends padding so that the byte after the next code sits at a multiple of `alignment`
/// (`docs/format.md` §3.2).
pub fn pad_before_code(out: &mut Vec<u8>, alignment: usize) {
    let code_end = out.len() + 1;
    put_padding(out, code_end.next_multiple_of(alignment) - code_end);
}

/// Appends `count` bytes of padding: single bytes below 5, one run from there on.
pub fn put_padding(out: &mut Vec<u8>, count: usize) {
    const RUN: usize = 5;
    if let Some(inside) = count.checked_sub(RUN) {
        out.push(PADDING32);
        out.extend_from_slice(&u32::try_from(inside).unwrap_or(0).to_le_bytes());
        out.resize(out.len() + inside, 0);
    } else {
        out.resize(out.len() + count, PADDING);
    }
}

/// Appends an integer in the shortest form, as Java's generated writers choose it
/// (`docs/format.md` §8.3).
pub fn put_compact(out: &mut Vec<u8>, value: i64) {
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

/// The float that converts back to this integer, by Java's saturating cast.
#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation)]
fn exact_f32(value: i64) -> Option<f32> {
    let float = value as f32;
    (float as i64 == value).then_some(float)
}

/// Appends a code and the little-endian bytes of a number.
pub fn put_number<const N: usize>(out: &mut Vec<u8>, code: u8, bytes: [u8; N]) {
    out.push(code);
    out.extend_from_slice(&bytes);
}

/// Appends a string value. Characters beyond the first 65,536 become two surrogates of three bytes
/// each, as Java writes them (CESU-8, `docs/format.md` §8.5).
pub fn put_text(out: &mut Vec<u8>, text: &str) {
    if text.bytes().any(|byte| byte >= 0xF0) {
        put_text_bytes(out, &cesu8(text));
    } else {
        put_text_bytes(out, text.as_bytes());
    }
}

/// Appends a string value that is encoded already.
pub fn put_text_bytes(out: &mut Vec<u8>, text: &[u8]) {
    if text.len() <= SHORT_LENGTH_MAX {
        out.push(STRING_0 | text.len().to_le_bytes()[0]);
    } else {
        out.push(STRING_ANY);
        put_stop_bit(out, text.len().cast_signed() as i64);
    }
    out.extend_from_slice(text);
}

/// UTF-8 with surrogates encoded as three bytes each.
#[must_use]
pub fn cesu8(text: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() * 3 / 2);
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
    out
}

/// Appends an event name.
pub fn put_event(out: &mut Vec<u8>, name: impl AsRef<[u8]>) {
    let name = name.as_ref();
    out.push(EVENT_NAME);
    put_stop_bit(out, name.len().cast_signed() as i64);
    out.extend_from_slice(name);
}

/// Appends a field name of less than 32 bytes.
pub fn put_field(out: &mut Vec<u8>, name: &'static str) {
    debug_assert!(name.len() <= SHORT_LENGTH_MAX);
    out.push(FIELD_NAME0 | name.len().to_le_bytes()[0]);
    out.extend_from_slice(name.as_bytes());
}

/// Appends a type prefix and an open block; [`close_block`] wants the place returned.
pub fn open_object(out: &mut Vec<u8>, name: &str) -> usize {
    put_type_prefix(out, name);
    open_block(out)
}

/// Appends the name of the following value's type.
pub fn put_type_prefix(out: &mut Vec<u8>, name: &str) {
    out.push(TYPE_PREFIX);
    put_stop_bit(out, name.len().cast_signed() as i64);
    out.extend_from_slice(name.as_bytes());
}

/// Appends an open block of a 32-bit length.
pub fn open_block(out: &mut Vec<u8>) -> usize {
    out.push(BYTES_LENGTH32);
    out.extend_from_slice(&[0; 4]);
    out.len()
}

/// Fills in the length of a block.
pub fn close_block(out: &mut [u8], start: usize) {
    let length = u32::try_from(out.len() - start).unwrap_or(u32::MAX);
    out[start - 4..start].copy_from_slice(&length.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::cursor::Cursor;

    fn written(put: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let mut out = Vec::new();
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
            assert_eq!(Cursor::new(bytes).stop_bit(), Some(value));
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
