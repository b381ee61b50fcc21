//! Message classes: registered Python classes, and the encoding of their fields.

use quire_wire::out::Out;
use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyString, PyType};
use quire_wire::WireError;
use quire_wire::codes::TYPE_PREFIX;
use quire_wire::compress;
use quire_wire::convert;
use quire_wire::latin1;
use quire_wire::reader::{self, Name, Reader, Shape, Token};
use quire_wire::writer;
use quire_wire::writer::EMPTY_PAYLOAD;
use quire_wire::writer::put_type_prefix;

use super::failure::{Failure, Result};
use super::schema::Kind;
use super::{classes, decode, encode, fixed};
use crate::buffer::Slots;

mod objects;
mod typed_dict;

/// The classes by their names in messages.
static REGISTERED: RwLock<Option<HashMap<Vec<u8>, Py<Codec>>>> = RwLock::new(None);

#[doc = stub!("Codec")]
#[pyclass(module = "quire._native", frozen)]
pub struct Codec {
    class: Py<PyType>,
    alias: String,
    build: Build,
    /// For an enum: members are encoded as their names.
    members: Option<Py<Kind>>,
    /// Unknown fields are kept in the object's `__quire_unknown__`.
    keep_unknown: bool,
    #[pyo3(get)]
    pub bytes_layout: bool,
    /// Returns the fields: called once, on first use, because they may name later classes.
    resolve: Py<PyAny>,
    plan: PyOnceLock<Plan>,
}

/// Values of objects with at most this number of fields are collected on the stack.
const FEW: usize = 8;

/// How an object is created from its fields.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Build {
    /// `__new__`, then each attribute.
    SetAttributes,
    /// The same, bypassing the class's own `__setattr__`.
    ForceAttributes,
    /// `__new__`, then its `__dict__`, bypassing the class's own `__setattr__`.
    SetDict,
    /// `__new__`, then each of its `__slots__`; without one for a field, each attribute.
    FillSlots,
    /// The class is called with all fields in order.
    CallInOrder,
    /// The class is called with keyword arguments.
    Call,
    /// It is a dictionary.
    Items,
}

/// The fields in their order.
pub struct Plan {
    pub fields: Vec<Field>,
    by_name: HashMap<Vec<u8>, usize>,
    post_init: bool,
    /// Where objects keep their fields, if each of them has a slot.
    slots: Option<Slots>,
}

/// One field of a message class.
pub struct Field {
    name: String,
    /// The name in messages, in encoded form.
    key: Vec<u8>,
    token: Vec<u8>,
    pub attribute: Py<PyString>,
    pub kind: Py<Kind>,
    default: Default,
}

impl Field {
    /// The name in messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Reads its value.
    #[inline]
    fn get<'py>(
        &self,
        py: Python<'py>,
        block: &mut Reader<'_>,
        depth: usize,
    ) -> Result<Bound<'py, PyAny>> {
        self.kind.get().get(py, block, depth).map_err(|failure| failure.inside(&self.name))
    }

    /// Whether objects may be without it.
    const fn may_be_absent(&self) -> bool {
        matches!(self.default, Default::Absent)
    }
}

enum Default {
    None,
    /// The attribute is left unset.
    Absent,
    Value(Py<PyAny>),
    Factory(Py<PyAny>),
}

#[pymethods]
impl Codec {
    #[new]
    #[allow(clippy::too_many_arguments)] // a Python signature
    #[pyo3(signature = (cls_, alias, resolve, *, build, members, keep_unknown, bytes_layout))]
    fn new(
        cls_: Py<PyType>,
        alias: String,
        resolve: Py<PyAny>,
        build: &str,
        members: Option<Py<Kind>>,
        keep_unknown: bool,
        bytes_layout: bool,
    ) -> Self {
        let build = match build {
            "set" => Build::SetAttributes,
            "force" => Build::ForceAttributes,
            "dict" => Build::SetDict,
            "slots" => Build::FillSlots,
            "args" => Build::CallInOrder,
            "items" => Build::Items,
            _ => Build::Call,
        };
        let plan = PyOnceLock::new();
        Self { class: cls_, alias, build, members, keep_unknown, bytes_layout, resolve, plan }
    }

    #[doc = stub!("Codec.register")]
    fn register(slf: &Bound<'_, Self>) -> Option<Py<PyType>> {
        let mut registered = REGISTERED.write().unwrap_or_else(PoisonError::into_inner);
        let known = registered.get_or_insert_default();
        let name = slf.get().alias.as_bytes();
        if let Some(other) = known.get(name)
            && !is_same_class(slf, other)
        {
            return Some(other.get().class.clone_ref(slf.py()));
        }
        known.insert(name.to_vec(), slf.clone().unbind());
        None
    }

