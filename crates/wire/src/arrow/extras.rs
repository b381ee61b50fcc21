//! Columns that do not come from the values of a message: its bytes, and its routing key.

use super::decode::arrays::Array;
use super::decode::column::Column;
use super::decode::history;
use super::schema::{Field, Kind};
use crate::reader::{Name, Reader};

/// The requested columns, with one value per row.
#[derive(Debug, Default)]
pub struct Beside {
    payload: Option<Column>,
    topic: Option<Topic>,
}

#[derive(Debug)]
struct Topic {
    event: Vec<u8>,
    keys: Column,
}

impl Beside {
    /// The bytes of the messages, if requested, and the keys of this event.
    #[must_use]
    pub fn new(payload: bool, event: Option<&str>) -> Self {
        let column = |kind| Column::new(&Field { name: String::new(), nullable: true, kind });
        let topic = |event: &str| Topic { event: event.into(), keys: column(Kind::Text) };
        Self { payload: payload.then(|| column(Kind::Binary)), topic: event.map(topic) }
    }

    /// Whether no column is requested.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.payload.is_none() && self.topic.is_none()
    }

    /// Appends the values of a message that has this many rows.
    #[inline]
    pub fn add(&mut self, message: &[u8], rows: usize) {
        for _ in 0..rows {
            if let Some(column) = &mut self.payload {
                column.push_bytes(message);
            }
            if let Some(topic) = &mut self.topic {
                topic.add(message);
            }
        }
    }

    /// The finished columns: bytes, then keys.
    #[must_use]
    pub fn finish(self) -> [Option<Array>; 2] {
        [self.payload.map(Column::finish), self.topic.map(|topic| topic.keys.finish())]
    }
}

impl Topic {
    /// The key as text; null if the message has none, or one that is neither a string nor a number.
    fn add(&mut self, message: &[u8]) {
        let length = self.keys.len();
        let found = key_after(&self.event, message).map(|mut key| self.keys.read(&mut key));
        if !matches!(found, Some(Ok(()))) {
            self.keys.truncate(length);
            self.keys.push_null();
        }
    }
}

/// The position of the key: after any history and the event's name.
fn key_after<'a>(event: &[u8], message: &'a [u8]) -> Option<Reader<'a>> {
    let mut cursor = Reader::new(message);
    history::take(&mut cursor).ok()?;
    match cursor.name() {
        Ok(Some(Name::Field(name) | Name::Event(name))) if name == event => Some(cursor),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_found_after_its_event_and_the_history() {
        for (message, found) in [
            (&b"\xB9\x02to\xE1aX"[..], true),
            (b"\xC2to\xE1aX", true),
            (b"\xB9\x07history\x81\x03\0abc\xB9\x02to\xE1aX", true),
            (b"\xB9\x02by\xE1aX", false),
            (b"\xB9\x7Fto", false),
            (b"", false),
        ] {
            assert_eq!(key_after(b"to", message).is_some(), found);
        }
    }

    #[test]
    fn each_row_has_both() {
        let mut beside = Beside::new(true, Some("to"));
        beside.add(b"\xB9\x02to\xE1aX", 2);
        beside.add(b"no key", 1);
        beside.add(b"no row", 0);
        let [payload, topic] = beside.finish().map(|column| column.unwrap());
        assert_eq!((payload.length, payload.nulls), (3, 0));
        assert_eq!((topic.length, topic.nulls), (3, 1));
        assert_eq!(topic.buffers[2], Some(b"aa".to_vec()));
    }
}
