use std::sync::atomic::{AtomicUsize, Ordering};

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};
use quire_kernel::quick_queue::format::decimal::Decimal;
use quire_kernel::quick_queue::format::field::{FieldError, Result as FieldResult};
use quire_kernel::quick_queue::format::unpack::Fields;
use quire_kernel::quick_queue::message::MappedBytes;

use super::decimal;
use crate::arguments::integer;
use crate::buffer::{self, Borrowed};
use crate::error::{WireError, to_py};

#[doc = stub!("MessageUnpacker")]
#[pyclass(module = "quire._native", frozen)]
pub struct MessageUnpacker {
    message: Kept,
    position: AtomicUsize,
}

/// A message, kept while its fields are read.
enum Kept {
    Object(Py<PyBytes>),
    /// In its page.
    Mapped(MappedBytes),
}

impl Kept {
    #[inline]
    fn as_bytes<'a>(&'a self, py: Python<'a>) -> &'a [u8] {
        match self {
            Self::Object(bytes) => bytes.as_bytes(py),
            Self::Mapped(bytes) => bytes.bytes(),
        }
    }
}

#[cold]
fn refusal(error: FieldError) -> PyErr {
    WireError::new_err(error.to_string())
}

impl MessageUnpacker {
    /// The fields of a message, from the first one on.
    pub const fn of(message: Py<PyBytes>) -> Self {
        Self { message: Kept::Object(message), position: AtomicUsize::new(0) }
    }

    /// The same of a message in its page, without a copy.
    pub const fn in_place(message: MappedBytes) -> Self {
        Self { message: Kept::Mapped(message), position: AtomicUsize::new(0) }
    }

    /// The next fields.
    fn take<'a, T>(
        &'a self,
        py: Python<'a>,
        take: impl FnOnce(&mut Fields<'a>) -> FieldResult<T>,
    ) -> PyResult<T> {
        self.take_as(py, take, Ok)
    }

    /// Reads the next fields and converts them by `make`; a failure leaves the position unchanged.
    fn take_as<'a, T, R>(
        &'a self,
        py: Python<'a>,
        take: impl FnOnce(&mut Fields<'a>) -> FieldResult<T>,
        make: impl FnOnce(T) -> PyResult<R>,
    ) -> PyResult<R> {
        let position = self.position.load(Ordering::Relaxed);
        let mut fields = Fields::from(self.message.as_bytes(py), position);
        let value = make(take(&mut fields).map_err(refusal)?)?;
        self.position.store(fields.position(), Ordering::Relaxed);
        Ok(value)
    }
}

fn copied<'py>(py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
    buffer::bytes(py, bytes).map_err(to_py)
}

/// A text of UTF-16 units, which may have lone surrogates.
fn text<'py>(py: Python<'py>, units: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    copied(py, units)?.call_method1("decode", ("utf-16-le", "surrogatepass"))
}

#[pymethods]
impl MessageUnpacker {
    #[new]
    #[pyo3(signature = (message, /))]
    fn new(py: Python<'_>, message: &Bound<'_, PyAny>) -> PyResult<Self> {
        let bytes = match message.cast::<PyBytes>() {
            Ok(bytes) => bytes.clone(),
            Err(_) => copied(py, Borrowed::new(message)?.bytes())?,
        };
        Ok(Self::of(bytes.unbind()))
    }

    #[doc = stub!("MessageUnpacker.unpack_char")]
    fn unpack_char<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.take_as(py, |fields| fields.take::<2>("char"), |unit| text(py, &unit))
    }

    #[doc = stub!("MessageUnpacker.unpack_string")]
    fn unpack_string<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
        self.take_as(py, Fields::string, |text| buffer::text(py, text))
    }

    #[doc = stub!("MessageUnpacker.unpack_unicode")]
    fn unpack_unicode<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.take_as(py, Fields::unicode, |units| text(py, units))
    }

    #[doc = stub!("MessageUnpacker.unpack_decimal")]
    #[pyo3(signature = (*, legacy = false))]
    fn unpack_decimal<'py>(&self, py: Python<'py>, legacy: bool) -> PyResult<Bound<'py, PyAny>> {
        let value = self.take(py, |fields| Decimal::unpack(fields, legacy))?;
        decimal::decimal(py, value)
    }

    #[doc = stub!("MessageUnpacker.unpack_big_integer")]
    fn unpack_big_integer<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        decimal::integer(py, self.take(py, |fields| fields.counted("big_integer"))?)
    }

    #[doc = stub!("MessageUnpacker.unpack_bytes")]
    fn unpack_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        self.take_as(py, |fields| fields.counted("bytes"), |bytes| copied(py, bytes))
    }

    #[doc = stub!("MessageUnpacker.unpack_raw")]
    #[pyo3(signature = (count, /))]
    fn unpack_raw<'py>(
        &self,
        py: Python<'py>,
        count: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let count = integer("count", count)?;
        self.take_as(py, |fields| fields.take_many("raw", count), |bytes| copied(py, bytes))
    }

    #[doc = stub!("MessageUnpacker.position")]
    #[getter]
    fn position(&self) -> usize {
        self.position.load(Ordering::Relaxed)
    }

    #[doc = stub!("MessageUnpacker.remaining")]
    #[getter]
    fn remaining(&self, py: Python<'_>) -> usize {
        self.message.as_bytes(py).len().saturating_sub(self.position())
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let length = self.message.as_bytes(py).len();
        format!("MessageUnpacker(position={}, length={length})", self.position())
    }
}

field_reads! {
    impl MessageUnpacker {
        fn unpack_byte() -> i8 = |fields| fields.take("byte").map(i8::from_le_bytes);
        fn unpack_boolean() -> bool = |fields| fields.take("boolean").map(|byte| byte == [1]);
        fn unpack_short() -> i16 = |fields| fields.take("short").map(i16::from_le_bytes);
        fn unpack_int() -> i32 = |fields| fields.take("int").map(i32::from_le_bytes);
        fn unpack_long() -> i64 = |fields| fields.take("long").map(i64::from_le_bytes);
        fn unpack_float() -> f32 = |fields| fields.take("float").map(f32::from_le_bytes);
        fn unpack_double() -> f64 = |fields| fields.take("double").map(f64::from_le_bytes);
    }
}
