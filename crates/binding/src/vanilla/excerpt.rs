#![expect(clippy::redundant_closure_for_method_calls, reason = "methods are of one lifetime")]

use std::borrow::Cow;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyMemoryView, PyString, PyType};
use quire_kernel::vanilla::format::fields::{FieldError, FieldReader};
use quire_kernel::vanilla::format::parse::{DATE, DATE_TIME, TIME};
use quire_kernel::vanilla::{Message, VanillaQueue};

use crate::arguments::integer;
use crate::buffer::{self, Buffer};
use crate::error::{UnsupportedError, WireError, or_raise, to_py};
use crate::handles::payload::Message as Payload;
use crate::repr;
use crate::vanilla::{appended, object};

/// A lock word holds its count above its owner; this is a count of 1.
const LOCK_COUNT: u32 = 1 << 24;

/// Most fields are no longer than this, in bytes.
const FIRST_PART: u64 = 64;

/// The class, and its arguments.
type Pickled<'py> = (Bound<'py, PyType>, (i64, Py<PyBytes>));

#[doc = stub!("VanillaExcerpt")]
#[pyclass(module = "quire._native", frozen)]
pub struct VanillaExcerpt {
    index: i64,
    data: PyOnceLock<Py<PyBytes>>,
    /// None for an unpickled excerpt. The queue is None for an Indexed Chronicle, which is never
    /// changed.
    stored: Option<(Message, Option<Arc<VanillaQueue>>)>,
    /// The bytes before this offset belong to the claim.
    start: usize,
    position: AtomicUsize,
}

impl VanillaExcerpt {
    /// A message in place.
    pub fn of(message: Message, queue: &Arc<VanillaQueue>) -> Self {
        Self::from(message, Some(queue), 0)
    }

    /// A message of an Indexed Chronicle.
    pub fn indexed(message: Message) -> Self {
        Self::from(message, None, 0)
    }

    /// A claimed message, whose data follow the claim word.
    pub fn claimed(message: Message, queue: &Arc<VanillaQueue>) -> Self {
        Self::from(message, Some(queue), 4)
    }

    fn from(message: Message, queue: Option<&Arc<VanillaQueue>>, start: usize) -> Self {
        let (index, data) = (message.index, PyOnceLock::new());
        let stored = Some((message, queue.cloned()));
        Self { index, data, stored, start, position: AtomicUsize::new(start) }
    }

    /// The length of the whole payload.
    fn length(&self, py: Python<'_>) -> usize {
        match &self.stored {
            Some((message, _)) => usize::try_from(message.length()).unwrap_or(usize::MAX),
            None => self.pickled(py).len(),
        }
    }

    /// The payload of an unpickled excerpt.
    fn pickled<'a>(&'a self, py: Python<'a>) -> &'a [u8] {
        self.data.get(py).map_or(&[], |data| data.as_bytes(py))
    }

    fn take<T>(
        &self,
        py: Python<'_>,
        take: impl Fn(&mut FieldReader<'_>) -> Result<T, FieldError>,
    ) -> PyResult<T> {
        self.take_as(py, |fields| take(fields).map(Ok))
    }

    /// Reads the next field by `take`; a failure leaves the position unchanged.
    fn take_as<T>(
        &self,
        py: Python<'_>,
        take: impl Fn(&mut FieldReader<'_>) -> Result<PyResult<T>, FieldError>,
    ) -> PyResult<T> {
        let start = self.position.load(Ordering::Acquire);
        let (value, position) = if let Some((message, _)) = &self.stored {
            self.take_stored(message, start, take)?
        } else {
            let mut fields = FieldReader::at(self.pickled(py), start);
            let value = take(&mut fields).map_err(|error| self.bad_field(&error))?;
            (value, fields.position())
        };
        let value = value?;
        self.position.store(position, Ordering::Release);
        Ok(value)
    }

    fn parse_form<'py>(&self, py: Python<'py>, form: &str) -> PyResult<Bound<'py, PyAny>> {
        self.take_as(py, |fields| {
            fields.parse_form(form).map(|text| appended::read(py, form, text))
        })
    }

