//! Method calls as messages: each call becomes one document, built in a buffer and appended at
//! once.

use quire_wire::out::Out;
use std::cell::Cell;

use pyo3::exceptions::{PyAttributeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};
use pyo3::{PyTraverseError, PyVisit};
use quire_kernel::chronicle::protocol::publish::Payload;

use super::history;
use super::method::Method;
use crate::error::to_py;
use crate::handles::appender::Appender;
use crate::handles::payload::in_wire_of;
use crate::handles::sender::Sender;
use crate::handles::write_document::WriteDocument;
use crate::values::failure::{self, Failure};

/// A buffer larger than this is not reused.
const KEPT_BYTES: usize = 1 << 16;

thread_local! {
    /// Taken while a call is encoded: an argument's Python code may call another method.
    static BUFFER: Cell<Out> = const { Cell::new(Out::new()) };
}

#[doc = stub!("MethodWriter")]
#[pyclass(module = "quire._native", frozen)]
pub struct MethodWriter {
    target: Target,
    metadata: bool,
    history: History,
    /// The open document that receives all calls.
    document: Option<Py<WriteDocument>>,
    /// Called with the name and first argument; decides whether the call is written.
    filter: Option<Py<PyAny>>,
}

/// Where the documents go.
enum Target {
    Queue(Py<Appender>),
    Sender(Sender),
}

/// Whether and how the history precedes each call.
#[derive(Clone, Copy, PartialEq, Eq)]
enum History {
    None,
    Packed,
    Fields,
}

#[pymethods]
impl MethodWriter {
    #[allow(clippy::needless_pass_by_value)] // as PyO3 calls it
    fn __traverse__(&self, visit: PyVisit<'_>) -> std::result::Result<(), PyTraverseError> {
        match &self.target {
            Target::Queue(appender) => visit.call(appender)?,
            Target::Sender(sender) => sender.traverse(&visit)?,
        }
        visit.call(&self.document)?;
        visit.call(&self.filter)
    }

    #[new]
    #[pyo3(signature = (
        appender, *, record_history, history_form, metadata = false, document = None, filter = None
    ))]
    fn new(
        appender: &Bound<'_, PyAny>,
        record_history: Option<bool>,
        history_form: &str,
        metadata: bool,
        document: Option<Py<WriteDocument>>,
        filter: Option<Py<PyAny>>,
    ) -> PyResult<Self> {
        let history = match history_form {
            "packed" => History::Packed,
            "fields" => History::Fields,
            other => {
                return Err(PyValueError::new_err(format!(
                    "no such form of history: history_form={other} known=packed, fields"
                )));
            }
        };
        let target = match appender.cast::<Appender>() {
            Ok(appender) => Target::Queue(appender.clone().unbind()),
            Err(_) => Target::Sender(Sender::of(appender)?),
        };
        let has_source_id = target.source_id() != 0;
        let history = if record_history.unwrap_or(has_source_id) { history } else { History::None };
        Ok(Self { target, metadata, history, document, filter })
    }

    #[doc = stub!("MethodWriter.method")]
    fn method<'py>(slf: &Bound<'py, Self>, method: Py<Method>) -> PyResult<Bound<'py, PyAny>> {
        let writer = slf.clone().unbind();
        let call = Call { writer, method, before: Vec::new(), is_dropped: false };
        Bound::new(slf.py(), call)?.getattr(intern!(slf.py(), "call"))
    }
}

#[doc = stub!("Call")]
#[pyclass(module = "quire._native", frozen)]
pub struct Call {
    writer: Py<MethodWriter>,
    method: Py<Method>,
    /// The events of the previous calls of a chain.
    before: Vec<u8>,
    /// Whether the filter rejected one of them.
    is_dropped: bool,
}

/// An argument that may be missing; None is a value.
enum First<'a, 'py> {
    Missing,
    Given(Borrowed<'a, 'py, PyAny>),
}

impl<'a, 'py> FromPyObject<'a, 'py> for First<'a, 'py> {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        Ok(Self::Given(object))
    }
}

#[pymethods]
impl Call {
    #[allow(clippy::needless_pass_by_value)] // as PyO3 calls it
    fn __traverse__(&self, visit: PyVisit<'_>) -> std::result::Result<(), PyTraverseError> {
        visit.call(&self.writer)?;
        visit.call(&self.method)
    }

    // A writer's attributes are this method of such objects: calling it takes no tuple of
    // arguments.
    #[doc = stub!("Call.call")]
    #[pyo3(signature = (first = First::Missing, /, *rest, **named))]
    fn call(
        &self,
        py: Python<'_>,
        first: First<'_, '_>,
        rest: &Bound<'_, PyTuple>,
        named: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Option<Chain>> {
        let (method, writer) = (self.method.get(), self.writer.get());
        if let First::Given(argument) = first
            && method.takes_one()
            && method.next().is_none()
            && named.is_none()
            && rest.is_empty()
            && writer.filter.is_none()
        {
            writer.write(py, &self.before, |out| method.put_one(out, &argument))?;
            return Ok(None);
        }
        let mut given = Vec::with_capacity(1 + rest.len());
        if let First::Given(argument) = first {
            given.push(argument.to_owned());
        }
        given.extend(rest.iter());
        self.call_with(py, &method.bind(py, given, named)?)
    }

    fn __repr__(&self) -> String {
        format!("Call({})", self.method.get().name())
    }
}

impl Call {
    fn call_with(&self, py: Python<'_>, arguments: &[Bound<'_, PyAny>]) -> PyResult<Option<Chain>> {
        let (method, writer) = (self.method.get(), self.writer.get());
        let is_kept = !self.is_dropped && writer.keeps(py, method.name(), arguments.first())?;
        let Some(next) = method.next() else {
            if is_kept {
                writer.write(py, &self.before, |out| method.put(out, arguments))?;
            }
            return Ok(None);
        };
        let mut before = Out::new();
        before.extend_from_slice(&self.before);
        method.put(&mut before, arguments)?;
        let before = before.finish().map_err(Failure::from)?;
        let (writer, methods) = (self.writer.clone_ref(py), next.clone_ref(py));
        Ok(Some(Chain { writer, methods, before, is_dropped: !is_kept }))
    }
}

