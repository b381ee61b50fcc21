//! Messages as calls: each event of a document is looked up in a table, its arguments are decoded
//! in place, and its handler is called.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};
use pyo3::{PyTraverseError, PyVisit};
use quire_kernel::Error;
use quire_kernel::chronicle::read::tailer::OpenDocument;
use quire_wire::WireError;
use quire_wire::compress;
use quire_wire::history;
use quire_wire::latin1;
use quire_wire::reader::{self, Name, Reader, Shape, Token};

use super::history::Handling;
use super::method::Method;
use crate::buffer;
use crate::error::to_py;
use crate::handles::tailer::{self, Tailer};
use crate::repr;
use crate::values::decode;
use crate::values::failure::Result;

/// Signals are checked after this many messages: perhaps no Python handler runs in between.
const READ_BETWEEN_LOOKS: usize = 1 << 10;

#[doc = stub!("MethodReader")]
#[pyclass(module = "quire._native", frozen, subclass)]
pub struct MethodReader {
    tailer: Py<Tailer>,
    events: Table,
    /// Handlers of metadata documents; without any, metadata is skipped.
    metadata: Option<Table>,
    /// Called with the name and value of an event that has no handler.
    default: Option<Py<PyAny>>,
    /// Called with the name and first argument; decides whether the call is made.
    filter: Option<Py<PyAny>>,
    /// Called with the index, bytes and error of a message that failed; without it
    /// the error is raised.
    on_failure: Option<Py<PyAny>>,
    /// Continues with the next message until one was handled.
    is_scanning: bool,
    is_closed: AtomicBool,
}

/// Handlers by their events.
struct Table {
    /// Sorted by name: there are few, and comparing is faster than hashing.
    by_name: Vec<(Box<[u8]>, Handler)>,
    by_id: HashMap<i64, Handler>,
}

/// What is called, and with which arguments.
struct Handler {
    method: Py<Method>,
    call: Py<PyAny>,
}

/// What a handler returned, and its declared methods, which take precedence over all others.
struct Returned<'py> {
    target: Bound<'py, PyAny>,
    methods: Bound<'py, PyDict>,
}

/// A method and what calls it.
type Pair = (Py<Method>, Py<PyAny>);

#[pymethods]
impl MethodReader {
    #[allow(clippy::needless_pass_by_value)] // as PyO3 calls it
    fn __traverse__(&self, visit: PyVisit<'_>) -> std::result::Result<(), PyTraverseError> {
        self.events.traverse(&visit)?;
        if let Some(metadata) = &self.metadata {
            metadata.traverse(&visit)?;
        }
        visit.call(&self.tailer)?;
        visit.call(&self.default)?;
        visit.call(&self.filter)?;
        visit.call(&self.on_failure)
    }

    fn __repr__(slf: &Bound<'_, Self>) -> String {
        let this = slf.get();
        let tailer = &this.tailer.get().0;
        let mut parts = repr::tailer(slf.py(), tailer);
        if this.is_closed.load(Ordering::Acquire) && !tailer.is_closed() {
            parts.push("closed".to_owned());
        }
        repr::handle(&slf.get_type(), &parts)
    }

    #[new]
    #[pyo3(signature = (tailer, handlers, *, metadata, default, filter, on_failure, scanning))]
    #[allow(clippy::too_many_arguments)] // a Python signature
    fn new(
        py: Python<'_>,
        tailer: Py<Tailer>,
        handlers: Vec<Pair>,
        metadata: Option<Vec<Pair>>,
        default: Option<Py<PyAny>>,
        filter: Option<Py<PyAny>>,
        on_failure: Option<Py<PyAny>>,
        scanning: bool,
    ) -> Self {
        Self {
            tailer,
            events: Table::of(py, handlers),
            metadata: metadata.map(|pairs| Table::of(py, pairs)),
            default,
            filter,
            on_failure,
            is_scanning: scanning,
            is_closed: AtomicBool::new(false),
        }
    }

    #[doc = stub!("MethodReader.tailer")]
    #[getter]
    fn tailer<'py>(&self, py: Python<'py>) -> &Bound<'py, Tailer> {
        self.tailer.bind(py)
    }

    #[doc = stub!("MethodReader.closed")]
    #[getter]
    fn closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }

    #[doc = stub!("MethodReader.read_one")]
    #[inline]
    fn read_one(&self, py: Python<'_>) -> PyResult<bool> {
        loop {
            match self.read_next(py)? {
                None => return Ok(false),
                Some(true) => return Ok(true),
                Some(false) if !self.is_scanning => return Ok(true),
                Some(false) => py.check_signals()?,
            }
        }
    }

    #[doc = stub!("MethodReader.read_many")]
    #[pyo3(signature = (count, /))]
    fn read_many(&self, py: Python<'_>, count: usize) -> PyResult<usize> {
        for taken in 0..count {
            if !self.read_one(py)? {
                return Ok(taken);
            }
            if taken % READ_BETWEEN_LOOKS == 0 {
                py.check_signals()?;
            }
        }
        Ok(count)
    }

    #[doc = stub!("MethodReader.close")]
    fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
    }
}

