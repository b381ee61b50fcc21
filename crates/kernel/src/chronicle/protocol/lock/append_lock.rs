//! The append lock of a replica, which its sink keeps (`docs/protocol.md`, "Append lock").
//!
//! ```text
//! UNLOCKED or a dead sink's pid --CAS--> pid of the sink --CAS--> UNLOCKED, when it is promoted
//! ```
//! The word stays set when the sink ends or dies: no process appends to a replica until the next
//! sink takes over the lock or the replica is promoted. A crash between any two steps leaves the
//! word as it was.

use std::sync::Arc;

use super::recovery;
use crate::chronicle::format::table::{self, UNLOCKED};
use crate::chronicle::protocol::table::store::TableStore;
use crate::os::process;
use crate::{Error, Result};

/// The append lock, kept by this handle.
pub struct AppendLock {
    table: Arc<TableStore>,
    generation: u32,
}

impl AppendLock {
    /// Takes the lock if it is free, or from a sink that is dead or was closed.
    ///
    /// # Errors
    /// A live sink keeps it, in this process or another.
    pub fn take(table: Arc<TableStore>) -> Result<Self> {
        let lock = table.append_lock_of_sink();
        let in_process = lock.try_in_process().ok_or(Error::AppendLocked(process::pid()))?;
        loop {
            let found = lock.word.read();
            let holder = table::holder(found);
            // As the in-process lock was free, the own pid is that of a closed sink of this
            // process, or of a dead one in another container.
            let is_free = found == UNLOCKED || holder == 0 || holder == process::pid();
            if !is_free && !recovery::is_dead(&table, holder) {
                return Err(Error::AppendLocked(holder));
            }
            if lock.word.take_over(found, process::pid()) {
                in_process.keep();
                return Ok(Self { table, generation: process::generation() });
            }
        }
    }

    /// Reopens the queue for appends of all processes, when it is promoted.
    ///
    /// # Errors
    /// The lock was taken by force.
    pub fn release(self) -> Result<()> {
        let word = self.table.append_lock_of_sink().word;
        word.release(process::pid()).map_err(|found| Error::AppendLocked(table::holder(found)))
    }
}

impl Drop for AppendLock {
    fn drop(&mut self) {
        if self.generation == process::generation() {
            drop(self.table.append_lock_of_sink().in_process_taken_over());
        }
    }
}
