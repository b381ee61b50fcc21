//! What goes wrong while Python values are made of a message, or a message of them.

use pyo3::prelude::*;
use quire_kernel::Error;
use quire_wire::WireError;

use crate::error::to_py;

/// A message that does not read as asked, or an exception of the Python code that was called.
pub enum Failure {
    /// The message is at fault.
    Wire(WireError),
    /// Python raised.
    Python(PyErr),
}

/// Results of turning messages into Python values, and back.
pub type Result<T> = std::result::Result<T, Failure>;

impl Failure {
    /// Names the field around what was wrong.
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
            Failure::Wire(fault) => to_py(Error::Wire(fault)),
            Failure::Python(raised) => raised,
        }
    }
}
