//! Fault points, in test builds only: see the kernel's `probe/fault.rs`.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use quire_kernel::probe::fault;

/// Restarts the counters, with this fault armed: `name:N:kill`, `name:N:ERRNO`,
/// `name:N:before:DIR`, `name:N:after:DIR`, or none.
#[pyfunction]
fn set_fault(fault: &str) -> PyResult<()> {
    fault::arm(fault).map_err(PyValueError::new_err)
}

/// How often each point was hit since the last call of `set_fault`.
#[pyfunction]
fn fault_hits() -> Vec<(&'static str, u64)> {
    fault::hits()
}

/// Adds both functions to the module.
pub fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(set_fault, module)?)?;
    module.add_function(wrap_pyfunction!(fault_hits, module)?)
}