    #[getter(alias)]
    fn py_alias(&self) -> &str {
        &self.alias
    }

    #[doc = stub!("Codec.members")]
    #[getter]
    fn members(&self, py: Python<'_>) -> Option<Py<Kind>> {
        self.members.as_ref().map(|members| members.clone_ref(py))
    }

    #[doc = stub!("Codec.fields")]
    #[getter]
    #[allow(clippy::type_complexity)] // rows of a table
    fn fields(&self, py: Python<'_>) -> PyResult<Vec<(String, Py<PyString>, Py<Kind>)>> {
        let rows = self.plan(py)?.fields.iter().map(|field| {
            (field.name.clone(), field.attribute.clone_ref(py), field.kind.clone_ref(py))
        });
        Ok(rows.collect())
    }

    #[doc = stub!("Codec.check")]
    fn check(&self, py: Python<'_>) -> PyResult<()> {
        let plan = self.plan(py)?;
        if self.bytes_layout { fixed::check(plan).map_err(PyErr::from) } else { Ok(()) }
    }
}

/// Whether a class is a redefinition of another one, as in a notebook, and replaces it.
fn is_same_class(one: &Bound<'_, Codec>, other: &Py<Codec>) -> bool {
    let py = one.py();
    let name = |codec: &Codec| {
        let class = codec.class.bind(py);
        Some((class.module().ok()?.to_string(), class.qualname().ok()?.to_string()))
    };
    name(one.get()).is_some_and(|found| name(other.get()) == Some(found))
}

/// The codec of the class that is registered under a name.
pub fn registered<'py>(py: Python<'py>, name: &[u8]) -> Option<Bound<'py, Codec>> {
    let registered = REGISTERED.read().unwrap_or_else(PoisonError::into_inner);
    registered.as_ref()?.get(name).map(|codec| codec.bind(py).clone())
}

/// The codec of a class, or an error that says what is missing.
pub fn of_class<'py>(class: &Bound<'py, PyAny>) -> PyResult<Bound<'py, Codec>> {
    let found = class.getattr(intern!(class.py(), "__quire_codec__"));
    let codec = found.ok().and_then(|found| found.cast_into::<Codec>().ok());
    codec.filter(|codec| codec.get().class.bind(class.py()).is(class)).ok_or_else(|| {
        PyTypeError::new_err(format!(
            "not a class of quire.message: found={class} (decorate it with quire.message)"
        ))
    })
}

/// The codec to write an object with: that of a declared class it belongs to, or of its own class.
pub fn to_write<'py>(
    object: &Bound<'py, PyAny>,
    class: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, Codec>> {
    let Some(class) = class else {
        let own = object.get_type().into_any();
        if object.is_instance_of::<PyDict>() {
            return Err(PyTypeError::new_err(
                "a dict has no class of its own: write_message(message, cls) writes it as a TypedDict of \
                 quire.message, write_map(message) as it is",
            ));
        }
        return of_class(&own);
    };
    let codec = of_class(class)?;
    if codec.get().build == Build::Items || object.get_type().is(class) {
        return Ok(codec);
    }
    Err(PyTypeError::new_err(format!(
        "the message is not an instance of the class: class={} type={}",
        codec.get().alias,
        classes::type_name(object)
    )))
}

/// The codec of an object's own class, if it has one.
pub fn of_object<'py>(object: &Bound<'py, PyAny>) -> Option<Bound<'py, Codec>> {
    let py = object.py();
    let class = object.get_type();
    let codec = class.getattr(intern!(py, "__quire_codec__")).ok()?.cast_into::<Codec>().ok()?;
    codec.get().class.bind(py).is(&class).then_some(codec)
}

impl Codec {
    /// The name of the class in messages.
    pub fn alias(&self) -> &str {
        &self.alias
    }

    /// The fields.
    pub fn plan(&self, py: Python<'_>) -> PyResult<&Plan> {
        self.plan.get_or_try_init(py, || Plan::of(self.resolve.bind(py), self.class.bind(py)))
    }

    /// Appends an object whose class was not declared, under its class name.
    pub fn put_typed(&self, out: &mut Out, object: &Bound<'_, PyAny>, depth: usize) -> Result<()> {
        put_type_prefix(out, &self.alias);
        self.put_block(out, object, depth)
    }

    /// Appends a whole message: the fields, or the object under its name.
    pub fn put_message(&self, out: &mut Out, object: &Bound<'_, PyAny>, typed: bool) -> Result<()> {
        if typed || self.members.is_some() {
            return self.put_typed(out, object, 0);
        }
        self.put_fields(out, object, 0)?;
        if out.is_empty() {
            out.extend_from_slice(&EMPTY_PAYLOAD);
        }
        Ok(())
    }

