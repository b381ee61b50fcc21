//! Creates Python objects that hold a message. Out of memory is an error here; PyO3's own
//! constructors panic.
//!
//! The buffer protocol, both ways: kernel bytes for Python, and Python bytes for the kernel.
//! The only `unsafe` of this crate.
#![allow(unsafe_code)]

use std::collections::HashSet;
use std::ffi::c_int;

use pyo3::exceptions::{PyBufferError, PyTypeError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PyList, PyString, PyTuple, PyType, PyTypeMethods};
use pyo3::{PyTypeInfo, ffi};
use quire_kernel::Error;
use quire_kernel::quick_queue::message::MappedBytes;
use quire_kernel::vanilla::Message;

use crate::document::Document;
use crate::spare::Lent;

/// A copy of a message, or of a part of one, as a Python object.
#[inline]
pub fn bytes<'py>(py: Python<'py>, content: &[u8]) -> quire_kernel::Result<Bound<'py, PyBytes>> {
    let (start, length) = (content.as_ptr().cast(), content.len().cast_signed());
    // SAFETY: this thread is attached to the interpreter (`py`). The call copies `length` bytes
    // from `content`, and returns a new reference, or null.
    let made = unsafe {
        let object = ffi::PyBytes_FromStringAndSize(start, length);
        Bound::from_owned_ptr_or_opt(py, object)
    };
    match made {
        // SAFETY: the object was created as `bytes`.
        Some(object) => Ok(unsafe { object.cast_into_unchecked() }),
        None => Err(no_memory(py, content.len())),
    }
}

/// An integer as a Python object.
#[inline]
pub fn int(py: Python<'_>, number: i64) -> PyResult<Bound<'_, PyAny>> {
    // SAFETY: this thread is attached to the interpreter (`py`); the call returns a new reference,
    // or null after an error.
    unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyLong_FromLongLong(number)) }
}

/// A float as a Python object.
#[inline]
pub fn float(py: Python<'_>, number: f64) -> PyResult<Bound<'_, PyAny>> {
    // SAFETY: as for `int`.
    unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyFloat_FromDouble(number)) }
}

/// An empty list.
#[inline]
pub fn empty_list(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
    // SAFETY: as for `int`; the new object is a list.
    unsafe { Ok(Bound::from_owned_ptr_or_err(py, ffi::PyList_New(0))?.cast_into_unchecked()) }
}

/// An empty dict.
#[inline]
pub fn empty_dict(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    // SAFETY: as for `int`; the new object is a dict.
    unsafe { Ok(Bound::from_owned_ptr_or_err(py, ffi::PyDict_New())?.cast_into_unchecked()) }
}

/// The slots of a class's objects for certain attributes, as declared by `__slots__`.
pub struct Slots {
    new: ffi::newfunc,
    slots: Vec<Slot>,
}

struct Slot {
    descriptor: Py<PyAny>,
    set: ffi::descrsetfunc,
    /// Its offset in an object, in bytes; None if unknown.
    offset: Option<usize>,
}

