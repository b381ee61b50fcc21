//! Messages to Arrow columns: a schema goes in, buffers come out.

use std::borrow::Cow;
use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};
use quire_kernel::Result;
use quire_kernel::chronicle::read::tailer::{How, Reading, Scan, Tailer, Take};
use quire_kernel::os::detached::Detached;
use quire_wire::DEPTH_MAX;
use quire_wire::WireError;
use quire_wire::arrow::decode::Array;
use quire_wire::arrow::decode::batch::{Batch, Layout, Misfits, Rows};
use quire_wire::arrow::extras::Beside;
use quire_wire::arrow::schema::{Field, Kind, Method, Plan as Schema, Shape, Takes, Unit};

use crate::buffer::{Borrowed, Buffer};
use crate::error::to_py;
use crate::handles::column::Column;
use crate::handles::scan;
use crate::values::codec::Codec;
use crate::values::decode;
use crate::values::failure::Failure;
use crate::values::schema::{self, Form};

#[doc = stub!("Plan")]
#[pyclass(module = "quire._native", frozen)]
pub struct Plan(Arc<Schema>);

#[pymethods]
impl Plan {
    #[new]
    #[pyo3(signature = (shape, parts, *, history = false, types = Vec::new()))]
    fn new(
        shape: &str,
        parts: Vec<Bound<'_, PyAny>>,
        history: bool,
        types: Vec<String>,
    ) -> PyResult<Self> {
        let fields = || parts.iter().map(|part| field(part, 0)).collect::<PyResult<Vec<_>>>();
        let shape = match shape {
            "fields" => Shape::Fields(fields()?),
            "calls" => Shape::Calls(parts.iter().map(method).collect::<PyResult<_>>()?),
            _ => match fields()?.pop() {
                Some(value) => Shape::Value(value),
                None => return Err(PyValueError::new_err("a value has one column: columns=0")),
            },
        };
        let plan = Schema::new(shape, history);
        plan.map(|plan| Self(Arc::new(plan.of_types(types))))
            .map_err(|fault| PyValueError::new_err(fault.to_string()))
    }

    #[doc = stub!("Plan.decode")]
    #[pyo3(signature = (
        indexes, offsets, data, *, keep_misfits = false, layout = "tables", payload = false,
        topic = None
    ))]
    #[expect(clippy::too_many_arguments, reason = "keywords of Python's")]
    fn decode<'py>(
        &self,
        py: Python<'py>,
        indexes: &Bound<'py, PyAny>,
        offsets: &Bound<'py, PyAny>,
        data: &Bound<'py, PyAny>,
        keep_misfits: bool,
        layout: &str,
        payload: bool,
        topic: Option<&str>,
    ) -> PyResult<Read<'py>> {
        let (indexes, offsets) = (Borrowed::new(indexes)?, Borrowed::new(offsets)?);
        let data = Borrowed::new(data)?;
        let payloads = Column {
            offsets: offsets.bytes(),
            data: data.bytes(),
            start: 0,
            wide: false,
            text: true,
        };
        let (mut batch, mut beside) = parts_of(self, keep_misfits, layout, payload, topic)?;
        let read = py.detach(|| {
            for (number, index) in indexes.bytes().as_chunks().0.iter().enumerate() {
                let (index, bytes) = (i64::from_le_bytes(*index), payloads.element(number)?);
                let place = |fault: WireError| fault.with("index", format!("{index:#x}"));
                add(&mut batch, &mut beside, index, bytes).map_err(place)?;
            }
            Ok(())
        });
        read.map_err(to_py)?;
        finished(py, indexes.bytes().len() / size_of::<i64>(), batch, beside)
    }
}

/// An empty batch, and the columns that do not come from message values.
fn parts_of<'p>(
    plan: &'p Plan,
    keep_misfits: bool,
    layout: &str,
    payload: bool,
    topic: Option<&str>,
) -> PyResult<(Batch<'p>, Beside)> {
    let misfits = if keep_misfits { Misfits::Keep } else { Misfits::Raise };
    let batch = Batch::new(&plan.0, misfits, self::layout(&plan.0, layout)?);
    // With several tables there are no such columns, as they would belong to no particular table.
    let is_single = layout != "tables" || !matches!(plan.0.shape, Shape::Calls(_));
    Ok((batch, if is_single { Beside::new(payload, topic) } else { Beside::default() }))
}

/// Adds a message to both.
#[expect(clippy::inline_always, reason = "once a message: a call more costs 4 %")]
#[inline(always)]
fn add(
    batch: &mut Batch<'_>,
    beside: &mut Beside,
    index: i64,
    bytes: &[u8],
) -> std::result::Result<(), WireError> {
    if beside.is_empty() {
        return batch.add(index, bytes);
    }
    let rows = batch.rows();
    batch.add(index, bytes)?;
    beside.add(bytes, batch.rows() - rows);
    Ok(())
}

