use std::ffi::OsString;
use std::sync::Arc;

use pyo3::exceptions::{PyUnicodeDecodeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString};
use quire_kernel::quick_queue::read::{Message, Tailer as Kernel};

use super::excerpt::QuickExcerpt;
use super::queue::QuickQueue;
use crate::arguments::{integer, optional};
use crate::buffer::Buffer;
use crate::error::{to_py, told};
use crate::handles::column::PayloadColumns;
use crate::handles::{scan, spin};
use crate::repr;

#[doc = stub!("QuickTailer")]
#[pyclass(module = "quire._native", frozen, subclass)]
pub struct QuickTailer(Arc<Kernel>);

#[doc = stub!("QuickPayloads")]
#[pyclass(module = "quire._native", frozen)]
pub struct QuickPayloads(Arc<Kernel>);

/// The next message as `take` makes it.
#[inline]
fn read<R>(
    py: Python<'_>,
    tailer: &Kernel,
    take: impl FnOnce(&Message<'_>) -> R,
) -> PyResult<Option<R>> {
    told(py, tailer.read(take))
}

fn bytes<'py>(py: Python<'py>, message: &Message<'_>) -> Bound<'py, PyBytes> {
    PyBytes::new(py, message.bytes.as_slice())
}

/// Reads up to `count` messages and checks signals in between. An interrupt moves the tailer back.
fn read_in_steps(
    py: Python<'_>,
    tailer: &Kernel,
    count: usize,
    mut step: impl FnMut(usize) -> quire_kernel::Result<usize>,
) -> PyResult<usize> {
    let start = tailer.index().map_err(to_py)?;
    let step = |asked, _| step(asked);
    scan::in_steps(py, count, step, |error| tailer.defer(error), || tailer.return_to(start))
}

#[pymethods]
impl QuickPayloads {
    const fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    #[inline]
    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        read(py, &self.0, |message| bytes(py, message))
    }
}

#[pymethods]
impl QuickTailer {
    #[new]
    #[pyo3(signature = (queue, *, start = None, on_dead = "skip"))]
    fn new(
        py: Python<'_>,
        queue: &Bound<'_, QuickQueue>,
        start: Option<&Bound<'_, PyAny>>,
        on_dead: &str,
    ) -> PyResult<Self> {
        let raises = match on_dead {
            "skip" => false,
            "raise" => true,
            _ => {
                let what = format!("invalid on_dead={on_dead:?}: expected 'skip' or 'raise'");
                return Err(PyValueError::new_err(what));
            }
        };
        let start: Option<u64> = optional("start", start)?;
        let queue = &queue.get().kernel;
        let tailer = py.detach(|| {
            let tailer = queue.tailer(raises)?;
            start.map_or(Ok(false), |start| tailer.move_to_index(start))?;
            Ok(tailer)
        });
        told(py, tailer).map(Self)
    }

    const fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    #[inline]
    fn __next__(&self, py: Python<'_>) -> PyResult<Option<QuickExcerpt>> {
        self.read(py)
    }

    #[doc = stub!("QuickTailer.read")]
    #[inline]
    fn read(&self, py: Python<'_>) -> PyResult<Option<QuickExcerpt>> {
        read(py, &self.0, |message| QuickExcerpt::of(py, message))
    }

    #[doc = stub!("QuickTailer.payloads")]
    fn payloads(&self) -> QuickPayloads {
        QuickPayloads(Arc::clone(&self.0))
    }

