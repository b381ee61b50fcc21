use std::sync::Arc;
use std::time::Duration;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use quire_kernel::os::interrupt::Signals;
use quire_kernel::ring::handle::{Ring as Kernel, Stats};

use crate::arguments::seconds;
use crate::detached::detached;
use crate::error::or_raise;

/// The index returned for a message that is not in the queue yet.
pub const NO_INDEX: i64 = -1;

#[doc = stub!("Ring")]
#[pyclass(module = "quire._native", frozen)]
pub struct Ring(pub Arc<Kernel>);

#[pymethods]
impl Ring {
    #[doc = stub!("Ring.capacity_bytes")]
    #[getter]
    fn capacity_bytes(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.stats(py)?.capacity)
    }

    #[doc = stub!("Ring.used_bytes")]
    #[getter]
    fn used_bytes(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.stats(py)?.used)
    }

    #[doc = stub!("Ring.high_water_bytes")]
    #[getter]
    fn high_water_bytes(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.stats(py)?.high_water)
    }

    #[doc = stub!("Ring.pending")]
    #[getter]
    fn pending(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.stats(py)?.pending)
    }

    #[doc = stub!("Ring.stalls")]
    #[getter]
    fn stalls(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.stats(py)?.stalls)
    }

    #[doc = stub!("Ring.flush")]
    #[pyo3(signature = (*, timeout_s = None, again = false))]
    fn flush(
        &self,
        py: Python<'_>,
        timeout_s: Option<&Bound<'_, PyAny>>,
        again: bool,
    ) -> PyResult<()> {
        let timeout = match timeout_s.map(|given| seconds("timeout_s", given)).transpose()? {
            None => self.0.timeout(),
            Some(given) => Duration::try_from_secs_f64(given).map_err(|_| {
                let what = format!("a duration cannot be negative: timeout_s={given}");
                PyValueError::new_err(what)
            })?,
        };
        let flush = if again { Kernel::flush_again } else { Kernel::flush };
        or_raise(py, detached(py, |may_wait| flush(&self.0, may_wait, timeout)))
    }

    fn __repr__(&self) -> String {
        let Some(stats) = self.0.stats_at_hand() else { return "Ring()".to_owned() };
        format!(
            "Ring(pending={}, used_bytes={}, capacity_bytes={})",
            stats.pending, stats.used, stats.capacity
        )
    }
}

impl Ring {
    fn stats(&self, py: Python<'_>) -> PyResult<Stats> {
        or_raise(py, detached(py, |may_wait| self.0.stats(Signals::Handled(may_wait))))
    }
}
