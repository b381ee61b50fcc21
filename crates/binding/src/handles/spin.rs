//! Waiting for a message without sleeping, with the interpreter detached.

use std::time::{Duration, Instant};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use quire_kernel::Result;
use quire_kernel::chronicle::read::tailer::{Scan, Tailer};

use crate::error::told;

/// The clock is read after this many attempts, about every microsecond.
const LOOKS: usize = 128;
/// Signals are checked this often.
const BETWEEN_SIGNALS: Duration = Duration::from_millis(1);

/// The timeout in seconds as a duration; None if it is infinite.
pub fn limit(seconds: f64) -> PyResult<Option<Duration>> {
    if seconds.is_nan() || seconds < 0.0 {
        let wrong = format!("timeout_s is negative or not a number: timeout_s={seconds}");
        return Err(PyValueError::new_err(wrong));
    }
    Ok(Duration::try_from_secs_f64(seconds).ok())
}

/// Returns true if there is a message to read, false on timeout.
pub fn until_found(py: Python<'_>, tailer: &Tailer, limit: Option<Duration>) -> PyResult<bool> {
    let deadline = limit.and_then(|limit| Instant::now().checked_add(limit));
    loop {
        match told(py, py.detach(|| some_looks(tailer, deadline)))? {
            Scan::Found(()) => return Ok(true),
            Scan::Nothing => return Ok(false),
            Scan::Paused | Scan::Held(_) => py.check_signals()?,
        }
    }
}

fn some_looks(tailer: &Tailer, deadline: Option<Instant>) -> Result<Scan<()>> {
    let mut until = None;
    loop {
        if let Scan::Found(()) = tailer.spin(LOOKS)? {
            return Ok(Scan::Found(()));
        }
        let now = Instant::now();
        if deadline.is_some_and(|deadline| now >= deadline) {
            return Ok(Scan::Nothing);
        }
        if now >= *until.get_or_insert(now + BETWEEN_SIGNALS) {
            return Ok(Scan::Paused);
        }
    }
}
