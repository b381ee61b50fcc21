//! Python's classes for values that have no native form, imported once, and the names of classes
//! and enum members.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;
use quire_wire::WireError;

use super::failure::Result;

macro_rules! classes {
    ($($(#[$doc:meta])* $name:ident = $module:literal . $class:literal;)+) => {$(
        $(#[$doc])*
        pub fn $name(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
            static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
            CLASS.import(py, $module, $class)
        }
    )+};
}

classes! {
    date = "datetime"."date";
    time = "datetime"."time";
    datetime = "datetime"."datetime";
    timedelta = "datetime"."timedelta";
    timezone = "datetime"."timezone";
    zone_info = "zoneinfo"."ZoneInfo";
    uuid = "uuid"."UUID";
    decimal = "decimal"."Decimal";
    enumeration = "enum"."Enum";
    coroutine = "types"."CoroutineType";
    typed = "quire.calls.messages"."Typed";
    type_literal = "quire.calls.messages"."TypeLiteral";
}

/// The name of an enum's member.
pub fn enum_name(member: &Bound<'_, PyAny>) -> Result<String> {
    let name = member.getattr(intern!(member.py(), "name"))?;
    match name.extract::<String>() {
        Ok(name) if !name.contains('|') => Ok(name),
        _ => Err(WireError::new("a combination of flags has no name").with("value", member).into()),
    }
}

/// The name of an object's type, for errors.
pub fn type_name(value: &Bound<'_, PyAny>) -> String {
    value.get_type().name().map_or_else(|_| "?".into(), |name| name.to_string())
}
