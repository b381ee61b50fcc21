use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString};
use quire_kernel::chronicle::read::missing::OnMissing;
use quire_kernel::chronicle::read::resume::{self, LastWritten};
use quire_kernel::chronicle::read::tailer::{
    Ask, How, MESSAGES_BETWEEN_PAUSES, Opening, Reading, Scan, Tailer as Kernel, Take, What,
};
use quire_kernel::os::interrupt::Signals;
use quire_wire::topic::Topics;

use super::column::{Columns, PayloadColumns};
use super::documents::Source;
use super::excerpt::Excerpt;
use super::queue::Queue;
use super::read_document::ReadDocument;
use super::{decoding, scan, spin};
use crate::arguments::{flag, integer, optional};
use crate::arrow::decode as columns;
use crate::arrow::decode::{Plan, Wanted};
use crate::buffer;
use crate::calls::history::MessageHistory;
use crate::detached::detached;
use crate::error::{or_raise, to_py};
use crate::repr;
use crate::spare::Spare;
use crate::values::{codec, decode, text};

#[doc = stub!("Tailer")]
#[pyclass(module = "quire._native", frozen, subclass)]
pub struct Tailer(pub Arc<Kernel>, Arc<Spare>);

/// Iterates over payloads alone; stops when there are no more yet.
#[pyclass(module = "quire._native", frozen)]
pub struct Payloads(Arc<Kernel>);

#[pymethods]
impl Payloads {
    const fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    #[inline]
    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        read(py, &self.0, Ask::First, |_, bytes| buffer::bytes(py, bytes))
    }

    fn __repr__(slf: &Bound<'_, Self>) -> String {
        repr::handle(&slf.get_type(), &repr::tailer(slf.py(), &slf.get().0))
    }
}

/// The next message, converted by `take` from its index and bytes; long work is done detached.
#[inline]
fn read<R>(
    py: Python<'_>,
    tailer: &Kernel,
    ask: Ask,
    take: impl Fn(i64, &[u8]) -> quire_kernel::Result<R>,
) -> PyResult<Option<R>> {
    loop {
        let found =
            tailer.step(What::message(ask), How::Try, |found| take(found.index, found.bytes()));
        match found.map_err(to_py)? {
            Scan::Found(found) => return Ok(Some(found)),
            Scan::Nothing => return Ok(None),
            _ => {}
        }
        if !scan::prepare(py, tailer, ask)? {
            return Ok(None);
        }
    }
}

/// Adds payloads to `found` until there are `count`; checks signals regularly.
fn read_payloads<'py>(
    py: Python<'py>,
    tailer: &Kernel,
    reading: &mut Reading,
    count: usize,
    found: &mut Vec<Bound<'py, PyBytes>>,
) -> PyResult<()> {
    while found.len() < count {
        let some = count.min(found.len() + MESSAGES_BETWEEN_PAUSES);
        let take =
            |_, bytes: &[u8]| buffer::push(found, buffer::bytes(py, bytes)?).map(|()| Take::This);
        match tailer.read_batch(reading, some, How::Try, take).map_err(to_py)? {
            Scan::Found(()) if found.len() == count => {}
            Scan::Found(()) => py.check_signals()?,
            Scan::WouldWait if scan::prepare_more(py, tailer, reading)? => {}
            _ => break,
        }
    }
    Ok(())
}

impl Tailer {
    /// The kernel's tailer.
    pub fn kernel(&self) -> &Kernel {
        &self.0
    }

    /// The memory to reuse for batches; None for encrypted queues, whose decrypted bytes are kept
    /// no longer than Python keeps them.
    fn spare(&self) -> Option<Arc<Spare>> {
        let is_encrypted = self.0.queue().options().encryption.is_on();
        (!is_encrypted).then(|| Arc::clone(&self.1))
    }
}

/// How to handle deleted messages, by its name.
pub fn on_missing_named(on_missing: &str) -> PyResult<OnMissing> {
    OnMissing::by_name(on_missing).ok_or_else(|| {
        let expected = "'raise', 'warn' or 'skip'";
        PyValueError::new_err(format!("invalid on_missing={on_missing:?}: expected {expected}"))
    })
}

#[pymethods]
impl Tailer {
    #[new]
    #[pyo3(signature = (queue, name = None, *, on_missing = "warn", shared = false))]
    fn new(
        py: Python<'_>,
        queue: &Bound<'_, Queue>,
        name: Option<&str>,
        on_missing: &str,
        shared: bool,
    ) -> PyResult<Self> {
        let (queue, buffer) = (Arc::clone(&queue.get().kernel), queue.get().read_buffer());
        let opening = Opening { name, shared, on_missing: on_missing_named(on_missing)? };
        let tailer = detached(py, |may_wait| {
            Kernel::open_through(queue, opening, buffer, Signals::Handled(may_wait))
        });
        or_raise(py, tailer).map(|tailer| Self(tailer, Arc::default()))
    }

