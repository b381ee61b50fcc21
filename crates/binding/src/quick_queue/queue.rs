use std::path::PathBuf;
use std::sync::Arc;

use pyo3::prelude::*;
use quire_kernel::quick_queue::explain;
use quire_kernel::quick_queue::format::address::PageSize;
use quire_kernel::quick_queue::protocol::directory::Form;
use quire_kernel::quick_queue::queue::{Options, QuickQueue as Kernel};

use crate::detached::detached;
use crate::error::or_raise;
use crate::maintenance::{ExplainedRow, Rows, SnapshotRow, explained_row, rows, snapshot_row};
use crate::repr;

#[doc = stub!("QuickQueue")]
#[pyclass(module = "quire._native", frozen, subclass)]
pub struct QuickQueue {
    pub kernel: Arc<Kernel>,
}

#[pymethods]
impl QuickQueue {
    #[new]
    #[pyo3(signature = (
        path, *, read_only = false, create = true, page_bytes = None, file_mode = 0o600,
        allow_network = false
    ))]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        read_only: bool,
        create: bool,
        page_bytes: Option<u64>,
        file_mode: u32,
        allow_network: bool,
    ) -> PyResult<Self> {
        let options = Options { read_only, create, page_bytes, file_mode, allow_network };
        let opened = py.detach(|| Kernel::open(&path, options));
        Ok(Self { kernel: or_raise(py, opened)? })
    }

    #[doc = stub!("QuickQueue.read_only")]
    #[getter]
    fn read_only(&self) -> bool {
        self.kernel.is_read_only()
    }

    #[doc = stub!("QuickQueue.page_bytes")]
    #[getter]
    fn page_bytes(&self, py: Python<'_>) -> PyResult<u64> {
        self.ask(py, |queue| queue.page_size().map(PageSize::bytes))
    }

    #[doc = stub!("QuickQueue.form")]
    #[getter]
    fn form(&self, py: Python<'_>) -> PyResult<Option<&'static str>> {
        let layout = self.ask(py, Kernel::layout)?;
        Ok(layout.map(|layout| match layout.form {
            Form::Single => "single",
            Form::Shared => "shared",
        }))
    }

    #[pyo3(name = "_explain", signature = (index, /))]
    fn explain(&self, py: Python<'_>, index: u64) -> PyResult<Option<ExplainedRow>> {
        self.ask(py, |queue| explain::explain(queue, index)).map(explained_row)
    }

    #[doc = stub!("QuickQueue.end_index")]
    #[getter]
    fn end_index(&self, py: Python<'_>) -> PyResult<u64> {
        self.ask(py, Kernel::end)
    }

    #[doc = stub!("QuickQueue.force")]
    fn force(&self, py: Python<'_>) -> PyResult<()> {
        or_raise(py, detached(py, |may_wait| self.kernel.sync(may_wait)))
    }

    #[pyo3(name = "_verify")]
    fn verify(&self, py: Python<'_>) -> PyResult<Rows> {
        self.ask(py, Kernel::verify).map(rows)
    }

    #[pyo3(name = "_snapshot")]
    fn snapshot(&self, py: Python<'_>) -> PyResult<SnapshotRow> {
        self.ask(py, Kernel::snapshot).map(snapshot_row)
    }

    #[doc = stub!("QuickQueue.close")]
    fn close(&self, py: Python<'_>) {
        detached(py, |may_wait| self.kernel.close(may_wait));
    }

    fn __repr__(slf: &Bound<'_, Self>) -> String {
        let kernel = &slf.get().kernel;
        let read_only = kernel.is_read_only().then(|| "read_only".to_owned());
        repr::raw_handle(slf, kernel.path(), read_only, kernel.is_closed())
    }
}

path_and_closed!(QuickQueue, |it| it.kernel.path(), |it| it.kernel.is_closed());

questions! {
    impl QuickQueue {
        fn first_index() -> Option<u64>;
        fn last_index() -> Option<u64>;
    }
}

context_manager!(QuickQueue);