    /// Reads a field from a copy, since other processes may change the message: first of a part
    /// that suffices for most fields, then of more until the field ends. Also returns where the
    /// next field starts.
    fn take_stored<T>(
        &self,
        message: &Message,
        first: usize,
        take: impl Fn(&mut FieldReader<'_>) -> Result<T, FieldError>,
    ) -> PyResult<(T, usize)> {
        let (start, length) = (first as u64, message.length());
        let (mut part, mut room) = (Vec::new(), FIRST_PART);
        loop {
            let end = length.min(start.saturating_add(room));
            part.clear();
            message.append_to(&mut part, start.min(end)..end).map_err(to_py)?;
            let goes_on = end < length;
            let mut fields = FieldReader::of_part(&part, first, goes_on);
            match take(&mut fields) {
                Err(_) if goes_on => room = room.saturating_mul(16),
                Err(error) => return Err(self.bad_field(&error)),
                Ok(value) => return Ok((value, fields.position())),
            }
        }
    }

    /// The data, without the claim.
    fn copy(&self, py: Python<'_>) -> PyResult<Py<PyBytes>> {
        match &self.stored {
            Some((message, _)) => {
                let (mut bytes, start) = (Vec::new(), message.length().min(self.start as u64));
                message.append_to(&mut bytes, start..message.length()).map_err(to_py)?;
                Ok(buffer::bytes(py, &bytes).map_err(to_py)?.unbind())
            }
            None => Ok(buffer::bytes(py, self.pickled(py)).map_err(to_py)?.unbind()),
        }
    }

    #[cold]
    fn bad_field(&self, error: &FieldError) -> PyErr {
        let FieldError { what, position, length } = error;
        let index = self.index;
        WireError::new_err(format!("{what}: position={position} length={length} index={index:#x}"))
    }

    fn stored(&self) -> PyResult<(&Message, &VanillaQueue)> {
        let why = match &self.stored {
            Some((message, Some(queue))) => return Ok((message, queue)),
            Some((_, None)) => "changing an excerpt of an Indexed Chronicle, which is read-only",
            None => "changing an excerpt that was pickled",
        };
        Err(UnsupportedError::new_err(format!("not supported: {why}")))
    }

    fn swap32(&self, py: Python<'_>, offset: u64, old: u32, new: u32) -> PyResult<Result<(), u32>> {
        let (message, queue) = self.stored()?;
        or_raise(py, queue.swap32(message, offset, old, new))
    }

    fn write_in_place(
        &self,
        py: Python<'_>,
        offset: &Bound<'_, PyAny>,
        bytes: &[u8],
    ) -> PyResult<()> {
        let offset = integer("offset", offset)?;
        let (message, queue) = self.stored()?;
        or_raise(py, queue.write_in_place(message, offset, bytes))
    }

    fn word(&self, offset: u64) -> PyResult<u32> {
        let (message, _) = self.stored()?;
        message.load32(offset).ok_or_else(|| {
            PyValueError::new_err(format!("no word of the message: offset={offset}"))
        })
    }
}

#[pymethods]
impl VanillaExcerpt {
    #[new]
    #[pyo3(signature = (index, data))]
    fn new(py: Python<'_>, index: i64, data: Py<PyBytes>) -> Self {
        let kept = PyOnceLock::new();
        let _ = kept.set(py, data);
        Self { index, data: kept, stored: None, start: 0, position: AtomicUsize::new(0) }
    }

    #[doc = stub!("VanillaExcerpt.index")]
    #[getter]
    const fn index(&self) -> i64 {
        self.index
    }

    #[doc = stub!("VanillaExcerpt.data")]
    #[getter]
    fn data(&self, py: Python<'_>) -> PyResult<Py<PyBytes>> {
        Ok(self.data.get_or_try_init(py, || self.copy(py))?.clone_ref(py))
    }

    #[doc = stub!("VanillaExcerpt.view")]
    #[getter]
    fn view<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyMemoryView>> {
        match &self.stored {
            Some((message, _)) => {
                let buffer = Bound::new(py, Buffer::vanilla(message.clone(), self.start))?;
                PyMemoryView::from(buffer.as_any())
            }
            None => PyMemoryView::from(self.data(py)?.bind(py).as_any()),
        }
    }

