use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyString;
use quire_kernel::Error;
use quire_kernel::vanilla::format::fields::FieldWriter;
use quire_kernel::vanilla::format::record;
use quire_kernel::vanilla::protocol::cycle_writer::Room;
use quire_kernel::vanilla::{Record, VanillaAppender};

use crate::arguments::{integer, kind, optional};
use crate::detached::detached;
use crate::error::{or_raise, to_py};
use crate::handles::clock::QueueClock;
use crate::handles::payload::Message;
use crate::values::failure::Failure;
use crate::vanilla::{appended, object};

/// The claim word at the start of a claimable message.
const CLAIM_WORD: usize = 4;
/// Bytes of the widest word that can be swapped.
const WORD: usize = 8;

#[doc = stub!("ExcerptWriter")]
#[pyclass(module = "quire._native", frozen)]
pub struct ExcerptWriter {
    appender: Arc<VanillaAppender>,
    clock: Arc<QueueClock>,
    synchronous: bool,
    claimable: bool,
    capacity: u64,
    state: Mutex<State>,
}

struct State {
    /// None once finished or rolled back.
    fields: Option<FieldWriter>,
    index: Option<i64>,
    /// Whether a 64-bit word must lie at a multiple of 8.
    is_aligned: bool,
}

impl ExcerptWriter {
    pub fn new(
        appender: Arc<VanillaAppender>,
        clock: Arc<QueueClock>,
        synchronous: bool,
        claimable: bool,
        capacity: u64,
    ) -> Self {
        let bytes = if claimable { vec![0; CLAIM_WORD] } else { Vec::new() };
        let fields = Some(FieldWriter::after(bytes));
        let state = Mutex::new(State { fields, index: None, is_aligned: false });
        Self { appender, clock, synchronous, claimable, capacity, state }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, put: impl FnOnce(&mut FieldWriter)) -> PyResult<()> {
        let mut state = self.lock();
        let padding = if state.is_aligned { record::padding(0) } else { 0 };
        let Some(fields) = &mut state.fields else { return Err(self.closed()) };
        let before = fields.length();
        put(fields);
        let fits = fields.check().map_err(Error::from);
        let length = fields.length() as u64 + padding;
        let fits = fits.and_then(|()| self.appender.check_fits(length));
        if fits.is_err() {
            fields.truncate(before);
        }
        fits.map_err(to_py)
    }

    #[cold]
    fn closed(&self) -> PyErr {
        to_py(Error::closed("excerpt", self.appender.queue().path()))
    }
}

#[pymethods]
impl ExcerptWriter {
    #[doc = stub!("ExcerptWriter.index")]
    #[getter]
    fn index(&self) -> Option<i64> {
        self.lock().index
    }

    #[doc = stub!("ExcerptWriter.position")]
    #[getter]
    fn position(&self) -> PyResult<usize> {
        let state = self.lock();
        state.fields.as_ref().map(FieldWriter::length).ok_or_else(|| self.closed())
    }

    #[doc = stub!("ExcerptWriter.align")]
    #[pyo3(signature = (width = None, /), text_signature = "($self, width=8, /)")]
    fn align(&self, width: Option<&Bound<'_, PyAny>>) -> PyResult<usize> {
        let width: usize = optional("width", width)?.unwrap_or(WORD);
        if ![4, WORD].contains(&width) {
            return Err(PyValueError::new_err(format!("invalid width={width}: expected 4 or 8")));
        }
        let before = {
            let mut state = self.lock();
            state.is_aligned |= width == WORD;
            state.fields.as_ref().map_or(0, FieldWriter::length)
        };
        let offset = before.next_multiple_of(width);
        self.put(|fields| fields.put(&[0; WORD][..offset - before]))?;
        Ok(offset)
    }

