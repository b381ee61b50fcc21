//! Values of `Literal` types, checked on writing and on reading.

use pyo3::prelude::*;
use pyo3::types::PyBool;

use super::failure::{Failure, Result};
use super::numpy;
use super::schema::{Form, Kind};

impl Kind {
    /// The value as one of those declared, or an error that names them.
    pub fn checked<'py>(&self, value: Bound<'py, PyAny>) -> Result<Bound<'py, PyAny>> {
        match &self.0 {
            Form::Optional(_) if value.is_none() => Ok(value),
            Form::Optional(kind) => kind.get().checked(value),
            Form::Literal(_, options) => match one_of(options, &value)? {
                Some(option) => Ok(option),
                None => Err(self.misfit(&value)),
            },
            _ => Ok(value),
        }
    }

    /// Like [`Kind::checked`], for a value that was read.
    pub fn checked_at<'py>(
        &self,
        value: Bound<'py, PyAny>,
        at: usize,
    ) -> Result<Bound<'py, PyAny>> {
        self.checked(value).map_err(|failure| match failure {
            Failure::Wire(fault) => Failure::Wire(fault.with("offset", at)),
            raised @ Failure::Python(_) => raised,
        })
    }
}

/// The option that equals a value and has its type; a bool does not equal a number.
fn one_of<'py>(
    options: &[Py<PyAny>],
    value: &Bound<'py, PyAny>,
) -> Result<Option<Bound<'py, PyAny>>> {
    let is_bool = value.is_instance_of::<PyBool>();
    for option in options {
        let option = option.bind(value.py());
        let is_alike =
            value.is_instance(&option.get_type())? && is_bool == option.is_instance_of::<PyBool>();
        if is_alike && option.eq(value)? {
            return Ok(Some(option.clone()));
        }
    }
    match numpy::plain_value(value)? {
        Some(plain) => one_of(options, &plain),
        None => Ok(None),
    }
}