    /// Appends an object where this class was declared; an object of another class under its class
    /// name.
    pub fn put_declared(
        &self,
        out: &mut Out,
        object: &Bound<'_, PyAny>,
        depth: usize,
    ) -> Result<()> {
        let py = object.py();
        if self.build == Build::Items || object.get_type().is(self.class.bind(py)) {
            return self.put_block(out, object, depth);
        }
        match of_object(object) {
            Some(codec) if object.is_instance(self.class.bind(py))? => {
                codec.get().put_typed(out, object, depth)
            }
            _ => Err(WireError::new("the value does not fit")
                .with("expected", &self.alias)
                .with("type", classes::type_name(object))
                .into()),
        }
    }

    fn put_block(&self, out: &mut Out, object: &Bound<'_, PyAny>, depth: usize) -> Result<()> {
        if let Some(members) = &self.members {
            return members.get().put(out, object, depth);
        }
        let block = writer::open_block(out);
        self.put_fields(out, object, depth)?;
        writer::close_block(out, block);
        Ok(())
    }

    /// Appends the fields alone.
    pub fn put_fields(&self, out: &mut Out, object: &Bound<'_, PyAny>, depth: usize) -> Result<()> {
        let py = object.py();
        let plan = self.plan(py)?;
        if self.bytes_layout {
            return fixed::put(plan, out, object, depth);
        }
        if self.build == Build::Items {
            return self.put_items(plan, out, object, depth);
        }
        for field in &plan.fields {
            out.extend_from_slice(&field.token);
            let value = object.getattr(field.attribute.bind(py))?;
            field
                .kind
                .get()
                .put(out, &value, depth)
                .map_err(|failure| failure.inside(&field.name))?;
        }
        if self.keep_unknown
            && let Ok(unknown) = object.getattr(intern!(py, "__quire_unknown__"))
            && let Ok(unknown) = unknown.cast::<PyDict>()
        {
            for item in unknown.items().iter() {
                let (name, value): (Bound<'_, PyAny>, Bound<'_, PyAny>) = item.extract()?;
                writer::put_field(out, &name.cast::<PyString>().map_err(PyErr::from)?.to_cow()?)?;
                encode::put_value(out, &value, depth)?;
            }
        }
        Ok(())
    }

