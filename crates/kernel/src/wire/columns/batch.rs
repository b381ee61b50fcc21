//! Messages as rows: what a message looks like from outside, and what becomes of one that does not
//! fit.

use super::arrays::Array;
use super::column::Column;
use super::fields::Fields;
use super::history;
use super::plan::{Field, Kind, Method, Plan, Shape, Takes};
use crate::format::cursor::Cursor;
use crate::wire::fault::{Fault, Result};
use crate::wire::token::{self, Name, Token};

/// What becomes of a message that does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misfits {
    /// It is an error.
    Raise,
    /// It is a row without values, and its error is in a column.
    Keep,
}

/// How the calls of several methods are laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// A table for each method.
    Tables,
    /// One table: a column with the method's name, and a struct for each method.
    Union,
    /// The table of the method at this place; other calls are passed over.
    Only(usize),
}

/// The rows of one table while they are read.
#[derive(Debug)]
struct Table {
    indexes: Vec<u8>,
    rows: usize,
    /// How many there were before the present message.
    before: usize,
    fields: Fields,
    history: Option<Column>,
    errors: Option<Column>,
}

/// A finished table.
#[derive(Debug)]
pub struct Rows {
    /// How many rows there are.
    pub count: usize,
    /// The index of each row's message: 64 bits, little-endian.
    pub indexes: Vec<u8>,
    /// The columns of the plan.
    pub columns: Vec<Array>,
    /// The history, if it was asked for.
    pub history: Option<Array>,
    /// What is wrong with a row, where misfits are kept.
    pub errors: Option<Array>,
}

/// Messages decoded into columns.
#[derive(Debug)]
pub struct Batch<'p> {
    plan: &'p Plan,
    misfits: Misfits,
    layout: Layout,
    /// One; for [`Layout::Tables`] one for each method, and one for what is no call of theirs.
    tables: Vec<Table>,
    messages: usize,
    bytes: usize,
}

impl<'p> Batch<'p> {
    /// An empty batch.
    #[must_use]
    pub fn new(plan: &'p Plan, misfits: Misfits, layout: Layout) -> Self {
        let table = |fields: &[Field]| Table {
            indexes: Vec::new(),
            rows: 0,
            before: 0,
            fields: Fields::new(fields),
            history: plan.history.then(|| Column::new(&history::field())),
            errors: (misfits == Misfits::Keep).then(|| Column::new(&text("_error"))),
        };
        let tables = match (&plan.shape, layout) {
            (Shape::Fields(fields), _) => vec![table(fields)],
            (Shape::Value(field), _) => vec![table(std::slice::from_ref(field))],
            (Shape::Calls(methods), Layout::Tables) => {
                let own = methods.iter().map(|method| table(columns_of(method)));
                own.chain([table(&[])]).collect()
            }
            (Shape::Calls(methods), Layout::Union) => vec![table(&union_of(methods))],
            (Shape::Calls(methods), Layout::Only(place)) => {
                vec![table(methods.get(place).map_or(&[], columns_of))]
            }
        };
        Self { plan, misfits, layout, tables, messages: 0, bytes: 0 }
    }

    /// How many messages have a row.
    #[must_use]
    pub const fn messages(&self) -> usize {
        self.messages
    }

    /// How many bytes these messages had.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds a message. Where misfits are raised and it is one, nothing is added.
    #[inline]
    pub fn add(&mut self, index: i64, message: &[u8]) -> Result<()> {
        let added = match &self.plan.shape {
            Shape::Calls(methods) => self.add_calls(methods, index, message)?,
            shape => {
                let table = &mut self.tables[0];
                let row = table.rows;
                let (fields, past) = (&mut table.fields, &mut table.history);
                let mut cursor = Cursor::new(message);
                let read = read_history(past, &mut cursor).and_then(|()| match shape {
                    Shape::Fields(_) => read_fields(fields, cursor, row),
                    _ => read_value(fields, cursor, row),
                });
                table.end_row(index, read, self.misfits)?;
                true
            }
        };
        if added {
            self.messages += 1;
            self.bytes += message.len();
        }
        Ok(())
    }

