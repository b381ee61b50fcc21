//! The table store (`docs/protocol.md`, "Table store"): opening, locks, keys.
//!
//! One process opens a table once, however many queues it opens on it: the presence lock and the
//! in-process mutex live here.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use quire_wire::latin1;

use super::file::{self, First, MOST_MAPPED};
use super::keys::{self, BadTable, Key};
use super::shared_file::SharedFile;
use super::tailers_in_use::TailersInUse;
use crate::chronicle::format::table::{self, Metadata};
use crate::chronicle::protocol::lock::guard::{LockGuard, LockOf, ProcessLock, WriteGuard};
use crate::chronicle::protocol::lock::held_since::{self, HeldSince};
use crate::chronicle::protocol::lock::open_document::OpenDocument;
use crate::chronicle::protocol::lock::word::LockWord;
use crate::memory::Cells;
use crate::os::detached::Detached;
use crate::os::files::{self, Access};
use crate::os::interrupt::Signals;
use crate::os::locked_file::{self, LockedFile};
use crate::os::range_lock::{Kind, Range, RecordLock};
use crate::os::{clock, process};
use crate::probe::fault;
use crate::{Error, Result};

/// An open `metadata.cq4t`.
pub struct TableStore {
    /// The file.
    pub shared: SharedFile,
    cells: Cells,
    writable: bool,
    metadata: Metadata,
    words: Words,
    /// Whether a thread of this process holds the write lock or tries to.
    write_turn: AtomicBool,
    /// Whether a handle of this process keeps the append lock.
    append_turn: AtomicBool,
    /// The same for the locks of `replicated:` tailers, by their positions.
    tailer_in_process: Mutex<HashMap<u64, Arc<AtomicBool>>>,
    /// The named tailers that this process reads with.
    pub tailers_in_use: TailersInUse,
    /// The document that a thread of this process has open.
    document: OpenDocument,
    /// Where this process notes when it took the write lock.
    held_since: HeldSince,
    /// How long to wait for locks of the file: the timeout of the first queue on it.
    timeout: Duration,
    /// How often this process may have changed the header or a key,
    changes: AtomicU64,
    /// and how many of these changes are on the medium.
    synced_changes: AtomicU64,
    /// Whether a sync of one of the queue's files has failed.
    sync_failed: AtomicBool,
}

/// Positions of the values every queue has. 0 if a read-only queue lacks the key.
#[derive(Clone, Copy, Debug, Default)]
pub struct Words {
    /// `listing.highestCycle`.
    pub highest: u64,
    /// `listing.lowestCycle`.
    pub lowest: u64,
    /// `listing.modCount`.
    pub mod_count: u64,
    /// `chronicle.write.lock`.
    pub write_lock: u64,
    /// `chronicle.append.lock`.
    pub append_lock: u64,
    /// `chronicle.lastIndexMSynced`.
    pub last_synced: u64,
}

impl TableStore {
    /// Ends one queue's use; the last one closes the file, and with it the presence lock.
    pub fn close(&self) {
        self.shared.leave(|file| {
            // Before the presence lock ends, which shows that the lock's holder is alive.
            drop(self.take_document(self.document.number()));
            self.leave_file(file);
        });
    }

    /// Unmaps the file even if handles are kept, so that its file system can be unmounted. While
    /// another thread of this process holds or tries a lock, the file stays mapped until the last
    /// handle is gone, as other processes must see the release. Later takers find the queue closed.
    fn leave_file(&self, file: &LockedFile) {
        let locks = [self.write_lock(), self.append_lock_of_sink()];
        let tailers = self.tailer_in_process.lock().unwrap_or_else(PoisonError::into_inner);
        let tailers =
            tailers.values().map(|it| ProcessLock::new(self.write_lock().word, LockOf::Tailer, it));
        let held: Option<Vec<_>> =
            locks.into_iter().chain(tailers).map(ProcessLock::try_in_process).collect();
        if held.is_some()
            && let Ok(bytes) = self.used_part(file)
        {
            let _ = self.cells.memory().leave_file(&bytes);
        }
    }

