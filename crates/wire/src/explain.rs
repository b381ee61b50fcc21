//! A message part by part: every byte belongs to one part, in order, with what it means
//! (`docs/format.md` §8).

use crate::codes::{self, COMMENT, HINT, HISTORY_MESSAGE, INT64_0X, U8_ARRAY};
use crate::history::History;
use crate::reader::{self, Name, Reader, Shape, Token};
use crate::text::uuid;
use crate::{DEPTH_MAX, Result, WireError};

/// After this many parts, the rest of the message is one part.
pub const PARTS_MAX: usize = 10_000;
/// Elements of an array that are listed.
const LISTED_MAX: usize = 8;

/// Consecutive bytes of a message that mean one thing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Where it starts.
    pub offset: usize,
    pub length: usize,
    /// How many blocks it is inside of.
    pub depth: usize,
    /// The name of its code, or its kind if it has none.
    pub code: &'static str,
    pub meaning: String,
}

/// The parts of a message. Bytes that are not values become one part, which says why.
#[must_use]
pub fn parts(message: &[u8]) -> Vec<Part> {
    let mut walk = Walk { message, parts: Vec::new() };
    walk.content(&mut Reader::new(message), message.len(), 0);
    walk.parts
}

struct Walk<'a> {
    message: &'a [u8],
    parts: Vec<Part>,
}

impl<'a> Walk<'a> {
    fn add(&mut self, from: usize, to: usize, depth: usize, code: &'static str, meaning: String) {
        if from < to {
            self.parts.push(Part { offset: from, length: to - from, depth, code, meaning });
        }
    }

    /// Names and values, up to the offset `end`.
    fn content(&mut self, reader: &mut Reader<'a>, end: usize, depth: usize) {
        loop {
            let start = reader.offset();
            let code = reader.peek();
            if code.is_none() && !reader.rest().is_empty() {
                return self.add(start, end, depth, "bytes", "padding that ends early".to_owned());
            }
            self.add(start, reader.offset(), depth, "PADDING", "padding".to_owned());
            let Some(code) = code else { return };
            let start = reader.offset();
            if self.parts.len() >= PARTS_MAX {
                return self.add(start, end, depth, "bytes", "not shown".to_owned());
            }
            let read = if reader::is_name(code) || matches!(code, COMMENT | HINT) {
                self.name(reader, code, depth)
            } else {
                self.value(reader, code, depth)
            };
            if let Err(why) = read {
                return self.add(start, end, depth, "bytes", why.to_string());
            }
        }
    }

    fn name(&mut self, reader: &mut Reader<'a>, code: u8, depth: usize) -> Result<()> {
        let start = reader.offset();
        if matches!(code, COMMENT | HINT) {
            reader.code();
            let early = || WireError::early("a name ends early", start);
            let meaning = if code == COMMENT {
                format!("comment {}", quoted(reader.stop_bit_bytes().ok_or_else(early)?))
            } else {
                format!("hint {}", reader.stop_bit().ok_or_else(early)?)
            };
            self.add(start, reader.offset(), depth, codes::name(code), meaning);
            return Ok(());
        }
        let meaning = match reader.name()? {
            Some(Name::Field(name)) => format!("field {}", quoted(name)),
            Some(Name::Event(name)) => format!("event {}", quoted(name)),
            Some(Name::Number(number)) => format!("field number {number}"),
            Some(Name::Object) | None => "a key that is a value follows".to_owned(),
        };
        self.add(start, reader.offset(), depth, codes::name(code), meaning);
        Ok(())
    }

    fn value(&mut self, reader: &mut Reader<'a>, code: u8, depth: usize) -> Result<()> {
        let start = reader.offset();
        let token = reader.value()?;
        let end = reader.offset();
        match token {
            Token::Block(block) => self.block(start, end, block, code, depth),
            Token::Longs { used, spare } => self.longs(start, end, used, spare, depth),
            other => self.add(start, end, depth, codes::name(code), meaning(&other)),
        }
        Ok(())
    }

    fn block(&mut self, start: usize, end: usize, block: Reader<'a>, code: u8, depth: usize) {
        let content = block.offset();
        let shape = block.shape();
        let what = match shape {
            Shape::Empty => "empty block",
            Shape::Map => "map",
            Shape::List => "list",
            Shape::Blob => "blob",
            Shape::History => "history",
            Shape::Longs => "array of 64-bit integers",
        };
        let meaning = format!("{what}, {} bytes", end - content);
        self.add(start, content, depth, codes::name(code), meaning);
        let inside = depth + 1;
        match shape {
            Shape::Blob => {
                self.add(content, content + 1, inside, codes::name(U8_ARRAY), "bytes".to_owned());
                let count = end - content - 1;
                self.add(content + 1, end, inside, "bytes", format!("{count} bytes"));
            }
            Shape::History => self.history(start, content, end, inside),
            _ if inside >= DEPTH_MAX => {
                self.add(content, end, inside, "bytes", "nested too deep".to_owned());
            }
            _ => self.content(&mut { block }, end, inside),
        }
    }

