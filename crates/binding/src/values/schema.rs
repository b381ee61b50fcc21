//! Declared types: how their values are written, and to which objects they are read.

use std::borrow::Cow;
use std::collections::HashMap;

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyMapping, PyType};
use quire_wire::WireError;
use quire_wire::convert::Width;

use super::classes;
use super::codec::Codec;
use super::failure::{Failure, Result};

#[doc = stub!("Kind")]
#[pyclass(module = "quire._native", frozen)]
pub struct Kind(pub Form);

/// The kinds of declared types.
pub enum Form {
    /// Any value: the type is that of the value.
    Any,
    /// `bool`.
    Bool,
    /// `int` of a width, and the bits of it.
    Int(Width, u32),
    /// `float`.
    Float64,
    /// `quire.types.float32`.
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
    /// A type, and its only values.
    Literal(Py<Kind>, Vec<Py<PyAny>>),
    /// A numpy array of a type, and numpy's name of the type if declared.
    Array(Py<Kind>, Option<String>),
}

/// The members of an enum by their names.
pub struct Members {
    pub class: Py<PyType>,
    by_name: HashMap<String, Py<PyAny>>,
}

#[pymethods]
impl Kind {
    #[doc = stub!("Kind.scalar")]
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
                        let fault = WireError::new("no such type").with("name", name);
                        return Err(Failure::from(fault).into());
                    }
                }
            }
        }))
    }

    #[staticmethod]
    fn enumeration(class_: &Bound<'_, PyType>) -> PyResult<Self> {
        let mut by_name = HashMap::new();
        let members = class_.getattr("__members__")?;
        for item in members.cast::<PyMapping>()?.items()?.iter() {
            let (name, member): (String, Py<PyAny>) = item.extract()?;
            by_name.insert(name, member);
        }
        Ok(Self(Form::Enum(Members { class: class_.clone().unbind(), by_name })))
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

    #[doc = stub!("Kind.literal")]
    #[staticmethod]
    const fn literal(kind: Py<Self>, values: Vec<Py<PyAny>>) -> Self {
        Self(Form::Literal(kind, values))
    }

    #[doc = stub!("Kind.array")]
    #[staticmethod]
    const fn array(item: Py<Self>, dtype: Option<String>) -> Self {
        Self(Form::Array(item, dtype))
    }

    fn __repr__(&self) -> String {
        format!("Kind({})", self.name())
    }
}

/// The declared type of an annotation, from `quire.types`; None: any.
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
    /// The name of the declared type, for errors.
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
            Form::Literal(_, options) => return Cow::Owned(literal_name(options)),
            Form::Array(_, None) => "ndarray",
            Form::Array(_, Some(dtype)) => return Cow::Owned(format!("ndarray[{dtype}]")),
        })
    }

    #[cold]
    pub fn misfit(&self, value: &Bound<'_, PyAny>) -> Failure {
        let shown: String = value.repr().map_or_else(|_| "?".into(), |text| text.to_string());
        WireError::new("the value does not fit")
            .with("expected", self.name())
            .with("found", shown.chars().take(60).collect::<String>())
            .with("type", classes::type_name(value))
            .into()
    }
}

/// `Literal['a', 'b']`.
fn literal_name(options: &[Py<PyAny>]) -> String {
    let names: Vec<_> = Python::attach(|py| {
        let shown = |option: &Py<PyAny>| option.bind(py).repr().map(|text| text.to_string());
        options.iter().map(|option| shown(option).unwrap_or_else(|_| "?".into())).collect()
    });
    format!("Literal[{}]", names.join(", "))
}

impl Form {
    /// Whether it contains values of other types.
    pub const fn is_container(&self) -> bool {
        matches!(
            self,
            Self::List(_) | Self::Tuple(_) | Self::Set(_) | Self::FrozenSet(_) | Self::Dict(..)
        )
    }
}

impl Members {
    /// The name of a member.
    pub fn name_of(&self, member: &Bound<'_, PyAny>) -> Result<String> {
        if member.is_instance(self.class.bind(member.py()))? {
            return classes::enum_name(member);
        }
        Err(WireError::new("not a member of the enum").with("value", member).into())
    }

    /// A member by its name, in any case if there is none in this one.
    pub fn named(&self, name: &str) -> Option<&Py<PyAny>> {
        self.by_name.get(name).or_else(|| {
            self.by_name.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|it| it.1)
        })
    }
}
