//! Letting go of the interpreter.

use pyo3::prelude::*;
use quire_kernel::os::detached::Detached;

/// Does what may wait, without the interpreter: other threads of Python go on.
#[inline]
pub fn detached<T: Send>(py: Python<'_>, work: impl FnOnce(&mut Detached) -> T + Send) -> T {
    py.detach(|| work(&mut Detached::here()))
}
