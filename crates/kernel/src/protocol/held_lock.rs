//! The write lock while it is held, and the append lock that is looked at before it is taken
//! (`docs/protocol.md`, "Append", steps 1 and 10).

use super::table_store::TableStore;
use crate::format::table;
use crate::memory::process;
use crate::{Error, Result, notice};

/// An error while the append lock is held, as by a replication sink. Metadata may be written by its
/// holder.
#[inline]
pub fn check_append_lock(table: &TableStore, metadata: bool) -> Result<()> {
    let word = table.cells().load_acquire(table.words().append_lock);
    if word == table::UNLOCKED {
        return Ok(());
    }
    let holder = table::holder(word);
    if metadata && holder == process::pid() { Ok(()) } else { Err(Error::AppendLocked(holder)) }
}

/// The write lock, taken: let go when dropped (step 10), also on the way out of an error.
pub struct Held<'a> {
    /// The table whose lock it is.
    pub table: &'a TableStore,
}

impl<'a> Held<'a> {
    /// The lock of `table`, just taken.
    #[inline]
    #[must_use]
    pub fn new(table: &'a TableStore) -> Self {
        table.set_locked_here(true);
        Self { table }
    }

    /// Stays taken: a document is open.
    pub fn keep(self) {
        std::mem::forget(self);
    }
}

impl Drop for Held<'_> {
    #[inline]
    fn drop(&mut self) {
        self.table.set_locked_here(false);
        if let Err(found) = self.table.write_lock().release(process::pid()) {
            notice::leave(format!("the write lock had been taken away: found={found:#x}"));
        }
    }
}
