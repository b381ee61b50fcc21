//! The history of a message (`docs/format.md` §8.8) as a column.

use super::column::Column;
use crate::arrow::schema::{Field, Kind};
use crate::error::Result;
use crate::history::{self, History};
use crate::out::Out;
use crate::reader;
use crate::reader::Reader;
use crate::writer::{close_block, open_block, put_field, put_hex, put_int64};

const INT32: Kind = Kind::Int { bytes: 4, signed: true };
const INT64: Kind = Kind::Int { bytes: 8, signed: true };

/// The column `history`: sources, each with an id and an index, and timings.
#[must_use]
pub fn field() -> Field {
    let field = |name: &str, nullable, kind| Field { name: name.into(), nullable, kind };
    let list = |item| Kind::List(Box::new(field("item", false, item)));
    let source = Kind::Struct(vec![field("id", false, INT32), field("index", false, INT64)]);
    let parts = vec![field("sources", false, list(source)), field("timings", false, list(INT64))];
    field(history::NAME, true, Kind::Struct(parts))
}

/// Skips the history, if it is next; returns its content.
pub fn take<'a>(cursor: &mut Reader<'a>) -> Result<Option<Reader<'a>>> {
    let mut ahead = *cursor;
    if !ahead.peek().is_some_and(reader::is_name) {
        return Ok(None);
    }
    if !ahead.name()?.is_some_and(history::is_history) {
        return Ok(None);
    }
    let found = ahead;
    ahead.skip()?;
    *cursor = ahead;
    Ok(Some(found))
}

/// Appends the history that [`take`] returned.
pub fn read(column: &mut Column, mut from: Reader<'_>) -> Result<()> {
    let found = History::read(&mut from)?;
    let mut fields = Out::new();
    let whole = open_block(&mut fields);
    put_field(&mut fields, "sources")?;
    let list = open_block(&mut fields);
    for (id, index) in found.sources {
        let source = open_block(&mut fields);
        put_field(&mut fields, "id")?;
        put_int64(&mut fields, id.into());
        put_field(&mut fields, "index")?;
        put_hex(&mut fields, index);
        close_block(&mut fields, source);
    }
    close_block(&mut fields, list);
    put_field(&mut fields, "timings")?;
    let list = open_block(&mut fields);
    found.timings.into_iter().for_each(|timing| put_int64(&mut fields, timing));
    close_block(&mut fields, list);
    close_block(&mut fields, whole);
    column.read(&mut Reader::new(fields.written()?))
}
