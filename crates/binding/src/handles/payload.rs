//! Messages passed in by the caller.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyTuple};
use quire_kernel::chronicle::queue::handle::Queue;
use quire_wire::fieldless;
use quire_wire::out::Out;

use crate::arguments::iterator;
use crate::buffer::{self, Borrowed};
use crate::error::to_py;
use crate::values::failure;

/// Messages taken from an iterator at a time; a list or tuple is taken whole.
const CHUNK: usize = 10_000;
/// Messages up to this many bytes are copied with the interpreter attached.
pub const SMALL: usize = 4096;

/// The bytes of one message.
pub enum Message<'a> {
    /// A `bytes` object: it never changes, so it is not copied.
    Fixed(&'a [u8]),
    /// A copy of another buffer, which its owner might change.
    Copied(Vec<u8>),
}

impl<'a> Message<'a> {
    /// Takes a message; an empty one is an error.
    #[inline]
    pub fn take(object: &'a Bound<'_, PyAny>) -> PyResult<Self> {
        Self::of_length(object, 1)
    }

    /// Like [`Message::take`], for formats that allow empty messages.
    #[inline]
    pub fn any(object: &'a Bound<'_, PyAny>) -> PyResult<Self> {
        Self::of_length(object, 0)
    }

    #[expect(clippy::inline_always, reason = "once a message: a call costs 2 %")]
    #[inline(always)]
    fn of_length(object: &'a Bound<'_, PyAny>, at_least: usize) -> PyResult<Self> {
        let message = match object.cast::<PyBytes>() {
            Ok(bytes) => Self::Fixed(bytes.as_bytes()),
            Err(_) => Self::copied(object)?,
        };
        if message.bytes().len() < at_least { Err(empty()) } else { Ok(message) }
    }

    #[inline(never)]
    fn copied(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        buffer::copy(Borrowed::new(object)?.bytes()).map(Self::Copied).map_err(to_py)
    }

    /// The bytes.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Fixed(bytes) => bytes,
            Self::Copied(bytes) => bytes,
        }
    }
}

/// Writes the messages of a list, a tuple or an iterator with `write`; returns the last index. A tuple
/// keeps its items alive and in place while they are written.
pub fn in_tuples<'py, I>(
    payloads: &Bound<'py, PyAny>,
    write: impl Fn(&Bound<'py, PyTuple>) -> PyResult<Option<I>>,
) -> PyResult<Option<I>> {
    if let Ok(list) = payloads.cast::<PyList>() {
        return write(&list.to_tuple());
    }
    if let Ok(tuple) = payloads.cast::<PyTuple>() {
        return write(tuple);
    }
    let mut items = iterator("payloads", "payloads", payloads)?;
    let mut last = None;
    loop {
        let chunk = items.by_ref().take(CHUNK).collect::<PyResult<Vec<_>>>()?;
        if chunk.is_empty() {
            return Ok(last);
        }
        last = write(&PyTuple::new(payloads.py(), chunk)?)?;
    }
}

/// A message as the queue's wire type has it.
pub fn in_wire_of(queue: &Queue, message: Out) -> failure::Result<Out> {
    if !queue.is_fieldless() {
        return Ok(message);
    }
    Ok(Out::from(fieldless::without_names(message.written()?)?))
}

#[cold]
fn empty() -> PyErr {
    PyValueError::new_err("a message holds at least one byte: length=0")
}
