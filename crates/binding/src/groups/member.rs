use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use quire_kernel::groups::format::word::Newest;
use quire_kernel::groups::member::Member as Kernel;
use quire_kernel::groups::protocol::claims::{Claim, ClaimKey, Frontier};

use crate::buffer::Borrowed;
use crate::error::or_raise;

/// Slot, generation, and the index of the first message.
type Key = (u32, u16, u64);
/// A claim's key, its deliveries, and its pending messages as bits.
type Row = (Key, u8, u32);

const fn row(claim: Claim) -> Row {
    let Claim { key: ClaimKey { slot, generation, first }, pending, deliveries } = claim;
    ((slot, generation, first), deliveries, pending)
}

const fn key((slot, generation, first): Key) -> ClaimKey {
    ClaimKey { slot, generation, first }
}

const fn frontier((newest, next): (u64, u64)) -> Frontier {
    Frontier { newest: Newest(newest), next }
}

fn words(buffer: &Bound<'_, PyAny>) -> PyResult<Vec<u64>> {
    let borrowed = Borrowed::new(buffer)?;
    let bytes = borrowed.bytes();
    if !bytes.len().is_multiple_of(8) {
        return Err(PyValueError::new_err("a buffer of 64-bit numbers is needed"));
    }
    Ok(bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)).collect())
}

#[doc = stub!("GroupMember")]
#[pyclass(module = "quire._native", frozen)]
pub struct GroupMember(pub Kernel);

#[pymethods]
impl GroupMember {
    #[doc = stub!("GroupMember.closed")]
    #[getter]
    fn closed(&self) -> bool {
        self.0.is_closed()
    }

    #[doc = stub!("GroupMember.frontier")]
    fn frontier(&self, py: Python<'_>) -> PyResult<(u64, u64)> {
        or_raise(py, self.0.frontier()).map(|found| (found.newest.0, found.next))
    }

    #[doc = stub!("GroupMember.hold")]
    #[pyo3(signature = (at, indexes, /))]
    fn hold(
        &self,
        py: Python<'_>,
        at: (u64, u64),
        indexes: &Bound<'_, PyAny>,
    ) -> PyResult<Vec<Row>> {
        let indexes = words(indexes)?;
        let held = or_raise(py, self.0.hold(frontier(at), &indexes))?;
        Ok(held.into_iter().map(row).collect())
    }

    #[doc = stub!("GroupMember.offer")]
    #[pyo3(signature = (at, indexes, keys, /))]
    fn offer(
        &self,
        py: Python<'_>,
        at: (u64, u64),
        indexes: &Bound<'_, PyAny>,
        keys: Vec<u64>,
    ) -> PyResult<usize> {
        let indexes = words(indexes)?;
        or_raise(py, self.0.offer(frontier(at), &indexes, &keys))
    }

    #[doc = stub!("GroupMember.take")]
    #[pyo3(signature = (count, /))]
    fn take(&self, py: Python<'_>, count: u64) -> PyResult<Vec<Row>> {
        let held = or_raise(py, py.detach(|| self.0.take(count)))?;
        Ok(held.into_iter().map(row).collect())
    }

    #[doc = stub!("GroupMember.acknowledge")]
    #[pyo3(signature = (of, messages, /))]
    fn acknowledge(&self, py: Python<'_>, of: Key, messages: u32) -> PyResult<u32> {
        or_raise(py, self.0.acknowledge(&key(of), messages))
    }

    #[doc = stub!("GroupMember.give_back")]
    #[pyo3(signature = (of, /))]
    fn give_back(&self, py: Python<'_>, of: Key) -> PyResult<bool> {
        or_raise(py, self.0.give_back(&key(of)))
    }

    #[doc = stub!("GroupMember.close")]
    fn close(&self, py: Python<'_>) {
        py.detach(|| self.0.close());
    }
}
