//! Reads of the formats whose messages are raw bytes: Vanilla and Indexed Chronicles, Quick-Queues.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};
use quire_kernel::os::detached::Detached;
use quire_kernel::{Error, Result};

use super::column::{Columns, Index, PayloadColumns};
use super::scan::STEP;
use crate::arguments::{integer, optional};
use crate::buffer;
use crate::detached::{attached, detached};
use crate::error::{log_warnings, or_raise, to_py};

/// The common interface of the kernel's tailers of these formats.
pub trait RawTailer: Sync {
    type Index: Index;
    /// A place to return to.
    type Mark: Send + Sync;

    /// Calls `take` with up to `count` messages while it returns true; the first message refused is
    /// read again. With `is_first` a batch begins, and messages delivered before count as
    /// processed.
    fn read_while(
        &self,
        may_wait: &Detached,
        count: usize,
        is_first: bool,
        take: impl FnMut(Self::Index, &[u8]) -> bool,
    ) -> Result<usize>;

    /// Like [`Self::read_while`]; None while another thread uses the tailer.
    fn try_read_while(
        &self,
        count: usize,
        is_first: bool,
        take: impl FnMut(Self::Index, &[u8]) -> bool,
    ) -> Option<Result<usize>>;

    /// Returns once the tailer was free, so that the caller can try again.
    fn wait_until_free(&self, may_wait: &Detached);

    fn mark(&self, may_wait: &Detached) -> Result<Self::Mark>;

    fn return_to(&self, may_wait: &Detached, mark: &Self::Mark) -> Result<()>;

    /// Keeps an error that follows messages for the next read, unless that would find it again
    /// anyway.
    fn defer(&self, _may_wait: &Detached, _error: Error) -> Result<()> {
        Ok(())
    }
}

/// The next message, converted by `make` from its index and bytes; it stays the next one if that
/// fails.
#[inline]
pub fn next<T: RawTailer, R>(
    py: Python<'_>,
    tailer: &T,
    make: impl Fn(T::Index, &[u8]) -> PyResult<R>,
) -> PyResult<Option<R>> {
    let mut found = None;
    let read = attached(
        py,
        |may_wait| tailer.wait_until_free(may_wait),
        || tailer.try_read_while(1, true, |index, bytes| found.insert(make(index, bytes)).is_ok()),
    );
    or_raise(py, read)?;
    found.transpose()
}

/// The next message's bytes.
#[inline]
pub fn payload<'py>(
    py: Python<'py>,
    tailer: &impl RawTailer,
) -> PyResult<Option<Bound<'py, PyBytes>>> {
    next(py, tailer, |_, bytes| buffer::bytes(py, bytes).map_err(to_py))
}

/// The bytes of up to `count` messages.
pub fn payloads<'py>(
    py: Python<'py>,
    tailer: &impl RawTailer,
    count: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyList>> {
    let count = integer("count", count)?;
    let mut found: Vec<Bound<'py, PyBytes>> = Vec::new();
    let start = or_raise(py, detached(py, |may_wait| tailer.mark(may_wait)))?;
    let mut added = Ok(());
    let rows = in_steps(py, tailer, count, |asked, is_first| {
        attached(
            py,
            |may_wait| tailer.wait_until_free(may_wait),
            || {
                tailer.try_read_while(asked, is_first, |_, bytes| {
                    added = buffer::bytes(py, bytes).and_then(|it| buffer::push(&mut found, it));
                    added.is_ok()
                })
            },
        )
    })?;
    // Return the messages read so far; the next call meets the lack of memory again.
    let list = if rows > 0 { Ok(()) } else { added }.and_then(|()| buffer::list(py, found));
    list.map_err(|error| match detached(py, |may_wait| tailer.return_to(may_wait, &start)) {
        Ok(()) => to_py(error),
        Err(error) => to_py(error),
    })
}

/// Up to `count` messages below `end`.
pub fn columns<T: RawTailer>(
    py: Python<'_>,
    tailer: &T,
    count: &Bound<'_, PyAny>,
    max_bytes: Option<&Bound<'_, PyAny>>,
    end: T::Index,
) -> PyResult<Columns> {
    let count = integer("count", count)?;
    let mut columns = PayloadColumns::new(optional("max_bytes", max_bytes)?, None);
    let rows = in_steps(py, tailer, count, |asked, is_first| {
        detached(py, |may_wait| {
            tailer.read_while(may_wait, asked, is_first, |index, bytes| {
                index < end && columns.add(index, bytes)
            })
        })
    })?;
    columns.finish(rows).map_err(to_py)
}

