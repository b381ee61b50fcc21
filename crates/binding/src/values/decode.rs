//! Python objects from a message without declared types. Type names in a file are only looked up
//! among the registered classes; all others stay inert.

use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFrozenSet, PyList, PySet, PyTuple};
use quire_kernel::chronicle::read::tailer::{DocumentPlace, Tailer};
use quire_wire::WireError;
use quire_wire::codes::TYPE_PREFIX;
use quire_wire::compress::{self, Method, UNPACKED_MAX};
use quire_wire::history::{self, History};
use quire_wire::latin1;
use quire_wire::reader::{self, MAPS, Name, Reader, Shape, Token};

use super::failure::{Failure, Result};
use super::{classes, codec, temporal};
use crate::buffer;
use crate::calls::history::MessageHistory;
use crate::error::to_py;

/// The next value.
pub fn get<'py>(
    py: Python<'py>,
    cursor: &mut Reader<'_>,
    depth: usize,
) -> Result<Bound<'py, PyAny>> {
    let at = cursor.offset();
    let token = cursor.value()?;
    of_token(py, token, cursor, depth, at)
}

/// The value that starts with `token`; more follows a type prefix.
pub fn of_token<'py>(
    py: Python<'py>,
    token: Token<'_>,
    cursor: &mut Reader<'_>,
    depth: usize,
    at: usize,
) -> Result<Bound<'py, PyAny>> {
    Ok(match token {
        Token::Null => py.None().into_bound(py),
        Token::Bool(flag) => PyBool::new(py, flag).to_owned().into_any(),
        Token::Int(number, _) => buffer::int(py, number)?,
        Token::Float32(number) => buffer::float(py, f64::from(number))?,
        Token::Float64(number) => buffer::float(py, number)?,
        Token::Text(bytes) => buffer::text(py, &reader::text(bytes, at)?)?.into_any(),
        Token::Temporal(bytes, code) => {
            let text = reader::text(bytes, at)?;
            match temporal::object(py, code, &text)? {
                Some(found) => found,
                None => buffer::text(py, &text)?.into_any(),
            }
        }
        Token::Uuid(high, low) => uuid(py, high, low)?,
        Token::TypeLiteral(name) => {
            classes::type_literal(py)?.call1((reader::text(name, at)?.as_ref(),))?
        }
        Token::TypePrefix(name) => typed(py, name, cursor, reader::deeper(depth, at)?)?,
        Token::Block(block) => of_block(py, block, reader::deeper(depth, at)?)?,
        Token::Longs { used, .. } => longs(py, used)?,
    })
}

fn uuid(py: Python<'_>, high: u64, low: u64) -> PyResult<Bound<'_, PyAny>> {
    let arguments = buffer::empty_dict(py)?;
    arguments.set_item(intern!(py, "int"), u128::from(high) << 64 | u128::from(low))?;
    classes::uuid(py)?.call((), Some(&arguments))
}

fn longs<'py>(py: Python<'py>, used: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    let (words, _) = used.as_chunks();
    let numbers = words.iter().map(|word| buffer::int(py, i64::from_le_bytes(*word)));
    let items = buffer::empty_list(py)?;
    for number in numbers {
        items.append(number?)?;
    }
    Ok(items.into_any())
}

/// The content of a block.
fn of_block<'py>(
    py: Python<'py>,
    mut block: Reader<'_>,
    depth: usize,
) -> Result<Bound<'py, PyAny>> {
    match block.shape() {
        Shape::Map => Ok(map(py, &mut block, depth)?.into_any()),
        Shape::Blob => {
            Ok(buffer::bytes(py, block.blob().unwrap_or_default()).map_err(to_py)?.into_any())
        }
        Shape::History => Ok(buffer::bytes(py, block.rest()).map_err(to_py)?.into_any()),
        Shape::Empty | Shape::List => {
            Ok(list(py, &mut block, |cursor| get(py, cursor, depth))?.into_any())
        }
        Shape::Longs => get(py, &mut block, depth),
    }
}

