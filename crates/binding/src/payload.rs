//! What a caller hands over as a message.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::buffer::Borrowed;

/// The bytes of one message.
pub enum Message<'py> {
    /// A `bytes` object: never changes, so it is not copied.
    Fixed(Bound<'py, PyBytes>),
    /// A copy of another buffer, which its owner might change.
    Copied(Vec<u8>),
}

impl<'py> Message<'py> {
    /// Takes a message of at least one byte.
    #[inline]
    pub fn take(object: &Bound<'py, PyAny>) -> PyResult<Self> {
        let message = match object.cast::<PyBytes>() {
            Ok(bytes) => Self::Fixed(bytes.clone()),
            Err(_) => Self::Copied(Borrowed::new(object)?.bytes().to_vec()),
        };
        if message.bytes().is_empty() { Err(empty()) } else { Ok(message) }
    }

    /// The bytes.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Fixed(bytes) => bytes.as_bytes(),
            Self::Copied(bytes) => bytes,
        }
    }
}

#[cold]
fn empty() -> PyErr {
    PyValueError::new_err("a message holds at least one byte: length=0")
}
