use std::ffi::OsString;
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};
use quire_kernel::vanilla::Message;
use quire_kernel::vanilla::format::fields;
use quire_kernel::vanilla::indexed::IndexedTailer as Kernel;

use super::excerpt::VanillaExcerpt;
use super::indexed_queue::IndexedQueue;
use crate::arguments::{integer, optional};
use crate::buffer::Buffer;
use crate::error::{WireError, told};
use crate::handles::column::PayloadColumns;
use crate::handles::{direction, scan, spin};
use crate::repr;

#[doc = stub!("IndexedTailer")]
#[pyclass(module = "quire._native", frozen, subclass)]
pub struct IndexedTailer(Arc<Kernel>);

#[doc = stub!("IndexedPayloads")]
#[pyclass(module = "quire._native", frozen)]
pub struct IndexedPayloads(Arc<Kernel>);

#[pymethods]
impl IndexedPayloads {
    const fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    #[inline]
    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let message = told(py, self.0.read())?;
        Ok(message.map(|message| PyBytes::new(py, message.bytes())))
    }
}

/// Reads up to `count` messages and checks signals in between. An interrupt moves the tailer back.
fn read_in_steps(
    py: Python<'_>,
    tailer: &Kernel,
    count: usize,
    mut step: impl FnMut(usize) -> quire_kernel::Result<usize>,
) -> PyResult<usize> {
    let start = told(py, tailer.index())?;
    // An error that is dropped here comes again, as the first of the next call.
    scan::in_steps(py, count, |asked, _| step(asked), |_| Ok(()), || tailer.return_to(start))
}

#[pymethods]
impl IndexedTailer {
    #[new]
    #[pyo3(signature = (queue))]
    fn new(py: Python<'_>, queue: &Bound<'_, IndexedQueue>) -> PyResult<Self> {
        let queue = Arc::clone(&queue.get().kernel);
        let tailer = py.detach(|| Kernel::open(queue));
        Ok(Self(Arc::new(told(py, tailer)?)))
    }

    const fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    #[inline]
    fn __next__(&self, py: Python<'_>) -> PyResult<Option<VanillaExcerpt>> {
        self.read(py)
    }

    #[doc = stub!("IndexedTailer.read")]
    #[inline]
    fn read(&self, py: Python<'_>) -> PyResult<Option<VanillaExcerpt>> {
        Ok(told(py, self.0.read())?.map(VanillaExcerpt::indexed))
    }

    #[doc = stub!("IndexedTailer.payloads")]
    fn payloads(&self) -> IndexedPayloads {
        IndexedPayloads(Arc::clone(&self.0))
    }

