use std::sync::{Arc, Mutex, PoisonError};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyInt, PyString};
use quire_kernel::quick_queue::append::Appender;
use quire_kernel::quick_queue::format::decimal::Decimal;
use quire_kernel::quick_queue::format::field::{FieldError, Result as FieldResult};
use quire_kernel::quick_queue::format::pack;

use super::{appender, decimal};
use crate::arguments::integer;
use crate::buffer::Borrowed;

#[doc = stub!("MessagePacker")]
#[pyclass(module = "quire._native", frozen)]
pub struct MessagePacker {
    appender: Arc<Appender>,
    fields: Mutex<Vec<u8>>,
}

impl MessagePacker {
    /// An empty message of `appender`.
    pub const fn new(appender: Arc<Appender>) -> Self {
        Self { appender, fields: Mutex::new(Vec::new()) }
    }

    fn with<T>(&self, act: impl FnOnce(&mut Vec<u8>) -> T) -> T {
        act(&mut self.fields.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn add(&self, bytes: &[u8]) {
        self.with(|fields| fields.extend_from_slice(bytes));
    }

    fn try_add(&self, add: impl FnOnce(&mut Vec<u8>) -> FieldResult<()>) -> PyResult<()> {
        self.with(add).map_err(refusal)
    }
}

#[cold]
fn refusal(error: FieldError) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// UTF-16 of a text, also of one with lone surrogates, as Java has them.
fn utf16<'py>(text: &Bound<'py, PyString>) -> PyResult<Bound<'py, PyBytes>> {
    let encoded = text.call_method1("encode", ("utf-16-le", "surrogatepass"))?;
    Ok(encoded.cast_into::<PyBytes>()?)
}

