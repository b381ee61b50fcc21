use std::hash::{DefaultHasher, Hash, Hasher};

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString, PyType};
use quire_wire::text::summary;

use crate::repr;
use crate::values::failure::{Failure, Result};
use crate::values::text;
use crate::values::{codec, decode};

#[doc = stub!("Excerpt")]
#[pyclass(module = "quire._native", frozen)]
pub struct Excerpt {
    #[doc = stub!("Excerpt.index")]
    #[pyo3(get)]
    index: i64,
    #[doc = stub!("Excerpt.data")]
    #[pyo3(get)]
    data: Py<PyBytes>,
    /// Whether its fields have no names.
    fieldless: bool,
}

impl Excerpt {
    /// Adds the message's index to an error.
    fn decoded<T>(&self, py: Python<'_>, decode: impl FnOnce(&[u8]) -> Result<T>) -> PyResult<T> {
        let decoded = decode(self.data.as_bytes(py));
        Ok(decoded.map_err(|failure| match failure {
            Failure::Wire(fault) => {
                Failure::Wire(fault.with("index", format_args!("{:#x}", self.index)))
            }
            raised @ Failure::Python(_) => raised,
        })?)
    }
}

#[pymethods]
impl Excerpt {
    #[new]
    #[pyo3(signature = (index, data, fieldless = false))]
    pub const fn new(index: i64, data: Py<PyBytes>, fieldless: bool) -> Self {
        Self { index, data, fieldless }
    }

    fn __eq__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> bool {
        let Ok(other) = other.cast::<Self>() else { return false };
        let other = other.get();
        self.index == other.index && self.data.as_bytes(py) == other.data.as_bytes(py)
    }

    fn __hash__(&self, py: Python<'_>) -> u64 {
        let mut hasher = DefaultHasher::new();
        (self.index, self.data.as_bytes(py)).hash(&mut hasher);
        hasher.finish()
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> (Bound<'py, PyType>, (i64, Py<PyBytes>, bool)) {
        let this = slf.get();
        (slf.get_type(), (this.index, this.data.clone_ref(slf.py()), this.fieldless))
    }

    #[doc = stub!("Excerpt.to_yaml")]
    fn to_yaml<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
        self.decoded(py, |bytes| text::any_yaml(py, bytes))
    }

    #[doc = stub!("Excerpt.to_json")]
    fn to_json<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
        self.decoded(py, |bytes| text::any_json(py, bytes))
    }

    #[doc = stub!("Excerpt.to_text")]
    fn to_text<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
        self.decoded(py, |bytes| text::any_text(py, bytes))
    }

    #[doc = stub!("Excerpt.to_message")]
    #[pyo3(signature = (cls = None, /))]
    fn to_message<'py>(
        &self,
        py: Python<'py>,
        cls: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let codec = cls.map(codec::of_class).transpose()?;
        self.decoded(py, |bytes| match &codec {
            Some(codec) => codec.get().get_message(py, bytes, !self.fieldless),
            None => decode::named_message(py, bytes),
        })
    }

    #[doc = stub!("Excerpt.to_dict")]
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.decoded(py, |bytes| text::dict_of(py, bytes))
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        format!("Excerpt(index={:#x}, {})", self.index, summary::of(self.data.as_bytes(py)))
    }

    fn _repr_html_(&self, py: Python<'_>) -> String {
        let bytes = self.data.as_bytes(py);
        repr::html(py, &self.__repr__(py), bytes, |bytes| text::yaml_of(bytes).ok())
    }
}
