//! Builds objects of message classes from the fields that were read.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyString, PyTuple};
use quire_wire::WireError;

use super::{Build, Codec, Default, Field, Plan};
use crate::buffer;
use crate::values::failure::{Failure, Result};

/// `object.__setattr__`.
static SET: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

impl Codec {
    /// Builds an object from its fields; missing ones take their defaults.
    pub(super) fn object<'py>(
        &self,
        py: Python<'py>,
        plan: &Plan,
        found: &mut [Option<Bound<'py, PyAny>>],
        unknown: Option<Bound<'py, PyDict>>,
    ) -> Result<Bound<'py, PyAny>> {
        if self.build == Build::Items {
            return self.items(py, plan, found, unknown);
        }
        let class = self.class.bind(py);
        if self.build == Build::Call {
            let object = self.call_with_names(py, plan, found)?;
            return Ok(Self::with_unknown(object, unknown)?);
        }
        for (field, value) in plan.fields.iter().zip(&mut *found) {
            if value.is_none() {
                *value = Some(field.default.value(py)?.ok_or_else(|| self.missing(field))?);
            }
        }
        let values =
            found.iter_mut().map(|value| value.take().unwrap_or_else(|| py.None().into_bound(py)));
        let object = if self.build == Build::CallInOrder {
            class.call1(PyTuple::new(py, values)?)?
        } else if let (Build::FillSlots, Some(slots)) = (self.build, &plan.slots) {
            slots.object(class, values)?
        } else {
            let object = buffer::object(class)?;
            self.set_attributes(plan, &object, values)?;
            object
        };
        let object = Self::with_unknown(object, unknown)?;
        if plan.post_init && self.build != Build::CallInOrder {
            object.call_method0(intern!(py, "__post_init__"))?;
        }
        Ok(object)
    }

    /// The object, with the fields that its class does not have.
    fn with_unknown<'py>(
        object: Bound<'py, PyAny>,
        unknown: Option<Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if let Some(unknown) = unknown {
            let name = intern!(object.py(), "__quire_unknown__");
            set_past_class(&object, name, unknown.as_any())?;
        }
        Ok(object)
    }

    /// Sets the fields of a new object.
    fn set_attributes<'py>(
        &self,
        plan: &Plan,
        object: &Bound<'py, PyAny>,
        values: impl Iterator<Item = Bound<'py, PyAny>>,
    ) -> Result<()> {
        let py = object.py();
        let fields = plan.fields.iter().zip(values);
        if self.build == Build::SetDict {
            let attributes = PyDict::new(py);
            for (field, value) in fields {
                attributes.set_item(field.attribute.bind(py), value)?;
            }
            return Ok(set_past_class(object, intern!(py, "__dict__"), attributes.as_any())?);
        }
        for (field, value) in fields {
            if matches!(self.build, Build::FillSlots | Build::ForceAttributes) {
                set_past_class(object, field.attribute.bind(py), &value)?;
            } else {
                object.setattr(field.attribute.bind(py), value)?;
            }
        }
        Ok(())
    }

    /// Calls the class with the fields that were found; missing ones are left to the class.
    fn call_with_names<'py>(
        &self,
        py: Python<'py>,
        plan: &Plan,
        found: &mut [Option<Bound<'py, PyAny>>],
    ) -> Result<Bound<'py, PyAny>> {
        let keywords = PyDict::new(py);
        for (field, value) in plan.fields.iter().zip(found) {
            if let Some(value) = value.take() {
                keywords.set_item(field.attribute.bind(py), value)?;
            } else if matches!(field.default, Default::None) {
                return Err(self.missing(field));
            }
        }
        Ok(self.class.bind(py).call((), Some(&keywords))?)
    }

    #[cold]
    pub(super) fn missing(&self, field: &Field) -> Failure {
        WireError::new("a field is missing and has no default: give it one to read older messages")
            .with("class", &self.alias)
            .inside(&field.name)
            .into()
    }
}

/// Sets an attribute, bypassing the class's own `__setattr__`.
fn set_past_class<'py>(
    object: &Bound<'py, PyAny>,
    name: &Bound<'py, PyString>,
    value: &Bound<'py, PyAny>,
) -> PyResult<()> {
    let set = SET.import(object.py(), "quire.calls.messages", "set_attribute")?;
    set.call1((object, name, value)).map(drop)
}
