//! Kernel scans that pause: signals are checked in between, attached to the interpreter and
//! without locks. A signal handler may use, move or close the very handle being read.

use pyo3::prelude::*;
use quire_kernel::Result;
use quire_kernel::chronicle::read::tailer::{
    Ask, How, OpenDocument, Reading, Scan, Tailer, What, wait_toward,
};
use quire_kernel::os::detached::Detached;

use crate::detached::detached;
use crate::error::{log_warnings, or_raise, to_py};

/// Signals are checked after this many messages read or written in bulk.
pub const STEP: usize = 1 << 14;

/// Calls `step` with the interpreter detached until it completes; None if it found nothing.
pub fn through<T: Send>(
    py: Python<'_>,
    mut step: impl FnMut(&mut Detached) -> Result<Scan<T>> + Send,
) -> PyResult<Option<T>> {
    loop {
        match or_raise(py, detached(py, &mut step))? {
            Scan::Found(found) => return Ok(Some(found)),
            Scan::Nothing => return Ok(None),
            end => pause(py, &end)?,
        }
    }
}

/// Waits while a scan is paused, and checks signals.
pub fn pause<T>(py: Python<'_>, scan: &Scan<T>) -> PyResult<()> {
    if let Scan::Held(then) = *scan {
        detached(py, |may_wait| wait_toward(may_wait, then));
    }
    py.check_signals()
}

/// Reads a batch like [`through`]. If an interrupt prevents its delivery, the tailer moves
/// back to its first message.
pub fn batch(
    py: Python<'_>,
    tailer: &Tailer,
    reading: &mut Reading,
    mut step: impl FnMut(&mut Detached, &mut Reading) -> Result<Scan<()>> + Send,
) -> PyResult<()> {
    let read = through(py, |may_wait| step(may_wait, reading)).map(drop);
    or_put_back(py, tailer, reading, read)
}

/// The result of reading a batch; on failure, the tailer moves back to its first message.
pub fn or_put_back<T>(
    py: Python<'_>,
    tailer: &Tailer,
    reading: &Reading,
    read: PyResult<T>,
) -> PyResult<T> {
    if read.is_err() {
        // The error that ended the read is the one to raise.
        let _ = detached(py, |may_wait| tailer.put_back(may_wait, reading));
    }
    read
}

/// Does the waiting for a tailer's next read; the message stays, for that read to find.
pub fn look(may_wait: &Detached, tailer: &Tailer, ask: Ask) -> Result<Scan<()>> {
    tailer.step(What::message(ask).staying(), How::Wait(may_wait), |_| Ok(()))
}

/// Prepares the next read of a tailer; false if there is nothing to read yet.
#[inline]
pub fn prepare(py: Python<'_>, tailer: &Tailer, ask: Ask) -> PyResult<bool> {
    Ok(through(py, |may_wait| look(may_wait, tailer, ask))?.is_some())
}

/// Opens the next document, which [`Tailer::close_document`] then steps over.
pub fn open(
    py: Python<'_>,
    tailer: &Tailer,
    include_metadata: bool,
) -> PyResult<Option<OpenDocument>> {
    let next = What::document(Ask::First, include_metadata).staying();
    through(py, |may_wait| tailer.step(next, How::Wait(may_wait), |found| found.open()))
}

/// Like [`prepare`], for a batch: if it has messages, a kernel error only ends it
/// and is reported by the next call. An interrupt is raised.
pub fn prepare_more(py: Python<'_>, tailer: &Tailer, reading: &mut Reading) -> PyResult<bool> {
    let ask = reading.ask();
    loop {
        let prepared = detached(py, |may_wait| look(may_wait, tailer, ask));
        log_warnings(py)?;
        py.check_signals()?;
        match prepared {
            Ok(Scan::Found(())) => break,
            Ok(Scan::Nothing) => return Ok(false),
            Ok(Scan::Paused | Scan::WouldWait) => {}
            Ok(Scan::Held(then)) => detached(py, |may_wait| wait_toward(may_wait, then)),
            Err(_) if reading.taken > 0 => return Ok(false),
            Err(error) => return Err(to_py(error)),
        }
    }
    reading.begin();
    Ok(true)
}

/// Takes the next document. An interrupt takes precedence, and moves the tailer back to it.
#[cold]
pub fn take(py: Python<'_>, tailer: &Tailer, next: What) -> PyResult<Result<Option<OpenDocument>>> {
    loop {
        let taken =
            detached(py, |may_wait| tailer.step(next, How::Wait(may_wait), |found| found.open()));
        if let Err(raised) = log_warnings(py) {
            if let Ok(Scan::Found(open)) = &taken {
                let _ = detached(py, |may_wait| tailer.return_to(may_wait, open.place()));
            }
            return Err(raised);
        }
        match taken {
            Ok(Scan::Found(open)) => return Ok(Ok(Some(open))),
            Ok(Scan::Nothing) => return Ok(Ok(None)),
            Ok(end) => pause(py, &end)?,
            Err(error) => return Ok(Err(error)),
        }
    }
}