    #[doc = stub!("IndexedTailer.read_bytes")]
    fn read_bytes<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let message = told(py, self.0.read())?;
        Ok(message.map(|message| PyBytes::new(py, message.bytes())))
    }

    #[doc = stub!("IndexedTailer.read_text")]
    fn read_text(&self, py: Python<'_>) -> PyResult<Option<String>> {
        let start = told(py, self.0.index())?;
        let Some(message) = told(py, self.0.read())? else { return Ok(None) };
        let Some(text) = fields::text(message.bytes()) else {
            told(py, self.0.return_to(start))?;
            return Err(WireError::new_err(format!("no text: index={:#x}", message.index)));
        };
        Ok(Some(text))
    }

    #[doc = stub!("IndexedTailer.read_many")]
    #[pyo3(signature = (count, /))]
    fn read_many<'py>(
        &self,
        py: Python<'py>,
        count: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyList>> {
        let count = integer("count", count)?;
        let mut found: Vec<Bound<'py, PyBytes>> = Vec::new();
        read_in_steps(py, &self.0, count, |asked| {
            self.0.read_many(asked, |message: &Message| {
                found.push(PyBytes::new(py, message.bytes()));
                true
            })
        })?;
        PyList::new(py, found)
    }

    #[doc = stub!("IndexedTailer._read_columns")]
    #[pyo3(name = "_read_columns", signature = (count, /, *, max_bytes = None, end = i64::MAX))]
    fn read_columns(
        &self,
        py: Python<'_>,
        count: &Bound<'_, PyAny>,
        max_bytes: Option<&Bound<'_, PyAny>>,
        end: i64,
    ) -> PyResult<(usize, Buffer, Buffer, Buffer)> {
        let count = integer("count", count)?;
        let mut columns = PayloadColumns::new(optional("max_bytes", max_bytes)?);
        let rows = read_in_steps(py, &self.0, count, |asked| {
            py.detach(|| {
                self.0.read_many(asked, |message: &Message| {
                    message.index < end
                        && columns.add(message.index.cast_unsigned(), message.bytes())
                })
            })
        })?;
        let [indexes, offsets, data] = columns.buffers();
        Ok((rows, indexes, offsets, data))
    }

    #[doc = stub!("IndexedTailer._prepare")]
    #[pyo3(name = "_prepare")]
    fn prepare(&self, py: Python<'_>) -> PyResult<Option<bool>> {
        told(py, py.detach(|| self.0.has_next())).map(Some)
    }

    #[doc = stub!("IndexedTailer.spin")]
    #[pyo3(signature = (timeout_s = None))]
    fn spin(&self, py: Python<'_>, timeout_s: Option<&Bound<'_, PyAny>>) -> PyResult<bool> {
        spin::until_found(py, timeout_s, || self.0.has_next())
    }

    #[doc = stub!("IndexedTailer.index")]
    #[getter]
    fn index(&self, py: Python<'_>) -> PyResult<i64> {
        told(py, py.detach(|| self.0.index()))
    }

    #[doc = stub!("IndexedTailer.last_read_index")]
    #[getter]
    fn last_read_index(&self, py: Python<'_>) -> PyResult<Option<i64>> {
        told(py, self.0.last_read_index())
    }

    #[doc = stub!("IndexedTailer.direction")]
    #[getter]
    fn direction(&self, py: Python<'_>) -> PyResult<&'static str> {
        told(py, py.detach(|| self.0.direction())).map(direction::name)
    }

    #[setter]
    fn set_direction(&self, py: Python<'_>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let direction = direction::named(value)?;
        told(py, py.detach(|| self.0.set_direction(direction)))
    }

    #[doc = stub!("IndexedTailer.move_to_index")]
    #[pyo3(signature = (index, /))]
    fn move_to_index(&self, py: Python<'_>, index: &Bound<'_, PyAny>) -> PyResult<bool> {
        let index = integer("index", index)?;
        told(py, py.detach(|| self.0.move_to_index(index)))
    }

    #[doc = stub!("IndexedTailer.to_start")]
    fn to_start(&self, py: Python<'_>) -> PyResult<()> {
        told(py, py.detach(|| self.0.return_to(0)))
    }

    #[doc = stub!("IndexedTailer.to_end")]
    fn to_end(&self, py: Python<'_>) -> PyResult<()> {
        told(py, py.detach(|| self.0.to_end()))
    }

    #[doc = stub!("IndexedTailer.path")]
    #[getter]
    fn path(&self) -> OsString {
        self.0.queue().path().as_os_str().to_owned()
    }

    #[doc = stub!("IndexedTailer.closed")]
    #[getter]
    fn closed(&self) -> bool {
        self.0.is_closed()
    }

    #[doc = stub!("IndexedTailer.close")]
    fn close(&self, py: Python<'_>) {
        py.detach(|| self.0.close());
    }

    fn __repr__(slf: &Bound<'_, Self>) -> String {
        let kernel = &slf.get().0;
        let mut parts = vec![repr::path(slf.py(), kernel.queue().path())];
        if kernel.is_closed() {
            parts.push("closed".to_owned());
        }
        repr::handle(&slf.get_type(), &parts)
    }
}

context_manager!(IndexedTailer);
