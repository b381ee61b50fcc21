use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyString;
use quire_kernel::Result;
use quire_kernel::chronicle::read::tailer::Opening;
use quire_kernel::os::detached::Detached;
use quire_kernel::vanilla::format::fields;
use quire_kernel::vanilla::{Mark, VanillaTailer as Kernel};

use super::excerpt::VanillaExcerpt;
use super::queue::VanillaQueue;
use crate::arguments::integer;
use crate::buffer;
use crate::detached::{attached, detached};
use crate::error::{WireError, or_raise};
use crate::handles::raw_tailer::{self, RawTailer};
use crate::handles::tailer::on_missing_named;
use crate::repr;

#[doc = stub!("VanillaTailer")]
#[pyclass(module = "quire._native", frozen, subclass)]
pub struct VanillaTailer(Arc<Kernel>);

/// Iterates over payloads alone; stops when there are no more yet.
#[pyclass(module = "quire._native", frozen)]
pub struct VanillaPayloads(Arc<Kernel>);

impl RawTailer for Kernel {
    type Index = i64;
    type Mark = Mark;

    fn read_while(
        &self,
        may_wait: &Detached,
        count: usize,
        is_first: bool,
        take: impl FnMut(i64, &[u8]) -> bool,
    ) -> Result<usize> {
        self.read_many(may_wait, count, is_first, take)
    }

    fn try_read_while(
        &self,
        count: usize,
        is_first: bool,
        take: impl FnMut(i64, &[u8]) -> bool,
    ) -> Option<Result<usize>> {
        self.try_read_many(count, is_first, take)
    }

    fn wait_until_free(&self, may_wait: &Detached) {
        self.wait_until_free(may_wait);
    }

    fn mark(&self, may_wait: &Detached) -> Result<Mark> {
        self.mark(may_wait)
    }

    fn return_to(&self, may_wait: &Detached, mark: &Mark) -> Result<()> {
        self.return_to(may_wait, mark)
    }
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
        let tailer = detached(py, |may_wait| {
            Kernel::open(queue, Opening { name, shared, on_missing }, may_wait)
        });
        Ok(Self(or_raise(py, tailer)?))
    }

    #[doc = stub!("VanillaTailer.read")]
    #[inline]
    fn read(&self, py: Python<'_>) -> PyResult<Option<VanillaExcerpt>> {
        let read = attached(py, |may_wait| self.0.wait_until_free(may_wait), || self.0.try_read());
        let message = or_raise(py, read)?;
        Ok(message.map(|message| VanillaExcerpt::of(message, self.0.queue())))
    }

    #[doc = stub!("VanillaTailer.claim")]
    #[pyo3(signature = (owner, /))]
    fn claim(&self, py: Python<'_>, owner: &Bound<'_, PyAny>) -> PyResult<Option<VanillaExcerpt>> {
        let owner: i32 = integer("owner", owner)?;
        let message =
            or_raise(py, detached(py, |may_wait| self.0.claim(may_wait, owner.cast_unsigned())))?;
        Ok(message.map(|message| VanillaExcerpt::claimed(message, self.0.queue())))
    }

    #[doc = stub!("VanillaTailer.read_text")]
    fn read_text<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyString>>> {
        read_text(py, &*self.0)
    }

    #[doc = stub!("VanillaTailer.commit")]
    fn commit(&self, py: Python<'_>) -> PyResult<()> {
        or_raise(py, detached(py, |may_wait| self.0.commit(may_wait)))
    }

    #[pyo3(name = "_watch_earlier", signature = (known, /))]
    fn watch_earlier(&self, py: Python<'_>, known: Vec<i64>) -> PyResult<()> {
        or_raise(py, detached(py, |may_wait| self.0.watch_earlier(may_wait, &known)))
    }

    #[doc = stub!("VanillaTailer.name")]
    #[getter]
    fn name(&self) -> Option<&str> {
        self.0.name()
    }

    #[doc = stub!("VanillaTailer.close")]
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        or_raise(py, detached(py, |may_wait| self.0.close(may_wait, true)))
    }

    fn __repr__(slf: &Bound<'_, Self>) -> String {
        let kernel = &slf.get().0;
        let name = kernel.name().map(|name| format!("name={name}"));
        repr::raw_handle(slf, kernel.queue().path(), name, kernel.is_closed())
    }
}

raw_tailer::methods!(VanillaTailer: i64, VanillaExcerpt, VanillaPayloads);
path_and_closed!(VanillaTailer, |it| it.0.queue().path(), |it| it.0.is_closed());
tailer_waits!(VanillaTailer);
tailer_moves!(VanillaTailer, i64);
tailer_direction!(VanillaTailer);
context_manager!(VanillaTailer, |it, py, raised| {
    or_raise(py, detached(py, |may_wait| it.0.close(may_wait, !raised)))
});

/// The next message, which must be a text; otherwise it stays the next one.
pub fn read_text<'py>(
    py: Python<'py>,
    tailer: &impl RawTailer<Index = i64>,
) -> PyResult<Option<Bound<'py, PyString>>> {
    raw_tailer::next(py, tailer, |index, bytes| match fields::text(bytes) {
        Some(text) => buffer::text(py, &text),
        None => Err(WireError::new_err(format!("no text: index={index:#x}"))),
    })
}
