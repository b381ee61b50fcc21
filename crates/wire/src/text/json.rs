//! Messages as JSON, and JSON as messages, in the form of Java's JSON wire (`docs/format.md`
//! §8.11); a typed value is wrapped in an object, as in `{"@Trade":{"price":1.5}}`.

use crate::out::{Out, room};
use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};

use super::scalar::{self, Scalar};
use super::uuid;
use crate::codes::{COMMENT, FLOAT64};
use crate::compress::{self, Method};
use crate::error::{Result, WireError};
use crate::history::History;
use crate::latin1;
use crate::reader::{self, EMPTY_MAP, MAPS, Name, Reader, Shape, Token};
use crate::writer::{self, put_type_prefix};

/// Appends a message as JSON on one line: an object if it has named values, its only value, or a
/// list of several values.
pub fn put(out: &mut String, message: &[u8]) -> Result<()> {
    let start = out.len();
    compress::begin_message();
    let mut cursor = Reader::new(message);
    skip_comments(&mut cursor)?;
    let written = match cursor.shape() {
        Shape::Map => put_map(out, &mut cursor, 0),
        Shape::Empty => {
            out.push_str("null");
            Ok(())
        }
        _ => put_values(out, &mut cursor),
    };
    if written.is_err() {
        out.truncate(start);
    }
    written
}

/// The value of a field at the top level of a message, as JSON; the last one, if the name recurs.
/// None if there is none, or if the message cannot be read.
#[must_use]
pub fn field(message: &[u8], name: &str) -> Option<String> {
    compress::begin_message();
    let mut cursor = Reader::new(message);
    skip_comments(&mut cursor).ok()?;
    let mut is_typed = false;
    while cursor.type_prefix_if().is_some() {
        is_typed = true;
    }
    if is_typed {
        cursor = cursor.block_if()?;
    }
    if !matches!(cursor.shape(), Shape::Map) {
        return None;
    }
    let mut found = None;
    while let Some(key) = cursor.name().ok()? {
        let (Name::Field(key) | Name::Event(key)) = key else { return None };
        if cursor.peek().is_none() || latin1::decode(key) != name {
            cursor.peek().map_or(Ok(()), |_| cursor.skip()).ok()?;
            continue;
        }
        let mut text = String::new();
        put_value(&mut text, &mut cursor, 0).ok()?;
        found = Some(text);
    }
    found
}

fn skip_comments(cursor: &mut Reader<'_>) -> Result<()> {
    while cursor.peek() == Some(COMMENT) {
        let at = cursor.offset();
        cursor.code();
        cursor.stop_bit_bytes().ok_or_else(|| WireError::early("a comment", at))?;
    }
    Ok(())
}

fn put_values(out: &mut String, cursor: &mut Reader<'_>) -> Result<()> {
    let start = out.len();
    put_value(out, cursor, 0)?;
    if cursor.peek().is_none() {
        return Ok(());
    }
    out.insert(start, '[');
    out.push(',');
    put_items(out, cursor, 0)?;
    out.push(']');
    Ok(())
}

fn put_items(out: &mut String, cursor: &mut Reader<'_>, depth: usize) -> Result<()> {
    let mut is_first = true;
    while cursor.peek().is_some() {
        if !std::mem::take(&mut is_first) {
            out.push(',');
        }
        put_value(out, cursor, depth)?;
    }
    Ok(())
}

fn put_map(out: &mut String, cursor: &mut Reader<'_>, depth: usize) -> Result<()> {
    out.push('{');
    let mut is_first = true;
    while let Some(name) = cursor.name()? {
        if !std::mem::take(&mut is_first) {
            out.push(',');
        }
        match name {
            Name::Field(name) | Name::Event(name) => put_string(out, &latin1::decode(name)),
            Name::Number(-1) => put_string(out, "history"),
            Name::Number(number) => put_string(out, &number.to_string()),
            Name::Object => put_key(out, cursor, depth)?,
        }
        out.push(':');
        if cursor.peek().is_none() {
            out.push_str("null"); // an event without a value
        } else {
            put_value(out, cursor, depth)?;
        }
    }
    out.push('}');
    Ok(())
}

