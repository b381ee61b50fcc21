//! Fields of a payload, as the `Bytes` of Java's Chronicle 3 write and read them: little-endian.
//!
//! A text is its length as a stop-bit number, then each UTF-16 unit in one to three bytes:
//! characters beyond U+FFFF become two units of three bytes, and U+0000 is one byte.

use std::borrow::Cow;

use quire_wire as wire;
use quire_wire::out::Out;
use quire_wire::writer::{cesu8_length, put_cesu8};

/// Why a field cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    /// What is wrong.
    pub what: &'static str,
    /// Where in the payload.
    pub position: usize,
    /// Bytes of the payload.
    pub length: usize,
}

type Result<T> = std::result::Result<T, FieldError>;

/// Appends fields to a payload.
#[derive(Debug, Default)]
pub struct FieldWriter(Out);

impl FieldWriter {
    /// A writer that appends to `bytes`.
    #[must_use]
    pub fn after(bytes: Vec<u8>) -> Self {
        Self(bytes.into())
    }

    /// The payload so far.
    pub fn bytes(&self) -> wire::Result<&[u8]> {
        self.0.written()
    }

    /// The length of the payload so far.
    #[must_use]
    pub const fn length(&self) -> usize {
        self.0.len()
    }

    /// Whether there was memory for all fields since the last call.
    pub fn check(&mut self) -> wire::Result<()> {
        self.0.check()
    }

    /// Removes everything after `length` bytes.
    pub fn truncate(&mut self, length: usize) {
        self.0.truncate(length);
    }

    /// Puts raw bytes, also of fixed-width numbers.
    pub fn put(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    /// 7 bits a byte, the lowest first; a negative number inverted, with a zero byte at its end.
    pub fn put_stop_bit(&mut self, value: i64) {
        let is_negative = value < 0;
        let mut rest = if is_negative { !value } else { value }.cast_unsigned();
        loop {
            let byte = low_byte(rest & 0x7f);
            rest >>= 7;
            if rest == 0 && !is_negative {
                return self.0.push(byte);
            }
            self.0.push(byte | 0x80);
            if rest == 0 {
                return self.0.push(0);
            }
        }
    }

    /// A text, or none.
    pub fn put_utf(&mut self, text: Option<&str>) {
        let Some(text) = text else { return self.put_stop_bit(-1) };
        self.put_stop_bit(i64::try_from(cesu8_length(text)).unwrap_or(i64::MAX));
        self.put_text(text);
    }

    /// A text after its length in 16 bits; false if it is too long for them.
    #[must_use]
    pub fn put_short_utf(&mut self, text: &str) -> bool {
        let Ok(length) = u16::try_from(cesu8_length(text)) else { return false };
        self.put(&length.to_le_bytes());
        self.put_text(text);
        true
    }

    /// The text's bytes without a length.
    pub fn put_text(&mut self, text: &str) {
        put_cesu8(&mut self.0, text);
    }

    /// The name of an enum's value: one byte for each character; false if one needs more.
    #[must_use]
    pub fn put_enum(&mut self, name: &str) -> bool {
        let bytes: Option<Vec<u8>> = name.chars().map(|it| u8::try_from(it).ok()).collect();
        let Some(bytes) = bytes else { return false };
        self.put_stop_bit(i64::try_from(bytes.len()).unwrap_or(i64::MAX));
        self.0.extend_from_slice(&bytes);
        true
    }

    /// Two bytes, or six for a number that does not fit them.
    pub fn put_compact_int(&mut self, value: i32) {
        match value {
            i32::MIN => self.put(&i16::MIN.to_le_bytes()),
            i32::MAX => self.put(&(i16::MIN + 2).to_le_bytes()),
            _ => match i16::try_from(value) {
                Ok(short) if short > i16::MIN + 2 => self.put(&short.to_le_bytes()),
                _ => {
                    self.put(&(i16::MIN + 1).to_le_bytes());
                    self.put(&value.to_le_bytes());
                }
            },
        }
    }

    /// Four bytes, or twelve for a number that does not fit them.
    pub fn put_compact_long(&mut self, value: i64) {
        match value {
            i64::MIN => self.put(&i32::MIN.to_le_bytes()),
            i64::MAX => self.put(&(i32::MIN + 2).to_le_bytes()),
            _ => match i32::try_from(value) {
                Ok(int) if int > i32::MIN + 2 => self.put(&int.to_le_bytes()),
                _ => {
                    self.put(&(i32::MIN + 1).to_le_bytes());
                    self.put(&value.to_le_bytes());
                }
            },
        }
    }

    /// Four bytes for what a float32 holds exactly, or twelve.
    pub fn put_compact_double(&mut self, value: f64) {
        #[allow(clippy::cast_possible_truncation)] // whether it does is the question
        let float = value as f32;
        if f64::from(float).to_bits() == value.to_bits() && !value.is_nan() {
            return self.put(&float.to_le_bytes());
        }
        self.put(&f32::NAN.to_le_bytes());
        self.put(&value.to_le_bytes());
    }
}

/// Reads fields from a payload.
#[derive(Clone, Copy, Debug)]
pub struct FieldReader<'a> {
    /// The payload, or a part of it.
    bytes: &'a [u8],
    /// Where that part starts in the payload.
    start: usize,
    /// Where the next field starts in the part.
    position: usize,
    /// Whether the payload continues after the part.
    goes_on: bool,
}