    /// Reads a value of this class, or None.
    pub fn get_value<'py>(
        &self,
        py: Python<'py>,
        cursor: &mut Reader<'_>,
        depth: usize,
    ) -> Result<Bound<'py, PyAny>> {
        let at = cursor.offset();
        if let Some(members) = &self.members {
            return members.get().get(py, cursor, depth);
        }
        if let Some(mut block) = cursor.block_if() {
            return self.get_fields(py, &mut block, reader::deeper(depth, at)?);
        }
        match cursor.value()? {
            Token::Null => Ok(py.None().into_bound(py)),
            Token::TypePrefix(name) => {
                let depth = reader::deeper(depth, at)?;
                if name == self.alias.as_bytes() {
                    return self.get_value(py, cursor, depth);
                }
                match registered(py, name) {
                    Some(other)
                        if self.build != Build::Items
                            && other.get().class.bind(py).is_subclass(self.class.bind(py))? =>
                    {
                        other.get().get_value(py, cursor, depth)
                    }
                    _ => Err(convert::misfit(&Token::TypePrefix(name), &self.alias, at).into()),
                }
            }
            other => Err(convert::misfit(&other, &self.alias, at).into()),
        }
    }

    /// Reads a whole message: its fields, or an object under its name.
    pub fn get_message<'py>(
        &self,
        py: Python<'py>,
        message: &[u8],
        has_names: bool,
    ) -> Result<Bound<'py, PyAny>> {
        compress::begin_message();
        let mut cursor = Reader::new(message);
        let starts_with_type = cursor.peek() == Some(TYPE_PREFIX);
        if self.members.is_some() || starts_with_type {
            let found = self.get_value(py, &mut cursor, 0)?;
            cursor.end()?;
            return Ok(found);
        }
        if has_names && !self.bytes_layout && cursor.shape() == Shape::List {
            let code = cursor.peek();
            return Err(WireError::unexpected("the name of a field", code, cursor.offset()).into());
        }
        self.get_fields(py, &mut cursor, 0)
    }

    /// Reads the fields alone, until the end.
    pub fn get_fields<'py>(
        &self,
        py: Python<'py>,
        block: &mut Reader<'_>,
        depth: usize,
    ) -> Result<Bound<'py, PyAny>> {
        let plan = self.plan(py)?;
        let (mut few, mut many) = ([const { None }; FEW], Vec::new());
        let found = if let Some(few) = few.get_mut(..plan.fields.len()) {
            few
        } else {
            many.resize(plan.fields.len(), None);
            &mut many
        };
        let mut unknown = None;
        if self.bytes_layout {
            fixed::get(py, plan, block, found, depth)?;
        } else {
            let mut next = 0;
            // Usually all fields are present, in this order.
            for (field, slot) in plan.fields.iter().zip(&mut *found) {
                if !block.take_if(&field.token) {
                    break;
                }
                *slot = Some(field.get(py, block, depth)?);
                next += 1;
            }
            if next == 0 && block.shape() == Shape::List {
                Self::get_in_order(py, plan, block, depth, found)?;
            }
            while let Some(name) = block.name()? {
                let Some(place) = plan.find(&name, next) else {
                    self.take_unknown(py, &name, block, depth, &mut unknown)?;
                    continue;
                };
                found[place] = Some(plan.fields[place].get(py, block, depth)?);
                next = place + 1;
            }
        }
        let object = self.object(py, plan, found, unknown)?;
        std::mem::forget(few); // all values were moved out
        Ok(object)
    }

    /// Reads the fields of a message without names, as in a `FIELDLESS_BINARY` queue.
    fn get_in_order<'py>(
        py: Python<'py>,
        plan: &Plan,
        block: &mut Reader<'_>,
        depth: usize,
        found: &mut [Option<Bound<'py, PyAny>>],
    ) -> Result<()> {
        for (field, slot) in plan.fields.iter().zip(found) {
            if block.peek().is_none() {
                break;
            }
            *slot = Some(field.get(py, block, depth)?);
        }
        Ok(block.end()?)
    }

    fn take_unknown<'py>(
        &self,
        py: Python<'py>,
        name: &Name<'_>,
        block: &mut Reader<'_>,
        depth: usize,
        unknown: &mut Option<Bound<'py, PyDict>>,
    ) -> Result<()> {
        if matches!(name, Name::Object) {
            block.skip()?;
        }
        let key = match name {
            Name::Field(name) | Name::Event(name) => latin1::decode(name).into_owned(),
            Name::Number(number) => number.to_string(),
            Name::Object => return Ok(block.skip()?),
        };
        if !self.keep_unknown {
            return Ok(block.skip()?);
        }
        let value = decode::get(py, block, depth).map_err(|failure| failure.inside(&key))?;
        unknown.get_or_insert_with(|| PyDict::new(py)).set_item(key, value)?;
        Ok(())
    }
}

impl Default {
    fn value<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        match self {
            Self::None | Self::Absent => Ok(None),
            Self::Value(value) => Ok(Some(value.bind(py).clone())),
            Self::Factory(factory) => factory.bind(py).call0().map(Some),
        }
    }
}

impl Plan {
    /// Calls `resolve` for the fields: for each, its name, attribute, kind, and a default or a
    /// factory.
    fn of(resolve: &Bound<'_, PyAny>, class: &Bound<'_, PyType>) -> PyResult<Self> {
        type Row = (String, Py<PyString>, Py<Kind>, u8, Py<PyAny>);
        let py = class.py();
        let (rows, post_init): (Vec<Row>, bool) = resolve.call0()?.extract()?;
        let mut fields = Vec::with_capacity(rows.len());
        let mut by_name = HashMap::new();
        for (name, attribute, kind, has_default, default) in rows {
            let mut token = Out::new();
            writer::put_field(&mut token, &name).map_err(Failure::from)?;
            let token = token.finish().map_err(Failure::from)?;
            let key: Vec<u8> =
                name.chars().map(|c| u8::try_from(u32::from(c)).unwrap_or(b'?')).collect();
            by_name.insert(key.clone(), fields.len());
            let default = match has_default {
                0 => Default::None,
                1 => Default::Value(default.clone_ref(py)),
                3 => Default::Absent,
                _ => Default::Factory(default.clone_ref(py)),
            };
            let attribute = attribute.bind(py).clone();
            fields.push(Field { name, key, token, attribute: attribute.unbind(), kind, default });
        }
        let attributes = fields.iter().map(|field: &Field| field.attribute.bind(py));
        let slots = Slots::of(class, attributes);
        Ok(Self { fields, by_name, post_init, slots })
    }

    /// The position of a field: usually the one after the last.
    #[inline]
    fn find(&self, name: &Name<'_>, next: usize) -> Option<usize> {
        match name {
            Name::Field(name) | Name::Event(name) => match self.fields.get(next) {
                Some(field) if field.key == *name => Some(next),
                _ => self.by_name.get(*name).copied(),
            },
            Name::Number(number) => self.by_name.get(number.to_string().as_bytes()).copied(),
            Name::Object => None,
        }
    }
}
