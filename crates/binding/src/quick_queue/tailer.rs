use std::sync::Arc;

use pyo3::exceptions::{PyUnicodeDecodeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyString;
use quire_kernel::os::detached::Detached;
use quire_kernel::quick_queue::read::Tailer as Kernel;
use quire_kernel::{Error, Result};

use super::excerpt::QuickExcerpt;
use super::queue::QuickQueue;
use crate::arguments::optional;
use crate::buffer;
use crate::detached::{attached, detached};
use crate::error::or_raise;
use crate::handles::raw_tailer::{self, RawTailer};
use crate::repr;

#[doc = stub!("QuickTailer")]
#[pyclass(module = "quire._native", frozen, subclass)]
pub struct QuickTailer(Arc<Kernel>);

/// Iterates over payloads alone; stops when there are no more yet.
#[pyclass(module = "quire._native", frozen)]
pub struct QuickPayloads(Arc<Kernel>);

impl RawTailer for Kernel {
    type Index = u64;
    type Mark = u64;

    fn read_while(
        &self,
        may_wait: &Detached,
        count: usize,
        _is_first: bool,
        mut take: impl FnMut(u64, &[u8]) -> bool,
    ) -> Result<usize> {
        self.read_many(may_wait, count, |message| take(message.index, message.bytes.as_slice()))
    }

    fn try_read_while(
        &self,
        count: usize,
        _is_first: bool,
        mut take: impl FnMut(u64, &[u8]) -> bool,
    ) -> Option<Result<usize>> {
        self.try_read_many(count, |message| take(message.index, message.bytes.as_slice()))
    }

    fn wait_until_free(&self, may_wait: &Detached) {
        self.wait_until_free(may_wait);
    }

    fn mark(&self, may_wait: &Detached) -> Result<u64> {
        self.index(may_wait)
    }

    fn return_to(&self, may_wait: &Detached, mark: &u64) -> Result<()> {
        self.return_to(may_wait, *mark)
    }

    fn defer(&self, may_wait: &Detached, error: Error) -> Result<()> {
        self.defer(may_wait, error)
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
        let tailer = detached(py, |may_wait| {
            let tailer = queue.tailer(raises)?;
            start.map_or(Ok(false), |start| tailer.move_to_index(may_wait, start))?;
            Ok(tailer)
        });
        or_raise(py, tailer).map(Self)
    }

    #[doc = stub!("QuickTailer.read")]
    #[inline]
    fn read(&self, py: Python<'_>) -> PyResult<Option<QuickExcerpt>> {
        let mut made = None;
        let read = attached(
            py,
            |may_wait| self.0.wait_until_free(may_wait),
            || {
                self.0
                    .try_read_many(1, |message| made.insert(QuickExcerpt::of(py, message)).is_ok())
            },
        );
        or_raise(py, read.and_then(|_| made.transpose()))
    }

    #[doc = stub!("QuickTailer.read_text")]
    fn read_text<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyString>>> {
        raw_tailer::next(py, &*self.0, |_, bytes| match std::str::from_utf8(bytes) {
            Ok(text) => buffer::text(py, text),
            Err(error) => Err(PyUnicodeDecodeError::new_utf8(py, bytes, error)?.into()),
        })
    }

    #[doc = stub!("QuickTailer.close")]
    fn close(&self, py: Python<'_>) {
        detached(py, |may_wait| self.0.close(may_wait));
    }

    fn __repr__(slf: &Bound<'_, Self>) -> String {
        let kernel = &slf.get().0;
        let index = kernel.try_index().map(|index| format!("index={index:#x}"));
        repr::raw_handle(slf, kernel.queue().path(), index, kernel.is_closed())
    }
}

raw_tailer::methods!(QuickTailer: u64, QuickExcerpt, QuickPayloads);
path_and_closed!(QuickTailer, |it| it.0.queue().path(), |it| it.0.is_closed());
tailer_waits!(QuickTailer);
tailer_moves!(QuickTailer, u64);
context_manager!(QuickTailer);