impl<'a> FieldReader<'a> {
    /// A reader from a position on.
    #[must_use]
    pub const fn at(bytes: &'a [u8], position: usize) -> Self {
        Self { bytes, start: 0, position, goes_on: false }
    }

    /// A reader of the part of a payload that starts at `start`. A field that does not end in the
    /// part is an error; for digits, only if the payload continues after the part.
    #[must_use]
    pub const fn of_part(bytes: &'a [u8], start: usize, goes_on: bool) -> Self {
        Self { bytes, start, position: 0, goes_on }
    }

    /// Where the next field starts.
    #[must_use]
    pub const fn position(&self) -> usize {
        self.start + self.position
    }

    /// Whether the payload continues after the part being read.
    #[must_use]
    pub(super) const fn goes_on(&self) -> bool {
        self.goes_on
    }

    pub(super) fn error(&self, what: &'static str) -> FieldError {
        let (position, length) = (self.position(), self.start + self.bytes.len());
        FieldError { what, position, length }
    }

    /// The next bytes.
    pub fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        let end = self.position.checked_add(count).filter(|end| *end <= self.bytes.len());
        let end = end.ok_or_else(|| self.error("the message ends within the field"))?;
        let bytes = &self.bytes[self.position..end];
        self.position = end;
        Ok(bytes)
    }

    /// The next bytes of a fixed-width number.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    /// A stop-bit number.
    pub fn stop_bit(&mut self) -> Result<i64> {
        let start = *self;
        let (mut value, mut shift) = (0_u64, 0_u32);
        loop {
            let [byte] = self.array()?;
            let bits = u64::from(byte & 0x7f);
            if shift > 63 || (shift == 63 && bits > 1) {
                // After the highest bits of a negative number only its end may follow.
                let is_end = byte == 0;
                return if is_end {
                    Ok(!value.cast_signed())
                } else {
                    Err(start.error("no stop-bit number"))
                };
            }
            if byte == 0 && shift > 0 {
                return Ok(!value.cast_signed());
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(value.cast_signed());
            }
            shift += 7;
        }
    }

    /// A text, or none.
    pub fn utf(&mut self) -> Result<Option<Cow<'a, str>>> {
        let start = *self;
        let length = self.stop_bit()?;
        if length == -1 {
            return Ok(None);
        }
        let length = usize::try_from(length).map_err(|_| start.error("no length of a text"))?;
        let bytes = self.take(length)?;
        text(bytes).map(Some).ok_or_else(|| start.error("no text"))
    }

    /// As [`FieldWriter::put_short_utf`] stored it.
    pub fn short_utf(&mut self) -> Result<Cow<'a, str>> {
        let start = *self;
        let length = u16::from_le_bytes(self.array()?);
        let bytes = self.take(usize::from(length))?;
        text(bytes).ok_or_else(|| start.error("no text"))
    }

    /// The name of an enum's value, or none.
    pub fn enum_name(&mut self) -> Result<Option<String>> {
        let start = *self;
        let length = self.stop_bit()?;
        if length == -1 {
            return Ok(None);
        }
        let length = usize::try_from(length).map_err(|_| start.error("no length of a name"))?;
        Ok(Some(self.take(length)?.iter().map(|byte| char::from(*byte)).collect()))
    }

    /// As [`FieldWriter::put_compact_int`] stored it.
    pub fn compact_int(&mut self) -> Result<i32> {
        let short = i16::from_le_bytes(self.array()?);
        Ok(match short.wrapping_sub(i16::MIN) {
            0 => i32::MIN,
            1 => i32::from_le_bytes(self.array()?),
            2 => i32::MAX,
            _ => i32::from(short),
        })
    }

    /// As [`FieldWriter::put_compact_long`] stored it.
    pub fn compact_long(&mut self) -> Result<i64> {
        let int = i32::from_le_bytes(self.array()?);
        Ok(match int.wrapping_sub(i32::MIN) {
            0 => i64::MIN,
            1 => i64::from_le_bytes(self.array()?),
            2 => i64::MAX,
            _ => i64::from(int),
        })
    }

    /// As [`FieldWriter::put_compact_double`] stored it.
    pub fn compact_double(&mut self) -> Result<f64> {
        let float = f32::from_le_bytes(self.array()?);
        if float.is_nan() { Ok(f64::from_le_bytes(self.array()?)) } else { Ok(f64::from(float)) }
    }

    /// The unread rest of the part.
    pub(super) fn rest(&self) -> &'a [u8] {
        &self.bytes[self.position.min(self.bytes.len())..]
    }

    /// Skips bytes, which must exist.
    pub(super) const fn skip(&mut self, count: usize) {
        self.position += count;
    }
}

