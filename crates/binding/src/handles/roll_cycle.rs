use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyType;
use quire_kernel::chronicle::format::roll_cycle::{self, RollCycle as Row};

use crate::arguments::{integer, optional, text};
use crate::error::to_py;

#[doc = stub!("RollCycle")]
#[pyclass(module = "quire._native", frozen)]
pub struct RollCycle(pub &'static Row);

/// The roll cycle with this name, or an error that lists all names.
pub fn named(name: &str) -> PyResult<&'static Row> {
    Row::by_name(name).ok_or_else(|| {
        let known: Vec<&str> = roll_cycle::ALL.iter().map(|row| row.name).collect();
        PyValueError::new_err(format!("no such roll cycle: name={name} known={}", known.join(", ")))
    })
}

#[pymethods]
impl RollCycle {
    #[new]
    #[pyo3(signature = (name))]
    fn new(name: &Bound<'_, PyAny>) -> PyResult<Self> {
        named(text("name", name)?).map(Self)
    }

    #[doc = stub!("RollCycle.all")]
    #[staticmethod]
    fn all() -> Vec<Self> {
        roll_cycle::ALL.iter().map(Self).collect()
    }

    #[doc = stub!("RollCycle.name")]
    #[getter]
    const fn name(&self) -> &'static str {
        self.0.name
    }

    #[doc = stub!("RollCycle.pattern")]
    #[getter]
    const fn pattern(&self) -> &'static str {
        self.0.pattern
    }

    #[doc = stub!("RollCycle.length_ms")]
    #[getter]
    const fn length_ms(&self) -> i64 {
        self.0.length_ms
    }

    #[doc = stub!("RollCycle.index_count")]
    #[getter]
    const fn index_count(&self) -> u32 {
        self.0.index_count
    }

    #[doc = stub!("RollCycle.index_spacing")]
    #[getter]
    const fn index_spacing(&self) -> u32 {
        self.0.index_spacing
    }

    #[doc = stub!("RollCycle.max_messages")]
    #[getter]
    const fn max_messages(&self) -> u64 {
        roll_cycle::max_messages(self.0.index_count, self.0.index_spacing)
    }

    #[doc = stub!("RollCycle.default_epoch_ms")]
    #[getter]
    const fn default_epoch_ms(&self) -> i64 {
        self.0.default_epoch_ms
    }

    #[doc = stub!("RollCycle.to_index")]
    #[pyo3(signature = (cycle, sequence))]
    fn to_index(&self, cycle: &Bound<'_, PyAny>, sequence: &Bound<'_, PyAny>) -> PyResult<i64> {
        self.0.to_index(integer("cycle", cycle)?, integer("sequence", sequence)?).map_err(to_py)
    }

    #[doc = stub!("RollCycle.to_cycle")]
    #[pyo3(signature = (index))]
    fn to_cycle(&self, index: &Bound<'_, PyAny>) -> PyResult<i32> {
        self.0.split(integer("index", index)?).map(|(cycle, _)| cycle).map_err(to_py)
    }

    #[doc = stub!("RollCycle.to_sequence")]
    #[pyo3(signature = (index))]
    fn to_sequence(&self, index: &Bound<'_, PyAny>) -> PyResult<u64> {
        self.0.split(integer("index", index)?).map(|(_, sequence)| sequence).map_err(to_py)
    }

    #[doc = stub!("RollCycle.cycle_at")]
    #[pyo3(signature = (time_ms, epoch_ms = None))]
    fn cycle_at(
        &self,
        time_ms: &Bound<'_, PyAny>,
        epoch_ms: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<i32> {
        let (time_ms, epoch_ms) = (integer("time_ms", time_ms)?, optional("epoch_ms", epoch_ms)?);
        self.0.cycle_at(time_ms, epoch_ms.unwrap_or(self.0.default_epoch_ms)).map_err(to_py)
    }

    #[doc = stub!("RollCycle.file_name")]
    #[pyo3(signature = (cycle, epoch_ms = None))]
    fn file_name(
        &self,
        cycle: &Bound<'_, PyAny>,
        epoch_ms: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<String> {
        let cycle = integer("cycle", cycle)?;
        let epoch_ms = optional("epoch_ms", epoch_ms)?.unwrap_or(self.0.default_epoch_ms);
        self.0.file_name(cycle, epoch_ms).map_err(to_py)
    }

    #[doc = stub!("RollCycle.cycle_of_file")]
    #[pyo3(signature = (name, epoch_ms = None))]
    fn cycle_of_file(
        &self,
        name: &Bound<'_, PyAny>,
        epoch_ms: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<i32> {
        let name = text("name", name)?;
        let epoch_ms = optional("epoch_ms", epoch_ms)?.unwrap_or(self.0.default_epoch_ms);
        self.0.cycle_of_file(name, epoch_ms).ok_or_else(|| {
            PyValueError::new_err(format!(
                "the file name does not follow the pattern: name={name} pattern={}",
                self.0.pattern
            ))
        })
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Self>().is_ok_and(|other| self.0.name == other.get().0.name)
    }

    fn __hash__(&self) -> usize {
        std::ptr::from_ref(self.0).addr()
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> (Bound<'py, PyType>, (&'static str,)) {
        (slf.get_type(), (slf.get().0.name,))
    }

    fn __repr__(&self) -> String {
        format!("RollCycle({:?})", self.0.name)
    }
}
