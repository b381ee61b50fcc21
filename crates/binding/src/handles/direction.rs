//! Names of read directions, for the tailers of every format.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use quire_kernel::chronicle::read::tailer::Direction;

use crate::arguments::text;

/// The name of a direction.
pub const fn name(direction: Direction) -> &'static str {
    match direction {
        Direction::Forward => "forward",
        Direction::Backward => "backward",
        Direction::None => "none",
    }
}

/// The direction that an argument names.
pub fn named(value: &Bound<'_, PyAny>) -> PyResult<Direction> {
    match text("direction", value)? {
        "forward" => Ok(Direction::Forward),
        "backward" => Ok(Direction::Backward),
        "none" => Ok(Direction::None),
        value => {
            let known = "forward, backward, none";
            let what = format!("no such direction: direction={value} known={known}");
            Err(PyValueError::new_err(what))
        }
    }
}
