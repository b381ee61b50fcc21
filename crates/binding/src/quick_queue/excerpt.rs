use std::hash::{DefaultHasher, Hash, Hasher};

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyMemoryView, PyType};
use quire_kernel::Result;
use quire_kernel::quick_queue::message::{MappedBytes, Message};

use super::unpacker::MessageUnpacker;
use crate::buffer::{self, Buffer};
use crate::error::to_py;
use crate::repr;

/// The class, and its arguments.
type Pickled<'py> = (Bound<'py, PyType>, (u64, Py<PyBytes>, Option<String>));

#[doc = stub!("QuickExcerpt")]
#[pyclass(module = "quire._native", frozen)]
pub struct QuickExcerpt {
    #[doc = stub!("QuickExcerpt.index")]
    #[pyo3(get)]
    index: u64,
    #[doc = stub!("QuickExcerpt.producer")]
    #[pyo3(get)]
    producer: Option<String>,
    data: PyOnceLock<Py<PyBytes>>,
    mapped: Option<MappedBytes>,
}

impl QuickExcerpt {
    /// A message that was read. If it lies in one page, where its bytes never move, they are only
    /// copied on demand.
    pub fn of(py: Python<'_>, message: &Message<'_>) -> Result<Self> {
        let (data, mapped) = (PyOnceLock::new(), message.bytes.mapped());
        if mapped.is_none() {
            let _ = data.set(py, buffer::bytes(py, message.bytes.as_slice())?.unbind());
        }
        let producer = message.producer.map(|producer| producer.to_string());
        Ok(Self { index: message.index, producer, data, mapped })
    }

    /// The bytes, wherever they are.
    fn bytes<'a>(&'a self, py: Python<'a>) -> &'a [u8] {
        match (&self.mapped, self.data.get(py)) {
            (Some(mapped), _) => mapped.bytes(),
            (None, data) => data.map_or(&[], |data| data.as_bytes(py)),
        }
    }
}

#[pymethods]
impl QuickExcerpt {
    #[new]
    #[pyo3(signature = (index, data, producer = None))]
    fn new(py: Python<'_>, index: u64, data: Py<PyBytes>, producer: Option<String>) -> Self {
        let kept = PyOnceLock::new();
        let _ = kept.set(py, data);
        Self { index, producer, data: kept, mapped: None }
    }

    #[doc = stub!("QuickExcerpt.data")]
    #[getter]
    fn data(&self, py: Python<'_>) -> PyResult<Py<PyBytes>> {
        let mapped = || self.mapped.as_ref().map_or(&[][..], MappedBytes::bytes);
        let copy = || PyResult::Ok(buffer::bytes(py, mapped()).map_err(to_py)?.unbind());
        Ok(self.data.get_or_try_init(py, copy)?.clone_ref(py))
    }

    #[doc = stub!("QuickExcerpt.view")]
    #[getter]
    fn view<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyMemoryView>> {
        match &self.mapped {
            Some(mapped) => {
                let buffer = Bound::new(py, Buffer::page(mapped.clone()))?;
                PyMemoryView::from(buffer.as_any())
            }
            None => PyMemoryView::from(self.data(py)?.bind(py).as_any()),
        }
    }

    #[doc = stub!("QuickExcerpt.unpack")]
    fn unpack(&self, py: Python<'_>) -> PyResult<MessageUnpacker> {
        Ok(match &self.mapped {
            Some(mapped) => MessageUnpacker::in_place(mapped.clone()),
            None => MessageUnpacker::of(self.data(py)?),
        })
    }

    fn __eq__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> bool {
        let Ok(other) = other.cast::<Self>() else { return false };
        let other = other.get();
        (self.index, &self.producer) == (other.index, &other.producer)
            && self.bytes(py) == other.bytes(py)
    }

    fn __hash__(&self, py: Python<'_>) -> u64 {
        let mut hasher = DefaultHasher::new();
        (self.index, self.bytes(py)).hash(&mut hasher);
        hasher.finish()
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Pickled<'py>> {
        let this = slf.get();
        Ok((slf.get_type(), (this.index, this.data(slf.py())?, this.producer.clone())))
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let producer =
            self.producer.as_ref().map_or(String::new(), |it| format!(", producer={it}"));
        format!("QuickExcerpt(index={:#x}, {} bytes{producer})", self.index, self.bytes(py).len())
    }

    fn _repr_html_(&self, py: Python<'_>) -> String {
        repr::html(py, &self.__repr__(py), self.bytes(py), |it| Some(repr::raw(it)))
    }
}
