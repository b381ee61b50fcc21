use std::ffi::OsString;
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};
use quire_kernel::chronicle::read::tailer::Opening;
use quire_kernel::vanilla::VanillaTailer as Kernel;
use quire_kernel::vanilla::format::fields;

use super::excerpt::VanillaExcerpt;
use super::queue::VanillaQueue;
use crate::arguments::{integer, optional};
use crate::buffer::Buffer;
use crate::error::{WireError, told};
use crate::handles::column::PayloadColumns;
use crate::handles::tailer::on_missing_named;
use crate::handles::{direction, scan, spin};
use crate::repr;

#[doc = stub!("VanillaTailer")]
#[pyclass(module = "quire._native", frozen, subclass)]
pub struct VanillaTailer(Arc<Kernel>);

#[doc = stub!("VanillaPayloads")]
#[pyclass(module = "quire._native", frozen)]
pub struct VanillaPayloads(Arc<Kernel>);

#[pymethods]
impl VanillaPayloads {
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
    step: impl FnMut(usize, bool) -> quire_kernel::Result<usize>,
) -> PyResult<usize> {
    let start = tailer.mark();
    // An error that is dropped here comes again, as the first of the next call.
    scan::in_steps(py, count, step, |_| Ok(()), || tailer.return_to(&start))
}

#[pymethods]
impl VanillaTailer {
    #[new]
    #[pyo3(signature = (queue, name = None, *, on_missing = "warn", shared = false))]
    fn new(
        py: Python<'_>,
        queue: &Bound<'_, VanillaQueue>,
        name: Option<&str>,
        on_missing: &str,
        shared: bool,
    ) -> PyResult<Self> {
        let on_missing = on_missing_named(on_missing)?;
        let queue = Arc::clone(&queue.get().kernel);
        let tailer = py.detach(|| Kernel::open(queue, Opening { name, shared, on_missing }));
        Ok(Self(Arc::new(told(py, tailer)?)))
    }

    const fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    #[inline]
    fn __next__(&self, py: Python<'_>) -> PyResult<Option<VanillaExcerpt>> {
        self.read(py)
    }

    #[doc = stub!("VanillaTailer.read")]
    #[inline]
    fn read(&self, py: Python<'_>) -> PyResult<Option<VanillaExcerpt>> {
        let message = told(py, self.0.read())?;
        Ok(message.map(|message| VanillaExcerpt::of(message, self.0.queue())))
    }

    #[doc = stub!("VanillaTailer.claim")]
    #[pyo3(signature = (owner, /))]
    fn claim(&self, py: Python<'_>, owner: &Bound<'_, PyAny>) -> PyResult<Option<VanillaExcerpt>> {
        let owner: i32 = integer("owner", owner)?;
        let message = told(py, py.detach(|| self.0.claim(owner.cast_unsigned())))?;
        Ok(message.map(|message| VanillaExcerpt::claimed(message, self.0.queue())))
    }

    #[doc = stub!("VanillaTailer.payloads")]
    fn payloads(&self) -> VanillaPayloads {
        VanillaPayloads(Arc::clone(&self.0))
    }

