//! Declared types: how a value of one is written, and what is made of what is read.

use std::borrow::Cow;
use std::collections::HashMap;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{
    PyBool, PyByteArray, PyBytes, PyDict, PyFloat, PyFrozenSet, PyInt, PyList, PyMapping,
    PyMemoryView, PySet, PyString, PyTuple, PyType,
};
use quire_kernel::format::cursor::Cursor;
use quire_kernel::format::tokens::put_type_prefix;
use quire_kernel::format::wire::{DATE, DATE_TIME, TIME, ZONED_DATE_TIME};
use quire_kernel::wire::compress::Method;
use quire_kernel::wire::convert::{self, Width};
use quire_kernel::wire::fault::Fault;
use quire_kernel::wire::token::{self, Name, Shape, Token};
use quire_kernel::wire::writer::{self, Scalar};

use crate::buffer::Borrowed;
use crate::codec::Codec;
use crate::failure::{Failure, Result};
use crate::{classes, objects, temporal, values};

/// A declared type.
#[pyclass(module = "quire._native", frozen)]
pub struct Kind(pub Form);

/// What there is to declare.
pub enum Form {
    /// Anything: the value tells what it is.
    Any,
    /// `bool`.
    Bool,
    /// `int` of a width, and the bits of it.
    Int(Width, u32),
    /// `float`.
    Float64,
    /// `quire.float32`.
    Float32,
    /// `str`.
    Text,
    /// `bytes`.
    Bytes,
    /// `decimal.Decimal`.
    Decimal,
    /// `datetime.date`.
    Date,
    /// `datetime.time`.
    Time,
    /// `datetime.datetime`, with or without a zone.
    DateTime,
    /// `quire.instant`: `datetime.datetime` in UTC, as Java's `Instant`.
    Instant,
    /// `datetime.timedelta`.
    Duration,
    /// `uuid.UUID`.
    Uuid,
    /// A class of `enum`.
    Enum(Members),
    /// `list` of a type.
    List(Py<Kind>),
    /// `tuple` of a type and any length.
    Tuple(Py<Kind>),
    /// `set` of a type.
    Set(Py<Kind>),
    /// `frozenset` of a type.
    FrozenSet(Py<Kind>),
    /// `dict` of two types.
    Dict(Py<Kind>, Py<Kind>),
    /// A message class.
    Message(Py<Codec>),
    /// A type, or None.
    Optional(Py<Kind>),
}

/// The members of an enum by their names.
pub struct Members {
    class: Py<PyType>,
    by_name: HashMap<String, Py<PyAny>>,
}

#[pymethods]
impl Kind {
    /// A type without parts, by its name.
    #[staticmethod]
    fn scalar(name: &str) -> PyResult<Self> {
        Ok(Self(match name {
            "any" => Form::Any,
            "bool" => Form::Bool,
            "float64" => Form::Float64,
            "float32" => Form::Float32,
            "str" => Form::Text,
            "bytes" => Form::Bytes,
            "decimal" => Form::Decimal,
            "date" => Form::Date,
            "time" => Form::Time,
            "datetime" => Form::DateTime,
            "instant" => Form::Instant,
            "timedelta" => Form::Duration,
            "uuid" => Form::Uuid,
            name => {
                let (signed, bits) = match name.strip_prefix("uint") {
                    Some(bits) => (false, bits),
                    None => (true, name.strip_prefix("int").unwrap_or_default()),
                };
                let most = if signed { 64 } else { 32 };
                match bits.parse() {
                    Ok(bits @ (8 | 16 | 32 | 64)) if bits <= most => {
                        Form::Int(Width::of(bits, signed), bits)
                    }
                    _ => {
                        return Err(Fault::new("no such type").with("name", name))
                            .map_err(Failure::from)
                            .map_err(PyErr::from);
                    }
                }
            }
        }))
    }

    #[staticmethod]
    fn enumeration(cls: &Bound<'_, PyType>) -> PyResult<Self> {
        let mut by_name = HashMap::new();
        let members = cls.getattr("__members__")?;
        for item in members.cast::<PyMapping>()?.items()?.iter() {
            let (name, member): (String, Py<PyAny>) = item.extract()?;
            by_name.insert(name, member);
        }
        Ok(Self(Form::Enum(Members { class: cls.clone().unbind(), by_name })))
    }

    #[staticmethod]
    const fn list(item: Py<Self>) -> Self {
        Self(Form::List(item))
    }

