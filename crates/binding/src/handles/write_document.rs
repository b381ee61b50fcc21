use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyMemoryView};
use pyo3::{PyTraverseError, PyVisit};
use quire_kernel::Error;
use quire_kernel::chronicle::append::appender::{Appender, Claim};
use quire_kernel::chronicle::protocol::publish::Payload;
use quire_kernel::os::interrupt::Signals;
use quire_kernel::ring::handle::Ring;
use quire_wire::out::Out;
use quire_wire::writer;

use super::clock::QueueClock;
use super::payload::in_wire_of;
use super::promise::Promise;
use super::ring::NO_INDEX;
use super::sender::Sender;
use crate::buffer::{self, Borrowed};
use crate::detached::detached;
use crate::error::{or_raise, to_py};
use crate::repr;
use crate::values::failure::Failure;
use crate::values::{codec, encode, failure};

use wire_out::{RawOut, WireOut};

pub mod wire_out;

#[doc = stub!("WriteDocument")]
#[pyclass(module = "quire._native", frozen)]
pub struct WriteDocument {
    target: Target,
    metadata: bool,
    /// The replication guarantee to wait for once it is published.
    promise: Option<Promise>,
    state: Mutex<State>,
}

/// Where a document goes.
enum Target {
    Queue {
        appender: Arc<Appender>,
        clock: Arc<QueueClock>,
        /// The ring it goes through, if appends are asynchronous.
        ring: Option<Arc<Ring>>,
    },
    /// To another machine, sent whole; and how many replicas to wait for.
    Sender(Sender, Option<Py<PyAny>>),
}

struct State {
    bytes: Vec<u8>,
    /// Reserved memory that was returned to the caller, and its offset in the document.
    reserved: Vec<(usize, Py<PyByteArray>)>,
    phase: Phase,
    rollback: bool,
}

enum Phase {
    /// The write lock is held for it.
    Claimed(Claim),
    /// The lock was held by another writer when the document began: appended whole when it closes.
    Buffered,
    /// Published at this index.
    Published(i64),
    /// Dropped.
    Dropped,
}

impl State {
    /// Index and state, for a repr.
    fn parts(&self) -> Vec<String> {
        let open = || format!("open, length={}", self.bytes.len());
        match &self.phase {
            Phase::Claimed(claim) => vec![format!("index={:#x}", claim.index), open()],
            Phase::Buffered => vec!["buffered".to_owned(), open()],
            Phase::Published(index) => vec![format!("index={index:#x}"), "closed".to_owned()],
            Phase::Dropped => vec!["dropped".to_owned(), "closed".to_owned()],
        }
    }
}

impl WriteDocument {
    /// Opens a document; with double buffering it does not wait for the lock.
    pub fn open(
        py: Python<'_>,
        appender: Arc<Appender>,
        clock: Arc<QueueClock>,
        ring: Option<Arc<Ring>>,
        now_ms: Option<i64>,
        metadata: bool,
    ) -> PyResult<Self> {
        let doubles = appender.queue().options().double_buffer && !metadata;
        let buffered = ring.is_some() || doubles && appender.is_locked();
        let phase = if buffered {
            Ok(Phase::Buffered)
        } else {
            detached(py, |may_wait| appender.claim(Signals::Handled(may_wait), now_ms, metadata))
                .map(Phase::Claimed)
        };
        // Created before anything is logged: if it is not returned, dropping it gives up its claim.
        let document = phase.map(|phase| {
            let state = Mutex::new(State {
                bytes: Vec::new(),
                reserved: Vec::new(),
                phase,
                rollback: false,
            });
            let target = Target::Queue { appender, clock, ring };
            Self { target, metadata, promise: None, state }
        });
        or_raise(py, document)
    }

    /// Opens a document that is sent when it closes.
    pub const fn to_send(sender: Sender, metadata: bool, wait: Option<Py<PyAny>>) -> Self {
        let phase = Phase::Buffered;
        let state = State { bytes: Vec::new(), reserved: Vec::new(), phase, rollback: false };
        let target = Target::Sender(sender, wait);
        Self { target, metadata, promise: None, state: Mutex::new(state) }
    }

