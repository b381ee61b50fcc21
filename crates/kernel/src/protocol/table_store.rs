//! The table store (`docs/protocol.md`, "Table store"): opening, creating, keys.
//!
//! Creating the table, under the key lock (a record lock on one byte):
//! 1. make the file long enough and reserve its space;
//! 2. CAS the first header from 0 to "not complete" (or find it so: its creator died);
//! 3. write the header document; 4. publish its header.
//!
//! One process opens a table once, however many queues it opens on it: the presence lock and the
//! in-process mutex live here.

use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use super::held_lock::{Held, LockOf, ProcessLock};
use super::table_keys::{self, BadTable, Key};
use super::write_lock::LockWord;
use crate::format::document::{self, HEADER_LEN, Header, NOT_COMPLETE};
use crate::format::store::MAX_HEADER_LEN;
use crate::format::table::{self, FILE_LEN, Metadata};
use crate::memory::record_lock::{Kind, Range, RecordLock};
use crate::memory::space::{self, Access};
use crate::memory::{Cells, Mapping, process};
use crate::{Error, Result, fault};

const KEY_LOCK: Range = Range { start: table::KEY_LOCK_START, length: 1 };
const RECORD_LOCK_TIMEOUT: Duration = Duration::from_secs(10);
/// Tables hold a few hundred keys at most: of a longer file the rest is not looked at.
const MOST_MAPPED: u64 = 16 << 20;
const READY_TIMEOUT: Duration = Duration::from_millis(500);

/// An open `metadata.cq4t`.
pub struct TableStore {
    path: PathBuf,
    used: Mutex<Used>,
    inode: u64,
    cells: Cells,
    writable: bool,
    metadata: Metadata,
    words: Words,
    keys: Mutex<()>,
    /// Whether a thread of this process holds the write lock or tries to.
    write_turn: AtomicBool,
    /// The same for the locks of `replicated:` tailers, by their positions.
    tailer_turns: Mutex<HashMap<u64, Arc<AtomicBool>>>,
    /// The thread of this process that has a document open, or 0.
    document_thread: AtomicU64,
    /// This process may have added a header or a key since the table was synced.
    is_unsynced: AtomicBool,
    /// A sync of one of the queue's files failed.
    sync_failed: AtomicBool,
}

/// A table's file, and how many queues are open on it: the last one closes it.
struct Used {
    file: Option<Arc<File>>,
    users: usize,
}

/// Positions of the values every queue has. 0 where a read-only queue lacks the key.
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

/// A table that this process has open for writing.
pub struct OpenTable {
    /// Of the process (its generation) and of the file (device, inode number).
    identity: (u32, u64, u64),
    table: Weak<TableStore>,
    file: Weak<File>,
}

static OPEN_TABLES: Mutex<Vec<OpenTable>> = Mutex::new(Vec::new());

/// The tables this process has open. Whoever holds this keeps others from opening any; who waits
/// for it must not hold the interpreter, as a fork holds this while others run.
pub fn open_tables() -> MutexGuard<'static, Vec<OpenTable>> {
    OPEN_TABLES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// In a forked child: lets the parent's record locks end with the parent.
pub fn detach(tables: &mut Vec<OpenTable>) {
    let inherited = tables.drain(..).filter_map(|open| open.file.upgrade());
    inherited.for_each(|file| space::detach_descriptor(&file));
}

