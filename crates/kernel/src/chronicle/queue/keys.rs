//! The keys of a queue's table: positions of named tailers, and locks.

use super::handle::Queue;
use crate::chronicle::format::table;
use crate::chronicle::protocol::lock::recovery;
use crate::chronicle::protocol::lock::word::LockWord;
use crate::chronicle::protocol::table::store::TableStore;
use crate::os::interrupt::Signals;
use crate::probe::fault::step;
use crate::{Error, Result};

impl Queue {
    /// The value of a key of the table store.
    pub fn table_value(&self, key: &str) -> Result<Option<i64>> {
        let Some(table) = self.table() else { return Ok(None) };
        Ok(table.find(key)?.map(|position| table.value(position, 0)))
    }

    /// Every key of the table store and its value, in order of creation.
    pub fn table_entries(&self) -> Result<Vec<(String, i64)>> {
        self.table().map_or(Ok(Vec::new()), TableStore::entries)
    }

    /// Device and inode number of the table store, by which to recognise another queue at the same
    /// path.
    #[must_use]
    pub fn table_identity(&self) -> Option<(u64, u64)> {
        self.table().map(|table| table.shared.identity())
    }

    /// The percentage of the table store that is used, and whether that is almost all of it.
    #[must_use]
    pub fn table_used(&self) -> Option<(u64, bool)> {
        self.table().map(|table| (table.used_percent(), table.is_almost_full()))
    }

    /// Every named tailer and the index it reads next, in order of creation.
    pub fn named_tailers(&self) -> Result<Vec<(String, i64)>> {
        Ok(table::named_tailers(&self.table_entries()?))
    }

    /// The holder of the lock at a key of the table store, and whether it is alive.
    pub fn lock_holder(&self, key: &str) -> Result<Option<(u32, bool)>> {
        let Some(table) = self.table() else { return Ok(None) };
        let Some(position) = table.find(key)? else { return Ok(None) };
        Ok(recovery::holder_of(table, table.cells().load_acquire(position)))
    }

    /// When `holder` took the write lock, in milliseconds since 1970; None without a record of it.
    #[must_use]
    pub fn lock_held_since_ms(&self, holder: u32) -> Option<i64> {
        self.table().and_then(|table| table.held_since_ms(holder))
    }

    /// Frees the lock at a key of the table, and returns its holder and whether that process is
    /// alive: a live one keeps the lock unless `force`.
    pub fn unlock(&self, key: &str, force: bool) -> Result<Option<(u32, bool)>> {
        let table = self.writable_table("unlock")?;
        let Some(position) = table.find(key)? else { return Ok(None) };
        let word = LockWord::new(table.cells(), position);
        let found = word.read();
        let Some((pid, is_alive)) = recovery::holder_of(table, found) else { return Ok(None) };
        if is_alive && !force {
            let what = format!("the holder of the lock is alive: lock={key} holder_pid={pid}");
            return Err(Error::WriterInUse { what, path: self.path().to_path_buf() });
        }
        let freed = word.force(found);
        if freed && !is_alive && key == table::WRITE_LOCK {
            table.forget_held(pid);
        }
        Ok(freed.then_some((pid, is_alive)))
    }

    /// The index of the last message that a replica has acknowledged; None if none has.
    pub fn last_acknowledged_index(&self) -> Result<Option<i64>> {
        Ok(self.table_value(table::LAST_ACKNOWLEDGED)?.filter(|index| *index >= 0))
    }

    /// Notes that a replica has acknowledged the messages up to an index.
    pub fn note_acknowledged(&self, index: i64, signals: Signals<'_>) -> Result<()> {
        let position = self.table_key(table::LAST_ACKNOWLEDGED, table::NO_INDEX, signals)?;
        let table = self.writable_table("an acknowledgement")?;
        table.cells().raise_acq_rel(position, index, step!("replica.acknowledged.cas"));
        Ok(())
    }

    /// Wakes sleeping readers: those that read only acknowledged messages may have more to read.
    pub fn wake_sleepers(&self) {
        if let Some(file) = self.sleepers.to_wake(&self.opened) {
            file.wake();
        }
    }

    /// Position of a named tailer's stored index in the table, created as 0.
    pub fn tailer_key(&self, name: &str, signals: Signals<'_>) -> Result<u64> {
        self.table_key(&format!("{}{name}", table::TAILER_PREFIX), 0, signals)
    }

    /// Position of a key's value in the table, created with `initial` if missing.
    pub fn table_key(&self, key: &str, initial: i64, signals: Signals<'_>) -> Result<u64> {
        self.writable_table("a table key")?.find_or_create(key, initial, signals)
    }
}