impl Slots {
    /// The slots of attributes; None if one of them has no slot.
    pub fn of<'a, 'py: 'a>(
        class: &Bound<'py, PyType>,
        attributes: impl Iterator<Item = &'a Bound<'py, PyString>>,
    ) -> Option<Self> {
        let slots =
            attributes.map(|attribute| Slot::of(class, attribute)).collect::<Option<_>>()?;
        let mut slots = Self { new: object_new()?, slots };
        slots.find_offsets(class);
        Some(slots)
    }

    /// Finds the offset of each slot, which the interpreter's stable ABI does not provide: it is
    /// the only place where an object refers to a value set by the slot's descriptor.
    fn find_offsets(&mut self, class: &Bound<'_, PyType>) {
        let py = class.py();
        if class.hasattr("__del__").unwrap_or(true) {
            return; // `__del__` would be called for the object made here
        }
        let size = class.getattr("__basicsize__").and_then(|it| it.extract::<usize>());
        let (Ok(size), Ok(object)) = (size, made(class, self.new)) else { return };
        for slot in &mut self.slots {
            let Ok(mark) = empty_list(py) else { return };
            if slot.set(&object, mark.as_any()).is_err() {
                return;
            }
            let first = object.as_ptr().cast::<usize>();
            // SAFETY: an object has as many bytes as its class's `__basicsize__`, all initialized.
            let words = unsafe { std::slice::from_raw_parts(first, size / size_of::<usize>()) };
            let mut places = words.iter().enumerate().filter(|it| *it.1 == mark.as_ptr().addr());
            slot.offset = match (places.next(), places.next()) {
                (Some((place, _)), None) => Some(place * size_of::<usize>()),
                _ => None,
            };
        }
        let places: HashSet<_> = self.slots.iter().filter_map(|slot| slot.offset).collect();
        if places.len() < self.slots.len() {
            self.slots.iter_mut().for_each(|slot| slot.offset = None); // two attributes, one slot
        }
    }

    /// A new object of the class, by `object.__new__`, with these values in its slots.
    #[inline]
    pub fn object<'py>(
        &self,
        class: &Bound<'py, PyType>,
        values: impl Iterator<Item = Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let object = made(class, self.new)?;
        for (slot, value) in self.slots.iter().zip(values) {
            let Some(offset) = slot.offset else {
                slot.set(&object, &value)?;
                continue;
            };
            // SAFETY: all objects of this class have this slot at the same offset. It is empty, as
            // the object is new and no other attribute has this slot, and takes over the reference.
            unsafe {
                let place = object.as_ptr().byte_add(offset).cast::<*mut ffi::PyObject>();
                place.write(value.into_ptr());
            }
        }
        Ok(object)
    }
}

impl Slot {
    /// The slot of an attribute; None if it has none.
    fn of(class: &Bound<'_, PyType>, attribute: &Bound<'_, PyString>) -> Option<Self> {
        static MEMBER: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let py = class.py();
        let descriptor = class.getattr(attribute).ok()?;
        let kind = descriptor.get_type();
        if !kind.is(MEMBER.import(py, "types", "MemberDescriptorType").ok()?) {
            return None;
        }
        // SAFETY: this thread is attached to the interpreter, and the type of member descriptors
        // has this function, of this signature.
        let set = unsafe { ffi::PyType_GetSlot(kind.as_type_ptr(), ffi::Py_tp_descr_set) };
        // SAFETY: as above; a null pointer is None.
        let set: Option<ffi::descrsetfunc> = unsafe { std::mem::transmute(set) };
        Some(Self { descriptor: descriptor.unbind(), set: set?, offset: None })
    }

    /// Sets it as `object.__setattr__` does.
    fn set(&self, object: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        // SAFETY: this thread is attached to the interpreter, all three are objects, and the
        // function is the descriptor's own, which refuses objects of other classes.
        let set = unsafe { (self.set)(self.descriptor.as_ptr(), object.as_ptr(), value.as_ptr()) };
        if set == 0 { Ok(()) } else { Err(PyErr::fetch(object.py())) }
    }
}

/// A new object of a class, by `object.__new__`.
pub fn object<'py>(class: &Bound<'py, PyType>) -> PyResult<Bound<'py, PyAny>> {
    let new = object_new().ok_or_else(|| PyTypeError::new_err("object has no __new__"))?;
    made(class, new)
}

/// `object.__new__`.
fn object_new() -> Option<ffi::newfunc> {
    // SAFETY: the type lives as long as the interpreter, and has this function, of this signature;
    // a null pointer is None.
    unsafe {
        std::mem::transmute(ffi::PyType_GetSlot(&raw mut ffi::PyBaseObject_Type, ffi::Py_tp_new))
    }
}

