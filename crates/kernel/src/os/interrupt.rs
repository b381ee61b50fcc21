//! A way to end a long wait from outside: the binding asks the interpreter for pending signals.

use std::sync::OnceLock;

use crate::{Error, Result};

static WATCH: OnceLock<fn() -> bool> = OnceLock::new();

/// Sets what to ask; only the first call counts.
pub fn watch(ask: fn() -> bool) {
    let _ = WATCH.set(ask);
}

/// An error when the wait is to end.
pub fn check() -> Result<()> {
    match WATCH.get() {
        Some(ask) if ask() => Err(Error::Interrupted),
        _ => Ok(()),
    }
}
