//! Unpacking: fields in the order in which they were packed. Nothing is read past the message.

use super::field::{FieldError, Result};

/// The fields of a message, from a position on.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'a> {
    message: &'a [u8],
    position: usize,
}

impl<'a> Fields<'a> {
    /// The fields of `message`, from the first one on.
    #[must_use]
    pub const fn new(message: &'a [u8]) -> Self {
        Self { message, position: 0 }
    }

    /// The fields of `message` from `position` on, which is at most its length.
    #[must_use]
    pub fn from(message: &'a [u8], position: usize) -> Self {
        Self { message, position: position.min(message.len()) }
    }

    /// Where the next field starts.
    #[must_use]
    pub const fn position(&self) -> usize {
        self.position
    }

    /// The number of remaining bytes.
    #[must_use]
    pub const fn remaining(&self) -> usize {
        self.message.len() - self.position
    }

    /// The next `N` bytes.
    pub fn take<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N]> {
        let Some(bytes) = self.message[self.position..].first_chunk() else {
            return Err(self.past_end(field, N as u64));
        };
        self.position += N;
        Ok(*bytes)
    }

    /// The next `count` bytes.
    pub fn take_many(&mut self, field: &'static str, count: u64) -> Result<&'a [u8]> {
        let rest = &self.message[self.position..];
        let bytes = usize::try_from(count).ok().and_then(|count| rest.get(..count));
        let bytes = bytes.ok_or_else(|| self.past_end(field, count))?;
        self.position += bytes.len();
        Ok(bytes)
    }

    /// Bytes preceded by their length.
    pub fn counted(&mut self, field: &'static str) -> Result<&'a [u8]> {
        let mut ahead = *self;
        let length = i32::from_le_bytes(ahead.take(field)?);
        let Ok(count) = u64::try_from(length) else {
            let (position, found) = (self.position, format!("length {length}"));
            let expected = "a length of at least 0";
            return Err(FieldError::Unexpected { field, position, found, expected });
        };
        let bytes = ahead.take_many(field, count)?;
        *self = ahead;
        Ok(bytes)
    }

    /// ASCII characters up to a NUL.
    pub fn string(&mut self) -> Result<&'a str> {
        const FIELD: &str = "string";
        let rest = &self.message[self.position..];
        let end = rest.iter().position(|byte| *byte == 0);
        let text = &rest[..end.ok_or_else(|| self.unterminated(FIELD))?];
        if let Some(place) = text.iter().position(|byte| !byte.is_ascii()) {
            return Err(FieldError::Unexpected {
                field: FIELD,
                position: self.position + place,
                found: format!("{:#04x}", text[place]),
                expected: "ASCII characters",
            });
        }
        self.position += text.len() + 1;
        Ok(std::str::from_utf8(text).unwrap_or_default())
    }

    /// UTF-16 units up to a zero unit, the lowest byte first.
    pub fn unicode(&mut self) -> Result<&'a [u8]> {
        const FIELD: &str = "unicode";
        let (units, _) = self.message[self.position..].as_chunks::<2>();
        let end = units.iter().position(|unit| *unit == [0, 0]);
        let text = units[..end.ok_or_else(|| self.unterminated(FIELD))?].as_flattened();
        self.position += text.len() + 2;
        Ok(text)
    }

    fn past_end(&self, field: &'static str, needed: u64) -> FieldError {
        let (position, length) = (self.position, self.message.len());
        FieldError::PastEnd { field, position, needed, length }
    }

    const fn unterminated(&self, field: &'static str) -> FieldError {
        let (position, length) = (self.position, self.message.len());
        FieldError::Unterminated { field, position, length }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_come_in_their_order() {
        let message = [7, 0, 0, 0, b'A', 0, 0x2D, 0x4E, 0, 0, 1, 0, 0, 0, 9];
        let mut fields = Fields::new(&message);
        assert_eq!(i32::from_le_bytes(fields.take("int").unwrap()), 7);
        assert_eq!(fields.string().unwrap(), "A");
        assert_eq!(fields.unicode().unwrap(), [0x2D, 0x4E]);
        assert_eq!(fields.counted("bytes").unwrap(), [9]);
        assert_eq!((fields.position(), fields.remaining()), (15, 0));
    }

    #[test]
    fn nothing_is_read_past_the_message() {
        for length in 0..4 {
            let message = vec![0xFF; length];
            let mut fields = Fields::new(&message);
            assert!(fields.take::<4>("int").is_err());
            assert!(fields.string().is_err());
            assert!(fields.unicode().is_err());
            assert!(fields.counted("bytes").is_err());
            assert_eq!(fields.position(), 0, "a failed read leaves the position");
        }
        let negative = [0xFF; 8];
        assert!(Fields::new(&negative).counted("bytes").is_err());
        let long = [0xFF, 0xFF, 0xFF, 0x7F, 1];
        assert!(Fields::new(&long).counted("bytes").is_err());
        assert_eq!(Fields::from(&long, 99).remaining(), 0);
    }
}
