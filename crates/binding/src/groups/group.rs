use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use quire_kernel::groups::delivered::{self, Changed, Delivered};
use quire_kernel::groups::group::{self, Backlog, Described, Group as Kernel};
use quire_kernel::groups::protocol::file::{Replaced, Shape};
use quire_kernel::groups::replicated::{self, Keeping};
use quire_kernel::os::interrupt::Signals;

use super::member::GroupMember;
use crate::detached::detached;
use crate::error::{or_raise, to_py};

#[doc = stub!("Group")]
#[pyclass(module = "quire._native", frozen, subclass)]
pub struct Group {
    kernel: Arc<Kernel>,
}

#[pymethods]
impl Group {
    #[new]
    #[pyo3(signature = (directory, name, *, keyed = false, step = 1, file_mode = 0o600))]
    fn new(
        directory: PathBuf,
        name: &str,
        keyed: bool,
        step: u64,
        file_mode: u32,
    ) -> PyResult<Self> {
        let shape = Shape { keyed, step, start: 0, known: 0 };
        let kernel = Kernel::new(&directory, name, shape, file_mode).map_err(to_py)?;
        Ok(Self { kernel: Arc::new(kernel) })
    }

    #[doc = stub!("Group.name")]
    #[getter]
    fn name(&self) -> &str {
        self.kernel.name()
    }

    #[getter]
    fn _path(&self) -> OsString {
        self.kernel.path().as_os_str().to_owned()
    }

    #[pyo3(name = "_join", signature = (name, ack_timeout_ms, end, /))]
    fn join(
        &self,
        py: Python<'_>,
        name: &str,
        ack_timeout_ms: u64,
        end: u64,
    ) -> PyResult<GroupMember> {
        let joined = detached(py, |may_wait| self.kernel.join(name, ack_timeout_ms, end, may_wait));
        or_raise(py, joined).map(|member| GroupMember(Arc::new(member)))
    }

    #[pyo3(name = "_reset", signature = (start, end, /))]
    fn reset(&self, py: Python<'_>, start: u64, end: u64) -> PyResult<()> {
        or_raise(py, detached(py, |may_wait| self.kernel.reset(start, end, may_wait)))
    }

    #[pyo3(name = "_delete")]
    fn delete(&self, py: Python<'_>) -> PyResult<bool> {
        or_raise(py, detached(py, |may_wait| self.kernel.delete(may_wait)))
    }
}

type BacklogRow = (u64, u64, u64, Option<u64>);

#[doc = stub!("group_backlog")]
#[pyfunction]
#[pyo3(signature = (file, /))]
pub fn group_backlog(py: Python<'_>, file: PathBuf) -> PyResult<Option<BacklogRow>> {
    let found = or_raise(py, py.detach(|| group::backlog(&file)))?;
    Ok(found.map(|Backlog { next, unacknowledged, lowest, oldest_ms }| {
        (next, unacknowledged, lowest, oldest_ms)
    }))
}

#[doc = stub!("group_tails")]
#[pyfunction]
#[pyo3(signature = (file, /))]
pub fn group_tails(py: Python<'_>, file: PathBuf) -> PyResult<Vec<(u64, u64)>> {
    let found = or_raise(py, py.detach(|| group::tails(&file)))?;
    Ok(found.into_iter().map(|tail| (tail.index, tail.hash)).collect())
}

