//! How an appender takes the write lock (`docs/protocol.md`, "Append", steps 1 and 2).

use std::time::Duration;

use super::Appender;
use crate::chronicle::protocol::lock::guard::{self, Held, LockOf};
use crate::chronicle::protocol::lock::patience::{self, Patience};
use crate::chronicle::protocol::lock::recovery::{self, ForceUnlock};
use crate::os::process;
use crate::{Error, Result};

impl Appender {
    /// Steps 1 and 2.
    pub(super) fn take_lock(&self, metadata: bool) -> Result<Held<'_>> {
        self.check_open()?;
        let table = self.table()?;
        guard::check_append_lock(table, metadata)?;
        let (patience, mode) = (patience::take(), self.queue.options().force_unlock);
        let waited_ms = if let Patience::HasWaited(ms) = patience { ms } else { 0 };
        if table.document().is_own() {
            let (lock, holder, mode) = (LockOf::Queue.name(), process::pid(), mode.name());
            return Err(match patience {
                Patience::Waits => Error::DocumentOpen,
                // Another task of this thread may close it.
                _ => Error::LockTimeout { lock, holder, waited_ms, mode },
            });
        }
        let (mode, timeout) = match patience {
            Patience::Waits => (mode, self.lock_timeout()),
            Patience::Tries if mode == ForceUnlock::Always => (ForceUnlock::Dead, Duration::ZERO),
            Patience::Tries | Patience::HasWaited(_) => (mode, Duration::ZERO),
        };
        let taken = recovery::wait(table, table.write_lock(), mode, timeout);
        taken.map_err(|error| match (error, patience) {
            (Error::LockTimeout { lock, holder, mode, .. }, Patience::HasWaited(_)) => {
                Error::LockTimeout { lock, holder, waited_ms, mode }
            }
            (error, _) => error,
        })?;
        Ok(Held { table })
    }

    /// How long an append waits for the write lock.
    #[must_use]
    pub fn lock_timeout(&self) -> Duration {
        // Java waits half as long again as its queue's timeout.
        self.queue.options().timeout.mul_f64(1.5)
    }
}