fn finished<'py>(
    py: Python<'py>,
    messages: usize,
    batch: Batch<'_>,
    beside: Beside,
) -> PyResult<Read<'py>> {
    let tables = batch.finish().into_iter().map(|rows| table(py, rows));
    let tables = PyList::new(py, tables.collect::<PyResult<Vec<_>>>()?)?;
    let [payload, topic] = beside.finish().map(|column| column.map(|it| array(py, it)).transpose());
    Ok((messages, tables, payload?, topic?))
}

/// Name, nullable, type, its two numbers, the fields inside.
pub fn field(object: &Bound<'_, PyAny>, depth: usize) -> PyResult<Field> {
    if depth > DEPTH_MAX {
        return Err(PyValueError::new_err(format!("nested too deep: limit={DEPTH_MAX}")));
    }
    let (name, nullable, kind, numbers, inside): (
        String,
        bool,
        String,
        (u8, u8),
        Vec<Bound<'_, PyAny>>,
    ) = object.extract()?;
    let mut inside =
        inside.iter().map(|part| field(part, depth + 1)).collect::<PyResult<Vec<_>>>()?;
    let kind = match kind.as_str() {
        "struct" => Kind::Struct(inside),
        "list" | "map" => match (inside.pop(), kind.as_str()) {
            (Some(item), "list") => Kind::List(Box::new(item)),
            (Some(value), _) => Kind::Map(Box::new(value)),
            (None, kind) => {
                return Err(PyValueError::new_err(format!(
                    "a type without its items: type={kind}"
                )));
            }
        },
        "decimal128" => Kind::Decimal { precision: numbers.0, scale: numbers.1 },
        kind => scalar(kind).ok_or_else(|| {
            PyValueError::new_err(format!("no such type of a column: field={name} type={kind}"))
        })?,
    };
    Ok(Field { name, nullable, kind })
}

fn scalar(name: &str) -> Option<Kind> {
    let unit = |text: &str| match text {
        "s]" => Some(Unit::Second),
        "ms]" => Some(Unit::Milli),
        "us]" => Some(Unit::Micro),
        "ns]" => Some(Unit::Nano),
        "us of ns]" => Some(Unit::FromNano),
        "us of any]" => Some(Unit::Guessed),
        _ => None,
    };
    let int = |text: &str, signed| match text {
        "8" => Some(Kind::Int { bytes: 1, signed }),
        "16" => Some(Kind::Int { bytes: 2, signed }),
        "32" => Some(Kind::Int { bytes: 4, signed }),
        "64" => Some(Kind::Int { bytes: 8, signed }),
        _ => None,
    };
    match name {
        "bool" => Some(Kind::Bool),
        "float32" => Some(Kind::Float32),
        "float64" => Some(Kind::Float64),
        "utf8" => Some(Kind::Text),
        "dictionary" => Some(Kind::Dictionary),
        "binary" => Some(Kind::Binary),
        "uuid" => Some(Kind::Uuid),
        "date32" => Some(Kind::Date),
        name => None
            .or_else(|| int(name.strip_prefix("int")?, true))
            .or_else(|| int(name.strip_prefix("uint")?, false))
            .or_else(|| unit(name.strip_prefix("timestamp[")?).map(Kind::Timestamp))
            .or_else(|| unit(name.strip_prefix("time[")?).map(Kind::Time)),
    }
}

/// Name, id, what it takes, the columns.
pub fn method(object: &Bound<'_, PyAny>) -> PyResult<Method> {
    let (name, id, takes, columns): (String, Option<i64>, String, Vec<Bound<'_, PyAny>>) =
        object.extract()?;
    let columns = columns.iter().map(|part| field(part, 0)).collect::<PyResult<_>>()?;
    let takes = match takes.as_str() {
        "object" => Takes::Object(columns),
        "arguments" => Takes::Arguments(columns),
        _ => Takes::PassedOver,
    };
    Ok(Method { name, id, takes })
}

/// How a batch is read.
pub struct Wanted<'a> {
    /// The maximum number of messages.
    pub count: usize,
    /// The maximum number of bytes, unless a single message is larger.
    pub max_bytes: usize,
    /// Malformed messages become rows.
    pub keep_misfits: bool,
    /// `tables`, `union` or the name of a method.
    pub layout: &'a str,
    /// Only messages before this index.
    pub end: Option<i64>,
    /// Also the messages' bytes; only for a layout with one table.
    pub payload: bool,
    /// Also the routing keys of this event; only for a layout with one table.
    pub topic: Option<&'a str>,
}

/// A batch: the number of messages read, the tables, the bytes, the keys.
pub type Read<'py> =
    (usize, Bound<'py, PyList>, Option<Bound<'py, PyTuple>>, Option<Bound<'py, PyTuple>>);

/// Reads a batch, with the interpreter detached.
pub fn read<'py>(
    py: Python<'py>,
    tailer: &Tailer,
    plan: &Plan,
    wanted: &Wanted<'_>,
) -> PyResult<Read<'py>> {
    let (mut batch, mut beside) =
        parts_of(plan, wanted.keep_misfits, wanted.layout, wanted.payload, wanted.topic)?;
    let (mut reading, mut fault) = (Reading::default(), None);
    let filled = scan::through(py, |may_wait| {
        fill(may_wait, &mut batch, &mut beside, tailer, wanted, &mut reading, &mut fault)
    });
    if let Err(raised) = filled {
        // Messages without a row are skipped for good: a repeated scan makes progress.
        return if batch.messages() > 0 {
            scan::or_put_back(py, tailer, &reading, Err(raised))
        } else {
            Err(raised)
        };
    }
    // Return the messages read so far; the next call reports the error.
    if let Some(fault) = fault
        && batch.messages() == 0
    {
        return Err(at_next(py, tailer, fault)?);
    }
    finished(py, reading.taken, batch, beside)
}