/// A new object of a class, by `object.__new__`, which is `new`.
#[inline]
fn made<'py>(class: &Bound<'py, PyType>, new: ffi::newfunc) -> PyResult<Bound<'py, PyAny>> {
    let (py, none) = (class.py(), PyTuple::empty(class.py()));
    // SAFETY: this thread is attached to the interpreter. The function gets a class, no arguments
    // and no keywords, as it does from the interpreter, and returns a new reference, or null after
    // an error.
    unsafe {
        let object = new(class.as_type_ptr(), none.as_ptr(), std::ptr::null_mut());
        Bound::from_owned_ptr_or_err(py, object)
    }
}

/// Calls a callable with one argument.
#[inline]
pub fn call_one<'py>(
    callable: &Bound<'py, PyAny>,
    argument: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let end = std::ptr::null_mut::<ffi::PyObject>();
    // SAFETY: this thread is attached to the interpreter; the call gets two objects and the
    // terminating null pointer, and returns a new reference, or null after an error.
    unsafe {
        let result = ffi::PyObject_CallFunctionObjArgs(callable.as_ptr(), argument.as_ptr(), end);
        Bound::from_owned_ptr_or_err(callable.py(), result)
    }
}

/// Replaces the interpreter's own error by one that says how much memory was needed.
#[cold]
fn no_memory(py: Python<'_>, needed: usize) -> Error {
    drop(PyErr::take(py));
    Error::OutOfMemory(needed)
}

/// Makes room for `more` elements.
#[inline]
pub fn reserve<T>(found: &mut Vec<T>, more: usize) -> quire_kernel::Result<()> {
    let needed = (found.len() + more) * size_of::<T>();
    found.try_reserve(more).map_err(|_| Error::OutOfMemory(needed))
}

/// Adds an element.
#[inline]
pub fn push<T>(found: &mut Vec<T>, element: T) -> quire_kernel::Result<()> {
    reserve(found, 1)?;
    found.push(element);
    Ok(())
}

/// A list of these objects.
pub fn list<'py, T: PyTypeInfo>(
    py: Python<'py>,
    items: Vec<Bound<'py, T>>,
) -> quire_kernel::Result<Bound<'py, PyList>> {
    // Checked first, because PyO3's constructor panics when out of memory.
    room(items.len() * size_of::<usize>())?;
    PyList::new(py, items).map_err(|_| Error::OutOfMemory(0))
}

/// Checks that there is enough memory before running code that would abort the process otherwise.
pub fn room(needed: usize) -> quire_kernel::Result<()> {
    reserve(&mut Vec::<u8>::new(), needed)
}

/// A text as a Python object.
pub fn text<'py>(py: Python<'py>, content: &str) -> PyResult<Bound<'py, PyString>> {
    PyString::from_bytes(py, content.as_bytes())
}

/// A copy of bytes that the caller might change.
pub fn copy(content: &[u8]) -> quire_kernel::Result<Vec<u8>> {
    let mut copy = Vec::new();
    reserve(&mut copy, content.len())?;
    copy.extend_from_slice(content);
    Ok(copy)
}

#[doc = stub!("Buffer")]
#[pyclass(module = "quire._native", frozen)]
pub struct Buffer(Owner);

enum Owner {
    /// A batch's column.
    Column(Vec<u8>),
    /// A column whose memory is reused.
    Lent(Lent),
    /// A message: in place, it keeps its file mapped.
    Document(Document),
    /// A part of a page of a Quick-Queue, which stays mapped.
    Page(MappedBytes),
    /// A message of a Vanilla Chronicle from a position on: it keeps its file mapped.
    Vanilla(Message, usize),
}

impl Buffer {
    /// Takes over a column.
    pub const fn column(bytes: Vec<u8>) -> Self {
        Self(Owner::Column(bytes))
    }

    /// Takes over a column until Python releases it.
    pub const fn lent(column: Lent) -> Self {
        Self(Owner::Lent(column))
    }