impl MethodReader {
    /// Reads a document; returns whether a handler was called. None if there is none yet.
    #[inline]
    fn read_next(&self, py: Python<'_>) -> PyResult<Option<bool>> {
        if self.is_closed.load(Ordering::Acquire) {
            return Err(to_py(Error::closed("method reader", self.tailer.get().0.queue().path())));
        }
        let kernel = &self.tailer.get().0;
        let metadata = self.metadata.as_ref();
        let Some(open) = tailer::take(py, kernel, metadata.is_some())? else { return Ok(None) };
        let handled = match metadata {
            Some(table) if open.is_metadata() => self.handle(py, table, &open, None).map(|_| false),
            _ => self.handle_message(py, &open),
        };
        match decode::placed(handled, kernel, &open) {
            Ok(is_known) => Ok(Some(is_known)),
            Err(error) => self.failed(py, &open, error).map(|()| Some(true)),
        }
    }

    #[inline]
    fn handle_message(&self, py: Python<'_>, open: &OpenDocument) -> Result<bool> {
        let source = (self.tailer.get().0.queue().source_id(), open.index);
        let handling = Handling::begin(source);
        handling.read_before(open.before())?;
        self.handle(py, &self.events, open, Some(&handling))
    }

    /// Calls the handlers of a document's events, in order; returns whether there was one.
    #[inline]
    fn handle(
        &self,
        py: Python<'_>,
        table: &Table,
        open: &OpenDocument,
        handling: Option<&Handling>,
    ) -> Result<bool> {
        compress::begin_message();
        let mut cursor = Reader::new(open.payload());
        if !matches!(cursor.shape(), Shape::Map) {
            return Ok(false); // not a call: nobody knows it
        }
        let mut is_known = false;
        let mut returned: Option<Returned<'_>> = None;
        while let Some(name) = cursor.name()? {
            let found = match returned.take() {
                Some(target) => target.find(name)?,
                None => None,
            };
            let handler = found.as_ref().or_else(|| table.find(name));
            if let Some(handler) = handler {
                is_known = true;
                let target = self.call(py, handler, &mut cursor)?;
                returned = target.and_then(|target| Returned::by(handler, target));
            } else if let Some(handling) = handling.filter(|_| history::is_history(name)) {
                handling.read(&mut cursor)?;
            } else {
                self.call_default(py, name, &mut cursor)?;
            }
        }
        Ok(is_known)
    }

    /// Makes the call of an event; returns its result, or None if the filter rejected it.
    #[inline]
    fn call<'py>(
        &self,
        py: Python<'py>,
        handler: &Handler,
        cursor: &mut Reader<'_>,
    ) -> Result<Option<Bound<'py, PyAny>>> {
        let (method, call) = (handler.method.get(), handler.call.bind(py));
        let has_value = cursor.peek().is_some_and(|code| !reader::is_name(code));
        if method.takes_one() && has_value {
            let argument = method.get_argument(py, 0, cursor)?;
            if self.refuses(py, method, Some(&argument))? {
                return Ok(None);
            }
            return Ok(Some(call.call1((argument,))?));
        }
        let Some(arguments) = self.arguments(py, method, cursor, has_value)? else {
            return Ok(None);
        };
        Ok(Some(match arguments.as_slice() {
            [] => call.call0()?,
            several => call.call1(PyTuple::new(py, several)?)?,
        }))
    }

    /// The arguments of a call with none or several; None if the filter rejected it.
    fn arguments<'py>(
        &self,
        py: Python<'py>,
        method: &Method,
        cursor: &mut Reader<'_>,
        has_value: bool,
    ) -> Result<Option<Vec<Bound<'py, PyAny>>>> {
        let mut arguments = Vec::with_capacity(method.parameters().len());
        let mut list = Reader::new(&[]);
        if has_value && method.parameters().is_empty() {
            cursor.skip()?;
        } else if has_value {
            let (at, code) = (cursor.offset(), cursor.peek());
            let Token::Block(found) = cursor.value()? else {
                let fault = WireError::unexpected("a list of arguments", code, at);
                return Err(fault.inside(method.name()).into());
            };
            list = found;
        }
        for number in 0..method.parameters().len() {
            if list.peek().is_none() {
                if number < method.required() {
                    let missing = method.parameters()[number].name();
                    let fault = WireError::unexpected("an argument", None, cursor.offset());
                    return Err(fault.inside(missing).inside(method.name()).into());
                }
                break;
            }
            arguments.push(method.get_argument(py, number, &mut list)?);
            if number == 0 && self.refuses(py, method, arguments.first())? {
                return Ok(None);
            }
        }
        if arguments.is_empty() && self.refuses(py, method, None)? {
            return Ok(None);
        }
        Ok(Some(arguments))
    }

    #[inline]
    fn refuses(
        &self,
        py: Python<'_>,
        method: &Method,
        first: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<bool> {
        match &self.filter {
            None => Ok(false),
            Some(filter) => Ok(!filter.bind(py).call1((method.name(), first))?.is_truthy()?),
        }
    }

    /// Skips an event without a handler, or passes it to the default handler.
    fn call_default(&self, py: Python<'_>, name: Name<'_>, cursor: &mut Reader<'_>) -> Result<()> {
        let name = match name {
            Name::Object => decode::get(py, cursor, 0)?,
            name => key(py, name)?,
        };
        let has_value = cursor.peek().is_some_and(|code| !reader::is_name(code));
        match &self.default {
            None if has_value => Ok(cursor.skip()?),
            None => Ok(()),
            Some(default) => {
                let value = if has_value {
                    decode::get(py, cursor, 0).map_err(|failure| failure.inside(&name))?
                } else {
                    py.None().into_bound(py)
                };
                default.bind(py).call1((name, value))?;
                Ok(())
            }
        }
    }

    /// Reports a failure to the error handler, or moves back to its document and raises it.
    #[cold]
    fn failed(&self, py: Python<'_>, open: &OpenDocument, error: PyErr) -> PyResult<()> {
        let error = match &self.on_failure {
            Some(deal_with) if error.is_instance_of::<PyException>(py) => {
                let payload = buffer::bytes(py, open.payload()).map_err(to_py)?;
                let raised = error.value(py);
                match deal_with.bind(py).call1((open.index, payload, raised)) {
                    Ok(_) => return Ok(()),
                    Err(error) => error,
                }
            }
            _ => error,
        };
        // A tailer that was closed meanwhile has no position; the error is what matters.
        let _ = py.detach(|| self.tailer.get().0.return_to(open));
        Err(error)
    }
}

