//! Message history: as an object, and as thread-local state that the thread's writers pass on.

use quire_wire::out::Out;
use std::cell::RefCell;
use std::fmt::Write;
use std::hash::{DefaultHasher, Hash, Hasher};

use pyo3::prelude::*;
use pyo3::types::{PyTuple, PyType};
use quire_kernel::os::clock;
use quire_wire::history::{self, History};
use quire_wire::reader::Reader;

#[doc = stub!("MessageHistory")]
#[pyclass(module = "quire._native", frozen)]
pub struct MessageHistory(History);

type Parts<'py> = (Bound<'py, PyTuple>, Bound<'py, PyTuple>);

#[pymethods]
impl MessageHistory {
    #[new]
    #[pyo3(signature = (sources = Vec::new(), timings = Vec::new()))]
    pub const fn new(sources: Vec<(i32, i64)>, timings: Vec<i64>) -> Self {
        Self(History { sources, timings })
    }

    #[doc = stub!("MessageHistory.current")]
    #[staticmethod]
    fn current() -> Self {
        Self(CURRENT.with_borrow(History::clone))
    }

    #[doc = stub!("MessageHistory.sources")]
    #[getter]
    fn sources<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.0.sources)
    }

    #[doc = stub!("MessageHistory.timings")]
    #[getter]
    fn timings<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.0.timings)
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Self>().is_ok_and(|other| self.0 == other.get().0)
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        (&self.0.sources, &self.0.timings).hash(&mut hasher);
        hasher.finish()
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyType>, Parts<'py>)> {
        let (py, this) = (slf.py(), slf.get());
        Ok((slf.get_type(), (this.sources(py)?, this.timings(py)?)))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let mut out = String::from("MessageHistory(sources=(");
        for (id, index) in &self.0.sources {
            let _ = write!(out, "({id}, {index:#x}), ");
        }
        let trimmed = out.trim_end_matches(' ').len();
        let end = if self.0.sources.len() > 1 { trimmed - 1 } else { trimmed };
        out.truncate(end);
        Ok(format!("{out}), timings={})", self.timings(py)?.repr()?))
    }
}

impl From<History> for MessageHistory {
    fn from(history: History) -> Self {
        Self(history)
    }
}

thread_local! {
    /// The history of the message being handled, including that message and the time when it was
    /// read. Empty if there is none.
    static CURRENT: RefCell<History> =
        const { RefCell::new(History { sources: Vec::new(), timings: Vec::new() }) };
}

/// The message being handled by this thread. When it ends, the enclosing one is restored.
pub struct Handling {
    around: Option<History>,
    source: (i32, i64),
    read_at: i64,
}

impl Handling {
    /// Begins with a message whose own history is not read yet: at first only its source id and
    /// index are known.
    #[inline]
    pub fn begin(source: (i32, i64)) -> Self {
        let read_at = clock::monotonic_time_ns();
        CURRENT.with_borrow_mut(|history| {
            let is_nested = !history.sources.is_empty();
            let handling =
                Self { around: is_nested.then(|| std::mem::take(history)), source, read_at };
            handling.add_this(history);
            handling
        })
    }

    /// Adds the message's own history.
    pub fn read(&self, cursor: &mut Reader<'_>) -> quire_wire::Result<()> {
        CURRENT.with_borrow_mut(|history| {
            history.read_into(cursor)?;
            self.add_this(history);
            Ok(())
        })
    }

    /// Like [`Handling::read`], if the history was skipped along with the message's topic.
    pub fn read_before(&self, before: &[u8]) -> quire_wire::Result<()> {
        let mut cursor = Reader::new(before);
        match cursor.peek() {
            Some(_) if cursor.name()?.is_some_and(history::is_history) => self.read(&mut cursor),
            _ => Ok(()),
        }
    }

    fn add_this(&self, history: &mut History) {
        history.sources.push(self.source);
        history.timings.push(self.read_at);
    }
}

/// The history of a message whose handler is suspended while the thread runs other tasks.
pub struct Paused {
    history: History,
    source: (i32, i64),
    read_at: i64,
}

impl Handling {
    /// Restores the enclosing message until [`Paused::resume`].
    pub fn pause(self) -> Paused {
        let history = CURRENT.with_borrow_mut(std::mem::take);
        Paused { history, source: self.source, read_at: self.read_at }
    }
}

impl Paused {
    /// Continues with the message, in any thread.
    pub fn resume(self) -> Handling {
        let Self { history, source, read_at } = self;
        let around = CURRENT.with_borrow_mut(|current| std::mem::replace(current, history));
        Handling { around: (!around.sources.is_empty()).then_some(around), source, read_at }
    }
}

impl Drop for Handling {
    #[inline]
    fn drop(&mut self) {
        CURRENT.with_borrow_mut(|history| {
            if let Some(around) = self.around.take() {
                *history = around;
            } else {
                history.sources.clear(); // keeps its memory for the next
                history.timings.clear();
            }
        });
    }
}

/// Appends the history of a message written by this thread now.
pub fn put(out: &mut Out, as_fields: bool) -> quire_kernel::Result<()> {
    let now = clock::monotonic_time_ns();
    CURRENT.with_borrow(|history| Ok(history.put(out, now, as_fields)?))
}
