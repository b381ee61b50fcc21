//! Named tailers: positions kept in the table store.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use crate::chronicle::format::table::{REPLICATED_PREFIX, TAILER_PREFIX, UNLOCKED, is_replicated};
use crate::chronicle::protocol::lock::{gate, recovery};
use crate::chronicle::protocol::table::store::TableStore;
use crate::chronicle::queue::handle::{LOOK_MS, Queue};
use crate::chronicle::read::scan::How;
use crate::os::clock;
use crate::os::detached::Detached;
use crate::os::interrupt::Signals;
use crate::probe::fault::step;
use crate::{Error, Result};

/// A named tailer's entry in the table store.
pub struct Name {
    /// The name.
    pub text: String,
    /// Position of the index to read next.
    value: u64,
    /// Whether the name is reserved for this tailer.
    is_held: AtomicBool,
    /// When the table was last checked to be the one in the directory.
    looked_ms: AtomicI64,
    /// For `replicated:` names.
    replicated: Option<Replicated>,
}

/// The version and lock of a replicated tailer.
struct Replicated {
    /// Positions of the version and of the lock.
    version: u64,
    lock: u64,
    in_process: Arc<AtomicBool>,
}

impl Name {
    /// Finds or creates the name's entry. Unless `shared`, no other tailer of a Quire process can
    /// open the name until it is released.
    pub fn open(queue: &Queue, name: &str, shared: bool, mut signals: Signals<'_>) -> Result<Self> {
        let table = queue.writable_table("a named tailer")?;
        check_characters(table, name)?;
        check_case(table, name)?;
        if name.starts_with(REPLICATED_PREFIX) {
            // As in Java: on a sink, the source's position counts.
            gate::check(table.append_lock(), false)?;
        }
        let value = queue.tailer_key(name, signals.again())?;
        let replicated = if name.starts_with(REPLICATED_PREFIX) {
            Some(Replicated::open(queue, name, &mut signals)?)
        } else {
            None
        };
        let name = Self::new(name, value, replicated);
        if !shared {
            name.hold(queue, signals.again().deferred())?;
            if queue.tailer_key(&name.text, signals.again())? != name.value {
                // Deleted between finding and reserving it.
                name.release(queue);
                return Self::open(queue, &name.text, shared, signals);
            }
        }
        if name.replicated.is_some() {
            let counted = name.count_opening(queue, signals.deferred());
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

    /// Reserves the entry of an existing name; None if it does not exist.
    fn hold_known(queue: &Queue, name: &str, may_wait: &Detached) -> Result<Option<Self>> {
        let table = queue.writable_table("a named tailer")?;
        let Some(value) = table.find(&key_of(name))? else { return Ok(None) };
        let name = Self::new(name, value, None);
        name.hold(queue, may_wait)?;
        if table.find(&key_of(&name.text))? == Some(name.value) {
            return Ok(Some(name));
        }
        // Deleted between finding and reserving it.
        name.release(queue);
        Self::hold_known(queue, &name.text, may_wait)
    }

    fn hold(&self, queue: &Queue, may_wait: &Detached) -> Result<()> {
        let table = queue.writable_table("a named tailer")?;
        let taken = table.tailers_in_use.take(&*table.file()?, self.value, may_wait);
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

    /// Releases the name for other readers.
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

    /// Counts the opening as a change, as Java does; for a new tailer, when it first reads.
    fn count_opening(&self, queue: &Queue, may_wait: &Detached) -> Result<()> {
        let stored = self.stored(queue)?;
        if stored == 0 { Ok(()) } else { self.store_move(queue, stored, may_wait) }
    }

    /// Stores the index to read next, after a read: the first one of a new tailer is two changes,
    /// as Java counts. False if that may wait and `how` is a try.
    #[inline]
    pub fn store_read(&self, queue: &Queue, index: i64, how: How<'_>) -> Result<bool> {
        let Some(replicated) = &self.replicated else {
            return self.store_alone(queue, index).map(|()| true);
        };
        let How::Wait(may_wait) = how else { return Ok(false) };
        let changes = if self.stored(queue)? == 0 { 2 } else { 1 };
        self.store_locked(queue, replicated, index, changes, may_wait).map(|()| true)
    }

    /// Stores the index to read next, as one change.
    pub fn store_move(&self, queue: &Queue, index: i64, may_wait: &Detached) -> Result<()> {
        match &self.replicated {
            Some(replicated) => self.store_locked(queue, replicated, index, 1, may_wait),
            None => self.store_alone(queue, index),
        }
    }

    /// Stores a word that only this reader stores.
    #[inline]
    fn store_alone(&self, queue: &Queue, index: i64) -> Result<()> {
        let table = queue.writable_table("a named tailer")?;
        let step = step!("tailer.index.store");
        table.cells().store_release(self.value, index.cast_unsigned(), step);
        self.look_at_table(table)
    }

    fn store_locked(
        &self,
        queue: &Queue,
        replicated: &Replicated,
        index: i64,
        changes: u64,
        may_wait: &Detached,
    ) -> Result<()> {
        let table = queue.writable_table("a named tailer")?;
        gate::check(table.append_lock(), false)?; // the queue may have become a sink's since
        let cells = table.cells();
        let lock = table.tailer_lock(replicated.lock, &replicated.in_process);
        let options = queue.options();
        let (mode, timeout) = (options.force_unlock, options.timeout);
        let _guard = recovery::wait_to_store(table, lock, mode, timeout, may_wait)?;
        cells.store_release(self.value, index.cast_unsigned(), step!("tailer.replicated.store"));
        cells.add_acq_rel(replicated.version, changes, step!("tailer.version.add"));
        self.look_at_table(table)
    }

    /// An error if another table has replaced this one, checked once a second: other processes
    /// would not see positions stored here, and could open the name.
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

    /// An error if the table was replaced or, with `removed`, removed: stored positions are then
    /// lost.
    pub fn confirm(&self, queue: &Queue, removed: bool) -> Result<()> {
        let shared = &queue.writable_table("a named tailer")?.shared;
        if removed { shared.check_present() } else { shared.check_not_replaced() }
    }
}

/// Deletes a name and its position; false if there was none. Fails while a Quire tailer has the
/// name.
pub fn delete(queue: &Queue, name: &str, mut signals: Signals<'_>) -> Result<bool> {
    let table = queue.writable_table("deleting a named tailer")?;
    let Some(held) = Name::hold_known(queue, name, signals.again().deferred())? else {
        return Ok(false);
    };
    let key = key_of(name);
    // Deleted first: without the tailer's key, these keys would count as names.
    let beside = if is_replicated(name) { [".lock", ".version"].as_slice() } else { &[] };
    let deleted = beside
        .iter()
        .try_for_each(|end| table.remove(&format!("{key}{end}"), signals.again()).map(drop))
        .and_then(|()| table.remove(&key, signals.again()));
    held.release(queue);
    deleted
}

/// Moves the position of a name to a new name; false if there was none. Fails while a Quire tailer
/// has the name.
pub fn rename(queue: &Queue, old: &str, new: &str, mut signals: Signals<'_>) -> Result<bool> {
    let table = queue.writable_table("renaming a tailer")?;
    if is_replicated(old) || is_replicated(new) {
        return Err(Error::Invalid(format!(
            "replicated tailers are not renamed: old={old:?} new={new:?}"
        )));
    }
    check_characters(table, new)?;
    let Some(held) = Name::hold_known(queue, old, signals.again().deferred())? else {
        return Ok(false);
    };
    let renamed = table.rename(&key_of(old), &key_of(new), signals);
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

/// Stores the source's position of a `replicated:` name, unless the position here is newer. Returns
/// whether it was stored. The caller keeps the append lock, so no such tailer is opened meanwhile.
pub fn keep(
    queue: &Queue,
    name: &str,
    (index, version): (i64, i64),
    mut signals: Signals<'_>,
) -> Result<bool> {
    if !is_replicated(name) || index < 0 {
        return Err(Error::Invalid(format!("no position of a replicated tailer: name={name:?}")));
    }
    let table = queue.writable_table("a named tailer")?;
    check_characters(table, name)?;
    check_case(table, name)?;
    let value = queue.tailer_key(name, signals.again())?;
    let Replicated { version: at, lock, in_process } = Replicated::open(queue, name, &mut signals)?;
    let (options, lock) = (queue.options(), table.tailer_lock(lock, &in_process));
    let may_wait = signals.deferred();
    let _guard =
        recovery::wait_to_store(table, lock, options.force_unlock, options.timeout, may_wait)?;
    let (cells, own) = (table.cells(), table.value(at, -1));
    if version <= own {
        return Ok(false);
    }
    cells.store_release(value, index.cast_unsigned(), step!("tailer.replicated.store"));
    let changes = version.wrapping_sub(own).cast_unsigned();
    cells.add_acq_rel(at, changes, step!("tailer.version.add"));
    Ok(true)
}

fn key_of(name: &str) -> String {
    format!("{TAILER_PREFIX}{name}")
}

/// New names must be printable. Java accepts any name, so existing ones can be used.
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
        "a tailer's name must consist of printable Latin-1 characters: name={name:?}"
    )))
}

/// Java does not distinguish names that differ only in case.
fn check_case(table: &TableStore, name: &str) -> Result<()> {
    let wanted = format!("{TAILER_PREFIX}{name}");
    let entries = table.entries()?;
    let same = entries.iter().map(|(key, _)| key).find(|key| key.eq_ignore_ascii_case(&wanted));
    match same.filter(|found| **found != wanted) {
        None => Ok(()),
        Some(found) => Err(Error::Invalid(format!(
            "another tailer's name differs only in case: name={name:?} known={:?} path={} (names \
             of tailers are case-insensitive)",
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
    fn open(queue: &Queue, name: &str, signals: &mut Signals<'_>) -> Result<Self> {
        let table = queue.writable_table("a named tailer")?;
        table.announce(signals.again())?;
        let version = queue.table_key(&format!("index.{name}.version"), -1, signals.again())?;
        let unlocked = UNLOCKED.cast_signed();
        let lock = queue.table_key(&format!("index.{name}.lock"), unlocked, signals.again())?;
        Ok(Self { version, lock, in_process: table.tailer_in_process_lock(lock) })
    }
}
