use std::ffi::OsString;
use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};
use quire_kernel::replay;
use quire_kernel::tailer::{Ask, AtOnce, Direction, OpenDocument, Tailer as Kernel};
use quire_kernel::wire::reader;
use quire_kernel::wire::topic::Topics;

use crate::buffer::Buffer;
use crate::calls::history::MessageHistory;
use crate::columns::{self, Plan, Wanted};
use crate::error::{to_py, told};
use crate::excerpt::Excerpt;
use crate::queue::Queue;
use crate::read_document::ReadDocument;
use crate::wire::{codec, failure, objects};

/// Arrow offsets of 32 bits end here.
const BATCH_BYTES_MAX: usize = i32::MAX as usize;
const DIRECTIONS: [(&str, Direction); 3] =
    [("forward", Direction::Forward), ("backward", Direction::Backward), ("none", Direction::None)];

/// Reads messages.
#[pyclass(module = "quire._native", frozen, subclass)]
pub struct Tailer(pub Arc<Kernel>);

/// Iterates over payloads alone.
#[pyclass(module = "quire._native", frozen)]
pub struct Payloads(Arc<Kernel>);

#[pymethods]
impl Payloads {
    const fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    #[inline]
    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        read(py, &self.0, Ask::First, |_, bytes| Ok(PyBytes::new(py, bytes)))
    }
}

/// The next message as `take` makes it of its index and bytes; what takes long is done with the
/// interpreter let go.
#[inline]
fn read<R>(
    py: Python<'_>,
    tailer: &Kernel,
    ask: Ask,
    take: impl Fn(i64, &[u8]) -> quire_kernel::Result<R>,
) -> PyResult<Option<R>> {
    loop {
        match tailer.read_at_once(ask, &take).map_err(to_py)? {
            AtOnce::Found(found) => return Ok(Some(found)),
            AtOnce::Nothing => return Ok(None),
            AtOnce::Unknown => {}
        }
        if !told(py, py.detach(|| tailer.prepare(ask)))? {
            return Ok(None);
        }
    }
}

/// The next document, stepped over; what takes long is done with the interpreter let go.
#[inline]
pub fn take(
    py: Python<'_>,
    tailer: &Kernel,
    include_metadata: bool,
) -> PyResult<Option<OpenDocument>> {
    match tailer.take_at_once(include_metadata).map_err(to_py)? {
        AtOnce::Found(open) => Ok(Some(open)),
        AtOnce::Nothing => Ok(None),
        AtOnce::Unknown => told(py, py.detach(|| tailer.take_document(include_metadata))),
    }
}

/// What `decode` makes of the next message, in place and without the tailer's lock: it may call
/// Python code. If it fails the tailer goes back to it.
fn decoded<R>(
    py: Python<'_>,
    tailer: &Kernel,
    decode: impl FnOnce(&[u8]) -> failure::Result<R>,
) -> PyResult<Option<R>> {
    let Some(open) = take(py, tailer, false)? else { return Ok(None) };
    let found = objects::placed(decode(open.payload()), tailer, &open);
    if found.is_err() {
        // A tailer that was closed meanwhile has no position; the error is what matters.
        let _ = py.detach(|| tailer.return_to(&open));
    }
    found.map(Some)
}

impl Tailer {
    /// The kernel's.
    pub fn kernel(&self) -> &Kernel {
        &self.0
    }
}

#[pymethods]
impl Tailer {
    #[new]
    #[pyo3(signature = (queue, name = None))]
    fn new(py: Python<'_>, queue: &Bound<'_, Queue>, name: Option<&str>) -> PyResult<Self> {
        let queue = Arc::clone(&queue.get().kernel);
        let tailer = py.detach(|| Kernel::new(queue, name));
        told(py, tailer).map(Self)
    }

    #[getter]
    fn path(&self) -> OsString {
        self.0.queue().path().as_os_str().to_owned()
    }

    #[getter]
    fn name(&self) -> Option<&str> {
        self.0.name()
    }

    #[getter]
    fn closed(&self) -> bool {
        self.0.is_closed()
    }

    const fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Excerpt>> {
        self.read(py)
    }

