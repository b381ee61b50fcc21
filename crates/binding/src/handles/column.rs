//! Arrow columns passed in and out: buffers are checked before use.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyList;
use quire_kernel::Error;

use crate::buffer::{self, Borrowed, Buffer};
use crate::error::to_py;
use crate::spare::Spare;

/// The limit of 32-bit Arrow offsets.
const BATCH_BYTES_MAX: usize = i32::MAX as usize;

/// The buffers of an Arrow binary or string column.
pub struct Column<'a> {
    /// The offsets of the elements.
    pub offsets: &'a [u8],
    /// The bytes of the elements.
    pub data: &'a [u8],
    /// The position of the first element.
    pub start: usize,
    /// Whether the offsets have 64 bits.
    pub wide: bool,
    /// Whether the elements are strings, which may be empty.
    pub text: bool,
}

impl<'a> Column<'a> {
    /// Checks every element before the first is written.
    pub fn check(&self, count: usize) -> quire_kernel::Result<()> {
        for number in 0..count {
            if self.element(number)?.is_empty() && !self.text {
                return Err(Error::Invalid(format!(
                    "a message holds at least one byte: length=0 row={number}"
                )));
            }
        }
        Ok(())
    }

    /// The bytes of one element.
    pub fn element(&self, number: usize) -> quire_kernel::Result<&'a [u8]> {
        let bounds = (self.offset(number), self.offset(number + 1));
        let (Some(from), Some(to)) = bounds else { return Err(bad_column(number)) };
        self.data.get(from..to).ok_or_else(|| bad_column(number))
    }

    fn offset(&self, number: usize) -> Option<usize> {
        let place = self.start.checked_add(number)?;
        if self.wide {
            let bytes = self.offsets.get(place.checked_mul(8)?..)?.first_chunk()?;
            usize::try_from(i64::from_le_bytes(*bytes)).ok()
        } else {
            let bytes = self.offsets.get(place.checked_mul(4)?..)?.first_chunk()?;
            usize::try_from(i32::from_le_bytes(*bytes)).ok()
        }
    }
}

#[doc = stub!("split_payloads")]
#[pyfunction]
#[pyo3(signature = (offsets, data, /))]
pub fn split_payloads<'py>(
    offsets: &Bound<'py, PyAny>,
    data: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyList>> {
    let (py, offsets, data) = (offsets.py(), Borrowed::new(offsets)?, Borrowed::new(data)?);
    let column =
        Column { offsets: offsets.bytes(), data: data.bytes(), start: 0, wide: false, text: true };
    let count = (column.offsets.len() / size_of::<i32>()).saturating_sub(1);
    let mut found = Vec::new();
    buffer::reserve(&mut found, count).map_err(to_py)?;
    for number in 0..count {
        let element = column.element(number).and_then(|bytes| buffer::bytes(py, bytes));
        found.push(element.map_err(to_py)?);
    }
    buffer::list(py, found).map_err(to_py)
}

/// The index of a message, in the type of its format.
pub trait Index: Copy + PartialOrd + Send + Sync {
    /// As an element of a column of indexes.
    fn bytes(self) -> [u8; 8];
}

impl Index for i64 {
    fn bytes(self) -> [u8; 8] {
        self.to_le_bytes()
    }
}

impl Index for u64 {
    fn bytes(self) -> [u8; 8] {
        self.to_le_bytes()
    }
}

/// Messages as columns that are returned: indexes, and payloads with their offsets.
pub struct PayloadColumns {
    /// The source of their memory, if it is reused.
    spare: Option<Arc<Spare>>,
    indexes: Vec<u8>,
    offsets: Vec<u8>,
    data: Vec<u8>,
    max_bytes: usize,
    /// Whether there was memory for the last message added.
    added: quire_kernel::Result<()>,
}

/// A count, and columns of indexes, offsets and bytes.
pub type Columns = (usize, Buffer, Buffer, Buffer);

impl PayloadColumns {
    /// No messages yet, with room for this many bytes.
    pub fn new(max_bytes: Option<usize>, spare: Option<Arc<Spare>>) -> Self {
        let [indexes, mut offsets, data] = spare.as_ref().map(|it| it.take()).unwrap_or_default();
        offsets.extend_from_slice(&0_i32.to_le_bytes());
        let max_bytes = max_bytes.unwrap_or(BATCH_BYTES_MAX).min(BATCH_BYTES_MAX);
        Self { spare, indexes, offsets, data, max_bytes, added: Ok(()) }
    }

    /// Adds a message; false if it does not fit and must go to the next batch.
    #[inline]
    pub fn add(&mut self, index: impl Index, bytes: &[u8]) -> bool {
        if !self.has_room(bytes.len()) && !self.make_room(bytes.len()) {
            return false;
        }
        self.indexes.extend_from_slice(&index.bytes());
        self.data.extend_from_slice(bytes);
        #[allow(clippy::cast_possible_truncation)] // at most `BATCH_BYTES_MAX`
        self.offsets.extend_from_slice(&(self.data.len() as u32).to_le_bytes());
        true
    }

    /// Whether a message of this many bytes fits into the memory there is.
    #[inline]
    fn has_room(&self, more: usize) -> bool {
        let spare = |column: &Vec<u8>| column.capacity() - column.len();
        more <= spare(&self.data)
            && self.data.len() + more <= self.max_bytes
            && size_of::<i64>() <= spare(&self.indexes)
            && size_of::<i32>() <= spare(&self.offsets)
    }

    /// Makes room for a message of this many bytes; false if it must go to the next batch.
    #[cold]
    fn make_room(&mut self, more: usize) -> bool {
        let end = self.data.len().saturating_add(more);
        let is_over = end > self.max_bytes && !self.indexes.is_empty();
        if is_over || end > BATCH_BYTES_MAX {
            return false;
        }
        self.added = self.reserve(more);
        self.added.is_ok()
    }

    fn reserve(&mut self, more: usize) -> quire_kernel::Result<()> {
        buffer::reserve(&mut self.indexes, size_of::<i64>())?;
        buffer::reserve(&mut self.offsets, size_of::<i32>())?;
        buffer::reserve(&mut self.data, more)
    }

    /// The columns of `count` messages. If memory ran out after some of them, those are returned,
    /// and the next call meets the error again.
    pub fn finish(self, count: usize) -> quire_kernel::Result<Columns> {
        if count == 0 {
            self.added?;
        }
        let columns = [self.indexes, self.offsets, self.data];
        let [indexes, offsets, data] = match self.spare {
            Some(spare) if count > 0 => spare.lend(columns).map(Buffer::lent),
            spare => {
                spare.inspect(|spare| spare.clear());
                columns.map(Buffer::column)
            }
        };
        Ok((count, indexes, offsets, data))
    }
}

#[cold]
fn bad_column(number: usize) -> Error {
    Error::Invalid(format!("the column's offsets are outside its data: row={number}"))
}