impl TableStore {
    /// Opens the table of `dir` for writing, creating it as `wanted` when there is none.
    pub fn open_or_create(dir: &Path, wanted: &Metadata, file_mode: u32) -> Result<Arc<Self>> {
        let path = dir.join(table::FILE_NAME);
        // First of all: a descriptor that a fork copies must be one that the child can find.
        let mut tables = open_tables();
        tables.retain(|open| open.table.strong_count() > 0);
        let access = Access { write: true, create_mode: Some(file_mode) };
        let file = space::open(&path, access)?.ok_or_else(|| {
            Error::io("cannot create", &path, std::io::ErrorKind::NotFound.into())
        })?;
        fault::point!("table.file.open");
        let failed = |e| Error::io("cannot open", &path, e);
        let (device, inode) = space::identity(&file).map_err(failed)?;
        let identity = (process::generation(), device, inode);
        let mut open = tables.iter().filter(|open| open.identity == identity);
        if let Some(table) = open.find_map(|open| open.table.upgrade().filter(|it| it.join())) {
            return Ok(table);
        }
        let table = Arc::new(Self::create(path, file, inode, wanted)?);
        let file = Arc::downgrade(&table.file()?);
        tables.push(OpenTable { identity, table: Arc::downgrade(&table), file });
        Ok(table)
    }

    /// Counts one more queue; false when the last one has closed the file.
    fn join(&self) -> bool {
        let mut used = self.lock_used();
        used.users += usize::from(used.file.is_some());
        used.file.is_some()
    }

    /// Ends one queue's use; the last one closes the file, and with it the presence lock.
    pub fn close(&self) {
        let mut used = self.lock_used();
        used.users = used.users.saturating_sub(1);
        if used.users == 0 {
            // While the file still shows others that the lock's holder lives.
            drop(self.take_document());
            used.file = None;
        }
    }