    #[doc = stub!("ExcerptWriter.write_bytes")]
    #[pyo3(signature = (data, /))]
    fn write_bytes(&self, data: &Bound<'_, PyAny>) -> PyResult<()> {
        let data = Message::any(data)?;
        self.put(|fields| fields.put(data.bytes()))
    }

    #[doc = stub!("ExcerptWriter.write_int8")]
    #[pyo3(signature = (value, /))]
    fn write_int8(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let value: i8 = integer("value", value)?;
        self.put(|fields| fields.put(&value.to_le_bytes()))
    }

    #[doc = stub!("ExcerptWriter.write_int16")]
    #[pyo3(signature = (value, /))]
    fn write_int16(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let value: i16 = integer("value", value)?;
        self.put(|fields| fields.put(&value.to_le_bytes()))
    }

    #[doc = stub!("ExcerptWriter.write_int24")]
    #[pyo3(signature = (value, /))]
    fn write_int24(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let value = within(value, 24)?;
        self.put(|fields| fields.put(&value.to_le_bytes()[..3]))
    }

    #[doc = stub!("ExcerptWriter.write_int32")]
    #[pyo3(signature = (value, /))]
    fn write_int32(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let value: i32 = integer("value", value)?;
        self.put(|fields| fields.put(&value.to_le_bytes()))
    }

    #[doc = stub!("ExcerptWriter.write_int48")]
    #[pyo3(signature = (value, /))]
    fn write_int48(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let value = within(value, 48)?;
        self.put(|fields| fields.put(&value.to_le_bytes()[..6]))
    }

    #[doc = stub!("ExcerptWriter.write_int64")]
    #[pyo3(signature = (value, /))]
    fn write_int64(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let value: i64 = integer("value", value)?;
        self.put(|fields| fields.put(&value.to_le_bytes()))
    }

    #[doc = stub!("ExcerptWriter.write_float32")]
    #[pyo3(signature = (value, /))]
    fn write_float32(&self, value: f32) -> PyResult<()> {
        self.put(|fields| fields.put(&value.to_le_bytes()))
    }

    #[doc = stub!("ExcerptWriter.write_float64")]
    #[pyo3(signature = (value, /))]
    fn write_float64(&self, value: f64) -> PyResult<()> {
        self.put(|fields| fields.put(&value.to_le_bytes()))
    }

    #[doc = stub!("ExcerptWriter.write_boolean")]
    #[pyo3(signature = (value, /))]
    fn write_boolean(&self, value: bool) -> PyResult<()> {
        self.put(|fields| fields.put(&[if value { b'Y' } else { 0 }]))
    }

    #[doc = stub!("ExcerptWriter.write_char")]
    #[pyo3(signature = (value, /))]
    fn write_char(&self, value: char) -> PyResult<()> {
        let Ok(unit) = u16::try_from(u32::from(value)) else {
            let what = format!("a char is one UTF-16 unit: value={value:?}");
            return Err(PyValueError::new_err(what));
        };
        self.put(|fields| fields.put(&unit.to_le_bytes()))
    }

    #[doc = stub!("ExcerptWriter.write_stop_bit")]
    #[pyo3(signature = (value, /))]
    fn write_stop_bit(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let value = integer("value", value)?;
        self.put(|fields| fields.put_stop_bit(value))
    }

    #[doc = stub!("ExcerptWriter.write_compact_int")]
    #[pyo3(signature = (value, /))]
    fn write_compact_int(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let value = integer("value", value)?;
        self.put(|fields| fields.put_compact_int(value))
    }

    #[doc = stub!("ExcerptWriter.write_compact_long")]
    #[pyo3(signature = (value, /))]
    fn write_compact_long(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let value = integer("value", value)?;
        self.put(|fields| fields.put_compact_long(value))
    }

    #[doc = stub!("ExcerptWriter.write_compact_double")]
    #[pyo3(signature = (value, /))]
    fn write_compact_double(&self, value: f64) -> PyResult<()> {
        self.put(|fields| fields.put_compact_double(value))
    }