impl<'py> Returned<'py> {
    /// None if the handler declared no interface: its result is not used then.
    #[inline]
    fn by(handler: &Handler, target: Bound<'py, PyAny>) -> Option<Self> {
        let methods = handler.method.get().next()?.bind(target.py()).clone();
        (!target.is_none()).then_some(Self { target, methods })
    }

    #[cold]
    fn find(&self, name: Name<'_>) -> Result<Option<Handler>> {
        for (attribute, method) in &self.methods {
            let method = method.cast_into::<Method>().map_err(PyErr::from)?;
            if method.get().is_called(name) {
                let attribute = attribute.cast_into::<PyString>().map_err(PyErr::from)?;
                let call = self.target.getattr(attribute)?.unbind();
                return Ok(Some(Handler { method: method.unbind(), call }));
            }
        }
        Ok(None)
    }
}

impl Table {
    /// Lets the garbage collector visit its references: handlers often refer to their reader.
    fn traverse(&self, visit: &PyVisit<'_>) -> std::result::Result<(), PyTraverseError> {
        for handler in self.by_name.iter().map(|(_, handler)| handler).chain(self.by_id.values()) {
            visit.call(&handler.method)?;
            visit.call(&handler.call)?;
        }
        Ok(())
    }

    /// The first of each name and id.
    fn of(py: Python<'_>, pairs: Vec<Pair>) -> Self {
        let mut by_name: Vec<(Box<[u8]>, Handler)> = Vec::with_capacity(pairs.len());
        let mut by_id = HashMap::new();
        for (method, call) in pairs {
            if let Some(id) = method.get().id() {
                let (method, call) = (method.clone_ref(py), call.clone_ref(py));
                by_id.entry(id).or_insert(Handler { method, call });
            }
            let name = method.get().latin_name();
            if let Err(place) = by_name.binary_search_by(|(known, _)| known[..].cmp(name)) {
                by_name.insert(place, (name.into(), Handler { method, call }));
            }
        }
        Self { by_name, by_id }
    }

    #[inline]
    fn find(&self, name: Name<'_>) -> Option<&Handler> {
        match name {
            Name::Field(name) | Name::Event(name) => {
                let place = self.by_name.binary_search_by(|(known, _)| known[..].cmp(name));
                place.ok().map(|place| &self.by_name[place].1)
            }
            Name::Number(number) => self.by_id.get(&number),
            Name::Object => None,
        }
    }
}

/// An event's name or number, for Python.
fn key<'py>(py: Python<'py>, name: Name<'_>) -> PyResult<Bound<'py, PyAny>> {
    Ok(match name {
        Name::Field(name) | Name::Event(name) => {
            buffer::text(py, &latin1::decode(name))?.into_any()
        }
        Name::Number(number) => number.into_pyobject(py)?.into_any(),
        Name::Object => py.None().into_bound(py),
    })
}
