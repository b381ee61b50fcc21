use std::hash::{DefaultHasher, Hash, Hasher};

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use quire_kernel::chronicle::format::roll_cycle::{self, RollCycle as Row};

use crate::arguments::{integer, optional, text};
use crate::error::to_py;

/// The default index shape of a custom roll cycle, as in `FAST_DAILY`.
const DEFAULT_INDEX_COUNT: u32 = 4096;
const DEFAULT_INDEX_SPACING: u32 = 256;

#[doc = stub!("RollCycle")]
#[pyclass(module = "quire._native", frozen)]
pub struct RollCycle(pub Row);

/// A roll cycle, given as an object or by name.
pub fn named_or_given(given: &Bound<'_, PyAny>) -> PyResult<Row> {
    match given.cast::<RollCycle>() {
        Ok(roll) => Ok(roll.get().0.clone()),
        Err(_) => named(text("roll_cycle", given)?),
    }
}

/// The roll cycle with this name, or an error that lists all names.
pub fn named(name: &str) -> PyResult<Row> {
    Row::by_name(name).cloned().ok_or_else(|| {
        let aliases = roll_cycle::ALIASES.iter().map(|(alias, _)| *alias);
        let known: Vec<&str> =
            roll_cycle::ALL.iter().map(|row| &*row.name).chain(aliases).collect();
        PyValueError::new_err(format!("no such roll cycle: name={name} known={}", known.join(", ")))
    })
}

#[pymethods]
impl RollCycle {
    #[new]
    #[pyo3(signature = (
        name = None, *, length_ms = None, pattern = None, index_count = None, index_spacing = None
    ))]
    fn new(
        name: Option<&Bound<'_, PyAny>>,
        length_ms: Option<&Bound<'_, PyAny>>,
        pattern: Option<&Bound<'_, PyAny>>,
        index_count: Option<&Bound<'_, PyAny>>,
        index_spacing: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let length_ms = optional("length_ms", length_ms)?;
        let pattern = pattern.map(|pattern| text("pattern", pattern)).transpose()?;
        let index_count = optional("index_count", index_count)?;
        let index_spacing = optional("index_spacing", index_spacing)?;
        match (name, length_ms, pattern) {
            (Some(name), None, None) if index_count.or(index_spacing).is_none() => {
                named(text("name", name)?).map(Self)
            }
            (None, Some(length_ms), Some(pattern)) => {
                let index_count = index_count.unwrap_or(DEFAULT_INDEX_COUNT);
                let index_spacing = index_spacing.unwrap_or(DEFAULT_INDEX_SPACING);
                Row::custom(length_ms, pattern, index_count, index_spacing).map(Self).map_err(to_py)
            }
            _ => Err(PyTypeError::new_err(
                "a roll cycle takes either the name of one of Chronicle's, or length_ms= and \
                 pattern=",
            )),
        }
    }

    #[doc = stub!("RollCycle.all")]
    #[staticmethod]
    fn all() -> Vec<Self> {
        roll_cycle::ALL.iter().cloned().map(Self).collect()
    }

    #[doc = stub!("RollCycle.name")]
    #[getter]
    fn name(&self) -> &str {
        &self.0.name
    }

    #[doc = stub!("RollCycle.aliases")]
    #[getter]
    fn aliases(&self) -> Vec<&'static str> {
        let own = roll_cycle::ALIASES.iter().filter(|(_, name)| *name == self.0.name);
        own.map(|(alias, _)| *alias).collect()
    }

    #[doc = stub!("RollCycle.pattern")]
    #[getter]
    fn pattern(&self) -> &str {
        &self.0.pattern
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
        other.cast::<Self>().is_ok_and(|other| self.0 == other.get().0)
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.0.hash(&mut hasher);
        hasher.finish()
    }

    fn __getnewargs_ex__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyTuple>, Bound<'py, PyDict>)> {
        let given = PyDict::new(py);
        if self.0.is_named() {
            return Ok((PyTuple::new(py, [&self.0.name])?, given));
        }
        given.set_item("length_ms", self.0.length_ms)?;
        given.set_item("pattern", &self.0.pattern)?;
        given.set_item("index_count", self.0.index_count)?;
        given.set_item("index_spacing", self.0.index_spacing)?;
        Ok((PyTuple::empty(py), given))
    }

    fn __repr__(&self) -> String {
        let Row { name, pattern, length_ms, index_count, index_spacing, .. } = &self.0;
        if self.0.is_named() {
            return format!("RollCycle({name:?})");
        }
        format!(
            "RollCycle(length_ms={length_ms}, pattern={pattern:?}, index_count={index_count}, \
             index_spacing={index_spacing})"
        )
    }
}
