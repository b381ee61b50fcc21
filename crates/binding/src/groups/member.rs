use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use quire_kernel::groups::format::word::Newest;
use quire_kernel::groups::member::Member as Kernel;
use quire_kernel::groups::protocol::claims::{Claim, ClaimKey, Frontier};
use quire_kernel::groups::protocol::tails::Tail;

use crate::buffer::Borrowed;
use crate::error::or_raise;

/// Slot, generation, and the index of the first message.
type Key = (u32, u32, u64);
/// A claim's key, its pending messages as bits, whether they are delivered one at a time, whether
/// their delivery is counted, how often each was delivered, and the hash of their key.
type Row = (Key, u32, bool, bool, Vec<u16>, u64);

fn row(claim: Claim) -> Row {
    let Claim { key, pending, singly, is_counted, counts, hash } = claim;
    (parts(key), pending, singly, is_counted, counts.map(u16::from).to_vec(), hash)
}

const fn parts(key: ClaimKey) -> Key {
    let ClaimKey { slot, generation, first } = key;
    (slot, generation, first)
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

    #[doc = stub!("GroupMember.unconfirmed")]
    fn unconfirmed(&self) -> Vec<Row> {
        self.0.unconfirmed().into_iter().map(row).collect()
    }

    #[doc = stub!("GroupMember.confirm")]
    #[pyo3(signature = (of, /))]
    fn confirm(&self, of: Vec<Key>) {
        let keys: Vec<ClaimKey> = of.into_iter().map(key).collect();
        self.0.confirm(&keys);
    }

    #[doc = stub!("GroupMember.deliver")]
    #[pyo3(signature = (of, messages, /))]
    fn deliver(&self, py: Python<'_>, of: Key, messages: u32) -> PyResult<bool> {
        or_raise(py, self.0.deliver(&key(of), messages))
    }

    #[doc = stub!("GroupMember.move_to")]
    #[pyo3(signature = (at, to, /))]
    fn move_to(&self, py: Python<'_>, at: (u64, u64), to: u64) -> PyResult<Option<u64>> {
        or_raise(py, self.0.move_to(frontier(at), to))
    }

    #[doc = stub!("GroupMember.note_tail")]
    #[pyo3(signature = (index, hash, later, /))]
    fn note_tail(&self, py: Python<'_>, index: u64, hash: u64, later: u64) -> PyResult<()> {
        or_raise(py, self.0.note_tail(Tail { index, hash }, later))
    }

    #[doc = stub!("GroupMember.tails")]
    fn tails(&self) -> Vec<(u64, u64)> {
        self.0.tails().into_iter().map(|Tail { index, hash }| (index, hash)).collect()
    }

    #[doc = stub!("GroupMember.known")]
    #[getter]
    fn known(&self) -> u64 {
        self.0.known()
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