    #[doc = stub!("QuickTailer.read_bytes")]
    fn read_bytes<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        read(py, &self.0, |message| bytes(py, message))
    }

    #[doc = stub!("QuickTailer.read_text")]
    fn read_text<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyString>>> {
        let Some((index, found)) =
            read(py, &self.0, |message| (message.index, bytes(py, message)))?
        else {
            return Ok(None);
        };
        match std::str::from_utf8(found.as_bytes()) {
            Ok(text) => Ok(Some(PyString::new(py, text))),
            Err(error) => {
                told(py, py.detach(|| self.0.move_to_index(index)))?;
                Err(PyUnicodeDecodeError::new_utf8(py, found.as_bytes(), error)?.into())
            }
        }
    }

    #[doc = stub!("QuickTailer.read_many")]
    #[pyo3(signature = (count, /))]
    fn read_many<'py>(
        &self,
        py: Python<'py>,
        count: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyList>> {
        let count = integer("count", count)?;
        let mut found: Vec<Bound<'py, PyBytes>> = Vec::new();
        read_in_steps(py, &self.0, count, |asked| {
            self.0.read_many(asked, |message| found.push(bytes(py, message)))
        })?;
        PyList::new(py, found)
    }

    #[pyo3(name = "_read_columns", signature = (count, /, *, max_bytes = None, end = u64::MAX))]
    fn read_columns(
        &self,
        py: Python<'_>,
        count: &Bound<'_, PyAny>,
        max_bytes: Option<&Bound<'_, PyAny>>,
        end: u64,
    ) -> PyResult<(usize, Buffer, Buffer, Buffer)> {
        let count = integer("count", count)?;
        let mut columns = PayloadColumns::new(optional("max_bytes", max_bytes)?);
        let rows = read_in_steps(py, &self.0, count, |asked| {
            py.detach(|| {
                self.0.read_while(asked, |message| {
                    message.index < end && columns.add(message.index, message.bytes.as_slice())
                })
            })
        })?;
        let [indexes, offsets, data] = columns.buffers();
        Ok((rows, indexes, offsets, data))
    }

    // Whether there is something to read.
    #[pyo3(name = "_prepare")]
    fn prepare(&self, py: Python<'_>) -> PyResult<Option<bool>> {
        told(py, self.0.is_ready()).map(Some)
    }

    #[doc = stub!("QuickTailer.index")]
    #[getter]
    fn index(&self, py: Python<'_>) -> PyResult<u64> {
        told(py, self.0.index())
    }

    #[doc = stub!("QuickTailer.spin")]
    #[pyo3(signature = (timeout_s = None))]
    fn spin(&self, py: Python<'_>, timeout_s: Option<&Bound<'_, PyAny>>) -> PyResult<bool> {
        spin::until_found(py, timeout_s, || self.0.is_ready())
    }

    #[doc = stub!("QuickTailer.move_to_index")]
    #[pyo3(signature = (index, /))]
    fn move_to_index(&self, py: Python<'_>, index: &Bound<'_, PyAny>) -> PyResult<bool> {
        let index = integer("index", index)?;
        told(py, py.detach(|| self.0.move_to_index(index)))
    }

    #[doc = stub!("QuickTailer.to_start")]
    fn to_start(&self, py: Python<'_>) -> PyResult<()> {
        told(py, py.detach(|| self.0.to_start()))
    }

    #[doc = stub!("QuickTailer.to_end")]
    fn to_end(&self, py: Python<'_>) -> PyResult<()> {
        told(py, py.detach(|| self.0.to_end()))
    }

    #[doc = stub!("QuickTailer.path")]
    #[getter]
    fn path(&self) -> OsString {
        self.0.queue().path().as_os_str().to_owned()
    }

    #[doc = stub!("QuickTailer.closed")]
    #[getter]
    fn closed(&self) -> bool {
        self.0.is_closed()
    }

    #[doc = stub!("QuickTailer.close")]
    fn close(&self, py: Python<'_>) {
        py.detach(|| self.0.close());
    }

    fn __repr__(slf: &Bound<'_, Self>) -> String {
        let kernel = &slf.get().0;
        let mut parts = vec![repr::path(slf.py(), kernel.queue().path())];
        if let Ok(index) = kernel.index() {
            parts.push(format!("index={index:#x}"));
        }
        if kernel.is_closed() {
            parts.push("closed".to_owned());
        }
        repr::handle(&slf.get_type(), &parts)
    }
}

context_manager!(QuickTailer);