/// Reads up to `count` messages in steps and checks signals in between; an interrupt moves the
/// tailer back. `step` gets the number of messages to read, and whether they are the first.
fn in_steps(
    py: Python<'_>,
    tailer: &impl RawTailer,
    count: usize,
    mut step: impl FnMut(usize, bool) -> Result<usize>,
) -> PyResult<usize> {
    let start = or_raise(py, detached(py, |may_wait| tailer.mark(may_wait)))?;
    let mut taken = 0;
    while taken < count {
        let asked = (count - taken).min(STEP);
        let some = match step(asked, taken == 0) {
            Ok(some) => some,
            Err(error) if taken == 0 => return or_raise(py, Err(error)),
            Err(error) => {
                or_raise(py, detached(py, |may_wait| tailer.defer(may_wait, error)))?;
                break;
            }
        };
        taken += some;
        if let Err(raised) = log_warnings(py).and_then(|()| py.check_signals()) {
            or_raise(py, detached(py, |may_wait| tailer.return_to(may_wait, &start)))?;
            return Err(raised);
        }
        if some < asked {
            break;
        }
    }
    Ok(taken)
}

/// The methods that these tailers have in common, and those of their iterators over payloads.
macro_rules! methods {
    ($class:ident: $index:ty, $excerpt:ty, $payloads:ident) => {
        #[pymethods]
        impl $payloads {
            const fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
                slf
            }

            #[inline]
            fn __next__<'py>(
                &self,
                py: Python<'py>,
            ) -> PyResult<Option<Bound<'py, pyo3::types::PyBytes>>> {
                $crate::handles::raw_tailer::payload(py, &*self.0)
            }
        }

        #[pymethods]
        impl $class {
            const fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
                slf
            }

            #[inline]
            fn __next__(&self, py: Python<'_>) -> PyResult<Option<$excerpt>> {
                self.read(py)
            }

            #[doc = stub!($class.payloads)]
            fn payloads(&self) -> $payloads {
                $payloads(std::sync::Arc::clone(&self.0))
            }

            #[doc = stub!($class.read_bytes)]
            fn read_bytes<'py>(
                &self,
                py: Python<'py>,
            ) -> PyResult<Option<Bound<'py, pyo3::types::PyBytes>>> {
                $crate::handles::raw_tailer::payload(py, &*self.0)
            }

            #[doc = stub!($class.read_many)]
            #[pyo3(signature = (count, /))]
            fn read_many<'py>(
                &self,
                py: Python<'py>,
                count: &Bound<'py, PyAny>,
            ) -> PyResult<Bound<'py, pyo3::types::PyList>> {
                $crate::handles::raw_tailer::payloads(py, &*self.0, count)
            }

            #[pyo3(name = "_read_columns")]
            #[pyo3(signature = (count, /, *, max_bytes = None, end = <$index>::MAX))]
            fn read_columns(
                &self,
                py: Python<'_>,
                count: &Bound<'_, PyAny>,
                max_bytes: Option<&Bound<'_, PyAny>>,
                end: $index,
            ) -> PyResult<$crate::handles::column::Columns> {
                $crate::handles::raw_tailer::columns(py, &*self.0, count, max_bytes, end)
            }

            #[pyo3(name = "_prepare")]
            fn prepare(&self, py: Python<'_>) -> PyResult<Option<bool>> {
                $crate::error::or_raise(
                    py,
                    $crate::detached::detached(py, |may_wait| self.0.has_next(may_wait)),
                )
                .map(Some)
            }

            #[doc = stub!($class.spin)]
            #[pyo3(signature = (timeout_s = None))]
            fn spin(&self, py: Python<'_>, timeout_s: Option<&Bound<'_, PyAny>>) -> PyResult<bool> {
                let deadline = $crate::handles::spin::deadline(timeout_s)?;
                $crate::handles::spin::until_found(py, deadline, |may_wait| {
                    self.0.has_next(may_wait)
                })
            }
        }
    };
}

pub(crate) use methods;
