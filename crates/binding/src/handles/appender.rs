use std::sync::Arc;
use std::time::Duration;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyString;
use quire_kernel::Error;
use quire_kernel::chronicle::append::appender::{Appender as Kernel, CLOCK_EVERY};
use quire_kernel::chronicle::protocol::lock::lock_wait::{self, LockWait};
use quire_kernel::chronicle::protocol::publish::Payload;
use quire_kernel::chronicle::queue::commit::Durability;
use quire_kernel::os::detached::Detached;
use quire_kernel::os::interrupt::Signals;
use quire_kernel::replicas::history::History;
use quire_kernel::replicas::quorum::Quorum;
use quire_kernel::ring::handle::Ring;
use quire_wire::out::Out;
use quire_wire::writer;

use super::clock::QueueClock;
use super::column::Column;
use super::payload::{Message, SMALL, in_batches, in_wire_of};
use super::promise::{Promise, quorum_of};
use super::queue::Queue;
use super::ring::NO_INDEX;
use super::write_document::WriteDocument;
use crate::buffer::Borrowed;
use crate::detached::detached;
use crate::error::{or_raise, to_py};
use crate::repr;
use crate::values::failure::Failure;
use crate::values::{codec, encode};

#[doc = stub!("Appender")]
#[pyclass(module = "quire._native", frozen, subclass)]
pub struct Appender {
    pub kernel: Arc<Kernel>,
    pub clock: Arc<QueueClock>,
    /// The ring that messages go through, if appends are asynchronous.
    ring: Option<Arc<Ring>>,
    /// How many replicas each message waits for.
    wait: Option<Quorum>,
}

#[pymethods]
impl Appender {
    #[new]
    #[pyo3(signature = (queue, *, wait = None))]
    fn new(
        py: Python<'_>,
        queue: &Bound<'_, Queue>,
        wait: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let (queue, wait) = (queue.get(), wait.map(quorum_of).transpose()?);
        let kernel = or_raise(
            py,
            detached(py, |may_wait| {
                Kernel::new(Arc::clone(&queue.kernel), Signals::Handled(may_wait))
            }),
        )?;
        let (clock, ring) = (Arc::clone(&queue.clock), queue.write_buffer());
        Ok(Self { kernel, clock, ring, wait })
    }

