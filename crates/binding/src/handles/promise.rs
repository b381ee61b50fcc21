//! What an append promises about replicas: it waits until they have its message.

use std::sync::Arc;
use std::time::Duration;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use quire_kernel::chronicle::queue::handle::Queue;
use quire_kernel::os::interrupt::Signals;
use quire_kernel::replicas::quorum::Quorum;
use quire_kernel::replicas::side_file::ReplicaStates;

use crate::detached::detached;
use crate::error::{ReplicationError, WaitTimeoutError, or_raise, to_py};

/// How many members of the in-sync set are to have a message.
pub struct Promise {
    queue: Arc<Queue>,
    states: ReplicaStates,
    quorum: Quorum,
}

impl Promise {
    /// One of a queue that is replicated.
    ///
    /// # Errors
    /// There never was a source: nobody would ever acknowledge.
    pub fn new(py: Python<'_>, queue: &Arc<Queue>, quorum: Quorum) -> PyResult<Self> {
        let path = queue.path().to_path_buf();
        let found = or_raise(py, detached(py, |_| ReplicaStates::open_to_wait(&path)))?;
        let Some(states) = found else {
            return Err(ReplicationError::new_err(format!(
                "the queue is not replicated, so that no replica can acknowledge: path={} (start \
                 quire replicate source, or append without wait=)",
                queue.path().display()
            )));
        };
        Ok(Self { queue: Arc::clone(queue), states, quorum })
    }

    /// Waits until n replicas have the message of an index, and all before it.
    ///
    /// # Errors
    /// `WaitTimeoutError`: they do not within the queue's timeout, or this one.
    pub fn keep(&self, py: Python<'_>, index: i64, timeout: Option<Duration>) -> PyResult<()> {
        let timeout = timeout.unwrap_or(self.queue.options().timeout);
        let waited = detached(py, |may_wait| {
            self.states.wait(index, self.quorum, Some(timeout), Signals::Handled(may_wait))
        });
        if or_raise(py, waited)? { Ok(()) } else { Err(self.broken(py, index, timeout)) }
    }

    fn broken(&self, py: Python<'_>, index: i64, timeout: Duration) -> PyErr {
        let members = match self.states.replicas() {
            Ok(replicas) => replicas.into_iter().filter(|it| it.is_member).collect::<Vec<_>>(),
            Err(error) => return to_py(error),
        };
        let wanted = match self.quorum {
            Quorum::All => "all".to_owned(),
            Quorum::AtLeast(count) => count.to_string(),
        };
        let names: Vec<_> = members.iter().map(|it| it.name.as_str()).collect();
        let error = WaitTimeoutError::new_err(format!(
            "replicas did not acknowledge in time, and the message stays in the queue: \
             index={index:#x} waited_s={} wait={wanted} in_sync={names:?} path={}",
            timeout.as_secs_f64(),
            self.queue.path().display()
        ));
        let acknowledged = PyDict::new(py);
        let filled = members
            .iter()
            .try_for_each(|it| acknowledged.set_item(&it.name, it.acknowledged))
            .and_then(|()| error.value(py).setattr("acknowledged", acknowledged))
            .and_then(|()| error.value(py).setattr("index", index));
        filled.err().unwrap_or(error)
    }
}

/// `"any"`, `"all"` or a number of replicas.
pub fn quorum_of(value: &Bound<'_, PyAny>) -> PyResult<Quorum> {
    const TEXT: &str = "wait must be \"any\", \"all\" or a number of replicas";
    if let Ok(text) = value.cast::<PyString>() {
        return match text.to_str()? {
            "any" => Ok(Quorum::AtLeast(1)),
            "all" => Ok(Quorum::All),
            other => Err(PyValueError::new_err(format!("{TEXT}: found={other:?}"))),
        };
    }
    match value.extract::<usize>() {
        Ok(0) => Err(PyValueError::new_err(format!("{TEXT}, at least one: found=0"))),
        Ok(count) => Ok(Quorum::AtLeast(count)),
        Err(_) => Err(PyTypeError::new_err(format!("{TEXT}: found={}", value.repr()?))),
    }
}
