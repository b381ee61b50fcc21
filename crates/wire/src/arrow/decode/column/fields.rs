//! Columns by name: the fields of a struct or the columns of a table.

use std::borrow::Cow;

use super::Column;
use crate::arrow::decode::arrays::Array;
use crate::arrow::decode::encoded_name::Head;
use crate::arrow::decode::scalars;
use crate::arrow::schema::Field;
use crate::convert;
use crate::error::{Result, WireError};
use crate::latin1;
use crate::reader::{self, Name, Reader, Token};

/// Names in errors are cut to this many characters.
pub const SHOWN_MAX: usize = 80;
/// A longer token, such as a name after a comment, is unlikely to recur, and is not remembered.
const HEAD_MAX: usize = 256;

#[derive(Debug)]
pub struct Fields {
    columns: Vec<Named>,
    /// The names in the order of the previous messages. The next message most likely has the same
    /// order, so these are compared before anything is decoded.
    order: Vec<Step>,
}

#[derive(Debug)]
struct Named {
    label: String,
    /// The encoded name.
    name: Box<[u8]>,
    /// The number, if the name is one.
    number: Option<i64>,
    column: Column,
}

/// The destination of a named value.
#[derive(Clone, Copy, Debug)]
enum Goes {
    Column(usize),
    Nowhere,
}

/// The token of a name that occurred before.
#[derive(Debug)]
struct Step {
    head: Head,
    goes: Goes,
}

/// Limits how many names are remembered if their order never repeats.
const fn steps_max(columns: usize) -> usize {
    64 + 4 * columns
}

impl Named {
    fn new(field: &Field) -> Self {
        Self {
            label: field.name.clone(),
            number: field.name.parse().ok(),
            // Names that no message can have were rejected with the schema.
            name: field.name.chars().filter_map(|it| u8::try_from(u32::from(it)).ok()).collect(),
            column: Column::new(field),
        }
    }

    fn is(&self, name: &Name<'_>) -> bool {
        match name {
            Name::Field(name) | Name::Event(name) => *self.name == **name,
            Name::Number(number) => self.number == Some(*number),
            Name::Object => false,
        }
    }

    #[inline]
    fn read(&mut self, cursor: &mut Reader<'_>, row: usize) -> Result<()> {
        if self.column.len() > row {
            self.column.truncate(row); // a repeated name: the last value wins, as in a map
        }
        self.column.read(cursor).map_err(|fault| fault.inside(&self.label))
    }

    fn push_missing(&mut self) -> Result<()> {
        self.column.push_missing().map_err(|fault| fault.inside(&self.label))
    }
}

impl Fields {
    pub fn new(fields: &[Field]) -> Self {
        Self { columns: fields.iter().map(Named::new).collect(), order: Vec::new() }
    }

    /// Whether there are no columns.
    pub const fn is_empty(&self) -> bool {
        self.columns.is_empty()
    }

    /// Appends a row of the named values in the remaining bytes; missing ones are null. After an
    /// error, call [`Fields::truncate`].
    #[inline]
    pub fn read(&mut self, cursor: &mut Reader<'_>, row: usize) -> Result<()> {
        let mut next = 0;
        loop {
            let goes = match self.order.get(next) {
                Some(step) if step.head.take(cursor) => {
                    next += 1;
                    step.goes
                }
                _ => match self.find(cursor, &mut next)? {
                    Some(goes) => goes,
                    None => break,
                },
            };
            match goes {
                Goes::Column(place) => self.columns[place].read(cursor, row)?,
                Goes::Nowhere => skip(cursor)?,
            }
        }
        self.columns.iter_mut().try_for_each(|named| {
            if named.column.len() > row { Ok(()) } else { named.push_missing() }
        })
    }

