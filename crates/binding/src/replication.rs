//! Batches of documents, read from a source's queue and written into a replica.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use quire_kernel::Error;
use quire_kernel::chronicle::append::appender::Appender as KernelAppender;
use quire_kernel::chronicle::format::batch::{Batch, ReplicaEnd};
use quire_kernel::chronicle::protocol::lock::append_lock::AppendLock;
use quire_kernel::chronicle::read::digest::{digest, digest_of_cycle};
use quire_kernel::chronicle::read::stored_position;
use quire_kernel::chronicle::read::tailer::{Scan, Tailer as KernelTailer};
use quire_kernel::os::interrupt::Signals;

use crate::buffer;
use crate::detached::detached;
use crate::error::{ReplicationError, or_raise, to_py};
use crate::handles::queue::Queue;
use crate::handles::tailer::Tailer;

/// The end of a replica as Python has it: next index, metadata after the last message, whether the
/// last cycle has ended.
type End = (i64, u32, bool);

const fn end_of(end: ReplicaEnd) -> End {
    (end.next, end.metadata, end.is_ended)
}

const fn kernel_end((next, metadata, is_ended): End) -> ReplicaEnd {
    ReplicaEnd { next, metadata, is_ended }
}

/// The end of an empty replica.
const START: ReplicaEnd = ReplicaEnd { next: 0, metadata: 0, is_ended: true };

#[doc = stub!("BatchReader")]
#[pyclass(module = "quire._native", frozen)]
pub struct BatchReader {
    tailer: Arc<KernelTailer>,
    end: Mutex<ReplicaEnd>,
}

#[pymethods]
impl BatchReader {
    #[new]
    #[pyo3(signature = (tailer, end, /))]
    fn new(py: Python<'_>, tailer: &Bound<'_, Tailer>, end: Option<End>) -> PyResult<Self> {
        let tailer = Arc::clone(&tailer.get().0);
        let from = end.map_or(START, kernel_end);
        let found = detached(py, |may_wait| match end {
            None => tailer.to_start(may_wait).map(|()| true),
            Some(_) => tailer.go_to_end_of_replica(may_wait, from),
        });
        if or_raise(py, found)? {
            return Ok(Self { tailer, end: Mutex::new(from) });
        }
        Err(ReplicationError::new_err(format!(
            "the replica ends where this queue has no message: next={:#x} metadata={} path={}",
            from.next,
            from.metadata,
            tailer.queue().path().display()
        )))
    }

    #[doc = stub!("BatchReader.read")]
    #[pyo3(signature = (most_bytes, /, *, until = None))]
    fn read<'py>(
        &self,
        py: Python<'py>,
        most_bytes: usize,
        until: Option<i64>,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let read = detached(py, |may_wait| {
            let mut end = lock(&self.end);
            let read = self.tailer.read_for_replica(may_wait, *end, most_bytes, until)?;
            let Scan::Found(sent) = read else { return Ok(None) };
            *end = sent.end;
            Ok(Some(sent.batch))
        });
        let batch = or_raise(py, read)?;
        batch.map(|batch| buffer::bytes(py, &batch).map_err(to_py)).transpose()
    }

    #[doc = stub!("BatchReader.end")]
    #[getter]
    fn end(&self, py: Python<'_>) -> End {
        end_of(py.detach(|| *lock(&self.end)))
    }
}

#[doc = stub!("keep_tailer")]
#[pyfunction]
#[pyo3(signature = (queue, name, index, version, /))]
pub fn keep_tailer(
    py: Python<'_>,
    queue: &Bound<'_, Queue>,
    name: &str,
    index: i64,
    version: i64,
) -> PyResult<bool> {
    let kernel = &queue.get().kernel;
    let kept = detached(py, |may_wait| {
        stored_position::keep(kernel, name, (index, version), Signals::Handled(may_wait))
    });
    or_raise(py, kept)
}

#[doc = stub!("BatchWriter")]
#[pyclass(module = "quire._native", frozen)]
pub struct BatchWriter {
    appender: Arc<KernelAppender>,
    lock: Mutex<Option<AppendLock>>,
}

