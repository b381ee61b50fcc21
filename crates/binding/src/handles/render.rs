//! The messages of a batch as the command line prints them, without a Python object for each.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use quire_wire::message;
use quire_wire::text::{hex, json, terminal, yaml};

use crate::buffer::{self, Borrowed};
use crate::error::to_py;
use crate::handles::column::Column;

#[derive(Clone, Copy)]
enum Style {
    Yaml,
    /// Like Java's `ChronicleReaderMain`, with a space after the colon of the index.
    Java,
    Json,
    Text,
    Hex,
}

impl Style {
    fn named(name: &str) -> PyResult<Self> {
        Ok(match name {
            "yaml" => Self::Yaml,
            "java" => Self::Java,
            "jsonl" => Self::Json,
            "text" => Self::Text,
            "hex" => Self::Hex,
            _ => return Err(PyValueError::new_err(format!("no such style: style={name}"))),
        })
    }
}

/// Indexes, offsets and payloads.
type Columns<'py> = (Option<Bound<'py, PyAny>>, Bound<'py, PyAny>, Bound<'py, PyAny>);

/// A batch's text, the row before which it ends, and whether a terminal may show it unescaped.
type Rendered<'py> = (Bound<'py, PyBytes>, usize, bool);

#[doc = stub!("render_rows")]
#[pyfunction]
#[pyo3(signature = (style, columns, start, stop, /))]
pub fn render_rows<'py>(
    py: Python<'py>,
    style: &str,
    columns: Columns<'py>,
    start: usize,
    stop: usize,
) -> PyResult<Rendered<'py>> {
    let style = Style::named(style)?;
    let (indexes, offsets, data) = columns;
    let indexes = indexes.as_ref().map(Borrowed::new).transpose()?;
    let (offsets, data) = (Borrowed::new(&offsets)?, Borrowed::new(&data)?);
    let (out, row) = py
        .detach(|| {
            let indexes = indexes.as_ref().map(Borrowed::bytes);
            let column = Column {
                offsets: offsets.bytes(),
                data: data.bytes(),
                start: 0,
                wide: false,
                text: true,
            };
            rows(style, indexes, &column, start..stop)
        })
        .map_err(to_py)?;
    Ok((buffer::bytes(py, out.as_bytes()).map_err(to_py)?, row, terminal::is_plain(&out)))
}

/// Puts rows until one cannot be shown in this style.
fn rows(
    style: Style,
    indexes: Option<&[u8]>,
    column: &Column<'_>,
    range: std::ops::Range<usize>,
) -> quire_kernel::Result<(String, usize)> {
    buffer::room(column.data.len().saturating_mul(4))?;
    let mut out = String::with_capacity(2 * column.data.len());
    for row in range.clone() {
        let index = indexes.and_then(|it| it.get(row * 8..)?.first_chunk());
        let index = index.map(|bytes| u64::from_le_bytes(*bytes));
        let before = out.len();
        if put(&mut out, style, index, column.element(row)?).is_err() {
            out.truncate(before);
            return Ok((out, row));
        }
    }
    Ok((out, range.end))
}

/// Puts a message with its prefix and suffix.
fn put(
    out: &mut String,
    style: Style,
    index: Option<u64>,
    message: &[u8],
) -> quire_wire::Result<()> {
    use std::fmt::Write as _;

    let number = index.unwrap_or(0);
    // Writing to a string cannot fail.
    let _ = match (style, index) {
        (Style::Yaml, Some(_)) => writeln!(out, "{number:#x}:"),
        (Style::Yaml, None) => writeln!(out, "---"),
        (Style::Java, Some(_)) => writeln!(out, "{number:#x}: "),
        (Style::Json, Some(_)) => write!(out, "{{\"index\": \"{number:#x}\", \"message\": "),
        (Style::Text | Style::Hex, Some(_)) => write!(out, "{number:#x}: "),
        _ => Ok(()),
    };
    let start = out.len();
    match style {
        Style::Yaml | Style::Java => yaml::put(out, message, true)?,
        Style::Json => json::put(out, message)?,
        Style::Text => put_line(out, message),
        Style::Hex => hex::put_digits(out, message),
    }
    match (style, index) {
        (Style::Yaml, Some(_)) if out.len() == start => {}
        (Style::Yaml, None) => {}
        (Style::Json, Some(_)) => out.push_str("}\n"),
        _ => out.push('\n'),
    }
    Ok(())
}

/// Puts a text, or the bytes of another message as UTF-8, on one line.
fn put_line(out: &mut String, message: &[u8]) {
    if message::begins_with_text(message)
        && let Ok(text) = message::text(message)
    {
        terminal::put_line(out, &text);
    } else {
        terminal::put_bytes(out, message);
    }
}
