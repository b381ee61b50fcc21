//! Message classes: registered Python classes, and how their fields stand in a message.

use pyo3::prelude::*;
use quire_kernel::format::cursor::Cursor;

use crate::failure::Result;

/// How the objects of one class are written and read.
pub struct Codec;

impl Codec {
    pub fn get_value<'py>(
        &self,
        _py: Python<'py>,
        _cursor: &mut Cursor<'_>,
        _depth: usize,
    ) -> Result<Bound<'py, PyAny>> {
        unreachable!()
    }
}

/// The codec of the class that is registered under a name.
pub fn registered(_py: Python<'_>, _name: &[u8]) -> Option<Codec> {
    None
}