    fn history(&mut self, start: usize, content: usize, end: usize, depth: usize) {
        let code = codes::name(HISTORY_MESSAGE);
        let found = History::read(&mut Reader::new(&self.message[start..end]));
        let meaning = match found {
            Ok(History { sources, timings }) => {
                let list = |(id, index): &(i32, i64)| format!("{id} at {index:#x}");
                let sources: Vec<_> = sources.iter().map(list).collect();
                format!("sources [{}], times in ns {timings:?}", sources.join(", "))
            }
            Err(why) => why.to_string(),
        };
        self.add(content, content + 1, depth, code, "packed history".to_owned());
        self.add(content + 1, end, depth, "bytes", meaning);
    }

    fn longs(&mut self, start: usize, end: usize, used: &[u8], spare: &[u8], depth: usize) {
        let (used, count) = (used.as_chunks::<8>().0, (used.len() + spare.len()) / 8);
        let first = end - count * 8;
        let what = "array of 64-bit integers".to_owned();
        self.add(start, start + 1, depth, "I64_ARRAY", what);
        self.add(start + 1, start + 9, depth, "i64", format!("capacity {count}"));
        self.add(start + 9, first, depth, "i64", format!("used {}", used.len()));
        let listed = used.len().min(LISTED_MAX);
        for (number, value) in used.iter().take(listed).enumerate() {
            let at = first + 8 * number;
            let value = i64::from_le_bytes(*value);
            self.add(at, at + 8, depth, "i64", format!("[{number}] {value} ({value:#x})"));
        }
        let more = format!("{} more in use, {} spare", used.len() - listed, spare.len() / 8);
        self.add(first + 8 * listed, end, depth, "i64", more);
    }
}

fn meaning(token: &Token<'_>) -> String {
    match token {
        Token::Null => "null".to_owned(),
        Token::Bool(value) => value.to_string(),
        Token::Int(value, INT64_0X) => format!("integer {value:#x}"),
        Token::Int(value, _) => format!("integer {value}"),
        Token::Float32(value) => format!("float {value:?}"),
        Token::Float64(value) => format!("float {value:?}"),
        Token::Text(bytes) => format!("string {}", quoted(bytes)),
        Token::Temporal(bytes, code) => format!("{} {}", temporal_name(*code), quoted(bytes)),
        Token::Uuid(high, low) => format!("UUID {}", uuid::shown(*high, *low)),
        Token::TypeLiteral(bytes) => format!("type {} as a value", quoted(bytes)),
        Token::TypePrefix(bytes) => format!("type {} of the next value", quoted(bytes)),
        Token::Block(_) | Token::Longs { .. } => String::new(),
    }
}

const fn temporal_name(code: u8) -> &'static str {
    match code {
        codes::TIME => "time",
        codes::DATE => "date",
        codes::DATE_TIME => "date and time",
        _ => "zoned date and time",
    }
}

/// A string in quotes, truncated if long.
fn quoted(bytes: &[u8]) -> String {
    const SHOWN: usize = 80;
    let text = reader::text(bytes, 0).map_or_else(|_| bytes.escape_ascii().to_string(), Into::into);
    if text.chars().count() <= SHOWN {
        return format!("\"{text}\"");
    }
    let cut: String = text.chars().take(SHOWN).collect();
    format!("\"{cut}\"... of {} bytes", bytes.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_belongs_to_one_part() {
        let messages: [&[u8]; 6] = [
            b"\xC1a\x82\x05\0\0\0\xC1b\xA1\x05\x8F",
            b"\xB9\x03say\xB6\x01T\x80\x03\x8A\x01\x02\xBB",
            b"\x8D\x03\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\x07\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
            b"\xEAhello",
            b"\x8E\x02\0\0\0\0\0\xA7",
            b"\xFF\xFE\x8B",
        ];
        for message in messages {
            for length in 0..=message.len() {
                let mut at = 0;
                for part in parts(&message[..length]) {
                    assert_eq!(part.offset, at, "{message:02x?} {length}");
                    at += part.length;
                }
                assert_eq!(at, length, "{message:02x?}");
            }
        }
    }

    #[test]
    fn parts_are_named_and_nested() {
        let found = parts(b"\xC1a\x82\x04\0\0\0\xC1b\xA1\x05\xE1x");
        let shown: Vec<_> =
            found.iter().map(|part| (part.depth, part.code, part.meaning.as_str())).collect();
        assert_eq!(
            shown,
            [
                (0, "FIELD_NAME", "field \"a\""),
                (0, "BYTES_LENGTH32", "map, 4 bytes"),
                (1, "FIELD_NAME", "field \"b\""),
                (1, "UINT8", "integer 5"),
                (0, "STRING", "string \"x\""),
            ]
        );
    }

    #[test]
    fn a_message_of_many_values_has_a_limit() {
        assert_eq!(parts(&vec![1; 3 * PARTS_MAX]).len(), PARTS_MAX + 1);
    }
}
