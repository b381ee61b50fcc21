//! Detaching from the Python interpreter.

use pyo3::prelude::*;
use quire_kernel::os::detached::Detached;

/// Does what `attempt` does, with the interpreter attached; while it is refused, as another thread uses
/// the handle, that is waited for detached.
#[inline]
pub fn attached<T>(
    py: Python<'_>,
    wait_until_free: impl Fn(&Detached) + Sync,
    mut attempt: impl FnMut() -> Option<T>,
) -> T {
    loop {
        match attempt() {
            Some(done) => return done,
            None => detached(py, |may_wait| wait_until_free(may_wait)),
        }
    }
}

/// Does what may wait, without the interpreter: other threads of Python go on.
#[inline]
pub fn detached<T: Send>(py: Python<'_>, work: impl FnOnce(&mut Detached) -> T + Send) -> T {
    py.detach(|| work(&mut Detached::here()))
}
