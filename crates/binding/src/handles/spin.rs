//! Waiting for a message without sleeping, with the interpreter detached.

use std::time::{Duration, Instant};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use quire_kernel::Result;
use quire_kernel::os::detached::Detached;

use crate::arguments::seconds;
use crate::detached::detached;
use crate::error::or_raise;

/// The clock is read after this many attempts, about every microsecond.
pub const LOOKS: usize = 128;
/// Signals are checked this often.
const BETWEEN_SIGNALS: Duration = Duration::from_millis(1);

enum Wait {
    Found,
    TimedOut,
    Paused,
}

/// Calls `look`, which makes up to [`LOOKS`] attempts, until it returns true; false after `timeout_s`
/// seconds.
pub fn until_found(
    py: Python<'_>,
    timeout_s: Option<&Bound<'_, PyAny>>,
    look: impl Fn(&mut Detached) -> Result<bool> + Sync,
) -> PyResult<bool> {
    let deadline = deadline(timeout_s)?;
    loop {
        match or_raise(py, detached(py, |may_wait| some_looks(may_wait, &look, deadline)))? {
            Wait::Found => return Ok(true),
            Wait::TimedOut => return Ok(false),
            Wait::Paused => py.check_signals()?,
        }
    }
}

/// When `timeout_s` seconds from now are over; None where they never are.
pub fn deadline(timeout_s: Option<&Bound<'_, PyAny>>) -> PyResult<Option<Instant>> {
    let timeout_s = timeout_s.map(|given| seconds("timeout_s", given)).transpose()?;
    let limit = timeout_s.map(limit).transpose()?.flatten();
    Ok(limit.and_then(|limit| Instant::now().checked_add(limit)))
}

/// The timeout in seconds as a duration; None if it is infinite.
fn limit(seconds: f64) -> PyResult<Option<Duration>> {
    if seconds.is_nan() || seconds < 0.0 {
        let wrong = format!("timeout_s is negative or not a number: timeout_s={seconds}");
        return Err(PyValueError::new_err(wrong));
    }
    Ok(Duration::try_from_secs_f64(seconds).ok())
}

fn some_looks(
    may_wait: &mut Detached,
    look: impl Fn(&mut Detached) -> Result<bool>,
    deadline: Option<Instant>,
) -> Result<Wait> {
    let mut until = None;
    loop {
        if look(may_wait)? {
            return Ok(Wait::Found);
        }
        let now = Instant::now();
        if deadline.is_some_and(|deadline| now >= deadline) {
            return Ok(Wait::TimedOut);
        }
        if now >= *until.get_or_insert(now + BETWEEN_SIGNALS) {
            return Ok(Wait::Paused);
        }
    }
}
