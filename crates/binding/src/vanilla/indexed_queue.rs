use std::path::PathBuf;
use std::sync::Arc;

use pyo3::prelude::*;
use quire_kernel::vanilla::indexed::IndexedQueue as Kernel;

use crate::arguments::integer;
use crate::error::or_raise;
use crate::repr;

/// Signals are checked after this many counted entries.
const COUNTED: u64 = 1 << 20;

#[doc = stub!("IndexedQueue")]
#[pyclass(module = "quire._native", frozen, subclass)]
pub struct IndexedQueue {
    pub kernel: Arc<Kernel>,
}

#[pymethods]
impl IndexedQueue {
    #[new]
    #[pyo3(signature = (path, *, read_only = true, create = false))]
    fn new(py: Python<'_>, path: PathBuf, read_only: bool, create: bool) -> PyResult<Self> {
        let _ = (read_only, create); // as of every queue: it is never written
        let opened = py.detach(|| Kernel::open(&path));
        Ok(Self { kernel: Arc::new(or_raise(py, opened)?) })
    }

    #[doc = stub!("IndexedQueue.read_only")]
    #[getter]
    #[allow(clippy::unused_self)] // PyO3 gives a getter the object
    const fn read_only(&self) -> bool {
        true
    }

    #[doc = stub!("IndexedQueue.count_excerpts")]
    #[pyo3(signature = (from_index, to_index))]
    fn count_excerpts(
        &self,
        py: Python<'_>,
        from_index: &Bound<'_, PyAny>,
        to_index: &Bound<'_, PyAny>,
    ) -> PyResult<u64> {
        let (from, to): (u64, u64) =
            (integer("from_index", from_index)?, integer("to_index", to_index)?);
        let (mut from, to) = (from.min(to), from.max(to));
        let to = to.min(self.ask(py, Kernel::entry_count)?);
        let mut count = 0;
        while from < to {
            let step = (to - from).min(COUNTED);
            count += self.ask(py, |kernel| kernel.count_between(from, from + step))?;
            from += step;
            py.check_signals()?;
        }
        Ok(count)
    }

    #[doc = stub!("IndexedQueue.close")]
    fn close(&self, py: Python<'_>) {
        py.detach(|| self.kernel.close());
    }

    fn __repr__(slf: &Bound<'_, Self>) -> String {
        let kernel = &slf.get().kernel;
        repr::raw_handle(slf, kernel.path(), None, kernel.is_closed())
    }
}

path_and_closed!(IndexedQueue, |it| it.kernel.path(), |it| it.kernel.is_closed());

questions! {
    impl IndexedQueue {
        fn first_index() -> Option<i64>;
        fn last_index() -> Option<i64>;
        fn entry_count() -> u64;
    }
}

context_manager!(IndexedQueue);
