//! Hashes of the messages of a cycle, for seals, and dictionaries for their compression.

use std::borrow::Cow;
use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use quire_kernel::sealed::dictionary;
use quire_kernel::sealed::leaves::{self, Asked, Hashed};
use quire_kernel::sealed::tree::{HASH_LEN, Hash, Tree};

use crate::cipher::Cipher;
use crate::detached::detached;
use crate::error::or_raise;
use crate::handles::queue::Queue;

type Bytes = Cow<'static, [u8]>;
/// A message, the hash of the metadata before it, and the siblings of its way to the root.
type Proven = (Bytes, Option<Bytes>, Vec<Bytes>);
/// Messages, peaks, root, checksums, roots at marks, whether the cycle is ended, the hash of the
/// metadata at its end, damage, and what is proven.
type HashedRow = (
    u64,
    Vec<Bytes>,
    Bytes,
    Bytes,
    Vec<Bytes>,
    bool,
    Option<Bytes>,
    Option<String>,
    Option<Proven>,
);

#[doc = stub!("hash_cycle")]
#[pyfunction]
#[pyo3(signature = (queue, cycle, /, *, count, peaks, marks, until, proving = None))]
#[allow(clippy::too_many_arguments)] // a Python signature
pub fn hash_cycle(
    py: Python<'_>,
    queue: &Bound<'_, Queue>,
    cycle: i32,
    count: u64,
    peaks: Vec<Vec<u8>>,
    marks: Vec<u64>,
    until: u64,
    proving: Option<u64>,
) -> PyResult<Option<HashedRow>> {
    let peaks = peaks.iter().map(|peak| Hash::try_from(peak.as_slice()).ok());
    let tree = match proving {
        Some(number) => Some(Tree::proving(number)),
        None => peaks.collect::<Option<Vec<_>>>().and_then(|peaks| Tree::resumed(count, peaks)),
    };
    let tree = tree.ok_or_else(|| {
        let what =
            format!("not the peaks of a tree: count={count} expected={HASH_LEN}-byte hashes");
        PyValueError::new_err(what)
    })?;
    let queue = &queue.get().kernel;
    let asked = Asked { cycle, tree, marks, until, proving };
    let hashed = detached(py, |may_wait| leaves::hash(queue, asked, may_wait));
    Ok(or_raise(py, hashed)?.map(row))
}

fn row(hashed: Hashed) -> HashedRow {
    let Hashed { tree, checksums, roots, is_ended, metadata, damage, proven } = hashed;
    let proven = proven.zip(tree.path()).map(|((message, metadata), path)| {
        (message.into(), metadata.map(bytes), path.into_iter().map(bytes).collect())
    });
    (
        tree.count(),
        tree.peaks().iter().copied().map(bytes).collect(),
        bytes(tree.root()),
        checksums.into(),
        roots.into_iter().map(bytes).collect(),
        is_ended,
        metadata.map(bytes),
        damage,
        proven,
    )
}

fn bytes(hash: Hash) -> Bytes {
    hash.to_vec().into()
}

#[doc = stub!("train_dictionary")]
#[pyfunction]
#[pyo3(signature = (samples, /, *, longest, cipher = None))]
#[allow(clippy::needless_pass_by_value)] // a Python signature
pub fn train_dictionary(
    py: Python<'_>,
    samples: Vec<Vec<u8>>,
    longest: usize,
    cipher: Option<PyRef<'_, Cipher>>,
) -> PyResult<(u32, Bytes)> {
    let cipher = cipher.map(|it| Arc::clone(&it.0));
    let made = detached(py, |_| {
        let made = dictionary::train(&samples, longest)?;
        let number = dictionary::number_of(&made);
        let stored = match cipher {
            None => made,
            Some(cipher) => dictionary::encrypted(&cipher, number, &made)?,
        };
        Ok((number, stored))
    });
    let (number, stored) = or_raise(py, made)?;
    Ok((number, stored.into()))
}
