//! Kernel errors as the exceptions that `quire.errors` defines, kernel notices as log records.

use std::cell::RefCell;
use std::io;
use std::path::{Path, PathBuf};

use pyo3::exceptions::{PyException, PyMemoryError, PyOSError, PyValueError};
use pyo3::prelude::*;
use quire_kernel::os::{interrupt, paths};
use quire_kernel::{Error, warnings};

use crate::repr;

/// Declares exceptions of `quire.errors`, and what imports all of them.
macro_rules! exceptions {
    ($($name:ident),+ $(,)?) => {
        $(pyo3::import_exception!(quire.errors, $name);)+

        /// Imports the exceptions: to raise one that was not raised before would panic once the
        /// interpreter ends.
        pub fn import_exceptions(py: Python<'_>) -> PyResult<()> {
            py.import("quire.errors")?;
            $(py.get_type::<$name>();)+
            Ok(())
        }
    };
}

exceptions![
    QuireError,
    ClosedError,
    ReadOnlyError,
    NotAQueueError,
    RingLostError,
    TableLostError,
    UnsafePathError,
    RollCycleMismatchError,
    UnsupportedError,
    CorruptError,
    MessageTooLargeError,
    IndexOutOfRangeError,
    IndexNotAvailableError,
    CycleFullError,
    WriteAfterEofError,
    LockLostError,
    WireError,
    ForkedError,
    LockTimeoutError,
    DataLossError,
    TailerInUseError,
    AppendLockedError,
    LeaseExpiredError,
    WriterInUseError,
    ProducerDiedError,
    DocumentOpenError,
    ReplicationError,
    WaitTimeoutError,
    GroupError,
    GroupLostError,
    EncryptionError,
    ForgedMessageError,
    PlainMessageError,
    DictionaryError,
    RingFullError,
    ClockAheadError,
];

thread_local! {
    /// The exception of a signal handler that ran while the kernel waited.
    static RAISED: RefCell<Option<PyErr>> = const { RefCell::new(None) };
}

/// Lets the kernel check pending signals while it waits.
pub fn watch_for_signals() {
    interrupt::watch(|| {
        Python::attach(|py| match py.check_signals() {
            Ok(()) => false,
            Err(raised) => {
                RAISED.with(|slot| slot.replace(Some(raised)));
                true
            }
        })
    });
}

/// Converts a kernel result to a Python result; the kernel's warnings are logged first.
#[inline]
pub fn or_raise<T>(py: Python<'_>, result: Result<T, Error>) -> PyResult<T> {
    log_warnings(py)?;
    result.map_err(to_py)
}

/// Logs the kernel's warnings. A failing log handler or filter does not undo the operation;
/// an interrupt is raised.
#[inline]
pub fn log_warnings(py: Python<'_>) -> PyResult<()> {
    let lines = warnings::take();
    if lines.is_empty() { Ok(()) } else { log(py, lines) }
}

#[cold]
fn log(py: Python<'_>, lines: Vec<String>) -> PyResult<()> {
    let logger = py.import("logging")?.call_method1("getLogger", ("quire",))?;
    for line in lines {
        match logger.call_method1("warning", (repr::line(py, &line),)) {
            Err(error) if error.is_instance_of::<PyException>(py) => {
                error.write_unraisable(py, Some(&logger));
            }
            result => drop(result?),
        }
    }
    Ok(())
}

const NO_SPACE: &str = " (make room, then continue with the same handle)";
const ROOM_FOR_HOLE: &str =
    " (make room, then continue with the same handle: the hole is read as zeros)";

const NOT_ALLOWED: &str = " (read_only=True needs no write permission; file_mode=0o660 lets the \
                           group write to a new queue)";

const NOT_READABLE: &str = " (this user has no permission to read it; the owner can grant it)";

/// Advice for a system error at a path.
fn advice(error: &io::Error, path: &Path) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => NO_SPACE,
        io::ErrorKind::PermissionDenied if !paths::may_read(path) => NOT_READABLE,
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => NOT_ALLOWED,
        _ => "",
    }
}

fn system_error(code: i32, what: &str, path: PathBuf, source: &io::Error) -> PyErr {
    let reason = source.to_string();
    let reason = reason.split(" (os error").next().unwrap_or_default();
    let text = format!("{what}: {reason}{}", advice(source, &path));
    PyOSError::new_err((code, text, path.into_os_string()))
}

fn io_error(text: String, what: &str, path: PathBuf, source: &io::Error) -> PyErr {
    match source.raw_os_error() {
        Some(code) => system_error(code, what, path, source),
        None => PyOSError::new_err(text),
    }
}

