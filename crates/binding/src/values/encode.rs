//! Python values without a declared type as wire tokens, in Java's form of boxed values
//! (`docs/format.md` §8.5-8.7).

use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{
    PyBool, PyByteArray, PyBytes, PyDict, PyFloat, PyFrozenSet, PyInt, PyList, PyMapping,
    PyMemoryView, PySet, PyString, PyTuple,
};
use quire_wire::WireError;
use quire_wire::compress::{Method, UNPACKED_MAX};
use quire_wire::convert::Width;
use quire_wire::out::Out;
use quire_wire::reader;
use quire_wire::writer::put_type_prefix;
use quire_wire::writer::{self, Scalar};

use super::failure::Result;
use super::numpy::Plain;
use super::schema::{Form, Kind};
use super::{classes, codec, encode_declared, numpy, temporal};
use crate::buffer::Borrowed;

/// Appends `name: value`, as an entry of Java's `writeMap`.
pub fn put_entry(out: &mut Out, name: &str, value: &Bound<'_, PyAny>) -> Result<()> {
    put_named(out, name, value, 0)
}

/// Appends every entry of a mapping.
pub fn put_entries(out: &mut Out, values: &Bound<'_, PyMapping>) -> Result<()> {
    put_items(out, values, 0)
}

fn put_named(out: &mut Out, name: &str, value: &Bound<'_, PyAny>, depth: usize) -> Result<()> {
    writer::put_key(out, name)?;
    put_value(out, value, depth).map_err(|failure| failure.inside(name))
}

fn put_items(out: &mut Out, values: &Bound<'_, PyMapping>, depth: usize) -> Result<()> {
    if let Ok(dict) = values.cast::<PyDict>() {
        return put_pairs(out, &dict.items(), depth); // a copy: a value may change the dict
    }
    put_pairs(out, &values.items()?, depth)
}

fn put_pairs(out: &mut Out, pairs: &Bound<'_, PyList>, depth: usize) -> Result<()> {
    for item in pairs.iter() {
        let (key, value): (Bound<'_, PyAny>, Bound<'_, PyAny>) = item.extract()?;
        put_item(out, &key, &value, depth)?;
    }
    Ok(())
}

fn put_item(
    out: &mut Out,
    key: &Bound<'_, PyAny>,
    value: &Bound<'_, PyAny>,
    depth: usize,
) -> Result<()> {
    if let Ok(name) = key.cast::<PyString>() {
        return put_named(out, &name.to_cow()?, value, depth);
    }
    writer::put_object_key(out);
    put_value(out, key, depth)?;
    put_value(out, value, depth).map_err(|failure| failure.inside(key))
}

/// Appends a value.
#[inline(never)] // its frame is not for every value
pub fn put_value(out: &mut Out, value: &Bound<'_, PyAny>, depth: usize) -> Result<()> {
    if value.is_none() {
        writer::put_null(out);
    } else if let Ok(text) = value.cast_exact::<PyString>() {
        writer::put_text(out, &text.to_cow()?);
    } else if let Ok(flag) = value.cast::<PyBool>() {
        writer::put_bool(out, flag.is_true());
    } else if value.is_exact_instance_of::<PyInt>() {
        writer::put_scalar(out, Scalar::Int(int64(value)?))?;
    } else if let Ok(number) = value.cast_exact::<PyFloat>() {
        writer::put_scalar(out, Scalar::Float(number.value()))?;
    } else {
        return put_other(out, value, depth);
    }
    Ok(())
}

fn int64(value: &Bound<'_, PyAny>) -> Result<i64> {
    value
        .extract()
        .map_err(|_| WireError::new("an integer of more than 64 bits").with("value", value).into())
}

/// Values other than the five most common types: a container, a registered class, …
fn put_other(out: &mut Out, value: &Bound<'_, PyAny>, depth: usize) -> Result<()> {
    let depth = reader::deeper(depth, out.len())?;
    if let Ok(values) = value.cast::<PyDict>() {
        return put_map(out, values.as_mapping(), depth);
    }
    if value.is_instance_of::<PyList>() || value.is_exact_instance_of::<PyTuple>() {
        return put_block(out, |out| put_each(out, value, depth));
    }
    if let Some(codec) = codec::of_object(value) {
        return codec.get().put_typed(out, value, depth);
    }
    if put_scalar_object(out, value, depth)? {
        return Ok(());
    }
    if value.is_instance_of::<PySet>() || value.is_instance_of::<PyFrozenSet>() {
        put_type_prefix(out, "!set");
        return put_block(out, |out| put_each(out, value, depth));
    }
    if value.is_instance_of::<PyTuple>() {
        return put_block(out, |out| put_each(out, value, depth));
    }
    if let Ok(values) = value.cast::<PyMapping>() {
        return put_map(out, values, depth);
    }
    match numpy::plain(value)? {
        Some(plain) => put_plain(out, &plain, depth),
        None => Err(no_encoding(value)),
    }
}

/// A map. An empty one gets a type prefix, to be distinct from an empty list.
fn put_map(out: &mut Out, values: &Bound<'_, PyMapping>, depth: usize) -> Result<()> {
    if values.is_empty()? {
        put_type_prefix(out, reader::EMPTY_MAP);
    }
    put_block(out, |out| put_items(out, values, depth))
}

fn put_plain(out: &mut Out, plain: &Plain<'_>, depth: usize) -> Result<()> {
    match plain {
        Plain::Value(value) => return put_value(out, value, depth),
        Plain::Temporal(code, text) => writer::put_temporal(out, *code, text),
        Plain::Duration(text) => writer::put_text(out, text),
    }
    Ok(())
}

