//! Messages that are dictionaries with the keys and types that a `TypedDict` declares.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use quire_wire::WireError;
use quire_wire::out::Out;
use quire_wire::writer;

use super::{Codec, Plan};
use crate::values::failure::Result;
use crate::values::{classes, encode};

impl Codec {
    /// Appends the values under their keys. Unknown keys are refused, or kept.
    pub(super) fn put_items(
        &self,
        plan: &Plan,
        out: &mut Out,
        object: &Bound<'_, PyAny>,
        depth: usize,
    ) -> Result<()> {
        let Ok(items) = object.cast::<PyDict>() else {
            return Err(WireError::new("the value does not fit")
                .with("expected", &self.alias)
                .with("type", classes::type_name(object))
                .into());
        };
        let mut written = 0;
        for field in &plan.fields {
            let Some(value) = items.get_item(field.attribute.bind(object.py()))? else {
                if field.may_be_absent() {
                    continue;
                }
                return Err(WireError::new("a key is missing")
                    .with("class", &self.alias)
                    .inside(&field.name)
                    .into());
            };
            out.extend_from_slice(&field.token);
            field.kind.get().put(out, &value, depth).map_err(|it| it.inside(&field.name))?;
            written += 1;
        }
        if written < items.len() { self.put_others(plan, out, items, depth) } else { Ok(()) }
    }

    /// Appends unknown keys.
    #[cold]
    fn put_others(
        &self,
        plan: &Plan,
        out: &mut Out,
        items: &Bound<'_, PyDict>,
        depth: usize,
    ) -> Result<()> {
        let py = items.py();
        for item in items.items().iter() {
            let (key, value): (Bound<'_, PyAny>, Bound<'_, PyAny>) = item.extract()?;
            if plan.fields.iter().any(|field| key.eq(field.attribute.bind(py)).unwrap_or(false)) {
                continue;
            }
            let Some(name) = key.cast::<PyString>().ok().filter(|_| self.keep_unknown) else {
                let known: Vec<_> = plan.fields.iter().map(|field| field.name.as_str()).collect();
                return Err(WireError::new(
                    "a key that the class does not have: remove it, or register the class with \
                     unknown=\"keep\"",
                )
                .with("class", &self.alias)
                .with("expected", known.join(", "))
                .inside(&key)
                .into());
            };
            writer::put_field(out, &name.to_cow()?)?;
            encode::put_value(out, &value, depth).map_err(|failure| failure.inside(&key))?;
        }
        Ok(())
    }

    /// The dictionary of a message: its fields, defaults where they are missing, and unknown ones.
    pub(super) fn items<'py>(
        &self,
        py: Python<'py>,
        plan: &Plan,
        found: &mut [Option<Bound<'py, PyAny>>],
        unknown: Option<Bound<'py, PyDict>>,
    ) -> Result<Bound<'py, PyAny>> {
        let items = PyDict::new(py);
        for (field, value) in plan.fields.iter().zip(found) {
            match value.take() {
                Some(value) => items.set_item(field.attribute.bind(py), value)?,
                None if field.may_be_absent() => {}
                None => return Err(self.missing(field)),
            }
        }
        if let Some(unknown) = unknown {
            items.update(unknown.as_mapping())?;
        }
        Ok(items.into_any())
    }
}
