//! Requests from a server's clients, as Python objects.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyListMethods, PyTuple};
use quire_wire::requests::{self, Entries, Limits, Requests, Words};

use crate::buffer;
use crate::error::to_py;
use crate::values::failure::Failure;

#[doc = stub!("RequestReader")]
#[pyclass(module = "quire._native", freelist = 16)]
#[derive(Default)]
pub struct RequestReader {
    requests: Requests,
}

#[pymethods]
impl RequestReader {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    #[doc = stub!("RequestReader.pending")]
    #[getter]
    const fn pending(&self) -> usize {
        self.requests.pending()
    }

    #[doc = stub!("RequestReader.feed")]
    #[pyo3(signature = (data, size, words, /))]
    fn feed<'py>(
        &mut self,
        py: Python<'py>,
        data: &[u8],
        size: usize,
        words: usize,
    ) -> PyResult<(Bound<'py, PyList>, Option<String>)> {
        let mut found = Found { list: buffer::empty_list(py)?, entries: Entries::default() };
        let mut failed = None;
        let taken = self.requests.feed(data, Limits { size, words }, |words| {
            if failed.is_none() {
                failed = found.add(words).err();
            }
        });
        found.end_entries()?;
        match failed {
            Some(error) => Err(error),
            None => Ok((found.list, taken.err())),
        }
    }
}

/// The requests in a piece: consecutive appends to one queue are grouped, others are separate.
struct Found<'py> {
    list: Bound<'py, PyList>,
    entries: Entries,
}

impl Found<'_> {
    fn add(&mut self, words: &Words<'_>) -> PyResult<()> {
        if self.entries.take(words) {
            return Ok(());
        }
        self.end_entries()?;
        if self.entries.take(words) {
            return Ok(());
        }
        let py = self.list.py();
        let request = buffer::empty_list(py)?;
        for word in words {
            request.append(buffer::bytes(py, word).map_err(to_py)?)?;
        }
        self.list.append(request)
    }

    fn end_entries(&mut self) -> PyResult<()> {
        let Entries { key, offsets, data, longest } = std::mem::take(&mut self.entries);
        if offsets.is_empty() {
            return Ok(());
        }
        let (py, count) = (self.list.py(), offsets.len() - 1);
        let offsets: Vec<u8> = offsets.iter().flat_map(|it| it.to_le_bytes()).collect();
        let data = data.written().map_err(Failure::from)?;
        let [key, offsets, data] =
            [key.as_slice(), &offsets, data].map(|it| buffer::bytes(py, it).map_err(to_py));
        self.list.append(PyTuple::new(
            py,
            [
                key?.into_any(),
                count.into_pyobject(py)?.into_any(),
                longest.into_pyobject(py)?.into_any(),
                offsets?.into_any(),
                data?.into_any(),
            ],
        )?)
    }
}

#[doc = stub!("entry_ids")]
#[pyfunction]
#[pyo3(signature = (first, count, /))]
pub fn entry_ids(py: Python<'_>, first: i64, count: usize) -> PyResult<Bound<'_, PyBytes>> {
    let found = requests::ids(first, count);
    buffer::bytes(py, found.written().map_err(Failure::from)?).map_err(to_py)
}
