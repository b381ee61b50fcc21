//! The names of tailers: where one stopped, kept in the table store.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::format::table::{REPLICATED_PREFIX, UNLOCKED};
use crate::protocol::lock_recovery;
use crate::queue::Queue;
use crate::{Error, Result, fault};

/// A named tailer's entry in the table store.
pub struct Name {
    /// The name.
    pub text: String,
    /// Position of the index to read next.
    value: u64,
    /// For `replicated:` names.
    replicated: Option<Replicated>,
}

/// What goes with the index of a tailer that others copy.
struct Replicated {
    /// Positions of the version and of the lock.
    version: u64,
    lock: u64,
    turn: Arc<AtomicBool>,
}

impl Name {
    /// Whether storing may wait for others.
    pub const fn is_replicated(&self) -> bool {
        self.replicated.is_some()
    }

    /// Finds the name's entry, or makes it.
    pub fn open(queue: &Queue, name: &str) -> Result<Self> {
        if name.is_empty() || !name.chars().all(|c| ('\u{20}'..='\u{ff}').contains(&c)) {
            return Err(Error::Invalid(format!(
                "a tailer's name is made of printable Latin-1 characters: name={name:?}"
            )));
        }
        queue.writable_table("a named tailer")?;
        let value = queue.tailer_key(name)?;
        let replicated = if name.starts_with(REPLICATED_PREFIX) {
            Some(Replicated::open(queue, name)?)
        } else {
            None
        };
        let name = Self { text: name.to_owned(), value, replicated };
        if name.replicated.is_some() {
            // Java counts the positioning of a new tailer as a change.
            name.store(queue, name.stored(queue)?)?;
        }
        Ok(name)
    }

    /// The index to read next; 0 when nothing was stored yet.
    pub fn stored(&self, queue: &Queue) -> Result<i64> {
        Ok(queue.writable_table("a named tailer")?.value(self.value, 0))
    }

    /// Stores the index to read next.
    pub fn store(&self, queue: &Queue, index: i64) -> Result<()> {
        let table = queue.writable_table("a named tailer")?;
        let cells = table.cells();
        let Some(replicated) = &self.replicated else {
            cells.store_release(self.value, index.cast_unsigned());
            fault::point!("tailer.index.store");
            return Ok(());
        };
        let lock = table.tailer_lock(replicated.lock, &replicated.turn);
        let options = queue.options();
        lock_recovery::wait(table, lock, options.force_unlock, options.timeout)?;
        cells.store_release(self.value, index.cast_unsigned());
        fault::point!("tailer.replicated.store");
        cells.add_acq_rel(replicated.version, 1);
        fault::point!("tailer.version.add");
        // Taken from a dead holder at worst: the value is stored either way.
        let _ = lock.release();
        Ok(())
    }
}

impl Replicated {
    fn open(queue: &Queue, name: &str) -> Result<Self> {
        let table = queue.writable_table("a named tailer")?;
        table.announce()?;
        let version = queue.table_key(&format!("index.{name}.version"), -1)?;
        let lock = queue.table_key(&format!("index.{name}.lock"), UNLOCKED.cast_signed())?;
        Ok(Self { version, lock, turn: table.tailer_turn(lock) })
    }
}
