use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use quire_kernel::chronicle::dump::Dump as Kernel;

use crate::buffer;
use crate::detached::detached;
use crate::error::{or_raise, to_py};

/// Text is passed to Python in pieces of at least this length.
const PIECE: usize = 1 << 16;

#[doc = stub!("Dump")]
#[pyclass(module = "quire._native", frozen)]
pub struct Dump(Mutex<Kernel<'static>>);

#[pymethods]
impl Dump {
    #[new]
    #[pyo3(signature = (path, start = 0, end = None))]
    fn new(py: Python<'_>, path: PathBuf, start: u64, end: Option<u64>) -> PyResult<Self> {
        let opened = detached(py, |may_wait| {
            let mut dump = Kernel::open(&path, may_wait)?;
            if start > 0 || end.is_some() {
                dump.limit(start..end.unwrap_or(u64::MAX))?;
            }
            Ok(dump)
        });
        or_raise(py, opened).map(|dump| Self(Mutex::new(dump)))
    }

    const fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let mut piece = String::with_capacity(PIECE + PIECE / 8);
        let put = py.detach(|| {
            let mut dump = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            dump.put_more(&mut piece, PIECE)
        });
        or_raise(py, put)?;
        (!piece.is_empty()).then(|| buffer::bytes(py, piece.as_bytes()).map_err(to_py)).transpose()
    }
}
