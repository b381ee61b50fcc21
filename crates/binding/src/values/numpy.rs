//! Converts numpy scalars to Python values. numpy is never imported: if it is not loaded, there
//! are no numpy scalars.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use quire_wire::WireError;
use quire_wire::codes::{DATE, DATE_TIME};
use quire_wire::temporal as text;

use super::failure::Result;
use super::{classes, temporal};

/// The Python value of a numpy scalar.
pub enum Plain<'py> {
    /// An object of Python.
    Value(Bound<'py, PyAny>),
    /// The code and Java's text of a date, or a time without a zone.
    Temporal(u8, String),
    /// Java's text of a duration.
    Duration(String),
}

/// The Python value of a numpy scalar; None for any other object.
#[cold]
pub fn plain<'py>(value: &Bound<'py, PyAny>) -> Result<Option<Plain<'py>>> {
    let Some(numpy) = imported(value.py())? else { return Ok(None) };
    let is_a = |class| value.is_instance(&numpy.getattr(class)?);
    if !is_a(intern!(value.py(), "generic"))? {
        return Ok(None);
    }
    if is_a(intern!(value.py(), "datetime64"))? {
        return moment(value).map(Some);
    }
    if is_a(intern!(value.py(), "timedelta64"))? {
        return duration(value).map(Some);
    }
    let item = value.call_method0(intern!(value.py(), "item"))?;
    let has_own = item.get_type().is(value.get_type()); // a long double has no other form
    Ok((!has_own).then_some(Plain::Value(item)))
}

/// The object of a numpy scalar that is neither a time nor a duration.
#[cold]
pub fn plain_value<'py>(value: &Bound<'py, PyAny>) -> Result<Option<Bound<'py, PyAny>>> {
    match plain(value)? {
        Some(Plain::Value(value)) => Ok(Some(value)),
        _ => Ok(None),
    }
}

/// Whether an object is an array.
pub fn is_array(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    let Some(numpy) = imported(value.py())? else { return Ok(false) };
    value.is_instance(&numpy.getattr(intern!(value.py(), "ndarray"))?)
}

fn imported(py: Python<'_>) -> PyResult<Option<Bound<'_, PyAny>>> {
    let modules = py.import(intern!(py, "sys"))?.getattr(intern!(py, "modules"))?;
    Ok(modules.cast::<PyDict>()?.get_item(intern!(py, "numpy"))?.filter(|it| !it.is_none()))
}

fn moment<'py>(value: &Bound<'py, PyAny>) -> Result<Plain<'py>> {
    let item = value.call_method0(intern!(value.py(), "item"))?;
    if let Some((code, text)) = temporal::text(&item)? {
        return Ok(Plain::Temporal(code, text));
    }
    let iso = value.str()?.to_cow()?.into_owned();
    let found = match iso.split_once('T') {
        Some((date, time)) => (DATE_TIME, format!("{date}T{}", text::java_time(time))),
        None => (DATE, iso),
    };
    if temporal::is_java(found.0, &found.1) {
        return Ok(Plain::Temporal(found.0, found.1));
    }
    Err(no_time(value))
}

fn duration<'py>(value: &Bound<'py, PyAny>) -> Result<Plain<'py>> {
    let py = value.py();
    let item = value.call_method0(intern!(py, "item"))?;
    let kind = value.getattr(intern!(py, "dtype"))?.str()?.to_cow()?.into_owned();
    if kind.contains("[ns]")
        && let Ok(nanos) = item.extract::<i128>()
    {
        return Ok(Plain::Duration(text::java_duration(nanos)));
    }
    if item.hasattr(intern!(py, "days"))? {
        return Ok(Plain::Duration(temporal::duration_text(&item)?));
    }
    Err(no_time(value))
}

#[cold]
fn no_time(value: &Bound<'_, PyAny>) -> super::failure::Failure {
    WireError::new("no date, time or duration that Java knows: write None for a missing one")
        .with("found", value)
        .with("type", classes::type_name(value))
        .into()
}
