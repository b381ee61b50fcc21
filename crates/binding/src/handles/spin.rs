//! Waiting for a message without sleeping, with the interpreter detached.

use std::time::{Duration, Instant};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use quire_kernel::Result;
use quire_kernel::chronicle::read::tailer::Scan;
use quire_kernel::os::detached::Detached;

use crate::arguments::seconds;
use crate::detached::detached;
use crate::error::{or_raise, to_py};

/// The clock is read after this many attempts, every few microseconds.
pub const LOOKS: usize = 128;
/// How long to poll for a message attached to the interpreter.
const ATTACHED: Duration = Duration::from_micros(50);
/// How often signals are checked.
const BETWEEN_SIGNALS: Duration = Duration::from_millis(1);

enum Wait {
    Found,
    TimedOut,
    Paused,
}

/// Like [`until_found`], but first polls by `tries` attached to the interpreter for a while:
/// reattaching costs more than waiting for a message that arrives soon. `tries` gets the number of
/// attempts.
///
/// If other Python threads may need the interpreter, makes only one such attempt.
pub fn until_found_soon(
    py: Python<'_>,
    timeout_s: Option<&Bound<'_, PyAny>>,
    tries: impl Fn(usize) -> Result<Scan<()>>,
    look: impl Fn(&mut Detached) -> Result<bool> + Sync,
) -> PyResult<bool> {
    let deadline = deadline(timeout_s)?;
    let (mut attempts, mut until) = (1, None);
    loop {
        match tries(attempts).map_err(to_py)? {
            Scan::Found(()) => return Ok(true),
            Scan::Paused => {}
            _ => break,
        }
        let now = Instant::now();
        if deadline.is_some_and(|deadline| now >= deadline) {
            return Ok(false);
        }
        if until.is_none() && !is_only_thread(py)
            || now >= *until.get_or_insert_with(|| now + ATTACHED)
        {
            break;
        }
        attempts = LOOKS;
    }
    until_found(py, deadline, look)
}

/// Whether no other thread was started by Python.
fn is_only_thread(py: Python<'_>) -> bool {
    static COUNT: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let count = COUNT.import(py, "_thread", "_count").and_then(|count| count.call0()?.extract());
    matches!(count, Ok(0))
}

/// Calls `look`, which polls up to [`LOOKS`] times, until it returns true; false after the
/// deadline.
pub fn until_found(
    py: Python<'_>,
    deadline: Option<Instant>,
    look: impl Fn(&mut Detached) -> Result<bool> + Sync,
) -> PyResult<bool> {
    loop {
        match or_raise(py, detached(py, |may_wait| some_looks(may_wait, &look, deadline)))? {
            Wait::Found => return Ok(true),
            Wait::TimedOut => return Ok(false),
            Wait::Paused => py.check_signals()?,
        }
    }
}

/// The instant `timeout_s` seconds from now; None if there is no timeout.
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
