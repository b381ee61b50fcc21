//! A message as YAML, byte for byte as Java's dump prints it (`docs/format.md` §8.9).

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;

use super::layout::Layout;
use super::{escape, number, uuid};
use crate::codes::{
    BYTES_LENGTH8, BYTES_LENGTH32, COMMENT, EVENT_NAME, EVENT_OBJECT, FIELD_NAME_ANY, FIELD_NAME0,
    FIELD_NUMBER, HISTORY_MESSAGE, I64_ARRAY, INT8, INT16, INT64_0X, PADDING, PADDING32,
    SHORT_LENGTH_MASK, STRING_0, TYPE_PREFIX, U8_ARRAY,
};
use crate::compress::{self, Method};
use crate::error::{Result, WireError};
use crate::reader::{self, Reader, Token};
use crate::temporal;
use crate::text;

/// The numeric name of a message's history.
const HISTORY: i64 = -1;
/// The type of two longs, which are printed as a plain list.
const PAIR: usize = 2;

/// Appends a message as text. If Java's dump would print it as hexadecimal, this fails and appends
/// nothing; `more` also allows what only Java's text wire, not its dump, can print.
pub fn put(out: &mut String, message: &[u8], more: bool) -> Result<()> {
    let start = out.len();
    let mut writer = Writer { to: Layout::new(out), more };
    compress::begin_message();
    let written = writer.values(&mut Reader::new(message), true, 0);
    writer.to.finish();
    if written.is_err() {
        out.truncate(start);
    }
    written
}

struct Writer<'a> {
    to: Layout<'a>,
    more: bool,
}

