//! A batch of messages decoded into rows.

use super::calls::Calls;
pub use super::calls::Layout;
use super::column::fields::{Fields, block_of, is_named};
use super::table::Table;
pub use super::table::{Misfits, Rows};
use crate::arrow::schema::{Field, Plan, Shape};
use crate::compress;
use crate::error::Result;
use crate::out::room;
use crate::reader::Reader;

/// Batches of fewer bytes do not check for memory.
const LOOK: usize = 1 << 20;

/// Messages decoded into columns.
#[derive(Debug)]
pub struct Batch<'p> {
    content: Content<'p>,
    messages: usize,
    bytes: usize,
    /// The number of bytes from which on it must check for memory again.
    until_look: usize,
}

#[derive(Debug)]
enum Content<'p> {
    Fields(Table, &'p [String]),
    Value(Table),
    Calls(Calls<'p>),
}

impl<'p> Batch<'p> {
    /// An empty batch; `layout` applies to method calls.
    #[must_use]
    pub fn new(plan: &'p Plan, misfits: Misfits, layout: Layout) -> Self {
        let table = |fields: &[Field]| Table::new(fields, plan.history, misfits);
        let content = match &plan.shape {
            Shape::Fields(fields) => Content::Fields(table(fields), &plan.types),
            Shape::Value(field) => Content::Value(table(std::slice::from_ref(field))),
            Shape::Calls(methods) => Content::Calls(Calls::new(methods, layout, table)),
        };
        Self { content, messages: 0, bytes: 0, until_look: LOOK }
    }

    /// The number of messages that have a row.
    #[must_use]
    pub const fn messages(&self) -> usize {
        self.messages
    }

    /// The total length of these messages.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// The number of rows, in all tables together.
    #[must_use]
    pub fn rows(&self) -> usize {
        match &self.content {
            Content::Fields(table, _) | Content::Value(table) => table.rows(),
            Content::Calls(calls) => calls.rows(),
        }
    }

    /// Adds a message. If malformed messages are errors and this one is, nothing is added.
    #[expect(clippy::inline_always, reason = "once a message: a call more costs 4 %")]
    #[inline(always)]
    pub fn add(&mut self, index: i64, message: &[u8]) -> Result<()> {
        let taken = self.bytes + message.len();
        if taken >= self.until_look {
            self.look_for_room(taken)?;
        }
        compress::begin_message();
        let mut cursor = Reader::new(message);
        let added = match &mut self.content {
            Content::Fields(table, _) if table.is_blank() => {
                table.end_row(index, Ok(()))?;
                true
            }
            Content::Fields(table, types) => {
                let read = table.take_history(&mut cursor);
                let row = table.rows();
                let read = read.and_then(|()| read_fields(&mut table.fields, types, cursor, row));
                table.end_row(index, read)?;
                true
            }
            Content::Value(table) => {
                let read = table.take_history(&mut cursor);
                let row = table.rows();
                let read = read.and_then(|()| read_value(&mut table.fields, cursor, row));
                table.end_row(index, read)?;
                true
            }
            Content::Calls(calls) => calls.add(index, &mut cursor)?,
        };
        if added {
            self.messages += 1;
            self.bytes += message.len();
        }
        Ok(())
    }

    /// Columns grow by doubling, and abort the process when out of memory. So before the bytes of
    /// the messages double, this checks that there is memory for columns, also of small values.
    #[cold]
    fn look_for_room(&mut self, taken: usize) -> Result<()> {
        room(taken.saturating_mul(4))?;
        self.until_look = taken.saturating_mul(2);
        Ok(())
    }

    /// The finished tables, in the order of the schema.
    #[must_use]
    pub fn finish(self) -> Vec<Rows> {
        match self.content {
            Content::Fields(table, _) | Content::Value(table) => vec![table.finish()],
            Content::Calls(calls) => calls.finish(),
        }
    }
}

/// Named values: at the top level of the message, or in a block with or without a type prefix.
#[inline]
fn read_fields(
    fields: &mut Fields,
    types: &[String],
    mut cursor: Reader<'_>,
    row: usize,
) -> Result<()> {
    if is_named(&cursor) {
        return fields.read(&mut cursor, row);
    }
    let mut block = block_of(&mut cursor, types)?;
    cursor.end()?;
    fields.read(&mut block, row)
}

fn read_value(fields: &mut Fields, mut cursor: Reader<'_>, row: usize) -> Result<()> {
    fields.read_values(&mut cursor, row)?;
    cursor.end()
}
