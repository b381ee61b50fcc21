//! Arrow columns to messages.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use quire_wire::DEPTH_MAX;
use quire_wire::arrow::encode::Buffers;
use quire_wire::arrow::encode::encoder::{Content, Encoder as Kernel};

use super::decode::{field, method};
use crate::buffer::{Borrowed, Buffer};
use crate::error::or_raise;

#[doc = stub!("Encoder")]
#[pyclass(module = "quire._native", frozen)]
pub struct Encoder(Kernel);

#[pymethods]
impl Encoder {
    #[new]
    #[pyo3(signature = (content, parts, *, type_name = "", omit_nulls = false, fieldless = false))]
    fn new(
        content: &str,
        parts: Vec<Bound<'_, PyAny>>,
        type_name: &str,
        omit_nulls: bool,
        fieldless: bool,
    ) -> PyResult<Self> {
        let fields = || parts.iter().map(|part| field(part, 0)).collect::<PyResult<Vec<_>>>();
        let methods = || parts.iter().map(method).collect::<PyResult<Vec<_>>>();
        let one = || PyValueError::new_err(format!("one part is needed: content={content}"));
        let content = match content {
            "value" => Content::Value(fields()?.pop().ok_or_else(one)?),
            "entries" => Content::Entries(fields()?),
            "fields" => Content::Fields(fields()?),
            "typed" => Content::Typed(type_name.to_owned(), fields()?),
            "call" => Content::Call(methods()?.pop().ok_or_else(one)?),
            _ => Content::Calls(methods()?),
        };
        Ok(Self(Kernel::new(content, omit_nulls, fieldless)))
    }

    #[doc = stub!("Encoder.encode")]
    #[pyo3(signature = (count, columns, /))]
    fn encode(
        &self,
        py: Python<'_>,
        count: usize,
        columns: Vec<Bound<'_, PyAny>>,
    ) -> PyResult<(Buffer, Buffer)> {
        let columns =
            columns.iter().map(|column| Column::new(column, 0)).collect::<PyResult<Vec<_>>>()?;
        let messages = or_raise(
            py,
            py.detach(|| {
                let parts: Vec<_> = columns.iter().map(Column::parts).collect();
                Ok(self.0.encode(count, &parts)?)
            }),
        )?;
        Ok((Buffer::column(messages.offsets), Buffer::column(messages.data)))
    }
}

/// A borrowed Arrow column.
struct Column {
    length: usize,
    start: usize,
    has_zone: bool,
    buffers: Vec<Option<Borrowed>>,
    children: Vec<Self>,
    dictionary: Option<Box<Self>>,
}

impl Column {
    /// Length, the first value's place, whether it has a zone, buffers, the columns inside, the
    /// values of a dictionary.
    fn new(object: &Bound<'_, PyAny>, depth: usize) -> PyResult<Self> {
        type Parts<'py> = (
            usize,
            usize,
            bool,
            Vec<Option<Bound<'py, PyAny>>>,
            Vec<Bound<'py, PyAny>>,
            Option<Bound<'py, PyAny>>,
        );
        if depth > 2 * DEPTH_MAX {
            return Err(PyValueError::new_err(format!("nested too deep: limit={DEPTH_MAX}")));
        }
        let (length, start, has_zone, buffers, children, dictionary): Parts<'_> =
            object.extract()?;
        let borrowed =
            |buffer: &Option<Bound<'_, PyAny>>| buffer.as_ref().map(Borrowed::new).transpose();
        let inside = |child: &Bound<'_, PyAny>| Self::new(child, depth + 1);
        Ok(Self {
            length,
            start,
            has_zone,
            buffers: buffers.iter().map(borrowed).collect::<PyResult<_>>()?,
            children: children.iter().map(inside).collect::<PyResult<_>>()?,
            dictionary: dictionary.as_ref().map(inside).transpose()?.map(Box::new),
        })
    }

    fn parts(&self) -> Buffers<'_> {
        Buffers {
            length: self.length,
            start: self.start,
            has_zone: self.has_zone,
            buffers: self.buffers.iter().map(|it| it.as_ref().map(Borrowed::bytes)).collect(),
            children: self.children.iter().map(Self::parts).collect(),
            dictionary: self.dictionary.as_ref().map(|values| Box::new(values.parts())),
        }
    }
}