    fn payloads(&self) -> Payloads {
        Payloads(Arc::clone(&self.0))
    }

    #[inline]
    fn read(&self, py: Python<'_>) -> PyResult<Option<Excerpt>> {
        let excerpt =
            |index, bytes: &[u8]| Ok(Excerpt::new(index, PyBytes::new(py, bytes).unbind()));
        read(py, &self.0, Ask::First, excerpt)
    }

    fn read_bytes<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        read(py, &self.0, Ask::First, |_, bytes| Ok(PyBytes::new(py, bytes)))
    }

    fn read_text(&self, py: Python<'_>) -> PyResult<Option<String>> {
        decoded(py, &self.0, |bytes| Ok(reader::text(bytes)?.into_owned()))
    }

    fn read_map<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        decoded(py, &self.0, |bytes| objects::message_map(py, bytes))
    }

    #[pyo3(signature = (cls = None, /))]
    fn read_message<'py>(
        &self,
        py: Python<'py>,
        cls: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let codec = cls.map(codec::of_class).transpose()?;
        let has_names = !self.0.queue().is_fieldless();
        decoded(py, &self.0, |bytes| match &codec {
            Some(codec) => codec.get().get_message(py, bytes, has_names),
            None => objects::named_message(py, bytes),
        })
    }

    #[pyo3(signature = (count, /))]
    fn read_many<'py>(&self, py: Python<'py>, count: usize) -> PyResult<Bound<'py, PyList>> {
        let mut found = Vec::new();
        let mut ask = Ask::First;
        while found.len() < count {
            let left = count - found.len();
            let taken = |bytes: &[u8]| found.push(PyBytes::new(py, bytes));
            let more = match self.0.read_many_at_once(ask, left, taken) {
                Ok((some, AtOnce::Unknown)) => {
                    ask = if some > 0 { Ask::OfBatch } else { ask };
                    py.detach(|| self.0.prepare(ask))
                }
                Ok(_) => Ok(false),
                Err(error) => Err(error),
            };
            match told(py, more) {
                Ok(true) => ask = Ask::OfBatch,
                // What was read comes first; the next call meets the error again.
                Err(error) if found.is_empty() => return Err(error),
                _ => break,
            }
        }
        PyList::new(py, found)
    }

    #[pyo3(signature = (count, /, *, max_bytes = BATCH_BYTES_MAX))]
    fn read_columns(
        &self,
        py: Python<'_>,
        count: usize,
        max_bytes: usize,
    ) -> PyResult<(usize, Buffer, Buffer, Buffer)> {
        let read = py.detach(|| {
            let mut indexes = Vec::new();
            let mut offsets = 0_i32.to_le_bytes().to_vec();
            let mut data = Vec::new();
            let count = self.0.read_many(count, |index, bytes| {
                let Some(end) = fits(data.len(), bytes.len()) else { return false };
                if !indexes.is_empty() && data.len() + bytes.len() > max_bytes {
                    return false;
                }
                indexes.extend_from_slice(&index.to_le_bytes());
                data.extend_from_slice(bytes);
                offsets.extend_from_slice(&end.to_le_bytes());
                true
            })?;
            Ok((count, indexes, offsets, data))
        });
        let (count, indexes, offsets, data) = told(py, read)?;
        Ok((count, Buffer::column(indexes), Buffer::column(offsets), Buffer::column(data)))
    }

    #[pyo3(signature = (
        plan, count, *,
        max_bytes, keep_misfits = false, layout = "tables", end = None, payload = false, topic = None
    ))]
    #[expect(clippy::too_many_arguments, reason = "keywords of Python's")]
    fn read_decoded<'py>(
        &self,
        py: Python<'py>,
        plan: &Bound<'py, Plan>,
        count: usize,
        max_bytes: usize,
        keep_misfits: bool,
        layout: &str,
        end: Option<i64>,
        payload: bool,
        topic: Option<&str>,
    ) -> PyResult<columns::Read<'py>> {
        let wanted = Wanted { count, max_bytes, keep_misfits, layout, end, payload, topic };
        columns::read(py, &self.0, plan.get(), &wanted)
    }

    #[pyo3(signature = (*, include_metadata = false))]
    fn reading_document(&self, py: Python<'_>, include_metadata: bool) -> PyResult<ReadDocument> {
        ReadDocument::open(py, Arc::clone(&self.0), include_metadata)
    }

    #[getter]
    fn index(&self, py: Python<'_>) -> PyResult<i64> {
        told(py, py.detach(|| self.0.index()))
    }

    #[getter]
    fn state(&self, py: Python<'_>) -> PyResult<&'static str> {
        py.detach(|| self.0.state()).map(quire_kernel::tailer::State::name).map_err(to_py)
    }

    #[getter]
    fn direction(&self, py: Python<'_>) -> PyResult<&'static str> {
        let direction = py.detach(|| self.0.direction()).map_err(to_py)?;
        let known = DIRECTIONS.iter().find(|(_, known)| *known == direction);
        Ok(known.map_or("forward", |(name, _)| name))
    }

    #[setter]
    fn set_direction(&self, py: Python<'_>, value: &str) -> PyResult<()> {
        let known = DIRECTIONS.iter().find(|(name, _)| *name == value);
        let (_, direction) = known.ok_or_else(|| {
            let known = "forward, backward, none";
            PyValueError::new_err(format!("no such direction: direction={value} known={known}"))
        })?;
        told(py, py.detach(|| self.0.set_direction(*direction)))
    }

    #[pyo3(signature = (routes, /))]
    fn set_topics(&self, py: Python<'_>, routes: Option<Vec<Vec<u8>>>) -> PyResult<()> {
        let topics = routes
            .map(|routes| Topics::new(&routes))
            .transpose()
            .map_err(|fault| to_py(fault.into()))?;
        told(py, py.detach(|| self.0.set_topics(topics)))
    }

    #[getter]
    fn topic_number(&self, py: Python<'_>) -> PyResult<Option<usize>> {
        told(py, py.detach(|| self.0.topic()))
    }

    fn commit(&self, py: Python<'_>) -> PyResult<()> {
        told(py, py.detach(|| self.0.commit()))
    }

    fn to_start(&self, py: Python<'_>) -> PyResult<()> {
        told(py, py.detach(|| self.0.to_start()))
    }

    fn to_end(&self, py: Python<'_>) -> PyResult<()> {
        told(py, py.detach(|| self.0.to_end()))
    }

    #[getter]
    fn last_read_index(&self, py: Python<'_>) -> PyResult<Option<i64>> {
        told(py, py.detach(|| self.0.last_read_index()))
    }

    #[getter]
    fn history(&self, py: Python<'_>) -> PyResult<Option<MessageHistory>> {
        let found = told(py, py.detach(|| replay::history(&self.0)))?;
        Ok(found.map(MessageHistory::from))
    }

    #[pyo3(signature = (output, /))]
    fn after_last_written(&self, py: Python<'_>, output: &Bound<'_, Queue>) -> PyResult<()> {
        let output = &output.get().kernel;
        told(py, py.detach(|| replay::after_last_written(&self.0, output)))
    }

    #[pyo3(signature = (index, /))]
    fn move_to_index(&self, py: Python<'_>, index: i64) -> PyResult<bool> {
        told(py, py.detach(|| self.0.move_to_index(index)))
    }

    fn close(&self, py: Python<'_>) -> PyResult<()> {
        told(py, py.detach(|| self.0.close(true)))
    }

    fn __enter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    #[pyo3(signature = (exc_type, exc, traceback, /))]
    fn __exit__(
        &self,
        py: Python<'_>,
        exc_type: Option<Bound<'_, PyAny>>,
        exc: Option<Bound<'_, PyAny>>,
        traceback: Option<Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let _ = (exc, traceback);
        let finished = exc_type.is_none();
        told(py, py.detach(|| self.0.close(finished)))
    }
}

/// The offset behind `more` bytes, while it fits.
fn fits(length: usize, more: usize) -> Option<i32> {
    let end = length.checked_add(more).filter(|end| *end <= BATCH_BYTES_MAX)?;
    i32::try_from(end).ok()
}
