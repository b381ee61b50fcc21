//! Reads a document value by value, encoded or raw, from one shared position.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};
use quire_wire::WireError;
use quire_wire::latin1;
use quire_wire::reader::{self, Name, Reader};

use super::ReadDocument;
use crate::buffer;
use crate::error::to_py;
use crate::values::failure::{Failure, Result};
use crate::values::schema;

#[doc = stub!("WireIn")]
#[pyclass(module = "quire._native", frozen)]
pub struct WireIn(pub Py<ReadDocument>);

#[doc = stub!("RawIn")]
#[pyclass(module = "quire._native", frozen)]
pub struct RawIn(pub Py<ReadDocument>);

/// A name as text; a complex key is an error.
fn shown(name: Name<'_>, at: usize) -> Result<String> {
    match name {
        Name::Field(name) | Name::Event(name) => Ok(latin1::decode(name).into_owned()),
        Name::Number(number) => Ok(number.to_string()),
        Name::Object => {
            Err(WireError::new("the key is a value, not a name").with("offset", at).into())
        }
    }
}

/// Skips a name, with its value if it is a complex key.
fn next_name<'a>(cursor: &mut Reader<'a>) -> Result<Option<Name<'a>>> {
    let found = cursor.name()?;
    if matches!(found, Some(Name::Object)) {
        cursor.skip()?;
    }
    Ok(found)
}

#[pymethods]
impl WireIn {
    fn __repr__(&self, py: Python<'_>) -> String {
        format!("WireIn({})", ReadDocument::__repr__(self.0.bind(py)))
    }

    #[doc = stub!("WireIn.read")]
    #[pyo3(signature = (name, /, r#type = None))]
    fn read<'py>(
        &self,
        py: Python<'py>,
        name: &str,
        r#type: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let declared = schema::of_annotation(py, r#type)?;
        self.0.get().at_place(|cursor| {
            // Search forward first: fields are usually read in order.
            for mut ahead in [*cursor, cursor.back_to(0)] {
                while let Some(found) = next_name(&mut ahead)? {
                    if found != Name::Object && shown(found, ahead.offset())? == name {
                        let value = declared.get().get(py, &mut ahead, 0);
                        *cursor = ahead;
                        return value.map_err(|failure| failure.inside(name));
                    }
                    ahead.skip()?;
                }
            }
            Err(WireError::new("there is no such field").inside(name).into())
        })
    }

    #[doc = stub!("WireIn.read_value")]
    #[pyo3(signature = (r#type = None))]
    fn read_value<'py>(
        &self,
        py: Python<'py>,
        r#type: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let declared = schema::of_annotation(py, r#type)?;
        self.0.get().at_place(|cursor| declared.get().get(py, cursor, 0))
    }

    #[doc = stub!("WireIn.read_name")]
    fn read_name(&self) -> PyResult<Option<String>> {
        self.0.get().at_place(|cursor| {
            let at = cursor.offset();
            cursor.name()?.map(|name| shown(name, at)).transpose()
        })
    }

    #[doc = stub!("WireIn.skip_value")]
    fn skip_value(&self) -> PyResult<()> {
        self.0.get().at_place(|cursor| Ok(cursor.skip()?))
    }

    #[doc = stub!("WireIn.has_more")]
    #[getter]
    fn has_more(&self) -> PyResult<bool> {
        self.0.get().at_place(|cursor| Ok(cursor.peek().is_some()))
    }
}

// Closures, because method paths would fix one lifetime each.
#[allow(clippy::redundant_closure_for_method_calls)]
impl RawIn {
    fn number<const N: usize>(&self, what: &'static str) -> PyResult<[u8; N]> {
        self.take(what, |cursor| cursor.array())
    }

    fn take<T>(
        &self,
        what: &'static str,
        take: impl FnOnce(&mut Reader<'_>) -> Option<T>,
    ) -> PyResult<T> {
        self.0.get().at_place(|cursor| {
            let at = cursor.offset();
            take(cursor).ok_or_else(|| {
                Failure::from(
                    WireError::early("the document ends early", at).with("expected", what),
                )
            })
        })
    }
}

#[pymethods]
#[allow(clippy::redundant_closure_for_method_calls)] // as above
impl RawIn {
    fn __repr__(&self, py: Python<'_>) -> String {
        format!("RawIn({})", ReadDocument::__repr__(self.0.bind(py)))
    }

