//! A column under construction: values of any kind, and their nested columns.

use std::collections::HashMap;

use super::arrays::{Array, Bits, Offsets, Strings, Validity};
use fields::{Fields, shown};

pub mod fields;
use super::scalars;
use crate::arrow::schema::{Field, Kind};
use crate::codes;
use crate::compress::{Method, UNPACKED_MAX};
use crate::convert;
use crate::error::{Result, WireError};
use crate::latin1;
use crate::reader::{Name, Reader, Shape, Token};

/// A column under construction.
#[derive(Debug)]
pub struct Column {
    validity: Validity,
    nullable: bool,
    kind: Kind,
    data: Data,
}

#[derive(Debug)]
enum Data {
    Bits(Bits),
    Fixed(Vec<u8>),
    Text(Strings),
    Binary(Strings),
    Dictionary { codes: Vec<u8>, places: HashMap<Box<[u8]>, i32>, values: Strings },
    Struct(Fields),
    List(Offsets, Box<Column>),
    Map(Offsets, Box<Column>, Box<Column>),
}

impl Column {
    pub fn new(field: &Field) -> Self {
        let kind = field.kind.clone();
        let data = match &field.kind {
            Kind::Bool => Data::Bits(Bits::default()),
            Kind::Text => Data::Text(Strings::default()),
            Kind::Binary => Data::Binary(Strings::default()),
            Kind::Dictionary => Data::Dictionary {
                codes: Vec::new(),
                places: HashMap::new(),
                values: Strings::default(),
            },
            Kind::Struct(fields) => Data::Struct(Fields::new(fields)),
            Kind::List(item) => Data::List(Offsets::default(), Box::new(Self::new(item))),
            Kind::Map(value) => {
                let keys = Field { name: String::new(), nullable: false, kind: Kind::Text };
                let (keys, values) = (Box::new(Self::new(&keys)), Box::new(Self::new(value)));
                Data::Map(Offsets::default(), keys, values)
            }
            _ => Data::Fixed(Vec::new()),
        };
        Self { validity: Validity::default(), nullable: field.nullable, kind, data }
    }

    /// The number of values.
    #[inline]
    pub const fn len(&self) -> usize {
        self.validity.len()
    }

    /// Appends the next value of a message. After an error, call [`Column::truncate`].
    #[inline]
    pub fn read(&mut self, cursor: &mut Reader<'_>) -> Result<()> {
        let taken = match &mut self.data {
            Data::Fixed(values) => scalars::try_put(values, &self.kind, cursor.rest()),
            Data::Text(strings) => scalars::try_text(cursor.rest())
                .and_then(|text| strings.push(text).map(|()| 1 + text.len())),
            _ => None,
        };
        if let Some(count) = taken
            && cursor.take(count).is_some()
        {
            self.validity.push(true);
            return Ok(());
        }
        self.read_any(cursor)
    }

    /// Like [`Column::read`], without the fast path for expected values.
    fn read_any(&mut self, cursor: &mut Reader<'_>) -> Result<()> {
        let start = *cursor;
        let value = cursor.value()?;
        self.put(cursor, start, value)
    }