    /// The bytes of the table up to a page of zeros, which lies after its last entry. Read through
    /// the file: accessing the mapping of a truncated file would kill the process.
    fn used_part(&self, file: &LockedFile) -> io::Result<Vec<u8>> {
        let (mut bytes, mut page) = (Vec::new(), [0; 4096]);
        while (bytes.len() as u64) < self.cells.len() {
            file.read_exact_at(&mut page, bytes.len() as u64)?;
            if page.iter().all(|byte| *byte == 0) {
                break;
            }
            bytes.extend_from_slice(&page);
        }
        Ok(bytes)
    }

    /// The table of a file that was opened for writing. If it was never completed, it is created as
    /// `wanted`; None if that is None.
    pub(super) fn create(
        path: PathBuf,
        file: Arc<LockedFile>,
        identity: (u64, u64),
        wanted: Option<&Metadata>,
        timeout: Duration,
        may_wait: &Detached,
    ) -> Result<Option<Self>> {
        let Some(cells) = file::initialise(&path, &file, wanted, timeout, may_wait)? else {
            return Ok(None);
        };
        let metadata = file::read_header(&path, &cells)?;
        let mut table = Self::with(path, file, identity, cells, true, metadata);
        table.timeout = timeout;
        table.words = table.create_words(may_wait)?;
        Ok(Some(table))
    }

    /// Sets how long to wait for locks of the file.
    pub(super) const fn set_timeout(&mut self, timeout: Duration) {
        self.timeout = timeout;
    }

    /// Shows other processes that this one is alive and may hold the write lock, until the table is
    /// closed: locks the byte of its pid, shared; the system drops the lock when the process dies.
    pub fn announce(&self, signals: Signals<'_>) -> Result<()> {
        let presence =
            Range { start: table::PRESENCE_START + i64::from(process::pid()), length: 1 };
        // Other processes briefly lock the whole file, to inspect or extend it.
        let file = self.file()?;
        locked_file::patiently(signals, self.timeout, |may_wait, step| {
            file.keep(self.path(), presence, Kind::Shared, step, may_wait)
        })
    }

    fn with(
        path: PathBuf,
        file: Arc<LockedFile>,
        identity: (u64, u64),
        cells: Cells,
        writable: bool,
        metadata: Metadata,
    ) -> Self {
        Self {
            shared: SharedFile::new(path, file, identity),
            cells,
            writable,
            metadata,
            words: Words::default(),
            write_turn: AtomicBool::new(false),
            append_turn: AtomicBool::new(false),
            tailer_in_process: Mutex::default(),
            tailers_in_use: TailersInUse::default(),
            document: OpenDocument::default(),
            held_since: HeldSince::default(),
            timeout: Duration::ZERO,
            changes: AtomicU64::new(1),
            synced_changes: AtomicU64::new(0),
            sync_failed: AtomicBool::new(false),
        }
    }

    /// Opens the table of `dir` for reading; None if it is missing or was never completed. Changes
    /// nothing.
    pub fn open_read_only(dir: &Path, may_wait: &Detached) -> Result<Option<Arc<Self>>> {
        Self::open_file_read_only(&dir.join(table::FILE_NAME), may_wait)
    }

    /// Opens the table at `path` for reading, as [`TableStore::open_read_only`] does.
    pub fn open_file_read_only(path: &Path, may_wait: &Detached) -> Result<Option<Arc<Self>>> {
        let Some(mut table) = Self::map_read_only(path, may_wait)? else { return Ok(None) };
        table.words = table.find_words(false)?;
        Ok(Some(Arc::new(table)))
    }