/// The error of the next message, which was not skipped.
pub fn at_next(py: Python<'_>, tailer: &Tailer, fault: WireError) -> PyResult<PyErr> {
    let Some(open) = scan::open(py, tailer, false)? else {
        return Ok(to_py(fault.into()));
    };
    Ok(decode::placed(Failure::Wire(fault), tailer, open.place()))
}

fn layout(plan: &Schema, name: &str) -> PyResult<Layout> {
    match (name, &plan.shape) {
        ("tables", _) => Ok(Layout::Tables),
        ("union", _) => Ok(Layout::Union),
        (name, Shape::Calls(methods)) => {
            let place = methods.iter().position(|method| method.name == name);
            place.map(Layout::Only).ok_or_else(|| {
                let known: Vec<_> = methods.iter().map(|method| method.name.as_str()).collect();
                PyValueError::new_err(format!(
                    "no such method in the schema: method={name} known={}",
                    known.join(", ")
                ))
            })
        }
        (name, _) => Err(PyValueError::new_err(format!(
            "the schema has no methods: method={name} (make one with Schema.from_methods)"
        ))),
    }
}

/// Adds messages up to the limits; the error of the one that ended it goes to `fault`.
fn fill(
    may_wait: &Detached,
    batch: &mut Batch<'_>,
    beside: &mut Beside,
    tailer: &Tailer,
    wanted: &Wanted<'_>,
    reading: &mut Reading,
    fault: &mut Option<WireError>,
) -> Result<Scan<()>> {
    let end = wanted.end.unwrap_or(i64::MAX);
    tailer.read_batch(reading, usize::MAX, How::Wait(may_wait), |index, bytes| {
        let some = batch.messages() > 0;
        if index >= end
            || batch.messages() >= wanted.count
            || some && batch.bytes().saturating_add(bytes.len()) > wanted.max_bytes
        {
            return Ok(Take::NotThis);
        }
        *fault = add(batch, beside, index, bytes).err();
        if fault.is_some() {
            return Ok(Take::NotThis);
        }
        let is_last = batch.messages() >= wanted.count || index.saturating_add(1) >= end;
        Ok(if is_last { Take::Last } else { Take::This })
    })
}

/// Rows, indexes, columns, history, errors.
fn table(py: Python<'_>, rows: Rows) -> PyResult<Bound<'_, PyTuple>> {
    let columns = rows.columns.into_iter().map(|column| array(py, column));
    let optional = |column: Option<Array>| column.map(|column| array(py, column)).transpose();
    (
        rows.count,
        Buffer::column(rows.indexes),
        columns.collect::<PyResult<Vec<_>>>()?,
        optional(rows.history)?,
        optional(rows.errors)?,
    )
        .into_pyobject(py)
}

/// Length, nulls, buffers, the columns inside, the values of a dictionary.
fn array(py: Python<'_>, array: Array) -> PyResult<Bound<'_, PyTuple>> {
    let buffers: Vec<_> =
        array.buffers.into_iter().map(|buffer| buffer.map(Buffer::column)).collect();
    let children = array.children.into_iter().map(|child| self::array(py, child));
    (
        array.length,
        array.nulls,
        buffers,
        children.collect::<PyResult<Vec<_>>>()?,
        array.dictionary.map(|values| self::array(py, *values)).transpose()?,
    )
        .into_pyobject(py)
}

/// The name of a declared type, the types inside, and the class's codec.
type Parts = (Cow<'static, str>, Vec<Py<schema::Kind>>, Option<Py<Codec>>);

#[doc = stub!("kind_parts")]
#[pyfunction]
#[pyo3(signature = (kind, /))]
pub fn kind_parts(py: Python<'_>, kind: &Bound<'_, schema::Kind>) -> Parts {
    if let Form::Literal(kind, _) = &kind.get().0 {
        return kind_parts(py, kind.bind(py));
    }
    let of = |name, inside: &[&Py<schema::Kind>]| {
        let inside = inside.iter().map(|kind| kind.clone_ref(py)).collect();
        (Cow::Borrowed(name), inside, None)
    };
    match &kind.get().0 {
        Form::List(item)
        | Form::Tuple(item)
        | Form::Set(item)
        | Form::FrozenSet(item)
        | Form::Array(item, _) => of("list", &[item]),
        Form::Dict(key, value) => of("dict", &[key, value]),
        Form::Optional(kind) => of("optional", &[kind]),
        Form::Message(codec) => ("message".into(), Vec::new(), Some(codec.clone_ref(py))),
        _ => (kind.get().name(), Vec::new(), None),
    }
}
