//! Arrays of numpy: nested lists in messages. numpy is not imported before a declared one is read.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use quire_wire::out::Out;
use quire_wire::reader::{self, Reader, Shape, Token};
use quire_wire::{WireError, convert, writer};

use super::decode;
use super::failure::{Failure, Result};
use super::numpy;
use super::schema::Kind;

/// numpy's `dtype.kind` of elements that would be read back with another type: complex numbers,
/// times, durations and records; in arrays without a declared type, also objects.
const NOT_WRITTEN: &str = "cmMV";

/// Appends an array as lists; None is null.
pub fn put(
    kind: &Kind,
    item: &Kind,
    dtype: Option<&str>,
    out: &mut Out,
    value: &Bound<'_, PyAny>,
    depth: usize,
) -> Result<()> {
    let py = value.py();
    if value.is_none() {
        writer::put_null(out);
        return Ok(());
    }
    if !numpy::is_array(value)? {
        return Err(kind.misfit(value));
    }
    check_elements(value, dtype)?;
    let rows = value.call_method0(intern!(py, "tolist"))?;
    match rows.cast::<PyList>() {
        Ok(rows) => put_rows(item, out, rows, depth),
        Err(_) => Err(kind.misfit(value)), // without a dimension
    }
}

fn check_elements(array: &Bound<'_, PyAny>, dtype: Option<&str>) -> Result<()> {
    let py = array.py();
    let found = array.getattr(intern!(py, "dtype"))?;
    let kind = found.getattr(intern!(py, "kind"))?.extract::<String>()?;
    if !NOT_WRITTEN.contains(&kind) && (dtype.is_some() || kind != "O") {
        return Ok(());
    }
    Err(WireError::new(
        "arrays of this type have no encoding (supported: bool, int8 to int64, uint8 to uint64, \
         float16 to float64 and str)",
    )
    .with("type", found.str()?)
    .into())
}

fn put_rows(item: &Kind, out: &mut Out, rows: &Bound<'_, PyList>, depth: usize) -> Result<()> {
    let depth = reader::deeper(depth, out.len())?;
    let block = writer::open_block(out);
    for (place, value) in rows.iter().enumerate() {
        let put = match value.cast::<PyList>() {
            Ok(row) => put_rows(item, out, row, depth),
            Err(_) => item.put(out, &value, depth),
        };
        put.map_err(|failure| failure.inside(format_args!("[{place}]")))?;
    }
    writer::close_block(out, block);
    Ok(())
}

/// Reads an array of a declared type, or of the one that fits its elements.
pub fn get<'py>(
    kind: &Kind,
    item: &Kind,
    dtype: Option<&str>,
    py: Python<'py>,
    cursor: &mut Reader<'_>,
    depth: usize,
) -> Result<Bound<'py, PyAny>> {
    let mut at = cursor.offset();
    let mut ahead = *cursor;
    match ahead.value()? {
        Token::Null => {
            *cursor = ahead;
            return Ok(py.None().into_bound(py));
        }
        Token::TypePrefix(_) => {
            *cursor = ahead; // of Java's arrays
            at = cursor.offset();
        }
        _ => {}
    }
    let found = *cursor;
    let rows = rows(item, py, cursor, depth)?;
    let rows = if rows.is_instance_of::<PyList>() {
        rows
    } else {
        PyList::new(py, [rows])?.into_any() // one scalar is a list of itself, as in Java
    };
    let options = PyDict::new(py);
    options.set_item(intern!(py, "dtype"), dtype)?;
    let array = py.import(intern!(py, "numpy"))?.getattr(intern!(py, "array"))?;
    array.call((rows,), Some(&options)).map_err(|_| {
        let mut found = found;
        match found.value() {
            Ok(token) => convert::misfit(&token, &kind.name(), at).into(),
            Err(fault) => Failure::Wire(fault),
        }
    })
}

/// The next value: an element, or a list of more.
fn rows<'py>(
    item: &Kind,
    py: Python<'py>,
    cursor: &mut Reader<'_>,
    depth: usize,
) -> Result<Bound<'py, PyAny>> {
    let at = cursor.offset();
    let mut ahead = *cursor;
    match ahead.value()? {
        Token::Block(mut block) if matches!(block.shape(), Shape::Empty | Shape::List) => {
            *cursor = ahead;
            let depth = reader::deeper(depth, at)?;
            let list = decode::list(py, &mut block, |cursor| rows(item, py, cursor, depth))?;
            Ok(list.into_any())
        }
        found @ (Token::Longs { .. } | Token::Block(_)) if is_longs(&found) => {
            *cursor = ahead;
            Ok(item.elements(py, found, cursor, depth, at)?.into_any())
        }
        _ => item.get(py, cursor, depth),
    }
}

fn is_longs(found: &Token<'_>) -> bool {
    match found {
        Token::Longs { .. } => true,
        Token::Block(block) => block.shape() == Shape::Longs,
        _ => false,
    }
}