fn put_block(out: &mut Out, content: impl FnOnce(&mut Out) -> Result<()>) -> Result<()> {
    let block = writer::open_block(out);
    content(out)?;
    writer::close_block(out, block);
    Ok(())
}

fn put_each(out: &mut Out, values: &Bound<'_, PyAny>, depth: usize) -> Result<()> {
    for (place, item) in values.try_iter()?.enumerate() {
        put_value(out, &item?, depth)
            .map_err(|failure| failure.inside(format_args!("[{place}]")))?;
    }
    Ok(())
}

/// Bytes, dates and times, and other scalars; false if it is none of them.
fn put_scalar_object(out: &mut Out, value: &Bound<'_, PyAny>, depth: usize) -> Result<bool> {
    let py = value.py();
    if let Ok(bytes) = value.cast::<PyBytes>() {
        writer::put_scalar(out, Scalar::Bytes(bytes.as_bytes()))?;
    } else if value.is_instance_of::<PyByteArray>() || value.is_instance_of::<PyMemoryView>() {
        writer::put_scalar(out, Scalar::Bytes(Borrowed::new(value)?.bytes()))?;
    } else if value.is_instance(classes::enumeration(py)?)? {
        writer::put_text(out, &classes::enum_name(value)?);
    } else if let Ok(text) = value.cast::<PyString>() {
        writer::put_text(out, &text.to_cow()?);
    } else if value.is_instance_of::<PyInt>() {
        writer::put_scalar(out, Scalar::Int(int64(value)?))?;
    } else if value.is_instance_of::<PyFloat>() {
        writer::put_scalar(out, Scalar::Float(value.extract()?))?;
    } else if let Some((code, text)) = temporal::text(value)? {
        writer::put_temporal(out, code, &text);
    } else if value.is_instance(classes::decimal(py)?)? {
        writer::put_text(out, &decimal_text(value)?);
    } else if value.is_instance(classes::uuid(py)?)? {
        put_uuid(out, value)?;
    } else if value.is_instance(classes::timedelta(py)?)? {
        writer::put_text(out, &temporal::duration_text(value)?);
    } else if value.is_instance(classes::typed(py)?)? {
        let name: String = value.getattr(intern!(py, "name"))?.extract()?;
        put_type_prefix(out, &name);
        put_under(out, &name, &value.getattr(intern!(py, "value"))?, depth)?;
    } else if value.is_instance(classes::type_literal(py)?)? {
        let name: String = value.getattr(intern!(py, "name"))?.extract()?;
        writer::put_type_literal(out, &name);
    } else {
        return Ok(false);
    }
    Ok(true)
}

/// A value after its type prefix: bytes and elements of Java's arrays get no own prefix.
fn put_under(out: &mut Out, name: &str, value: &Bound<'_, PyAny>, depth: usize) -> Result<()> {
    if let Ok(bytes) = value.cast::<PyBytes>() {
        if let Some(method) = Method::named(name.as_bytes()) {
            method.unpack_alone(bytes.as_bytes(), UNPACKED_MAX)?; // or it could not be read again
        }
        return Ok(writer::put_blob(out, bytes.as_bytes())?);
    }
    let item = match name {
        "short[]" => Form::Int(Width::of(16, true), 16),
        "int[]" => Form::Int(Width::of(32, true), 32),
        "long[]" => Form::Int(Width::of(64, true), 64),
        "float[]" => Form::Float32,
        "double[]" => Form::Float64,
        _ if value.cast::<PyDict>().is_ok_and(PyDictMethods::is_empty) => {
            return put_block(out, |_| Ok(())); // its type is written already
        }
        _ => return put_value(out, value, depth),
    };
    if value.is_instance_of::<PyList>() {
        return encode_declared::put_each(out, &Kind(item), value, depth, Kind::put);
    }
    put_value(out, value, depth)
}

/// A decimal in the form of Java's `BigDecimal`, if it needs no exponent.
pub fn decimal_text(value: &Bound<'_, PyAny>) -> Result<String> {
    let text = value.str()?.to_cow()?.into_owned();
    if text.bytes().all(|byte| b"+-.E0123456789".contains(&byte)) {
        return Ok(text);
    }
    Err(WireError::new("the decimal does not exist in Java").with("value", text).into())
}

/// Appends a UUID.
pub fn put_uuid(out: &mut Out, value: &Bound<'_, PyAny>) -> PyResult<()> {
    let number: u128 = value.getattr(intern!(value.py(), "int"))?.extract()?;
    let [high, low] = [number >> 64, number & u128::from(u64::MAX)]
        .map(|half| u64::try_from(half).unwrap_or_default());
    writer::put_uuid(out, high, low);
    Ok(())
}

#[cold]
fn no_encoding(value: &Bound<'_, PyAny>) -> super::failure::Failure {
    let name = classes::type_name(value);
    let why = match name.as_str() {
        "NAType" => "a missing value: write None instead",
        "ndarray" | "Series" => {
            "an array has no encoding here: declare a field of numpy.typing.NDArray, write its \
             tolist(), or write_batch"
        }
        _ => "a value of this type has no encoding: register its class with quire.message",
    };
    WireError::new(why).with("type", name).into()
}

/// A mapping, or an error that says so.
pub fn mapping<'a, 'py>(object: &'a Bound<'py, PyAny>) -> PyResult<&'a Bound<'py, PyMapping>> {
    object.cast::<PyMapping>().map_err(|_| {
        PyTypeError::new_err(format!("a mapping is needed: type={}", classes::type_name(object)))
    })
}
