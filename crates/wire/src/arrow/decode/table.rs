//! The rows of one table, with their history and other extra columns.

use super::arrays::Array;
use super::column::Column;
use super::column::fields::Fields;
use super::history;
use crate::arrow::schema::{Field, Kind};
use crate::error::Result;
use crate::reader::Reader;

/// How malformed messages are handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misfits {
    /// Misfits raise an error.
    Raise,
    /// Misfits become a row of nulls, with the error in an extra column.
    Keep,
}

/// A finished table.
#[derive(Debug)]
pub struct Rows {
    /// The number of rows.
    pub count: usize,
    /// The message index of each row: 64 bits, little-endian.
    pub indexes: Vec<u8>,
    /// The columns of the schema.
    pub columns: Vec<Array>,
    /// The history, if requested.
    pub history: Option<Array>,
    /// The errors of malformed rows, if those are kept.
    pub errors: Option<Array>,
}

/// A table under construction.
#[derive(Debug)]
pub struct Table {
    indexes: Vec<u8>,
    rows: usize,
    pub fields: Fields,
    history: Option<Column>,
    /// Present if malformed messages are kept.
    errors: Option<Column>,
}

impl Table {
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

    /// Whether no column is requested.
    pub const fn is_blank(&self) -> bool {
        self.fields.is_empty() && self.history.is_none()
    }

    /// The number of rows.
    pub const fn rows(&self) -> usize {
        self.rows
    }

    /// Ends a row: columns without a value get a null. An error is kept, or returned
    /// and no row added.
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

    /// Like [`Table::end_row`], for a row of the union, whose first column is the method's name.
    pub fn end_call(&mut self, index: i64, read: Result<()>, method: &str) -> Result<()> {
        self.end_row(index, read)?;
        if let Some(column) = self.fields.at(0) {
            column.truncate(self.rows - 1);
            column.push_text(method);
        }
        self.fields.push_nulls(self.rows);
        Ok(())
    }

    /// Skips the history if it is next, and appends it if requested.
    #[inline]
    pub fn take_history(&mut self, cursor: &mut Reader<'_>) -> Result<()> {
        match self.history {
            Some(_) => self.read_history(history::take(cursor)?),
            None => Ok(()),
        }
    }

    /// Appends the history, if requested and present.
    pub fn read_history(&mut self, past: Option<Reader<'_>>) -> Result<()> {
        match (&mut self.history, past) {
            (Some(column), Some(from)) => history::read(column, from),
            _ => Ok(()),
        }
    }

    /// Truncates to this many rows.
    pub fn truncate(&mut self, rows: usize) {
        self.fields.truncate(rows);
        for column in self.history.iter_mut().chain(&mut self.errors) {
            column.truncate(rows);
        }
        self.indexes.truncate(8 * rows);
        self.rows = rows;
    }

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
