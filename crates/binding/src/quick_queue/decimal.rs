//! Decimal numbers and integers of any size converted between Python's types and the bytes of
//! Java's.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{IntoPyDict, PyBytes, PyInt, PyString, PyTuple, PyType};
use quire_kernel::quick_queue::format::decimal::{Decimal, shortest, small};

static DECIMAL: PyOnceLock<Py<PyType>> = PyOnceLock::new();

fn decimal_type(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    DECIMAL.import(py, "decimal", "Decimal")
}

/// The unscaled integer and the scale of a `decimal.Decimal`; an `int` has no scale.
pub fn parts(value: &Bound<'_, PyAny>) -> PyResult<(Vec<u8>, i32)> {
    let py = value.py();
    if let Ok(integer) = value.cast::<PyInt>() {
        return Ok((integer_bytes(integer)?, 0));
    }
    if !value.is_instance(decimal_type(py)?)? {
        let found = value.get_type().name()?;
        let what = format!("invalid value: expected a decimal.Decimal or an int, found {found}");
        return Err(PyTypeError::new_err(what));
    }
    let tuple = value.call_method0(intern!(py, "as_tuple"))?;
    let Ok(exponent) = tuple.getattr(intern!(py, "exponent"))?.extract::<i64>() else {
        return Err(PyValueError::new_err(format!(
            "a decimal field holds a number: value={value}"
        )));
    };
    let scale = exponent.checked_neg().and_then(|scale| i32::try_from(scale).ok());
    let scale = scale.ok_or_else(|| {
        let bounds = (i64::from(i32::MIN) + 1, i32::MAX);
        PyValueError::new_err(format!(
            "the exponent of a decimal field must fit in 32 bits: exponent={exponent} expected={} \
             to {}",
            bounds.0, bounds.1
        ))
    })?;
    let (sign, digits) =
        (tuple.getattr(intern!(py, "sign"))?, tuple.getattr(intern!(py, "digits"))?);
    let whole = decimal_type(py)?.call1(((sign, digits, 0),))?;
    let whole = whole.call_method0(intern!(py, "__int__"))?;
    Ok((integer_bytes(whole.cast::<PyInt>()?)?, scale))
}

/// A `decimal.Decimal` of a field.
pub fn decimal<'py>(py: Python<'py>, value: Decimal<'_>) -> PyResult<Bound<'py, PyAny>> {
    let exponent = -i64::from(value.scale);
    let class = decimal_type(py)?;
    if let Some(unscaled) = small(value.unscaled) {
        return class.call1((format!("{unscaled}E{exponent}"),));
    }
    let whole = class.call1((integer(py, value.unscaled)?,))?;
    let parts = whole.call_method0(intern!(py, "as_tuple"))?;
    let parts = parts.cast::<PyTuple>()?;
    class.call1(((parts.get_item(0)?, parts.get_item(1)?, exponent),))
}

/// An integer as the bytes of Java's `BigInteger.toByteArray`.
pub fn integer_bytes(value: &Bound<'_, PyInt>) -> PyResult<Vec<u8>> {
    let py = value.py();
    if let Ok(value) = value.extract::<i128>() {
        return Ok(shortest(&value.to_le_bytes()));
    }
    let bits: usize = value.call_method0(intern!(py, "bit_length"))?.extract()?;
    let signed = [("signed", true)].into_py_dict(py)?;
    let little = PyString::intern(py, "little");
    let bytes =
        value.call_method(intern!(py, "to_bytes"), (bits / 8 + 1, little), Some(&signed))?;
    Ok(shortest(bytes.cast::<PyBytes>()?.as_bytes()))
}

/// Converts such bytes to an integer.
pub fn integer<'py>(py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    if let Some(value) = small(bytes) {
        return Ok(value.into_pyobject(py)?.into_any());
    }
    let signed = [("signed", true)].into_py_dict(py)?;
    let big = PyString::intern(py, "big");
    let class = py.get_type::<PyInt>();
    class.call_method(intern!(py, "from_bytes"), (PyBytes::new(py, bytes), big), Some(&signed))
}