    /// Adds a row for each call of a message; whether there was one.
    fn add_calls(&mut self, methods: &[Method], index: i64, message: &[u8]) -> Result<bool> {
        self.tables.iter_mut().for_each(|table| table.before = table.rows);
        let read = self.read_calls(methods, index, &mut Cursor::new(message));
        if let Err(fault) = read {
            if self.misfits == Misfits::Raise {
                self.tables.iter_mut().for_each(|table| table.truncate(table.before));
                return Err(fault);
            }
            let misfits = self.misfits;
            self.rest().end_row(index, Err(fault), misfits)?;
        }
        Ok(self.tables.iter().any(|table| table.rows > table.before))
    }

    /// The table of what is no call of a known method.
    fn rest(&mut self) -> &mut Table {
        let last = self.tables.len() - 1;
        &mut self.tables[last]
    }

    fn read_calls(
        &mut self,
        methods: &[Method],
        index: i64,
        cursor: &mut Cursor<'_>,
    ) -> Result<()> {
        let past = history::take(cursor)?;
        let at = cursor.offset();
        let mut is_empty = true;
        while let Some(name) = token::name(cursor)? {
            is_empty = false;
            let found = methods.iter().position(|method| match name {
                Name::Field(name) | Name::Event(name) => token::latin1(name) == method.name,
                Name::Number(number) => method.id == Some(number),
                Name::Object => false,
            });
            let value = *cursor;
            if cursor.peek().is_some() {
                token::skip(cursor)?;
            }
            let end = *cursor;
            let value = value.until(&end);
            match (found, self.layout) {
                (Some(place), Layout::Only(only)) if place != only => {}
                (None, Layout::Only(_)) => {}
                (Some(place), _) if methods[place].is_passed_over() => {}
                (Some(place), Layout::Union) => {
                    let before = &methods[..place];
                    let passed = before.iter().filter(|method| method.is_passed_over()).count();
                    self.add_call(&methods[place], place - passed, index, value, past)?;
                }
                (Some(place), _) => self.add_call(&methods[place], place, index, value, past)?,
                (None, _) => self.add_unknown(name, index, past, at)?,
            }
        }
        if is_empty { Err(Fault::unexpected("a method call", None, at)) } else { Ok(()) }
    }

    fn add_call(
        &mut self,
        method: &Method,
        place: usize,
        index: i64,
        mut value: Cursor<'_>,
        past: Option<Cursor<'_>>,
    ) -> Result<()> {
        let union = self.layout == Layout::Union;
        let table = &mut self.tables[if self.layout == Layout::Tables { place } else { 0 }];
        let row = table.rows;
        let read = table.read_history(past).and_then(|()| {
            if !union {
                return read_arguments(&method.takes, &mut table.fields, &mut value, row);
            }
            let Some(column) = table.fields.at(1 + place) else { return Ok(()) };
            column.push_with(|inside| read_arguments(&method.takes, inside, &mut value, row))
        });
        let read = read.map_err(|fault| fault.inside(&method.name));
        table.end_call(index, read, union.then_some(&method.name), self.misfits)
    }

    /// A call of a method that the plan does not know: a row of the union, else a misfit.
    fn add_unknown(
        &mut self,
        name: Name<'_>,
        index: i64,
        past: Option<Cursor<'_>>,
        at: usize,
    ) -> Result<()> {
        let name = match name {
            Name::Field(name) | Name::Event(name) => token::latin1(name).into_owned(),
            Name::Number(number) => number.to_string(),
            Name::Object => "?".into(),
        };
        let (misfits, union) = (self.misfits, self.layout == Layout::Union);
        let table = self.rest();
        if union {
            let read = table.read_history(past);
            return table.end_call(index, read, Some(&name), misfits);
        }
        let fault = Fault::new("no method of this name").with("offset", at).inside(name);
        table.end_row(index, Err(fault), misfits)
    }

    /// The finished tables, in the order of the plan.
    #[must_use]
    pub fn finish(self) -> Vec<Rows> {
        self.tables.into_iter().map(Table::finish).collect()
    }
}

impl Table {
    /// Makes a row of what was read: columns without a value get a null.
    #[inline]
    fn end_row(&mut self, index: i64, read: Result<()>, misfits: Misfits) -> Result<()> {
        let row = self.rows;
        match (read, misfits) {
            (Ok(()), _) => {
                if let Some(errors) = &mut self.errors {
                    errors.push_null();
                }
            }
            (Err(fault), Misfits::Raise) => {
                self.truncate(row);
                return Err(fault);
            }
            (Err(fault), Misfits::Keep) => {
                self.truncate(row);
                self.fields.push_nulls(row + 1);
                if let Some(errors) = &mut self.errors {
                    errors.push_text(&fault.to_string());
                }
            }
        }
        if let Some(history) = &mut self.history {
            history.push_nulls(row + 1);
        }
        self.indexes.extend_from_slice(&index.to_le_bytes());
        self.rows = row + 1;
        Ok(())
    }