    fn lock_used(&self) -> MutexGuard<'_, Used> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn create(path: PathBuf, file: File, inode: u64, wanted: &Metadata) -> Result<Self> {
        let cells = Self::initialise(&path, &file, wanted)?;
        let metadata = read_header(&path, &cells)?;
        let mut table = Self::with(path, file, inode, cells, true, metadata);
        table.words = table.create_words()?;
        Ok(table)
    }

    /// Shows others that this process lives and may hold the write lock, until the table is closed:
    /// a shared lock on the byte of its pid, which the system drops when it dies.
    pub fn announce(&self) -> Result<()> {
        let presence =
            Range { start: table::PRESENCE_START + i64::from(process::pid()), length: 1 };
        // Others lock the whole file for a moment, to look at it or to make it longer.
        lock(&*self.file()?, &self.path, presence, Kind::Shared).map(RecordLock::keep)
    }

    /// Maps the table, made first if need be.
    fn initialise(path: &Path, file: &File, wanted: &Metadata) -> Result<Cells> {
        let _lock = key_lock(file, path)?;
        let found = fault::call!("table.file.stat", file.metadata());
        let len = found.map_err(|e| Error::io("cannot look at", path, e))?.len();
        if len > 0 {
            check_first_bytes(path, file)?;
        }
        let failed = |e| Error::io("cannot reserve space", path, e);
        if len < FILE_LEN {
            fault::call!("table.file.grow", space::set_len(file, FILE_LEN)).map_err(failed)?;
        }
        space::reserve(file, 0, FILE_LEN).map_err(failed)?;
        let mapped = len.clamp(FILE_LEN, MOST_MAPPED);
        let again = space::open_again(file, path, Access { write: true, create_mode: None })?;
        let mapping = Mapping::new(&again, mapped, true).map_err(failed)?;
        mapping.populate_write(0, FILE_LEN).or_else(ignore_unsupported).map_err(failed)?;
        let cells = Cells::new(mapping);
        let first = cells.load_header_acquire(0);
        if document::parse(first) == Header::Waiting {
            publish_first(path, &cells, first, wanted)?;
        }
        Ok(cells)
    }

    fn with(
        path: PathBuf,
        file: File,
        inode: u64,
        cells: Cells,
        writable: bool,
        metadata: Metadata,
    ) -> Self {
        Self {
            path,
            used: Mutex::new(Used { file: Some(Arc::new(file)), users: 1 }),
            inode,
            cells,
            writable,
            metadata,
            words: Words::default(),
            keys: Mutex::new(()),
            write_turn: AtomicBool::new(false),
            tailer_turns: Mutex::default(),
            document_thread: AtomicU64::new(0),
            is_unsynced: AtomicBool::new(true),
            sync_failed: AtomicBool::new(false),
        }
    }

    /// Opens the table of `dir` for reading; None when there is none. Changes nothing.
    pub fn open_read_only(dir: &Path) -> Result<Option<Arc<Self>>> {
        Self::open_file_read_only(&dir.join(table::FILE_NAME))
    }

    /// Opens the table at `path` for reading; None when there is none. Changes nothing.
    pub fn open_file_read_only(path: &Path) -> Result<Option<Arc<Self>>> {
        let Some(file) = space::open(path, Access { write: false, create_mode: None })? else {
            return Ok(None);
        };
        let failed = |e| Error::io("cannot open", path, e);
        let deadline = Instant::now() + READY_TIMEOUT;
        let len = loop {
            let len = fault::call!("table.file.stat", file.metadata()).map_err(failed)?.len();
            if check_first_bytes(path, &file)? {
                break len;
            }
            if Instant::now() >= deadline {
                return Err(Error::corrupt(
                    "the table store was never completed",
                    path,
                    0,
                    format!("{len} bytes without a ready header"),
                    "a ready header",
                ));
            }
            std::thread::sleep(Duration::from_millis(10));
        };
        let (_, inode) = space::identity(&file).map_err(failed)?;
        let mapped = len.min(MOST_MAPPED);
        let cells = Cells::new(map_present(&file, mapped).map_err(failed)?);
        let metadata = read_header(path, &cells)?;
        let mut table = Self::with(path.to_path_buf(), file, inode, cells, false, metadata);
        table.words = table.find_words()?;
        Ok(Some(Arc::new(table)))
    }

    /// Whether `dir` has a table whose header is ready.
    #[must_use]
    pub fn is_ready(dir: &Path) -> bool {
        let path = dir.join(table::FILE_NAME);
        let file = space::open(&path, Access { write: false, create_mode: None });
        file.is_ok_and(|file| file.is_some_and(|f| check_first_bytes(&path, &f).unwrap_or(false)))
    }

    /// The file's path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file, until the last queue on it is closed.
    pub fn file(&self) -> Result<Arc<File>> {
        self.lock_used().file.clone().ok_or(Error::Closed("queue"))
    }

    /// An error when the table was removed: another queue may be in the making at its place.
    pub fn check_present(&self) -> Result<()> {
        let removed = space::is_removed(&*self.file()?);
        if !removed.map_err(|e| Error::io("cannot look at", &self.path, e))? {
            return Ok(());
        }
        let why = "its table was removed while it was open: open the queue again".into();
        Err(Error::NotAQueue { why, path: self.path.clone() })
    }

    /// The file's inode number.
    #[must_use]
    pub const fn inode(&self) -> u64 {
        self.inode
    }

    /// The words.
    #[must_use]
    pub const fn cells(&self) -> &Cells {
        &self.cells
    }

    /// What the header says.
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

    /// A signed value; `missing` where the key is absent.
    #[must_use]
    pub fn value(&self, position: u64, missing: i64) -> i64 {
        if position == 0 { missing } else { self.cells.load_acquire(position).cast_signed() }
    }

    /// The lock of a `replicated:` tailer, whose word lies at `position`.
    #[must_use]
    pub const fn tailer_lock<'a>(&'a self, position: u64, turn: &'a AtomicBool) -> ProcessLock<'a> {
        ProcessLock::new(LockWord::new(&self.cells, position), LockOf::Tailer, turn)
    }

    /// The turn that all tailers of this process take at the lock whose word lies at `position`.
    #[must_use]
    pub fn tailer_turn(&self, position: u64) -> Arc<AtomicBool> {
        let mut turns = self.tailer_turns.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(turns.entry(position).or_default())
    }

    /// Returns when the header and all keys are on the medium.
    pub fn sync(&self) -> Result<()> {
        if !self.is_unsynced.swap(false, Ordering::AcqRel) {
            return Ok(());
        }
        let file = self.file()?;
        let synced = fault::call!("window.sync", space::sync(&file));
        synced.map_err(|e| {
            self.is_unsynced.store(true, Ordering::Release);
            Error::io("cannot sync", &self.path, e)
        })
    }

    /// Hands on what a sync of one of the queue's files said. After one that failed all fail until
    /// the queue is closed: the system drops what it could not write, and says so once.
    pub fn remember_sync(&self, sync: impl FnOnce() -> Result<()>) -> Result<()> {
        if self.sync_failed.load(Ordering::Acquire) {
            let what = "an earlier sync failed, and what was written before it may be lost (close \
                        the queue and look at its last messages)";
            return Err(Error::io(what, &self.path, std::io::Error::from_raw_os_error(libc::EIO)));
        }
        let synced = sync();
        if matches!(synced, Err(Error::Io { .. })) {
            self.sync_failed.store(true, Ordering::Release);
        }
        synced
    }

    /// The thread that has a document open, or 0.
    #[must_use]
    pub fn document_thread(&self) -> u64 {
        self.document_thread.load(Ordering::Acquire)
    }

    /// Notes the thread that has a document open.
    pub fn set_document_thread(&self, thread: u64) {
        self.document_thread.store(thread, Ordering::Release);
    }

    /// The write lock that an open document holds; None when there is none, or the last queue's
    /// closing has let go of it.
    pub fn take_document(&self) -> Option<Held<'_>> {
        (self.document_thread.swap(0, Ordering::AcqRel) != 0).then(|| Held { table: self })
    }

    /// The position of a key's value; None when there is no such key. Case does not matter.
    pub fn find(&self, key: &str) -> Result<Option<u64>> {
        match table_keys::find(&self.cells, key).map_err(|bad| self.bad(key, bad))? {
            Key::At(value) => Ok(Some(value)),
            Key::Missing(_) => Ok(None),
        }
    }

    /// Every key and its value, in the order of their making.
    pub fn entries(&self) -> Result<Vec<(String, i64)>> {
        table_keys::all(&self.cells).map_err(|bad| self.bad("", bad))
    }

    /// The position of a key's value, created with `initial` when there is no such key.
    pub fn find_or_create(&self, key: &str, initial: i64) -> Result<u64> {
        if let Some(position) = self.find(key)? {
            return Ok(position);
        }
        if !self.writable {
            return Err(Error::ReadOnly { what: "a new table key", path: self.path.clone() });
        }
        let _thread = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        let file = self.file()?;
        let _lock = key_lock(&file, &self.path)?;
        self.find_or_create_locked(key, initial)
    }

    fn find_or_create_locked(&self, key: &str, initial: i64) -> Result<u64> {
        if key.is_empty() || key.len() > table::KEY_LEN_MAX {
            return Err(self.no_room(key, 0));
        }
        let (value, is_new) =
            table_keys::find_or_add(&self.cells, key, initial).map_err(|bad| self.bad(key, bad))?;
        if is_new {
            self.is_unsynced.store(true, Ordering::Release);
        }
        Ok(value)
    }

    fn bad(&self, key: &str, bad: BadTable) -> Error {
        let corrupt = |what, position, found, expected| {
            Error::corrupt(what, &self.path, position, found, expected)
        };
        match bad {
            BadTable::Full(used) => self.no_room(key, used),
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

    fn no_room(&self, key: &str, used: u64) -> Error {
        Error::Invalid(format!(
            "no room for a table key: key_bytes={} table_bytes={} used_bytes={used} path={}",
            key.len(),
            self.cells.len(),
            self.path.display()
        ))
    }

    fn create_words(&self) -> Result<Words> {
        let unlocked = table::UNLOCKED.cast_signed();
        let key = |name, initial| self.find_or_create(name, initial);
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

    fn find_words(&self) -> Result<Words> {
        let key = |name| self.find(name).map(Option::unwrap_or_default);
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

fn key_lock<'a>(file: &'a File, path: &Path) -> Result<RecordLock<'a>> {
    lock(file, path, KEY_LOCK, Kind::Exclusive)
}

fn lock<'a>(file: &'a File, path: &Path, range: Range, kind: Kind) -> Result<RecordLock<'a>> {
    let failed = |e| Error::io("cannot lock", path, e);
    RecordLock::wait(file, range, kind, RECORD_LOCK_TIMEOUT)
        .map_err(failed)?
        .ok_or_else(|| failed(std::io::ErrorKind::TimedOut.into()))
}