    /// Consumes the next name and returns the destination of its value, or None at the end. Updates
    /// the prediction of the following name.
    #[cold]
    fn find(&mut self, cursor: &mut Reader<'_>, next: &mut usize) -> Result<Option<Goes>> {
        let start = cursor.rest();
        let Some(name) = cursor.name()? else { return Ok(None) };
        if name == Name::Object {
            cursor.skip()?; // the key
            return Ok(Some(Goes::Nowhere));
        }
        let head = &start[..start.len() - cursor.rest().len()];
        let place = self.columns.iter().position(|named| named.is(&name));
        let goes = place.map_or(Goes::Nowhere, Goes::Column);
        let later = self.order.iter().skip(*next).position(|step| step.head.is(head));
        if let Some(later) = later {
            *next += later + 1;
        } else if self.order.len() < steps_max(self.columns.len()) && head.len() <= HEAD_MAX {
            self.order.insert(*next, Step { head: Head::new(head), goes });
            *next += 1;
        }
        Ok(Some(goes))
    }

    /// Appends a row of the values in the remaining bytes, one per column.
    pub fn read_values(&mut self, cursor: &mut Reader<'_>, row: usize) -> Result<()> {
        self.columns.iter_mut().try_for_each(|named| match cursor.peek() {
            Some(_) => named.read(cursor, row),
            None => named.push_missing(),
        })
    }

    /// Appends a row of nulls; an error if a column is not nullable.
    pub fn read_missing(&mut self, row: usize) -> Result<()> {
        self.read(&mut Reader::new(&[]), row)
    }

    pub fn at(&mut self, place: usize) -> Option<&mut Column> {
        self.columns.get_mut(place).map(|named| &mut named.column)
    }

    /// Appends nulls to every column up to a length.
    pub fn push_nulls(&mut self, length: usize) {
        self.columns.iter_mut().for_each(|named| named.column.push_nulls(length));
    }

    /// Truncates to this many rows.
    pub fn truncate(&mut self, length: usize) {
        self.columns.iter_mut().for_each(|named| named.column.truncate(length));
    }

    pub fn finish(self) -> Vec<Array> {
        self.columns.into_iter().map(|named| named.column.finish()).collect()
    }
}

/// The start of a name from a message, for use in errors.
pub fn shown(name: &[u8]) -> Cow<'_, str> {
    latin1::decode(&name[..name.len().min(SHOWN_MAX)])
}

#[inline]
pub fn skip(cursor: &mut Reader<'_>) -> Result<()> {
    match scalars::try_length(cursor.rest()) {
        Some(length) if cursor.take(length).is_some() => Ok(()),
        _ => cursor.skip(),
    }
}

/// The named values of a block; a type prefix, if there is one, must be one of `types`.
#[inline]
pub fn block_of<'a>(cursor: &mut Reader<'a>, types: &[String]) -> Result<Reader<'a>> {
    match cursor.block_if() {
        Some(block) if is_named(&block) => Ok(block),
        Some(block) => Err(WireError::unexpected("named values", None, block.offset())),
        None => typed_block_of(cursor, types),
    }
}

fn typed_block_of<'a>(cursor: &mut Reader<'a>, types: &[String]) -> Result<Reader<'a>> {
    let (code, at) = (cursor.peek(), cursor.offset());
    loop {
        match cursor.value()? {
            Token::TypePrefix(name)
                if types.is_empty() || types.iter().any(|it| it.as_bytes() == name) => {}
            other @ Token::TypePrefix(_) => {
                return Err(convert::misfit(&other, &types.join(" or "), at));
            }
            Token::Block(block) if is_named(&block) => return Ok(block),
            _ => return Err(WireError::unexpected("named values", code, at)),
        }
    }
}

/// Whether the values have names; an empty block counts as named.
#[inline]
pub fn is_named(cursor: &Reader<'_>) -> bool {
    match cursor.rest().first() {
        Some(&code) if reader::is_name(code) => true,
        _ => matches!(cursor.shape(), reader::Shape::Map | reader::Shape::Empty),
    }
}
