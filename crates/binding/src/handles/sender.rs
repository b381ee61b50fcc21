//! A Python handle that sends whole messages elsewhere.

use std::path::Path;

use pyo3::prelude::*;
use pyo3::{PyTraverseError, PyVisit};
use quire_kernel::Error;
use quire_wire::fieldless;
use quire_wire::out::Out;

use crate::buffer;
use crate::error::to_py;
use crate::values::failure;

/// An appender with the methods of `quire.formats.remote.AnyRemoteAppender`, and the constant
/// of its queue.
pub struct Sender {
    handle: Py<PyAny>,
    path: String,
    pub source_id: i32,
    pub is_fieldless: bool,
    /// The length of the longest message, and the block size.
    limits: (u64, u64),
}

impl Sender {
    pub fn of(appender: &Bound<'_, PyAny>) -> PyResult<Self> {
        Ok(Self {
            path: appender.getattr("path")?.extract()?,
            source_id: appender.getattr("_source_id")?.extract()?,
            is_fieldless: appender.getattr("_is_fieldless")?.extract()?,
            limits: appender.getattr("_limits")?.extract()?,
            handle: appender.clone().unbind(),
        })
    }

    #[allow(clippy::needless_pass_by_value)] // as PyO3 calls it
    pub fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.handle)
    }

    pub fn path(&self) -> &Path {
        Path::new(&self.path)
    }

    /// An error for a message that is too long for the queue.
    pub const fn check_length(&self, length: u64) -> quire_kernel::Result<()> {
        let (limit, block_bytes) = self.limits;
        if length > limit {
            return Err(Error::MessageTooLarge { length, limit, block_bytes });
        }
        Ok(())
    }

    /// Sends a message, and returns its index: that of the next message for metadata. `wait` is how
    /// many replicas to wait for.
    pub fn send(
        &self,
        py: Python<'_>,
        message: &[u8],
        is_metadata: bool,
        wait: Option<&Py<PyAny>>,
    ) -> PyResult<i64> {
        let message = buffer::bytes(py, message).map_err(to_py)?;
        self.handle.call_method1(py, "_send", (message, is_metadata, wait))?.extract(py)
    }

    /// Converts a message to the queue's wire type.
    pub fn in_wire(&self, message: Out) -> failure::Result<Out> {
        if !self.is_fieldless {
            return Ok(message);
        }
        Ok(Out::from(fieldless::without_names(message.written()?)?))
    }
}
