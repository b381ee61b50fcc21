//! Objects, as Java's `writeObject` stores those that it does not serialise: a code, then a text or
//! bytes.

use std::borrow::Cow;

use quire_wire::number::java_f64;

use super::fields::{FieldError, FieldReader, FieldWriter};

const NULL: u8 = b'N';
/// A class follows, as an object; then the bytes that the class writes, for most its text.
const NAMED: u8 = b'E';
const SERIALISED: u8 = b'S';
const BUFFER: u8 = 2;
const CLASS: u8 = 3;
const DOUBLE: u8 = 4;
const INT: u8 = 9;
const LONG: u8 = 12;
const TEXT: u8 = 19;
const DATE: u8 = 20;

/// An object.
#[derive(Clone, Debug, PartialEq)]
pub enum Object<'a> {
    /// No object.
    Null,
    /// A `String`.
    Text(Cow<'a, str>),
    /// An `Integer` or `Long`.
    Whole(i64),
    /// A `Double`.
    Double(f64),
    /// A `Date`, in epoch milliseconds.
    Date(i64),
    /// A `ByteBuffer`.
    Buffer(&'a [u8]),
    /// A class.
    Class(Cow<'a, str>),
    /// An object of a class without a code, which determines the bytes that follow.
    Of(Cow<'a, str>),
    /// An object that Java serialised.
    Serialised,
}

/// A text or none, or why the bytes are not a text.
pub type Text<'a> = Result<Option<Cow<'a, str>>, FieldError>;

impl<'a> FieldReader<'a> {
    /// Reads an object. After one of a named class come the bytes that the class wrote.
    pub fn object(&mut self) -> Result<Object<'a>, FieldError> {
        let start = *self;
        let [code] = self.array()?;
        Ok(match code {
            NULL => Object::Null,
            SERIALISED => Object::Serialised,
            TEXT => self.utf()?.map_or(Object::Null, Object::Text),
            INT | LONG => Object::Whole(self.number(start)?),
            DOUBLE => Object::Double(self.number(start)?),
            DATE => Object::Date(self.number(start)?),
            CLASS => Object::Class(self.some_text(start)?),
            BUFFER => {
                let length = usize::try_from(self.stop_bit()?);
                Object::Buffer(self.take(length.map_err(|_| start.error("no object"))?)?)
            }
            NAMED => match self.array()? {
                [CLASS] => Object::Of(self.some_text(start)?),
                _ => return Err(start.error("no object")),
            },
            _ => return Err(start.error("no object")),
        })
    }

    /// Reads an object and, for a class without a code, the text that most classes write after it.
    pub fn object_with_text(&mut self) -> Result<(Object<'a>, Text<'a>), FieldError> {
        let object = self.object()?;
        let text = if let Object::Of(_) = object { self.utf() } else { Ok(None) };
        if self.goes_on() { Ok((object, Ok(text?))) } else { Ok((object, text)) }
    }

    fn some_text(&mut self, start: Self) -> Result<Cow<'a, str>, FieldError> {
        self.utf()?.ok_or_else(|| start.error("no object"))
    }

    fn number<T: std::str::FromStr>(&mut self, start: Self) -> Result<T, FieldError> {
        self.some_text(start)?.parse().map_err(|_| start.error("no object"))
    }
}

impl FieldWriter {
    /// Null.
    pub fn put_null(&mut self) {
        self.put(&[NULL]);
    }

    /// A `String`.
    pub fn put_text_object(&mut self, text: &str) {
        self.put_coded(TEXT, text);
    }

    /// An `Integer` if it fits one, or a `Long`.
    pub fn put_whole_object(&mut self, value: i64) {
        self.put_coded(if i32::try_from(value).is_ok() { INT } else { LONG }, &value.to_string());
    }

    /// A `Double`.
    pub fn put_double_object(&mut self, value: f64) {
        self.put_coded(DOUBLE, &java_f64(value));
    }

    /// A `Date`.
    pub fn put_date_object(&mut self, epoch_ms: i64) {
        self.put_coded(DATE, &epoch_ms.to_string());
    }

    /// A `ByteBuffer`.
    pub fn put_buffer_object(&mut self, bytes: &[u8]) {
        self.put(&[BUFFER]);
        self.put_stop_bit(i64::try_from(bytes.len()).unwrap_or(i64::MAX));
        self.put(bytes);
    }

    /// Puts an object of a class that reads a text.
    pub fn put_object_of(&mut self, class: &str, text: &str) {
        self.put(&[NAMED]);
        self.put_coded(CLASS, class);
        self.put_utf(Some(text));
    }

    fn put_coded(&mut self, code: u8, text: &str) {
        self.put(&[code]);
        self.put_utf(Some(text));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_read_as_they_were_written() {
        let mut writer = FieldWriter::default();
        writer.put_null();
        writer.put_text_object("é");
        writer.put_whole_object(7);
        writer.put_whole_object(1 << 40);
        writer.put_double_object(f64::NEG_INFINITY);
        writer.put_double_object(1e22);
        writer.put_date_object(-5);
        writer.put_buffer_object(b"ab");
        writer.put_object_of("BigDecimal", "1.50");
        let mut reader = FieldReader::at(writer.bytes().unwrap(), 0);
        for expected in [
            Object::Null,
            Object::Text("é".into()),
            Object::Whole(7),
            Object::Whole(1 << 40),
            Object::Double(f64::NEG_INFINITY),
            Object::Double(1e22),
            Object::Date(-5),
            Object::Buffer(b"ab"),
            Object::Of("BigDecimal".into()),
        ] {
            assert_eq!(reader.object(), Ok(expected));
        }
        assert_eq!(reader.utf(), Ok(Some("1.50".into())));
        assert!(reader.object().is_err());
    }

    #[test]
    fn bytes_that_are_no_object_are_refused() {
        for bytes in
            [&b""[..], b"x", b"\x09\x01x", b"\x02\x05a", b"\x02\x80\x00", b"EN", b"\x09\x80\x00"]
        {
            assert!(FieldReader::at(bytes, 0).object().is_err(), "{bytes:x?}");
        }
    }
}