    fn put<'a>(
        &mut self,
        cursor: &mut Reader<'a>,
        start: Reader<'a>,
        value: Token<'a>,
    ) -> Result<()> {
        let (value, type_name) = match value {
            Token::TypePrefix(name) => (past_prefix(cursor)?, Some(name)),
            value => (value, None),
        };
        if let Token::Null = value {
            return self.push_missing().map_err(|fault| fault.with("found", "null"));
        }
        let misfit = |kind: &Kind| misfit(kind, start, &value, type_name);
        match &mut self.data {
            Data::Fixed(values) => scalars::put(values, &self.kind, &value),
            Data::Bits(bits) => scalars::truth(&value).map(|value| bits.push(value)),
            Data::Text(strings) => match scalars::text(&value) {
                Some(text) => Some(strings.push(text.as_bytes()).ok_or_else(full)?),
                None => None,
            },
            Data::Dictionary { codes, places, values } => match scalars::text(&value) {
                Some(text) => {
                    let code = code_of(places, values, text.as_bytes()).ok_or_else(full)?;
                    codes.extend_from_slice(&code.to_le_bytes());
                    Some(())
                }
                None => None,
            },
            Data::Binary(strings) => put_bytes(strings, &value, type_name)?,
            Data::Struct(fields) => match value {
                Token::Block(mut block) => match block.shape() {
                    Shape::Map | Shape::Empty => {
                        Some(fields.read(&mut block, self.validity.len())?)
                    }
                    _ => None,
                },
                _ => None,
            },
            Data::List(offsets, item) => put_items(offsets, item, value)?,
            Data::Map(offsets, keys, values) => put_entries(offsets, keys, values, value)?,
        }
        .ok_or_else(|| misfit(&self.kind))?;
        self.validity.push(true);
        Ok(())
    }

    /// Appends a null, or fails if the column is not nullable.
    pub fn push_missing(&mut self) -> Result<()> {
        if self.nullable {
            self.push_null();
            return Ok(());
        }
        Err(WireError::new("the value must not be null").with("expected", self.kind.name()))
    }

    pub fn push_null(&mut self) {
        let length = self.validity.len();
        match &mut self.data {
            Data::Bits(bits) => bits.push(false),
            Data::Fixed(values) => values.resize(values.len() + scalars::width(&self.kind), 0),
            Data::Text(strings) | Data::Binary(strings) => strings.push_empty(),
            Data::Dictionary { codes, .. } => codes.extend_from_slice(&[0; 4]),
            Data::Struct(fields) => fields.push_nulls(length + 1),
            Data::List(offsets, _) | Data::Map(offsets, _, _) => offsets.push_same(),
        }
        self.validity.push(false);
    }

    /// Appends nulls up to a length.
    pub fn push_nulls(&mut self, length: usize) {
        while self.len() < length {
            self.push_null();
        }
    }

    /// Appends a string, unless it exceeds what Arrow's offsets can address.
    pub fn push_text(&mut self, text: &str) {
        if let Data::Text(strings) = &mut self.data
            && strings.push(text.as_bytes()).is_some()
        {
            self.validity.push(true);
        } else {
            self.push_null();
        }
    }

    /// Appends bytes, unless they exceed what Arrow's offsets can address.
    #[inline]
    pub fn push_bytes(&mut self, bytes: &[u8]) {
        if let Data::Binary(strings) = &mut self.data
            && strings.push(bytes).is_some()
        {
            self.validity.push(true);
        } else {
            self.push_null();
        }
    }

    /// Appends a struct whose fields are appended by `make`.
    pub fn push_with(&mut self, make: impl FnOnce(&mut Fields) -> Result<()>) -> Result<()> {
        if let Data::Struct(fields) = &mut self.data {
            make(fields)?;
            self.validity.push(true);
        }
        Ok(())
    }

    /// Truncates to this many values, including what an error left in nested columns.
    pub fn truncate(&mut self, length: usize) {
        match &mut self.data {
            Data::Bits(bits) => bits.truncate(length),
            Data::Fixed(values) => values.truncate(length * scalars::width(&self.kind)),
            Data::Text(strings) | Data::Binary(strings) => strings.truncate(length),
            Data::Dictionary { codes, .. } => codes.truncate(4 * length),
            Data::Struct(fields) => fields.truncate(length),
            Data::List(offsets, item) => item.truncate(offsets.truncate(length)),
            Data::Map(offsets, keys, values) => {
                let count = offsets.truncate(length);
                keys.truncate(count);
                values.truncate(count);
            }
        }
        self.validity.truncate(length);
    }

    pub fn finish(self) -> Array {
        let mut array = self.validity.into_array();
        match self.data {
            Data::Bits(bits) => array.buffers.push(Some(bits.into_bytes())),
            Data::Fixed(values) => array.buffers.push(Some(values)),
            Data::Text(strings) | Data::Binary(strings) => {
                array.buffers.extend(strings.into_buffers());
            }
            Data::Dictionary { codes, places, values } => {
                array.buffers.push(Some(codes));
                let mut buffers = vec![None];
                buffers.extend(values.into_buffers());
                let length = places.len();
                array.dictionary = Some(Box::new(Array { length, buffers, ..Array::default() }));
            }
            Data::Struct(fields) => array.children = fields.finish(),
            Data::List(offsets, item) => {
                array.buffers.push(Some(offsets.into_bytes()));
                array.children.push(item.finish());
            }
            Data::Map(offsets, keys, values) => {
                array.buffers.push(Some(offsets.into_bytes()));
                let length = keys.len();
                let children = vec![keys.finish(), values.finish()];
                let buffers = vec![None];
                array.children.push(Array { length, buffers, children, ..Array::default() });
            }
        }
        array
    }
}