/// Looks at the first bytes through the file, before anything is mapped or changed: true when a
/// ready header is there, false when it may still come, an error when the file is of another kind.
fn check_first_bytes(path: &Path, file: &File) -> Result<bool> {
    use std::os::unix::fs::FileExt;
    let mut first = [0; 8];
    let failed = |e| Error::io("cannot read", path, e);
    let found = fault::call!("table.file.read", file.read_at(&mut first, 0)).map_err(failed)?;
    let word = u32::from_le_bytes([first[0], first[1], first[2], first[3]]);
    if found < first.len() || word == 0 || word == NOT_COMPLETE {
        return Ok(false);
    }
    let is_table =
        matches!(document::parse(word), Header::Meta(length) if length <= MAX_HEADER_LEN);
    if is_table {
        return Ok(true);
    }
    Err(Error::corrupt(
        "not a table store",
        path,
        0,
        format!("{word:#010x}"),
        "a metadata document of at most 64 KiB",
    ))
}

fn publish_first(path: &Path, cells: &Cells, found: u32, wanted: &Metadata) -> Result<()> {
    let taken = |found: u32| {
        let found = format!("{found:#010x}");
        Error::corrupt("header changed under the key lock", path, 0, found, "0x80000000")
    };
    cells.publish_header(0, found, NOT_COMPLETE).map_err(taken)?;
    fault::point!("table.first.cas");
    let payload = table::encode(wanted);
    cells.copy_in_plain(HEADER_LEN, &payload);
    fault::point!("table.body.store");
    let word = document::word(u32::try_from(payload.len()).unwrap_or(0), true);
    cells.publish_header(0, NOT_COMPLETE, word).map_err(taken)?;
    fault::point!("table.header.cas");
    Ok(())
}

