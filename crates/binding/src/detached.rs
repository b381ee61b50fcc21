//! Detaching from the Python interpreter.

use pyo3::prelude::*;
use quire_kernel::os::detached::Detached;

/// Calls `attempt` attached to the interpreter; while another thread uses the handle, waits
/// detached and tries again.
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

/// Does `work`, which may wait, detached from the interpreter, so that other Python threads can
/// run.
#[inline]
pub fn detached<T: Send>(py: Python<'_>, work: impl FnOnce(&mut Detached) -> T + Send) -> T {
    py.detach(|| work(&mut Detached::here()))
}
