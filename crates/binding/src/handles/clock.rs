use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use pyo3::prelude::*;
use pyo3::types::PyType;
use quire_kernel::os::clock::Clock;

use crate::arguments::{integer, optional};

#[doc = stub!("ManualClock")]
#[pyclass(module = "quire._native", frozen)]
pub struct ManualClock(Arc<AtomicI64>);

#[pymethods]
impl ManualClock {
    #[new]
    #[pyo3(signature = (now_ms = None), text_signature = "(now_ms=0)")]
    fn new(now_ms: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let now_ms = optional("now_ms", now_ms)?.unwrap_or(0);
        Ok(Self(Arc::new(AtomicI64::new(now_ms))))
    }

    #[doc = stub!("ManualClock.now_ms")]
    #[getter]
    fn now_ms(&self) -> i64 {
        self.0.load(Ordering::Acquire)
    }

    #[setter]
    fn set_now_ms(&self, now_ms: &Bound<'_, PyAny>) -> PyResult<()> {
        self.0.store(integer("now_ms", now_ms)?, Ordering::Release);
        Ok(())
    }

    #[doc = stub!("ManualClock.advance")]
    #[pyo3(signature = (ms))]
    fn advance(&self, ms: &Bound<'_, PyAny>) -> PyResult<i64> {
        let ms: i64 = integer("ms", ms)?;
        Ok(self.0.fetch_add(ms, Ordering::AcqRel).wrapping_add(ms))
    }

    fn __call__(&self) -> i64 {
        self.now_ms()
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> (Bound<'py, PyType>, (i64,)) {
        (slf.get_type(), (slf.get().now_ms(),))
    }

    fn __repr__(&self) -> String {
        format!("ManualClock(now_ms={})", self.now_ms())
    }
}

/// A queue's clock: one the kernel reads itself, or a Python callable called before each operation.
pub enum QueueClock {
    /// Read by the kernel.
    Kernel(Clock),
    /// A Python callable.
    Callable(Py<PyAny>),
}

impl QueueClock {
    /// From the `clock` option.
    pub fn take(option: Option<Bound<'_, PyAny>>) -> Self {
        match option {
            None => Self::Kernel(Clock::System),
            Some(clock) => match clock.cast::<ManualClock>() {
                Ok(manual) => Self::Kernel(Clock::Manual(Arc::clone(&manual.get().0))),
                Err(_) => Self::Callable(clock.unbind()),
            },
        }
    }

    /// The clock to open the kernel's queue with.
    pub fn kernel(&self) -> Clock {
        match self {
            Self::Kernel(clock) => clock.clone(),
            Self::Callable(_) => Clock::System,
        }
    }

    /// Whether reading the clock calls Python.
    pub const fn is_callable(&self) -> bool {
        matches!(self, Self::Callable(_))
    }

    /// The time from the callable; None if the kernel reads the clock.
    #[inline]
    pub fn now_ms(&self, py: Python<'_>) -> PyResult<Option<i64>> {
        match self {
            Self::Kernel(_) => Ok(None),
            Self::Callable(clock) => {
                let now = clock.call0(py)?;
                integer("clock()", now.bind(py)).map(Some)
            }
        }
    }
}
