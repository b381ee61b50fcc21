//! Method calls as rows of the tables of their methods.

use std::borrow::Cow;

use super::column::fields::{Fields, block_of, shown, skip};
use super::encoded_name::Head;
use super::history;
use super::table::{Rows, Table};
use crate::arrow::schema::{Field, Kind, Method, Takes};
use crate::codes::NULL;
use crate::error::{Result, WireError};
use crate::latin1;
use crate::out::Out;
use crate::reader::{Name, Reader, Token};
use crate::writer;

/// The layout of calls of several methods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// One table per method, and one for malformed messages.
    Tables,
    /// One table: a column with the method's name, and one struct per method.
    Union,
    /// Only the table of the method at this position; other calls are skipped.
    Only(usize),
}

/// The calls of a batch.
#[derive(Debug)]
pub struct Calls<'p> {
    methods: &'p [Method],
    layout: Layout,
    /// One; for [`Layout::Tables`] one per method, and one for malformed messages.
    tables: Vec<Table>,
    /// The event of each method, and the last method called, which is likely the next one too.
    heads: Vec<Head>,
    last: usize,
    /// The tables in which the current message has rows, with their previous number of rows.
    touched: Vec<(usize, usize)>,
}

impl<'p> Calls<'p> {
    /// An empty set of calls; `table` creates the tables.
    pub fn new(methods: &'p [Method], layout: Layout, table: impl Fn(&[Field]) -> Table) -> Self {
        let tables = match layout {
            Layout::Tables => {
                methods.iter().map(|method| table(columns_of(method))).chain([table(&[])]).collect()
            }
            Layout::Union => vec![table(&union_of(methods))],
            Layout::Only(place) => vec![table(methods.get(place).map_or(&[], columns_of))],
        };
        let heads = methods.iter().map(head_of).collect();
        Self { methods, layout, tables, heads, last: 0, touched: Vec::new() }
    }

    /// Adds a row for each call of a message; returns whether there was one.
    #[inline]
    pub fn add(&mut self, index: i64, cursor: &mut Reader<'_>) -> Result<bool> {
        self.touched.clear();
        let read = self.read(index, cursor);
        if let Err(fault) = read {
            let last = self.tables.len() - 1;
            self.touch(last);
            if let Err(fault) = self.tables[last].end_row(index, Err(fault)) {
                while let Some((place, rows)) = self.touched.pop() {
                    self.tables[place].truncate(rows);
                }
                return Err(fault);
            }
        }
        Ok(!self.touched.is_empty())
    }

    fn touch(&mut self, place: usize) -> &mut Table {
        let table = &mut self.tables[place];
        self.touched.push((place, table.rows()));
        table
    }

    fn read(&mut self, index: i64, cursor: &mut Reader<'_>) -> Result<()> {
        let mut past = None;
        let mut is_first = true;
        loop {
            let known = self.heads.get(self.last).is_some_and(|head| head.take(cursor));
            if !known {
                if is_first {
                    past = history::take(cursor)?;
                }
                let at = cursor.offset();
                let Some(name) = cursor.name()? else {
                    if is_first {
                        return Err(WireError::unexpected("a method call", None, at));
                    }
                    return Ok(());
                };
                let found = self.methods.iter().position(|method| is(method, &name));
                let Some(number) = found else {
                    is_first = false;
                    self.add_unknown(name, index, past, cursor, at)?;
                    continue;
                };
                self.last = number;
            }
            is_first = false;
            match self.place_of(self.last) {
                Some(place) => self.add_call(self.last, place, index, past, cursor)?,
                None => skip_if_any(cursor)?,
            }
        }
    }

    /// A method's table and, for the union, its column; None if its calls are skipped.
    fn place_of(&self, number: usize) -> Option<(usize, usize)> {
        if self.methods[number].is_passed_over() {
            return None;
        }
        match self.layout {
            Layout::Tables => Some((number, 0)),
            Layout::Only(only) => (only == number).then_some((0, 0)),
            Layout::Union => {
                let before = self.methods[..number].iter();
                Some((0, 1 + before.filter(|method| !method.is_passed_over()).count()))
            }
        }
    }

