//! Values as the text that `append` writes, and dates and times parsed from such text.

use std::borrow::Cow;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt, PyString, PyTuple};
use quire_kernel::vanilla::format::digits::{self, MOST_DECIMALS};
use quire_kernel::vanilla::format::parse::{DATE, DATE_TIME, TIME};

use crate::arguments::{integer, kind, optional};
use crate::error::WireError;

/// The text that Java's `append` writes for a value; for a float, rounded to `precision` digits
/// after the point, if given.
pub fn text<'a>(
    value: &'a Bound<'_, PyAny>,
    precision: Option<&Bound<'_, PyAny>>,
) -> PyResult<Cow<'a, str>> {
    let precision: Option<u32> = optional("precision", precision)?;
    if let Some(precision) = precision {
        return rounded(value, precision).map(Cow::Owned);
    }
    match value.cast::<PyString>() {
        Ok(text) => text.to_cow(),
        Err(_) => other_text(value).map(Cow::Owned),
    }
}

fn other_text(value: &Bound<'_, PyAny>) -> PyResult<String> {
    if value.is_instance_of::<PyBool>() {
        return Ok(if value.extract()? { "true" } else { "false" }.to_owned());
    }
    if value.is_instance_of::<PyInt>() {
        return Ok(integer::<i64>("value", value)?.to_string());
    }
    if value.is_instance_of::<PyFloat>() {
        return Ok(digits::float(value.extract()?));
    }
    if is_a(value, "decimal", "Decimal")? {
        return decimal(value);
    }
    if let Some(text) = time(value)? {
        return Ok(text);
    }
    let name = kind(value);
    let expected = "text, a bool, int, float or Decimal, a date, time or datetime";
    Err(PyTypeError::new_err(format!("invalid value: expected {expected}, found {name}")))
}

fn rounded(value: &Bound<'_, PyAny>, precision: u32) -> PyResult<String> {
    if !value.is_instance_of::<PyFloat>() {
        let what = format!("precision is for a float: value={}", value.repr()?);
        return Err(PyTypeError::new_err(what));
    }
    if precision > MOST_DECIMALS {
        return Err(PyValueError::new_err(format!(
            "invalid precision={precision}: expected 0 to {MOST_DECIMALS}"
        )));
    }
    Ok(digits::rounded(value.extract()?, precision))
}

fn decimal(value: &Bound<'_, PyAny>) -> PyResult<String> {
    if value.call_method0("is_finite")?.extract()? {
        return value.call_method1("__format__", ("f",))?.extract();
    }
    Err(PyValueError::new_err(format!("not a finite number: value={value}")))
}

/// The text of a date, a time of day, or both in GMT; None for other values.
fn time(value: &Bound<'_, PyAny>) -> PyResult<Option<String>> {
    let py = value.py();
    let isoformat = |value: &Bound<'_, PyAny>, length: usize| -> PyResult<String> {
        let text: String = value.call_method1("isoformat", ("T", "milliseconds"))?.extract()?;
        Ok(text[..length].replace('-', "/"))
    };
    let is_aware =
        |value: &Bound<'_, PyAny>| value.call_method0("utcoffset").map(|offset| !offset.is_none());
    if is_a(value, "datetime", "datetime")? {
        if !is_aware(value)? {
            let what = format!("a datetime without a time zone: value={value}");
            return Err(PyValueError::new_err(what));
        }
        let utc = py.import("datetime")?.getattr("timezone")?.getattr("utc")?;
        return isoformat(&value.call_method1("astimezone", (utc,))?, DATE_TIME.len()).map(Some);
    }
    if is_a(value, "datetime", "date")? {
        let text: String = value.call_method0("isoformat")?.extract()?;
        return Ok(Some(text.replace('-', "/")));
    }
    if is_a(value, "datetime", "time")? {
        if is_aware(value)? {
            let what = format!("the time of day of a time zone: value={value}");
            return Err(PyValueError::new_err(what));
        }
        let text: String = value.call_method1("isoformat", ("milliseconds",))?.extract()?;
        return Ok(Some(text[..TIME.len()].to_owned()));
    }
    Ok(None)
}

fn is_a(value: &Bound<'_, PyAny>, module: &str, class: &str) -> PyResult<bool> {
    value.is_instance(&value.py().import(module)?.getattr(class)?)
}

/// A date, a time of day, or both in GMT.
pub fn read<'py>(py: Python<'py>, form: &str, text: &str) -> PyResult<Bound<'py, PyAny>> {
    let class = match form {
        DATE => "date",
        TIME => "time",
        _ => "datetime",
    };
    let mut iso = text.replace('/', "-");
    if form == DATE_TIME {
        iso.push_str("+00:00");
    }
    let class = py.import("datetime")?.getattr(class)?;
    let read = class.call_method1("fromisoformat", PyTuple::new(py, [iso])?);
    read.map_err(|_| WireError::new_err(format!("no such date or time: found={text:?}")))
}
