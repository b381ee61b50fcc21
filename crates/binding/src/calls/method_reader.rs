//! Messages as calls: each event of a document is looked up in a table, its arguments are decoded
//! in place, and its handler is called.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use pyo3::exceptions::{PyException, PyRuntimeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};
use pyo3::{PyTraverseError, PyVisit};
use quire_kernel::Error;
use quire_wire::WireError;
use quire_wire::compress;
use quire_wire::history;
use quire_wire::latin1;
use quire_wire::reader::{self, Name, Reader, Shape, Token};

use super::awaited_document::{AwaitedDocument, Pending, Progress, Reads};
use super::history::Handling;
use super::method::Method;
use crate::buffer;
use crate::document::Document;
use crate::error::to_py;
use crate::handles::documents::Source;
use crate::handles::tailer::Tailer;
use crate::handles::taken::Taken;
use crate::repr;
use crate::values::failure::Result;
use crate::values::{classes, decode};

/// Signals are checked after this many messages: perhaps no Python handler runs in between.
const READ_BETWEEN_LOOKS: usize = 1 << 10;

/// State bit: the reader was closed.
const CLOSED: u8 = 1;
/// State bit: a handler is being awaited; the next document is read when it is done.
const AWAITING: u8 = 2;

#[doc = stub!("MethodReader")]
#[pyclass(module = "quire._native", frozen, subclass)]
pub struct MethodReader {
    tailer: Py<PyAny>,
    source: Source,
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
    /// [`CLOSED`] and [`AWAITING`].
    state: AtomicU8,
}

/// Handlers by their events.
struct Table {
    /// Sorted by name: there are few, and comparing is faster than hashing.
    by_name: Vec<(Box<[u8]>, Handler)>,
    by_id: HashMap<i64, Handler>,
}

/// A handler, and the method that determines its arguments.
struct Handler {
    method: Py<Method>,
    call: Py<PyAny>,
}

/// The object a handler returned, and its declared methods, which take precedence over all others.
struct Returned<'py> {
    target: Bound<'py, PyAny>,
    methods: Bound<'py, PyDict>,
}

/// The result of reading the next document.
enum Read {
    Nothing,
    Done(bool),
    Awaits(Box<Pending>),
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
        self.source.traverse(&visit)?;
        visit.call(&self.default)?;
        visit.call(&self.filter)?;
        visit.call(&self.on_failure)
    }

    fn __repr__(slf: &Bound<'_, Self>) -> String {
        let this = slf.get();
        let mut parts = this.source.parts(slf.py());
        if this.closed() && !this.source.is_closed(slf.py()) {
            parts.push("closed".to_owned());
        }
        repr::handle(&slf.get_type(), &parts)
    }

    #[new]
    #[pyo3(signature = (tailer, handlers, *, metadata, default, filter, on_failure, scanning))]
    #[allow(clippy::too_many_arguments)] // a Python signature
    fn new(
        py: Python<'_>,
        tailer: &Bound<'_, PyAny>,
        handlers: Vec<Pair>,
        metadata: Option<Vec<Pair>>,
        default: Option<Py<PyAny>>,
        filter: Option<Py<PyAny>>,
        on_failure: Option<Py<PyAny>>,
        scanning: bool,
    ) -> PyResult<Self> {
        let source = match tailer.cast::<Tailer>() {
            Ok(tailer) => Source::Files(Arc::clone(&tailer.get().0)),
            Err(_) => Source::receiving(tailer)?,
        };
        Ok(Self {
            tailer: tailer.clone().unbind(),
            source,
            events: Table::of(py, handlers),
            metadata: metadata.map(|pairs| Table::of(py, pairs)),
            default,
            filter,
            on_failure,
            is_scanning: scanning,
            state: AtomicU8::new(0),
        })
    }

    #[doc = stub!("MethodReader.tailer")]
    #[getter]
    fn tailer<'py>(&self, py: Python<'py>) -> &Bound<'py, PyAny> {
        self.tailer.bind(py)
    }

    #[doc = stub!("MethodReader.closed")]
    #[getter]
    fn closed(&self) -> bool {
        self.state.load(Ordering::Acquire) & CLOSED != 0
    }

    #[doc = stub!("MethodReader.read_one")]
    #[inline]
    fn read_one(&self, py: Python<'_>) -> PyResult<bool> {
        loop {
            match self.read_next(py)? {
                Read::Nothing => return Ok(false),
                Read::Done(is_known) if is_known || !self.is_scanning => return Ok(true),
                Read::Done(_) => py.check_signals()?,
                Read::Awaits(pending) => return Err(self.refuse_coroutine(py, &pending)),
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

    #[doc = stub!("MethodReader._read_awaiting")]
    #[pyo3(signature = (count, /))]
    fn _read_awaiting<'py>(slf: &Bound<'py, Self>, count: usize) -> PyResult<Bound<'py, PyAny>> {
        let (py, this) = (slf.py(), slf.get());
        let mut taken = 0;
        while taken < count {
            match this.read_next(py)? {
                Read::Nothing => break,
                Read::Done(is_known) => taken += usize::from(is_known || !this.is_scanning),
                Read::Awaits(pending) => {
                    this.state.fetch_or(AWAITING, Ordering::AcqRel);
                    let document = AwaitedDocument::new(Box::new(slf.clone().unbind()), *pending);
                    return Ok(Bound::new(py, document)?.into_any());
                }
            }
            if taken % READ_BETWEEN_LOOKS == 0 {
                py.check_signals()?;
            }
        }
        Ok(taken.into_pyobject(py)?.into_any())
    }

    #[doc = stub!("MethodReader.close")]
    fn close(&self) {
        self.state.fetch_or(CLOSED, Ordering::AcqRel);
    }
}

