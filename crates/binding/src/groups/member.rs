use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use quire_kernel::Result;
use quire_kernel::groups::format::word::Cause;
use quire_kernel::groups::format::word::Newest;
use quire_kernel::groups::member::{Member as Kernel, Working};
use quire_kernel::groups::protocol::claims::{self, Frontier};
use quire_kernel::groups::protocol::tails::{self, Tail};
use quire_kernel::os::detached::Detached;

use super::claim::Claim;
use crate::buffer::Borrowed;
use crate::detached::{attached, detached};
use crate::error::or_raise;
use crate::handles::waits::{EventLoopWaits, Wait, begin};

/// Messages of claims, as bits.
type Messages<'py> = Vec<(Bound<'py, Claim>, u32)>;

fn claims(found: Vec<claims::Claim>, is_new: bool) -> Vec<Claim> {
    found.into_iter().map(|claim| Claim::new(claim, is_new)).collect()
}

const fn frontier((newest, next): (u64, u64)) -> Frontier {
    Frontier { newest: Newest(newest), next }
}

#[doc = stub!("tail_hash")]
#[pyfunction]
#[pyo3(signature = (message, /))]
pub fn tail_hash(message: &Bound<'_, PyAny>) -> PyResult<u64> {
    Ok(tails::hash_of(Borrowed::new(message)?.bytes()))
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
pub struct GroupMember(pub Arc<Kernel>);

impl GroupMember {
    /// Calls `f` on the member; while another thread uses it, waits detached.
    fn with<'a, T>(
        &'a self,
        py: Python<'_>,
        call: impl FnOnce(&mut Working<'a>) -> Result<T>,
    ) -> PyResult<T> {
        let wait_until_free = |may_wait: &Detached| self.0.wait_until_free(may_wait);
        let working = attached(py, wait_until_free, || self.0.try_lock());
        or_raise(py, working.and_then(|mut working| call(&mut working)))
    }
}

#[pymethods]
impl GroupMember {
    #[doc = stub!("GroupMember.closed")]
    #[getter]
    fn closed(&self) -> bool {
        self.0.is_closed()
    }

    #[doc = stub!("GroupMember.frontier")]
    fn frontier(&self, py: Python<'_>) -> PyResult<(u64, u64)> {
        self.with(py, Working::frontier).map(|found| (found.newest.0, found.next))
    }

    #[doc = stub!("GroupMember.hold")]
    #[pyo3(signature = (at, indexes, /))]
    fn hold(
        &self,
        py: Python<'_>,
        at: (u64, u64),
        indexes: &Bound<'_, PyAny>,
    ) -> PyResult<Vec<Claim>> {
        let indexes = words(indexes)?;
        Ok(claims(self.with(py, |member| member.hold(frontier(at), &indexes))?, true))
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
        self.with(py, |member| member.offer(frontier(at), &indexes, &keys))
    }

    #[doc = stub!("GroupMember.take")]
    #[pyo3(signature = (count, /))]
    fn take(&self, py: Python<'_>, count: u64) -> PyResult<Vec<Claim>> {
        let taken = detached(py, |may_wait| self.0.lock(may_wait)?.take(count));
        Ok(claims(or_raise(py, taken)?, false))
    }

    #[doc = stub!("GroupMember.unconfirmed")]
    fn unconfirmed(&self, py: Python<'_>) -> PyResult<Vec<Claim>> {
        Ok(claims(self.with(py, |member| Ok(member.unconfirmed()))?, false))
    }

    #[doc = stub!("GroupMember.confirm")]
    #[pyo3(signature = (of, /))]
    fn confirm(&self, py: Python<'_>, of: Vec<Bound<'_, Claim>>) -> PyResult<()> {
        let keys = of.iter().map(|claim| claim.borrow().kernel().key).collect();
        self.with(py, |member| {
            member.confirm(&keys);
            Ok(())
        })
    }

    #[doc = stub!("GroupMember.deliver")]
    #[pyo3(signature = (of, /))]
    fn deliver(&self, py: Python<'_>, of: Messages<'_>) -> PyResult<Vec<bool>> {
        let messages = |(claim, bits): &(Bound<'_, Claim>, u32)| {
            let claim = claim.borrow();
            (claim.kernel().key, claim.uncounted(*bits))
        };
        let messages: Vec<_> = of.iter().map(messages).collect();
        let held = self.with(py, |member| member.deliver(&messages))?;
        for ((claim, bits), _) in of.iter().zip(&held).filter(|(_, is_held)| **is_held) {
            claim.borrow_mut().count(*bits);
        }
        Ok(held)
    }

    #[doc = stub!("GroupMember.extend")]
    #[pyo3(signature = (of, timeout_ms, /))]
    fn extend(&self, py: Python<'_>, of: &Bound<'_, Claim>, timeout_ms: u64) -> PyResult<bool> {
        let key = of.borrow().kernel().key;
        self.with(py, |member| member.extend(&key, timeout_ms))
    }

    #[doc = stub!("GroupMember.move_to")]
    #[pyo3(signature = (at, to, /))]
    fn move_to(&self, py: Python<'_>, at: (u64, u64), to: u64) -> PyResult<Option<u64>> {
        self.with(py, |member| member.move_to(frontier(at), to))
    }

    #[doc = stub!("GroupMember.note_tail")]
    #[pyo3(signature = (index, message, later, /))]
    fn note_tail(
        &self,
        py: Python<'_>,
        index: u64,
        message: &Bound<'_, PyAny>,
        later: u64,
    ) -> PyResult<()> {
        let hash = tail_hash(message)?;
        self.with(py, |member| member.note_tail(Tail { index, hash }, later))
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
    #[pyo3(signature = (of, /))]
    fn acknowledge(&self, py: Python<'_>, of: Messages<'_>) -> PyResult<Vec<u32>> {
        let messages =
            |(claim, bits): &(Bound<'_, Claim>, u32)| (claim.borrow().kernel().key, *bits);
        let messages: Vec<_> = of.iter().map(messages).collect();
        let done = self.with(py, |member| member.acknowledge(&messages))?;
        for (claim, bits) in &of {
            claim.borrow_mut().settle(*bits);
        }
        Ok(done)
    }

    #[doc = stub!("GroupMember.give_back")]
    #[pyo3(signature = (of, /))]
    fn give_back(&self, py: Python<'_>, of: &Bound<'_, Claim>) -> PyResult<bool> {
        let (found, refused, available_ms) = {
            let claim = of.borrow();
            (*claim.kernel(), claim.refused(), claim.available_ms())
        };
        let cause = if refused == 0 { found.cause } else { Cause::Refused };
        of.borrow_mut().settle(u32::MAX);
        self.with(py, |member| member.give_back(&found.key, cause, available_ms))
    }

    #[doc = stub!("GroupMember._begin_wait")]
    #[pyo3(name = "_begin_wait", signature = (waits, number, /))]
    fn begin_wait(&self, py: Python<'_>, waits: &EventLoopWaits, number: u64) -> PyResult<Wait> {
        begin(py, Arc::<Kernel>::clone(&self.0), waits, number)
    }

    #[doc = stub!("GroupMember.close")]
    fn close(&self, py: Python<'_>) {
        detached(py, |may_wait| self.0.close(may_wait));
    }
}