    fn map_read_only(path: &Path, may_wait: &Detached) -> Result<Option<Self>> {
        let open = || files::open(path, Access { write: false, create_mode: None });
        let Some(file) = LockedFile::open(open)? else { return Ok(None) };
        let failed = |e| Error::io("cannot open", path, e);
        let Some(len) = file::wait_until_ready(path, &file, may_wait)? else { return Ok(None) };
        let identity = files::identity(&file).map_err(failed)?;
        let mapped = len.min(MOST_MAPPED);
        let cells = Cells::new(file::map_present(&file, mapped).map_err(failed)?);
        let metadata = file::read_header(path, &cells)?;
        Ok(Some(Self::with(path.to_path_buf(), Arc::new(file), identity, cells, false, metadata)))
    }

    /// Like [`TableStore::open_file_read_only`], but tolerates damaged entries: keys that cannot be
    /// found are then missing.
    pub fn open_to_inspect(path: &Path, may_wait: &Detached) -> Result<Option<Arc<Self>>> {
        let Some(mut table) = Self::map_read_only(path, may_wait)? else { return Ok(None) };
        table.words = table.find_words(true)?;
        Ok(Some(Arc::new(table)))
    }

    /// Whether `dir` has a table whose header is ready.
    #[must_use]
    pub fn is_ready(dir: &Path) -> bool {
        let path = dir.join(table::FILE_NAME);
        let file = files::open(&path, Access { write: false, create_mode: None });
        let is_ready = |file| file::first(&path, &file).is_ok_and(|it| it == First::Ready);
        file.is_ok_and(|file| file.is_some_and(is_ready))
    }

