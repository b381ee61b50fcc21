//! The types of values in a queue's messages, merged from a sample.

use std::collections::HashMap;

use super::decode::column::fields::SHOWN_MAX;
use super::decode::history;
use crate::codes::{DATE, DATE_TIME, TIME};
use crate::compress::Method;
use crate::error::Result;
use crate::history::History;
use crate::latin1;
use crate::reader::{self, Name, Reader, Shape, Token};

/// A type of value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Sort {
    Bool,
    Int,
    /// A whole number of more than 32 bits in a float32, which may also encode an integer.
    Whole,
    Float,
    Text,
    Bytes,
    Date,
    Time,
    /// A date and time without a zone.
    DateTime,
    /// A date and time with a zone.
    Instant,
    Uuid,
    /// An empty list or map: the encoding is the same.
    Empty,
    Struct,
    /// A map of which a key is no name, as Java's maps by numbers.
    Keyed,
    List,
}

impl Sort {
    pub const ALL: [Self; 15] = [
        Self::Bool,
        Self::Int,
        Self::Whole,
        Self::Float,
        Self::Text,
        Self::Bytes,
        Self::Date,
        Self::Time,
        Self::DateTime,
        Self::Instant,
        Self::Uuid,
        Self::Empty,
        Self::Struct,
        Self::Keyed,
        Self::List,
    ];

    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::Int => "int",
            Self::Whole => "whole",
            Self::Float => "float",
            Self::Text => "text",
            Self::Bytes => "bytes",
            Self::Date => "date",
            Self::Time => "time",
            Self::DateTime => "datetime",
            Self::Instant => "instant",
            Self::Uuid => "uuid",
            Self::Empty => "empty",
            Self::Struct => "struct",
            Self::Keyed => "keyed",
            Self::List => "list",
        }
    }
}

/// The types found at one place of the messages.
#[derive(Debug, Default)]
pub struct Seen {
    sorts: [bool; Sort::ALL.len()],
    fields: Vec<(String, Seen)>,
    places: HashMap<String, usize>,
    item: Option<Box<Seen>>,
}

impl Seen {
    /// The types of values found, except nulls.
    pub fn sorts(&self) -> impl Iterator<Item = Sort> {
        Sort::ALL.into_iter().filter(|sort| self.sorts[*sort as usize])
    }

    /// What was found under each name, in order of first appearance.
    #[must_use]
    pub fn fields(&self) -> &[(String, Self)] {
        &self.fields
    }

    /// What was found in lists, and under keys that are no names.
    #[must_use]
    pub fn item(&self) -> Option<&Self> {
        self.item.as_deref()
    }

    /// Adds a message: named values, with or without a block around them, or one value.
    pub fn look(&mut self, message: &[u8]) -> Result<()> {
        let mut cursor = Reader::new(message);
        if matches!(cursor.shape(), Shape::Map | Shape::Empty) {
            let mut ahead = cursor;
            if let Some(mut past) = history::take(&mut ahead)?
                && History::read(&mut past).is_ok()
            {
                cursor = ahead;
            }
            return self.look_at_fields(&mut cursor, 0);
        }
        self.look_at_value(&mut cursor, 0)?;
        cursor.end()
    }

    fn add(&mut self, sort: Sort) {
        self.sorts[sort as usize] = true;
    }

    fn look_at_fields(&mut self, cursor: &mut Reader<'_>, depth: usize) -> Result<()> {
        self.add(Sort::Struct);
        while let Some(name) = cursor.name()? {
            let name = match name {
                Name::Field(name) | Name::Event(name) => latin1::decode(name).into_owned(),
                Name::Number(number) => number.to_string(),
                Name::Object => {
                    cursor.skip()?;
                    self.add(Sort::Keyed);
                    self.item.get_or_insert_default().look_at_value(cursor, depth)?;
                    continue;
                }
            };
            let (name, seen) = self.at(name);
            let shown = || name.chars().take(SHOWN_MAX).collect::<String>();
            seen.look_at_value(cursor, depth).map_err(|fault| fault.inside(shown()))?;
        }
        Ok(())
    }

    fn at(&mut self, name: String) -> (&str, &mut Self) {
        let count = self.fields.len();
        let place = *self.places.entry(name.clone()).or_insert(count);
        if place == count {
            self.fields.push((name, Self::default()));
        }
        let (name, seen) = &mut self.fields[place];
        (name, seen)
    }

    fn look_at_value(&mut self, cursor: &mut Reader<'_>, depth: usize) -> Result<()> {
        let at = cursor.offset();
        let mut type_name = None;
        let value = loop {
            match cursor.value()? {
                Token::TypePrefix(name) => type_name = Some(name),
                value => break value,
            }
        };
        match value {
            Token::Null | Token::TypePrefix(_) => {}
            Token::Bool(_) => self.add(Sort::Bool),
            Token::Int(..) => self.add(Sort::Int),
            Token::Float32(value) if is_wide_integer(value) => self.add(Sort::Whole),
            Token::Float32(_) | Token::Float64(_) => self.add(Sort::Float),
            Token::Text(_) if type_name == Some(b"java.time.Instant") => self.add(Sort::Instant),
            Token::Text(_) | Token::TypeLiteral(_) => self.add(Sort::Text),
            Token::Temporal(_, code) => self.add(match code {
                DATE => Sort::Date,
                TIME => Sort::Time,
                DATE_TIME => Sort::DateTime,
                _ => Sort::Instant,
            }),
            Token::Uuid(..) => self.add(Sort::Uuid),
            Token::Longs { .. } => self.list().add(Sort::Int),
            Token::Block(_) if type_name.and_then(Method::named).is_some() => self.add(Sort::Bytes),
            Token::Block(mut block) => match block.shape() {
                Shape::Empty => self.add(Sort::Empty),
                Shape::Blob | Shape::History => self.add(Sort::Bytes),
                Shape::Longs => self.list().add(Sort::Int),
                Shape::Map => self.look_at_fields(&mut block, reader::deeper(depth, at)?)?,
                Shape::List => {
                    let depth = reader::deeper(depth, at)?;
                    let item = self.list();
                    while block.peek().is_some() {
                        item.look_at_value(&mut block, depth)?;
                    }
                }
            },
        }
        Ok(())
    }

    fn list(&mut self) -> &mut Self {
        self.add(Sort::List);
        self.item.get_or_insert_default()
    }
}

/// Whether Java or Quire may have written an integer as this float: one beyond 32 bits, up to 2^63,
/// which encodes 2^63 - 1.
fn is_wide_integer(value: f32) -> bool {
    const TWO_TO_63: f32 = 9_223_372_036_854_775_808.0;
    let is_wide = !(-2_147_483_648.0..=4_294_967_295.0).contains(&value);
    is_wide && value.abs() <= TWO_TO_63
}