impl Writer<'_> {
    fn values(&mut self, from: &mut Reader<'_>, mut is_first: bool, depth: usize) -> Result<()> {
        while !from.rest().is_empty() {
            self.one(from, is_first, depth)?;
            is_first = false;
        }
        Ok(())
    }

    /// A value or name, or what separates them.
    fn one(&mut self, from: &mut Reader<'_>, is_first: bool, depth: usize) -> Result<()> {
        let Some(&code) = from.rest().first() else { return Ok(()) };
        let at = from.offset();
        match code {
            PADDING => drop(from.take(1)),
            PADDING32 => skip_padding(from)?,
            // Java treats a message with this first byte as raw bytes.
            0..=0x7F if is_first => return Err(WireError::unexpected("a name", Some(code), at)),
            STRING_0..=0xFF => {
                from.take(1);
                let length = usize::from(code & SHORT_LENGTH_MASK);
                let text = from.take(length).ok_or_else(|| WireError::early("a string", at))?;
                self.text(text)?;
            }
            FIELD_NAME0..STRING_0 | EVENT_NAME | FIELD_NAME_ANY | FIELD_NUMBER => {
                self.name(from)?;
            }
            EVENT_OBJECT => self.key(from, depth)?,
            COMMENT => {
                from.take(1);
                let text =
                    from.stop_bit_bytes().ok_or_else(|| WireError::early("a comment", at))?;
                self.to.put_comment(&reader::text(text, at)?);
            }
            HISTORY_MESSAGE => self.history(from)?,
            TYPE_PREFIX => drop(self.typed(from)?),
            _ => self.value(from, depth)?,
        }
        Ok(())
    }

    fn value(&mut self, from: &mut Reader<'_>, depth: usize) -> Result<()> {
        let at = from.offset();
        match from.value()? {
            Token::Block(block) => return self.block(block, reader::deeper(depth, at)?),
            Token::Longs { used, spare } => self.longs(used, spare),
            Token::Text(text) => return self.text(text),
            Token::Uuid(high, low) if self.more => {
                self.to.put_type("UUID");
                let text = uuid::shown(high, low);
                self.scalar(|out| out.push_str(&text));
            }
            Token::Uuid(..) => return Err(WireError::unexpected("a value", Some(0xA0), at)),
            Token::TypePrefix(_) => {
                return Err(WireError::unexpected("a value", Some(TYPE_PREFIX), at));
            }
            Token::Null => self.scalar(|out| out.push_str("!!null \"\"")),
            Token::Bool(value) => {
                self.scalar(|out| out.push_str(if value { "true" } else { "false" }));
            }
            Token::Int(value, INT64_0X) => self.scalar(|out| number::put_hex(out, value)),
            Token::Int(value, code) => {
                match code {
                    INT8 => self.to.put_type("byte"),
                    INT16 => self.to.put_type("short"),
                    _ => {}
                }
                self.scalar(|out| number::put_int(out, value));
            }
            Token::Float32(value) => self.scalar(|out| number::put_f64(out, f64::from(value))),
            Token::Float64(value) => self.scalar(|out| number::put_f64(out, value)),
            Token::Temporal(text, code) => return self.temporal(text, code, at),
            Token::TypeLiteral(name) => {
                self.to.separate();
                self.to.out.push_str("!type ");
                escape::put_text(self.to.out, name, self.more)?;
                self.to.end_value();
            }
        }
        Ok(())
    }

    fn scalar(&mut self, put: impl FnOnce(&mut String)) {
        self.to.separate();
        put(self.to.out);
        self.to.end_value();
    }

    #[inline]
    fn text(&mut self, text: &[u8]) -> Result<()> {
        self.to.separate();
        let start = self.to.out.len();
        if let Err(fault) = escape::put_text(self.to.out, text, self.more) {
            self.to.out.truncate(start);
            match std::str::from_utf8(text) {
                Ok(text) if self.more => escape::put_str(self.to.out, text),
                _ => return Err(fault),
            }
        }
        self.to.end_value();
        Ok(())
    }

    fn name(&mut self, from: &mut Reader<'_>) -> Result<()> {
        let is_short = from.rest().first().is_some_and(|code| *code >= FIELD_NAME0);
        let at = from.offset();
        self.to.separate();
        match from.name()? {
            Some(reader::Name::Field(name)) if is_short => {
                if name.iter().any(|byte| *byte < b' ') {
                    return Err(
                        WireError::new("a field name with control characters").with("offset", at)
                    );
                }
                escape::put_latin1(self.to.out, name, self.more);
            }
            Some(reader::Name::Field(name) | reader::Name::Event(name)) => {
                escape::put_latin1(self.to.out, name, self.more);
            }
            Some(reader::Name::Number(HISTORY)) => self.to.out.push_str("history"),
            Some(reader::Name::Number(number)) => {
                escape::put_latin1(self.to.out, number.to_string().as_bytes(), self.more);
            }
            Some(reader::Name::Object) | None => {}
        }
        self.to.end_name();
        Ok(())
    }

    /// A complex key.
    fn key(&mut self, from: &mut Reader<'_>, depth: usize) -> Result<()> {
        let depth = reader::deeper(depth, from.offset())?;
        from.take(1);
        let was = self.to.start_key();
        let mut is_whole = false;
        while !is_whole && from.rest().first() == Some(&TYPE_PREFIX) {
            is_whole = self.typed(from)?;
        }
        if !is_whole {
            self.one(from, true, depth)?;
        }
        self.to.end_key(was);
        Ok(())
    }

    /// The type of the next value. True if the value was printed with it.
    fn typed(&mut self, from: &mut Reader<'_>) -> Result<bool> {
        let at = from.offset();
        let name = from.type_prefix_if().ok_or_else(|| WireError::early("a type", at))?;
        if let Some(method @ (Method::Gzip | Method::Lzw)) = Method::named(name) {
            let Some(blob) = next_blob(from)? else {
                return Err(WireError::unexpected("a compressed blob", None, at));
            };
            let text = method.unpack(blob, text::unpacked_max(blob))?;
            self.to.put_comment(method.name());
            self.scalar(|out| escape::put_str(out, &String::from_utf8_lossy(&text)));
            return Ok(true);
        }
        self.to.put_type(&reader::text(name, at)?);
        let (is_blob, more) = (name == b"byte[]", self.more);
        match if is_blob { next_blob(from)? } else { None } {
            Some(blob) => self.scalar(|out| escape::put_latin1(out, blob, more)),
            None if is_blob => return Err(WireError::unexpected("bytes", None, at)),
            None => {}
        }
        Ok(is_blob)
    }

    fn block(&mut self, mut block: Reader<'_>, depth: usize) -> Result<()> {
        match block.rest().first() {
            // Anything after the known content is omitted.
            Some(&HISTORY_MESSAGE) => self.history(&mut block),
            Some(&U8_ARRAY) => {
                let (blob, more) = (&block.rest()[1..], self.more);
                let is_line = |byte: &u8| matches!(byte, b' '..=0x7F | b'\n');
                if blob.iter().all(is_line) || blob.iter().all(|byte| matches!(byte, 1..=0x7E)) {
                    self.scalar(|out| escape::put_latin1(out, blob, more));
                } else {
                    self.to.put_type("!binary");
                    self.scalar(|out| BASE64.encode_string(blob, out));
                }
                Ok(())
            }
            Some(&I64_ARRAY) => {
                Err(WireError::unexpected("a list", Some(I64_ARRAY), block.offset()))
            }
            Some(code) if reader::is_name(*code) => {
                let map = self.to.open_map(true);
                self.values(&mut block, true, depth)?;
                self.to.close_map(&map);
                Ok(())
            }
            _ => {
                let list = self.to.open_list();
                self.values(&mut block, false, depth)?;
                self.to.close_list(&list);
                Ok(())
            }
        }
    }

    fn longs(&mut self, used: &[u8], spare: &[u8]) {
        let (used, spare) = (used.as_chunks().0, spare.as_chunks().0);
        let list = self.to.open_list();
        let is_plain = spare.is_empty() && used.len() <= PAIR;
        if !is_plain {
            let length = used.len() + spare.len();
            self.to.put_comment(&format!("length: {length}, used: {}", used.len()));
        }
        for value in used {
            self.scalar(|out| number::put_int(out, i64::from_le_bytes(*value)));
        }
        for (place, value) in spare.iter().enumerate() {
            if place == 0 {
                self.to.set_on_one_line(true);
            }
            self.scalar(|out| number::put_int(out, i64::from_le_bytes(*value)));
        }
        if !is_plain {
            self.to.set_on_one_line(false);
        }
        self.to.close_list(&list);
    }

    fn temporal(&mut self, text: &[u8], code: u8, at: usize) -> Result<()> {
        let text = reader::text(text, at)?;
        let wrong = || WireError::new("not a date or time").with("offset", at).with("found", &text);
        if temporal::parse(&text).is_none_or(|stamp| stamp.code() != code) {
            return Err(wrong());
        }
        let shown = match text.find(':').map(|colon| text.split_at(colon - 2)) {
            Some((date, rest)) => {
                let (time, zone) = temporal::split_offset(rest);
                format!("{date}{}{zone}", temporal::java_time(time))
            }
            None => text.into_owned(),
        };
        if shown.ends_with(']') {
            return self.text(shown.as_bytes());
        }
        self.scalar(|out| out.push_str(&shown));
        Ok(())
    }

    /// The packed history of a message.
    fn history(&mut self, from: &mut Reader<'_>) -> Result<()> {
        let at = from.offset();
        let early = || WireError::early("a history ends early", at);
        from.take(1);
        let mut counted = |width: usize| {
            let [count] = from.array()?;
            from.take(usize::try_from(i8::from_le_bytes([count])).unwrap_or(0) * width)
        };
        let sources = counted(12).ok_or_else(early)?;
        let timings = counted(8).ok_or_else(early)?;
        let (ids, indexes) = sources.split_at(sources.len() / 3);
        let map = self.to.open_map(false);
        self.list_named("sources", |writer| {
            for (id, index) in ids.as_chunks().0.iter().zip(indexes.as_chunks().0) {
                let id = i64::from(i32::from_le_bytes(*id));
                writer.scalar(|out| number::put_int(out, id));
                writer.scalar(|out| number::put_hex(out, i64::from_le_bytes(*index)));
            }
        });
        self.list_named("timings", |writer| {
            for timing in timings.as_chunks().0 {
                writer.scalar(|out| number::put_int(out, i64::from_le_bytes(*timing)));
            }
        });
        self.to.close_map(&map);
        Ok(())
    }

    fn list_named(&mut self, name: &str, put: impl FnOnce(&mut Self)) {
        self.to.separate();
        self.to.out.push_str(name);
        self.to.end_name();
        let list = self.to.open_list();
        put(self);
        self.to.close_list(&list);
    }
}

fn skip_padding(from: &mut Reader<'_>) -> Result<()> {
    let at = from.offset();
    from.take(1);
    let skipped = from.u32().and_then(|count| from.take(count as usize));
    skipped.map(drop).ok_or_else(|| WireError::early("padding ends early", at))
}

/// The blob at the reader's position; None at any other value.
fn next_blob<'a>(from: &mut Reader<'a>) -> Result<Option<&'a [u8]>> {
    if !matches!(from.rest().first(), Some(BYTES_LENGTH8..=BYTES_LENGTH32)) {
        return Ok(None);
    }
    match from.value()? {
        Token::Block(block) => Ok(block.blob()),
        _ => Ok(None),
    }
}
