//! The options of a queue, as Python names them.

use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use quire_kernel::Error;
use quire_kernel::chronicle::protocol::lock::recovery::ForceUnlock;
use quire_kernel::chronicle::queue::commit::Durability;
use quire_kernel::ring::handle::OnFull;
use quire_kernel::sealed::cipher::Encryption;
use quire_kernel::sealed::packing::Method;

use super::clock::QueueClock;
use crate::cipher::Cipher;
use crate::error::to_py;

/// What goes through the ring of asynchronous appends.
#[derive(Clone, Copy)]
pub struct Buffered {
    pub reads: bool,
    pub writes: bool,
}

/// An error for options that the ring of asynchronous appends does not support.
pub fn check_buffered(
    buffered: Buffered,
    durability: Durability,
    clock: &QueueClock,
    is_encrypted: bool,
) -> PyResult<()> {
    if (buffered.reads || buffered.writes) && is_encrypted {
        let what = "buffer_mode='async' in an encrypted queue: the ring would hold unencrypted \
                    messages";
        return Err(to_py(Error::Unsupported(what.to_owned())));
    }
    if buffered.writes && durability == Durability::Each {
        let what = "durability='each' with buffer_mode='async': an append returns before its \
                    message is in the queue, so it cannot be synced by then (sync() drains and \
                    syncs; durability='batch' syncs drained messages)";
        return Err(to_py(Error::Unsupported(what.to_owned())));
    }
    if (buffered.reads || buffered.writes) && clock.is_callable() {
        let what = "buffer_mode='async' with a clock that calls Python: the thread that drains the \
                    ring cannot call it (use a ManualClock)";
        return Err(to_py(Error::Unsupported(what.to_owned())));
    }
    Ok(())
}

pub fn encryption(cipher: Option<&Cipher>, without_key: bool) -> Encryption {
    match cipher {
        Some(cipher) => Encryption::By(Arc::clone(&cipher.0)),
        None if without_key => Encryption::WithoutKey,
        None => Encryption::No,
    }
}

pub fn when_full(name: &str) -> PyResult<OnFull> {
    match name {
        "block" => Ok(OnFull::Block),
        "raise" => Ok(OnFull::Raise),
        "grow" => Ok(OnFull::Grow),
        _ => {
            let known = "block, raise, grow";
            Err(PyValueError::new_err(format!("no such choice: on_full={name} known={known}")))
        }
    }
}

pub fn promise(name: &str) -> PyResult<Durability> {
    Durability::ALL.into_iter().find(|found| found.name() == name).ok_or_else(|| {
        let known = "process, batch, each";
        PyValueError::new_err(format!("no such durability: durability={name} known={known}"))
    })
}

pub fn mode(name: &str) -> PyResult<ForceUnlock> {
    [ForceUnlock::Dead, ForceUnlock::Never, ForceUnlock::Always]
        .into_iter()
        .find(|mode| mode.name() == name)
        .ok_or_else(|| {
            let known = "dead, never, always";
            PyValueError::new_err(format!("no such mode: force_unlock={name} known={known}"))
        })
}

/// How messages are compressed.
pub fn compression(name: &str) -> PyResult<Method> {
    Method::named(name).ok_or_else(|| {
        let known = "gzip, lzw, snappy, lz4, zstd";
        PyValueError::new_err(format!("no such compression: compression={name} known={known}"))
    })
}
