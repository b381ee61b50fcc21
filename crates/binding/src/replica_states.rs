//! The state of a queue's replicas, as shared by the queue's processes.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use pyo3::prelude::*;
use quire_kernel::os::clock;
use quire_kernel::os::interrupt::Signals;
use quire_kernel::os::own_directory::OwnDirectory;
use quire_kernel::replicas::side_file::{ReplicaStates as KernelStates, SourceLock};
use quire_kernel::replicas::wait::Waited;

use crate::detached::detached;
use crate::error::{or_raise, to_py};
use crate::handles::promise::quorum_of;
use crate::handles::queue::Queue;

/// Name, address, member, connected, level, acknowledged index, sent index, time.
type Row = (String, String, bool, bool, &'static str, Option<i64>, Option<i64>, u64);

#[doc = stub!("ReplicaStates")]
#[pyclass(module = "quire._native", frozen)]
pub struct ReplicaStates {
    states: KernelStates,
    source: Mutex<Option<SourceLock>>,
}

impl ReplicaStates {
    const fn of(states: KernelStates) -> Self {
        Self { states, source: Mutex::new(None) }
    }
}

#[pymethods]
impl ReplicaStates {
    #[doc = stub!("ReplicaStates.open_or_create")]
    #[staticmethod]
    #[pyo3(signature = (directory, /, *, mode = 0o600))]
    fn open_or_create(py: Python<'_>, directory: PathBuf, mode: u32) -> PyResult<Self> {
        let opened = detached(py, |may_wait| {
            let directory = OwnDirectory::open(&directory)?;
            KernelStates::open_or_create(directory, mode, Signals::Handled(may_wait))
        });
        or_raise(py, opened).map(Self::of)
    }

    #[doc = stub!("ReplicaStates.of_queue")]
    #[staticmethod]
    #[pyo3(signature = (queue, /, *, mode = 0o600))]
    fn of_queue(py: Python<'_>, queue: &Bound<'_, Queue>, mode: u32) -> PyResult<Self> {
        let queue = &queue.get().kernel;
        let opened = detached(py, |may_wait| {
            let directory = queue.own_directory()?;
            KernelStates::open_or_create(directory, mode, Signals::Handled(may_wait))
        });
        or_raise(py, opened).map(Self::of)
    }

    #[doc = stub!("ReplicaStates.open_existing")]
    #[staticmethod]
    #[pyo3(signature = (directory, /, *, read_only = false))]
    fn open_existing(
        py: Python<'_>,
        directory: PathBuf,
        read_only: bool,
    ) -> PyResult<Option<Self>> {
        let found = detached(py, |_| {
            if read_only {
                KernelStates::open_existing(&directory, false)
            } else {
                KernelStates::open_to_wait(&directory)
            }
        });
        Ok(or_raise(py, found)?.map(Self::of))
    }

    #[doc = stub!("ReplicaStates.lease_end")]
    #[getter]
    fn lease_end(&self) -> u64 {
        self.states.lease_end()
    }

    #[doc = stub!("ReplicaStates.set_lease_end")]
    #[pyo3(signature = (end_ns, /))]
    fn set_lease_end(&self, end_ns: u64) -> PyResult<()> {
        self.states.set_lease_end(end_ns).map_err(to_py)
    }

    #[doc = stub!("ReplicaStates.epoch")]
    #[getter]
    fn epoch(&self) -> u64 {
        self.states.epoch()
    }

    #[doc = stub!("ReplicaStates.begin_epoch")]
    #[pyo3(signature = (epoch, /))]
    fn begin_epoch(&self, epoch: u64) -> PyResult<()> {
        self.states.begin_epoch(epoch).map_err(to_py)
    }

    #[doc = stub!("ReplicaStates.note_cut")]
    #[pyo3(signature = (last, /))]
    fn note_cut(&self, last: Option<i64>) -> PyResult<()> {
        self.states.note_cut(last).map_err(to_py)
    }

    #[doc = stub!("ReplicaStates.lock_source")]
    fn lock_source(&self, py: Python<'_>) -> PyResult<()> {
        let taken = or_raise(py, detached(py, |may_wait| self.states.lock_source(may_wait)))?;
        *self.source.lock().unwrap_or_else(PoisonError::into_inner) = Some(taken);
        Ok(())
    }

    #[doc = stub!("ReplicaStates.unlock_source")]
    fn unlock_source(&self) {
        drop(self.source.lock().unwrap_or_else(PoisonError::into_inner).take());
    }

    #[doc = stub!("ReplicaStates.slot_of")]
    #[pyo3(signature = (name, address, /))]
    fn slot_of(&self, name: &str, address: &str) -> PyResult<u64> {
        self.states.slot_of(name, address).map_err(to_py)
    }

    #[doc = stub!("ReplicaStates.note_connection")]
    #[pyo3(signature = (slot, /, *, is_connected, is_synced))]
    fn note_connection(&self, slot: u64, is_connected: bool, is_synced: bool) -> PyResult<()> {
        self.states.note_connection(slot, is_connected, is_synced).map_err(to_py)
    }

    #[doc = stub!("ReplicaStates.note")]
    #[pyo3(signature = (slot, /, *, sent, acknowledged, time_ns))]
    fn note(
        &self,
        slot: u64,
        sent: Option<i64>,
        acknowledged: Option<i64>,
        time_ns: u64,
    ) -> PyResult<bool> {
        self.states.note(slot, sent, acknowledged, time_ns).map_err(to_py)
    }

    #[doc = stub!("ReplicaStates.set_member")]
    #[pyo3(signature = (slot, is_member, /))]
    fn set_member(&self, slot: u64, is_member: bool) -> PyResult<()> {
        self.states.set_member(slot, is_member).map_err(to_py)
    }

    #[doc = stub!("ReplicaStates.forget")]
    #[pyo3(signature = (name, /))]
    fn forget(&self, name: &str) -> PyResult<bool> {
        self.states.forget(name).map_err(to_py)
    }

    #[doc = stub!("ReplicaStates.replicas")]
    fn replicas(&self) -> PyResult<Vec<Row>> {
        let found = self.states.replicas().map_err(to_py)?;
        let row = |it: quire_kernel::replicas::side_file::Replica| {
            let level = if it.is_synced { "synced" } else { "stored" };
            let (sent, time) = (it.sent, it.time_ns);
            (it.name, it.address, it.is_member, it.is_connected, level, it.acknowledged, sent, time)
        };
        Ok(found.into_iter().map(row).collect())
    }

    #[doc = stub!("ReplicaStates.acknowledged")]
    #[pyo3(signature = (quorum, /))]
    fn acknowledged(&self, quorum: &Bound<'_, PyAny>) -> PyResult<Option<i64>> {
        Ok(self.states.acknowledged(quorum_of(quorum)?))
    }

    #[doc = stub!("ReplicaStates.reached")]
    #[pyo3(signature = (quorum, /))]
    fn reached(&self, quorum: &Bound<'_, PyAny>) -> PyResult<(Option<i64>, (u64, u64))> {
        let (acknowledged, history) = self.states.reached(quorum_of(quorum)?);
        Ok((acknowledged, (history.epoch, history.cuts)))
    }

    #[doc = stub!("ReplicaStates.elsewhere")]
    #[getter]
    fn elsewhere(&self) -> Option<i64> {
        self.states.elsewhere()
    }

    #[doc = stub!("ReplicaStates.note_elsewhere")]
    #[pyo3(signature = (index, /))]
    fn note_elsewhere(&self, index: i64) -> PyResult<()> {
        self.states.note_elsewhere(index).map_err(to_py)
    }

    #[doc = stub!("ReplicaStates.members")]
    #[getter]
    fn members(&self) -> usize {
        self.states.members()
    }

    #[doc = stub!("ReplicaStates.wait")]
    #[pyo3(signature = (index, quorum, /, *, timeout_s = None))]
    fn wait(
        &self,
        py: Python<'_>,
        index: i64,
        quorum: &Bound<'_, PyAny>,
        timeout_s: Option<f64>,
    ) -> PyResult<bool> {
        let quorum = quorum_of(quorum)?;
        let timeout = timeout_s.map(|it| Duration::try_from_secs_f64(it).unwrap_or(Duration::MAX));
        let history = self.states.history();
        let waited = detached(py, |may_wait| {
            self.states.wait(index, history, quorum, timeout, Signals::Handled(may_wait))
        });
        Ok(or_raise(py, waited)? == Waited::Acknowledged)
    }
}

#[doc = stub!("boot_time_ns")]
#[pyfunction]
pub fn boot_time_ns() -> u64 {
    clock::boot_time_ns()
}

#[doc = stub!("boot_id")]
#[pyfunction]
pub fn boot_id() -> u64 {
    clock::boot_id()
}
