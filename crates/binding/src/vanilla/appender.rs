use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyString;
use quire_kernel::vanilla::{Consumption, Record, VanillaAppender as Kernel};

use super::excerpt_writer::ExcerptWriter;
use super::queue::VanillaQueue;
use crate::arguments::{integer, optional};
use crate::buffer::Borrowed;
use crate::detached::detached;
use crate::error::{log_warnings, or_raise};
use crate::handles::clock::QueueClock;
use crate::handles::column::Column;
use crate::handles::payload::{Message, SMALL, in_batches};
use crate::handles::scan::STEP;
use crate::repr;
use crate::values::failure::Failure;
use quire_wire::writer::stored_text;

/// The claim word of an unclaimed message.
const FREE: &[u8] = &[0; 4];

#[doc = stub!("VanillaAppender")]
#[pyclass(module = "quire._native", frozen, subclass)]
pub struct VanillaAppender {
    pub kernel: Arc<Kernel>,
    pub clock: Arc<QueueClock>,
}

#[pymethods]
impl VanillaAppender {
    #[new]
    #[pyo3(signature = (queue, thread_id = None))]
    fn new(
        py: Python<'_>,
        queue: &Bound<'_, VanillaQueue>,
        thread_id: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let queue = queue.get();
        let thread_id: Option<i64> = optional("thread_id", thread_id)?;
        let tid =
            thread_id.map(|id| u32::try_from(id).map_err(|_| bad_thread_id(id))).transpose()?;
        let kernel = or_raise(py, py.detach(|| Kernel::new(Arc::clone(&queue.kernel), tid)))?;
        Ok(Self { kernel, clock: Arc::clone(&queue.clock) })
    }

    #[doc = stub!("VanillaAppender.write_bytes")]
    #[pyo3(signature = (payload, /))]
    fn write_bytes(&self, py: Python<'_>, payload: &Bound<'_, PyAny>) -> PyResult<i64> {
        self.write(py, Message::any(payload)?.bytes())
    }

    #[doc = stub!("VanillaAppender.write_text")]
    #[pyo3(signature = (text, /))]
    fn write_text(&self, py: Python<'_>, text: &Bound<'_, PyString>) -> PyResult<i64> {
        let text = text.to_cow()?;
        let stored = stored_text(text.as_bytes()).map_err(Failure::from)?;
        self.write(py, stored.as_deref().unwrap_or(text.as_bytes()))
    }

    #[doc = stub!("VanillaAppender.write_many")]
    #[pyo3(signature = (payloads, /))]
    fn write_many(&self, py: Python<'_>, payloads: &Bound<'_, PyAny>) -> PyResult<Option<i64>> {
        in_batches(
            payloads,
            |it| Message::any(it),
            |messages| self.write_all(py, messages.len(), |number| Ok(messages[number].bytes())),
        )
    }

    #[pyo3(name = "_write_column", signature = (offsets, data, *, count, start, wide))]
    fn write_column(
        &self,
        py: Python<'_>,
        offsets: &Bound<'_, PyAny>,
        data: &Bound<'_, PyAny>,
        count: usize,
        start: usize,
        wide: bool,
    ) -> PyResult<Option<i64>> {
        let (offsets, data) = (Borrowed::new(offsets)?, Borrowed::new(data)?);
        // Empty messages are allowed here.
        let column =
            Column { offsets: offsets.bytes(), data: data.bytes(), start, wide, text: true };
        or_raise(py, py.detach(|| column.check(count)))?;
        self.write_all(py, count, |number| column.element(number))
    }

    #[doc = stub!("VanillaAppender.writing_excerpt")]
    #[pyo3(signature = (*, synchronous = None, claimable = None, capacity = None))]
    fn writing_excerpt(
        &self,
        synchronous: Option<bool>,
        claimable: Option<bool>,
        capacity: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<ExcerptWriter> {
        let is_queue = self.is_queue();
        if is_queue && claimable == Some(false) {
            return Err(PyValueError::new_err(
                "every message of a queue with consumption='queue' has a claim word: claimable=False",
            ));
        }
        let capacity: Option<u64> = capacity.map(|given| integer("capacity", given)).transpose()?;
        Ok(ExcerptWriter::new(
            Arc::clone(&self.kernel),
            Arc::clone(&self.clock),
            synchronous.unwrap_or(false),
            claimable.unwrap_or(is_queue),
            capacity.unwrap_or(0),
        ))
    }

    #[doc = stub!("VanillaAppender.last_index_appended")]
    #[getter]
    fn last_index_appended(&self, py: Python<'_>) -> PyResult<Option<i64>> {
        or_raise(py, detached(py, |may_wait| self.kernel.last_index_appended(may_wait)))
    }

    #[doc = stub!("VanillaAppender.sync")]
    fn sync(&self, py: Python<'_>) -> PyResult<()> {
        or_raise(py, detached(py, |may_wait| self.kernel.sync(may_wait)))
    }

    #[doc = stub!("VanillaAppender.close")]
    fn close(&self, py: Python<'_>) {
        detached(py, |may_wait| self.kernel.close(may_wait));
    }

    fn __repr__(slf: &Bound<'_, Self>) -> String {
        let kernel = &slf.get().kernel;
        repr::raw_handle(slf, kernel.queue().path(), None, kernel.is_closed())
    }
}

path_and_closed!(VanillaAppender, |it| it.kernel.queue().path(), |it| it.kernel.is_closed());
context_manager!(VanillaAppender);

impl VanillaAppender {
    fn is_queue(&self) -> bool {
        self.kernel.queue().options().consumption == Consumption::Queue
    }

    fn record<'a>(&self, body: &'a [u8]) -> Record<'a> {
        let head = if self.is_queue() { FREE } else { &[] };
        Record { parts: [head, body], ..Record::default() }
    }

    fn write(&self, py: Python<'_>, body: &[u8]) -> PyResult<i64> {
        let now = self.clock.now_ms(py)?;
        let record = self.record(body);
        if body.len() <= SMALL
            && let Some(index) = or_raise(py, self.kernel.try_append(now, record))?
        {
            return Ok(index);
        }
        or_raise(py, detached(py, |may_wait| self.kernel.append(may_wait, now, record)))
    }

    fn write_all<'a>(
        &self,
        py: Python<'_>,
        count: usize,
        body: impl Fn(usize) -> quire_kernel::Result<&'a [u8]> + Send + Sync,
    ) -> PyResult<Option<i64>> {
        let mut last = None;
        for from in (0..count).step_by(STEP) {
            let now = self.clock.now_ms(py)?;
            let some = STEP.min(count - from);
            last = or_raise(
                py,
                detached(py, |may_wait| {
                    let record = |number| Ok(self.record(body(from + number)?));
                    self.kernel.append_all(may_wait, now, some, record)
                }),
            )?;
            log_warnings(py)?;
            py.check_signals()?;
        }
        Ok(last)
    }
}

#[cold]
fn bad_thread_id(id: i64) -> PyErr {
    PyValueError::new_err(format!("invalid thread_id={id}: expected an integer of 24 bits at most"))
}
