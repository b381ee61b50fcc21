use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyString;
use quire_kernel::Result;
use quire_kernel::os::detached::Detached;
use quire_kernel::vanilla::indexed::IndexedTailer as Kernel;

use super::excerpt::VanillaExcerpt;
use super::indexed_queue::IndexedQueue;
use super::tailer::read_text;
use crate::detached::attached;
use crate::error::or_raise;
use crate::handles::raw_tailer::{self, RawTailer};
use crate::repr;

#[doc = stub!("IndexedTailer")]
#[pyclass(module = "quire._native", frozen, subclass)]
pub struct IndexedTailer(Arc<Kernel>);

/// Iterates over payloads alone; stops when there are no more yet.
#[pyclass(module = "quire._native", frozen)]
pub struct IndexedPayloads(Arc<Kernel>);

impl RawTailer for Kernel {
    type Index = i64;
    type Mark = i64;

    fn read_while(
        &self,
        may_wait: &Detached,
        count: usize,
        _is_first: bool,
        take: impl FnMut(i64, &[u8]) -> bool,
    ) -> Result<usize> {
        self.read_many(may_wait, count, take)
    }

    fn try_read_while(
        &self,
        count: usize,
        _is_first: bool,
        take: impl FnMut(i64, &[u8]) -> bool,
    ) -> Option<Result<usize>> {
        self.try_read_many(count, take)
    }

    fn wait_until_free(&self, may_wait: &Detached) {
        self.wait_until_free(may_wait);
    }

    fn mark(&self, may_wait: &Detached) -> Result<i64> {
        self.index(may_wait)
    }

    fn return_to(&self, may_wait: &Detached, mark: &i64) -> Result<()> {
        self.return_to(may_wait, *mark)
    }
}

#[pymethods]
impl IndexedTailer {
    #[new]
    #[pyo3(signature = (queue))]
    fn new(py: Python<'_>, queue: &Bound<'_, IndexedQueue>) -> PyResult<Self> {
        let queue = Arc::clone(&queue.get().kernel);
        let tailer = py.detach(|| Kernel::open(queue));
        Ok(Self(Arc::new(or_raise(py, tailer)?)))
    }

    #[doc = stub!("IndexedTailer.read")]
    #[inline]
    fn read(&self, py: Python<'_>) -> PyResult<Option<VanillaExcerpt>> {
        let read = attached(py, |may_wait| self.0.wait_until_free(may_wait), || self.0.try_read());
        Ok(or_raise(py, read)?.map(VanillaExcerpt::indexed))
    }

    #[doc = stub!("IndexedTailer.read_text")]
    fn read_text<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyString>>> {
        read_text(py, &*self.0)
    }

    #[doc = stub!("IndexedTailer.close")]
    fn close(&self, _py: Python<'_>) {
        self.0.close();
    }

    fn __repr__(slf: &Bound<'_, Self>) -> String {
        let kernel = &slf.get().0;
        repr::raw_handle(slf, kernel.queue().path(), None, kernel.is_closed())
    }
}

raw_tailer::methods!(IndexedTailer: i64, VanillaExcerpt, IndexedPayloads);
path_and_closed!(IndexedTailer, |it| it.0.queue().path(), |it| it.0.is_closed());
tailer_waits!(IndexedTailer);
tailer_moves!(IndexedTailer, i64);
tailer_direction!(IndexedTailer);
context_manager!(IndexedTailer);