    #[doc = stub!("ExcerptWriter.write_utf")]
    #[pyo3(signature = (text, /))]
    fn write_utf(&self, text: Option<&str>) -> PyResult<()> {
        self.put(|fields| fields.put_utf(text))
    }

    #[doc = stub!("ExcerptWriter.write_utf16_length")]
    #[pyo3(signature = (text, /))]
    fn write_utf16_length(&self, text: &str) -> PyResult<()> {
        let mut is_put = false;
        self.put(|fields| is_put = fields.put_short_utf(text))?;
        let what = "a text of more than 65,535 bytes has no 16-bit length";
        if is_put { Ok(()) } else { Err(PyValueError::new_err(what)) }
    }

    #[doc = stub!("ExcerptWriter.write_enum")]
    #[pyo3(signature = (value, /))]
    fn write_enum(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let name = if value.is_instance_of::<PyString>() {
            value.extract::<String>()
        } else {
            value.getattr("name").and_then(|name| name.extract())
        };
        let name = name.map_err(|_| {
            let found = kind(value);
            PyTypeError::new_err(format!(
                "invalid value: expected a name or an enum, found {found}"
            ))
        })?;
        let mut is_put = false;
        self.put(|fields| is_put = fields.put_enum(&name))?;
        let refused =
            || PyValueError::new_err(format!("not a name of Latin-1 characters: value={name:?}"));
        if is_put { Ok(()) } else { Err(refused()) }
    }

    #[doc = stub!("ExcerptWriter.write_object")]
    #[pyo3(signature = (value, /))]
    fn write_object(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        self.put(object::put(value)?)
    }

    #[doc = stub!("ExcerptWriter.append")]
    #[pyo3(signature = (value, /, *, precision = None))]
    fn append(
        &self,
        value: &Bound<'_, PyAny>,
        precision: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let text = appended::text(value, precision)?;
        self.put(|fields| fields.put_text(&text))
    }

    #[doc = stub!("ExcerptWriter.finish")]
    fn finish(&self, py: Python<'_>) -> PyResult<i64> {
        let now = self.clock.now_ms(py)?;
        let (fields, is_aligned) = {
            let mut state = self.lock();
            (state.fields.take(), state.is_aligned)
        };
        let Some(fields) = fields else { return Err(self.closed()) };
        let record = Record {
            parts: [fields.bytes().map_err(Failure::from)?, &[]],
            room: Room { capacity: self.capacity, is_aligned },
            synchronous: self.synchronous,
        };
        let index =
            or_raise(py, detached(py, |may_wait| self.appender.append(may_wait, now, record)))?;
        self.lock().index = Some(index);
        Ok(index)
    }

    #[doc = stub!("ExcerptWriter.rollback")]
    fn rollback(&self) {
        self.lock().fields = None;
    }

    fn __repr__(&self) -> String {
        let state = self.lock();
        let claimable = if self.claimable { ", claimable" } else { "" };
        match (&state.fields, state.index) {
            (Some(fields), _) => {
                format!("ExcerptWriter({} bytes{claimable})", fields.length())
            }
            (None, Some(index)) => format!("ExcerptWriter(index={index:#x}{claimable})"),
            (None, None) => "ExcerptWriter(rolled back)".to_owned(),
        }
    }
}

context_manager!(ExcerptWriter, |it, py, raised| {
    if raised {
        it.rollback();
    } else if it.lock().fields.is_some() {
        it.finish(py)?;
    }
    Ok(())
});

fn within(value: &Bound<'_, PyAny>, bits: u32) -> PyResult<i64> {
    let value: i64 = integer("value", value)?;
    let limit = 1 << (bits - 1);
    if (-limit..limit).contains(&value) {
        return Ok(value);
    }
    let expected = format!("an integer from {} to {}", -limit, limit - 1);
    Err(PyValueError::new_err(format!("invalid value: expected {expected}, found {value}")))
}
