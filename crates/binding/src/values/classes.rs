//! Python's classes for values that have no native form, imported once.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

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
    typed = "quire.calls.messages"."Typed";
    type_literal = "quire.calls.messages"."TypeLiteral";
}