    #[doc = stub!("Appender.write_bytes")]
    #[pyo3(signature = (payload, /, *, wait = None))]
    fn write_bytes(
        &self,
        py: Python<'_>,
        payload: &Bound<'_, PyAny>,
        wait: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<i64> {
        self.write_for(py, Payload::new(Message::take(payload)?.bytes()), wait)
    }

    #[doc = stub!("Appender.write_text")]
    #[pyo3(signature = (text, /, *, wait = None))]
    fn write_text(
        &self,
        py: Python<'_>,
        text: &Bound<'_, PyString>,
        wait: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<i64> {
        let text = text.to_cow()?;
        let stored = writer::stored_text(text.as_bytes()).map_err(Failure::from)?;
        let body = stored.as_deref().unwrap_or(text.as_bytes());
        let (head, length) = writer::text_head(body.len());
        self.write_for(py, Payload { head: &head[..length], body, zeros: 0 }, wait)
    }

    #[doc = stub!("Appender.write_map")]
    #[pyo3(signature = (values, /, *, wait = None))]
    fn write_map(
        &self,
        py: Python<'_>,
        values: &Bound<'_, PyAny>,
        wait: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<i64> {
        let mut out = Out::with_capacity(128);
        encode::put_entries(&mut out, encode::mapping(values)?)?;
        if out.is_empty() {
            return Err(PyValueError::new_err("a message holds at least one value: count=0"));
        }
        self.write_for(py, Payload::new(out.written().map_err(Failure::from)?), wait)
    }

    #[doc = stub!("Appender.write_message")]
    #[pyo3(signature = (message, cls = None, /, *, typed = false, wait = None))]
    fn write_message<'py>(
        &self,
        py: Python<'py>,
        message: &Bound<'py, PyAny>,
        cls: Option<&Bound<'py, PyAny>>,
        typed: bool,
        wait: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<i64> {
        let codec = codec::to_write(message, cls)?;
        let mut out = Out::with_capacity(128);
        codec.get().put_message(&mut out, message, typed)?;
        let out = in_wire_of(self.kernel.queue(), out)?;
        self.write_for(py, Payload::new(out.written().map_err(Failure::from)?), wait)
    }

    #[doc = stub!("Appender.write_many")]
    #[pyo3(signature = (payloads, /, *, wait = None))]
    fn write_many(
        &self,
        py: Python<'_>,
        payloads: &Bound<'_, PyAny>,
        wait: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Option<i64>> {
        let promise = self.promise(py, wait)?;
        let last = in_batches(
            payloads,
            |it| Message::take(it),
            |messages| {
                self.write_all(py, messages.len(), |number| {
                    Ok(Payload::new(messages[number].bytes()))
                })
            },
        )?;
        if let (Some(promise), Some(last)) = (promise, last) {
            promise.keep(py, last, None)?;
        }
        Ok(last)
    }

    #[pyo3(name = "_check_wait", signature = (wait, /))]
    fn check_wait(
        &self,
        py: Python<'_>,
        wait: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Option<(u64, u64)>> {
        let history = self.promise(py, wait)?.map(|promise| promise.history());
        Ok(history.map(|history| (history.epoch, history.cuts)))
    }

    #[pyo3(name = "_wait_for", signature = (index, wait, /, *, timeout_s = None, history = None, waited_s = 0.0))]
    fn wait_for(
        &self,
        py: Python<'_>,
        index: i64,
        wait: Option<&Bound<'_, PyAny>>,
        timeout_s: Option<f64>,
        history: Option<(u64, u64)>,
        waited_s: f64,
    ) -> PyResult<()> {
        let timeout = timeout_s.map(|it| Duration::try_from_secs_f64(it).unwrap_or(Duration::MAX));
        let Some(mut promise) = self.promise(py, wait)? else { return Ok(()) };
        if let Some((epoch, cuts)) = history {
            promise = promise.since(History { epoch, cuts });
        }
        let waited = Duration::try_from_secs_f64(waited_s).unwrap_or(Duration::MAX);
        promise.after(waited).keep(py, index, timeout)
    }

    #[pyo3(
        name = "_write_column",
        signature = (offsets, data, *, count, start, wide, text, note = None)
    )]
    #[allow(clippy::too_many_arguments)] // a Python signature
    fn write_column(
        &self,
        py: Python<'_>,
        offsets: &Bound<'_, PyAny>,
        data: &Bound<'_, PyAny>,
        count: usize,
        start: usize,
        wide: bool,
        text: bool,
        note: Option<&[u8]>,
    ) -> PyResult<Option<i64>> {
        let (offsets, data) = (Borrowed::new(offsets)?, Borrowed::new(data)?);
        let column = Column { offsets: offsets.bytes(), data: data.bytes(), start, wide, text };
        let checked = py.detach(|| column.check(count));
        checked.map_err(to_py)?;
        if let Some(note) = note {
            if self.ring.is_some() {
                let what = "rows that belong to a note in a queue with buffer_mode='async'";
                return Err(to_py(Error::Unsupported(what.to_owned())));
            }
            let now = self.clock.now_ms(py)?;
            let written = detached(py, |may_wait| {
                let signals = Signals::Handled(may_wait);
                self.kernel.append_all(signals, now, Some(note), count, |number| {
                    Ok(Payload::new(column.element(number)?))
                })
            });
            return or_raise(py, written);
        }
        if text {
            return self.write_texts(py, &column, count);
        }
        self.write_all(py, count, |number| Ok(Payload::new(column.element(number)?)))
    }

    #[doc = stub!("Appender.writing_document")]
    #[pyo3(signature = (*, metadata = false, wait = None))]
    fn writing_document(
        &self,
        py: Python<'_>,
        metadata: bool,
        wait: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<WriteDocument> {
        if metadata && wait.is_some() {
            let text = "a metadata document has no index that replicas could acknowledge: wait=";
            return Err(PyValueError::new_err(text));
        }
        let promise = if metadata { None } else { self.promise(py, wait)? };
        let now = self.clock.now_ms(py)?;
        let (appender, clock) = (Arc::clone(&self.kernel), Arc::clone(&self.clock));
        let document = WriteDocument::open(py, appender, clock, self.ring.clone(), now, metadata)?;
        Ok(document.promising(promise))
    }

    #[doc = stub!("Appender.last_index_appended")]
    #[getter]
    fn last_index_appended(&self, py: Python<'_>) -> PyResult<Option<i64>> {
        detached(py, |may_wait| self.kernel.last_index_appended(may_wait)).map_err(to_py)
    }

    #[pyo3(name = "_without_waiting", signature = (write, /, *, waited_ms = None))]
    #[allow(clippy::unused_self)] // a method of Python's
    fn without_waiting<'py>(
        &self,
        write: &Bound<'py, PyAny>,
        waited_ms: Option<u64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        lock_wait::set(waited_ms.map_or(LockWait::Tries, LockWait::HasWaited));
        let written = write.call0();
        let _ = lock_wait::take();
        written
    }

    #[getter(_is_locked)]
    fn is_locked(&self) -> bool {
        self.kernel.is_locked()
    }

    #[getter(_waits_for_disk)]
    fn waits_for_disk(&self) -> bool {
        self.wait.is_some() || self.kernel.queue().commit().durability() == Durability::Each
    }

    #[getter(_waits_for_room)]
    fn waits_for_room(&self) -> bool {
        self.ring.as_ref().is_some_and(|ring| ring.waits_for_room())
    }

    #[getter(_lock_timeout_s)]
    fn lock_timeout_s(&self) -> f64 {
        self.kernel.lock_timeout().as_secs_f64()
    }

    #[getter(_timeout_s)]
    fn timeout_s(&self) -> f64 {
        self.kernel.queue().options().timeout.as_secs_f64()
    }

    #[getter(_has_field_names)]
    fn has_field_names(&self) -> bool {
        !self.kernel.queue().is_fieldless()
    }

    fn __repr__(slf: &Bound<'_, Self>) -> String {
        repr::handle(&slf.get_type(), &repr::appender(slf.py(), &slf.get().kernel))
    }

    #[doc = stub!("Appender.normalise_eofs")]
    fn normalise_eofs(&self, py: Python<'_>) -> PyResult<()> {
        let now = self.clock.now_ms(py)?;
        or_raise(
            py,
            detached(py, |may_wait| self.kernel.normalise_eofs(Signals::Handled(may_wait), now)),
        )
    }

    #[doc = stub!("Appender.sync")]
    fn sync(&self, py: Python<'_>) -> PyResult<()> {
        let synced = detached(py, |may_wait| {
            if let Some(ring) = &self.ring {
                ring.flush(may_wait, self.kernel.lock_timeout())?;
            }
            self.kernel.sync(may_wait)
        });
        or_raise(py, synced)
    }

    #[doc = stub!("Appender.close")]
    fn close(&self, py: Python<'_>) {
        detached(py, |may_wait| self.kernel.close(may_wait));
    }
}

path_and_closed!(Appender, |it| it.kernel.queue().path(), |it| it.kernel.is_closed());
context_manager!(Appender);

impl Appender {
    /// Appends a message of at least one byte, and waits for replicas if the appender does.
    #[inline]
    pub fn write(&self, py: Python<'_>, payload: Payload<'_>) -> PyResult<i64> {
        self.write_for(py, payload, None)
    }

    #[inline]
    fn write_for(
        &self,
        py: Python<'_>,
        payload: Payload<'_>,
        wait: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<i64> {
        if wait.is_none() && self.wait.is_none() {
            return self.append(py, payload);
        }
        self.append_and_wait(py, payload, wait)
    }

    #[inline(never)]
    fn append_and_wait(
        &self,
        py: Python<'_>,
        payload: Payload<'_>,
        wait: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<i64> {
        let promise = self.promise(py, wait)?;
        let index = self.append(py, payload)?;
        promise.map_or(Ok(()), |promise| promise.keep(py, index, None))?;
        Ok(index)
    }

    /// The replication guarantee of an append, created before it.
    #[cold]
    fn promise(
        &self,
        py: Python<'_>,
        wait: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Option<Promise>> {
        let Some(quorum) = wait.map(quorum_of).transpose()?.or(self.wait) else { return Ok(None) };
        if self.ring.is_some() {
            let what = "wait= with buffer_mode='async': an append returns before its message has \
                        an index";
            return Err(to_py(Error::Unsupported(what.to_owned())));
        }
        Promise::new(py, self.kernel.queue(), quorum).map(Some)
    }

    #[inline]
    fn append(&self, py: Python<'_>, payload: Payload<'_>) -> PyResult<i64> {
        if let Some(ring) = &self.ring {
            return self.put(py, ring, payload);
        }
        let now = self.clock.now_ms(py)?;
        if payload.body.len() <= SMALL
            && let Some(index) = self.kernel.try_append(now, payload).map_err(to_py)?
        {
            return Ok(index);
        }
        or_raise(
            py,
            detached(py, |may_wait| self.kernel.append(Signals::Handled(may_wait), now, payload)),
        )
    }

    /// Puts a message into the ring.
    #[inline]
    fn put(&self, py: Python<'_>, ring: &Ring, payload: Payload<'_>) -> PyResult<i64> {
        self.check_open()?;
        if payload.body.len() <= SMALL && ring.try_put(payload, false).map_err(to_py)? {
            return Ok(NO_INDEX);
        }
        or_raise(py, detached(py, |may_wait| ring.put(may_wait, payload, false)))?;
        Ok(NO_INDEX)
    }

    /// Puts messages into the ring.
    fn put_all<'p>(
        &self,
        py: Python<'_>,
        ring: &Ring,
        count: usize,
        payload: impl Fn(usize) -> quire_kernel::Result<Payload<'p>> + Send + Sync,
    ) -> PyResult<Option<i64>> {
        self.check_open()?;
        Self::put_each(py, count, |may_wait, number| ring.put(may_wait, payload(number)?, false))
    }

    /// Puts messages in one by one; an exception's note says how many were.
    fn put_each(
        py: Python<'_>,
        count: usize,
        put: impl Fn(&mut Detached, usize) -> quire_kernel::Result<()> + Send + Sync,
    ) -> PyResult<Option<i64>> {
        let (accepted, result) = detached(py, |may_wait| {
            let mut accepted = 0;
            let result = (0..count).try_for_each(|number| {
                put(may_wait, number)?;
                accepted = number + 1;
                Ok(())
            });
            (accepted, result)
        });
        let Err(raised) = or_raise(py, result) else {
            return Ok((count > 0).then_some(NO_INDEX));
        };
        raised.value(py).setattr("accepted", accepted)?;
        Err(raised)
    }

    fn check_open(&self) -> PyResult<()> {
        if self.kernel.is_closed() && !self.kernel.queue().is_closed() {
            return Err(to_py(Error::closed("appender", self.kernel.queue().path())));
        }
        Ok(())
    }

    /// Appends a metadata document.
    pub fn write_metadata(&self, py: Python<'_>, document: &[u8]) -> PyResult<()> {
        if let Some(ring) = &self.ring {
            return or_raise(
                py,
                detached(py, |may_wait| ring.put(may_wait, Payload::new(document), true)),
            );
        }
        let now = self.clock.now_ms(py)?;
        or_raise(
            py,
            detached(py, |may_wait| {
                self.kernel.append_metadata(Signals::Handled(may_wait), now, document)
            }),
        )
    }

    fn write_all<'p>(
        &self,
        py: Python<'_>,
        count: usize,
        payload: impl Fn(usize) -> quire_kernel::Result<Payload<'p>> + Send + Sync,
    ) -> PyResult<Option<i64>> {
        if let Some(ring) = &self.ring {
            return self.put_all(py, ring, count, payload);
        }
        self.in_chunks(py, count, |signals, now, from, count| {
            self.kernel.append_all(signals, now, None, count, |number| payload(from + number))
        })
    }

    /// Writes `count` messages in one call or, with a Python clock, in several, so that the
    /// callable is called as often as the kernel reads its own clock.
    fn in_chunks(
        &self,
        py: Python<'_>,
        count: usize,
        write: impl Fn(Signals<'_>, Option<i64>, usize, usize) -> quire_kernel::Result<Option<i64>>
        + Send
        + Sync,
    ) -> PyResult<Option<i64>> {
        let step = if self.clock.is_callable() { CLOCK_EVERY } else { count.max(1) };
        let mut last = None;
        for from in (0..count).step_by(step) {
            let now = self.clock.now_ms(py)?;
            let written = detached(py, |may_wait| {
                write(Signals::Handled(may_wait), now, from, step.min(count - from))
            });
            last = or_raise(py, written)?;
        }
        Ok(last)
    }

    fn write_texts(
        &self,
        py: Python<'_>,
        column: &Column<'_>,
        count: usize,
    ) -> PyResult<Option<i64>> {
        if let Some(ring) = &self.ring {
            return self.put_texts(py, ring, column, count);
        }
        self.in_chunks(py, count, |signals, now, from, count| {
            self.kernel.append_texts(signals, now, count, |number| column.element(from + number))
        })
    }

    fn put_texts(
        &self,
        py: Python<'_>,
        ring: &Ring,
        column: &Column<'_>,
        count: usize,
    ) -> PyResult<Option<i64>> {
        self.check_open()?;
        Self::put_each(py, count, |may_wait, number| {
            let text = column.element(number)?;
            let stored = writer::stored_text(text)?;
            let body = stored.as_deref().unwrap_or(text);
            let (head, length) = writer::text_head(body.len());
            ring.put(may_wait, Payload { head: &head[..length], body, zeros: 0 }, false)
        })
    }
}