    /// The same, with the replication guarantee of its close.
    pub fn promising(self, promise: Option<Promise>) -> Self {
        // Not by `..self`, as dropping `self` gives up its claim.
        let mut this = self;
        this.promise = promise;
        this
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends what `put` appends, unless it fails. It runs without the lock: it may call Python
    /// code, which may use this document.
    pub fn put(&self, put: impl FnOnce(&mut Out) -> failure::Result<()>) -> PyResult<()> {
        drop(self.writable()?);
        let mut bytes = Out::with_capacity(64);
        put(&mut bytes)?;
        self.add(bytes.written().map_err(Failure::from)?)
    }

    /// Appends bytes, all or none.
    pub fn add(&self, bytes: &[u8]) -> PyResult<()> {
        let mut state = self.writable()?;
        buffer::reserve(&mut state.bytes, bytes.len()).map_err(to_py)?;
        state.bytes.extend_from_slice(bytes);
        Ok(())
    }

    /// Like [`WriteDocument::put`], for values with fields: they follow the queue's wire type.
    pub fn put_fields(&self, put: impl FnOnce(&mut Out) -> failure::Result<()>) -> PyResult<()> {
        self.put(|bytes| {
            put(bytes)?;
            let written = std::mem::take(bytes);
            *bytes = match &self.target {
                Target::Queue { appender, .. } => in_wire_of(appender.queue(), written)?,
                Target::Sender(sender, _) => sender.in_wire(written)?,
            };
            Ok(())
        })
    }

    /// The queue's path, or its address.
    fn path(&self) -> &Path {
        match &self.target {
            Target::Queue { appender, .. } => appender.queue().path(),
            Target::Sender(sender, _) => sender.path(),
        }
    }

    /// Whether the queue was opened by a process that this one was forked from.
    fn is_forked(&self) -> bool {
        match &self.target {
            Target::Queue { appender, .. } => appender.queue().check_generation().is_err(),
            Target::Sender(..) => false,
        }
    }

    fn check_length(&self, length: u64) -> quire_kernel::Result<()> {
        match &self.target {
            Target::Queue { appender, .. } => appender.check_length(length),
            Target::Sender(sender, _) => sender.check_length(length),
        }
    }

    /// Gives up the write lock taken for the document.
    fn give_up(&self, claim: Claim) {
        if let Target::Queue { appender, .. } = &self.target {
            appender.give_up(claim);
        }
    }

    /// Whether the document is empty.
    pub fn is_empty(&self) -> bool {
        self.lock().bytes.is_empty()
    }

    /// The state of a document that is still open.
    fn writable(&self) -> PyResult<MutexGuard<'_, State>> {
        let state = self.lock();
        if matches!(state.phase, Phase::Published(_) | Phase::Dropped) {
            return Err(to_py(Error::closed("document", self.path())));
        }
        Ok(state)
    }

    /// Publishes or drops the document. Its state is not locked meanwhile: other threads see it as
    /// closed already.
    fn finish(&self, py: Python<'_>, drop_it: bool) -> PyResult<()> {
        let (phase, mut bytes, reserved, rollback) = {
            let mut state = self.lock();
            let phase = std::mem::replace(&mut state.phase, Phase::Dropped);
            let reserved = std::mem::take(&mut state.reserved);
            (phase, std::mem::take(&mut state.bytes), reserved, drop_it || state.rollback)
        };
        for (offset, memory) in reserved {
            let written = Borrowed::new(memory.bind(py))?;
            bytes[offset..].iter_mut().zip(written.bytes()).for_each(|(to, byte)| *to = *byte);
        }
        let phase = match phase {
            Phase::Claimed(claim) if rollback => {
                self.give_up(claim);
                Phase::Dropped
            }
            Phase::Buffered if rollback => Phase::Dropped,
            Phase::Claimed(claim) => self.publish(py, claim, &bytes)?,
            Phase::Buffered => Phase::Published(self.append(py, &bytes)?),
            done => done,
        };
        let published = if let Phase::Published(index) = phase { Some(index) } else { None };
        self.lock().phase = phase;
        match (&self.promise, published) {
            (Some(promise), Some(index)) => promise.keep(py, index, None),
            _ => Ok(()),
        }
    }
}

impl WriteDocument {
    /// Publishes a document for which the write lock is held.
    fn publish(&self, py: Python<'_>, claim: Claim, bytes: &[u8]) -> PyResult<Phase> {
        let Target::Queue { appender, .. } = &self.target else { return Ok(Phase::Dropped) };
        let published = detached(py, |may_wait| appender.publish(may_wait, claim, bytes));
        Ok(Phase::Published(or_raise(py, published)?))
    }