/// A key that is not a string, as text: without its type, and as JSON if it is not a scalar.
fn put_key(out: &mut String, cursor: &mut Reader<'_>, depth: usize) -> Result<()> {
    let depth = reader::deeper(depth, cursor.offset())?;
    while cursor.type_prefix_if().is_some() {}
    let mut key = String::new();
    put_value(&mut key, cursor, depth)?;
    if key.starts_with('"') {
        out.push_str(&key);
    } else {
        put_string(out, &key);
    }
    Ok(())
}

fn put_value(out: &mut String, cursor: &mut Reader<'_>, depth: usize) -> Result<()> {
    skip_comments(cursor)?;
    let (at, mut start) = (cursor.offset(), *cursor);
    match cursor.value()? {
        Token::Null => out.push_str("null"),
        Token::Bool(value) => out.push_str(if value { "true" } else { "false" }),
        Token::Int(value, _) => super::number::put_int(out, value),
        Token::Float32(value) => put_float(out, f64::from(value)),
        Token::Float64(value) => put_float(out, value),
        Token::Text(text) | Token::Temporal(text, _) => put_string(out, &reader::text(text, at)?),
        Token::Uuid(high, low) => {
            out.push_str("{\"@UUID\":");
            put_string(out, &uuid::shown(high, low));
            out.push('}');
        }
        Token::TypeLiteral(name) => {
            out.push_str("{\"@type\":");
            put_string(out, &reader::text(name, at)?);
            out.push('}');
        }
        Token::TypePrefix(name) => put_typed(out, name, cursor, reader::deeper(depth, at)?)?,
        Token::Block(block) if block.shape() == Shape::History => {
            put_history(out, &History::read(&mut start)?);
        }
        Token::Block(block) => put_block(out, block, reader::deeper(depth, at)?)?,
        Token::Longs { used, .. } => {
            let values = used.as_chunks().0.iter().map(|value| i64::from_le_bytes(*value));
            put_longs(out, values);
        }
    }
    Ok(())
}

fn put_longs(out: &mut String, values: impl Iterator<Item = i64>) {
    out.push('[');
    for (place, value) in values.enumerate() {
        if place > 0 {
            out.push(',');
        }
        super::number::put_int(out, value);
    }
    out.push(']');
}

fn put_typed(out: &mut String, name: &[u8], cursor: &mut Reader<'_>, depth: usize) -> Result<()> {
    let at = cursor.offset();
    if let Some(method) = Method::named(name) {
        let token = cursor.value()?;
        let packed = match &token {
            Token::Block(block) => block.blob(),
            _ => None,
        };
        let packed = packed.ok_or_else(|| WireError::unexpected("a compressed blob", None, at))?;
        put_blob(out, &method.unpack(packed, super::unpacked_max(packed))?, "!binary");
        return Ok(());
    }
    if name == b"byte[]"
        && let Token::Block(block) = cursor.clone().value()?
        && let Some(blob) = block.blob()
    {
        cursor.value()?;
        put_blob(out, blob, "byte[]");
        return Ok(());
    }
    if MAPS.contains(&name)
        && let Token::Block(block) = cursor.clone().value()?
        && matches!(block.shape(), Shape::Empty)
    {
        cursor.value()?;
        out.push_str("{}");
        return Ok(());
    }
    out.push_str("{\"@");
    let start = out.len();
    put_string(out, &reader::text(name, at)?);
    out.remove(start);
    out.push(':');
    put_value(out, cursor, depth)?;
    out.push('}');
    Ok(())
}

fn put_blob(out: &mut String, blob: &[u8], name: &str) {
    out.push_str("{\"@");
    out.push_str(name);
    out.push_str("\":\"");
    BASE64.encode_string(blob, out);
    out.push_str("\"}");
}

fn put_block(out: &mut String, mut block: Reader<'_>, depth: usize) -> Result<()> {
    skip_comments(&mut block)?;
    match block.shape() {
        Shape::Map => put_map(out, &mut block, depth),
        Shape::Blob => {
            put_blob(out, block.blob().unwrap_or_default(), "!binary");
            Ok(())
        }
        Shape::Longs => put_value(out, &mut block, depth),
        Shape::Empty | Shape::List | Shape::History => {
            out.push('[');
            put_items(out, &mut block, depth)?;
            out.push(']');
            Ok(())
        }
    }
}

