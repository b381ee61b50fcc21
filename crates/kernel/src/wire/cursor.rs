//! BinaryWire tokens, read (`docs/format.md` §8).

use super::codes::{
    BYTES_LENGTH8, BYTES_LENGTH16, BYTES_LENGTH32, EVENT_NAME, FALSE, FIELD_NAME_ANY, FIELD_NAME0,
    FLOAT_STOP_2, FLOAT_STOP_4, FLOAT_STOP_6, FLOAT32, FLOAT64, I64_ARRAY, INT8, INT16, INT32,
    INT64, INT64_0X, NULL, PADDING, PADDING32, SET_LOW_INT8, SET_LOW_INT16, SHORT_LENGTH_MASK,
    STRING_0, STRING_ANY, TIME, TRUE, TYPE_LITERAL, TYPE_PREFIX, UINT8, UINT16, UINT32,
    ZONED_DATE_TIME,
};

/// A place in the bytes of one document. Every method returns None where the bytes end early or
/// are of another kind; nothing is read outside them.
#[derive(Clone, Copy, Debug)]
pub struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Where `bytes` begin in the document.
    base: usize,
}

impl<'a> Cursor<'a> {
    /// A cursor at the start of `bytes`.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, base: 0 }
    }

    /// The offset of the next byte, in the document.
    #[must_use]
    pub const fn offset(&self) -> usize {
        self.base + self.at
    }

    /// The cursor at an offset that it has passed.
    #[must_use]
    pub const fn back_to(&self, offset: usize) -> Self {
        let at = offset.saturating_sub(self.base);
        Self { bytes: self.bytes, at: if at < self.at { at } else { self.at }, base: self.base }
    }

    /// The code under the cursor, padding skipped; None at the end.
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

    /// The next code, padding skipped.
    pub fn code(&mut self) -> Option<u8> {
        let code = self.peek()?;
        self.at += 1;
        Some(code)
    }

    /// The next `count` bytes.
    pub fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let end = self.at.checked_add(count)?;
        let found = self.bytes.get(self.at..end)?;
        self.at = end;
        Some(found)
    }

    /// Steps over these bytes if they are next.
    #[inline]
    pub fn take_if(&mut self, expected: &[u8]) -> bool {
        let found = self.rest().starts_with(expected);
        if found {
            self.at += expected.len();
        }
        found
    }

    /// The next `N` bytes.
    pub fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    /// The next u32.
    pub fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    /// The next stop-bit integer (`docs/format.md` §8.2).
    pub fn stop_bit(&mut self) -> Option<i64> {
        let (mut value, mut shift) = (0_u64, 0);
        loop {
            let [byte] = self.array()?;
            if byte == 0 && shift > 0 {
                return Some(!value.cast_signed());
            }
            if shift > 63 {
                return None;
            }
            value |= u64::from(byte & 0x7F) << shift;
            shift += 7;
            if byte & 0x80 == 0 {
                return i64::try_from(value).ok();
            }
        }
    }

    /// Bytes behind a stop-bit length.
    pub fn stop_bit_bytes(&mut self) -> Option<&'a [u8]> {
        let count = usize::try_from(self.stop_bit()?).ok()?;
        self.take(count)
    }

    /// A field or event name, or None with the cursor unmoved if the next token is none.
    pub fn name(&mut self) -> Option<&'a [u8]> {
        let start = *self;
        let found = match self.code()? {
            EVENT_NAME | FIELD_NAME_ANY => self.stop_bit_bytes(),
            code @ FIELD_NAME0..STRING_0 => self.take(usize::from(code & SHORT_LENGTH_MASK)),
            _ => None,
        };
        if found.is_none() {
            *self = start;
        }
        found
    }

    /// An integer of any width, or None with the cursor unmoved if the next token is none.
    pub fn integer(&mut self) -> Option<i64> {
        let start = *self;
        let found = self.code().and_then(|code| self.integer_after(code));
        if found.is_none() {
            *self = start;
        }
        found
    }

    /// The integer whose code was `code`.
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

    /// A string of any length, or None with the cursor unmoved if the next token is none.
    pub fn string(&mut self) -> Option<&'a [u8]> {
        let start = *self;
        let found = match self.code()? {
            TIME..=ZONED_DATE_TIME | STRING_ANY => self.stop_bit_bytes(),
            code @ STRING_0..=0xFF => self.take(usize::from(code & SHORT_LENGTH_MASK)),
            _ => None,
        };
        if found.is_none() {
            *self = start;
        }
        found
    }

    /// A type prefix, or None with the cursor unmoved if the next token is none.
    pub fn type_prefix(&mut self) -> Option<&'a [u8]> {
        let start = *self;
        let found = if self.code()? == TYPE_PREFIX { self.stop_bit_bytes() } else { None };
        if found.is_none() {
            *self = start;
        }
        found
    }

    /// A cursor over the content of a length-prefixed block, or None with the cursor unmoved.
    pub fn block(&mut self) -> Option<Cursor<'a>> {
        let start = *self;
        let found = self.code().and_then(|code| self.block_after(code));
        if found.is_none() {
            *self = start;
        }
        found
    }

    /// The block whose code was `code`.
    pub fn block_after(&mut self, code: u8) -> Option<Cursor<'a>> {
        let count = match code {
            BYTES_LENGTH8 => self.array().map(|[byte]| usize::from(byte))?,
            BYTES_LENGTH16 => self.array().map(|b| usize::from(u16::from_le_bytes(b)))?,
            BYTES_LENGTH32 => self.u32()? as usize,
            _ => return None,
        };
        let base = self.offset();
        self.take(count).map(|bytes| Cursor { bytes, at: 0, base })
    }

    /// The bytes not read yet.
    #[must_use]
    pub fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    /// Steps over one value of a known kind; None where it is not one.
    pub fn skip_value(&mut self) -> Option<()> {
        while self.type_prefix().is_some() {}
        let code = self.code()?;
        match code {
            FALSE | TRUE | NULL => Some(()),
            FLOAT32 => self.take(4).map(drop),
            FLOAT64 => self.take(8).map(drop),
            FLOAT_STOP_2 | FLOAT_STOP_4 | FLOAT_STOP_6 => self.stop_bit().map(drop),
            TIME..=ZONED_DATE_TIME | STRING_ANY | TYPE_LITERAL => self.stop_bit_bytes().map(drop),
            STRING_0..=0xFF => self.take(usize::from(code & SHORT_LENGTH_MASK)).map(drop),
            BYTES_LENGTH8..=BYTES_LENGTH32 => self.block_after(code).map(drop),
            I64_ARRAY => {
                let capacity = self.array().map(i64::from_le_bytes)?;
                let slots = usize::try_from(capacity).ok()?.checked_add(1)?;
                self.take(slots.checked_mul(8)?).map(drop)
            }
            _ => self.integer_after(code).map(drop),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stop_bit_without_an_end_is_refused() {
        assert_eq!(Cursor::new(&[0x80; 20]).stop_bit(), None);
    }
}
