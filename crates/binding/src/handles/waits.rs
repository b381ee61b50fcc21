//! Waits for messages: of threads, and of the tasks of event loops.

use std::os::fd::RawFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pyo3::prelude::*;
use quire_kernel::Error;
use quire_kernel::os::process;
use quire_kernel::waiting::event_loop::EventLoop;
use quire_kernel::waiting::thread;
use quire_kernel::waiting::wait::{Look, Wait as Kernel};

use super::spin::deadline;
use crate::detached::detached;
use crate::error::{or_raise, to_py};

/// The longest sleep of a thread that runs signal handlers: a signal that arrives right before it
/// sleeps is handled after this time.
const BETWEEN_SIGNALS: Duration = Duration::from_millis(100);
/// The longest sleep of other threads.
const WITHOUT_SIGNALS: Duration = Duration::from_secs(60);

#[doc = stub!("EventLoopWaits")]
#[pyclass(module = "quire._native", frozen)]
pub struct EventLoopWaits(Arc<EventLoop>);

#[doc = stub!("Wait")]
#[pyclass(module = "quire._native", frozen)]
pub struct Wait(Arc<Kernel>);

#[pymethods]
impl EventLoopWaits {
    #[new]
    fn new() -> PyResult<Self> {
        Ok(Self(Arc::new(EventLoop::new()?)))
    }

    #[doc = stub!("EventLoopWaits.fileno")]
    fn fileno(&self) -> RawFd {
        self.0.descriptor()
    }

    #[doc = stub!("EventLoopWaits.is_prompt")]
    #[getter]
    fn is_prompt(&self) -> bool {
        self.0.is_prompt()
    }

    #[setter]
    fn set_is_prompt(&self, is_prompt: bool) {
        self.0.set_prompt(is_prompt);
    }

    #[doc = stub!("EventLoopWaits.wake")]
    #[pyo3(signature = (number, /))]
    fn wake(&self, number: u64) {
        self.0.wake(number);
    }

    #[doc = stub!("EventLoopWaits.take_due")]
    fn take_due(&self) -> Vec<u64> {
        self.0.take_due()
    }
}

#[pymethods]
impl Wait {
    #[doc = stub!("Wait.cancel")]
    fn cancel(&self, py: Python<'_>) {
        detached(py, |may_wait| self.0.cancel(may_wait));
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        Python::try_attach(|py| self.cancel(py));
    }
}

/// Begins the wait of a task, by its number among those of its event loop.
pub fn begin(
    py: Python<'_>,
    tailer: Arc<dyn Look>,
    waits: &EventLoopWaits,
    number: u64,
) -> PyResult<Wait> {
    let wait = detached(py, |may_wait| {
        let wait = Kernel::of_task(tailer, &waits.0, number, may_wait);
        thread::begin(&wait).map(|()| wait)
    });
    or_raise(py, wait).map(Wait)
}

/// Sleeps until a tailer has something to read, or an error; false after `timeout_s` seconds.
pub fn sleep(
    py: Python<'_>,
    tailer: Arc<dyn Look>,
    timeout_s: Option<&Bound<'_, PyAny>>,
) -> PyResult<bool> {
    let deadline = deadline(timeout_s)?;
    let wait = detached(py, |may_wait| {
        let wait = Kernel::of_thread(tailer, may_wait);
        thread::begin(&wait).map(|()| wait)
    });
    let wait = Wait(or_raise(py, wait)?);
    let step = if process::is_first_thread() { BETWEEN_SIGNALS } else { WITHOUT_SIGNALS };
    loop {
        let left = deadline.map(|it| it.saturating_duration_since(Instant::now()));
        let is_due =
            detached(py, |may_wait| wait.0.sleep(left.unwrap_or(step).min(step), may_wait));
        if is_due || left == Some(Duration::ZERO) {
            return Ok(is_due);
        }
        py.check_signals()?;
        if process::generation() != wait.0.generation() {
            return Err(to_py(Error::Forked)); // a signal handler forked
        }
    }
}