    #[doc = stub!("VanillaExcerpt.position")]
    #[getter]
    fn position(&self) -> usize {
        self.position.load(Ordering::Acquire)
    }

    #[setter]
    fn set_position(&self, py: Python<'_>, position: &Bound<'_, PyAny>) -> PyResult<()> {
        let position: usize = integer("position", position)?;
        let length = self.length(py);
        if position > length {
            let what = format!(
                "position after the end of the message: position={position} length={length}"
            );
            return Err(PyValueError::new_err(what));
        }
        self.position.store(position, Ordering::Release);
        Ok(())
    }

    #[doc = stub!("VanillaExcerpt.read_bytes")]
    #[pyo3(signature = (count, /))]
    fn read_bytes<'py>(
        &self,
        py: Python<'py>,
        count: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let count = integer("count", count)?;
        self.take_as(py, |fields| {
            fields.take(count).map(|bytes| buffer::bytes(py, bytes).map_err(to_py))
        })
    }

    #[doc = stub!("VanillaExcerpt.read_utf")]
    fn read_utf<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyString>>> {
        self.take_as(py, |fields| {
            fields.utf().map(|text| text.map(|text| buffer::text(py, &text)).transpose())
        })
    }

    #[doc = stub!("VanillaExcerpt.read_char")]
    fn read_char(&self, py: Python<'_>) -> PyResult<String> {
        let unit = self.take(py, |fields| fields.array().map(u16::from_le_bytes))?;
        Ok(String::from_utf16_lossy(&[unit]))
    }