impl MethodWriter {
    fn keeps(
        &self,
        py: Python<'_>,
        name: &str,
        first: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<bool> {
        match &self.filter {
            None => Ok(true),
            Some(filter) => filter.bind(py).call1((name, first))?.is_truthy(),
        }
    }

    /// Appends one document: the history, the previous calls, and what `put` appends.
    #[inline]
    fn write(
        &self,
        py: Python<'_>,
        before: &[u8],
        put: impl FnOnce(&mut Out) -> PyResult<()>,
    ) -> PyResult<()> {
        if let Some(document) = &self.document {
            return self.write_into(document.get(), before, put);
        }
        let mut buffer = BUFFER.take();
        buffer.clear();
        let put = self.put(&mut buffer, true, before, put);
        let written = put.and_then(|()| self.append(py, buffer.written().map_err(Failure::from)?));
        if buffer.capacity() <= KEPT_BYTES {
            BUFFER.set(buffer);
        }
        written
    }

    #[inline]
    fn put(
        &self,
        out: &mut Out,
        is_first: bool,
        before: &[u8],
        put: impl FnOnce(&mut Out) -> PyResult<()>,
    ) -> PyResult<()> {
        if is_first && self.history != History::None {
            history::put(out, self.history == History::Fields).map_err(to_py)?;
        }
        out.extend_from_slice(before);
        put(out)?;
        if self.target.is_fieldless() {
            *out = self.target.in_wire(std::mem::take(out))?;
        }
        Ok(())
    }

    /// Adds a call to an open document; the history precedes its first call.
    #[cold]
    fn write_into(
        &self,
        document: &WriteDocument,
        before: &[u8],
        put: impl FnOnce(&mut Out) -> PyResult<()>,
    ) -> PyResult<()> {
        let is_first = document.is_empty();
        document.put(|out| Ok(self.put(out, is_first, before, put)?))
    }

    #[inline]
    fn append(&self, py: Python<'_>, document: &[u8]) -> PyResult<()> {
        match &self.target {
            Target::Queue(appender) if self.metadata => appender.get().write_metadata(py, document),
            Target::Queue(appender) => appender.get().write(py, Payload::new(document)).map(drop),
            Target::Sender(sender) => sender.send(py, document, self.metadata, None).map(drop),
        }
    }
}

impl Target {
    /// Whether the queue's messages have no field names.
    #[inline]
    fn is_fieldless(&self) -> bool {
        match self {
            Self::Queue(appender) => appender.get().kernel.queue().is_fieldless(),
            Self::Sender(sender) => sender.is_fieldless,
        }
    }

    fn source_id(&self) -> i32 {
        match self {
            Self::Queue(appender) => appender.get().kernel.queue().source_id(),
            Self::Sender(sender) => sender.source_id,
        }
    }

    /// Converts a message to the queue's wire type.
    fn in_wire(&self, message: Out) -> failure::Result<Out> {
        match self {
            Self::Queue(appender) => in_wire_of(appender.get().kernel.queue(), message),
            Self::Sender(sender) => sender.in_wire(message),
        }
    }
}

#[doc = stub!("Chain")]
#[pyclass(module = "quire._native", frozen)]
pub struct Chain {
    writer: Py<MethodWriter>,
    methods: Py<PyDict>,
    before: Vec<u8>,
    is_dropped: bool,
}

#[pymethods]
impl Chain {
    #[allow(clippy::needless_pass_by_value)] // as PyO3 calls it
    fn __traverse__(&self, visit: PyVisit<'_>) -> std::result::Result<(), PyTraverseError> {
        visit.call(&self.writer)?;
        visit.call(&self.methods)
    }

    fn __getattr__<'py>(&self, name: &Bound<'py, PyString>) -> PyResult<Bound<'py, PyAny>> {
        let py = name.py();
        let Some(method) = self.methods.bind(py).get_item(name)? else {
            let known = self.methods.bind(py).keys();
            return Err(PyAttributeError::new_err(format!(
                "the interface has no such method: name={name} known={known}"
            )));
        };
        let call = Call {
            writer: self.writer.clone_ref(py),
            method: method.cast::<Method>()?.clone().unbind(),
            before: self.before.clone(),
            is_dropped: self.is_dropped,
        };
        Bound::new(py, call)?.getattr(intern!(py, "call"))
    }

    #[getter]
    fn __quire_methods__<'py>(&self, py: Python<'py>) -> &Bound<'py, PyDict> {
        self.methods.bind(py)
    }

    fn __dir__<'py>(&self, py: Python<'py>) -> Bound<'py, PyList> {
        self.methods.bind(py).keys()
    }
}