    /// The payload of a document, without a copy.
    pub const fn document(document: Document) -> Self {
        Self(Owner::Document(document))
    }

    /// A message in its page.
    pub const fn page(bytes: MappedBytes) -> Self {
        Self(Owner::Page(bytes))
    }

    /// A message in its data file, from this position on.
    pub const fn vanilla(message: Message, start: usize) -> Self {
        Self(Owner::Vanilla(message, start))
    }

    /// The address and number of the bytes. In a Vanilla Chronicle other processes may change them,
    /// so there is no reference to these.
    fn span(&self) -> (*const u8, usize) {
        let span = |bytes: &[u8]| (bytes.as_ptr(), bytes.len());
        match &self.0 {
            Owner::Column(bytes) => span(bytes),
            Owner::Lent(column) => span(column.bytes()),
            Owner::Document(document) => span(document.payload()),
            Owner::Page(bytes) => span(bytes.bytes()),
            Owner::Vanilla(message, start) => {
                let length = usize::try_from(message.length()).unwrap_or_default();
                let start = length.min(*start);
                (message.address().wrapping_add(start), length - start)
            }
        }
    }
}

#[pymethods]
impl Buffer {
    fn __len__(&self) -> usize {
        self.span().1
    }

    /// # Safety
    /// Called by the interpreter with a view to fill in.
    unsafe fn __getbuffer__(
        slf: Bound<'_, Self>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        let (start, length) = slf.get().span();
        let (start, length) = (start.cast_mut().cast(), length.cast_signed());
        // SAFETY: the interpreter passes a view to fill in. The bytes live as long as this object,
        // which the view keeps alive, and do not move, as it is frozen. Python does not store
        // through a view that is filled in as read-only.
        let filled = unsafe { ffi::PyBuffer_FillInfo(view, slf.as_ptr(), start, length, 1, flags) };
        if filled == 0 { Ok(()) } else { Err(PyErr::fetch(slf.py())) }
    }
}

/// A contiguous buffer of another Python object, borrowed until dropped.
pub struct Borrowed(Box<ffi::Py_buffer>);

// SAFETY: a view belongs to no thread. Its fields are only read, and `drop` attaches to the
// interpreter to release it.
unsafe impl Send for Borrowed {}
// SAFETY: as above.
unsafe impl Sync for Borrowed {}

impl Borrowed {
    /// Borrows the buffer of `object`.
    pub fn new(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let mut view = Box::new(ffi::Py_buffer::new());
        // SAFETY: this thread is attached to the interpreter, as `object` is bound. The view is
        // ours, and does not move, being on the heap; once filled in it holds a reference to the
        // object.
        let got = unsafe { ffi::PyObject_GetBuffer(object.as_ptr(), &raw mut *view, 0) };
        if got == 0 {
            return Ok(Self(view));
        }
        let error = PyErr::fetch(object.py());
        if error.is_instance_of::<PyBufferError>(object.py()) {
            return Err(error);
        }
        let name = object.get_type().name()?;
        Err(PyTypeError::new_err(format!("a bytes-like object is needed: type={name}")))
    }

    /// The bytes. Their owner must not change them meanwhile.
    pub fn bytes(&self) -> &[u8] {
        let length = usize::try_from(self.0.len).unwrap_or(0);
        if length == 0 {
            return &[];
        }
        // SAFETY: a simple view is contiguous and `length` bytes long, and does not move until it
        // is released. It is not guaranteed that a writable buffer stays unchanged meanwhile:
        // callers of the package must not change buffers that they have passed.
        unsafe { std::slice::from_raw_parts(self.0.buf.cast(), length) }
    }
}

impl Drop for Borrowed {
    fn drop(&mut self) {
        // SAFETY: `new` filled in the view, and it is released only here, attached to the
        // interpreter.
        Python::attach(|_| unsafe { ffi::PyBuffer_Release(&raw mut *self.0) });
    }
}
