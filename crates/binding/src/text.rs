//! Messages as text.

use pyo3::prelude::*;
use quire_kernel::wire::yaml;

use crate::buffer::Borrowed;
use crate::failure::Failure;

/// Returns a message as YAML.
#[pyfunction]
#[pyo3(signature = (message, /))]
pub fn to_yaml(message: &Bound<'_, PyAny>) -> PyResult<String> {
    Ok(yaml_of(Borrowed::new(message)?.bytes())?)
}

/// A message as YAML, without a fault where only Java's dump has none.
pub fn yaml_of(message: &[u8]) -> Result<String, Failure> {
    let mut out = String::with_capacity(message.len() + message.len() / 2);
    yaml::put(&mut out, message, true)?;
    Ok(out)
}
