//! A way to end a long wait from outside: the binding asks the interpreter for pending signals.

use std::sync::OnceLock;

use super::detached::Detached;
use crate::{Error, Result};

static WATCH: OnceLock<fn() -> bool> = OnceLock::new();

/// Sets the function to call; only the first call counts.
pub fn watch(ask: fn() -> bool) {
    let _ = WATCH.set(ask);
}

/// Runs the handlers of pending signals; an error when the wait is to end. No lock that a handler
/// could wait for is held: its guard would borrow the token.
pub fn check(_: &mut Detached) -> Result<()> {
    match WATCH.get() {
        Some(ask) if ask() => Err(Error::Interrupted),
        _ => Ok(()),
    }
}

/// How a wait handles signals.
#[derive(Debug)]
pub enum Signals<'a> {
    /// Their handlers run: the thread holds no lock that one of them could wait for.
    Handled(&'a mut Detached),
    /// They stay pending, since a lock is held.
    Deferred(&'a Detached),
}

impl<'a> Signals<'a> {
    /// Runs the handlers of pending signals unless deferred; an error when the wait is to end.
    pub fn check(&mut self) -> Result<()> {
        match self {
            Self::Handled(may_wait) => check(may_wait),
            Self::Deferred(_) => Ok(()),
        }
    }

    /// The same, for one of several waits.
    pub const fn again(&mut self) -> Signals<'_> {
        match self {
            Self::Handled(may_wait) => Signals::Handled(may_wait),
            Self::Deferred(may_wait) => Signals::Deferred(may_wait),
        }
    }

    /// The token for code that holds locks from now on: no handler runs.
    #[must_use]
    pub fn deferred(self) -> &'a Detached {
        match self {
            Self::Handled(may_wait) => may_wait,
            Self::Deferred(may_wait) => may_wait,
        }
    }
}