    #[staticmethod]
    const fn tuple(item: Py<Self>) -> Self {
        Self(Form::Tuple(item))
    }

    #[staticmethod]
    const fn set(item: Py<Self>) -> Self {
        Self(Form::Set(item))
    }

    #[staticmethod]
    const fn frozenset(item: Py<Self>) -> Self {
        Self(Form::FrozenSet(item))
    }

    #[staticmethod]
    const fn dict(key: Py<Self>, value: Py<Self>) -> Self {
        Self(Form::Dict(key, value))
    }

    #[staticmethod]
    const fn message(codec: Py<Codec>) -> Self {
        Self(Form::Message(codec))
    }

    #[staticmethod]
    const fn optional(kind: Py<Self>) -> Self {
        Self(Form::Optional(kind))
    }

    fn __repr__(&self) -> String {
        format!("Kind({})", self.name())
    }
}

/// The kind of an annotation, as `quire.types` understands it; None: anything.
pub fn of_annotation<'py>(
    py: Python<'py>,
    annotation: Option<&Bound<'py, PyAny>>,
) -> PyResult<Py<Kind>> {
    static KIND_OF: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let Some(annotation) = annotation.filter(|annotation| !annotation.is_none()) else {
        return Py::new(py, Kind(Form::Any));
    };
    if let Ok(kind) = annotation.cast::<Kind>() {
        return Ok(kind.clone().unbind());
    }
    let kind_of = KIND_OF.import(py, "quire.types", "kind_of")?;
    Ok(kind_of.call1((annotation,))?.cast::<Kind>()?.clone().unbind())
}