/// The exception raised by a signal handler, if any.
fn raised() -> Option<PyErr> {
    RAISED.with(RefCell::take)
}

fn hole_error(text: &str, file: PathBuf) -> PyErr {
    let text = format!("{text}{ROOM_FOR_HOLE}");
    PyOSError::new_err((Error::NO_SPACE, text, file.into_os_string()))
}

/// The exception for an error of encryption or compression; None for any other error.
fn of_sealed(error: &Error, text: &str) -> Option<PyErr> {
    let text = text.to_owned();
    Some(match error {
        Error::NotAuthentic { .. } => ForgedMessageError::new_err(text),
        Error::Plain { .. } => PlainMessageError::new_err(text),
        Error::Encrypted { .. }
        | Error::KeyExpired { .. }
        | Error::KeyMissing { .. }
        | Error::KeysMissing { .. } => EncryptionError::new_err(text),
        Error::DictionaryMissing { .. } => DictionaryError::new_err(text),
        _ => return None,
    })
}

/// Adds a note to an exception, whatever its class.
#[cold]
pub fn with_note(py: Python<'_>, error: PyErr, note: String) -> PyErr {
    match error.value(py).call_method1("add_note", (note,)) {
        Ok(_) => error,
        Err(other) => other,
    }
}

/// Converts a kernel error to an exception.
#[cold]
pub fn to_py(error: Error) -> PyErr {
    let text = error.to_string();
    if let Some(found) = of_sealed(&error, &text) {
        return found;
    }
    match error {
        Error::Io { what, path, source } => io_error(text, what, path, &source),
        Error::Hole { file, .. } => hole_error(&text, file),
        Error::Corrupt { file, position, found, expected, .. } => {
            CorruptError::new_err((text, file.display().to_string(), position, found, expected))
        }
        Error::Closed { .. } => ClosedError::new_err(text),
        Error::LeaseExpired { .. } => LeaseExpiredError::new_err(text),
        Error::NotNext { .. } | Error::ReplicasFull { .. } => ReplicationError::new_err(text),
        Error::ReadOnly { .. } => ReadOnlyError::new_err(text),
        Error::NotAQueue { .. }
        | Error::NotAQuickQueue { .. }
        | Error::NotAVanillaQueue { .. }
        | Error::NotAnIndexedQueue { .. } => NotAQueueError::new_err(text),
        Error::WriterInUse { .. } => WriterInUseError::new_err(text),
        Error::ProducerDied { producer, index, .. } => {
            ProducerDiedError::new_err((text, producer, index))
        }
        Error::SecondName { .. } => UnsafePathError::new_err(text),
        Error::RingLost { .. } => RingLostError::new_err(text),
        Error::TableLost { .. } => TableLostError::new_err(text),
        Error::RollCycleMismatch { .. } | Error::CycleLengthUnknown { .. } => {
            RollCycleMismatchError::new_err(text)
        }
        Error::Unsupported(_) => UnsupportedError::new_err(text),
        Error::MessageTooLarge { .. } | Error::MessageTooLong { .. } => {
            MessageTooLargeError::new_err(text)
        }
        Error::OutOfMemory(_) => PyMemoryError::new_err(text),
        Error::IndexOutOfRange(_) => IndexOutOfRangeError::new_err(text),
        Error::IndexNotAvailable => IndexNotAvailableError::new_err(text),
        Error::CycleFull { .. } => CycleFullError::new_err(text),
        Error::WriteAfterEof { .. } => WriteAfterEofError::new_err(text),
        Error::LockLost { .. } => LockLostError::new_err(text),
        Error::DataLoss { raised, .. } => {
            raised.note();
            DataLossError::new_err(text)
        }
        Error::TailerInUse { pid, since_s, .. } => TailerInUseError::new_err((text, pid, since_s)),
        Error::Wire(_) => WireError::new_err(text),
        Error::GroupLost { .. } => GroupLostError::new_err(text),
        Error::Group { .. } => GroupError::new_err(text),
        Error::Forked => ForkedError::new_err(text),
        Error::ClockAhead { .. } => ClockAheadError::new_err(text),
        Error::RingFull { .. } => RingFullError::new_err(text),
        Error::LockTimeout { .. } | Error::FileLocked { .. } | Error::RingNotDrained { .. } => {
            LockTimeoutError::new_err(text)
        }
        Error::AppendLocked(_) => AppendLockedError::new_err(text),
        Error::DocumentOpen => DocumentOpenError::new_err(text),
        Error::Invalid(_) => PyValueError::new_err(text),
        Error::Interrupted => raised().unwrap_or_else(|| QuireError::new_err(text)),
        _ => QuireError::new_err(text),
    }
}
