//! Python values as wire tokens, and back.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{
    PyBool, PyByteArray, PyBytes, PyDict, PyFloat, PyInt, PyList, PyMapping, PyMemoryView,
    PyString, PyTuple,
};
use quire_kernel::wire::DEPTH_MAX;
use quire_kernel::wire::writer::{self, Scalar};

use crate::buffer::Borrowed;
use crate::error::WireError;
use crate::failure::Failure;

/// Appends `name: value`, as an entry of Java's `writeMap`.
pub fn put_entry(out: &mut Vec<u8>, name: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
    put_named(out, name, value, 0)
}

/// Appends every entry of a mapping.
pub fn put_entries(out: &mut Vec<u8>, values: &Bound<'_, PyMapping>) -> PyResult<()> {
    put_items(out, values, 0)
}

fn put_named(
    out: &mut Vec<u8>,
    name: &str,
    value: &Bound<'_, PyAny>,
    depth: usize,
) -> PyResult<()> {
    writer::put_key(out, name).map_err(Failure::from)?;
    put_value(out, value, depth)
}

fn put_items(out: &mut Vec<u8>, values: &Bound<'_, PyMapping>, depth: usize) -> PyResult<()> {
    if let Ok(dict) = values.cast::<PyDict>() {
        return dict.iter().try_for_each(|(key, value)| put_item(out, &key, &value, depth));
    }
    for item in values.items()?.iter() {
        let (key, value): (Bound<'_, PyAny>, Bound<'_, PyAny>) = item.extract()?;
        put_item(out, &key, &value, depth)?;
    }
    Ok(())
}

fn put_item(
    out: &mut Vec<u8>,
    key: &Bound<'_, PyAny>,
    value: &Bound<'_, PyAny>,
    depth: usize,
) -> PyResult<()> {
    let Ok(name) = key.cast::<PyString>() else {
        return Err(no_encoding("a key is a str", key)?);
    };
    put_named(out, &name.to_cow()?, value, depth)
}

fn put_value(out: &mut Vec<u8>, value: &Bound<'_, PyAny>, depth: usize) -> PyResult<()> {
    if depth > DEPTH_MAX {
        return Err(WireError::new_err(format!("nested too deep: limit={DEPTH_MAX}")));
    }
    if value.is_none() {
        return put_scalar(out, Scalar::Null);
    }
    if let Ok(text) = value.cast::<PyString>() {
        return put_scalar(out, Scalar::Text(&text.to_cow()?));
    }
    if let Ok(flag) = value.cast::<PyBool>() {
        return put_scalar(out, Scalar::Bool(flag.is_true()));
    }
    if value.cast::<PyInt>().is_ok() {
        let number: i64 = value.extract().map_err(|_| {
            WireError::new_err(format!("an integer of more than 64 bits: value={value}"))
        })?;
        return put_scalar(out, Scalar::Int(number));
    }
    if let Ok(number) = value.cast::<PyFloat>() {
        return put_scalar(out, Scalar::Float(number.value()));
    }
    if let Ok(bytes) = value.cast::<PyBytes>() {
        return put_scalar(out, Scalar::Bytes(bytes.as_bytes()));
    }
    if value.cast::<PyByteArray>().is_ok() || value.cast::<PyMemoryView>().is_ok() {
        return put_scalar(out, Scalar::Bytes(Borrowed::new(value)?.bytes()));
    }
    put_nested(out, value, depth + 1)
}

fn put_scalar(out: &mut Vec<u8>, value: Scalar<'_>) -> PyResult<()> {
    Ok(writer::put_scalar(out, value).map_err(Failure::from)?)
}

fn put_nested(out: &mut Vec<u8>, value: &Bound<'_, PyAny>, depth: usize) -> PyResult<()> {
    let block = writer::open_block(out);
    if let Ok(values) = value.cast::<PyMapping>() {
        put_items(out, values, depth)?;
    } else if value.cast::<PyList>().is_ok() || value.cast::<PyTuple>().is_ok() {
        value.try_iter()?.try_for_each(|item| put_value(out, &item?, depth))?;
    } else {
        return Err(no_encoding("a value of this type has no encoding", value)?);
    }
    writer::close_block(out, block);
    Ok(())
}

fn no_encoding(what: &str, value: &Bound<'_, PyAny>) -> PyResult<PyErr> {
    Ok(WireError::new_err(format!("{what}: type={}", value.get_type().name()?)))
}

/// A mapping, or an error that says so.
pub fn mapping<'a, 'py>(object: &'a Bound<'py, PyAny>) -> PyResult<&'a Bound<'py, PyMapping>> {
    object.cast::<PyMapping>().map_err(|_| {
        let name = object.get_type().name().map_or_else(|_| "?".into(), |name| name.to_string());
        PyTypeError::new_err(format!("a mapping is needed: type={name}"))
    })
}
