//! Argument checks: errors name the argument, what was expected and what was found.

use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyIterator, PyString};

/// Integer types as arguments.
pub trait Whole: for<'a, 'py> FromPyObject<'a, 'py, Error = PyErr> {
    /// The range of the type.
    const BOUNDS: (i128, i128);
}

macro_rules! whole {
    ($($kind:ty),*) => {$(
        impl Whole for $kind {
            #[allow(clippy::cast_lossless)] // of every width
            const BOUNDS: (i128, i128) = (<$kind>::MIN as i128, <$kind>::MAX as i128);
        }
    )*};
}

whole!(i8, i16, i32, i64, u32, u64, usize);

/// An integer, or an error that names the argument.
#[inline]
pub fn integer<T: Whole>(name: &str, given: &Bound<'_, PyAny>) -> PyResult<T> {
    given.extract::<T>().map_err(|error| refusal::<T>(name, given, error))
}

/// Like [`integer`], for an optional argument.
pub fn optional<T: Whole>(name: &str, given: Option<&Bound<'_, PyAny>>) -> PyResult<Option<T>> {
    given.map(|given| integer(name, given)).transpose()
}

/// An iterator over the argument, or an error that names it.
pub fn iterator<'py>(
    name: &str,
    expected: &str,
    given: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyIterator>> {
    if !given.hasattr("__iter__")? && !given.hasattr("__getitem__")? {
        let what = format!("invalid {name}: expected {expected}, found {}", kind(given));
        return Err(PyTypeError::new_err(what));
    }
    given.try_iter()
}

/// A string, or an error that names the argument.
pub fn text<'a>(name: &str, given: &'a Bound<'_, PyAny>) -> PyResult<&'a str> {
    given.extract().map_err(|_| match given.cast::<PyString>() {
        Ok(_) => {
            let found = given.repr().map(|it| it.to_string()).unwrap_or_default();
            PyValueError::new_err(format!("invalid {name}: expected text in UTF-8, found {found}"))
        }
        Err(_) => {
            PyTypeError::new_err(format!("invalid {name}: expected text, found {}", kind(given)))
        }
    })
}

/// A bool, or an error that names the argument.
pub fn flag(name: &str, given: &Bound<'_, PyAny>) -> PyResult<bool> {
    given.extract().map_err(|_| {
        let found = kind(given);
        PyTypeError::new_err(format!("invalid {name}: expected True or False, found {found}"))
    })
}

/// Seconds, or an error that names the argument.
pub fn seconds(name: &str, given: &Bound<'_, PyAny>) -> PyResult<f64> {
    given.extract().map_err(|_| {
        PyTypeError::new_err(format!("invalid {name}: expected seconds, found {}", kind(given)))
    })
}

#[cold]
fn refusal<T: Whole>(name: &str, given: &Bound<'_, PyAny>, error: PyErr) -> PyErr {
    let py = given.py();
    if error.is_instance_of::<PyOverflowError>(py) {
        let (low, high) = T::BOUNDS;
        let found = given
            .str()
            .map_or_else(|_| "more digits than can be shown".into(), |it| it.to_string());
        let found: String = found.chars().take(60).collect();
        let expected = format!("an integer from {low} to {high}");
        return PyValueError::new_err(format!(
            "invalid {name}: expected {expected}, found {found}"
        ));
    }
    if error.is_instance_of::<PyTypeError>(py) {
        let found = kind(given);
        return PyTypeError::new_err(format!("invalid {name}: expected an integer, found {found}"));
    }
    error
}

/// The type of an argument, as errors show it.
pub fn kind(given: &Bound<'_, PyAny>) -> String {
    if given.is_none() {
        return "None".to_owned();
    }
    given.get_type().name().map_or_else(|_| "an object".to_owned(), |name| name.to_string())
}
