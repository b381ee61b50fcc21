//! Hashes of the messages of a cycle, for seals, and dictionaries for their compression.

use std::borrow::Cow;
use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use quire_kernel::os::detached::SharedState;
use quire_kernel::sealed::dictionary;
use quire_kernel::sealed::leaves::{self, Asked, Hashed};
use quire_kernel::sealed::stream::{Compressing, Decompressing};
use quire_kernel::sealed::tree::{HASH_LEN, Hash, Tree};

use crate::cipher::Cipher;
use crate::detached::detached;
use crate::error::{or_raise, to_py};
use crate::handles::queue::Queue;

type Bytes = Cow<'static, [u8]>;
/// A message, the hash of the metadata before it, and the siblings on its path to the root.
type Proven = (Bytes, Option<Bytes>, Vec<Bytes>);
/// How many messages have checksums; the first that differs from the appended one, and whether a
/// power cut tore it; whether the last messages are missing; why the checksums cannot be trusted.
type AppendedRow = (u64, Option<(u64, bool)>, bool, Option<String>);
/// Messages, peaks, root, checksums, roots at marks, whether the cycle is ended, the hash of the
/// metadata at its end, damage, the proven message, and the result of comparing checksums.
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
    AppendedRow,
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
    let Hashed { tree, checksums, roots, is_ended, metadata, damage, proven, appended } = hashed;
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
        (appended.known, appended.changed, appended.is_cut, appended.problem),
    )
}

fn bytes(hash: Hash) -> Bytes {
    hash.to_vec().into()
}

#[doc = stub!("StreamCompressor")]
#[pyclass(module = "quire._native", frozen)]
pub struct StreamCompressor(SharedState<Compressing>);

#[pymethods]
impl StreamCompressor {
    #[new]
    fn new(py: Python<'_>) -> PyResult<Self> {
        or_raise(py, Compressing::new()).map(|it| Self(SharedState::new(it)))
    }

    #[doc = stub!("StreamCompressor.compress")]
    #[pyo3(signature = (part, /))]
    fn compress(&self, py: Python<'_>, part: &[u8]) -> PyResult<Bytes> {
        let made = detached(py, |may_wait| self.0.lock(may_wait).compress(part));
        or_raise(py, made).map(Into::into)
    }
}

#[doc = stub!("StreamDecompressor")]
#[pyclass(module = "quire._native", frozen)]
pub struct StreamDecompressor(SharedState<Decompressing>);

#[pymethods]
impl StreamDecompressor {
    #[new]
    fn new(py: Python<'_>) -> PyResult<Self> {
        or_raise(py, Decompressing::new()).map(|it| Self(SharedState::new(it)))
    }

    #[doc = stub!("StreamDecompressor.decompress")]
    #[pyo3(signature = (stored, length, /))]
    fn decompress(&self, py: Python<'_>, stored: &[u8], length: usize) -> PyResult<Bytes> {
        let made = detached(py, |may_wait| self.0.lock(may_wait).decompress(stored, length));
        or_raise(py, made).map(Into::into)
    }
}

#[doc = stub!("encrypted_dictionary")]
#[pyfunction]
#[pyo3(signature = (content, cipher, /))]
pub fn encrypted_dictionary(content: &[u8], cipher: PyRef<'_, Cipher>) -> PyResult<(u32, Bytes)> {
    let number = dictionary::number_of(content);
    let stored = dictionary::encrypted(&cipher.0, number, content).map_err(to_py)?;
    Ok((number, stored.into()))
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