    #[doc = stub!("VanillaTailer.read_bytes")]
    fn read_bytes<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let message = told(py, self.0.read())?;
        Ok(message.map(|message| PyBytes::new(py, message.bytes())))
    }

    #[doc = stub!("VanillaTailer.read_text")]
    fn read_text(&self, py: Python<'_>) -> PyResult<Option<String>> {
        let start = self.0.mark();
        let Some(message) = told(py, self.0.read())? else { return Ok(None) };
        let Some(text) = fields::text(message.bytes()) else {
            told(py, self.0.return_to(&start))?;
            return Err(WireError::new_err(format!("no text: index={:#x}", message.index)));
        };
        Ok(Some(text))
    }

    #[doc = stub!("VanillaTailer.read_many")]
    #[pyo3(signature = (count, /))]
    fn read_many<'py>(
        &self,
        py: Python<'py>,
        count: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyList>> {
        let count = integer("count", count)?;
        let mut found: Vec<Bound<'py, PyBytes>> = Vec::new();
        read_in_steps(py, &self.0, count, |asked, is_first| {
            self.0.read_many(asked, is_first, |_, bytes| {
                found.push(PyBytes::new(py, bytes));
                true
            })
        })?;
        PyList::new(py, found)
    }

    #[doc = stub!("VanillaTailer._read_columns")]
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
        let rows = read_in_steps(py, &self.0, count, |asked, is_first| {
            py.detach(|| {
                self.0.read_many(asked, is_first, |index, bytes| {
                    index < end && columns.add(index.cast_unsigned(), bytes)
                })
            })
        })?;
        let [indexes, offsets, data] = columns.buffers();
        Ok((rows, indexes, offsets, data))
    }

    #[doc = stub!("VanillaTailer._prepare")]
    #[pyo3(name = "_prepare")]
    fn prepare(&self, py: Python<'_>) -> PyResult<Option<bool>> {
        told(py, py.detach(|| self.0.has_next())).map(Some)
    }

    #[doc = stub!("VanillaTailer.spin")]
    #[pyo3(signature = (timeout_s = None))]
    fn spin(&self, py: Python<'_>, timeout_s: Option<&Bound<'_, PyAny>>) -> PyResult<bool> {
        spin::until_found(py, timeout_s, || self.0.has_next())
    }

    #[doc = stub!("VanillaTailer.direction")]
    #[getter]
    fn direction(&self, py: Python<'_>) -> PyResult<&'static str> {
        told(py, py.detach(|| self.0.direction())).map(direction::name)
    }

    #[setter]
    fn set_direction(&self, py: Python<'_>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let direction = direction::named(value)?;
        told(py, py.detach(|| self.0.set_direction(direction)))
    }

    #[doc = stub!("VanillaTailer.index")]
    #[getter]
    fn index(&self, py: Python<'_>) -> PyResult<i64> {
        told(py, py.detach(|| self.0.index()))
    }

    #[doc = stub!("VanillaTailer.last_read_index")]
    #[getter]
    fn last_read_index(&self, py: Python<'_>) -> PyResult<Option<i64>> {
        told(py, self.0.last_read_index())
    }

    #[doc = stub!("VanillaTailer.move_to_index")]
    #[pyo3(signature = (index, /))]
    fn move_to_index(&self, py: Python<'_>, index: &Bound<'_, PyAny>) -> PyResult<bool> {
        let index = integer("index", index)?;
        told(py, py.detach(|| self.0.move_to_index(index)))
    }

    #[doc = stub!("VanillaTailer.to_start")]
    fn to_start(&self, py: Python<'_>) -> PyResult<()> {
        told(py, py.detach(|| self.0.to_start()))
    }

    #[doc = stub!("VanillaTailer.to_end")]
    fn to_end(&self, py: Python<'_>) -> PyResult<()> {
        told(py, py.detach(|| self.0.to_end()))
    }

    #[doc = stub!("VanillaTailer.commit")]
    fn commit(&self, py: Python<'_>) -> PyResult<()> {
        told(py, py.detach(|| self.0.commit()))
    }

    #[doc = stub!("VanillaTailer.name")]
    #[getter]
    fn name(&self) -> Option<&str> {
        self.0.name()
    }

    #[doc = stub!("VanillaTailer.path")]
    #[getter]
    fn path(&self) -> OsString {
        self.0.queue().path().as_os_str().to_owned()
    }

    #[doc = stub!("VanillaTailer.closed")]
    #[getter]
    fn closed(&self) -> bool {
        self.0.is_closed()
    }

    #[doc = stub!("VanillaTailer.close")]
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        told(py, py.detach(|| self.0.close(true)))
    }

    fn __repr__(slf: &Bound<'_, Self>) -> String {
        let kernel = &slf.get().0;
        let mut parts = vec![repr::path(slf.py(), kernel.queue().path())];
        parts.extend(kernel.name().map(|name| format!("name={name}")));
        if kernel.is_closed() {
            parts.push("closed".to_owned());
        }
        repr::handle(&slf.get_type(), &parts)
    }
}

context_manager!(VanillaTailer, |it, py, raised| told(py, py.detach(|| it.0.close(!raised))));