    /// As [`Table::end_row`], with the name of the method if it is a row of the union.
    fn end_call(
        &mut self,
        index: i64,
        read: Result<()>,
        method: Option<&String>,
        misfits: Misfits,
    ) -> Result<()> {
        self.end_row(index, read, misfits)?;
        if let Some(name) = method
            && let Some(column) = self.fields.at(0)
        {
            column.truncate(self.rows - 1);
            column.push_text(name);
            self.fields.push_nulls(self.rows);
        }
        Ok(())
    }

    fn read_history(&mut self, past: Option<Cursor<'_>>) -> Result<()> {
        match (&mut self.history, past) {
            (Some(column), Some(block)) => history::read(column, block),
            _ => Ok(()),
        }
    }

    fn truncate(&mut self, rows: usize) {
        self.fields.truncate(rows);
        for column in self.history.iter_mut().chain(&mut self.errors) {
            column.truncate(rows);
        }
        self.indexes.truncate(8 * rows);
        self.rows = rows;
    }

    fn finish(self) -> Rows {
        Rows {
            count: self.rows,
            indexes: self.indexes,
            columns: self.fields.finish(),
            history: self.history.map(Column::finish),
            errors: self.errors.map(Column::finish),
        }
    }
}

fn read_history(past: &mut Option<Column>, cursor: &mut Cursor<'_>) -> Result<()> {
    match past {
        Some(column) => match history::take(cursor)? {
            Some(from) => history::read(column, from),
            None => Ok(()),
        },
        None => Ok(()),
    }
}

/// Named values: at the top of the message, or in a block with or without a type's name.
#[inline]
fn read_fields(fields: &mut Fields, mut cursor: Cursor<'_>, row: usize) -> Result<()> {
    if matches!(token::shape(&cursor), token::Shape::Map | token::Shape::Empty) {
        return fields.read(&mut cursor, row);
    }
    let mut block = block_of(&mut cursor)?;
    token::end(cursor)?;
    fields.read(&mut block, row)
}

/// The named values of a block.
fn block_of<'a>(cursor: &mut Cursor<'a>) -> Result<Cursor<'a>> {
    let (code, at) = (cursor.peek(), cursor.offset());
    loop {
        match token::value(cursor)? {
            Token::TypePrefix(_) => {}
            Token::Block(block)
                if matches!(token::shape(&block), token::Shape::Map | token::Shape::Empty) =>
            {
                return Ok(block);
            }
            _ => return Err(Fault::unexpected("named values", code, at)),
        }
    }
}

fn read_value(fields: &mut Fields, mut cursor: Cursor<'_>, row: usize) -> Result<()> {
    fields.read_values(&mut cursor, row)?;
    token::end(cursor)
}

/// The arguments of a call: none, one, or several as a list.
fn read_arguments(
    takes: &Takes,
    fields: &mut Fields,
    value: &mut Cursor<'_>,
    row: usize,
) -> Result<()> {
    match takes {
        Takes::PassedOver => Ok(()),
        Takes::Arguments(columns) if columns.len() < 2 => fields.read_values(value, row),
        Takes::Arguments(_) => match value.peek() {
            None => fields.read_values(value, row),
            code => match token::value(value)? {
                Token::Block(mut block) => fields.read_values(&mut block, row),
                _ => Err(Fault::unexpected("a list of arguments", code, value.offset())),
            },
        },
        Takes::Object(_) => match value.peek() {
            None => fields.read_missing(row),
            Some(_) => match token::value(&mut value.clone())? {
                Token::Null => fields.read_missing(row),
                _ => fields.read(&mut block_of(value)?, row),
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

fn text(name: &str) -> Field {
    Field { name: name.into(), nullable: true, kind: Kind::Text }
}

/// The method's name, and a struct for each method.
fn union_of(methods: &[Method]) -> Vec<Field> {
    let wanted = methods.iter().filter(|method| !method.is_passed_over());
    let each = wanted.map(|method| Field {
        name: method.name.clone(),
        nullable: true,
        kind: Kind::Struct(columns_of(method).to_vec()),
    });
    [text("method")].into_iter().chain(each).collect()
}
