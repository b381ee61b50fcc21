//! The names of tailers: where one stopped, kept in the table store.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use crate::chronicle::format::table::{REPLICATED_PREFIX, TAILER_PREFIX, UNLOCKED, is_replicated};
use crate::chronicle::protocol::lock::{gate, recovery};
use crate::chronicle::protocol::table::store::TableStore;
use crate::chronicle::queue::handle::{LOOK_MS, Queue};
use crate::os::clock;
use crate::probe::fault::step;
use crate::{Error, Result};

/// A named tailer's entry in the table store.
pub struct Name {
    /// The name.
    pub text: String,
    /// Position of the index to read next.
    value: u64,
    /// Nobody else may read with the name, as long as this holds it.
    is_held: AtomicBool,
    /// When it was last looked whether the table is still the one in the directory.
    looked_ms: AtomicI64,
    /// For `replicated:` names.
    replicated: Option<Replicated>,
}

/// What goes with the index of a tailer that others copy.
struct Replicated {
    /// Positions of the version and of the lock.
    version: u64,
    lock: u64,
    in_process: Arc<AtomicBool>,
}

impl Name {
    /// Whether storing may wait for others.
    pub const fn is_replicated(&self) -> bool {
        self.replicated.is_some()
    }

    /// Finds the name's entry, or makes it. Unless it is `shared`, nobody else in a Quire process
    /// gets it until it is let go of.
    pub fn open(queue: &Queue, name: &str, shared: bool) -> Result<Self> {
        let table = queue.writable_table("a named tailer")?;
        check_characters(table, name)?;
        check_case(table, name)?;
        if name.starts_with(REPLICATED_PREFIX) {
            // As in Java: on a sink the source's position is the one that counts.
            gate::check(table.append_lock(), false)?;
        }
        let value = queue.tailer_key(name)?;
        let replicated = if name.starts_with(REPLICATED_PREFIX) {
            Some(Replicated::open(queue, name)?)
        } else {
            None
        };
        let name = Self::new(name, value, replicated);
        if !shared {
            name.hold(queue)?;
            if queue.tailer_key(&name.text)? != name.value {
                // Deleted, between it was found and held.
                name.release(queue);
                return Self::open(queue, &name.text, shared);
            }
        }
        if name.replicated.is_some() {
            let counted = name.count_opening(queue);
            counted.inspect_err(|_| name.release(queue))?;
        }
        Ok(name)
    }

    fn new(name: &str, value: u64, replicated: Option<Replicated>) -> Self {
        Self {
            text: name.to_owned(),
            value,
            is_held: AtomicBool::new(false),
            looked_ms: AtomicI64::new(clock::coarse_time_ms()),
            replicated,
        }
    }

    /// The entry of a known name, held; None if there is no such name.
    fn hold_known(queue: &Queue, name: &str) -> Result<Option<Self>> {
        let table = queue.writable_table("a named tailer")?;
        let Some(value) = table.find(&key_of(name))? else { return Ok(None) };
        let name = Self::new(name, value, None);
        name.hold(queue)?;
        if table.find(&key_of(&name.text))? == Some(name.value) {
            return Ok(Some(name));
        }
        // Deleted, between it was found and held.
        name.release(queue);
        Self::hold_known(queue, &name.text)
    }

    fn hold(&self, queue: &Queue) -> Result<()> {
        let table = queue.writable_table("a named tailer")?;
        let taken = table.tailers_in_use.take(&*table.file()?, self.value);
        match taken.map_err(|e| Error::io("cannot lock", table.path(), e))? {
            None => self.is_held.store(true, Ordering::Release),
            Some(holder) => {
                return Err(Error::TailerInUse {
                    tailer: self.text.clone(),
                    pid: holder.pid,
                    since_s: holder.since_s,
                    since: time_text(holder.since_s),
                    path: queue.path().to_path_buf(),
                });
            }
        }
        Ok(())
    }

    /// Lets others read with the name.
    pub fn release(&self, queue: &Queue) {
        if self.is_held.swap(false, Ordering::AcqRel)
            && let Some(table) = queue.table()
            && let Ok(file) = table.file()
        {
            table.tailers_in_use.release(&file, self.value);
        }
    }

    /// The index to read next; 0 when nothing was stored yet.
    pub fn stored(&self, queue: &Queue) -> Result<i64> {
        Ok(queue.writable_table("a named tailer")?.value(self.value, 0))
    }

    /// Java counts the positioning of a tailer as a change: of a new one when it first reads.
    fn count_opening(&self, queue: &Queue) -> Result<()> {
        let stored = self.stored(queue)?;
        if stored == 0 { Ok(()) } else { self.store(queue, stored, 1) }
    }

    /// Stores the index to read next, which a read led to: the first one of a new tailer, as Java
    /// counts, is two changes.
    #[inline]
    pub fn store_read(&self, queue: &Queue, index: i64) -> Result<()> {
        let is_new = self.replicated.is_some() && self.stored(queue)? == 0;
        self.store(queue, index, if is_new { 2 } else { 1 })
    }

    /// Stores the index to read next, as one change.
    pub fn store_move(&self, queue: &Queue, index: i64) -> Result<()> {
        self.store(queue, index, 1)
    }