    #[doc = stub!("VanillaExcerpt.read_enum")]
    #[pyo3(signature = (cls = None, /))]
    fn read_enum<'py>(
        &self,
        py: Python<'py>,
        cls: Option<&Bound<'py, PyType>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let before = self.position.load(Ordering::Acquire);
        let Some(name) = self.take(py, |fields| fields.enum_name())? else { return Ok(None) };
        let name = buffer::text(py, &name)?.into_any();
        match cls.filter(|cls| !cls.is(py.get_type::<PyString>())) {
            None => Ok(Some(name)),
            Some(cls) => match cls.get_item(&name) {
                Ok(member) => Ok(Some(member)),
                Err(error) => {
                    self.position.store(before, Ordering::Release);
                    Err(error)
                }
            },
        }
    }

    #[doc = stub!("VanillaExcerpt.read_object")]
    #[pyo3(signature = (cls = None, /))]
    fn read_object<'py>(
        &self,
        py: Python<'py>,
        cls: Option<&Bound<'py, PyType>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.take_as(py, |fields| {
            let position = fields.position();
            let object = fields.object_with_text()?;
            Ok(object::value(py, position, object, cls))
        })
    }

    #[doc = stub!("VanillaExcerpt.parse_text")]
    #[pyo3(signature = (stop, /))]
    fn parse_text<'py>(&self, py: Python<'py>, stop: &str) -> PyResult<Bound<'py, PyString>> {
        self.take_as(py, |fields| fields.parse_text(stop).map(|text| buffer::text(py, &text)))
    }

    #[doc = stub!("VanillaExcerpt.parse_boolean")]
    #[pyo3(signature = (stop, /))]
    fn parse_boolean(&self, py: Python<'_>, stop: &str) -> PyResult<bool> {
        self.take(py, |fields| fields.parse_boolean(stop))
    }

    #[doc = stub!("VanillaExcerpt.parse_decimal")]
    fn parse_decimal<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let decimal = py.import("decimal")?.getattr("Decimal")?;
        self.take_as(py, |fields| fields.parse_decimal().map(|text| decimal.call1((text,))))
    }

    #[doc = stub!("VanillaExcerpt.parse_date")]
    fn parse_date<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.parse_form(py, DATE)
    }

    #[doc = stub!("VanillaExcerpt.parse_time")]
    fn parse_time<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.parse_form(py, TIME)
    }

    #[doc = stub!("VanillaExcerpt.parse_datetime")]
    fn parse_datetime<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.parse_form(py, DATE_TIME)
    }

    #[doc = stub!("VanillaExcerpt.compare_and_swap_int32")]
    #[pyo3(signature = (offset, expected, new, /))]
    fn compare_and_swap_int32(
        &self,
        py: Python<'_>,
        offset: &Bound<'_, PyAny>,
        expected: &Bound<'_, PyAny>,
        new: &Bound<'_, PyAny>,
    ) -> PyResult<bool> {
        let (expected, new): (i32, i32) = (integer("expected", expected)?, integer("new", new)?);
        let offset = integer("offset", offset)?;
        let swapped = self.swap32(py, offset, expected.cast_unsigned(), new.cast_unsigned())?;
        Ok(swapped.is_ok())
    }

    #[doc = stub!("VanillaExcerpt.compare_and_swap_int64")]
    #[pyo3(signature = (offset, expected, new, /))]
    fn compare_and_swap_int64(
        &self,
        py: Python<'_>,
        offset: &Bound<'_, PyAny>,
        expected: &Bound<'_, PyAny>,
        new: &Bound<'_, PyAny>,
    ) -> PyResult<bool> {
        let (expected, new): (i64, i64) = (integer("expected", expected)?, integer("new", new)?);
        let offset = integer("offset", offset)?;
        let (message, queue) = self.stored()?;
        let swapped = queue.swap64(message, offset, expected.cast_unsigned(), new.cast_unsigned());
        Ok(or_raise(py, swapped)?.is_ok())
    }

    #[doc = stub!("VanillaExcerpt.try_lock")]
    #[pyo3(signature = (offset, owner = None, /))]
    fn try_lock(
        &self,
        py: Python<'_>,
        offset: &Bound<'_, PyAny>,
        owner: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<bool> {
        let (offset, owner) = (integer("offset", offset)?, owner_of(py, owner)?);
        if self.swap32(py, offset, 0, LOCK_COUNT | owner)?.is_ok() {
            return Ok(true);
        }
        let found = self.word(offset)?;
        if found & (LOCK_COUNT - 1) != owner {
            return Ok(false);
        }
        let Some(more) = found.checked_add(LOCK_COUNT) else {
            return Err(PyValueError::new_err("the lock is held 255 times: unlock it first"));
        };
        Ok(self.swap32(py, offset, found, more)?.is_ok())
    }

    #[doc = stub!("VanillaExcerpt.unlock")]
    #[pyo3(signature = (offset, owner = None, /))]
    fn unlock(
        &self,
        py: Python<'_>,
        offset: &Bound<'_, PyAny>,
        owner: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let (offset, owner) = (integer("offset", offset)?, owner_of(py, owner)?);
        let found = self.word(offset)?;
        let is_owner = found >= LOCK_COUNT && found & (LOCK_COUNT - 1) == owner;
        let less = if found >> 24 == 1 { 0 } else { found.wrapping_sub(LOCK_COUNT) };
        if is_owner && self.swap32(py, offset, found, less)?.is_ok() {
            return Ok(());
        }
        Err(PyValueError::new_err(format!(
            "the lock is not held by this owner: offset={offset} owner={owner} found={found:#010x}"
        )))
    }

    #[doc = stub!("VanillaExcerpt.write_bytes_at")]
    #[pyo3(signature = (offset, data, /))]
    fn write_bytes_at(
        &self,
        py: Python<'_>,
        offset: &Bound<'_, PyAny>,
        data: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let data = Payload::any(data)?;
        self.write_in_place(py, offset, data.bytes())
    }

    #[doc = stub!("VanillaExcerpt.write_float32_at")]
    #[pyo3(signature = (offset, value, /))]
    fn write_float32_at(
        &self,
        py: Python<'_>,
        offset: &Bound<'_, PyAny>,
        value: f32,
    ) -> PyResult<()> {
        self.write_in_place(py, offset, &value.to_le_bytes())
    }

    #[doc = stub!("VanillaExcerpt.write_float64_at")]
    #[pyo3(signature = (offset, value, /))]
    fn write_float64_at(
        &self,
        py: Python<'_>,
        offset: &Bound<'_, PyAny>,
        value: f64,
    ) -> PyResult<()> {
        self.write_in_place(py, offset, &value.to_le_bytes())
    }

    fn __eq__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<bool> {
        let Ok(other) = other.cast::<Self>() else { return Ok(false) };
        let other = other.get();
        Ok(self.index == other.index && self.data(py)?.as_bytes(py) == other.data(py)?.as_bytes(py))
    }

    fn __hash__(&self, py: Python<'_>) -> PyResult<u64> {
        let mut hasher = DefaultHasher::new();
        (self.index, self.data(py)?.as_bytes(py)).hash(&mut hasher);
        Ok(hasher.finish())
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Pickled<'py>> {
        let this = slf.get();
        Ok((slf.get_type(), (this.index, this.data(slf.py())?)))
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let length = self.length(py).saturating_sub(self.start);
        format!("VanillaExcerpt(index={:#x}, {length} bytes)", self.index)
    }

    fn _repr_html_(&self, py: Python<'_>) -> PyResult<String> {
        let data = self.data(py)?;
        Ok(repr::html(py, &self.__repr__(py), data.as_bytes(py), |it| Some(repr::raw(it))))
    }
}