/// Values until the end, each as `get` reads it.
pub fn list<'py>(
    py: Python<'py>,
    cursor: &mut Reader<'_>,
    get: impl Fn(&mut Reader<'_>) -> Result<Bound<'py, PyAny>>,
) -> Result<Bound<'py, PyList>> {
    let items = buffer::empty_list(py)?;
    while cursor.peek().is_some() {
        let item = get(cursor);
        items.append(item.map_err(|failure| failure.inside(format_args!("[{}]", items.len())))?)?;
    }
    Ok(items)
}

/// Names and values until the end.
pub fn map<'py>(
    py: Python<'py>,
    cursor: &mut Reader<'_>,
    depth: usize,
) -> Result<Bound<'py, PyDict>> {
    let found = buffer::empty_dict(py)?;
    while let Some(name) = cursor.name()? {
        if depth == 0
            && matches!(name, Name::Number(history::ID))
            && let mut ahead = *cursor
            && let Ok(history) = History::read(&mut ahead)
        {
            *cursor = ahead;
            found.set_item(history::NAME, Py::new(py, MessageHistory::from(history))?)?;
            continue;
        }
        let key = key(py, name, cursor, depth)?;
        let value = get(py, cursor, depth).map_err(|failure| failure.inside(&key))?;
        set_entry(&found, key, value)?;
    }
    Ok(found)
}

/// Adds an entry to a dict, if its key is hashable.
pub fn set_entry(
    entries: &Bound<'_, PyDict>,
    key: Bound<'_, PyAny>,
    value: Bound<'_, PyAny>,
) -> Result<()> {
    entries.set_item(&key, value).map_err(|error| no_key(&key, error))
}

/// An unhashable key or element is an error in the message.
#[cold]
pub fn no_key(key: &Bound<'_, PyAny>, error: PyErr) -> Failure {
    if !error.is_instance_of::<PyTypeError>(key.py()) {
        return error.into();
    }
    let shown = key.repr().map_or_else(|_| "?".into(), |text| text.to_string());
    let found = shown.chars().take(60).collect::<String>();
    WireError::new("a key or an element of a set that Python cannot hash")
        .with("found", found)
        .into()
}

fn key<'py>(
    py: Python<'py>,
    name: Name<'_>,
    cursor: &mut Reader<'_>,
    depth: usize,
) -> Result<Bound<'py, PyAny>> {
    Ok(match name {
        Name::Field(name) | Name::Event(name) => {
            buffer::text(py, &latin1::decode(name))?.into_any()
        }
        Name::Number(number) => buffer::text(py, &number.to_string())?.into_any(),
        Name::Object => hashable(get(py, cursor, depth)?)?,
    })
}

/// Makes a key hashable: lists become tuples, dicts tuples of pairs, sets frozen ones.
pub fn hashable(key: Bound<'_, PyAny>) -> PyResult<Bound<'_, PyAny>> {
    let py = key.py();
    if let Ok(typed) = key.cast::<PyTuple>()
        && typed.is_instance(classes::typed(py)?)?
    {
        let (name, value) = (typed.get_item(0)?, hashable(typed.get_item(1)?)?);
        return classes::typed(py)?.call1((name, value));
    }
    if let Ok(items) = key.cast::<PyList>() {
        let items: Vec<_> = items.iter().map(hashable).collect::<PyResult<_>>()?;
        return Ok(PyTuple::new(py, items)?.into_any());
    }
    if let Ok(entries) = key.cast::<PyDict>() {
        let pairs: Vec<_> = entries
            .iter()
            .map(|(name, value)| PyResult::Ok((name, hashable(value)?)))
            .collect::<PyResult<_>>()?;
        return Ok(PyTuple::new(py, pairs)?.into_any());
    }
    if let Ok(items) = key.cast::<PySet>() {
        return Ok(PyFrozenSet::new(py, items.iter())?.into_any());
    }
    Ok(key)
}

/// The value after a type prefix.
fn typed<'py>(
    py: Python<'py>,
    name: &[u8],
    cursor: &mut Reader<'_>,
    depth: usize,
) -> Result<Bound<'py, PyAny>> {
    if let Some(codec) = codec::registered(py, name) {
        return codec.get().get_value(py, cursor, depth);
    }
    match name {
        name if MAPS.contains(&name) => {
            let at = cursor.offset();
            match cursor.value()? {
                Token::Block(block) if matches!(block.shape(), Shape::Empty) => {
                    Ok(buffer::empty_dict(py)?.into_any())
                }
                other => of_token(py, other, cursor, depth, at),
            }
        }
        b"byte[]" | b"!binary" | b"int[]" | b"long[]" | b"short[]" | b"double[]" | b"float[]"
        | b"boolean[]" | b"char[]" => get(py, cursor, depth),
        b"!set" | b"!oset" => set(py, get(py, cursor, depth)?),
        b"java.time.Instant" | b"Instant" => instant(py, cursor, depth),
        name => {
            if let Some(method) = Method::named(name) {
                return unpacked(py, method, cursor, depth);
            }
            let name = reader::text(name, cursor.offset())?;
            let value = get(py, cursor, depth);
            let value = value.map_err(|failure| failure.inside(format_args!("!{name}")))?;
            Ok(classes::typed(py)?.call1((name.as_ref(), value))?)
        }
    }
}

