//! Errors of the conversion between Python values and messages.

use pyo3::prelude::*;
use quire_wire::WireError;

use crate::error::to_py;

/// A message that cannot be read as requested, or an exception of Python code that was called.
pub enum Failure {
    Wire(WireError),
    Python(PyErr),
}

/// The result of a conversion between messages and Python values.
pub type Result<T> = std::result::Result<T, Failure>;

impl Failure {
    /// Adds an enclosing field to the error's path.
    #[must_use]
    pub fn inside(self, name: impl std::fmt::Display) -> Self {
        match self {
            Self::Wire(fault) => Self::Wire(fault.inside(name)),
            Self::Python(raised) => Self::Python(raised),
        }
    }
}

impl From<WireError> for Failure {
    fn from(fault: WireError) -> Self {
        Self::Wire(fault)
    }
}

impl From<PyErr> for Failure {
    fn from(raised: PyErr) -> Self {
        Self::Python(raised)
    }
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Wire(fault) => to_py(fault.into()),
            Failure::Python(raised) => raised,
        }
    }
}
