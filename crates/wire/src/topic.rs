//! Sub-topics: the routing key that is the first event of a document
//! (`docs/format.md` §8.7, §8.8), and a filter of messages by key.

use std::borrow::Cow;
use std::collections::HashMap;

use crate::codes::{STRING_0, STRING_ANY};
use crate::error::{Result, WireError};
use crate::history;
use crate::reader::Reader;

/// The requested keys.
pub struct Topics {
    event: Vec<u8>,
    /// The position of each key in the request.
    keys: HashMap<Key<'static>, usize>,
}

/// A key in comparable form. Numbers compare by value regardless of width; keys that are neither
/// strings nor numbers compare by their bytes.
#[derive(PartialEq, Eq, Hash)]
enum Key<'a> {
    Text(Cow<'a, [u8]>),
    Number(i64),
    Encoded(Cow<'a, [u8]>),
}

/// A message with a requested key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// The position of its key in the request.
    pub key: usize,
    /// The offset of the message, after its key; 0 if history precedes the key.
    pub start: u32,
}

impl Topics {
    /// A filter by keys, each encoded with its event name as at the start of a message.
    pub fn new(routes: &[Vec<u8>]) -> Result<Self> {
        let mut filter = Self { event: Vec::new(), keys: HashMap::new() };
        for (place, route) in routes.iter().enumerate() {
            let mut cursor = Reader::new(route);
            let (event, key) = cursor
                .name_if()
                .and_then(|event| Some((event, Key::read(&mut cursor)?)))
                .ok_or_else(|| {
                    WireError::new("a key that does not read back").with("place", place)
                })?;
            event.clone_into(&mut filter.event);
            filter.keys.entry(key.owned()).or_insert(place);
        }
        Ok(filter)
    }

    /// Matches a message against the requested keys.
    #[must_use]
    pub fn find(&self, message: &[u8]) -> Option<Wanted> {
        let mut cursor = Reader::new(message);
        let after_history = skip_history(&mut cursor);
        if cursor.name_if()? != self.event {
            return None;
        }
        let key = *self.keys.get(&Key::read(&mut cursor)?)?;
        let start = if after_history { 0 } else { u32::try_from(cursor.offset()).ok()? };
        Some(Wanted { key, start })
    }
}

impl<'a> Key<'a> {
    fn read(cursor: &mut Reader<'a>) -> Option<Self> {
        if let Some(STRING_0..=0xFF | STRING_ANY) = cursor.peek() {
            return cursor.string_if().map(|text| Key::Text(text.into()));
        }
        if let Some(number) = cursor.integer_if() {
            return Some(Key::Number(number));
        }
        let bytes = cursor.rest();
        let start = cursor.offset();
        cursor.skip().ok()?;
        bytes.get(..cursor.offset() - start).map(|bytes| Key::Encoded(bytes.into()))
    }

    fn owned(self) -> Key<'static> {
        match self {
            Key::Text(text) => Key::Text(text.into_owned().into()),
            Key::Number(number) => Key::Number(number),
            Key::Encoded(bytes) => Key::Encoded(bytes.into_owned().into()),
        }
    }
}

/// Skips the history before a call; false, without moving, if there is none.
fn skip_history(cursor: &mut Reader<'_>) -> bool {
    let start = *cursor;
    let named = matches!(cursor.name(), Ok(Some(name)) if history::is_history(name));
    if named && cursor.skip().is_ok() {
        return true;
    }
    *cursor = start;
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    const TO_A: &[u8] = b"\xB9\x02to\xE1a";
    const TO_7: &[u8] = b"\xB9\x02to\xA6\x07\0\0\0";
    const TO_PAIR: &[u8] = b"\xB9\x02to\x82\x04\0\0\0\xE1x\xE1y";

    fn filter() -> Topics {
        Topics::new(&[TO_A.to_vec(), TO_7.to_vec(), TO_PAIR.to_vec()]).unwrap()
    }

    fn found(message: &[&[u8]]) -> Option<Wanted> {
        filter().find(&message.concat())
    }

    #[test]
    fn a_message_is_found_by_its_key_in_every_form_of_it() {
        let wanted = |key, start| Some(Wanted { key, start });
        assert_eq!(found(&[TO_A, b"\xE5hello"]), wanted(0, 6));
        assert_eq!(found(&[b"\xC2to\xE1a", b"raw"]), wanted(0, 5));
        assert_eq!(found(&[b"\xC2to\xB8\x01a", b"raw"]), wanted(0, 6));
        assert_eq!(found(&[TO_7, b"x"]), wanted(1, 9));
        assert_eq!(found(&[b"\xB9\x02to\xA1\x07x"]), wanted(1, 6));
        assert_eq!(found(&[TO_PAIR]), wanted(2, 13));
    }

    #[test]
    fn history_may_stand_in_front() {
        let named = b"\xB9\x07history\x81\x03\0abc";
        let numbered = b"\xBA\x80\0\x81\x03\0abc";
        for history in [&named[..], numbered] {
            assert_eq!(found(&[history, TO_A, b"x"]), Some(Wanted { key: 0, start: 0 }));
        }
        assert_eq!(found(&[b"\xB9\x07history\x81\x30\0abc", TO_A]), None);
    }

    #[test]
    fn everything_else_is_not_wanted() {
        for message in [
            &b""[..],
            b"\xE5hello",
            b"\xB9\x02to\xE1b",
            b"\xB9\x02by\xE1a",
            b"\xB9\x02to\xA1\x08",
            b"\xB9\x02to",
            b"\xB9\x02to\xE9a",
            b"\xB9\x70to\xE1a",
        ] {
            assert_eq!(found(&[message]), None);
        }
    }
}
