//! A document whose handlers are coroutines: awaiting it runs them in sequence, then calls the
//! handlers of the document's remaining events.

use std::sync::{Mutex, PoisonError};

use pyo3::exceptions::{PyGeneratorExit, PyRuntimeError, PyStopIteration};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use pyo3::{PyTraverseError, PyVisit};

use super::history::{Handling, Paused};
use crate::document::Document;

/// A document whose handlers have been called up to one that returned a coroutine.
pub struct Pending {
    pub open: Document,
    pub coroutine: Py<PyAny>,
    /// The methods of the coroutine's result, if the handler declared an interface.
    pub methods: Option<Py<PyDict>>,
    /// The offset of the first event not handled yet.
    pub offset: usize,
    /// The paused history; None for metadata.
    pub history: Option<Paused>,
}

/// The progress of a document's handlers.
pub enum Progress<'py> {
    /// All were called; true if there was one.
    Done(bool),
    /// One returned a coroutine; the events after it begin at the offset.
    Awaits { coroutine: Bound<'py, PyAny>, methods: Option<Py<PyDict>>, offset: usize },
}

/// The method reader of a document.
pub trait Reads: Send + Sync {
    fn traverse(&self, visit: &PyVisit<'_>) -> std::result::Result<(), PyTraverseError>;

    /// Continues with the events after that of a coroutine, which returned `result`.
    fn go_on<'py>(
        &self,
        py: Python<'py>,
        pending: &Pending,
        handling: Option<&Handling>,
        result: Bound<'py, PyAny>,
    ) -> PyResult<Progress<'py>>;

    /// Reports a failure to the error handler, or moves back to its document and returns it.
    fn failed(&self, py: Python<'_>, open: &Document, error: PyErr) -> PyResult<()>;

    /// Moves back to a document.
    fn return_to(&self, py: Python<'_>, open: &Document);

    /// Lets the next document be read, as no handler is being awaited any more.
    fn end_awaiting(&self);
}

#[doc = stub!("AwaitedDocument")]
#[pyclass(module = "quire._native", frozen)]
pub struct AwaitedDocument {
    reader: Box<dyn Reads>,
    /// None while a coroutine runs, and at the end.
    pending: Mutex<Option<Pending>>,
}

/// How to resume a coroutine.
enum Resume<'py> {
    Send(Bound<'py, PyAny>),
    Throw(PyErr),
}

#[pymethods]
impl AwaitedDocument {
    #[allow(clippy::needless_pass_by_value)] // as PyO3 calls it
    fn __traverse__(&self, visit: PyVisit<'_>) -> std::result::Result<(), PyTraverseError> {
        if let Ok(pending) = self.pending.try_lock()
            && let Some(pending) = &*pending
        {
            visit.call(&pending.coroutine)?;
            visit.call(&pending.methods)?;
        }
        self.reader.traverse(&visit)
    }

    const fn __await__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    const fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.step(py, Resume::Send(py.None().into_bound(py)))
    }

    #[doc = stub!("AwaitedDocument.send")]
    #[pyo3(signature = (value, /))]
    fn send<'py>(&self, value: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.step(value.py(), Resume::Send(value))
    }

    #[doc = stub!("AwaitedDocument.throw")]
    #[pyo3(signature = (kind, value = None, traceback = None, /))]
    #[allow(clippy::needless_pass_by_value)] // a Python signature
    fn throw<'py>(
        &self,
        kind: Bound<'py, PyAny>,
        value: Option<Bound<'py, PyAny>>,
        traceback: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        drop(traceback); // that of the exception
        self.step(kind.py(), Resume::Throw(PyErr::from_value(value.unwrap_or(kind))))
    }

    #[doc = stub!("AwaitedDocument.close")]
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        match self.step(py, Resume::Throw(PyGeneratorExit::new_err(()))) {
            Err(ended)
                if ended.is_instance_of::<PyGeneratorExit>(py)
                    || ended.is_instance_of::<PyStopIteration>(py)
                    || ended.is_instance_of::<PyRuntimeError>(py) =>
            {
                Ok(())
            }
            Err(error) => Err(error),
            Ok(_) => Err(PyRuntimeError::new_err("a coroutine handler ignored GeneratorExit")),
        }
    }
}

impl AwaitedDocument {
    pub fn new(reader: Box<dyn Reads>, pending: Pending) -> Self {
        Self { reader, pending: Mutex::new(Some(pending)) }
    }

    fn pending(&self) -> std::sync::MutexGuard<'_, Option<Pending>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs the coroutine until it waits, or the document to its end, in which case the error is
    /// `StopIteration`.
    fn step<'py>(&self, py: Python<'py>, mut how: Resume<'py>) -> PyResult<Bound<'py, PyAny>> {
        let Some(mut pending) = self.pending().take() else {
            return Err(PyRuntimeError::new_err("the handlers of this document are done"));
        };
        loop {
            let handling = pending.history.take().map(Paused::resume);
            let ended = match resume(pending.coroutine.bind(py), how) {
                Ok(awaited) => {
                    pending.history = handling.map(Handling::pause);
                    *self.pending() = Some(pending);
                    return Ok(awaited);
                }
                Err(ended) => ended,
            };
            let progress = result_of(py, ended)
                .and_then(|result| self.reader.go_on(py, &pending, handling.as_ref(), result));
            match progress {
                Ok(Progress::Awaits { coroutine, methods, offset }) => {
                    pending.history = handling.map(Handling::pause);
                    pending.coroutine = coroutine.unbind();
                    (pending.methods, pending.offset) = (methods, offset);
                    how = Resume::Send(py.None().into_bound(py));
                }
                Ok(Progress::Done(_)) => return Err(self.end(py, &pending, None)),
                Err(error) => {
                    drop(handling);
                    return Err(self.end(py, &pending, Some(error)));
                }
            }
        }
    }

    /// Lets the reader continue: with the next document, or with this one if its error remains.
    fn end(&self, py: Python<'_>, pending: &Pending, error: Option<PyErr>) -> PyErr {
        let reader = &self.reader;
        let dealt_with = error.map_or(Ok(()), |error| reader.failed(py, &pending.open, error));
        reader.end_awaiting();
        dealt_with.err().unwrap_or_else(|| PyStopIteration::new_err(()))
    }
}

impl Drop for AwaitedDocument {
    /// A document that was not awaited to the end is read again.
    fn drop(&mut self) {
        if let Some(pending) = self.pending().take() {
            Python::attach(|py| self.reader.return_to(py, &pending.open));
            self.reader.end_awaiting();
        }
    }
}

fn resume<'py>(coroutine: &Bound<'py, PyAny>, how: Resume<'py>) -> PyResult<Bound<'py, PyAny>> {
    let py = coroutine.py();
    match how {
        Resume::Send(value) => coroutine.call_method1(intern!(py, "send"), (value,)),
        Resume::Throw(error) => coroutine.call_method1(intern!(py, "throw"), (error,)),
    }
}

/// The result of a coroutine, or the error that it ended with.
fn result_of(py: Python<'_>, ended: PyErr) -> PyResult<Bound<'_, PyAny>> {
    if !ended.is_instance_of::<PyStopIteration>(py) {
        return Err(ended);
    }
    ended.value(py).getattr(intern!(py, "value"))
}
