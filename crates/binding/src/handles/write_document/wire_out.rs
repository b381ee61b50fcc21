//! A document written value by value: with codes, or raw.

use pyo3::prelude::*;
use pyo3::types::PyString;
use quire_wire::WireError;
use quire_wire::out::Out;
use quire_wire::writer::{self, put_stop_bit, put_type_prefix};

use super::WriteDocument;
use crate::buffer::Borrowed;
use crate::values::failure::Result;
use crate::values::schema;
use crate::values::{encode, fixed};

#[doc = stub!("WireOut")]
#[pyclass(module = "quire._native", frozen)]
pub struct WireOut(pub Py<WriteDocument>);

#[doc = stub!("RawOut")]
#[pyclass(module = "quire._native", frozen)]
pub struct RawOut(pub Py<WriteDocument>);

/// Appends a value, as a declared type if one is given.
fn put(
    py: Python<'_>,
    out: &mut Out,
    value: &Bound<'_, PyAny>,
    declared: Option<&Bound<'_, PyAny>>,
) -> Result<()> {
    match declared {
        None => encode::put_value(out, value, 0),
        Some(_) => schema::of_annotation(py, declared)?.get().put(out, value, 0),
    }
}

#[pymethods]
impl WireOut {
    fn __repr__(&self, py: Python<'_>) -> String {
        format!("WireOut({})", WriteDocument::__repr__(self.0.bind(py)))
    }

    #[doc = stub!("WireOut.write")]
    #[pyo3(signature = (name, value, /, r#type = None))]
    fn write(
        &self,
        py: Python<'_>,
        name: &str,
        value: &Bound<'_, PyAny>,
        r#type: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        self.0.get().put_fields(|out| {
            writer::put_field(out, name)?;
            put(py, out, value, r#type).map_err(|failure| failure.inside(name))
        })
    }

    #[doc = stub!("WireOut.write_value")]
    #[pyo3(signature = (value, /, r#type = None))]
    fn write_value(
        &self,
        py: Python<'_>,
        value: &Bound<'_, PyAny>,
        r#type: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        self.0.get().put_fields(|out| put(py, out, value, r#type))
    }

    #[doc = stub!("WireOut.write_event")]
    #[pyo3(signature = (name, /))]
    fn write_event(&self, name: &str) -> PyResult<()> {
        self.0.get().put(|out| Ok(writer::put_key(out, name)?))
    }

    #[doc = stub!("WireOut.write_event_id")]
    #[pyo3(signature = (number, /))]
    fn write_event_id(&self, number: i64) -> PyResult<()> {
        self.0.get().put(|out| {
            writer::put_field_number(out, number);
            Ok(())
        })
    }

    #[doc = stub!("WireOut.write_type")]
    #[pyo3(signature = (name, /))]
    fn write_type(&self, name: &str) -> PyResult<()> {
        self.0.get().put(|out| {
            put_type_prefix(out, name);
            Ok(())
        })
    }

    #[doc = stub!("WireOut.write_comment")]
    #[pyo3(signature = (text, /))]
    fn write_comment(&self, text: &str) -> PyResult<()> {
        self.0.get().put(|out| {
            writer::put_comment(out, text);
            Ok(())
        })
    }
}

impl RawOut {
    fn append(&self, bytes: &[u8]) -> PyResult<()> {
        self.0.get().add(bytes)
    }

    /// Appends the low bytes of an integer, if it fits.
    fn integer(&self, value: i64, kind: &str, bits: u32, min: i64, max: i64) -> PyResult<()> {
        if value < min || value > max {
            let fault = WireError::new("the value does not fit")
                .with("expected", kind)
                .with("found", value);
            return Err(crate::values::failure::Failure::from(fault).into());
        }
        self.append(&value.to_le_bytes()[..bits as usize / 8])
    }
}

#[pymethods]
impl RawOut {
    fn __repr__(&self, py: Python<'_>) -> String {
        format!("RawOut({})", WriteDocument::__repr__(self.0.bind(py)))
    }

    #[doc = stub!("RawOut.write_bool")]
    #[pyo3(signature = (value, /))]
    fn write_bool(&self, value: bool) -> PyResult<()> {
        self.append(&[u8::from(value)])
    }

    #[doc = stub!("RawOut.write_int8")]
    #[pyo3(signature = (value, /))]
    fn write_int8(&self, value: i64) -> PyResult<()> {
        self.integer(value, "int8", 8, i8::MIN.into(), i8::MAX.into())
    }

    #[doc = stub!("RawOut.write_int16")]
    #[pyo3(signature = (value, /))]
    fn write_int16(&self, value: i64) -> PyResult<()> {
        self.integer(value, "int16", 16, i16::MIN.into(), i16::MAX.into())
    }

    #[doc = stub!("RawOut.write_int32")]
    #[pyo3(signature = (value, /))]
    fn write_int32(&self, value: i64) -> PyResult<()> {
        self.integer(value, "int32", 32, i32::MIN.into(), i32::MAX.into())
    }

    #[doc = stub!("RawOut.write_int64")]
    #[pyo3(signature = (value, /))]
    fn write_int64(&self, value: i64) -> PyResult<()> {
        self.append(&value.to_le_bytes())
    }

    #[doc = stub!("RawOut.write_uint8")]
    #[pyo3(signature = (value, /))]
    fn write_uint8(&self, value: i64) -> PyResult<()> {
        self.integer(value, "uint8", 8, 0, u8::MAX.into())
    }

    #[doc = stub!("RawOut.write_uint16")]
    #[pyo3(signature = (value, /))]
    fn write_uint16(&self, value: i64) -> PyResult<()> {
        self.integer(value, "uint16", 16, 0, u16::MAX.into())
    }

    #[doc = stub!("RawOut.write_uint32")]
    #[pyo3(signature = (value, /))]
    fn write_uint32(&self, value: i64) -> PyResult<()> {
        self.integer(value, "uint32", 32, 0, u32::MAX.into())
    }

    #[doc = stub!("RawOut.write_float32")]
    #[pyo3(signature = (value, /))]
    #[allow(clippy::cast_possible_truncation)] // as asked for
    fn write_float32(&self, value: f64) -> PyResult<()> {
        self.append(&(value as f32).to_le_bytes())
    }

    #[doc = stub!("RawOut.write_float64")]
    #[pyo3(signature = (value, /))]
    fn write_float64(&self, value: f64) -> PyResult<()> {
        self.append(&value.to_le_bytes())
    }

    #[doc = stub!("RawOut.write_stop_bit")]
    #[pyo3(signature = (value, /))]
    fn write_stop_bit(&self, value: i64) -> PyResult<()> {
        self.0.get().put(|out| {
            put_stop_bit(out, value);
            Ok(())
        })
    }

    #[doc = stub!("RawOut.write_utf8")]
    #[pyo3(signature = (text, /))]
    fn write_utf8(&self, text: Option<&Bound<'_, PyString>>) -> PyResult<()> {
        self.0.get().put(|out| {
            let Some(text) = text else {
                put_stop_bit(out, -1);
                return Ok(());
            };
            fixed::put_text(out, &text.to_cow()?);
            Ok(())
        })
    }

    #[doc = stub!("RawOut.write_bytes")]
    #[pyo3(signature = (data, /))]
    fn write_bytes(&self, data: &Bound<'_, PyAny>) -> PyResult<()> {
        self.append(Borrowed::new(data)?.bytes())
    }
}