#[pymethods]
impl MessagePacker {
    #[doc = stub!("MessagePacker.pack_byte")]
    #[pyo3(signature = (value, /))]
    fn pack_byte<'py>(
        slf: PyRef<'py, Self>,
        value: &Bound<'py, PyAny>,
    ) -> PyResult<PyRef<'py, Self>> {
        slf.add(&integer::<i8>("value", value)?.to_le_bytes());
        Ok(slf)
    }

    #[doc = stub!("MessagePacker.pack_boolean")]
    #[pyo3(signature = (value, /))]
    fn pack_boolean(slf: PyRef<'_, Self>, value: bool) -> PyRef<'_, Self> {
        slf.add(&[value.into()]);
        slf
    }

    #[doc = stub!("MessagePacker.pack_short")]
    #[pyo3(signature = (value, /))]
    fn pack_short<'py>(
        slf: PyRef<'py, Self>,
        value: &Bound<'py, PyAny>,
    ) -> PyResult<PyRef<'py, Self>> {
        slf.add(&integer::<i16>("value", value)?.to_le_bytes());
        Ok(slf)
    }

    #[doc = stub!("MessagePacker.pack_char")]
    #[pyo3(signature = (value, /))]
    fn pack_char<'py>(
        slf: PyRef<'py, Self>,
        value: &Bound<'py, PyString>,
    ) -> PyResult<PyRef<'py, Self>> {
        let units = utf16(value)?;
        if units.as_bytes().len() != 2 {
            let what = "a char field holds one UTF-16 unit";
            return Err(PyValueError::new_err(format!("{what}: value={}", value.repr()?)));
        }
        slf.add(units.as_bytes());
        Ok(slf)
    }

    #[doc = stub!("MessagePacker.pack_int")]
    #[pyo3(signature = (value, /))]
    fn pack_int<'py>(
        slf: PyRef<'py, Self>,
        value: &Bound<'py, PyAny>,
    ) -> PyResult<PyRef<'py, Self>> {
        slf.add(&integer::<i32>("value", value)?.to_le_bytes());
        Ok(slf)
    }

    #[doc = stub!("MessagePacker.pack_long")]
    #[pyo3(signature = (value, /))]
    fn pack_long<'py>(
        slf: PyRef<'py, Self>,
        value: &Bound<'py, PyAny>,
    ) -> PyResult<PyRef<'py, Self>> {
        slf.add(&integer::<i64>("value", value)?.to_le_bytes());
        Ok(slf)
    }

    #[doc = stub!("MessagePacker.pack_float")]
    #[pyo3(signature = (value, /))]
    fn pack_float(slf: PyRef<'_, Self>, value: f64) -> PyResult<PyRef<'_, Self>> {
        #[allow(clippy::cast_possible_truncation)] // rounded, as Java does
        let narrow = value as f32;
        if narrow.is_infinite() && value.is_finite() {
            let what = format!("too large for a float field: value={value}");
            return Err(PyValueError::new_err(what));
        }
        slf.add(&narrow.to_le_bytes());
        Ok(slf)
    }

    #[doc = stub!("MessagePacker.pack_double")]
    #[pyo3(signature = (value, /))]
    fn pack_double(slf: PyRef<'_, Self>, value: f64) -> PyRef<'_, Self> {
        slf.add(&value.to_le_bytes());
        slf
    }

    #[doc = stub!("MessagePacker.pack_string")]
    #[pyo3(signature = (value, /))]
    fn pack_string<'py>(
        slf: PyRef<'py, Self>,
        value: &Bound<'py, PyString>,
    ) -> PyResult<PyRef<'py, Self>> {
        let text = value.to_string_lossy(); // what is lost is not ASCII
        slf.try_add(|fields| pack::string(fields, &text))?;
        Ok(slf)
    }

    #[doc = stub!("MessagePacker.pack_unicode")]
    #[pyo3(signature = (value, /))]
    fn pack_unicode<'py>(
        slf: PyRef<'py, Self>,
        value: &Bound<'py, PyString>,
    ) -> PyResult<PyRef<'py, Self>> {
        let units = utf16(value)?;
        slf.try_add(|fields| pack::unicode(fields, units.as_bytes()))?;
        Ok(slf)
    }

    #[doc = stub!("MessagePacker.pack_decimal")]
    #[pyo3(signature = (value, /))]
    fn pack_decimal<'py>(
        slf: PyRef<'py, Self>,
        value: &Bound<'py, PyAny>,
    ) -> PyResult<PyRef<'py, Self>> {
        let (unscaled, scale) = decimal::parts(value)?;
        slf.try_add(|fields| Decimal { unscaled: &unscaled, scale }.pack(fields))?;
        Ok(slf)
    }

    #[doc = stub!("MessagePacker.pack_big_integer")]
    #[pyo3(signature = (value, /))]
    fn pack_big_integer<'py>(
        slf: PyRef<'py, Self>,
        value: &Bound<'py, PyInt>,
    ) -> PyResult<PyRef<'py, Self>> {
        let bytes = decimal::integer_bytes(value)?;
        slf.try_add(|fields| pack::counted(fields, "big_integer", &bytes))?;
        Ok(slf)
    }

    #[doc = stub!("MessagePacker.pack_bytes")]
    #[pyo3(signature = (value, /))]
    fn pack_bytes<'py>(
        slf: PyRef<'py, Self>,
        value: &Bound<'py, PyAny>,
    ) -> PyResult<PyRef<'py, Self>> {
        let bytes = raw(value)?;
        slf.try_add(|fields| pack::counted(fields, "bytes", &bytes))?;
        Ok(slf)
    }

    #[doc = stub!("MessagePacker.pack_raw")]
    #[pyo3(signature = (value, /))]
    fn pack_raw<'py>(
        slf: PyRef<'py, Self>,
        value: &Bound<'py, PyAny>,
    ) -> PyResult<PyRef<'py, Self>> {
        slf.add(&raw(value)?);
        Ok(slf)
    }

    #[doc = stub!("MessagePacker.write_message")]
    fn write_message(&self, py: Python<'_>) -> PyResult<u64> {
        let fields = self.with(std::mem::take);
        let written = appender::append(py, &self.appender, &fields);
        if written.is_err() {
            // Nothing was written: they are still to be written, or discarded.
            self.with(|later| drop(later.splice(0..0, fields)));
        }
        written
    }

    #[doc = stub!("MessagePacker.discard")]
    fn discard(&self) {
        self.with(Vec::clear);
    }

    #[doc = stub!("MessagePacker.__len__")]
    fn __len__(&self) -> usize {
        self.with(|fields| fields.len())
    }

    fn __repr__(&self) -> String {
        format!("MessagePacker({} bytes)", self.__len__())
    }
}

/// A copy of the bytes of any object that has some.
fn raw(value: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
    Ok(match value.cast::<PyBytes>() {
        Ok(bytes) => bytes.as_bytes().to_vec(),
        Err(_) => Borrowed::new(value)?.bytes().to_vec(),
    })
}
