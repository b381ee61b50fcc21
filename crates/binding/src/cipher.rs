//! Encryption of messages, and the wrapping of its keys.

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use quire_kernel::Error;
use quire_kernel::chronicle::protocol::publish::Payload;
use quire_kernel::sealed::added_keys::AddedKeys;
use quire_kernel::sealed::cipher::{self, Added, KEY_LEN, Key, Place, QueueId, Sealing};

use crate::error::to_py;

type Bytes = Cow<'static, [u8]>;

#[doc = stub!("Cipher")]
#[pyclass(module = "quire._native", frozen)]
pub struct Cipher(pub Arc<cipher::Cipher>, Vec<u32>);

#[pymethods]
impl Cipher {
    #[new]
    #[pyo3(signature = (
        queue, records, *, added = None, current = None, expires_ms = None, allow_plain = false
    ))]
    #[allow(clippy::needless_pass_by_value)] // a Python signature
    fn new(
        queue: &[u8],
        records: Vec<(u32, Vec<u8>, Vec<Bound<'_, PyBytes>>)>,
        added: Option<(PathBuf, Vec<Bound<'_, PyBytes>>)>,
        current: Option<u32>,
        expires_ms: Option<i64>,
        allow_plain: bool,
    ) -> PyResult<Self> {
        let queue = queue_id(queue)?;
        let mut found = Vec::new();
        for (number, wrapped, keys) in &records {
            for given in keys {
                let key = cipher::unwrap(&*key_of(given)?, &queue, *number, wrapped);
                if let Some(key) = key.map_err(to_py)? {
                    found.push(key);
                    break;
                }
            }
        }
        let numbers = found.iter().map(|it| it.number).collect();
        let added = added.map(|(file, keys)| {
            let keys = keys.iter().map(key_of).collect::<PyResult<Vec<_>>>()?;
            let added = AddedKeys::new(file, &keys).map_err(to_py)?;
            Ok::<Added, PyErr>(Box::new(move |queue, number| added.find(queue, number)))
        });
        let made = cipher::Cipher::new(queue, found, current, allow_plain)
            .adding(added.transpose()?)
            .expiring(expires_ms);
        Ok(Self(Arc::new(made), numbers))
    }

    #[doc = stub!("Cipher.numbers")]
    #[getter]
    fn numbers(&self) -> Vec<u32> {
        self.1.clone()
    }

    #[doc = stub!("Cipher.seal_staged")]
    #[pyo3(signature = (number, plain, /))]
    fn seal_staged(&self, py: Python<'_>, number: i64, plain: &[u8]) -> PyResult<Bytes> {
        let (place, mut sealing) = (Place::of_staged(number), Sealing::default());
        let sealed =
            py.detach(|| self.0.seal(place, Payload::new(plain), &mut sealing).map(<[u8]>::to_vec));
        sealed.map(Into::into).map_err(to_py)
    }

    #[doc = stub!("Cipher.open_staged")]
    #[pyo3(signature = (number, stored, /))]
    fn open_staged(&self, py: Python<'_>, number: i64, stored: &[u8]) -> PyResult<Bytes> {
        let opened = py.detach(|| self.0.open(Place::of_staged(number), stored));
        let opened = opened.and_then(|it| it.ok_or(Error::Plain { index: number }));
        opened.map(Into::into).map_err(to_py)
    }
}

#[doc = stub!("wrap_new_key")]
#[pyfunction]
#[pyo3(signature = (key, queue, number, /))]
pub fn wrap_new_key(key: &Bound<'_, PyBytes>, queue: &[u8], number: u32) -> PyResult<Bytes> {
    let (by, queue) = (key_of(key)?, queue_id(queue)?);
    let made = cipher::new_data_key(number).and_then(|it| cipher::wrap(&by, &queue, &it));
    made.map(|wrapped| wrapped.to_vec().into()).map_err(to_py)
}

#[doc = stub!("rewrap_key")]
#[pyfunction]
#[pyo3(signature = (old, new, queue, number, wrapped, /))]
pub fn rewrap_key(
    old: &Bound<'_, PyBytes>,
    new: &Bound<'_, PyBytes>,
    queue: &[u8],
    number: u32,
    wrapped: &[u8],
) -> PyResult<Option<Bytes>> {
    let (old, new, queue) = (key_of(old)?, key_of(new)?, queue_id(queue)?);
    let key = cipher::unwrap(&old, &queue, number, wrapped).map_err(to_py)?;
    let Some(key) = key else { return Ok(None) };
    let made = cipher::wrap(&new, &queue, &key).map_err(to_py)?;
    Ok(Some(made.to_vec().into()))
}

#[doc = stub!("is_encrypted")]
#[pyfunction]
#[pyo3(signature = (stored, /))]
pub fn is_encrypted(stored: &[u8]) -> bool {
    cipher::is_sealed(stored)
}

fn key_of(given: &Bound<'_, PyBytes>) -> PyResult<Key> {
    let mut key = Key::new([0; KEY_LEN]);
    let bytes = given.as_bytes();
    if bytes.len() != KEY_LEN {
        let what = format!("a key has {KEY_LEN} bytes: length={}", bytes.len());
        return Err(PyValueError::new_err(what));
    }
    key.copy_from_slice(bytes);
    Ok(key)
}

fn queue_id(bytes: &[u8]) -> PyResult<QueueId> {
    bytes.try_into().map_err(|_| PyValueError::new_err("the id of a queue has 16 bytes"))
}
