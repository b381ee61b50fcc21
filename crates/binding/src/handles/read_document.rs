use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyMemoryView, PyString};
use pyo3::{PyTraverseError, PyVisit};
use quire_kernel::Error;
use quire_wire::reader::Reader;
use quire_wire::text::summary;
use quire_wire::{compress, history};

use super::documents::Source;
use crate::buffer::Buffer;
use crate::calls::history::MessageHistory;
use crate::document::Document;
use crate::error::{ClosedError, to_py};
use crate::repr;
use crate::values::text;
use crate::values::{codec, decode, failure};

use wire_in::{RawIn, WireIn};

pub mod wire_in;

#[doc = stub!("ReadDocument")]
#[pyclass(module = "quire._native", frozen)]
pub struct ReadDocument {
    source: Source,
    is_present: bool,
    is_metadata: bool,
    index: i64,
    state: Mutex<State>,
}

struct State {
    open: Option<Document>,
    /// The offset of the next value.
    offset: usize,
    rollback: bool,
}

impl ReadDocument {
    /// Opens the next document.
    pub fn open(py: Python<'_>, source: Source, include_metadata: bool) -> PyResult<Self> {
        let open = source.open(py, include_metadata)?;
        let index = match &open {
            Some(open) => open.index(),
            None => source.index(py)?,
        };
        Ok(Self {
            source,
            is_present: open.is_some(),
            is_metadata: open.as_ref().is_some_and(Document::is_metadata),
            index,
            state: Mutex::new(State { open, offset: 0, rollback: false }),
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Decodes the document by `decode`, which runs without the lock, as it may call Python code.
    fn decoded<T>(&self, decode: impl FnOnce(&[u8]) -> failure::Result<T>) -> PyResult<T> {
        let open = self.with(|open| Ok(open.clone()))?;
        decode(open.payload()).map_err(|failure| self.source.placed(failure, &open))
    }

    /// Continues after the last value; an error leaves the position unchanged.
    pub fn at_place<T>(
        &self,
        read: impl FnOnce(&mut Reader<'_>) -> failure::Result<T>,
    ) -> PyResult<T> {
        let offset = self.lock().offset;
        let (found, offset) = self.decoded(|bytes| {
            compress::begin_message();
            let mut cursor = Reader::new(bytes);
            cursor.take(offset);
            read(&mut cursor).map(|found| (found, cursor.offset()))
        })?;
        self.lock().offset = offset;
        Ok(found)
    }

    fn with<T>(&self, look: impl FnOnce(&Document) -> PyResult<T>) -> PyResult<T> {
        match &self.lock().open {
            Some(open) => look(open),
            None if self.is_present => Err(to_py(Error::closed("document", self.source.path()))),
            None => Err(ClosedError::new_err(format!(
                "there is no document: is_present=False path={} (nothing was there to read yet)",
                self.source.path().display()
            ))),
        }
    }

    fn finish(&self, py: Python<'_>, stay: bool) -> PyResult<()> {
        let (open, rollback) = {
            let mut state = self.lock();
            (state.open.take(), stay || state.rollback)
        };
        match open {
            Some(open) if !rollback => self.source.step_over(py, &open),
            _ => Ok(()),
        }
    }
}

#[pymethods]
impl ReadDocument {
    #[allow(clippy::needless_pass_by_value)] // as PyO3 calls it
    fn __traverse__(&self, visit: PyVisit<'_>) -> std::result::Result<(), PyTraverseError> {
        self.source.traverse(&visit)
    }

    #[doc = stub!("ReadDocument.is_present")]
    #[getter]
    const fn is_present(&self) -> bool {
        self.is_present
    }

    #[doc = stub!("ReadDocument.is_metadata")]
    #[getter]
    const fn is_metadata(&self) -> bool {
        self.is_metadata
    }

    #[doc = stub!("ReadDocument.index")]
    #[getter]
    const fn index(&self) -> i64 {
        self.index
    }

    #[doc = stub!("ReadDocument.bytes")]
    #[getter]
    fn bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyMemoryView>> {
        let buffer = self.with(|open| Ok(Buffer::document(open.clone())))?;
        PyMemoryView::from(Bound::new(py, buffer)?.as_any())
    }

    #[doc = stub!("ReadDocument.text")]
    fn text<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
        self.decoded(|bytes| text::of_message(py, bytes))
    }

    #[doc = stub!("ReadDocument.to_yaml")]
    fn to_yaml<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
        self.decoded(|bytes| text::any_yaml(py, bytes))
    }

    #[doc = stub!("ReadDocument.to_json")]
    fn to_json<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
        self.decoded(|bytes| text::any_json(py, bytes))
    }

    #[doc = stub!("ReadDocument.to_dict")]
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.decoded(|bytes| text::dict_of(py, bytes))
    }

    pub fn __repr__(slf: &Bound<'_, Self>) -> String {
        let this = slf.get();
        let mut parts = vec![repr::path(slf.py(), this.source.path())];
        parts.push(format!("index={:#x}", this.index));
        parts.extend(this.is_metadata.then(|| "metadata".to_owned()));
        let is_forked = this.source.is_forked();
        let state = this.state.try_lock();
        parts.push(match state.as_ref().map(|state| state.open.as_ref()) {
            _ if is_forked => "forked".to_owned(),
            _ if !this.is_present => "not present".to_owned(),
            Ok(Some(open)) => summary::of(open.payload()),
            Ok(None) => "closed".to_owned(),
            Err(_) => "busy".to_owned(),
        });
        repr::handle(&slf.get_type(), &parts)
    }

    #[doc = stub!("ReadDocument.map")]
    fn map<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.decoded(|bytes| decode::message_map(py, bytes))
    }

    #[doc = stub!("ReadDocument.history")]
    #[getter]
    fn history(&self) -> PyResult<Option<MessageHistory>> {
        let found = self.decoded(|bytes| Ok(history::of_message(bytes)?))?;
        Ok(found.map(Into::into))
    }

    #[doc = stub!("ReadDocument.message")]
    #[pyo3(signature = (cls = None, /))]
    fn message<'py>(
        &self,
        py: Python<'py>,
        cls: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let codec = cls.map(codec::of_class).transpose()?;
        let has_names = self.source.has_names();
        self.decoded(|bytes| match &codec {
            Some(codec) => codec.get().get_message(py, bytes, has_names),
            None => decode::named_message(py, bytes),
        })
    }

    #[doc = stub!("ReadDocument.wire")]
    #[getter]
    fn wire(slf: Py<Self>) -> WireIn {
        WireIn(slf)
    }

    #[doc = stub!("ReadDocument.raw")]
    #[getter]
    fn raw(slf: Py<Self>) -> RawIn {
        RawIn(slf)
    }

    #[doc = stub!("ReadDocument.rollback_on_close")]
    fn rollback_on_close(&self) {
        self.lock().rollback = true;
    }

    #[doc = stub!("ReadDocument.close")]
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.finish(py, false)
    }
}

context_manager!(ReadDocument, |it, py, raised| it.finish(py, raised));
