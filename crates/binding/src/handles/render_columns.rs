//! Rows of Arrow columns as the command line prints them, without a Python object for each value.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use quire_wire::text::rows::{self as lines, Column, Style, Values};
use quire_wire::text::terminal::is_plain;

use crate::buffer::{self, Borrowed};
use crate::error::to_py;

/// Name, kind, position of the first row; buffers, None for a missing one; nested columns.
type Given<'py> = (String, String, usize, Vec<Option<Bound<'py, PyAny>>>, Vec<Bound<'py, PyAny>>);

/// The lines, and whether a terminal may show them unescaped.
type Rendered<'py> = (Bound<'py, PyBytes>, bool);

#[doc = stub!("render_columns")]
#[pyfunction]
#[pyo3(signature = (style, columns, rows, /))]
pub fn render_columns<'py>(
    py: Python<'py>,
    style: &str,
    columns: Vec<Bound<'py, PyAny>>,
    rows: usize,
) -> PyResult<Rendered<'py>> {
    let style = match style {
        "csv" => Style::Csv,
        "jsonl" => Style::Json,
        "text" => Style::Text,
        _ => return Err(PyValueError::new_err(format!("no such style: style={style}"))),
    };
    let owned = columns.iter().map(Owned::of).collect::<PyResult<Vec<_>>>()?;
    let columns = owned.iter().map(Owned::column).collect::<PyResult<Vec<_>>>()?;
    let (out, is_plain) = py
        .detach(|| {
            let mut out = String::new();
            for row in 0..rows {
                lines::put(&mut out, style, &columns, row)?;
            }
            let is_plain = is_plain(&out);
            quire_kernel::Result::Ok((out, is_plain))
        })
        .map_err(to_py)?;
    Ok((buffer::bytes(py, out.as_bytes()).map_err(to_py)?, is_plain))
}

/// A column whose buffers are borrowed.
struct Owned {
    name: String,
    kind: String,
    start: usize,
    buffers: Vec<Option<Borrowed>>,
    inside: Vec<Owned>,
}

impl Owned {
    fn of(column: &Bound<'_, PyAny>) -> PyResult<Self> {
        let (name, kind, start, buffers, inside): Given<'_> = column.extract()?;
        let borrow = |buffer: &Option<Bound<'_, PyAny>>| buffer.as_ref().map(Borrowed::new);
        Ok(Self {
            name,
            kind,
            start,
            buffers: buffers.iter().map(|it| borrow(it).transpose()).collect::<PyResult<_>>()?,
            inside: inside.iter().map(Self::of).collect::<PyResult<_>>()?,
        })
    }

    fn column(&self) -> PyResult<Column<'_>> {
        let validity = self.buffers.first().and_then(Option::as_ref).map(Borrowed::bytes);
        Ok(Column { name: self.name.clone(), start: self.start, validity, values: self.values()? })
    }

    /// A buffer; empty if missing, as an empty array's may be.
    fn buffer(&self, number: usize) -> &[u8] {
        self.buffers.get(number).and_then(Option::as_ref).map_or(&[], Borrowed::bytes)
    }

    fn values(&self) -> PyResult<Values<'_>> {
        let (data, last) = (self.buffer(1), self.buffer(2));
        let int = |width, is_signed| Values::Int { data, width, is_signed };
        let time = |width, per_second| Values::Time { data, width, per_second };
        let stamp = |per_second, is_utc| Values::Stamp { data, per_second, is_utc };
        Ok(match self.kind.as_str() {
            "bool" => Values::Bool(data),
            "int8" => int(1, true),
            "int16" => int(2, true),
            "int32" => int(4, true),
            "int64" => int(8, true),
            "uint8" => int(1, false),
            "uint16" => int(2, false),
            "uint32" => int(4, false),
            "uint64" => int(8, false),
            "index" => Values::Index(data),
            "float32" => Values::Float { data, width: 4 },
            "float64" => Values::Float { data, width: 8 },
            "utf8" => Values::Text { offsets: data, data: last },
            "json" => Values::Json { offsets: data, data: last },
            "binary" => Values::Binary { offsets: data, data: last },
            "uuid" => Values::Fixed { data, width: 16 },
            "date32" => Values::Date(data),
            "time[s]" => time(4, 1),
            "time[ms]" => time(4, 1000),
            "time[us]" => time(8, 1_000_000),
            "time[ns]" => time(8, 1_000_000_000),
            "timestamp[us, UTC]" => stamp(1_000_000, true),
            "timestamp[ns, UTC]" => stamp(1_000_000_000, true),
            "timestamp[us]" => stamp(1_000_000, false),
            "timestamp[ns]" => stamp(1_000_000_000, false),
            "struct" => {
                Values::Struct(self.inside.iter().map(Self::column).collect::<PyResult<_>>()?)
            }
            "list" => {
                let items = self.inside.first().ok_or_else(|| {
                    PyValueError::new_err(format!("a list without items: column={}", self.name))
                })?;
                Values::List { offsets: data, items: Box::new(items.column()?) }
            }
            kind => return Err(PyValueError::new_err(format!("no such kind: kind={kind}"))),
        })
    }
}