/// The value after a type prefix.
fn past_prefix<'a>(cursor: &mut Reader<'a>) -> Result<Token<'a>> {
    loop {
        match cursor.value()? {
            Token::TypePrefix(_) => {}
            value => return Ok(value),
        }
    }
}

fn code_of(places: &mut HashMap<Box<[u8]>, i32>, values: &mut Strings, text: &[u8]) -> Option<i32> {
    if let Some(code) = places.get(text) {
        return Some(*code);
    }
    let code = i32::try_from(places.len()).ok()?;
    values.push(text)?;
    places.insert(text.into(), code);
    Some(code)
}

fn put_bytes(
    strings: &mut Strings,
    value: &Token<'_>,
    type_name: Option<&[u8]>,
) -> Result<Option<()>> {
    let found = match value {
        Token::Text(bytes) => *bytes,
        Token::Block(block) => match block.blob() {
            Some(blob) => blob,
            None => return Ok(None),
        },
        _ => return Ok(None),
    };
    match type_name.and_then(Method::named) {
        Some(method) => strings.push(&method.unpack(found, UNPACKED_MAX)?),
        None => strings.push(found),
    }
    .map(Some)
    .ok_or_else(full)
}

fn put_items(offsets: &mut Offsets, item: &mut Column, value: Token<'_>) -> Result<Option<()>> {
    match value {
        Token::Block(mut block) => match block.shape() {
            Shape::List | Shape::Empty => {
                let first = item.len();
                while block.peek().is_some() {
                    let place = item.len() - first;
                    item.read(&mut block)
                        .map_err(|fault| fault.inside(format_args!("[{place}]")))?;
                }
            }
            Shape::Longs => match block.value()? {
                Token::Longs { used, .. } => put_longs(item, used)?,
                _ => return Ok(None),
            },
            _ => return Ok(None),
        },
        Token::Longs { used, .. } => put_longs(item, used)?,
        _ => return Ok(None),
    }
    offsets.push(item.len()).map(Some).ok_or_else(full)
}

fn put_longs(item: &mut Column, used: &[u8]) -> Result<()> {
    for bytes in used.as_chunks::<8>().0 {
        let mut one = [codes::INT64; 9];
        one[1..].copy_from_slice(bytes);
        item.read(&mut Reader::new(&one))?;
    }
    Ok(())
}

fn put_entries(
    offsets: &mut Offsets,
    keys: &mut Column,
    values: &mut Column,
    value: Token<'_>,
) -> Result<Option<()>> {
    let Token::Block(mut block) = value else { return Ok(None) };
    if !matches!(block.shape(), Shape::Map | Shape::Empty) {
        return Ok(None);
    }
    while let Some(name) = block.name()? {
        match name {
            Name::Field(name) | Name::Event(name) => keys.push_text(&latin1::decode(name)),
            Name::Number(number) => keys.push_text(&number.to_string()),
            Name::Object => keys.read(&mut block).map_err(|fault| fault.inside("key"))?,
        }
        values.read(&mut block).map_err(|fault| match name {
            Name::Field(name) | Name::Event(name) => fault.inside(shown(name)),
            Name::Number(number) => fault.inside(number),
            Name::Object => fault.inside("value"),
        })?;
    }
    offsets.push(keys.len()).map(Some).ok_or_else(full)
}

#[cold]
fn full() -> WireError {
    WireError::new("a column holds at most 2 GiB, request fewer messages")
}

#[cold]
fn misfit(
    kind: &Kind,
    start: Reader<'_>,
    value: &Token<'_>,
    type_name: Option<&[u8]>,
) -> WireError {
    let mut at = start;
    let code = at.peek().unwrap_or(0);
    let fault = convert::misfit(value, &kind.name(), at.offset())
        .with("code", format_args!("{code:#04x} ({})", codes::name(code)));
    match type_name {
        Some(name) => fault.with("type", format_args!("{:?}", String::from_utf8_lossy(name))),
        None => fault,
    }
}
