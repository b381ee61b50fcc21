//! A method of an interface, for reading and writing: its event, and the types of its arguments.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};
use pyo3::{PyTraverseError, PyVisit};
use quire_wire::out::Out;
use quire_wire::reader::{Name, Reader};
use quire_wire::{history, latin1, writer};

use crate::buffer;
use crate::error::to_py;
use crate::values::failure::{Failure, Result};
use crate::values::schema::Kind;

#[doc = stub!("Method")]
#[pyclass(module = "quire._native", frozen)]
pub struct Method {
    #[pyo3(get)]
    name: String,
    #[doc = stub!("Method.id")]
    #[pyo3(get)]
    id: Option<i64>,
    /// The event, encoded.
    event: Vec<u8>,
    /// The encoded name.
    latin_name: Vec<u8>,
    parameters: Vec<Parameter>,
    /// The number of parameters without a default, which come first.
    required: usize,
    /// The methods of the returned interface, by Python name.
    next: Option<Py<PyDict>>,
}

/// A parameter, and the type of its argument.
pub struct Parameter {
    name: String,
    kind: Py<Kind>,
    default: Option<Py<PyAny>>,
}

#[pymethods]
impl Method {
    // `parameters` are triples of a name, a kind, and a tuple of no or one default.
    #[new]
    #[pyo3(signature = (name, parameters, *, id = None, next = None))]
    fn new(
        name: String,
        parameters: Vec<(String, Py<Kind>, Bound<'_, PyTuple>)>,
        id: Option<i64>,
        next: Option<Py<PyDict>>,
    ) -> PyResult<Self> {
        let mut event = Out::new();
        writer::put_key(&mut event, &name).map_err(Failure::from)?;
        let latin_name = latin1::encode(&name).unwrap_or_default().into_owned();
        if let Some(id) = id {
            event.clear();
            writer::put_field_number(&mut event, id);
        }
        if id.map_or(name == history::NAME, |id| id == history::ID) {
            return Err(PyTypeError::new_err(format!(
                "this name or id is reserved for message history: method={name} method_id={id:?} \
                 (choose another name or id)"
            )));
        }
        let parameter = |(name, kind, default): (String, Py<Kind>, Bound<'_, PyTuple>)| {
            let default = default.iter().next().map(Bound::unbind);
            Parameter { name, kind, default }
        };
        let event = event.finish().map_err(Failure::from)?;
        let parameters: Vec<_> = parameters.into_iter().map(parameter).collect();
        let required = parameters.iter().take_while(|it| it.default.is_none()).count();
        Ok(Self { name, id, event, latin_name, parameters, required, next })
    }

    #[getter(parameters)]
    fn py_parameters(&self, py: Python<'_>) -> Vec<(&str, Py<Kind>)> {
        self.parameters.iter().map(|it| (it.name.as_str(), it.kind.clone_ref(py))).collect()
    }

    #[getter(next)]
    fn py_next(&self, py: Python<'_>) -> Option<Py<PyDict>> {
        self.next.as_ref().map(|next| next.clone_ref(py))
    }

    #[doc = stub!("Method.event_bytes")]
    #[pyo3(signature = (*given, **named))]
    fn event_bytes<'py>(
        &self,
        py: Python<'py>,
        given: &Bound<'py, PyTuple>,
        named: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let arguments = self.bind(py, given.iter().collect(), named)?;
        let mut out = Out::new();
        self.put(&mut out, &arguments)?;
        buffer::bytes(py, out.written().map_err(Failure::from)?).map_err(to_py)
    }

    fn __repr__(&self) -> String {
        let names: Vec<_> = self.parameters.iter().map(|it| it.name.as_str()).collect();
        format!("Method({}({}))", self.name, names.join(", "))
    }

    #[allow(clippy::needless_pass_by_value)] // as PyO3 calls it
    fn __traverse__(&self, visit: PyVisit<'_>) -> std::result::Result<(), PyTraverseError> {
        for parameter in &self.parameters {
            visit.call(&parameter.kind)?;
            visit.call(&parameter.default)?;
        }
        visit.call(&self.next)
    }
}