    #[doc = stub!("RawIn.read_bool")]
    fn read_bool(&self) -> PyResult<bool> {
        self.number("bool").map(|[byte]| byte != 0)
    }

    #[doc = stub!("RawIn.read_int8")]
    fn read_int8(&self) -> PyResult<i8> {
        self.number("int8").map(i8::from_le_bytes)
    }

    #[doc = stub!("RawIn.read_int16")]
    fn read_int16(&self) -> PyResult<i16> {
        self.number("int16").map(i16::from_le_bytes)
    }

    #[doc = stub!("RawIn.read_int32")]
    fn read_int32(&self) -> PyResult<i32> {
        self.number("int32").map(i32::from_le_bytes)
    }

    #[doc = stub!("RawIn.read_int64")]
    fn read_int64(&self) -> PyResult<i64> {
        self.number("int64").map(i64::from_le_bytes)
    }

    #[doc = stub!("RawIn.read_uint8")]
    fn read_uint8(&self) -> PyResult<u8> {
        self.number("uint8").map(u8::from_le_bytes)
    }

    #[doc = stub!("RawIn.read_uint16")]
    fn read_uint16(&self) -> PyResult<u16> {
        self.number("uint16").map(u16::from_le_bytes)
    }

    #[doc = stub!("RawIn.read_uint32")]
    fn read_uint32(&self) -> PyResult<u32> {
        self.number("uint32").map(u32::from_le_bytes)
    }

    #[doc = stub!("RawIn.read_float32")]
    fn read_float32(&self) -> PyResult<f32> {
        self.number("float32").map(f32::from_le_bytes)
    }

    #[doc = stub!("RawIn.read_float64")]
    fn read_float64(&self) -> PyResult<f64> {
        self.number("float64").map(f64::from_le_bytes)
    }

    #[doc = stub!("RawIn.read_stop_bit")]
    fn read_stop_bit(&self) -> PyResult<i64> {
        self.take("a stop-bit integer", |cursor| cursor.stop_bit())
    }

    #[doc = stub!("RawIn.read_utf8")]
    fn read_utf8<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyString>>> {
        self.0.get().at_place(|cursor| {
            let at = cursor.offset();
            let early = || WireError::early("a text ends early, or its length is invalid", at);
            match cursor.stop_bit().ok_or_else(early)? {
                -1 => Ok(None),
                length => {
                    let length = usize::try_from(length).map_err(|_| early())?;
                    let bytes = cursor.take(length).ok_or_else(early)?;
                    Ok(Some(buffer::text(py, &reader::text(bytes, at)?)?))
                }
            }
        })
    }

    #[doc = stub!("RawIn.read_bytes")]
    #[pyo3(signature = (length, /))]
    fn read_bytes<'py>(&self, py: Python<'py>, length: usize) -> PyResult<Bound<'py, PyBytes>> {
        self.0.get().at_place(|cursor| {
            let at = cursor.offset();
            let early = || WireError::early("the document ends early", at).with("expected", length);
            Ok(buffer::bytes(py, cursor.take(length).ok_or_else(early)?).map_err(to_py)?)
        })
    }

    #[doc = stub!("RawIn.remaining")]
    #[getter]
    fn remaining(&self) -> PyResult<usize> {
        self.0.get().at_place(|cursor| Ok(cursor.rest().len()))
    }

    #[doc = stub!("RawIn.position")]
    #[getter]
    fn position(&self) -> PyResult<usize> {
        self.0.get().at_place(|cursor| Ok(cursor.offset()))
    }

    #[setter]
    fn set_position(&self, position: usize) -> PyResult<()> {
        self.0.get().at_place(|cursor| {
            *cursor = cursor.back_to(0);
            match cursor.take(position) {
                Some(_) => Ok(()),
                None => Err(WireError::new("position after the end of the document")
                    .with("position", position)
                    .with("length", cursor.rest().len())
                    .into()),
            }
        })
    }
}
