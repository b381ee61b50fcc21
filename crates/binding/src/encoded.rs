//! Whole messages as bytes, for handles whose queue is on another machine.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};
use quire_wire::fieldless;
use quire_wire::out::Out;
use quire_wire::writer;

use crate::buffer;
use crate::error::to_py;
use crate::handles::documents::Source;
use crate::handles::read_document::ReadDocument;
use crate::handles::sender::Sender;
use crate::handles::write_document::WriteDocument;
use crate::values::failure::Failure;
use crate::values::{codec, encode};

#[doc = stub!("text_bytes")]
#[pyfunction]
#[pyo3(signature = (text, /))]
pub fn text_bytes<'py>(
    py: Python<'py>,
    text: &Bound<'py, PyString>,
) -> PyResult<Bound<'py, PyBytes>> {
    let text = text.to_cow()?;
    let stored = writer::stored_text(text.as_bytes()).map_err(Failure::from)?;
    let body = stored.as_deref().unwrap_or(text.as_bytes());
    let (head, length) = writer::text_head(body.len());
    buffer::bytes(py, &[&head[..length], body].concat()).map_err(to_py)
}

#[doc = stub!("map_bytes")]
#[pyfunction]
#[pyo3(signature = (values, /))]
pub fn map_bytes<'py>(
    py: Python<'py>,
    values: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyBytes>> {
    let mut out = Out::with_capacity(128);
    encode::put_entries(&mut out, encode::mapping(values)?)?;
    buffer::bytes(py, out.written().map_err(Failure::from)?).map_err(to_py)
}

#[doc = stub!("message_bytes")]
#[pyfunction]
#[pyo3(signature = (message, cls = None, /, *, typed = false, fieldless = false))]
pub fn message_bytes<'py>(
    py: Python<'py>,
    message: &Bound<'py, PyAny>,
    cls: Option<&Bound<'py, PyAny>>,
    typed: bool,
    fieldless: bool,
) -> PyResult<Bound<'py, PyBytes>> {
    let codec = codec::to_write(message, cls)?;
    let mut out = Out::with_capacity(128);
    codec.get().put_message(&mut out, message, typed)?;
    let written = out.written().map_err(Failure::from)?;
    if fieldless {
        let bare = fieldless::without_names(written).map_err(Failure::from)?;
        return buffer::bytes(py, &bare).map_err(to_py);
    }
    buffer::bytes(py, written).map_err(to_py)
}

#[doc = stub!("document_to_send")]
#[pyfunction]
#[pyo3(signature = (appender, *, metadata = false, wait = None))]
pub fn document_to_send(
    appender: &Bound<'_, PyAny>,
    metadata: bool,
    wait: Option<Py<PyAny>>,
) -> PyResult<WriteDocument> {
    Ok(WriteDocument::to_send(Sender::of(appender)?, metadata, wait))
}

#[doc = stub!("received_document")]
#[pyfunction]
#[pyo3(signature = (tailer, /, *, include_metadata))]
pub fn received_document(
    tailer: &Bound<'_, PyAny>,
    include_metadata: bool,
) -> PyResult<ReadDocument> {
    ReadDocument::open(tailer.py(), Source::receiving(tailer)?, include_metadata)
}