field_reads! {
    impl VanillaExcerpt {
        fn read_int8() -> i8 = |fields| fields.array().map(i8::from_le_bytes);
        fn read_int16() -> i16 = |fields| fields.array().map(i16::from_le_bytes);
        fn read_int24() -> i64 = |fields| fields.array::<3>().map(|bytes| signed(&bytes));
        fn read_int32() -> i32 = |fields| fields.array().map(i32::from_le_bytes);
        fn read_int48() -> i64 = |fields| fields.array::<6>().map(|bytes| signed(&bytes));
        fn read_int64() -> i64 = |fields| fields.array().map(i64::from_le_bytes);
        fn read_float32() -> f32 = |fields| fields.array().map(f32::from_le_bytes);
        fn read_float64() -> f64 = |fields| fields.array().map(f64::from_le_bytes);
        fn read_boolean() -> bool = |fields| fields.array().map(|[byte]| byte == b'Y');
        fn read_stop_bit() -> i64 = |fields| fields.stop_bit();
        fn read_compact_int() -> i32 = |fields| fields.compact_int();
        fn read_compact_long() -> i64 = |fields| fields.compact_long();
        fn read_compact_double() -> f64 = |fields| fields.compact_double();
        fn read_utf16_length() -> String = |fields| fields.short_utf().map(Cow::into_owned);
        fn parse_int() -> i64 = |fields| fields.parse_int();
        fn parse_float() -> f64 = |fields| fields.parse_float();
    }
}

/// Methods that each store a whole number of a width in place.
macro_rules! in_place_writes {
    ($(fn $method:ident(value: $type:ty);)+) => {
        #[pymethods]
        impl VanillaExcerpt {$(
            #[doc = stub!(VanillaExcerpt.$method)]
            #[pyo3(signature = (offset, value, /))]
            fn $method(
                &self,
                py: Python<'_>,
                offset: &Bound<'_, PyAny>,
                value: &Bound<'_, PyAny>,
            ) -> PyResult<()> {
                let value: $type = integer("value", value)?;
                self.write_in_place(py, offset, &value.to_le_bytes())
            }
        )+}
    };
}

in_place_writes! {
    fn write_int8_at(value: i8);
    fn write_int16_at(value: i16);
    fn write_int32_at(value: i32);
    fn write_int64_at(value: i64);
}

/// A fixed-size number.
fn signed(bytes: &[u8]) -> i64 {
    let mut wide = [0; 8];
    let unused = wide.len() - bytes.len();
    wide[unused..].copy_from_slice(bytes);
    i64::from_le_bytes(wide) >> (8 * unused)
}

/// The owner of a lock, 24 bits: by default the calling thread.
fn owner_of(py: Python<'_>, owner: Option<&Bound<'_, PyAny>>) -> PyResult<u32> {
    let owner: u64 = match owner {
        Some(owner) => integer("owner", owner)?,
        None => py.import("threading")?.call_method0("get_native_id")?.extract()?,
    };
    let low = u32::try_from(owner & u64::from(LOCK_COUNT - 1)).unwrap_or_default();
    if low == 0 {
        Err(PyValueError::new_err(format!(
            "not an owner, as its lowest 24 bits are 0: owner={owner}"
        )))
    } else {
        Ok(low)
    }
}
