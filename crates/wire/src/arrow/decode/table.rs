//! The rows of one table: columns, and what stands beside them.

use super::arrays::Array;
use super::column::Column;
use super::column::fields::Fields;
use super::history;
use crate::arrow::schema::{Field, Kind};
use crate::error::Result;
use crate::reader::Reader;

/// What becomes of a message that does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misfits {
    /// It is an error.
    Raise,
    /// It is a row without values, and its error is in a column.
    Keep,
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

/// The rows of one table while they are read.
#[derive(Debug)]
pub struct Table {
    indexes: Vec<u8>,
    rows: usize,
    pub fields: Fields,
    history: Option<Column>,
    /// There where misfits are kept.
    errors: Option<Column>,
}

impl Table {
    /// An empty table.
    pub fn new(fields: &[Field], with_history: bool, misfits: Misfits) -> Self {
        let errors = Field { name: String::new(), nullable: true, kind: Kind::Text };
        Self {
            indexes: Vec::new(),
            rows: 0,
            fields: Fields::new(fields),
            history: with_history.then(|| Column::new(&history::field())),
            errors: (misfits == Misfits::Keep).then(|| Column::new(&errors)),
        }
    }

    /// Nothing of the messages is wanted.
    pub const fn is_blank(&self) -> bool {
        self.fields.is_empty() && self.history.is_none()
    }

    /// How many rows there are.
    pub const fn rows(&self) -> usize {
        self.rows
    }

    /// Makes a row of what was read: columns without a value get a null. An error is kept, or given
    /// back and no row made.
    #[inline]
    pub fn end_row(&mut self, index: i64, read: Result<()>) -> Result<()> {
        let row = self.rows;
        match (read, &mut self.errors) {
            (Ok(()), None) => {}
            (Ok(()), Some(errors)) => errors.push_null(),
            (Err(fault), None) => {
                self.truncate(row);
                return Err(fault);
            }
            (Err(fault), Some(errors)) => {
                errors.push_text(&fault.to_string());
                self.fields.truncate(row);
                self.fields.push_nulls(row + 1);
                if let Some(history) = &mut self.history {
                    history.truncate(row);
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

    /// As [`Table::end_row`] for a row of the union, whose first column is the method's name.
    pub fn end_call(&mut self, index: i64, read: Result<()>, method: &str) -> Result<()> {
        self.end_row(index, read)?;
        if let Some(column) = self.fields.at(0) {
            column.truncate(self.rows - 1);
            column.push_text(method);
        }
        self.fields.push_nulls(self.rows);
        Ok(())
    }

    /// Steps over the history, if it is next, and appends it if it is asked for.
    #[inline]
    pub fn take_history(&mut self, cursor: &mut Reader<'_>) -> Result<()> {
        match self.history {
            Some(_) => self.read_history(history::take(cursor)?),
            None => Ok(()),
        }
    }

    /// Appends the history, if it is asked for and there is one.
    pub fn read_history(&mut self, past: Option<Reader<'_>>) -> Result<()> {
        match (&mut self.history, past) {
            (Some(column), Some(from)) => history::read(column, from),
            _ => Ok(()),
        }
    }

    /// Keeps so many rows.
    pub fn truncate(&mut self, rows: usize) {
        self.fields.truncate(rows);
        for column in self.history.iter_mut().chain(&mut self.errors) {
            column.truncate(rows);
        }
        self.indexes.truncate(8 * rows);
        self.rows = rows;
    }

    /// The finished table.
    pub fn finish(self) -> Rows {
        Rows {
            count: self.rows,
            indexes: self.indexes,
            columns: self.fields.finish(),
            history: self.history.map(Column::finish),
            errors: self.errors.map(Column::finish),
        }
    }
}
