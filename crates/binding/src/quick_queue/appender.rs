use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyString;
use quire_kernel::quick_queue::append::Appender as Kernel;

use super::packer::MessagePacker;
use super::queue::QuickQueue;
use crate::buffer::Borrowed;
use crate::detached::detached;
use crate::error::{or_raise, to_py};
use crate::handles::column::Column;
use crate::handles::payload::{Message, SMALL, in_batches};
use crate::repr;

#[doc = stub!("QuickAppender")]
#[pyclass(module = "quire._native", frozen, subclass)]
pub struct QuickAppender(pub Arc<Kernel>);

#[pymethods]
impl QuickAppender {
    #[new]
    #[pyo3(signature = (queue, producer = None))]
    fn new(
        py: Python<'_>,
        queue: &Bound<'_, QuickQueue>,
        producer: Option<&str>,
    ) -> PyResult<Self> {
        let queue = &queue.get().kernel;
        let opened = detached(py, |may_wait| match producer {
            Some(name) => queue.producer(may_wait, name),
            None => queue.appender(may_wait),
        });
        or_raise(py, opened).map(Self)
    }

    #[doc = stub!("QuickAppender.new_message")]
    fn new_message(&self) -> MessagePacker {
        MessagePacker::new(Arc::clone(&self.0))
    }

    #[doc = stub!("QuickAppender.write_bytes")]
    #[pyo3(signature = (payload, /))]
    fn write_bytes(&self, py: Python<'_>, payload: &Bound<'_, PyAny>) -> PyResult<u64> {
        append(py, &self.0, Message::take(payload)?.bytes())
    }

    #[doc = stub!("QuickAppender.write_text")]
    #[pyo3(signature = (text, /))]
    fn write_text(&self, py: Python<'_>, text: &Bound<'_, PyString>) -> PyResult<u64> {
        append(py, &self.0, text.to_cow()?.as_bytes())
    }

    #[doc = stub!("QuickAppender.write_many")]
    #[pyo3(signature = (payloads, /))]
    fn write_many(&self, py: Python<'_>, payloads: &Bound<'_, PyAny>) -> PyResult<Option<u64>> {
        in_batches(
            payloads,
            |it| Message::take(it),
            |messages| {
                let messages = messages.iter().map(|message| Ok(message.bytes()));
                or_raise(py, detached(py, |may_wait| self.0.append_all(may_wait, messages)))
            },
        )
    }

    #[pyo3(name = "_write_column", signature = (offsets, data, *, count, start, wide))]
    fn write_column(
        &self,
        py: Python<'_>,
        offsets: &Bound<'_, PyAny>,
        data: &Bound<'_, PyAny>,
        count: usize,
        start: usize,
        wide: bool,
    ) -> PyResult<Option<u64>> {
        let (offsets, data) = (Borrowed::new(offsets)?, Borrowed::new(data)?);
        let column =
            Column { offsets: offsets.bytes(), data: data.bytes(), start, wide, text: false };
        let written = detached(py, |may_wait| {
            column.check(count)?;
            self.0.append_all(may_wait, (0..count).map(|number| column.element(number)))
        });
        or_raise(py, written)
    }

    #[doc = stub!("QuickAppender.producer")]
    #[getter]
    fn producer(&self) -> Option<String> {
        self.0.name().map(|name| name.to_string())
    }

    #[doc = stub!("QuickAppender.force")]
    fn force(&self, py: Python<'_>) -> PyResult<()> {
        or_raise(py, detached(py, |may_wait| self.0.sync(may_wait)))
    }

    #[doc = stub!("QuickAppender.close")]
    fn close(&self, py: Python<'_>) {
        detached(py, |may_wait| self.0.close(may_wait));
    }

    fn __repr__(slf: &Bound<'_, Self>) -> String {
        let kernel = &slf.get().0;
        let producer = kernel.name().map(|name| format!("producer={name}"));
        repr::raw_handle(slf, kernel.path(), producer, kernel.is_closed())
    }
}

path_and_closed!(QuickAppender, |it| it.0.path(), |it| it.0.is_closed());
context_manager!(QuickAppender);

/// Appends a small message; None if that needs a wait, or a copy so large that it should be made
/// detached.
#[inline]
pub fn try_append(appender: &Kernel, message: &[u8]) -> Option<PyResult<u64>> {
    let is_small = message.len() <= SMALL;
    let done = is_small.then(|| appender.try_append(message)).flatten();
    done.map(|index| index.map_err(to_py))
}

/// Appends a message.
#[inline]
pub fn append(py: Python<'_>, appender: &Kernel, message: &[u8]) -> PyResult<u64> {
    if let Some(appended) = try_append(appender, message) {
        return appended;
    }
    detached(py, |may_wait| appender.append(may_wait, message)).map_err(to_py)
}