    #[doc = stub!("Tailer.name")]
    #[getter]
    fn name(&self) -> Option<&str> {
        self.0.name()
    }

    const fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __repr__(slf: &Bound<'_, Self>) -> String {
        repr::handle(&slf.get_type(), &repr::tailer(slf.py(), &slf.get().0))
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Excerpt>> {
        self.read(py)
    }

    #[doc = stub!("Tailer.payloads")]
    fn payloads(&self) -> Payloads {
        Payloads(Arc::clone(&self.0))
    }

    #[doc = stub!("Tailer.read")]
    #[inline]
    fn read(&self, py: Python<'_>) -> PyResult<Option<Excerpt>> {
        let fieldless = self.0.queue().is_fieldless();
        let excerpt = |index, bytes: &[u8]| {
            Ok(Excerpt::new(index, buffer::bytes(py, bytes)?.unbind(), fieldless))
        };
        read(py, &self.0, Ask::First, excerpt)
    }

    #[doc = stub!("Tailer.read_bytes")]
    fn read_bytes<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        read(py, &self.0, Ask::First, |_, bytes| buffer::bytes(py, bytes))
    }

    #[doc = stub!("Tailer.spin")]
    #[pyo3(signature = (timeout_s = None))]
    fn spin(&self, py: Python<'_>, timeout_s: Option<&Bound<'_, PyAny>>) -> PyResult<bool> {
        let tries = |looks| self.0.spin(How::Try, looks);
        spin::until_found_soon(py, timeout_s, tries, |may_wait| {
            Ok(matches!(self.0.spin(How::Wait(may_wait), spin::LOOKS)?, Scan::Found(())))
        })
    }

    #[doc = stub!("Tailer.read_text")]
    fn read_text<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyString>>> {
        decoding::one(py, &self.0, |bytes| text::of_message(py, bytes))
    }

