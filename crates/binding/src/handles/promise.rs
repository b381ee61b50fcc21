//! The replication guarantee of an append: it waits until replicas have its message.

use std::sync::Arc;
use std::time::Duration;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use quire_kernel::chronicle::queue::handle::Queue;
use quire_kernel::os::interrupt::Signals;
use quire_kernel::replicas::history::History;
use quire_kernel::replicas::quorum::Quorum;
use quire_kernel::replicas::side_file::ReplicaStates;
use quire_kernel::replicas::wait::Waited;

use crate::detached::detached;
use crate::error::{ReplicationError, WaitTimeoutError, or_raise, to_py};

/// How many members of the in-sync set must have a message.
pub struct Promise {
    queue: Arc<Queue>,
    states: ReplicaStates,
    quorum: Quorum,
    /// The history before the append.
    history: History,
    /// How long its index was waited for before.
    waited: Duration,
}

impl Promise {
    /// The guarantee for a replicated queue.
    ///
    /// # Errors
    /// The queue never had a source, so no replica would ever acknowledge. `TableLostError`: the
    /// path now leads to another queue.
    pub fn new(py: Python<'_>, queue: &Arc<Queue>, quorum: Quorum) -> PyResult<Self> {
        let open = || ReplicaStates::open_to_wait_in(&queue.own_directory()?);
        let found = or_raise(py, detached(py, |_| open()))?;
        let Some(states) = found else {
            return Err(ReplicationError::new_err(format!(
                "the queue is not replicated, so no replica can acknowledge: path={} (start quire \
                 replicate source, or append without wait=)",
                queue.path().display()
            )));
        };
        let history = states.history();
        Ok(Self { queue: Arc::clone(queue), states, quorum, history, waited: Duration::ZERO })
    }

    /// The history of messages appended from now on.
    #[must_use]
    pub const fn history(&self) -> History {
        self.history
    }

    /// The same for a message appended in another history.
    #[must_use]
    pub const fn since(mut self, history: History) -> Self {
        self.history = history;
        self
    }

    /// The same, for a caller that has already waited this long: the error adds it.
    #[must_use]
    pub const fn after(mut self, waited: Duration) -> Self {
        self.waited = waited;
        self
    }

    /// Waits until enough replicas have the message at an index, and all before it.
    ///
    /// # Errors
    /// `WaitTimeoutError`: not within this timeout, by default the queue's. `ReplicationError`: the
    /// index may now belong to another message.
    pub fn keep(&self, py: Python<'_>, index: i64, timeout: Option<Duration>) -> PyResult<()> {
        let timeout = timeout.unwrap_or(self.queue.options().timeout);
        let waited = detached(py, |may_wait| {
            let signals = Signals::Handled(may_wait);
            self.states.wait(index, self.history, self.quorum, Some(timeout), signals)
        });
        match or_raise(py, waited)? {
            Waited::Acknowledged => Ok(()),
            Waited::Late => Err(self.broken(py, index, timeout)),
            Waited::OtherHistory => Err(self.void(index)),
        }
    }

    fn void(&self, index: i64) -> PyErr {
        let (now, then) = (self.states.history(), self.history);
        let what = if now.epoch == then.epoch {
            "messages were cut off the queue's end".to_owned()
        } else {
            format!("another epoch has begun (epoch={} new_epoch={})", then.epoch, now.epoch)
        };
        ReplicationError::new_err(format!(
            "it is unknown whether replicas have the message: {what} since it was appended, and it \
             may have been removed from the queue (look for it, and append it again if it is \
             gone): index={index:#x} path={}",
            self.queue.path().display()
        ))
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
            "replicas did not acknowledge in time; the message stays in the queue: \
             index={index:#x} waited_s={} wait={wanted} in_sync={names:?} path={}",
            self.waited.saturating_add(timeout).as_secs_f64(),
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