fn read_header(path: &Path, cells: &Cells) -> Result<Metadata> {
    let word = cells.load_header_acquire(0);
    let not_one = |what| Error::corrupt(what, path, 0, format!("{word:#010x}"), "header: !STStore");
    let Header::Meta(length) = document::parse(word) else {
        return Err(not_one("not a table store"));
    };
    if HEADER_LEN + u64::from(length) > cells.len() {
        return Err(not_one("the table store is cut short"));
    }
    let payload = cells.bytes(HEADER_LEN, u64::from(length));
    table::parse(payload).ok_or_else(|| not_one("not a table store"))
}

/// Maps a table for reading up to its first hole: where the disk is full none can be touched, and
/// behind one there is no key.
fn map_present(file: &File, len: u64) -> std::io::Result<Mapping> {
    let mapping = Mapping::new(file, len, false)?;
    if mapping.populate_read(0, len).or_else(ignore_unsupported).is_ok() {
        return Ok(mapping);
    }
    let mut present = 0;
    for page in 0..len.div_ceil(space::PAGE) {
        let (start, end) = (page * space::PAGE, len.min((page + 1) * space::PAGE));
        if let Err(error) = mapping.populate_read(start, end) {
            return if present == 0 { Err(error) } else { Mapping::new(file, present, false) };
        }
        present = end;
    }
    Ok(mapping)
}

fn ignore_unsupported(error: std::io::Error) -> std::io::Result<()> {
    if error.raw_os_error() == Some(libc::EINVAL) { Ok(()) } else { Err(error) }
}
