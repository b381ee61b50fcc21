//! Numbers, times and texts that have no length of their own: they end before a character, which is
//! skipped, or with the message.

use std::borrow::Cow;

use super::fields::{FieldError, FieldReader, text};

type Result<T> = std::result::Result<T, FieldError>;

/// The form of a date: `d` stands for a digit.
pub const DATE: &str = "dddd/dd/dd";
/// The form of a time of day.
pub const TIME: &str = "dd:dd:dd.ddd";
/// The form of a date with a time of day.
pub const DATE_TIME: &str = "dddd/dd/ddTdd:dd:dd.ddd";

/// Bytes of a character with this first byte; None if no character begins with it.
const fn width(first: u8) -> Option<usize> {
    match first {
        0..0x80 => Some(1),
        0xc0..0xe0 => Some(2),
        0xe0..0xf0 => Some(3),
        _ => None,
    }
}

impl<'a> FieldReader<'a> {
    /// A whole number in digits, and the one character after it.
    pub fn parse_int(&mut self) -> Result<i64> {
        let start = *self;
        let digits =
            self.text_number(|byte| byte.is_ascii_digit() || byte == b'-' || byte == b'+')?;
        digits.parse().map_err(|_| start.error("no whole number in digits"))
    }

    /// A number in digits, and the one character after it.
    pub fn parse_float(&mut self) -> Result<f64> {
        let start = *self;
        let rest = self.rest();
        let is_word = |word: &&str| rest.starts_with(word.as_bytes());
        let text = match ["NaN", "Infinity", "-Infinity"].into_iter().find(is_word) {
            Some(word) => self.ascii(word.len())?,
            None => self.decimal()?,
        };
        text.parse().map_err(|_| start.error("no number in digits"))
    }

    /// The digits of a number, and the one character after them.
    pub fn parse_decimal(&mut self) -> Result<&'a str> {
        let start = *self;
        let text = self.decimal()?;
        let is_number = text.parse::<f64>().is_ok();
        is_number.then_some(text).ok_or_else(|| start.error("no number in digits"))
    }

    /// A text of one of the forms of this module, and the one character after it.
    pub fn parse_form(&mut self, form: &str) -> Result<&'a str> {
        let fits = |(byte, form): (&u8, u8)| match form {
            b'd' => byte.is_ascii_digit(),
            form => *byte == form,
        };
        let rest = self.rest();
        let is_of_form = rest.len() >= form.len() && rest.iter().zip(form.bytes()).all(fits);
        if is_of_form {
            self.ascii(form.len())
        } else {
            Err(self.error("no date or time in digits"))
        }
    }

    /// A text up to one of the characters of `stops`, which is skipped.
    pub fn parse_text(&mut self, stops: &str) -> Result<Cow<'a, str>> {
        let start = *self;
        let stops: Vec<_> = stops.chars().map(stored).collect();
        let rest = self.rest();
        let mut length = 0;
        let stop = loop {
            let left = &rest[length..];
            if let Some(stop) = stops.iter().find(|stop| left.starts_with(stop)) {
                break stop.len();
            }
            let Some(first) = left.first() else {
                if self.goes_on() {
                    return Err(self.error("the part ends within the field"));
                }
                break 0;
            };
            length += width(*first).ok_or_else(|| start.error("no text"))?;
            if length > rest.len() {
                return Err(start.error("no text"));
            }
        };
        let found = text(&rest[..length]).ok_or_else(|| start.error("no text"))?;
        self.skip(length + stop);
        Ok(found)
    }

    /// A boolean in a text up to one of the characters of `stops`: `true`, `yes`, `1` and so on.
    pub fn parse_boolean(&mut self, stops: &str) -> Result<bool> {
        let start = *self;
        let text = self.parse_text(stops)?.to_ascii_lowercase();
        match text.as_str() {
            "true" | "t" | "yes" | "y" | "1" => Ok(true),
            "false" | "f" | "no" | "n" | "0" => Ok(false),
            _ => Err(start.error("no boolean in a text")),
        }
    }

    fn decimal(&mut self) -> Result<&'a str> {
        self.text_number(|byte| byte.is_ascii_digit() || b"+-.".contains(&byte))
    }

    fn text_number(&mut self, is_part: impl Fn(u8) -> bool) -> Result<&'a str> {
        let length = self.rest().iter().take_while(|byte| is_part(**byte)).count();
        self.ascii(length)
    }

    /// The next `length` characters; the one after them is skipped.
    fn ascii(&mut self, length: usize) -> Result<&'a str> {
        let rest = self.rest();
        if self.goes_on() && length == rest.len() {
            return Err(self.error("the part ends within the field"));
        }
        self.skip(length + usize::from(length < rest.len()));
        Ok(std::str::from_utf8(&rest[..length]).unwrap_or_default())
    }
}

