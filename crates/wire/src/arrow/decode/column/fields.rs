//! Columns by name: those of a struct, or of a table.

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

/// Names in errors are cut behind so many characters.
pub const SHOWN_MAX: usize = 80;
/// A name with more in front of it, such as a comment, is not likely to come again.
const HEAD_MAX: usize = 256;

/// Columns by name.
#[derive(Debug)]
pub struct Fields {
    columns: Vec<Named>,
    /// The names of the messages so far, in their order: those of the next one are likely the same,
    /// and are compared before anything is decoded.
    order: Vec<Step>,
}

#[derive(Debug)]
struct Named {
    label: String,
    /// The name as messages hold it.
    name: Box<[u8]>,
    /// The name where it is a number.
    number: Option<i64>,
    column: Column,
}

/// Where the value behind a name goes.
#[derive(Clone, Copy, Debug)]
enum Goes {
    Column(usize),
    Nowhere,
}

/// A name that was seen, as its token.
#[derive(Debug)]
struct Step {
    head: Head,
    goes: Goes,
}

/// Names in an order that never repeats are not remembered without end.
const fn steps_max(columns: usize) -> usize {
    64 + 4 * columns
}

impl Named {
    fn new(field: &Field) -> Self {
        Self {
            label: field.name.clone(),
            number: field.name.parse().ok(),
            // Names that no message can have were refused when the plan was made.
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
            self.column.truncate(row); // twice in one message: the last counts, as in a map
        }
        self.column.read(cursor).map_err(|fault| fault.inside(&self.label))
    }

    fn push_missing(&mut self) -> Result<()> {
        self.column.push_missing().map_err(|fault| fault.inside(&self.label))
    }
}

impl Fields {
    /// Empty columns.
    pub fn new(fields: &[Field]) -> Self {
        Self { columns: fields.iter().map(Named::new).collect(), order: Vec::new() }
    }

    /// There are no columns.
    pub const fn is_empty(&self) -> bool {
        self.columns.is_empty()
    }

    /// Appends a row of what is named in the rest of the bytes; what is not there is null. After an
    /// error, [`Fields::truncate`] is due.
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

    /// Steps over the next name, and tells where its value goes; None at the end. What is likely to
    /// come next changes with it.
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

    /// Appends a row of the values in the rest of the bytes, one for each column.
    pub fn read_values(&mut self, cursor: &mut Reader<'_>, row: usize) -> Result<()> {
        self.columns.iter_mut().try_for_each(|named| match cursor.peek() {
            Some(_) => named.read(cursor, row),
            None => named.push_missing(),
        })
    }

    /// Appends a row without values; an error where one must be there.
    pub fn read_missing(&mut self, row: usize) -> Result<()> {
        self.read(&mut Reader::new(&[]), row)
    }

    /// The column at this place.
    pub fn at(&mut self, place: usize) -> Option<&mut Column> {
        self.columns.get_mut(place).map(|named| &mut named.column)
    }

    /// Appends nulls to every column up to a length.
    pub fn push_nulls(&mut self, length: usize) {
        self.columns.iter_mut().for_each(|named| named.column.push_nulls(length));
    }

    /// Keeps so many rows.
    pub fn truncate(&mut self, length: usize) {
        self.columns.iter_mut().for_each(|named| named.column.truncate(length));
    }

    /// The finished columns.
    pub fn finish(self) -> Vec<Array> {
        self.columns.into_iter().map(|named| named.column.finish()).collect()
    }
}

/// The start of a name that comes from a message, for words about it.
pub fn shown(name: &[u8]) -> Cow<'_, str> {
    latin1::decode(&name[..name.len().min(SHOWN_MAX)])
}

/// Steps over a value.
#[inline]
pub fn skip(cursor: &mut Reader<'_>) -> Result<()> {
    match scalars::length_at_once(cursor.rest()) {
        Some(length) if cursor.take(length).is_some() => Ok(()),
        _ => cursor.skip(),
    }
}

/// The named values of a block, behind its type's name if it has one, which is one of these.
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

/// Whether there are names in front of the values; nothing has any.
#[inline]
pub fn is_named(cursor: &Reader<'_>) -> bool {
    match cursor.rest().first() {
        Some(&code) if reader::is_name(code) => true,
        _ => matches!(cursor.shape(), reader::Shape::Map | reader::Shape::Empty),
    }
}