    #[doc = stub!("Tailer.read_map")]
    fn read_map<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        decoding::one(py, &self.0, |bytes| decode::message_map(py, bytes))
    }

    #[doc = stub!("Tailer.read_message")]
    #[pyo3(signature = (cls = None, /))]
    fn read_message<'py>(
        &self,
        py: Python<'py>,
        cls: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let codec = cls.map(codec::of_class).transpose()?;
        let has_names = !self.0.queue().is_fieldless();
        decoding::one(py, &self.0, |bytes| match &codec {
            Some(codec) => codec.get().get_message(py, bytes, has_names),
            None => decode::named_message(py, bytes),
        })
    }

    #[doc = stub!("Tailer.read_messages")]
    #[pyo3(signature = (cls, count, /))]
    fn read_messages<'py>(
        &self,
        py: Python<'py>,
        cls: Option<&Bound<'py, PyAny>>,
        count: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyList>> {
        let count = integer("count", count)?;
        let codec = cls.map(codec::of_class).transpose()?;
        let has_names = !self.0.queue().is_fieldless();
        let messages = decoding::several(py, &self.0, count, |bytes| match &codec {
            Some(codec) => codec.get().get_message(py, bytes, has_names),
            None => decode::named_message(py, bytes),
        })?;
        buffer::list(py, messages).map_err(to_py)
    }

    #[pyo3(name = "_prepare")]
    fn prepare(&self, py: Python<'_>) -> PyResult<Option<bool>> {
        Ok(
            match or_raise(py, detached(py, |may_wait| scan::look(may_wait, &self.0, Ask::First)))?
            {
                Scan::Found(()) => Some(true),
                Scan::Nothing | Scan::Held(_) => Some(false),
                Scan::Paused | Scan::WouldWait => None,
            },
        )
    }

    #[doc = stub!("Tailer.release_resources")]
    fn release_resources(&self, py: Python<'_>) -> PyResult<()> {
        self.1.clear();
        or_raise(py, detached(py, |may_wait| self.0.release_resources(may_wait)))
    }

    #[doc = stub!("Tailer.read_many")]
    #[pyo3(signature = (count, /))]
    fn read_many<'py>(
        &self,
        py: Python<'py>,
        count: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyList>> {
        let count = integer("count", count)?;
        let (mut found, mut reading) = (Vec::new(), Reading::default());
        let read = read_payloads(py, &self.0, &mut reading, count, &mut found);
        let list = read.and_then(|()| buffer::list(py, found).map_err(to_py));
        scan::or_put_back(py, &self.0, &reading, list)
    }

    #[pyo3(name = "_read_columns", signature = (count, /, *, max_bytes = None, end = i64::MAX))]
    fn read_columns(
        &self,
        py: Python<'_>,
        count: &Bound<'_, PyAny>,
        max_bytes: Option<&Bound<'_, PyAny>>,
        end: i64,
    ) -> PyResult<Columns> {
        let count = integer("count", count)?;
        let mut columns = PayloadColumns::new(optional("max_bytes", max_bytes)?, self.spare());
        let mut reading = Reading::default();
        scan::batch(py, &self.0, &mut reading, |may_wait, reading| {
            self.0.read_batch(reading, count, How::Wait(may_wait), |index, bytes| {
                if index >= end || !columns.add(index, bytes) {
                    return Ok(Take::NotThis);
                }
                Ok(if index.saturating_add(1) >= end { Take::Last } else { Take::This })
            })
        })?;
        columns.finish(reading.taken).map_err(to_py)
    }

    #[pyo3(name = "_read_decoded", signature = (
        plan, count, *,
        max_bytes, keep_misfits = false, layout = "tables", end = None, payload = false, topic = None
    ))]
    #[expect(clippy::too_many_arguments, reason = "keywords of Python's")]
    fn read_decoded<'py>(
        &self,
        py: Python<'py>,
        plan: &Bound<'py, Plan>,
        count: &Bound<'py, PyAny>,
        max_bytes: &Bound<'py, PyAny>,
        keep_misfits: bool,
        layout: &str,
        end: Option<i64>,
        payload: bool,
        topic: Option<&str>,
    ) -> PyResult<columns::Read<'py>> {
        let (count, max_bytes) = (integer("count", count)?, integer("max_bytes", max_bytes)?);
        let wanted = Wanted { count, max_bytes, keep_misfits, layout, end, payload, topic };
        columns::read(py, &self.0, plan.get(), &wanted)
    }

    #[doc = stub!("Tailer.reading_document")]
    #[pyo3(signature = (*, include_metadata = false))]
    fn reading_document(&self, py: Python<'_>, include_metadata: bool) -> PyResult<ReadDocument> {
        ReadDocument::open(py, Source::Files(Arc::clone(&self.0)), include_metadata)
    }

    #[doc = stub!("Tailer.state")]
    #[getter]
    fn state(&self, py: Python<'_>) -> PyResult<&'static str> {
        detached(py, |may_wait| self.0.state(may_wait))
            .map(quire_kernel::chronicle::read::tailer::State::name)
            .map_err(to_py)
    }

    #[doc = stub!("Tailer.striding")]
    #[getter]
    fn striding(&self, py: Python<'_>) -> PyResult<bool> {
        or_raise(py, detached(py, |may_wait| self.0.is_striding(may_wait)))
    }

    #[setter]
    fn set_striding(&self, py: Python<'_>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let striding = flag("striding", value)?;
        or_raise(py, detached(py, |may_wait| self.0.set_striding(may_wait, striding)))
    }

    #[pyo3(name = "_set_topics", signature = (routes, /))]
    fn set_topics(&self, py: Python<'_>, routes: Option<Vec<Vec<u8>>>) -> PyResult<()> {
        let topics = routes
            .map(|routes| Topics::new(&routes))
            .transpose()
            .map_err(|fault| to_py(fault.into()))?;
        or_raise(py, detached(py, |may_wait| self.0.set_topics(may_wait, topics)))
    }

    #[getter(_topic_number)]
    fn topic_number(&self, py: Python<'_>) -> PyResult<Option<usize>> {
        or_raise(py, detached(py, |may_wait| self.0.topic(may_wait)))
    }

    #[doc = stub!("Tailer.commit")]
    fn commit(&self, py: Python<'_>) -> PyResult<()> {
        or_raise(py, detached(py, |may_wait| self.0.commit(may_wait)))
    }

    #[doc = stub!("Tailer.history")]
    #[getter]
    fn history(&self, py: Python<'_>) -> PyResult<Option<MessageHistory>> {
        let found = or_raise(py, detached(py, |may_wait| resume::history(&self.0, may_wait)))?;
        Ok(found.map(MessageHistory::from))
    }

    #[doc = stub!("Tailer.after_last_written")]
    #[pyo3(signature = (output, /))]
    fn after_last_written(&self, py: Python<'_>, output: &Bound<'_, Queue>) -> PyResult<()> {
        let output = &output.get().kernel;
        let search = or_raise(
            py,
            detached(py, |may_wait| LastWritten::new(self.0.queue(), output, may_wait)),
        )?;
        let found = scan::through(py, |may_wait| search.look(may_wait))?;
        or_raise(py, detached(py, |may_wait| search.go_past(&self.0, found, may_wait)))
    }

    #[doc = stub!("Tailer.close")]
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.1.clear();
        or_raise(py, detached(py, |may_wait| self.0.close(may_wait, true)))
    }
}

path_and_closed!(Tailer, |it| it.0.queue().path(), |it| it.0.is_closed());
tailer_waits!(Tailer);
tailer_moves!(Tailer, i64);
tailer_direction!(Tailer);
context_manager!(Tailer, |it, py, raised| {
    it.1.clear();
    or_raise(py, detached(py, |may_wait| it.0.close(may_wait, !raised)))
});