fn low_byte(bits: u64) -> u8 {
    bits.to_le_bytes()[0]
}

/// The text in these bytes; None if they are not valid.
#[must_use]
pub fn text(bytes: &[u8]) -> Option<Cow<'_, str>> {
    // Java's bytes are UTF-8 except for characters beyond U+FFFF.
    if let Ok(text) = std::str::from_utf8(bytes) {
        return bytes.iter().all(|byte| *byte < 0xf0).then_some(Cow::Borrowed(text));
    }
    let mut units = Vec::with_capacity(bytes.len());
    let mut rest = bytes.iter().copied();
    while let Some(first) = rest.next() {
        let mut more =
            || rest.next().filter(|byte| byte >> 6 == 0b10).map(|byte| u16::from(byte & 0x3f));
        units.push(match first {
            0..0x80 => u16::from(first),
            0xc0..0xe0 => u16::from(first & 0x1f) << 6 | more()?,
            0xe0..0xf0 => u16::from(first & 0xf) << 12 | more()? << 6 | more()?,
            _ => return None,
        });
    }
    String::from_utf16(&units).ok().map(Cow::Owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(put: impl FnOnce(&mut FieldWriter)) -> Vec<u8> {
        let mut writer = FieldWriter::default();
        put(&mut writer);
        writer.0.finish().unwrap()
    }

    #[test]
    fn stop_bit_numbers_are_those_of_java() {
        let cases: [(i64, &[u8]); 6] = [
            (0, &[0]),
            (4, &[4]),
            (4096, &[0x80, 0x20]),
            (-1, &[0x80, 0]),
            (-4, &[0x83, 0]),
            (68_719_476_736, &[0x80, 0x80, 0x80, 0x80, 0x80, 2]),
        ];
        for (value, bytes) in cases {
            assert_eq!(written(|it| it.put_stop_bit(value)), bytes, "{value}");
        }
        for value in [i64::MIN, i64::MIN + 1, -129, -128, -127, 127, 128, i64::MAX - 1, i64::MAX] {
            let bytes = written(|it| it.put_stop_bit(value));
            let mut reader = FieldReader::at(&bytes, 0);
            assert_eq!((reader.stop_bit(), reader.position()), (Ok(value), bytes.len()));
        }
        assert!(FieldReader::at(&[0xff; 20], 0).stop_bit().is_err());
    }

    #[test]
    fn texts_are_those_of_java() {
        let bytes = written(|it| it.put_utf(Some("caf\u{e9}")));
        assert_eq!(bytes, [5, b'c', b'a', b'f', 0xc3, 0xa9]);
        for text in ["", "\0", "\u{4f60} \u{20ac}", "\u{1f600}!"] {
            let bytes = written(|it| it.put_utf(Some(text)));
            assert_eq!(FieldReader::at(&bytes, 0).utf(), Ok(Some(text.into())));
        }
        assert_eq!(written(|it| it.put_utf(None)), [0x80, 0]);
        assert_eq!(FieldReader::at(&[0x80, 0], 0).utf(), Ok(None));
        assert_eq!(written(|it| it.put_utf(Some("\u{1f600}"))).len(), 7);
        for bytes in [&[2, 0xc3][..], &[2, 0xc3, 0x28], &[1, 0xff], &[0xfe, 0xff, 3]] {
            assert!(FieldReader::at(bytes, 0).utf().is_err(), "{bytes:x?}");
        }
    }

    #[test]
    fn compact_numbers_are_those_of_java() {
        assert_eq!(written(|it| it.put_compact_int(4000)), [0xa0, 0x0f]);
        assert_eq!(written(|it| it.put_compact_int(36_000)), [1, 0x80, 0xa0, 0x8c, 0, 0]);
        assert_eq!(
            written(|it| it.put_compact_long(4_000_000_028)),
            [1, 0, 0, 0x80, 0x1c, 0x28, 0x6b, 0xee, 0, 0, 0, 0]
        );
        assert_eq!(written(|it| it.put_compact_double(0.5)), 0.5_f32.to_le_bytes());
        let bytes = written(|it| it.put_compact_double(0.4));
        assert_eq!(bytes[..4], [0, 0, 0xc0, 0x7f]);
        for value in [i32::MIN, i32::MIN + 1, -32_768, -32_766, -32_765, 0, 32_767, i32::MAX] {
            let bytes = written(|it| it.put_compact_int(value));
            assert_eq!(FieldReader::at(&bytes, 0).compact_int(), Ok(value));
            let bytes = written(|it| it.put_compact_long(i64::from(value) * 7));
            assert_eq!(FieldReader::at(&bytes, 0).compact_long(), Ok(i64::from(value) * 7));
        }
        for value in [0.0, -0.0, 0.1, f64::INFINITY, f64::MAX] {
            let bytes = written(|it| it.put_compact_double(value));
            let read = FieldReader::at(&bytes, 0).compact_double().unwrap();
            assert_eq!(read.to_bits(), value.to_bits());
        }
    }
}