    /// Appends a whole document.
    fn append(&self, py: Python<'_>, bytes: &[u8]) -> PyResult<i64> {
        let bytes = if bytes.is_empty() { &writer::EMPTY_PAYLOAD } else { bytes };
        match &self.target {
            Target::Queue { appender, clock, ring } => {
                let now = clock.now_ms(py)?;
                let payload = Payload::new(bytes);
                let appended = detached(py, |may_wait| match ring {
                    Some(ring) => ring.put(may_wait, payload, self.metadata).map(|()| NO_INDEX),
                    None => appender.append(Signals::Handled(may_wait), now, payload),
                });
                or_raise(py, appended)
            }
            Target::Sender(sender, wait) => sender.send(py, bytes, self.metadata, wait.as_ref()),
        }
    }
}

#[pymethods]
impl WriteDocument {
    #[allow(clippy::needless_pass_by_value)] // as PyO3 calls it
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        match &self.target {
            Target::Sender(sender, wait) => {
                visit.call(wait)?;
                sender.traverse(&visit)
            }
            Target::Queue { .. } => Ok(()),
        }
    }

    #[doc = stub!("WriteDocument.index")]
    #[getter]
    fn index(&self) -> PyResult<i64> {
        match &self.lock().phase {
            Phase::Claimed(claim) => Ok(claim.index),
            Phase::Published(index) => Ok(*index),
            Phase::Buffered => Err(to_py(Error::IndexNotAvailable)),
            Phase::Dropped => Err(to_py(Error::closed("document", self.path()))),
        }
    }

    pub fn __repr__(slf: &Bound<'_, Self>) -> String {
        let this = slf.get();
        let mut parts = vec![repr::path(slf.py(), this.path())];
        parts.extend(this.metadata.then(|| "metadata".to_owned()));
        match this.state.try_lock() {
            _ if this.is_forked() => parts.push("forked".to_owned()),
            Ok(state) => parts.extend(state.parts()),
            Err(_) => parts.push("busy".to_owned()),
        }
        repr::handle(&slf.get_type(), &parts)
    }

    #[doc = stub!("WriteDocument.is_metadata")]
    #[getter]
    const fn is_metadata(&self) -> bool {
        self.metadata
    }

    #[doc = stub!("WriteDocument.write")]
    #[pyo3(signature = (name, value, /))]
    fn write(&self, name: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
        self.put(|bytes| encode::put_entry(bytes, name, value))
    }

    #[doc = stub!("WriteDocument.write_message")]
    #[pyo3(signature = (message, cls = None, /, *, typed = false))]
    fn write_message<'py>(
        &self,
        message: &Bound<'py, PyAny>,
        cls: Option<&Bound<'py, PyAny>>,
        typed: bool,
    ) -> PyResult<()> {
        let codec = codec::to_write(message, cls)?;
        self.put_fields(|bytes| codec.get().put_message(bytes, message, typed))
    }

    #[doc = stub!("WriteDocument.wire")]
    #[getter]
    fn wire(slf: Py<Self>) -> WireOut {
        WireOut(slf)
    }

    #[doc = stub!("WriteDocument.raw")]
    #[getter]
    fn raw(slf: Py<Self>) -> RawOut {
        RawOut(slf)
    }

    #[doc = stub!("WriteDocument.reserve")]
    #[pyo3(signature = (length, /))]
    fn reserve<'py>(&self, py: Python<'py>, length: usize) -> PyResult<Bound<'py, PyMemoryView>> {
        self.check_length(length as u64).map_err(to_py)?;
        buffer::room(length).map_err(to_py)?; // Python's own failure also logs an error of its own
        let memory = PyByteArray::new_with(py, length, |_| Ok(()))?;
        let mut state = self.writable()?;
        let offset = state.bytes.len();
        buffer::reserve(&mut state.bytes, length).map_err(to_py)?;
        state.bytes.resize(offset + length, 0);
        state.reserved.push((offset, memory.clone().unbind()));
        drop(state); // creating a view may run the garbage collector
        PyMemoryView::from(memory.as_any())
    }

    #[doc = stub!("WriteDocument.write_bytes")]
    #[pyo3(signature = (data, /))]
    fn write_bytes(&self, data: &Bound<'_, PyAny>) -> PyResult<()> {
        self.add(Borrowed::new(data)?.bytes())
    }

    #[doc = stub!("WriteDocument.rollback_on_close")]
    fn rollback_on_close(&self) {
        self.lock().rollback = true;
    }

    #[doc = stub!("WriteDocument.close")]
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.finish(py, false)
    }
}

context_manager!(WriteDocument, |it, py, raised| it.finish(py, raised));

impl Drop for WriteDocument {
    /// A document that was never closed is dropped: the write lock must not stay taken.
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Phase::Claimed(claim) = std::mem::replace(&mut state.phase, Phase::Dropped) {
            self.give_up(claim);
        }
    }
}