#[pymethods]
impl BatchWriter {
    #[new]
    #[pyo3(signature = (queue, /))]
    fn new(py: Python<'_>, queue: &Bound<'_, Queue>) -> PyResult<Self> {
        let queue = queue.get();
        if queue.write_buffer().is_some() {
            let what = "a replica with buffer_mode='async': only its source appends";
            return Err(to_py(Error::Unsupported(what.to_owned())));
        }
        let made = detached(py, |may_wait| {
            let queue = Arc::clone(&queue.kernel);
            let appender =
                KernelAppender::of_accepted(Arc::clone(&queue), Signals::Handled(may_wait))?;
            Ok((appender, queue.take_append_lock()?))
        });
        let (appender, lock) = or_raise(py, made)?;
        Ok(Self { appender, lock: Mutex::new(Some(lock)) })
    }

    #[doc = stub!("BatchWriter.end")]
    #[getter]
    fn end(&self, py: Python<'_>) -> PyResult<Option<End>> {
        let end = detached(py, |_| self.appender.end_of_replica());
        Ok(or_raise(py, end)?.map(end_of))
    }

    #[doc = stub!("BatchWriter.settle")]
    fn settle(&self, py: Python<'_>) -> PyResult<()> {
        or_raise(py, detached(py, |may_wait| self.appender.settle(Signals::Handled(may_wait))))
    }

    #[doc = stub!("BatchWriter.apply")]
    #[pyo3(signature = (batch, /, *, time_ms = None))]
    fn apply(&self, py: Python<'_>, batch: &[u8], time_ms: Option<i64>) -> PyResult<End> {
        let parsed = Batch::parse(batch).map_err(|bad| {
            let (what, offset, length) = (bad.what, bad.offset, batch.len());
            ReplicationError::new_err(format!("{what}: offset={offset} length={length}"))
        })?;
        let applied = detached(py, |may_wait| {
            self.appender.apply(Signals::Handled(may_wait), time_ms, &parsed)
        });
        or_raise(py, applied).map(|()| end_of(parsed.end()))
    }

    #[doc = stub!("BatchWriter.forget_from")]
    #[pyo3(signature = (index, /))]
    fn forget_from(&self, py: Python<'_>, index: i64) -> PyResult<()> {
        let forgotten =
            detached(py, |may_wait| self.appender.forget_from(Signals::Handled(may_wait), index));
        or_raise(py, forgotten)
    }

    #[doc = stub!("BatchWriter.sync")]
    fn sync(&self, py: Python<'_>) -> PyResult<()> {
        or_raise(py, detached(py, |may_wait| self.appender.sync(may_wait)))
    }

    #[doc = stub!("BatchWriter.promote")]
    fn promote(&self, py: Python<'_>) -> PyResult<()> {
        let Some(lock) = py.detach(|| lock(&self.lock).take()) else {
            return Err(PyRuntimeError::new_err("the writer of a replica was closed"));
        };
        detached(py, |may_wait| self.appender.close(may_wait));
        lock.release().map_err(to_py)
    }

    #[doc = stub!("BatchWriter.close")]
    fn close(&self, py: Python<'_>) {
        detached(py, |may_wait| self.appender.close(may_wait));
        py.detach(|| drop(lock(&self.lock).take()));
    }
}

#[doc = stub!("cycle_digest")]
#[pyfunction]
#[pyo3(signature = (queue, place, /))]
pub fn cycle_digest<'py>(
    py: Python<'py>,
    queue: &Bound<'py, Queue>,
    place: End,
) -> PyResult<Option<Bound<'py, PyBytes>>> {
    let queue = &queue.get().kernel;
    let found = detached(py, |may_wait| digest(queue, kernel_end(place), may_wait));
    Ok(or_raise(py, found)?.map(|digest| PyBytes::new(py, &digest)))
}

#[doc = stub!("whole_cycle_digest")]
#[pyfunction]
#[pyo3(signature = (queue, cycle, /))]
pub fn whole_cycle_digest<'py>(
    py: Python<'py>,
    queue: &Bound<'py, Queue>,
    cycle: i32,
) -> PyResult<Option<(End, Bound<'py, PyBytes>)>> {
    let queue = &queue.get().kernel;
    let found = detached(py, |may_wait| digest_of_cycle(queue, cycle, may_wait));
    Ok(or_raise(py, found)?.map(|(end, digest)| (end_of(end), PyBytes::new(py, &digest))))
}

context_manager!(BatchWriter);

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
