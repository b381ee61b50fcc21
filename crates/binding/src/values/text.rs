//! Messages as text, and text as messages.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use quire_wire::Result;
use quire_wire::compress;
use quire_wire::reader::{Reader, Token};
use quire_wire::text::{json, yaml, yaml_parser};

use super::decode;
use super::failure::{self, Failure};
use crate::buffer::Borrowed;

#[doc = stub!("to_yaml")]
#[pyfunction]
#[pyo3(signature = (message, /))]
pub fn to_yaml(message: &Bound<'_, PyAny>) -> PyResult<String> {
    Ok(yaml_of(Borrowed::new(message)?.bytes()).map_err(Failure::from)?)
}

#[doc = stub!("to_json")]
#[pyfunction]
#[pyo3(signature = (message, /))]
pub fn to_json(message: &Bound<'_, PyAny>) -> PyResult<String> {
    Ok(json_of(Borrowed::new(message)?.bytes()).map_err(Failure::from)?)
}

#[doc = stub!("parse_yaml")]
#[pyfunction]
#[pyo3(signature = (text, /))]
pub fn parse_yaml<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyBytes>> {
    let parsed = py.detach(|| yaml_parser::yaml_exact(text)).map_err(Failure::from)?;
    Ok(PyBytes::new(py, &parsed))
}

#[doc = stub!("parse_json")]
#[pyfunction]
#[pyo3(signature = (text, /))]
pub fn parse_json<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyBytes>> {
    let parsed = py.detach(|| json::parse_exact(text)).map_err(Failure::from)?;
    Ok(PyBytes::new(py, &parsed))
}

#[doc = stub!("_parse_shown")]
#[pyfunction(name = "_parse_shown")]
#[pyo3(signature = (text, /))]
pub fn parse_shown<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyBytes>> {
    let parsed = py.detach(|| json::parse(text)).map_err(Failure::from)?;
    Ok(PyBytes::new(py, &parsed))
}

/// A message as YAML, with what only Java's dump does not show.
pub fn yaml_of(message: &[u8]) -> Result<String> {
    let mut out = String::with_capacity(message.len() + message.len() / 2);
    yaml::put(&mut out, message, true)?;
    Ok(out)
}

/// A message as JSON.
pub fn json_of(message: &[u8]) -> Result<String> {
    let mut out = String::with_capacity(message.len() + message.len() / 2);
    json::put(&mut out, message)?;
    Ok(out)
}

/// The named values of a message, or those of the object that it is.
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
