//! Messages decoded to objects, without holding the tailer's lock: decoding may call Python code.

use pyo3::prelude::*;
use quire_kernel::chronicle::read::tailer::{Ask, DocumentPlace, Tailer};

use super::taken::Taken;
use crate::detached::detached;
use crate::error::{to_py, with_note};
use crate::values::decode;
use crate::values::failure::{self, Failure};

/// Signals are checked after this many messages.
const MESSAGES_BETWEEN_LOOKS: usize = 1 << 10;

/// Decodes the next message. If `decode` fails, the tailer moves back to the message.
pub fn one<R>(
    py: Python<'_>,
    tailer: &Tailer,
    decode: impl FnOnce(&[u8]) -> failure::Result<R>,
) -> PyResult<Option<R>> {
    let mut taken = Taken::nothing();
    if !taken.next(py, tailer, false)? {
        return Ok(None);
    }
    match decode(taken.payload()) {
        Ok(found) => Ok(Some(found)),
        Err(failure) => Err(put_back(py, tailer, &taken, failure)),
    }
}

/// Moves back to a message that cannot be decoded; returns the error to raise.
#[cold]
fn put_back(py: Python<'_>, tailer: &Tailer, taken: &Taken, failure: Failure) -> PyErr {
    let Some(place) = taken.place() else { return failure.into() };
    let error = match failure {
        Failure::Python(raised) => {
            let (file, position) = tailer.place_of(place);
            let index = place.index;
            with_note(py, raised, format!("index={index:#x} file={file} position={position:#x}"))
        }
        failure @ Failure::Wire(_) => decode::placed(failure, tailer, place),
    };
    return_to(py, tailer, place);
    error
}

/// Moves back after an error. Failures are ignored, as the first error is the one to raise, and a
/// tailer closed meanwhile has no position.
fn return_to(py: Python<'_>, tailer: &Tailer, place: &DocumentPlace) {
    let _ = detached(py, |may_wait| tailer.return_to(may_wait, place));
}

/// Decodes at most `count` messages. A message that cannot be decoded ends the batch and is
/// the next call's first; any other exception moves the tailer back to the first.
pub fn several<'py>(
    py: Python<'py>,
    tailer: &Tailer,
    count: usize,
    decode: impl Fn(&[u8]) -> failure::Result<Bound<'py, PyAny>>,
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let (mut found, mut first) = (Vec::new(), None);
    let read = add(py, tailer, count, decode, &mut found, &mut first);
    if let (Err(_), Some(first)) = (&read, &first) {
        return_to(py, tailer, first);
    }
    read.map(|()| found)
}

fn add<'py>(
    py: Python<'py>,
    tailer: &Tailer,
    count: usize,
    decode: impl Fn(&[u8]) -> failure::Result<Bound<'py, PyAny>>,
    found: &mut Vec<Bound<'py, PyAny>>,
    first: &mut Option<DocumentPlace>,
) -> PyResult<()> {
    let mut taken = Taken::nothing();
    while found.len() < count {
        let ask = if found.is_empty() { Ask::First } else { Ask::OfBatch };
        match taken.next_of_batch(py, tailer, ask)? {
            Ok(true) => {}
            Ok(false) => break,
            Err(_) if !found.is_empty() => break,
            Err(error) => return Err(to_py(error)),
        }
        if first.is_none() {
            *first = taken.place().copied();
        }
        match decode(taken.payload()) {
            Ok(message) => found.push(message),
            Err(failure @ Failure::Wire(_)) if !found.is_empty() => {
                put_back(py, tailer, &taken, failure);
                break;
            }
            Err(failure) => return Err(put_back(py, tailer, &taken, failure)),
        }
        if found.len().is_multiple_of(MESSAGES_BETWEEN_LOOKS) {
            py.check_signals()?;
        }
    }
    Ok(())
}