fn put_history(out: &mut String, history: &History) {
    out.push_str("{\"sources\":");
    put_longs(out, history.sources.iter().flat_map(|(id, index)| [i64::from(*id), *index]));
    out.push_str(",\"timings\":");
    put_longs(out, history.timings.iter().copied());
    out.push('}');
}

/// A float; NaN and infinities become strings, since JSON has no names for them.
pub(super) fn put_float(out: &mut String, value: f64) {
    use fmt::Write;
    let _ = match value {
        value if value.is_nan() => out.write_str("\"NaN\""),
        f64::INFINITY => out.write_str("\"Infinity\""),
        f64::NEG_INFINITY => out.write_str("\"-Infinity\""),
        value => write!(out, "{value:?}"),
    };
}

pub(super) fn put_string(out: &mut String, text: &str) {
    use fmt::Write;
    out.push('"');
    let mut rest = text;
    while let Some(at) = rest.find(|c: char| c < ' ' || c == '"' || c == '\\') {
        let (before, special) = rest.split_at(at);
        out.push_str(before);
        let _ = match special.as_bytes()[0] {
            mark @ (b'"' | b'\\') => write!(out, "\\{}", char::from(mark)),
            b'\n' => out.write_str("\\n"),
            b'\r' => out.write_str("\\r"),
            b'\t' => out.write_str("\\t"),
            other => write!(out, "\\u{other:04x}"),
        };
        rest = &special[1..];
    }
    out.push_str(rest);
    out.push('"');
}

/// Like [`parse`], with an error for an integer of more than 64 bits.
pub fn parse_exact(text: &str) -> Result<Vec<u8>> {
    let message = parse(text)?;
    match large_integer(text) {
        None => Ok(message),
        Some((digits, names)) => {
            let fault = scalar::too_large(digits);
            Err(names.iter().rev().fold(fault, WireError::inside))
        }
    }
}

/// The first integer of valid JSON that does not fit 64 bits, and the names around it.
fn large_integer(text: &str) -> Option<(&str, Vec<String>)> {
    // Shorter integers cannot be too large, so most texts need no further check.
    text.as_bytes().windows(LEAST_LARGE).find(|digits| digits.iter().all(u8::is_ascii_digit))?;
    let mut names: Vec<Option<String>> = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '"' => string_length(rest),
            '-' | '0'..='9' => {
                rest.find([',', ']', '}', ' ', '\t', '\n', '\r']).unwrap_or(rest.len())
            }
            _ => first.len_utf8(),
        };
        let (token, after) = rest.split_at(length);
        rest = after;
        match first {
            '{' | '[' => names.push(None),
            '}' | ']' => {
                names.pop();
            }
            '"' if after.trim_start().starts_with(':') => {
                if let Some(name) = names.last_mut() {
                    *name = serde_json::from_str(token).ok();
                }
            }
            _ if scalar::is_large_integer(token) => {
                return Some((token, names.into_iter().flatten().collect()));
            }
            _ => {}
        }
    }
    None
}

/// The length of the string at the start of a text.
fn string_length(text: &str) -> usize {
    let mut is_escaped = false;
    let end = text.bytes().skip(1).position(|byte| {
        let is_end = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        is_end
    });
    end.map_or(text.len(), |end| end + 2)
}

/// Encodes JSON as a message, as Java does: an integer of more than 64 bits becomes a float.
pub fn parse(text: &str) -> Result<Vec<u8>> {
    room(text.len())?; // for the unescaped text of a string
    let mut out = Out::new();
    out.reserve(text.len());
    let mut reader = serde_json::Deserializer::from_str(text);
    let read = Value { out: &mut out, depth: 0, is_typed: false }.deserialize(&mut reader);
    read.and_then(|()| reader.end())
        .map_err(|error| WireError::new("cannot read the JSON").with("why", error))?;
    out.finish()
}

/// The least number of digits of an integer of more than 64 bits.
const LEAST_LARGE: usize = 19;

/// Deserializes the next value into the message.
struct Value<'a> {
    out: &'a mut Out,
    depth: usize,
    /// Whether a type precedes the value, so that its names are field names.
    is_typed: bool,
}

impl<'de> DeserializeSeed<'de> for Value<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> std::result::Result<(), D::Error> {
        from.deserialize_any(self)
    }
}