/// A message's index, its delivery count, the name and pid of the member that holds it, since when,
/// the time left, its delay, and why it is delivered again.
type DeliveredRow =
    (u64, u8, Option<(String, u32)>, Option<u64>, Option<u64>, u64, Option<&'static str>);

#[doc = stub!("group_delivered")]
#[pyfunction]
#[pyo3(signature = (file, /))]
pub fn group_delivered(py: Python<'_>, file: PathBuf) -> PyResult<Vec<DeliveredRow>> {
    let found = or_raise(py, py.detach(|| delivered::delivered(&file)))?;
    let row = |it: Delivered| {
        (it.index, it.count, it.owner, it.since_ms, it.left_ms, it.delay_ms, it.cause.name())
    };
    Ok(found.into_iter().map(row).collect())
}

/// How many messages were changed, or why none was.
const fn changed(found: Changed) -> (u32, &'static str) {
    match found {
        Changed::Done(count) => (count, ""),
        Changed::NotClaimed => (0, "no consumer has it"),
        Changed::TooLate => (0, "too late"),
    }
}

#[doc = stub!("group_release")]
#[pyfunction]
#[pyo3(signature = (file, index, delay_ms, /))]
pub fn group_release(
    py: Python<'_>,
    file: PathBuf,
    index: u64,
    delay_ms: u64,
) -> PyResult<(u32, &'static str)> {
    or_raise(py, py.detach(|| delivered::release(&file, index, delay_ms))).map(changed)
}

#[doc = stub!("group_extend")]
#[pyfunction]
#[pyo3(signature = (file, index, timeout_ms, /))]
pub fn group_extend(
    py: Python<'_>,
    file: PathBuf,
    index: u64,
    timeout_ms: u64,
) -> PyResult<(u32, &'static str)> {
    or_raise(py, py.detach(|| delivered::extend(&file, index, timeout_ms))).map(changed)
}

#[doc = stub!("group_snapshot")]
#[pyfunction]
#[pyo3(signature = (file, before, /))]
pub fn group_snapshot(
    py: Python<'_>,
    file: PathBuf,
    before: u64,
) -> PyResult<Option<Bound<'_, PyBytes>>> {
    let found = or_raise(py, py.detach(|| replicated::snapshot(&file, before)))?;
    Ok(found.map(|state| PyBytes::new(py, &state)))
}

#[doc = stub!("group_is_kept")]
#[pyfunction]
#[pyo3(signature = (file, /))]
pub fn group_is_kept(py: Python<'_>, file: PathBuf) -> PyResult<bool> {
    or_raise(py, py.detach(|| replicated::is_kept(&file)))
}

#[doc = stub!("group_keep")]
#[pyfunction]
#[pyo3(signature = (directory, name, state, /, *, kept = true, known = 0, file_mode = 0o600))]
#[allow(clippy::too_many_arguments)]
pub fn group_keep(
    py: Python<'_>,
    directory: PathBuf,
    name: &str,
    state: &[u8],
    kept: bool,
    known: u64,
    file_mode: u32,
) -> PyResult<bool> {
    let keeping = Keeping { is_kept: kept, known, file_mode };
    let stored = detached(py, |may_wait| {
        replicated::store(&directory, name, state, keeping, Signals::Handled(may_wait))
    });
    or_raise(py, stored).map(|found| found == Replaced::Done)
}

#[doc = stub!("group_take")]
#[pyfunction]
#[pyo3(signature = (file, /, *, file_mode = 0o600))]
pub fn group_take(py: Python<'_>, file: PathBuf, file_mode: u32) -> PyResult<bool> {
    let taken =
        detached(py, |may_wait| replicated::take(&file, file_mode, Signals::Handled(may_wait)));
    or_raise(py, taken)
}

#[doc = stub!("group_forget")]
#[pyfunction]
#[pyo3(signature = (file, /))]
pub fn group_forget(py: Python<'_>, file: PathBuf) -> PyResult<bool> {
    let removed = detached(py, |may_wait| replicated::remove(&file, Signals::Handled(may_wait)));
    or_raise(py, removed)
}

#[doc = stub!("group_members")]
#[pyfunction]
#[pyo3(signature = (file, /))]
pub fn group_members(py: Python<'_>, file: PathBuf) -> PyResult<Vec<(String, u32, u64)>> {
    let found = or_raise(py, py.detach(|| group::members(&file)))?;
    let row = |Described { name, pid, messages }| (name, pid, messages);
    Ok(found.into_iter().map(row).collect())
}