    fn store(&self, queue: &Queue, index: i64, changes: u64) -> Result<()> {
        let table = queue.writable_table("a named tailer")?;
        let cells = table.cells();
        let Some(replicated) = &self.replicated else {
            cells.store_release(self.value, index.cast_unsigned(), step!("tailer.index.store"));
            return self.look_at_table(table);
        };
        let lock = table.tailer_lock(replicated.lock, &replicated.in_process);
        let options = queue.options();
        let _guard = recovery::wait(table, lock, options.force_unlock, options.timeout)?;
        cells.store_release(self.value, index.cast_unsigned(), step!("tailer.replicated.store"));
        cells.add_acq_rel(replicated.version, changes, step!("tailer.version.add"));
        self.look_at_table(table)
    }

    /// An error where another table is in the place of this one, which is looked for once a second:
    /// others do not see what is stored here, and may read with the name.
    #[inline]
    fn look_at_table(&self, table: &TableStore) -> Result<()> {
        let now = clock::coarse_time_ms();
        if now.abs_diff(self.looked_ms.load(Ordering::Relaxed)) < LOOK_MS.unsigned_abs() {
            return Ok(());
        }
        table.shared.check_not_replaced()?;
        self.looked_ms.store(now, Ordering::Relaxed);
        Ok(())
    }

    /// An error where what was stored until now is in a table that was replaced, or was `removed`.
    pub fn confirm(&self, queue: &Queue, removed: bool) -> Result<()> {
        let shared = &queue.writable_table("a named tailer")?.shared;
        if removed { shared.check_present() } else { shared.check_not_replaced() }
    }
}

/// Deletes a name and its position; whether there was one. Fails while a tailer of Quire reads with it.
pub fn delete(queue: &Queue, name: &str) -> Result<bool> {
    let table = queue.writable_table("deleting a named tailer")?;
    let Some(held) = Name::hold_known(queue, name)? else { return Ok(false) };
    let key = key_of(name);
    // Without the name, what stands beside it would count as names.
    let beside = if is_replicated(name) { [".lock", ".version"].as_slice() } else { &[] };
    let deleted = beside
        .iter()
        .try_for_each(|end| table.remove(&format!("{key}{end}")).map(drop))
        .and_then(|()| table.remove(&key));
    held.release(queue);
    deleted
}

/// Moves the position of a name to a new one; whether there was one. Fails while a tailer of Quire
/// reads with it.
pub fn rename(queue: &Queue, old: &str, new: &str) -> Result<bool> {
    let table = queue.writable_table("renaming a tailer")?;
    if is_replicated(old) || is_replicated(new) {
        return Err(Error::Invalid(format!(
            "replicated tailers are not renamed: old={old:?} new={new:?}"
        )));
    }
    check_characters(table, new)?;
    let Some(held) = Name::hold_known(queue, old)? else { return Ok(false) };
    let renamed = table.rename(&key_of(old), &key_of(new));
    held.release(queue);
    if renamed? {
        return Ok(true);
    }
    match table.find(&key_of(new))? {
        Some(_) => Err(Error::Invalid(format!(
            "another tailer has this name: name={new:?} path={}",
            table.path().display()
        ))),
        None => Ok(false),
    }
}

fn key_of(name: &str) -> String {
    format!("{TAILER_PREFIX}{name}")
}

/// A new name can be shown and typed. Java takes any other too, so a position that is stored under
/// one can be gone on from.
fn check_characters(table: &TableStore, name: &str) -> Result<()> {
    let is_plain = |c: char| c <= '\u{ff}' && !c.is_control();
    if !name.is_empty() && name.chars().all(is_plain) {
        return Ok(());
    }
    let key = format!("{TAILER_PREFIX}{name}");
    if table.entries()?.iter().any(|(known, _)| *known == key) {
        return Ok(());
    }
    Err(Error::Invalid(format!(
        "a tailer's name is made of printable Latin-1 characters: name={name:?}"
    )))
}

/// Java takes names that differ in case alone for the same.
fn check_case(table: &TableStore, name: &str) -> Result<()> {
    let wanted = format!("{TAILER_PREFIX}{name}");
    let entries = table.entries()?;
    let same = entries.iter().map(|(key, _)| key).find(|key| key.eq_ignore_ascii_case(&wanted));
    match same.filter(|found| **found != wanted) {
        None => Ok(()),
        Some(found) => Err(Error::Invalid(format!(
            "another tailer's name differs in case alone: name={name:?} known={:?} path={} \
             (names of tailers are the same in any case)",
            found.get(TAILER_PREFIX.len()..).unwrap_or(found),
            table.path().display()
        ))),
    }
}

fn time_text(since_s: i64) -> String {
    let time = jiff::Timestamp::from_second(since_s).ok().filter(|_| since_s > 0);
    time.map_or_else(|| "unknown".to_owned(), |time| time.to_string())
}

impl Replicated {
    fn open(queue: &Queue, name: &str) -> Result<Self> {
        let table = queue.writable_table("a named tailer")?;
        table.announce()?;
        let version = queue.table_key(&format!("index.{name}.version"), -1)?;
        let lock = queue.table_key(&format!("index.{name}.lock"), UNLOCKED.cast_signed())?;
        Ok(Self { version, lock, in_process: table.tailer_in_process_lock(lock) })
    }
}