/// A set, or the list itself if an element is unhashable.
fn set<'py>(py: Python<'py>, found: Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
    let Ok(items) = found.cast::<PyList>() else {
        return Ok(classes::typed(py)?.call1((intern!(py, "!set"), found))?);
    };
    match PySet::new(py, items.iter()) {
        Ok(set) => Ok(set.into_any()),
        Err(error) if error.is_instance_of::<PyTypeError>(py) => Ok(found),
        Err(error) => Err(error.into()),
    }
}

/// A moment, as text.
fn instant<'py>(
    py: Python<'py>,
    cursor: &mut Reader<'_>,
    depth: usize,
) -> Result<Bound<'py, PyAny>> {
    let at = cursor.offset();
    let token = cursor.value()?;
    if let Token::Text(bytes) = token {
        let text = reader::text(bytes, at)?;
        let code = quire_wire::codes::ZONED_DATE_TIME;
        if let Ok(Some(found)) = temporal::object(py, code, &text) {
            return Ok(found);
        }
    }
    of_token(py, token, cursor, depth, at)
}

/// The content of a compressed blob.
pub fn unpacked<'py>(
    py: Python<'py>,
    method: Method,
    cursor: &mut Reader<'_>,
    depth: usize,
) -> Result<Bound<'py, PyAny>> {
    let at = cursor.offset();
    let token = cursor.value()?;
    let Token::Block(block) = token else { return of_token(py, token, cursor, depth, at) };
    let packed = block
        .blob()
        .ok_or_else(|| WireError::unexpected("a blob", block.rest().first().copied(), at))?;
    Ok(buffer::bytes(py, &method.unpack(packed, UNPACKED_MAX)?).map_err(to_py)?.into_any())
}

/// A whole message of named values.
pub fn message_map<'py>(py: Python<'py>, message: &[u8]) -> Result<Bound<'py, PyDict>> {
    compress::begin_message();
    map(py, &mut Reader::new(message), 0)
}

/// A whole message that names its class.
pub fn named_message<'py>(py: Python<'py>, message: &[u8]) -> Result<Bound<'py, PyAny>> {
    compress::begin_message();
    let mut cursor = Reader::new(message);
    let code = cursor.peek();
    if code != Some(TYPE_PREFIX) {
        return Err(WireError::unexpected("a type: the message names no class", code, 0).into());
    }
    let found = get(py, &mut cursor, 0)?;
    cursor.end()?;
    Ok(found)
}

/// The error of a value, with its message added.
#[cold]
pub fn placed(failure: Failure, tailer: &Tailer, place: &DocumentPlace) -> PyErr {
    match failure {
        Failure::Wire(fault) => {
            let (file, position) = tailer.place_of(place);
            Failure::Wire(fault.in_message(place.index, file, position)).into()
        }
        Failure::Python(raised) => raised,
    }
}
