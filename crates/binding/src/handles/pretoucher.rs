use std::sync::Arc;
use std::time::Duration;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use quire_kernel::Error;
use quire_kernel::chronicle::append::pretoucher::{Choices, Pretoucher as Kernel};
use quire_kernel::os::interrupt::Signals;

use super::clock::QueueClock;
use super::queue::Queue;
use crate::arguments::seconds;
use crate::detached::detached;
use crate::error::{or_raise, to_py};
use crate::repr;

/// Waiting longer than this for the next step is a mistake.
const LONGEST_INTERVAL_S: f64 = 3600.0;

#[doc = stub!("Pretoucher")]
#[pyclass(module = "quire._native", frozen)]
pub struct Pretoucher {
    kernel: Arc<Kernel>,
    clock: Arc<QueueClock>,
}

#[pymethods]
impl Pretoucher {
    #[new]
    #[pyo3(signature = (queue, *, early_acquire_next_cycle, preroll_ms, dont_write))]
    fn new(
        py: Python<'_>,
        queue: &Bound<'_, Queue>,
        early_acquire_next_cycle: bool,
        preroll_ms: i64,
        dont_write: bool,
    ) -> PyResult<Self> {
        let queue = queue.get();
        let choices = Choices { early_acquire: early_acquire_next_cycle, preroll_ms, dont_write };
        let kernel = or_raise(
            py,
            detached(py, |may_wait| {
                Kernel::new(&queue.kernel, choices, Signals::Handled(may_wait))
            }),
        )?;
        Ok(Self { kernel, clock: Arc::clone(&queue.clock) })
    }

    #[doc = stub!("Pretoucher.execute")]
    fn execute(&self, py: Python<'_>) -> PyResult<()> {
        let now = self.clock.now_ms(py)?;
        or_raise(py, detached(py, |may_wait| self.kernel.execute(may_wait, now)))
    }

    #[doc = stub!("Pretoucher.start")]
    #[pyo3(signature = (*, interval_s = None), text_signature = "($self, *, interval_s=0.01)")]
    fn start(&self, py: Python<'_>, interval_s: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        let interval_s = interval_s.map_or(Ok(0.01), |given| seconds("interval_s", given))?;
        if !(interval_s > 0.0 && interval_s <= LONGEST_INTERVAL_S) {
            return Err(PyValueError::new_err(format!(
                "invalid interval_s: expected more than 0 and at most 3600, found {interval_s}"
            )));
        }
        if self.clock.is_callable() {
            return Err(to_py(Error::Unsupported(
                "a pretoucher's thread on a queue whose clock calls Python: \
                 call execute() from a thread of your own"
                    .to_owned(),
            )));
        }
        let interval = Duration::from_secs_f64(interval_s);
        py.detach(|| self.kernel.start(interval)).map_err(to_py)
    }

    #[doc = stub!("Pretoucher.shutdown")]
    fn shutdown(&self) {
        self.kernel.shut_down();
    }

    #[doc = stub!("Pretoucher.closed")]
    #[getter]
    fn closed(&self) -> bool {
        self.kernel.is_closed()
    }

    #[doc = stub!("Pretoucher.close")]
    fn close(&self, py: Python<'_>) {
        detached(py, |may_wait| self.kernel.close(may_wait));
    }

    fn __repr__(slf: &Bound<'_, Self>) -> String {
        let kernel = &slf.get().kernel;
        let mut parts = vec![repr::path(slf.py(), kernel.queue().path())];
        repr::add_end(&mut parts, kernel.queue(), kernel.is_closed());
        repr::handle(&slf.get_type(), &parts)
    }
}

context_manager!(Pretoucher);
