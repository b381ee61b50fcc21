//! Sources of documents to read: the files of a queue, or a Python handle that receives them from
//! another machine.

use std::path::Path;
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use pyo3::{PyTraverseError, PyVisit};
use quire_kernel::chronicle::read::tailer::Tailer as Kernel;

use super::scan;
use super::taken::Taken;
use crate::detached::detached;
use crate::document::{Document, Received};
use crate::error::{or_raise, to_py};
use crate::repr;
use crate::values::decode;
use crate::values::failure::Failure;

/// A source of documents.
pub enum Source {
    Files(Arc<Kernel>),
    Handle(Receiver),
}

/// A Python handle that receives messages, and the constant properties of its queue.
pub struct Receiver {
    handle: Py<PyAny>,
    path: String,
    source_id: i32,
    is_fieldless: bool,
}

/// An index, bytes, and whether they are metadata, as a Python handle has them.
type Row<'py> = (i64, Bound<'py, PyBytes>, bool);

impl Source {
    /// A handle with the methods of `quire.formats.remote.AnyRemoteTailer`.
    pub fn receiving(tailer: &Bound<'_, PyAny>) -> PyResult<Self> {
        Ok(Self::Handle(Receiver {
            path: tailer.getattr("path")?.extract()?,
            source_id: tailer.getattr("_source_id")?.extract()?,
            is_fieldless: tailer.getattr("_is_fieldless")?.extract()?,
            handle: tailer.clone().unbind(),
        }))
    }

    #[allow(clippy::needless_pass_by_value)] // as PyO3 calls it
    pub fn traverse(&self, visit: &PyVisit<'_>) -> std::result::Result<(), PyTraverseError> {
        match self {
            Self::Files(_) => Ok(()),
            Self::Handle(receiver) => visit.call(&receiver.handle),
        }
    }

    /// The next document, stepped over.
    #[inline]
    pub fn take(
        &self,
        py: Python<'_>,
        include_metadata: bool,
        taken: &mut Taken,
    ) -> PyResult<bool> {
        match self {
            Self::Files(tailer) => taken.next(py, tailer, include_metadata),
            Self::Handle(receiver) => {
                Ok(taken.hold(receiver.next(py, "_take_document", include_metadata)?))
            }
        }
    }

    /// The next document, which [`Source::step_over`] then steps over.
    pub fn open(&self, py: Python<'_>, include_metadata: bool) -> PyResult<Option<Document>> {
        match self {
            Self::Files(tailer) => {
                Ok(scan::open(py, tailer, include_metadata)?.map(Document::InPlace))
            }
            Self::Handle(receiver) => receiver.next(py, "_open_document", include_metadata),
        }
    }

    /// Steps over an open document, unless the tailer was moved meanwhile.
    pub fn step_over(&self, py: Python<'_>, document: &Document) -> PyResult<()> {
        match (self, document) {
            (Self::Files(tailer), Document::InPlace(open)) => {
                or_raise(py, detached(py, |may_wait| tailer.close_document(may_wait, open)))
            }
            (Self::Handle(receiver), document) => receiver.call(py, "_step_over", document),
            _ => Ok(()),
        }
    }

    /// Goes back to a document that was stepped over.
    pub fn return_to(&self, py: Python<'_>, document: &Document) -> PyResult<()> {
        match (self, document) {
            (Self::Files(tailer), Document::InPlace(open)) => {
                detached(py, |may_wait| tailer.return_to(may_wait, open.place())).map_err(to_py)
            }
            (Self::Handle(receiver), document) => receiver.call(py, "_return_to", document),
            _ => Ok(()),
        }
    }

    /// The index of the next message.
    pub fn index(&self, py: Python<'_>) -> PyResult<i64> {
        match self {
            Self::Files(tailer) => or_raise(py, detached(py, |may_wait| tailer.index(may_wait))),
            Self::Handle(receiver) => receiver.handle.getattr(py, "index")?.extract(py),
        }
    }

    /// The error of a value, with its message added.
    #[cold]
    pub fn placed(&self, failure: Failure, document: &Document) -> PyErr {
        match (self, document, failure) {
            (Self::Files(tailer), Document::InPlace(open), failure) => {
                decode::placed(failure, tailer, open.place())
            }
            (_, _, Failure::Wire(fault)) => {
                let index = format_args!("{:#x}", document.index());
                let fault = fault.with("index", index).with("queue", self.path().display());
                Failure::Wire(fault).into()
            }
            (_, _, Failure::Python(raised)) => raised,
        }
    }

    pub fn path(&self) -> &Path {
        match self {
            Self::Files(tailer) => tailer.queue().path(),
            Self::Handle(receiver) => Path::new(&receiver.path),
        }
    }

    /// The source id of the queue.
    #[inline]
    pub fn source_id(&self) -> i32 {
        match self {
            Self::Files(tailer) => tailer.queue().source_id(),
            Self::Handle(receiver) => receiver.source_id,
        }
    }

    /// Whether messages have field names.
    pub fn has_names(&self) -> bool {
        match self {
            Self::Files(tailer) => !tailer.queue().is_fieldless(),
            Self::Handle(receiver) => !receiver.is_fieldless,
        }
    }

    /// Whether the tailer was closed.
    pub fn is_closed(&self, py: Python<'_>) -> bool {
        match self {
            Self::Files(tailer) => tailer.is_closed(),
            Self::Handle(receiver) => receiver
                .handle
                .getattr(py, "closed")
                .and_then(|it| it.is_truthy(py))
                .unwrap_or(false),
        }
    }

    /// Whether the queue was opened by a process that this one was forked from.
    pub fn is_forked(&self) -> bool {
        match self {
            Self::Files(tailer) => tailer.queue().check_generation().is_err(),
            Self::Handle(_) => false,
        }
    }

    /// The tailer's part of a reader's repr.
    pub fn parts(&self, py: Python<'_>) -> Vec<String> {
        match self {
            Self::Files(tailer) => repr::tailer(py, tailer),
            Self::Handle(receiver) => vec![repr::path(py, Path::new(&receiver.path))],
        }
    }
}

impl Receiver {
    fn next(
        &self,
        py: Python<'_>,
        method: &str,
        include_metadata: bool,
    ) -> PyResult<Option<Document>> {
        let found = self.handle.call_method1(py, method, (include_metadata,))?;
        let row: Option<Row<'_>> = found.bind(py).extract()?;
        Ok(row.map(|(index, bytes, is_metadata)| {
            let bytes = Arc::new(bytes.as_bytes().to_vec());
            Document::Received(Received { index, bytes, is_metadata })
        }))
    }

    fn call(&self, py: Python<'_>, method: &str, document: &Document) -> PyResult<()> {
        let given = (document.index(), document.is_metadata());
        self.handle.call_method1(py, method, given).map(drop)
    }
}