    #[inline]
    fn add_call(
        &mut self,
        number: usize,
        (place, column): (usize, usize),
        index: i64,
        past: Option<Reader<'_>>,
        cursor: &mut Reader<'_>,
    ) -> Result<()> {
        let method = &self.methods[number];
        let is_union = self.layout == Layout::Union;
        let table = &mut self.tables[place];
        let row = table.rows();
        let start = *cursor;
        let mut read = table.read_history(past).and_then(|()| {
            if !is_union {
                return read_arguments(&method.takes, &mut table.fields, cursor, row);
            }
            let Some(column) = table.fields.at(column) else { return Ok(()) };
            column.push_with(|inside| read_arguments(&method.takes, inside, cursor, row))
        });
        if let Err(fault) = read {
            // The next call starts after this one's value, if its end can be found.
            *cursor = start;
            if let Err(fault) = skip_if_any(cursor) {
                table.truncate(row);
                return Err(fault.inside(&method.name));
            }
            read = Err(fault.inside(&method.name));
        }
        let table = self.touch(place);
        if is_union {
            return table.end_call(index, read, &method.name);
        }
        table.end_row(index, read)
    }

    /// A call of a method that is not in the schema: a row of the union, otherwise malformed.
    fn add_unknown(
        &mut self,
        name: Name<'_>,
        index: i64,
        past: Option<Reader<'_>>,
        cursor: &mut Reader<'_>,
        at: usize,
    ) -> Result<()> {
        if name == Name::Object {
            skip_if_any(cursor)?; // the key
        }
        skip_if_any(cursor)?;
        if let Layout::Only(_) = self.layout {
            return Ok(());
        }
        let is_union = self.layout == Layout::Union;
        let name = match name {
            Name::Field(name) | Name::Event(name) if is_union => latin1::decode(name),
            Name::Field(name) | Name::Event(name) => shown(name),
            Name::Number(number) => Cow::Owned(number.to_string()),
            Name::Object => Cow::Borrowed("?"),
        };
        let table = self.touch(self.tables.len() - 1);
        if is_union {
            let read = table.read_history(past);
            return table.end_call(index, read, &name);
        }
        let fault = WireError::new("no method of this name").with("offset", at).inside(name);
        table.end_row(index, Err(fault))
    }

    /// The number of rows in all tables.
    pub fn rows(&self) -> usize {
        self.tables.iter().map(Table::rows).sum()
    }

    pub fn finish(self) -> Vec<Rows> {
        self.tables.into_iter().map(Table::finish).collect()
    }
}

fn is(method: &Method, name: &Name<'_>) -> bool {
    match name {
        Name::Field(name) | Name::Event(name) => latin1::decode(name) == method.name,
        Name::Number(number) => method.id == Some(*number),
        Name::Object => false,
    }
}

fn head_of(method: &Method) -> Head {
    let mut head = Out::small();
    match method.id {
        Some(id) => writer::put_field_number(&mut head, id),
        // Names that no message can have were rejected with the schema.
        None => drop(writer::put_key(&mut head, &method.name)),
    }
    Head::new(&head.into_small())
}

/// Skips the value of an event; it may have none.
fn skip_if_any(cursor: &mut Reader<'_>) -> Result<()> {
    if cursor.peek().is_some() { skip(cursor) } else { Ok(()) }
}

/// The arguments of a call: none, one, or several as a list.
#[inline]
fn read_arguments(
    takes: &Takes,
    fields: &mut Fields,
    value: &mut Reader<'_>,
    row: usize,
) -> Result<()> {
    match takes {
        Takes::PassedOver => Ok(()),
        Takes::Object(_) => match value.peek() {
            None => fields.read_missing(row),
            Some(NULL) => {
                value.code();
                fields.read_missing(row)
            }
            Some(_) => fields.read(&mut block_of(value, &[])?, row),
        },
        Takes::Arguments(columns) => match (columns.len(), value.peek()) {
            (0, _) => skip_if_any(value),
            (1, _) | (_, None) => fields.read_values(value, row),
            (_, code) => match value.value()? {
                Token::Block(mut block) => fields.read_values(&mut block, row),
                _ => Err(WireError::unexpected("a list of arguments", code, value.offset())),
            },
        },
    }
}

fn columns_of(method: &Method) -> &[Field] {
    match &method.takes {
        Takes::PassedOver => &[],
        Takes::Arguments(fields) | Takes::Object(fields) => fields,
    }
}

/// The columns of the union: the method's name, and one struct per method.
fn union_of(methods: &[Method]) -> Vec<Field> {
    let field = |name: &str, kind| Field { name: name.into(), nullable: true, kind };
    let wanted = methods.iter().filter(|method| !method.is_passed_over());
    let each = wanted.map(|method| field(&method.name, Kind::Struct(columns_of(method).to_vec())));
    [field("method", Kind::Text)].into_iter().chain(each).collect()
}