impl Kind {
    /// What was declared, for errors.
    pub fn name(&self) -> Cow<'static, str> {
        Cow::Borrowed(match &self.0 {
            Form::Any => "any",
            Form::Bool => "bool",
            Form::Int(width, bits) => {
                let sign = if width.min < 0 { "int" } else { "uint" };
                return Cow::Owned(format!("{sign}{bits}"));
            }
            Form::Float64 => "float64",
            Form::Float32 => "float32",
            Form::Text => "str",
            Form::Bytes => "bytes",
            Form::Decimal => "decimal",
            Form::Date => "date",
            Form::Time => "time",
            Form::DateTime => "datetime",
            Form::Instant => "instant",
            Form::Duration => "timedelta",
            Form::Uuid => "uuid",
            Form::Enum(_) => "enum",
            Form::List(item) => return Cow::Owned(format!("list[{}]", item.get().name())),
            Form::Tuple(item) => return Cow::Owned(format!("tuple[{}, ...]", item.get().name())),
            Form::Set(item) => return Cow::Owned(format!("set[{}]", item.get().name())),
            Form::FrozenSet(item) => {
                return Cow::Owned(format!("frozenset[{}]", item.get().name()));
            }
            Form::Dict(key, value) => {
                return Cow::Owned(format!("dict[{}, {}]", key.get().name(), value.get().name()));
            }
            Form::Message(codec) => return Cow::Owned(codec.get().alias().to_owned()),
            Form::Optional(kind) => return Cow::Owned(format!("{} | None", kind.get().name())),
        })
    }

    #[cold]
    pub fn misfit(&self, value: &Bound<'_, PyAny>) -> Failure {
        let shown: String = value.repr().map_or_else(|_| "?".into(), |text| text.to_string());
        Fault::new("the value does not fit")
            .with("expected", self.name())
            .with("found", shown.chars().take(60).collect::<String>())
            .with("type", values::type_name(value))
            .into()
    }

    /// Appends a value. None is null wherever Java has a reference.
    pub fn put(&self, out: &mut Vec<u8>, value: &Bound<'_, PyAny>, depth: usize) -> Result<()> {
        match &self.0 {
            Form::Text => match value.cast::<PyString>() {
                Ok(text) => writer::put_text(out, &text.to_cow()?),
                Err(_) => return self.put_null(out, value),
            },
            Form::Int(width, _) => writer::put_compact(out, self.int(*width, value)?),
            Form::Float64 => writer::put_f64(out, self.float(value)?),
            #[allow(clippy::cast_possible_truncation)] // as declared
            Form::Float32 => writer::put_f32(out, self.float(value)? as f32),
            Form::Bool => match value.cast::<PyBool>() {
                Ok(flag) => writer::put_bool(out, flag.is_true()),
                Err(_) => return Err(self.misfit(value)),
            },
            Form::Message(codec) if !value.is_none() => {
                return codec.get().put_declared(out, value, token::deeper(depth, out.len())?);
            }
            Form::Optional(_) if value.is_none() => writer::put_null(out),
            Form::Optional(kind) => return kind.get().put(out, value, depth),
            Form::Any => return values::put_value(out, value, depth),
            _ if value.is_none() => writer::put_null(out),
            _ => return self.put_object(out, value, depth),
        }
        Ok(())
    }

    fn put_null(&self, out: &mut Vec<u8>, value: &Bound<'_, PyAny>) -> Result<()> {
        if !value.is_none() {
            return Err(self.misfit(value));
        }
        writer::put_null(out);
        Ok(())
    }

    pub fn int(&self, width: Width, value: &Bound<'_, PyAny>) -> Result<i64> {
        match value.cast::<PyInt>().ok().and_then(|number| number.extract::<i64>().ok()) {
            Some(number) if width.min <= number && number <= width.max => Ok(number),
            _ => Err(self.misfit(value)),
        }
    }

    pub fn float(&self, value: &Bound<'_, PyAny>) -> Result<f64> {
        if let Ok(number) = value.cast::<PyFloat>() {
            return Ok(number.value());
        }
        value.extract().map_err(|_| self.misfit(value))
    }

    fn put_object(&self, out: &mut Vec<u8>, value: &Bound<'_, PyAny>, depth: usize) -> Result<()> {
        let py = value.py();
        match &self.0 {
            Form::Bytes => self.put_bytes(out, value),
            Form::Enum(members) if value.is_instance(members.class.bind(py))? => {
                writer::put_text(out, &values::enum_name(value)?);
                Ok(())
            }
            Form::Decimal if value.is_instance(classes::decimal(py)?)? => {
                writer::put_text(out, &values::decimal_text(value)?);
                Ok(())
            }
            Form::Uuid if value.is_instance(classes::uuid(py)?)? => {
                Ok(values::put_uuid(out, value)?)
            }
            Form::Duration if value.is_instance(classes::timedelta(py)?)? => {
                writer::put_text(out, &temporal::duration_text(value)?);
                Ok(())
            }
            Form::Date | Form::Time | Form::DateTime => self.put_temporal(out, value),
            Form::Instant => match temporal::instant_text(value)? {
                Some(text) => {
                    put_type_prefix(out, "java.time.Instant");
                    writer::put_text(out, &text);
                    Ok(())
                }
                None => Err(self.misfit(value)),
            },
            form if form.is_container() => self.put_elements(out, value, depth, Self::put_element),
            _ => Err(self.misfit(value)),
        }
    }

    /// Appends a value as the argument of a method, as Java's generated writers do: what a
    /// collection holds is of any type to them.
    pub fn put_argument(
        &self,
        out: &mut Vec<u8>,
        value: &Bound<'_, PyAny>,
        depth: usize,
    ) -> Result<()> {
        match &self.0 {
            Form::Optional(kind) => kind.get().put_argument(out, value, depth),
            form if form.is_container() => self.put_boxed(out, value, depth),
            _ => self.put(out, value, depth),
        }
    }

    /// Appends a value where Java has forgotten the declared type: numbers at their width, objects
    /// under their names.
    fn put_boxed(&self, out: &mut Vec<u8>, value: &Bound<'_, PyAny>, depth: usize) -> Result<()> {
        if value.is_none() {
            writer::put_null(out);
            return Ok(());
        }
        match &self.0 {
            Form::Int(width, bits) => {
                let bits = if width.min < 0 { *bits } else { *bits * 2 };
                writer::put_boxed_int(out, self.int(*width, value)?, bits);
            }
            Form::Float64 => writer::put_scalar(out, Scalar::Float(self.float(value)?))?,
            #[allow(clippy::cast_possible_truncation)] // as declared
            Form::Float32 => writer::put_boxed_f32(out, self.float(value)? as f32),
            Form::Message(_) | Form::Enum(_) | Form::Bytes => {
                return values::put_value(out, value, depth);
            }
            Form::Optional(kind) => return kind.get().put_boxed(out, value, depth),
            form if form.is_container() => {
                if matches!(form, Form::Set(_) | Form::FrozenSet(_)) {
                    put_type_prefix(out, "!set");
                }
                return self.put_elements(out, value, depth, Self::put_boxed);
            }
            _ => return self.put(out, value, depth),
        }
        Ok(())
    }

    /// Appends an element of a collection whose type is declared; of a nested one it is forgotten.
    fn put_element(&self, out: &mut Vec<u8>, value: &Bound<'_, PyAny>, depth: usize) -> Result<()> {
        if self.0.is_container() {
            self.put_boxed(out, value, depth)
        } else {
            self.put(out, value, depth)
        }
    }

    /// Appends a collection, with `put` for what it holds.
    fn put_elements(
        &self,
        out: &mut Vec<u8>,
        value: &Bound<'_, PyAny>,
        depth: usize,
        put: Put,
    ) -> Result<()> {
        match &self.0 {
            Form::List(item) | Form::Tuple(item)
                if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() =>
            {
                put_each(out, item.get(), value, depth, put)
            }
            Form::Set(item) | Form::FrozenSet(item)
                if value.is_instance_of::<PySet>() || value.is_instance_of::<PyFrozenSet>() =>
            {
                put_each(out, item.get(), value, depth, put)
            }
            Form::Dict(key, item) => match value.cast::<PyMapping>() {
                Ok(entries) => put_dict(out, (key.get(), item.get()), entries, depth, put),
                Err(_) => Err(self.misfit(value)),
            },
            _ => Err(self.misfit(value)),
        }
    }

    fn put_bytes(&self, out: &mut Vec<u8>, value: &Bound<'_, PyAny>) -> Result<()> {
        if let Ok(bytes) = value.cast::<PyBytes>() {
            return Ok(writer::put_blob(out, bytes.as_bytes())?);
        }
        if value.is_instance_of::<PyByteArray>() || value.is_instance_of::<PyMemoryView>() {
            return Ok(writer::put_blob(out, Borrowed::new(value)?.bytes())?);
        }
        Err(self.misfit(value))
    }

    fn put_temporal(&self, out: &mut Vec<u8>, value: &Bound<'_, PyAny>) -> Result<()> {
        let found = temporal::text(value)?;
        match (found, &self.0) {
            (Some((DATE, text)), Form::Date) => writer::put_temporal(out, DATE, &text),
            (Some((TIME, text)), Form::Time) => writer::put_temporal(out, TIME, &text),
            (Some((code @ (DATE_TIME | ZONED_DATE_TIME), text)), Form::DateTime) => {
                writer::put_temporal(out, code, &text);
            }
            _ => return Err(self.misfit(value)),
        }
        Ok(())
    }

    /// Reads the next value as this type.
    pub fn get<'py>(
        &self,
        py: Python<'py>,
        cursor: &mut Cursor<'_>,
        depth: usize,
    ) -> Result<Bound<'py, PyAny>> {
        let at = cursor.offset();
        Ok(match &self.0 {
            Form::Int(width, _) => {
                let number = convert::int(token::value(cursor)?, *width, at)?;
                number.into_pyobject(py).map_err(PyErr::from)?.into_any()
            }
            Form::Float64 => {
                PyFloat::new(py, convert::float(token::value(cursor)?, at)?).into_any()
            }
            Form::Float32 => {
                PyFloat::new(py, convert::float32(token::value(cursor)?, at)?).into_any()
            }
            Form::Text => match token::value(cursor)? {
                Token::TypePrefix(name) if Method::named(name).is_some() => {
                    unpacked_text(py, name, cursor, depth)?
                }
                found => match convert::text(found, at)? {
                    Some(text) => PyString::new(py, &text).into_any(),
                    None => py.None().into_bound(py),
                },
            },
            Form::Bool => {
                let flag = convert::boolean(token::value(cursor)?, at)?;
                PyBool::new(py, flag).to_owned().into_any()
            }
            Form::Any => objects::get(py, cursor, depth)?,
            Form::Message(codec) => codec.get().get_value(py, cursor, depth)?,
            Form::Optional(kind) => {
                let mut ahead = *cursor;
                if matches!(token::value(&mut ahead)?, Token::Null) {
                    *cursor = ahead;
                    return Ok(py.None().into_bound(py));
                }
                kind.get().get(py, cursor, depth)?
            }
            _ => self.get_object(py, cursor, depth)?,
        })
    }

    fn get_object<'py>(
        &self,
        py: Python<'py>,
        cursor: &mut Cursor<'_>,
        depth: usize,
    ) -> Result<Bound<'py, PyAny>> {
        let at = cursor.offset();
        let mut found = token::value(cursor)?;
        if let Token::TypePrefix(name) = found {
            if let (Form::Bytes, Some(method)) = (&self.0, Method::named(name)) {
                return objects::unpacked(py, method, cursor, depth);
            }
            found = token::value(cursor)?; // the declared type holds over that of the message
        }
        if matches!(found, Token::Null) {
            return Ok(py.None().into_bound(py));
        }
        match &self.0 {
            Form::Bytes => {
                let bytes = convert::bytes(found, at)?.unwrap_or_default();
                Ok(PyBytes::new(py, bytes).into_any())
            }
            Form::List(item) => Ok(item.get().elements(py, found, cursor, depth, at)?.into_any()),
            Form::Tuple(item) => {
                Ok(item.get().elements(py, found, cursor, depth, at)?.to_tuple().into_any())
            }
            Form::Set(item) => {
                let items = item.get().elements(py, found, cursor, depth, at)?;
                Ok(PySet::new(py, items.iter())?.into_any())
            }
            Form::FrozenSet(item) => {
                let items = item.get().elements(py, found, cursor, depth, at)?;
                Ok(PyFrozenSet::new(py, items.iter())?.into_any())
            }
            Form::Dict(key, item) => {
                let Token::Block(mut block) = found else {
                    return Err(convert::misfit(&found, "a map", at).into());
                };
                Ok(item.get().entries(py, key.get(), &mut block, depth)?.into_any())
            }
            Form::Uuid => match found {
                Token::Uuid(..) => objects::of_token(py, found, cursor, depth, at),
                _ => Err(convert::misfit(&found, "a UUID", at).into()),
            },
            _ => self.of_text(py, &found, at),
        }
    }

    /// The elements of a list; one scalar is a list of itself, as in Java.
    fn elements<'py>(
        &self,
        py: Python<'py>,
        found: Token<'_>,
        cursor: &mut Cursor<'_>,
        depth: usize,
        at: usize,
    ) -> Result<Bound<'py, PyList>> {
        let items = PyList::empty(py);
        let depth = token::deeper(depth, at)?;
        match found {
            Token::Block(mut block) => match token::shape(&block) {
                Shape::Empty => {}
                Shape::List => {
                    while block.peek().is_some() {
                        let item = self.get(py, &mut block, depth);
                        let place = items.len();
                        items.append(
                            item.map_err(|failure| failure.inside(format_args!("[{place}]")))?,
                        )?;
                    }
                }
                Shape::Longs => {
                    return self.elements(py, token::value(&mut block)?, cursor, depth, at);
                }
                _ => return Err(convert::misfit(&found, "a list", at).into()),
            },
            Token::Longs { used, .. } => {
                for word in used.as_chunks().0 {
                    items.append(i64::from_le_bytes(*word))?;
                }
            }
            _ => {
                let mut again = cursor.back_to(at);
                items.append(self.get(py, &mut again, depth)?)?;
            }
        }
        Ok(items)
    }

    fn entries<'py>(
        &self,
        py: Python<'py>,
        key_kind: &Self,
        block: &mut Cursor<'_>,
        depth: usize,
    ) -> Result<Bound<'py, PyDict>> {
        let found = PyDict::new(py);
        let depth = token::deeper(depth, block.offset())?;
        while let Some(name) = token::name(block)? {
            let key = match name {
                Name::Field(name) | Name::Event(name) => {
                    key_kind.of_name(py, &token::latin1(name))?
                }
                Name::Number(number) => key_kind.of_name(py, &number.to_string())?,
                Name::Object => key_kind.get(py, block, depth)?,
            };
            let value = self.get(py, block, depth).map_err(|failure| failure.inside(&key))?;
            found.set_item(key, value)?;
        }
        Ok(found)
    }

    /// A key that stands as a name.
    fn of_name<'py>(&self, py: Python<'py>, name: &str) -> Result<Bound<'py, PyAny>> {
        if matches!(self.0, Form::Any | Form::Text) {
            return Ok(PyString::new(py, name).into_any());
        }
        let mut key = Vec::new();
        writer::put_text(&mut key, name);
        self.get(py, &mut Cursor::new(&key), 0).map_err(|failure| failure.inside(name))
    }

    /// Types whose values are texts, or like them.
    fn of_text<'py>(
        &self,
        py: Python<'py>,
        found: &Token<'_>,
        at: usize,
    ) -> Result<Bound<'py, PyAny>> {
        let misfit = || convert::misfit(found, &self.name(), at);
        let text = convert::text(*found, at)?.unwrap_or_default();
        match &self.0 {
            Form::Enum(members) => match members.named(&text) {
                Some(member) => Ok(member.clone_ref(py).into_bound(py)),
                None if text.is_empty() => Ok(py.None().into_bound(py)),
                None => Err(misfit().into()),
            },
            Form::Decimal => {
                let is_number = !matches!(found, Token::Bool(_) | Token::Temporal(..));
                classes::decimal(py)?
                    .call1((text.as_ref(),))
                    .ok()
                    .filter(|_| is_number && text.trim() == text && !text.contains(['_', 'n', 'N']))
                    .ok_or_else(|| misfit().into())
            }
            Form::Duration => temporal::duration(py, &text)?.ok_or_else(|| misfit().into()),
            Form::Date | Form::Time | Form::DateTime | Form::Instant
                if matches!(found, Token::Text(_) | Token::Temporal(..)) =>
            {
                let wanted = |code| match self.0 {
                    Form::Date => code == DATE,
                    Form::Time => code == TIME,
                    Form::Instant => code == ZONED_DATE_TIME,
                    _ => code == DATE_TIME || code == ZONED_DATE_TIME,
                };
                let stamp = quire_kernel::wire::temporal::parse(&text)
                    .filter(|stamp| wanted(stamp.code()) && temporal::is_known(stamp))
                    .ok_or_else(misfit)?;
                Ok(temporal::of_stamp(py, &stamp)?)
            }
            _ => Err(misfit().into()),
        }
    }
}