impl MethodReader {
    /// Reads a document and calls its handlers, up to the first that returns a coroutine.
    #[inline]
    fn read_next(&self, py: Python<'_>) -> PyResult<Read> {
        if self.state.load(Ordering::Acquire) != 0 {
            return Err(self.refusal());
        }
        let mut taken = Taken::nothing();
        let has_metadata = self.metadata.is_some();
        if !self.source.take(py, has_metadata, &mut taken)? {
            return Ok(Read::Nothing);
        }
        let is_metadata = has_metadata && taken.is_metadata();
        let source = (self.source.source_id(), taken.index());
        let handling = (!is_metadata).then(|| Handling::begin(source));
        match self.handle(py, &taken, handling.as_ref()) {
            Ok(Progress::Done(is_known)) => Ok(Read::Done(is_known && !is_metadata)),
            unfinished => self.unfinished(py, taken, handling, unfinished),
        }
    }

    /// Handles a document whose handler is to be awaited, or has failed.
    #[cold]
    fn unfinished(
        &self,
        py: Python<'_>,
        taken: Taken,
        handling: Option<Handling>,
        handled: Result<Progress<'_>>,
    ) -> PyResult<Read> {
        let Some(open) = taken.into_document() else { return Ok(Read::Nothing) };
        match handled {
            Ok(Progress::Done(is_known)) => Ok(Read::Done(is_known)),
            Ok(Progress::Awaits { coroutine, methods, offset }) => {
                let (coroutine, history) = (coroutine.unbind(), handling.map(Handling::pause));
                let pending = Pending { open, coroutine, methods, offset, history };
                Ok(Read::Awaits(Box::new(pending)))
            }
            Err(failure) => {
                let error = self.source.placed(failure, &open);
                self.failed(py, &open, error).map(|()| Read::Done(true))
            }
        }
    }

    /// Why no document can be read now.
    #[cold]
    fn refusal(&self) -> PyErr {
        if self.closed() {
            return to_py(Error::closed("method reader", self.source.path()));
        }
        PyRuntimeError::new_err(
            "a coroutine handler of this reader is still running: read with one task at a time",
        )
    }

    /// The error of a handler that cannot be awaited; its message is read again.
    #[cold]
    fn refuse_coroutine(&self, py: Python<'_>, pending: &Pending) -> PyErr {
        let name = pending
            .coroutine
            .getattr(py, "__qualname__")
            .map_or_else(|_| "?".to_owned(), |name| name.to_string());
        let _ = pending.coroutine.call_method0(py, "close");
        self.return_to(py, &pending.open);
        PyTypeError::new_err(format!(
            "the handler is a coroutine function, which run() and read_one() cannot await: use \
             `await` with arun() or aread_one(): handler={name}"
        ))
    }

    /// The handlers of a document.
    #[inline]
    fn table(&self, is_metadata: bool) -> &Table {
        self.metadata.as_ref().filter(|_| is_metadata).unwrap_or(&self.events)
    }

