use std::hash::{DefaultHasher, Hash, Hasher};

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyType};

/// One message: its index and its bytes.
#[pyclass(module = "quire._native", frozen)]
pub struct Excerpt {
    #[pyo3(get)]
    index: i64,
    #[pyo3(get)]
    data: Py<PyBytes>,
}

#[pymethods]
impl Excerpt {
    #[new]
    #[pyo3(signature = (index, data))]
    pub const fn new(index: i64, data: Py<PyBytes>) -> Self {
        Self { index, data }
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

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> (Bound<'py, PyType>, (i64, Py<PyBytes>)) {
        let this = slf.get();
        (slf.get_type(), (this.index, this.data.clone_ref(slf.py())))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let data = self.data.bind(py).repr()?;
        Ok(format!("Excerpt(index={:#x}, data={data})", self.index))
    }
}
