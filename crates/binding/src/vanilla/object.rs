//! Conversion between Java objects and Python values.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt, PyString, PyType};
use quire_kernel::vanilla::format::fields::FieldWriter;
use quire_kernel::vanilla::format::object::{Object, Text};

use crate::buffer;
use crate::error::{UnsupportedError, WireError, to_py};
use crate::handles::payload::Message;

type Put = Box<dyn FnOnce(&mut FieldWriter)>;

/// How a value is written.
pub fn put(value: &Bound<'_, PyAny>) -> PyResult<Put> {
    let py = value.py();
    if value.is_none() {
        return Ok(Box::new(FieldWriter::put_null));
    }
    if let Ok(text) = value.cast::<PyString>() {
        let text = text.to_cow()?;
        buffer::room(text.len()).map_err(to_py)?;
        let text = text.into_owned();
        return Ok(Box::new(move |fields| fields.put_text_object(&text)));
    }
    if value.is_instance_of::<PyBool>() {
        let text = if value.extract()? { "true" } else { "false" };
        return Ok(Box::new(move |fields| fields.put_object_of("Boolean", text)));
    }
    if value.is_instance_of::<PyInt>() {
        return put_whole(value);
    }
    if value.is_instance_of::<PyFloat>() {
        let number: f64 = value.extract()?;
        return Ok(Box::new(move |fields| fields.put_double_object(number)));
    }
    if value.is_instance(&py.import("decimal")?.getattr("Decimal")?)? {
        return put_decimal(value);
    }
    let datetime = py.import("datetime")?;
    if value.is_instance(&datetime.getattr("datetime")?)? {
        let unit = datetime.getattr("timedelta")?.call1((0, 0, 1000))?;
        let epoch_ms: i64 = value.sub(epoch(py)?)?.floor_div(unit)?.extract()?;
        return Ok(Box::new(move |fields| fields.put_date_object(epoch_ms)));
    }
    if let Ok(bytes) = Message::any(value) {
        let bytes = buffer::copy(bytes.bytes()).map_err(to_py)?;
        return Ok(Box::new(move |fields| fields.put_buffer_object(&bytes)));
    }
    let name = value.get_type().name()?;
    Err(UnsupportedError::new_err(format!(
        "not supported: an object that Java would serialise: found {name}, expected None, a bool, int, \
         float, Decimal, str, bytes or datetime (of an enum write the name: write_enum)"
    )))
}

fn put_whole(value: &Bound<'_, PyAny>) -> PyResult<Put> {
    if let Ok(number) = value.extract() {
        return Ok(Box::new(move |fields| fields.put_whole_object(number)));
    }
    let digits = value.str()?.to_cow()?.into_owned();
    Ok(Box::new(move |fields| fields.put_object_of("BigInteger", &digits)))
}

fn put_decimal(value: &Bound<'_, PyAny>) -> PyResult<Put> {
    let text = value.str()?.to_cow()?.into_owned();
    if value.call_method0("is_finite")?.extract()? {
        return Ok(Box::new(move |fields| fields.put_object_of("BigDecimal", &text)));
    }
    Err(PyValueError::new_err(format!("Java has no such decimal: value={text}")))
}

/// The value of an object at a position; an object of an unknown class is read from its text as
/// `cls`, an enum or `str`.
pub fn value<'py>(
    py: Python<'py>,
    position: usize,
    (object, text): (Object<'_>, Text<'_>),
    cls: Option<&Bound<'py, PyType>>,
) -> PyResult<Bound<'py, PyAny>> {
    let wrong = |what: &str| WireError::new_err(format!("{what}: position={position}"));
    Ok(match object {
        Object::Null => py.None().into_bound(py),
        Object::Text(text) | Object::Class(text) => buffer::text(py, &text)?.into_any(),
        Object::Whole(number) => number.into_pyobject(py)?.into_any(),
        Object::Double(number) => number.into_pyobject(py)?.into_any(),
        Object::Buffer(bytes) => buffer::bytes(py, bytes).map_err(to_py)?.into_any(),
        Object::Date(epoch_ms) => {
            let timedelta = py.import("datetime")?.getattr("timedelta")?;
            let time = timedelta.call1((0, 0, 0, epoch_ms)).and_then(|it| epoch(py)?.add(it));
            time.map_err(|_| {
                wrong(&format!("the time is out of the range of datetime: epoch_ms={epoch_ms}"))
            })?
        }
        Object::Of(class) => {
            let text = text.map_err(|error| wrong(error.what));
            let text = || Ok(text?.ok_or_else(|| wrong("no object"))?.into_owned());
            of_class(py, &class, cls, text)?.map_err(|found| wrong(&found))?
        }
        Object::Serialised => {
            let what =
                format!("not supported: an object that Java serialised: position={position}");
            return Err(UnsupportedError::new_err(what));
        }
    })
}

/// An object of a class, or what is wrong with its text.
fn of_class<'py>(
    py: Python<'py>,
    class: &str,
    cls: Option<&Bound<'py, PyType>>,
    text: impl FnOnce() -> PyResult<String>,
) -> PyResult<Result<Bound<'py, PyAny>, String>> {
    let (module, name) = match (class, cls) {
        (_, Some(cls)) if cls.is(py.get_type::<PyString>()) => ("builtins", "str"),
        ("Boolean", _) => return Ok(Ok(PyBool::new(py, text()? == "true").to_owned().into_any())),
        ("Byte" | "Short" | "BigInteger", _) => ("builtins", "int"),
        ("Float", _) => ("builtins", "float"),
        ("BigDecimal", _) => ("decimal", "Decimal"),
        (_, Some(cls)) => return cls.get_item(text()?).map(Ok),
        _ => {
            return Err(UnsupportedError::new_err(format!(
                "not supported: an object of an unknown class: class={class:?} (read_object(cls) \
                 takes an enum, or str for the text of other classes)"
            )));
        }
    };
    let text = text()?;
    let made = py.import(module)?.getattr(name)?.call1((&text,));
    Ok(made.map_err(|_| format!("no object: found={text:?} expected={name}")))
}

fn epoch(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    let datetime = py.import("datetime")?;
    let utc = datetime.getattr("timezone")?.getattr("utc")?;
    datetime.getattr("datetime")?.call1((1970, 1, 1, 0, 0, 0, 0, utc))
}