    /// Calls the handlers of a document's events, in order.
    #[inline]
    fn handle<'py>(
        &self,
        py: Python<'py>,
        taken: &Taken,
        handling: Option<&Handling>,
    ) -> Result<Progress<'py>> {
        if let Some(handling) = handling {
            handling.read_before(taken.before())?;
        }
        compress::begin_message();
        let cursor = Reader::new(taken.payload());
        if !matches!(cursor.shape(), Shape::Map) {
            return Ok(Progress::Done(false)); // not a call
        }
        self.call_each(py, self.table(taken.is_metadata()), cursor, handling, false, None)
    }

    /// Calls the handlers of the events from the cursor on, after one that returned `returned`.
    #[inline]
    fn call_each<'py>(
        &self,
        py: Python<'py>,
        table: &Table,
        mut cursor: Reader<'_>,
        handling: Option<&Handling>,
        mut is_known: bool,
        mut returned: Option<Returned<'py>>,
    ) -> Result<Progress<'py>> {
        while let Some(name) = cursor.name()? {
            let found = match returned.take() {
                Some(target) => target.find(name)?,
                None => None,
            };
            let handler = found.as_ref().or_else(|| table.find(name));
            let (result, methods) = if let Some(handler) = handler {
                is_known = true;
                (self.call(py, handler, &mut cursor)?, handler.method.get().next())
            } else if let Some(handling) = handling.filter(|_| history::is_history(name)) {
                handling.read(&mut cursor)?;
                continue;
            } else {
                (self.call_default(py, name, &mut cursor)?, None)
            };
            let Some(target) = result.filter(|target| !target.is_none()) else { continue };
            if target.get_type().is(classes::coroutine(py)?) {
                let (methods, offset) = (methods.map(|it| it.clone_ref(py)), cursor.offset());
                return Ok(Progress::Awaits { coroutine: target, methods, offset });
            }
            // The handler's result is only used if it declares an interface.
            returned = methods.map(|it| Returned { target, methods: it.bind(py).clone() });
        }
        Ok(Progress::Done(is_known))
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
            return Ok(Some(buffer::call_one(call, &argument)?));
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
    fn call_default<'py>(
        &self,
        py: Python<'py>,
        name: Name<'_>,
        cursor: &mut Reader<'_>,
    ) -> Result<Option<Bound<'py, PyAny>>> {
        let name = match name {
            Name::Object => decode::get(py, cursor, 0)?,
            name => key(py, name)?,
        };
        let has_value = cursor.peek().is_some_and(|code| !reader::is_name(code));
        match &self.default {
            None => {
                if has_value {
                    cursor.skip()?;
                }
                Ok(None)
            }
            Some(default) => {
                let value = if has_value {
                    decode::get(py, cursor, 0).map_err(|failure| failure.inside(&name))?
                } else {
                    py.None().into_bound(py)
                };
                Ok(Some(default.bind(py).call1((name, value))?))
            }
        }
    }

    /// Reports a failure to the error handler, or moves back to its document and raises it.
    #[cold]
    fn failed(&self, py: Python<'_>, open: &Document, error: PyErr) -> PyResult<()> {
        let error = match &self.on_failure {
            Some(deal_with) if error.is_instance_of::<PyException>(py) => {
                let payload = buffer::bytes(py, open.payload()).map_err(to_py)?;
                let raised = error.value(py);
                match deal_with.bind(py).call1((open.index(), payload, raised)) {
                    Ok(_) => return Ok(()),
                    Err(error) => error,
                }
            }
            _ => error,
        };
        self.return_to(py, open);
        Err(error)
    }

    fn return_to(&self, py: Python<'_>, open: &Document) {
        // A tailer that was closed meanwhile has no position; the error is what matters.
        let _ = self.source.return_to(py, open);
    }
}

impl Reads for Py<MethodReader> {
    fn traverse(&self, visit: &PyVisit<'_>) -> std::result::Result<(), PyTraverseError> {
        visit.call(self)
    }

    fn go_on<'py>(
        &self,
        py: Python<'py>,
        pending: &Pending,
        handling: Option<&Handling>,
        result: Bound<'py, PyAny>,
    ) -> PyResult<Progress<'py>> {
        compress::begin_message();
        let this = self.get();
        let mut cursor = Reader::new(pending.open.payload());
        cursor.take(pending.offset);
        let methods = pending.methods.as_ref().filter(|_| !result.is_none());
        let returned = methods.map(|it| Returned { target: result, methods: it.bind(py).clone() });
        let table = this.table(pending.open.is_metadata());
        let handled = this.call_each(py, table, cursor, handling, true, returned);
        handled.map_err(|failure| this.source.placed(failure, &pending.open))
    }

    fn failed(&self, py: Python<'_>, open: &Document, error: PyErr) -> PyResult<()> {
        self.get().failed(py, open, error)
    }

    fn return_to(&self, py: Python<'_>, open: &Document) {
        self.get().return_to(py, open);
    }

    fn end_awaiting(&self) {
        self.get().state.fetch_and(!AWAITING, Ordering::AcqRel);
    }
}

impl Returned<'_> {
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