/// A long text of a queue that compresses: its bytes stand behind the method's name.
#[cold]
fn unpacked_text<'py>(
    py: Python<'py>,
    method: &[u8],
    cursor: &mut Cursor<'_>,
    depth: usize,
) -> Result<Bound<'py, PyAny>> {
    let at = cursor.offset();
    let Some(method) = Method::named(method) else { return objects::get(py, cursor, depth) };
    let found = objects::unpacked(py, method, cursor, depth)?;
    let bytes = found.cast::<PyBytes>().map_err(PyErr::from)?;
    Ok(PyString::new(py, &token::text(bytes.as_bytes(), at)?).into_any())
}

/// How what a collection holds is appended.
type Put = fn(&Kind, &mut Vec<u8>, &Bound<'_, PyAny>, usize) -> Result<()>;

/// Appends a list of elements, each as `put` says.
pub fn put_each(
    out: &mut Vec<u8>,
    item: &Kind,
    values: &Bound<'_, PyAny>,
    depth: usize,
    put: Put,
) -> Result<()> {
    let depth = token::deeper(depth, out.len())?;
    let block = writer::open_block(out);
    for (place, value) in values.try_iter()?.enumerate() {
        put(item, out, &value?, depth)
            .map_err(|failure| failure.inside(format_args!("[{place}]")))?;
    }
    writer::close_block(out, block);
    Ok(())
}

fn put_dict(
    out: &mut Vec<u8>,
    (key_kind, kind): (&Kind, &Kind),
    entries: &Bound<'_, PyMapping>,
    depth: usize,
    put: Put,
) -> Result<()> {
    let depth = token::deeper(depth, out.len())?;
    let block = writer::open_block(out);
    for item in entries.items()?.iter() {
        let (key, value): (Bound<'_, PyAny>, Bound<'_, PyAny>) = item.extract()?;
        match key.cast_exact::<PyString>() {
            Ok(name) => writer::put_key(out, &name.to_cow()?)?,
            Err(_) => {
                writer::put_object_key(out);
                put(key_kind, out, &key, depth)?;
            }
        }
        put(kind, out, &value, depth).map_err(|failure| failure.inside(&key))?;
    }
    writer::close_block(out, block);
    Ok(())
}

impl Form {
    /// Of other types.
    const fn is_container(&self) -> bool {
        matches!(
            self,
            Self::List(_) | Self::Tuple(_) | Self::Set(_) | Self::FrozenSet(_) | Self::Dict(..)
        )
    }
}

impl Members {
    /// The name of a member.
    pub fn name_of(&self, member: &Bound<'_, PyAny>) -> PyResult<String> {
        if member.is_instance(self.class.bind(member.py()))? {
            return values::enum_name(member);
        }
        Err(PyTypeError::new_err("not a member"))
    }

    /// A member by its name, in any case if there is none in this one.
    pub fn named(&self, name: &str) -> Option<&Py<PyAny>> {
        self.by_name.get(name).or_else(|| {
            self.by_name.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|it| it.1)
        })
    }
}