/// The bytes of a character.
fn stored(character: char) -> Vec<u8> {
    let mut fields = super::fields::FieldWriter::default();
    fields.put_text(character.encode_utf8(&mut [0; 4]));
    fields.bytes().unwrap_or_default().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_digits_end_before_the_next_character() {
        let mut reader = FieldReader::at(b"-14 0.5 txt", 0);
        assert_eq!((reader.parse_int(), reader.parse_float()), (Ok(-14), Ok(0.5)));
        assert_eq!(reader.take(3), Ok(&b"txt"[..]));
        assert!(reader.parse_int().is_err() && reader.take(1).is_err());
    }

    #[test]
    fn a_number_with_a_fraction_ends_before_a_letter_too() {
        let mut reader = FieldReader::at(b"1.5x-Infinity Infinity NaN 2e3", 0);
        let found = [(); 3].map(|()| reader.parse_float());
        assert_eq!(found, [Ok(1.5), Ok(f64::NEG_INFINITY), Ok(f64::INFINITY)]);
        assert!(reader.parse_float().unwrap().is_nan());
        assert_eq!((reader.parse_float(), reader.parse_float()), (Ok(2.0), Ok(3.0)));
    }

    #[test]
    fn texts_end_before_a_character_or_with_the_message() {
        let mut bytes = b"one,;two\xc3\xa9;\xed\xa0\xbd\xed\xb8\x80".to_vec();
        let mut reader = FieldReader::at(&bytes, 0);
        let found = [(); 4].map(|()| reader.parse_text(";,").unwrap());
        assert_eq!(found, ["one", "", "two\u{e9}", "\u{1f600}"]);
        assert_eq!(reader.parse_text(","), Ok("".into()));
        let mut reader = FieldReader::at(&bytes, 0);
        assert_eq!(reader.parse_text("\u{e9}"), Ok("one,;two".into()));
        assert_eq!(reader.parse_text("\u{1f600}"), Ok(";".into()));
        let mut part = FieldReader::of_part(&bytes[..3], 0, true);
        assert!(part.parse_text(",").is_err(), "the rest may be part of it");
        bytes[1] = 0xff;
        assert!(FieldReader::at(&bytes, 0).parse_text(",").is_err());
        assert!(FieldReader::at(b"a\xc3", 0).parse_text(",").is_err());
    }

    #[test]
    fn dates_times_and_booleans_have_one_form_each() {
        let mut reader = FieldReader::at(b"2023/11/14T22:13:20.123 22:13:20.123,2023/11/14", 0);
        assert_eq!(reader.parse_form(DATE_TIME), Ok("2023/11/14T22:13:20.123"));
        assert_eq!(reader.parse_form(TIME), Ok("22:13:20.123"));
        assert_eq!(reader.parse_form(DATE), Ok("2023/11/14"));
        for text in [&b"2023-11-14"[..], b"2023/1/14 ", b"2023/11/1"] {
            assert!(FieldReader::at(text, 0).parse_form(DATE).is_err());
        }
        let mut reader = FieldReader::at(b"true F yes 0 maybe", 0);
        let found = [(); 4].map(|()| reader.parse_boolean(" "));
        assert_eq!(found, [Ok(true), Ok(false), Ok(true), Ok(false)]);
        assert!(reader.parse_boolean(" ").is_err());
        assert_eq!(FieldReader::at(b"-12.50 ", 0).parse_decimal(), Ok("-12.50"));
        assert!(FieldReader::at(b"- ", 0).parse_decimal().is_err());
    }
}