impl Value<'_> {
    fn block<E: serde::de::Error>(
        &mut self,
        content: impl FnOnce(&mut Out, usize) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let depth = reader::deeper(self.depth, 0).map_err(E::custom)?;
        let block = writer::open_block(self.out);
        content(self.out, depth)?;
        writer::close_block(self.out, block);
        Ok(())
    }
}

impl<'de> Visitor<'de> for Value<'_> {
    type Value = ();

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("a value")
    }

    fn visit_unit<E>(self) -> std::result::Result<(), E> {
        writer::put_null(self.out);
        Ok(())
    }

    fn visit_bool<E>(self, value: bool) -> std::result::Result<(), E> {
        writer::put_bool(self.out, value);
        Ok(())
    }

    fn visit_i64<E>(self, value: i64) -> std::result::Result<(), E> {
        writer::put_int64(self.out, value);
        Ok(())
    }

    #[allow(clippy::cast_precision_loss)] // as Java reads an integer of more than 63 bits
    fn visit_u64<E>(self, value: u64) -> std::result::Result<(), E> {
        match i64::try_from(value) {
            Ok(value) => writer::put_int64(self.out, value),
            Err(_) => writer::put_number(self.out, FLOAT64, (value as f64).to_le_bytes()),
        }
        Ok(())
    }

    fn visit_f64<E>(self, value: f64) -> std::result::Result<(), E> {
        writer::put_number(self.out, FLOAT64, value.to_le_bytes());
        Ok(())
    }

    fn visit_str<E>(self, value: &str) -> std::result::Result<(), E> {
        writer::put_text(self.out, value);
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut from: A) -> std::result::Result<(), A::Error> {
        self.block(|out, depth| {
            while from.next_element_seed(Value { out, depth, is_typed: false })?.is_some() {}
            Ok(())
        })
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut from: A) -> std::result::Result<(), A::Error> {
        let first = from.next_key::<String>()?;
        if let Some(name) = first.as_deref().and_then(|key| key.strip_prefix('@')) {
            put_typed_value(&mut self, name, &mut from)?;
            return match from.next_key::<String>()? {
                None => Ok(()),
                Some(more) => Err(A::Error::custom(format_args!(
                    "a type must be the only key of its object: type={name:?} found={more:?}"
                ))),
            };
        }
        let is_typed = self.is_typed;
        let is_empty = first.is_none();
        let entries = |out: &mut Out, depth| {
            let mut next = first;
            while let Some(name) = next {
                scalar::put_name(out, &name, is_typed).map_err(A::Error::custom)?;
                from.next_value_seed(Value { out, depth, is_typed: false })?;
                next = from.next_key()?;
            }
            Ok(())
        };
        // The top level has no block around its entries.
        if self.depth == 0 && !is_typed && self.out.is_empty() {
            entries(self.out, 1)?;
            if self.out.is_empty() {
                return self.block(|_, _| Ok(()));
            }
            return Ok(());
        }
        if is_empty && !is_typed {
            put_type_prefix(self.out, EMPTY_MAP); // distinguishes it from an empty list
        }
        self.block(entries)
    }
}

/// The value of a type.
fn put_typed_value<'de, A: MapAccess<'de>>(
    to: &mut Value<'_>,
    name: &str,
    from: &mut A,
) -> std::result::Result<(), A::Error> {
    let failed = A::Error::custom::<WireError>;
    match name {
        "!binary" | "byte[]" => {
            let text: String = from.next_value()?;
            let blob = BASE64.decode(&text).map_err(A::Error::custom)?;
            if name == "byte[]" {
                put_type_prefix(to.out, name);
            }
            writer::put_blob(to.out, &blob).map_err(failed)
        }
        "type" => {
            writer::put_type_literal(to.out, &from.next_value::<String>()?);
            Ok(())
        }
        "byte" | "short" | "int" | "long" | "float" | "double" | "UUID" => {
            let value: serde_json::Value = from.next_value()?;
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            scalar::put_typed(to.out, name.as_bytes(), &Scalar::Plain(&text)).map_err(failed)
        }
        name => {
            put_type_prefix(to.out, name);
            let depth = reader::deeper(to.depth, 0).map_err(failed)?;
            from.next_value_seed(Value { out: to.out, depth, is_typed: true })
        }
    }
}
