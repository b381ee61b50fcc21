//! Infers a schema from a sample of a queue's messages, for queues without a declared one.

use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::types::PyTuple;
use quire_kernel::chronicle::read::tailer::{How, Reading, Take};
use quire_wire::arrow::infer;

use super::decode::at_next;
use crate::error::to_py;
use crate::handles::scan;
use crate::handles::tailer::Tailer;

#[doc = stub!("Seen")]
#[pyclass(module = "quire._native", frozen)]
pub struct Seen(Mutex<infer::Seen>);

#[pymethods]
impl Seen {
    #[new]
    fn new() -> Self {
        Self(Mutex::default())
    }

    #[doc = stub!("Seen.look")]
    #[pyo3(signature = (tailer, count, /))]
    fn look(&self, py: Python<'_>, tailer: &Bound<'_, Tailer>, count: usize) -> PyResult<usize> {
        let tailer = tailer.get().kernel();
        let (mut reading, mut fault) = (Reading::default(), None);
        scan::batch(py, tailer, &mut reading, |may_wait, reading| {
            let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            tailer.read_batch(reading, count, How::Wait(may_wait), |_, bytes| {
                fault = seen.look(bytes).err();
                Ok(if fault.is_none() { Take::This } else { Take::NotThis })
            })
        })?;
        match fault {
            None => Ok(reading.taken),
            Some(fault) => Err(at_next(py, tailer, fault)?),
        }
    }

    #[doc = stub!("Seen.look_at")]
    #[pyo3(signature = (payload, /))]
    fn look_at(&self, payload: &[u8]) -> PyResult<()> {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        seen.look(payload).map_err(|fault| to_py(fault.into()))
    }

    fn found<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        found(py, &self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The sorts of values, those under each name, and those in lists.
fn found<'py>(py: Python<'py>, seen: &infer::Seen) -> PyResult<Bound<'py, PyTuple>> {
    let sorts: Vec<_> = seen.sorts().map(infer::Sort::name).collect();
    let fields = seen.fields().iter().map(|(name, seen)| Ok((name, found(py, seen)?)));
    (
        sorts,
        fields.collect::<PyResult<Vec<_>>>()?,
        seen.item().map(|seen| found(py, seen)).transpose()?,
    )
        .into_pyobject(py)
}