impl Method {
    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The name as encoded in messages.
    pub fn latin_name(&self) -> &[u8] {
        &self.latin_name
    }

    /// The event's number.
    pub const fn id(&self) -> Option<i64> {
        self.id
    }

    /// Whether an event is a call of it.
    pub fn is_called(&self, name: Name<'_>) -> bool {
        match name {
            Name::Field(name) | Name::Event(name) => self.latin_name == name,
            Name::Number(number) => self.id == Some(number),
            Name::Object => false,
        }
    }

    /// The parameters.
    pub fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }

    /// The minimum number of arguments of a call.
    pub const fn required(&self) -> usize {
        self.required
    }

    /// The methods of a call's result.
    pub const fn next(&self) -> Option<&Py<PyDict>> {
        self.next.as_ref()
    }

    /// Appends the event of a call with one argument.
    #[inline]
    pub fn put_one(&self, out: &mut Out, argument: &Bound<'_, PyAny>) -> PyResult<()> {
        out.extend_from_slice(&self.event);
        self.put_argument(out, 0, argument)
    }

    /// Whether a call with one positional argument is complete.
    #[inline]
    pub const fn takes_one(&self) -> bool {
        self.parameters.len() == 1
    }

    /// Appends the event of a call with these arguments, as many as there are parameters.
    pub fn put(&self, out: &mut Out, arguments: &[Bound<'_, PyAny>]) -> PyResult<()> {
        out.extend_from_slice(&self.event);
        match arguments {
            [] => writer::put_text(out, ""),
            [argument] => self.put_argument(out, 0, argument)?,
            several => {
                let block = writer::open_block(out);
                for (number, argument) in several.iter().enumerate() {
                    self.put_argument(out, number, argument)?;
                }
                writer::close_block(out, block);
            }
        }
        Ok(())
    }

    #[inline]
    fn put_argument(
        &self,
        out: &mut Out,
        number: usize,
        argument: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let parameter = &self.parameters[number];
        let put: Result<()> = parameter.kind.get().put_argument(out, argument, 0);
        put.map_err(|failure| failure.inside(&parameter.name).inside(&self.name).into())
    }

    /// Reads an argument.
    #[inline]
    pub fn get_argument<'py>(
        &self,
        py: Python<'py>,
        number: usize,
        cursor: &mut Reader<'_>,
    ) -> Result<Bound<'py, PyAny>> {
        let parameter = &self.parameters[number];
        let found: Result<_> = parameter.kind.get().get(py, cursor, 0);
        found.map_err(|failure| failure.inside(&parameter.name).inside(&self.name))
    }

    /// A call's arguments, one for each parameter: by place, by name, or the default.
    pub fn bind<'py>(
        &self,
        py: Python<'py>,
        mut given: Vec<Bound<'py, PyAny>>,
        named: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let by_name = named.map_or(0, PyDictMethods::len);
        if given.len() + by_name > self.parameters.len() {
            return Err(self.misfit(&format!("given={}", given.len() + by_name)));
        }
        let mut used = 0;
        for parameter in &self.parameters[given.len()..] {
            let argument = match named {
                Some(named) => named.get_item(&parameter.name)?,
                None => None,
            };
            used += usize::from(argument.is_some());
            let default = || parameter.default.as_ref().map(|it| it.bind(py).clone());
            match argument.or_else(default) {
                Some(argument) => given.push(argument),
                None => return Err(self.misfit(&format!("missing={}", parameter.name))),
            }
        }
        if used < by_name {
            let given = named.map(|named| named.keys().to_string()).unwrap_or_default();
            return Err(self.misfit(&format!("given={given}")));
        }
        Ok(given)
    }

    #[cold]
    fn misfit(&self, given: &str) -> PyErr {
        let names: Vec<_> = self.parameters.iter().map(|it| it.name.as_str()).collect();
        let (name, names) = (&self.name, names.join(", "));
        PyTypeError::new_err(format!(
            "the arguments of the call do not match the method: method={name} {given} \
             expected=({names})"
        ))
    }
}

impl Parameter {
    /// Adds the argument's name to an error.
    pub fn name(&self) -> &str {
        &self.name
    }
}
