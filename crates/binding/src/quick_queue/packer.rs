use std::sync::{Arc, Mutex, PoisonError};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyInt, PyString};
use quire_kernel::quick_queue::append::Appender;
use quire_kernel::quick_queue::format::decimal::Decimal;
use quire_kernel::quick_queue::format::field::{FieldError, Result as FieldResult};
use quire_kernel::quick_queue::format::pack;
use quire_wire::out::Out;

use super::{appender, decimal};
use crate::arguments::integer;
use crate::handles::payload::Message;
use crate::values::failure::Failure;

#[doc = stub!("MessagePacker")]
#[pyclass(module = "quire._native", frozen)]
pub struct MessagePacker {
    appender: Arc<Appender>,
    fields: Mutex<Out>,
}

impl MessagePacker {
    /// An empty message of `appender`.
    pub const fn new(appender: Arc<Appender>) -> Self {
        Self { appender, fields: Mutex::new(Out::new()) }
    }

    fn with<T>(&self, act: impl FnOnce(&mut Out) -> T) -> T {
        act(&mut self.fields.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn add(&self, bytes: &[u8]) -> PyResult<()> {
        self.try_add(|fields| {
            fields.extend_from_slice(bytes);
            Ok(())
        })
    }

    fn try_add(&self, add: impl FnOnce(&mut Out) -> FieldResult<()>) -> PyResult<()> {
        self.with(|fields| {
            let before = fields.len();
            let added = add(fields).map_err(refusal);
            let added = added.and_then(|()| Ok(fields.check().map_err(Failure::from)?));
            if added.is_err() {
                fields.truncate(before);
            }
            added
        })
    }
}

/// Appends small fields directly from their buffer, and keeps it for the next message.
fn try_append(appender: &Appender, fields: &mut Out) -> Option<PyResult<u64>> {
    let written = appender::try_append(appender, fields.written().ok()?)?;
    if written.is_ok() {
        fields.clear();
    }
    Some(written)
}

#[cold]
fn refusal(error: FieldError) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// UTF-16 of a text, allowing lone surrogates as Java does.
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
        slf.add(&integer::<i8>("value", value)?.to_le_bytes())?;
        Ok(slf)
    }

    #[doc = stub!("MessagePacker.pack_boolean")]
    #[pyo3(signature = (value, /))]
    fn pack_boolean(slf: PyRef<'_, Self>, value: bool) -> PyResult<PyRef<'_, Self>> {
        slf.add(&[value.into()])?;
        Ok(slf)
    }

    #[doc = stub!("MessagePacker.pack_short")]
    #[pyo3(signature = (value, /))]
    fn pack_short<'py>(
        slf: PyRef<'py, Self>,
        value: &Bound<'py, PyAny>,
    ) -> PyResult<PyRef<'py, Self>> {
        slf.add(&integer::<i16>("value", value)?.to_le_bytes())?;
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
        slf.add(units.as_bytes())?;
        Ok(slf)
    }

    #[doc = stub!("MessagePacker.pack_int")]
    #[pyo3(signature = (value, /))]
    fn pack_int<'py>(
        slf: PyRef<'py, Self>,
        value: &Bound<'py, PyAny>,
    ) -> PyResult<PyRef<'py, Self>> {
        slf.add(&integer::<i32>("value", value)?.to_le_bytes())?;
        Ok(slf)
    }

    #[doc = stub!("MessagePacker.pack_long")]
    #[pyo3(signature = (value, /))]
    fn pack_long<'py>(
        slf: PyRef<'py, Self>,
        value: &Bound<'py, PyAny>,
    ) -> PyResult<PyRef<'py, Self>> {
        slf.add(&integer::<i64>("value", value)?.to_le_bytes())?;
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
        slf.add(&narrow.to_le_bytes())?;
        Ok(slf)
    }

    #[doc = stub!("MessagePacker.pack_double")]
    #[pyo3(signature = (value, /))]
    fn pack_double(slf: PyRef<'_, Self>, value: f64) -> PyResult<PyRef<'_, Self>> {
        slf.add(&value.to_le_bytes())?;
        Ok(slf)
    }

    #[doc = stub!("MessagePacker.pack_string")]
    #[pyo3(signature = (value, /))]
    fn pack_string<'py>(
        slf: PyRef<'py, Self>,
        value: &Bound<'py, PyString>,
    ) -> PyResult<PyRef<'py, Self>> {
        let text = value.to_string_lossy(); // only non-ASCII characters are replaced
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
        let bytes = Message::any(value)?;
        slf.try_add(|fields| pack::counted(fields, "bytes", bytes.bytes()))?;
        Ok(slf)
    }

    #[doc = stub!("MessagePacker.pack_raw")]
    #[pyo3(signature = (value, /))]
    fn pack_raw<'py>(
        slf: PyRef<'py, Self>,
        value: &Bound<'py, PyAny>,
    ) -> PyResult<PyRef<'py, Self>> {
        slf.add(Message::any(value)?.bytes())?;
        Ok(slf)
    }

    #[doc = stub!("MessagePacker.write_message")]
    fn write_message(&self, py: Python<'_>) -> PyResult<u64> {
        if let Some(written) = self.with(|fields| try_append(&self.appender, fields)) {
            return written;
        }
        let mut fields = self.with(std::mem::take);
        let written = fields.written().map_err(|fault| Failure::from(fault).into());
        let written = written.and_then(|fields| appender::append(py, &self.appender, fields));
        if written.is_err() {
            // Nothing was written: keep the fields, to be written again or discarded.
            self.with(|later| {
                fields.extend_from_slice(later.written().unwrap_or_default());
                *later = fields;
            });
        }
        written
    }

    #[doc = stub!("MessagePacker.discard")]
    fn discard(&self) {
        self.with(Out::clear);
    }

    fn __len__(&self) -> usize {
        self.with(|fields| fields.len())
    }

    fn __repr__(&self) -> String {
        format!("MessagePacker({} bytes)", self.__len__())
    }
}
