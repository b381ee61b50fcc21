//! Messages passed in by the caller.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyTuple};
use quire_kernel::chronicle::queue::handle::Queue;
use quire_wire::fieldless;
use quire_wire::out::Out;

use crate::arguments::iterator;
use crate::buffer::{self, Borrowed};
use crate::error::{to_py, with_note};
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

/// Writes the messages of a list, a tuple or an iterator, each taken by `take`, with `write`;
/// returns the last index.
pub fn in_batches<'py, I>(
    payloads: &Bound<'py, PyAny>,
    take: impl for<'a> Fn(&'a Bound<'_, PyAny>) -> PyResult<Message<'a>>,
    write: impl Fn(&[Message<'_>]) -> PyResult<Option<I>>,
) -> PyResult<Option<I>> {
    // A tuple keeps its items alive and in place while they are written.
    let batch = |items: &Bound<'py, PyTuple>, before: usize| {
        let items: Vec<_> = items.iter_borrowed().collect();
        let messages = items.iter().map(|item| take(item)).collect::<PyResult<Vec<_>>>();
        write(&messages.map_err(|error| {
            let number = items.iter().position(|item| take(item).is_err());
            at_item(payloads.py(), error, before, number)
        })?)
    };
    if let Ok(list) = payloads.cast::<PyList>() {
        return batch(&list.to_tuple(), 0);
    }
    if let Ok(tuple) = payloads.cast::<PyTuple>() {
        return batch(tuple, 0);
    }
    let mut items = iterator("payloads", "an iterable of messages as bytes", payloads)?;
    let mut last = None;
    let mut before = 0;
    loop {
        let chunk = items.by_ref().take(CHUNK).collect::<PyResult<Vec<_>>>()?;
        if chunk.is_empty() {
            return Ok(last);
        }
        let count = chunk.len();
        last = batch(&PyTuple::new(payloads.py(), chunk)?, before)?;
        before += count;
    }
}

/// An error about an item, with a note of its number and of how many were appended `before`.
#[cold]
fn at_item(py: Python<'_>, error: PyErr, before: usize, number: Option<usize>) -> PyErr {
    let Some(number) = number else { return error }; // the list was changed meanwhile
    with_note(py, error, format!("payloads[{}]; appended: {before}", before + number))
}

/// Converts a message to the queue's wire type.
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