    /// The file's path.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.shared.path()
    }

    /// The file, until the last queue on it is closed.
    pub fn file(&self) -> Result<Arc<LockedFile>> {
        self.shared.get()
    }

    /// The words.
    #[must_use]
    pub(crate) const fn cells(&self) -> &Cells {
        &self.cells
    }

    /// The content of the header.
    #[must_use]
    pub const fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// Positions of the values every queue has.
    #[must_use]
    pub const fn words(&self) -> &Words {
        &self.words
    }

    /// The write lock. Only for a table opened for writing.
    #[inline]
    #[must_use]
    pub const fn write_lock(&self) -> ProcessLock<'_> {
        ProcessLock::new(
            LockWord::new(&self.cells, self.words.write_lock),
            LockOf::Queue,
            &self.write_turn,
        )
    }

    /// Takes the write lock, if it is free.
    #[inline]
    #[must_use]
    pub fn try_write(&self) -> Option<WriteGuard<'_>> {
        self.write_lock().try_take().map(WriteGuard::new)
    }

    /// The word of the append lock.
    #[inline]
    #[must_use]
    pub fn append_lock(&self) -> u64 {
        self.cells.load_acquire(self.words.append_lock)
    }

    /// The append lock, for the sink that keeps it. Only for a table opened for writing.
    #[must_use]
    pub const fn append_lock_of_sink(&self) -> ProcessLock<'_> {
        let word = LockWord::new(&self.cells, self.words.append_lock);
        ProcessLock::new(word, LockOf::Appends, &self.append_turn)
    }

    /// A signed value; `missing` if the key is absent.
    #[inline]
    #[must_use]
    pub fn value(&self, position: u64, missing: i64) -> i64 {
        if position == 0 { missing } else { self.cells.load_acquire(position).cast_signed() }
    }

    /// The lock of a `replicated:` tailer, whose word lies at `position`.
    #[must_use]
    pub const fn tailer_lock<'a>(
        &'a self,
        position: u64,
        in_process: &'a AtomicBool,
    ) -> ProcessLock<'a> {
        ProcessLock::new(LockWord::new(&self.cells, position), LockOf::Tailer, in_process)
    }

    /// The in-process lock shared by this process's tailers, for the lock whose word lies at
    /// `position`.
    #[must_use]
    pub fn tailer_in_process_lock(&self, position: u64) -> Arc<AtomicBool> {
        let mut locks = self.tailer_in_process.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(locks.entry(position).or_default())
    }

    /// Makes the next sync cover the table.
    pub fn note_change(&self) {
        self.changes.fetch_add(1, Ordering::AcqRel);
    }

    /// Returns when the header and all keys are on the medium.
    pub fn sync(&self, _: &Detached) -> Result<()> {
        let changes = self.changes.load(Ordering::Acquire);
        if self.synced_changes.load(Ordering::Acquire) >= changes {
            return Ok(());
        }
        let file = self.file()?;
        let synced = fault::call!("window.sync", files::sync(&file));
        synced.map_err(|e| Error::io("cannot sync", self.path(), e))?;
        self.synced_changes.fetch_max(changes, Ordering::AcqRel);
        Ok(())
    }

    /// Returns the result of a sync of one of the queue's files. After a failure, every sync fails
    /// until the queue is closed: the system drops the pages it could not write, and reports it
    /// once.
    pub fn remember_sync(&self, sync: impl FnOnce() -> Result<()>) -> Result<()> {
        if self.sync_failed.load(Ordering::Acquire) {
            let what = "an earlier sync failed, and messages written before it may be lost (close \
                        the queue and check its last messages)";
            return Err(Error::io(what, self.path(), std::io::Error::from_raw_os_error(libc::EIO)));
        }
        let synced = sync();
        if matches!(synced, Err(Error::Io { .. })) {
            self.sync_failed.store(true, Ordering::Release);
        }
        synced
    }

    /// The document that a thread of this process has open.
    #[must_use]
    pub const fn document(&self) -> &OpenDocument {
        &self.document
    }

    /// Finds or creates the word of [`Self::note_held`]. May wait: call before taking the lock.
    pub fn prepare_held(&self, signals: Signals<'_>) -> Result<()> {
        let none = held_since::NONE.cast_signed();
        self.held_since.prepare(|| self.find_or_create(table::HELD_SINCE, none, signals))
    }

    /// Notes that this process holds the write lock from now on.
    pub fn note_held(&self) {
        self.held_since.note(&self.cells);
    }

    /// When `holder` took the write lock, in milliseconds since 1970; None without a record of it.
    #[must_use]
    pub fn held_since_ms(&self, holder: u32) -> Option<i64> {
        let position = self.find(table::HELD_SINCE).ok()??;
        held_since::since_ms(&self.cells, position, holder)
    }

    /// For how many milliseconds `holder` has had the write lock; None without a record of it.
    #[must_use]
    pub fn held_ms(&self, holder: u32) -> Option<u64> {
        let held = |since: i64| clock::coarse_time_ms().saturating_sub(since).max(0).unsigned_abs();
        self.held_since_ms(holder).map(held)
    }

    /// Clears the record of a holder that lost the write lock by force.
    pub fn forget_held(&self, holder: u32) {
        if let Ok(Some(position)) = self.find(table::HELD_SINCE) {
            held_since::forget(&self.cells, position, holder);
        }
    }

    /// The write lock that this open document holds; None if it no longer does, as after the last
    /// queue was closed.
    pub fn take_document(&self, number: u64) -> Option<WriteGuard<'_>> {
        let guard = || WriteGuard::new(LockGuard::resume(self.write_lock(), process::pid()));
        self.end_document(number).then(guard)
    }

    /// Ends this document's ownership of the write lock, which stays taken; false if it had none.
    pub fn end_document(&self, number: u64) -> bool {
        let taken = self.document.take(number);
        if taken {
            self.held_since.clear(&self.cells);
        }
        taken
    }

    /// The position of a key's value; None if the key is missing. Case does not matter.
    pub fn find(&self, key: &str) -> Result<Option<u64>> {
        let Some(name) = latin1::encode(key) else { return Ok(None) };
        match self.find_spelled(&name)? {
            // As earlier versions of Quire wrote it.
            None if !key.is_ascii() => self.find_spelled(key.as_bytes()),
            found => Ok(found),
        }
    }

    fn find_spelled(&self, key: &[u8]) -> Result<Option<u64>> {
        match keys::find(&self.cells, key) {
            Ok(Key::At(value)) => Ok(Some(value)),
            Ok(Key::Missing(_)) => Ok(None),
            // A truncated table has no more keys. A writer extends it first.
            Err(BadTable::PastTheEnd(..)) if self.is_cut() => Ok(None),
            Err(bad) => Err(self.bad(key.len(), bad)),
        }
    }

    /// Every key and its value, in order of creation; a key that exists both in Latin-1 and in
    /// UTF-8, as earlier versions of Quire wrote it, only once: the first.
    pub fn entries(&self) -> Result<Vec<(String, i64)>> {
        let found = keys::all(&self.cells).map_err(|bad| self.bad(0, bad))?;
        let is_latin = |key: &[u8]| found.iter().any(|(it, _)| latin1::eq_ignore_case(it, key));
        let named = found.iter().filter_map(|(key, value)| match earlier_spelling(key) {
            Some((_, latin)) if is_latin(&latin) => None,
            Some((text, _)) => Some((text.to_owned(), *value)),
            None => Some((latin1::decode(key).into_owned(), *value)),
        });
        Ok(named.collect())
    }

    /// The position of a key's value, created with `initial` if missing.
    pub fn find_or_create(&self, key: &str, initial: i64, signals: Signals<'_>) -> Result<u64> {
        let name = latin1::encode(key).ok_or_else(|| not_latin(key))?;
        if let Some(position) = self.find_spelled(&name)? {
            return Ok(position);
        }
        if !self.writable {
            return Err(Error::ReadOnly {
                what: "a new table key",
                path: self.path().to_path_buf(),
            });
        }
        let file = self.file()?;
        let _lock = self.lock_keys(&file, signals)?;
        let earlier = self.find(key)?;
        let initial = earlier.map_or(initial, |position| self.value(position, initial));
        self.find_or_create_locked(&name, initial)
    }

    /// The lock held around every change of keys, among threads and processes.
    fn lock_keys<'a>(
        &'a self,
        file: &'a LockedFile,
        signals: Signals<'a>,
    ) -> Result<RecordLock<'a>> {
        file::key_lock(file, self.path(), self.timeout, signals)
    }

    /// How much of the table is used by entries or not reusable.
    #[must_use]
    pub fn used_percent(&self) -> u64 {
        keys::used(&self.cells) * 100 / self.cells.len().max(1)
    }

    /// Whether little room is left for names of tailers.
    #[must_use]
    pub fn is_almost_full(&self) -> bool {
        self.used_percent() >= 80
    }

    fn find_or_create_locked(&self, key: &[u8], initial: i64) -> Result<u64> {
        if key.is_empty() || key.len() > table::KEY_LEN_MAX {
            return Err(self.no_room(key.len(), 0));
        }
        let (value, is_new) =
            keys::find_or_add(&self.cells, key, initial).map_err(|bad| self.bad(key.len(), bad))?;
        if is_new {
            self.note_change();
        }
        Ok(value)
    }

    /// Removes a key; false if it was missing.
    pub fn remove(&self, key: &str, signals: Signals<'_>) -> Result<bool> {
        let file = self.file()?;
        let _lock = self.lock_keys(&file, signals)?;
        self.remove_locked(key)
    }

    /// Moves the value of a key to a new key; false if `old` is missing or `new` exists. A crash in
    /// between leaves both.
    pub fn rename(&self, old: &str, new: &str, signals: Signals<'_>) -> Result<bool> {
        let name = latin1::encode(new).ok_or_else(|| not_latin(new))?;
        let file = self.file()?;
        let _lock = self.lock_keys(&file, signals)?;
        let (Some(position), None) = (self.find(old)?, self.find(new)?) else { return Ok(false) };
        self.find_or_create_locked(&name, self.value(position, 0))?;
        self.remove_locked(old)
    }

    fn remove_locked(&self, key: &str) -> Result<bool> {
        let Some(name) = latin1::encode(key) else { return Ok(false) };
        let bad = |bad| self.bad(key.len(), bad);
        let mut was_there = keys::remove(&self.cells, &name).map_err(bad)?;
        if !key.is_ascii() {
            // As earlier versions of Quire wrote it.
            was_there |= keys::remove(&self.cells, key.as_bytes()).map_err(bad)?;
        }
        self.changes.fetch_add(u64::from(was_there), Ordering::AcqRel);
        Ok(was_there)
    }

    fn is_cut(&self) -> bool {
        !self.writable && self.cells.len() < table::FILE_LEN
    }

    fn bad(&self, key_bytes: usize, bad: BadTable) -> Error {
        let corrupt = |what, position, found, expected| {
            Error::corrupt(what, self.path(), position, found, expected)
        };
        match bad {
            BadTable::Full(used) => self.no_room(key_bytes, used),
            BadTable::PastTheEnd(position, length) => corrupt(
                "entry ends past the end of the table",
                position,
                format!("length {length}"),
                format!("at most {}", self.cells.len()),
            ),
            BadTable::Unaligned(position) => corrupt(
                "unaligned table value",
                position,
                format!("{position:#x}"),
                "a multiple of 8".to_owned(),
            ),
            BadTable::HeaderTaken(position, found) => corrupt(
                "header changed under the key lock",
                position,
                format!("{found:#010x}"),
                "0".to_owned(),
            ),
        }
    }

    fn no_room(&self, key_bytes: usize, used: u64) -> Error {
        Error::Invalid(format!(
            "no room for a table key: key_bytes={key_bytes} table_bytes={} used_bytes={used} \
             path={} (delete unused tailers, end every process that has the queue open, and open \
             it again: then their space is free)",
            self.cells.len(),
            self.path().display()
        ))
    }

    fn create_words(&self, may_wait: &Detached) -> Result<Words> {
        let unlocked = table::UNLOCKED.cast_signed();
        let key = |name, initial| self.find_or_create(name, initial, Signals::Deferred(may_wait));
        let words = Words {
            highest: key(table::HIGHEST_CYCLE, table::NO_HIGHEST)?,
            lowest: key(table::LOWEST_CYCLE, table::NO_LOWEST)?,
            mod_count: key(table::MOD_COUNT, 0)?,
            write_lock: key(table::WRITE_LOCK, unlocked)?,
            append_lock: key(table::APPEND_LOCK, unlocked)?,
            last_synced: 0,
        };
        key(table::LAST_REPLICATED, table::NO_INDEX)?;
        key(table::LAST_ACKNOWLEDGED, table::NO_INDEX)?;
        Ok(Words { last_synced: key(table::LAST_SYNCED, table::NO_INDEX)?, ..words })
    }

    fn find_words(&self, leaves_out_damaged: bool) -> Result<Words> {
        let key = |name| match self.find(name) {
            Err(Error::Corrupt { .. }) if leaves_out_damaged => Ok(0),
            found => found.map(Option::unwrap_or_default),
        };
        Ok(Words {
            highest: key(table::HIGHEST_CYCLE)?,
            lowest: key(table::LOWEST_CYCLE)?,
            mod_count: key(table::MOD_COUNT)?,
            write_lock: key(table::WRITE_LOCK)?,
            append_lock: key(table::APPEND_LOCK)?,
            last_synced: key(table::LAST_SYNCED)?,
        })
    }
}

/// A key in UTF-8, as earlier versions of Quire wrote names beyond ASCII, and its Latin-1.
fn earlier_spelling(key: &[u8]) -> Option<(&str, Cow<'_, [u8]>)> {
    let text = std::str::from_utf8(key).ok().filter(|text| !text.is_ascii())?;
    Some((text, latin1::encode(text)?))
}

fn not_latin(key: &str) -> Error {
    Error::Invalid(format!("a table key must consist of Latin-1 characters: key={key:?}"))
}
