//! Messages as text, and text as messages.

use std::fmt::Write;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString};
use quire_wire::compress;
use quire_wire::message;
use quire_wire::out::{Out, room};
use quire_wire::reader::{Reader, Token};
use quire_wire::text::summary::WIRE_FROM;
use quire_wire::text::{json as as_json, yaml as as_yaml, yaml_parser};
use quire_wire::writer;
use quire_wire::{Result, WireError};

use super::decode;
use super::failure::{self, Failure};
use crate::buffer::{self, Borrowed};
use crate::error::to_py;

#[doc = stub!("to_yaml")]
#[pyfunction]
#[pyo3(signature = (message, /))]
pub fn to_yaml<'py>(message: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyString>> {
    Ok(yaml(message.py(), Borrowed::new(message)?.bytes())?)
}

#[doc = stub!("to_json")]
#[pyfunction]
#[pyo3(signature = (message, /))]
pub fn to_json<'py>(message: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyString>> {
    Ok(json(message.py(), Borrowed::new(message)?.bytes())?)
}

#[doc = stub!("field_json")]
#[pyfunction]
#[pyo3(signature = (name, offsets, data, /))]
pub fn field_json(
    name: &str,
    offsets: &Bound<'_, PyAny>,
    data: &Bound<'_, PyAny>,
) -> PyResult<Vec<Option<String>>> {
    let (offsets, data) = (Borrowed::new(offsets)?, Borrowed::new(data)?);
    let offsets = offsets.bytes().as_chunks().0.iter().map(|it| u32::from_le_bytes(*it) as usize);
    let ends = offsets.clone().skip(1);
    let payloads = offsets.zip(ends).map(|(start, end)| data.bytes().get(start..end));
    Ok(payloads.map(|payload| payload.and_then(|it| as_json::field(it, name))).collect())
}

#[doc = stub!("parse_yaml")]
#[pyfunction]
#[pyo3(signature = (text, /))]
pub fn parse_yaml<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyBytes>> {
    let parsed = py.detach(|| yaml_parser::yaml_exact(text)).map_err(Failure::from)?;
    buffer::bytes(py, &parsed).map_err(to_py)
}

#[doc = stub!("parse_json")]
#[pyfunction]
#[pyo3(signature = (text, /))]
pub fn parse_json<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyBytes>> {
    let parsed = py.detach(|| as_json::parse_exact(text)).map_err(Failure::from)?;
    buffer::bytes(py, &parsed).map_err(to_py)
}

#[pyfunction(name = "_parse_shown")]
#[pyo3(signature = (text, /))]
pub fn parse_shown<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyBytes>> {
    let parsed = py.detach(|| as_json::parse(text)).map_err(Failure::from)?;
    buffer::bytes(py, &parsed).map_err(to_py)
}

/// A message as YAML.
pub fn yaml<'py>(py: Python<'py>, message: &[u8]) -> failure::Result<Bound<'py, PyString>> {
    Ok(buffer::text(py, &yaml_of(message)?)?)
}

/// A message as JSON.
pub fn json<'py>(py: Python<'py>, message: &[u8]) -> failure::Result<Bound<'py, PyString>> {
    Ok(buffer::text(py, &json_of(message)?)?)
}

/// The content of a message that is a text.
pub fn of_message<'py>(py: Python<'py>, message: &[u8]) -> failure::Result<Bound<'py, PyString>> {
    Ok(buffer::text(py, &message::text(message)?)?)
}

/// Like [`yaml`], but also accepts raw bytes.
pub fn any_yaml<'py>(py: Python<'py>, message: &[u8]) -> failure::Result<Bound<'py, PyString>> {
    Ok(buffer::text(py, &or_raw(message, yaml_of)?)?)
}

/// Like [`json`], but also accepts raw bytes.
pub fn any_json<'py>(py: Python<'py>, message: &[u8]) -> failure::Result<Bound<'py, PyString>> {
    Ok(buffer::text(py, &or_raw(message, json_of)?)?)
}

/// Like [`of_message`], but also accepts raw bytes: as text if printable, otherwise in hexadecimal.
pub fn any_text<'py>(py: Python<'py>, message: &[u8]) -> failure::Result<Bound<'py, PyString>> {
    match message::text(message) {
        Err(fault) if is_raw(message, &fault) => match printable(message) {
            Some(text) => Ok(buffer::text(py, text)?),
            None => Ok(buffer::text(py, &digits(message)?)?),
        },
        text => Ok(buffer::text(py, &text?)?),
    }
}

/// Formats a message by `show`; raw bytes are shown as text or bytes.
fn or_raw(message: &[u8], show: impl Fn(&[u8]) -> Result<String>) -> Result<String> {
    if !begins_raw(message) {
        match show(message) {
            Err(fault) if is_raw(message, &fault) => {}
            shown => return shown,
        }
    }
    let mut value = Out::new();
    match printable(message) {
        Some(text) => writer::put_text(&mut value, text),
        None => writer::put_blob(&mut value, message)?,
    }
    show(&value.finish()?)
}

/// Whether no value or name begins with a message's first byte, as Java sees it.
fn begins_raw(message: &[u8]) -> bool {
    message.first().is_some_and(|first| *first < WIRE_FROM)
}

/// Whether a message that cannot be shown is not BinaryWire, from its first byte on or further in.
fn is_raw(message: &[u8], fault: &WireError) -> bool {
    fault.lacking().is_none() && (begins_raw(message) || message::check(message).is_err())
}

/// Bytes as text, if printable.
fn printable(message: &[u8]) -> Option<&str> {
    let is_shown = |it: char| matches!(it, '\t' | '\n' | '\r') || !it.is_control();
    std::str::from_utf8(message).ok().filter(|text| text.chars().all(is_shown))
}

fn digits(message: &[u8]) -> Result<String> {
    room(message.len().saturating_mul(3))?;
    let mut out = String::with_capacity(message.len() * 3);
    for (place, byte) in message.iter().enumerate() {
        let space = if place > 0 { " " } else { "" };
        let _ = write!(out, "{space}{byte:02x}"); // to a string, which cannot fail
    }
    Ok(out)
}

/// A message as YAML, including content that Java's dump omits.
pub fn yaml_of(message: &[u8]) -> Result<String> {
    let mut out = shown_of(message)?;
    as_yaml::put(&mut out, message, true)?;
    Ok(out)
}

fn json_of(message: &[u8]) -> Result<String> {
    let mut out = shown_of(message)?;
    as_json::put(&mut out, message)?;
    Ok(out)
}

/// An empty string for a message's text. The code that fills it aborts the process when out of
/// memory, so this checks that there is enough for a message of many small values.
fn shown_of(message: &[u8]) -> Result<String> {
    room(message.len().saturating_mul(4))?;
    Ok(String::with_capacity(message.len() + message.len() / 2))
}

/// The named values of a message, or of the object in it.
pub fn dict_of<'py>(py: Python<'py>, message: &[u8]) -> failure::Result<Bound<'py, PyDict>> {
    compress::begin_message();
    let mut cursor = Reader::new(message);
    if cursor.type_prefix_if().is_some()
        && let Token::Block(mut block) = cursor.value()?
    {
        cursor.end()?;
        return decode::map(py, &mut block, 1);
    }
    decode::message_map(py, message)
}
