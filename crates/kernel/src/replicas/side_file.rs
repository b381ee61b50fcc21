//! The side file `replicas.quire` of a queue, mapped. Its length is fixed, it is complete
//! before it gets its name, and Java ignores it.
//!
//! The source's process is the only one that stores what replicas have acknowledged; `forget` and
//! the lease are single words. A restart of the machine invalidates the file's content: a power cut
//! may have lost messages that replicas acknowledged, and the clock of the lease restarts at 0.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::layout::{self, LEN, MAGIC, NO_INDEX, SLOTS, TEXT_MAX, at};
use super::quorum::Quorum;
use crate::memory::side_file::Header;
use crate::memory::{Cells, Mapping};
use crate::os::clock;
use crate::os::detached::Detached;
use crate::os::files::{self, Access};
use crate::os::futex::{self, Expected};
use crate::os::interrupt::Signals;
use crate::os::locked_file::LockedFile;
use crate::os::names;
use crate::os::own_directory::OwnDirectory;
use crate::os::range_lock::{Kind, Range};
use crate::probe::fault::{self, Step, step};
use crate::waiting::word::{self, Word};
use crate::{Error, Result};

/// The name of the side file.
pub const FILE_NAME: &str = "replicas.quire";

const HEADER: Header = Header {
    magic: MAGIC,
    len: LEN,
    otherwise: "not a file of replicas (remove it while no process has the queue open)",
};

/// The source of the queue keeps this byte locked.
const SOURCE: Range = Range { start: layout::MAGIC_AT.cast_signed(), length: 1 };
/// The byte that is locked while the file is reset after a boot of the machine.
const RENEWAL: Range = Range { start: layout::BOOT_AT.cast_signed(), length: 1 };
const RENEWAL_TIMEOUT: Duration = Duration::from_secs(10);
/// The end of an expired lease.
const OVER: u64 = 1;

/// The state of a replica.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replica {
    /// Its own name.
    pub name: String,
    /// Where it was last connected from.
    pub address: String,
    /// Whether it belongs to the in-sync set.
    pub is_member: bool,
    pub is_connected: bool,
    /// Whether acknowledged messages are durable on it.
    pub is_synced: bool,
    /// The index of the last message it has acknowledged.
    pub acknowledged: Option<i64>,
    /// The index of the last message it was sent.
    pub sent: Option<i64>,
    /// When its last acknowledged message was sent, in nanoseconds since 1970; 0: unknown.
    pub time_ns: u64,
}

/// The side file of a queue.
pub struct ReplicaStates {
    cells: Cells,
    path: PathBuf,
    /// The directory in which it was opened, if it is to be opened again there.
    directory: Option<OwnDirectory>,
    /// Device and inode number.
    identity: (u64, u64),
    is_writable: bool,
    /// The current boot of the machine.
    boot: u64,
}

/// The lock of the one process that stores what replicas acknowledge; released on drop.
pub struct SourceLock(#[expect(dead_code, reason = "holds the lock")] LockedFile);

impl ReplicaStates {
    /// Opens the side file of a directory, created if missing, and reset if the machine was booted
    /// since.
    pub fn open_or_create(
        directory: OwnDirectory,
        mode: u32,
        signals: Signals<'_>,
    ) -> Result<Self> {
        let path = directory.shown(FILE_NAME);
        let file = loop {
            if let Some(file) = directory.open_file(FILE_NAME, access(true))? {
                break file;
            }
            let fill = |path: &Path, file: File| {
                let written = fault::call!("replicas.file.write", fill(&file));
                written.map_err(|e| Error::io("cannot make", path, e))
            };
            directory.create_filled(FILE_NAME, mode, fill, |from, to| {
                fault::call!("replicas.file.publish", names::publish(from, to))
            })?;
        };
        let mut found = Self::map(&file, path, true)?;
        found.directory = Some(directory);
        found.renew(signals)?;
        Ok(found)
    }

    /// Opens the side file of the queue in a directory; None if it was never replicated.
    pub fn open_existing(directory: &Path, is_writable: bool) -> Result<Option<Self>> {
        let path = directory.join(FILE_NAME);
        let file = files::open(&path, access(is_writable))?;
        file.map(|file| Self::map(&file, path, is_writable)).transpose()
    }

    fn map(file: &File, path: PathBuf, is_writable: bool) -> Result<Self> {
        let found = fault::call!("replicas.file.stat", file.metadata());
        let found = found.map_err(|e| Error::io("cannot look at", &path, e))?;
        HEADER.check_length(found.len(), &path)?;
        let failed = |e| Error::io("cannot map", &path, e);
        if is_writable {
            files::reserve(file, 0, LEN).map_err(failed)?; // stores then cannot hit a full disk
        }
        let cells = Cells::new(Mapping::new(file, LEN, is_writable).map_err(failed)?);
        HEADER.check_magic(cells.load_acquire(layout::MAGIC_AT), &path)?;
        let (identity, boot) = ((found.dev(), found.ino()), clock::boot_id());
        Ok(Self { cells, path, directory: None, identity, is_writable, boot })
    }

    /// Opens the file again, for locking parts of it.
    fn to_lock(&self) -> Result<LockedFile> {
        let file = LockedFile::open(|| match &self.directory {
            Some(directory) => directory.open_file(FILE_NAME, access(true)),
            None => files::open(&self.path, access(true)),
        })?;
        file.ok_or_else(|| Error::gone("removed", &self.path))
    }

    /// Finds the side file of the queue in a directory, for an appender, which may not be allowed
    /// to write to it. A removed file stays known: its lease will expire.
    pub fn look_for(directory: &Path, known: &mut Option<Arc<Self>>) -> Result<()> {
        if known.as_ref().is_some_and(|known| known.is_in(directory)) {
            return Ok(());
        }
        if let Some(found) = Self::open_to_wait(directory)? {
            *known = Some(Arc::new(found));
        }
        Ok(())
    }

    /// Like [`Self::open_existing`], for writing if that is allowed.
    pub fn open_to_wait(directory: &Path) -> Result<Option<Self>> {
        for_writing_if_allowed(|is_writable| Self::open_existing(directory, is_writable))
    }

    /// Like [`Self::open_to_wait`], in an open directory.
    pub fn open_to_wait_in(directory: &OwnDirectory) -> Result<Option<Self>> {
        for_writing_if_allowed(|is_writable| {
            let file = directory.open_file(FILE_NAME, access(is_writable))?;
            let path = directory.shown(FILE_NAME);
            file.map(|file| Self::map(&file, path, is_writable)).transpose()
        })
    }

    /// Invalidates content from before the machine was booted.
    fn renew(&self, signals: Signals<'_>) -> Result<()> {
        if self.is_current() {
            return Ok(());
        }
        let file = self.to_lock()?;
        let _lock = file.lock(&self.path, RENEWAL, RENEWAL_TIMEOUT, signals)?;
        if self.is_current() {
            return Ok(()); // another process has done so
        }
        for slot in 0..SLOTS {
            self.store(at(slot, layout::CONNECTED), 0);
            self.store(at(slot, layout::ACKNOWLEDGED), NO_INDEX);
            self.store(at(slot, layout::SENT), NO_INDEX);
        }
        self.store(layout::ELSEWHERE_AT, 0);
        if self.lease_end() != 0 {
            self.store(layout::LEASE_AT, OVER);
        }
        self.store(layout::BOOT_AT, self.boot);
        Ok(())
    }

    /// Whether the content is of the current boot of the machine.
    fn is_current(&self) -> bool {
        self.cells.load_acquire(layout::BOOT_AT) == self.boot
    }

    /// Whether the directory at a path still has this very file (same inode).
    #[must_use]
    pub fn is_in(&self, directory: &Path) -> bool {
        let path = directory.join(FILE_NAME);
        fault::call!("replicas.file.stat", std::fs::symlink_metadata(path))
            .is_ok_and(|found| (found.dev(), found.ino()) == self.identity)
    }

    pub(super) fn store(&self, position: u64, value: u64) {
        self.cells.store_release(position, value, step!("replicas.store"));
    }

    pub(super) fn add(&self, position: u64, step: Step) {
        self.cells.add_acq_rel(position, 1, step);
    }

    pub(super) fn word_at(&self, position: u64) -> u64 {
        self.cells.load_acquire(position)
    }

    /// When the lease ends; 0 if none is needed.
    #[must_use]
    pub fn lease_end(&self) -> u64 {
        self.cells.load_acquire(layout::LEASE_AT)
    }

    /// Sets when the lease ends.
    pub fn set_lease_end(&self, end_ns: u64) -> Result<()> {
        self.check_writable()?;
        self.store(layout::LEASE_AT, end_ns);
        Ok(())
    }

    /// An error if the lease has expired.
    #[inline]
    pub fn check_lease(&self) -> Result<()> {
        if self.lease_end() == 0 { Ok(()) } else { self.check_end() }
    }

    fn check_end(&self) -> Result<()> {
        // In this order, so that an end renewed meanwhile is never taken for one of another boot.
        let (is_current, end) = (self.is_current(), self.lease_end());
        let now = clock::boot_time_ns();
        if end == 0 || is_current && now < end {
            return Ok(());
        }
        let over = is_current.then(|| Duration::from_nanos(now - end));
        Err(Error::LeaseExpired { path: self.path.clone(), over })
    }

    /// The number of the source's epoch.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.cells.load_acquire(layout::EPOCH_AT)
    }

    pub(super) fn check_writable(&self) -> Result<()> {
        let refused = || Error::ReadOnly {
            what: "a change to the states of replicas",
            path: self.path.clone(),
        };
        self.is_writable.then_some(()).ok_or_else(refused)
    }

    /// Becomes the process that stores what replicas acknowledge.
    ///
    /// # Errors
    /// Another source of the queue is alive.
    pub fn lock_source(&self, may_wait: &Detached) -> Result<SourceLock> {
        self.check_writable()?;
        let file = self.to_lock()?;
        match file.keep(&self.path, SOURCE, Kind::Exclusive, Duration::ZERO, may_wait) {
            Ok(()) => {}
            Err(Error::FileLocked { .. }) => {
                let what =
                    "another source sends the messages of this queue; stop it first:".to_owned();
                return Err(Error::WriterInUse { what, path: self.path.clone() });
            }
            Err(error) => return Err(error),
        }
        // Left by a source that was killed.
        (0..SLOTS).for_each(|slot| self.store(at(slot, layout::CONNECTED), 0));
        Ok(SourceLock(file))
    }

    /// The slot of the replica of this name, taken if it has none; called by the source's process.
    ///
    /// # Errors
    /// All slots belong to other replicas.
    pub fn slot_of(&self, name: &str, address: &str) -> Result<u64> {
        self.check_writable()?;
        let (name, address) = (text(name)?, text(address)?);
        let has_name = |slot: &u64| self.text(*slot, layout::NAME).is_ok_and(|it| it == name);
        let taken = |slot: &u64| self.field(*slot, layout::STATE) != layout::FREE;
        let known = (0..SLOTS).find(|slot| taken(slot) && has_name(slot));
        let is_gone = |slot: &u64| {
            self.field(*slot, layout::STATE) == layout::OBSERVER
                && self.field(*slot, layout::CONNECTED) == 0
        };
        let slot = known
            .or_else(|| (0..SLOTS).find(|slot| !taken(slot)))
            .or_else(|| (0..SLOTS).find(is_gone))
            .ok_or_else(|| Error::ReplicasFull { path: self.path.clone(), limit: SLOTS })?;
        let version = self.field(slot, layout::VERSION) | 1;
        self.store(at(slot, layout::VERSION), version);
        if known.is_none() {
            self.store(at(slot, layout::STATE), layout::OBSERVER);
            self.store(at(slot, layout::ACKNOWLEDGED), NO_INDEX);
            self.store(at(slot, layout::SENT), NO_INDEX);
            self.store(at(slot, layout::TIME), 0);
            self.put_text(at(slot, layout::NAME), name);
        }
        self.put_text(at(slot, layout::ADDRESS), address);
        self.store(at(slot, layout::VERSION), version.wrapping_add(1));
        Ok(slot)
    }

    /// Stores whether a replica is connected, and what its acknowledgements mean.
    pub fn note_connection(&self, slot: u64, is_connected: bool, is_synced: bool) -> Result<()> {
        let slot = self.checked(slot)?;
        self.store(at(slot, layout::SYNCED), u64::from(is_synced));
        self.store(at(slot, layout::CONNECTED), u64::from(is_connected));
        Ok(())
    }

    /// Stores the last index that a replica was sent, and the last one it has acknowledged, None
    /// before the first. Wakes waiters; returns whether there was one.
    pub fn note(
        &self,
        slot: u64,
        sent: Option<i64>,
        acknowledged: Option<i64>,
        time_ns: u64,
    ) -> Result<bool> {
        let slot = self.checked(slot)?;
        self.store(at(slot, layout::SENT), word_of(sent));
        self.store(at(slot, layout::TIME), time_ns);
        let position = at(slot, layout::ACKNOWLEDGED);
        if self.cells.load_acquire(position) == word_of(acknowledged) {
            return Ok(false);
        }
        self.store(position, word_of(acknowledged));
        Ok(self.wake())
    }

    /// Adds a replica to the in-sync set, or removes it.
    pub fn set_member(&self, slot: u64, is_member: bool) -> Result<()> {
        let slot = self.checked(slot)?;
        let state = if is_member { layout::MEMBER } else { layout::OBSERVER };
        self.store(at(slot, layout::STATE), state);
        self.wake(); // waiters for all members now wait for another set
        Ok(())
    }

    /// Removes the replica of this name from the in-sync set; false if it was not in it. Any
    /// process may call this.
    pub fn forget(&self, name: &str) -> Result<bool> {
        self.check_writable()?;
        let mut found = false;
        for slot in 0..SLOTS {
            if self.field(slot, layout::STATE) != layout::FREE
                && self.text(slot, layout::NAME)? == name.as_bytes()
            {
                let (position, step) = (at(slot, layout::STATE), step!("replicas.store"));
                let (old, new) = (layout::MEMBER, layout::OBSERVER);
                found |= self.cells.swap_acq_rel(position, old, new, step).is_ok();
            }
        }
        self.wake();
        Ok(found)
    }

    fn checked(&self, slot: u64) -> Result<u64> {
        self.check_writable()?;
        let refused = || Error::Invalid(format!("no such slot: slot={slot} slots={SLOTS}"));
        (slot < SLOTS).then_some(slot).ok_or_else(refused)
    }

    /// All replicas.
    pub fn replicas(&self) -> Result<Vec<Replica>> {
        let taken = |slot: &u64| self.field(*slot, layout::STATE) != layout::FREE;
        (0..SLOTS).filter(taken).map(|slot| self.replica(slot)).collect()
    }

    fn replica(&self, slot: u64) -> Result<Replica> {
        let string = |field| {
            let bytes = self.text(slot, field)?;
            String::from_utf8(bytes).map_err(|bad| {
                let found = format!("{:02x?}", bad.as_bytes());
                corrupt(&self.path, at(slot, field), found, "UTF-8".to_owned())
            })
        };
        Ok(Replica {
            name: string(layout::NAME)?,
            address: string(layout::ADDRESS)?,
            is_member: self.field(slot, layout::STATE) == layout::MEMBER,
            is_connected: self.field(slot, layout::CONNECTED) == 1,
            is_synced: self.field(slot, layout::SYNCED) == 1,
            acknowledged: self.acknowledged_by(slot),
            sent: index_of(self.field(slot, layout::SENT)),
            time_ns: self.field(slot, layout::TIME),
        })
    }

    /// The index up to which the members of the in-sync set have all messages; None if they
    /// have none.
    #[must_use]
    pub fn acknowledged(&self, quorum: Quorum) -> Option<i64> {
        let is_member = |slot: &u64| self.field(*slot, layout::STATE) == layout::MEMBER;
        quorum
            .reached((0..SLOTS).filter(is_member).map(|slot| self.acknowledged_by(slot)).collect())
    }

    /// The index up to which another machine has all messages: a member of the in-sync set, or the
    /// source that this queue was a replica of. None if that is not known.
    #[must_use]
    pub fn elsewhere(&self) -> Option<i64> {
        let noted = self.noted_elsewhere().filter(|_| self.is_current());
        noted.max(self.acknowledged(Quorum::AtLeast(1)))
    }

    pub(super) fn noted_elsewhere(&self) -> Option<i64> {
        self.word_at(layout::ELSEWHERE_AT).checked_sub(1).and_then(index_of)
    }

    /// Notes that the source has the messages of this replica up to an index.
    pub fn note_elsewhere(&self, index: i64) -> Result<()> {
        self.check_writable()?;
        self.store(layout::ELSEWHERE_AT, index.cast_unsigned().wrapping_add(1));
        Ok(())
    }

    /// How many replicas are in the in-sync set.
    #[must_use]
    pub fn members(&self) -> usize {
        (0..SLOTS).filter(|slot| self.field(*slot, layout::STATE) == layout::MEMBER).count()
    }

    fn acknowledged_by(&self, slot: u64) -> Option<i64> {
        index_of(self.field(slot, layout::ACKNOWLEDGED)).filter(|_| self.is_current())
    }

    fn field(&self, slot: u64, field: u64) -> u64 {
        self.word_at(at(slot, field))
    }

    /// The bytes of a text, read while it did not change.
    fn text(&self, slot: u64, field: u64) -> Result<Vec<u8>> {
        let (position, mut tries) = (at(slot, field), 0);
        loop {
            let before = self.field(slot, layout::VERSION);
            let length = self.cells.load_acquire(position);
            if length <= TEXT_MAX as u64 {
                let bytes = self.cells.copy_out_relaxed(position + 8, length);
                std::sync::atomic::fence(std::sync::atomic::Ordering::Acquire);
                tries += 1;
                // If it stays odd, the source was killed while changing the text: use the present
                // bytes.
                if before == self.field(slot, layout::VERSION) && before.is_multiple_of(2)
                    || tries == 1000
                {
                    return Ok(bytes);
                }
                std::thread::yield_now();
                continue;
            }
            let expected = format!("at most {TEXT_MAX}");
            return Err(corrupt(&self.path, position, length.to_string(), expected));
        }
    }

    fn put_text(&self, position: u64, bytes: &[u8]) {
        self.cells.store_each_relaxed(position + 8, bytes, step!("replicas.store"));
        self.store(position, bytes.len() as u64);
    }

    /// The word by which waiters sleep.
    #[must_use]
    pub const fn word(&self) -> Word<'_> {
        Word::new(&self.cells, layout::WORD_AT)
    }

    /// The argument to sleep on the word while it has this value.
    pub(super) fn expected(&self, value: u32) -> Expected<'_> {
        Expected { word: self.cells.word(layout::WORD_AT), value, is_shared: true }
    }

    /// Whether the file can be stored to.
    pub(super) const fn is_writable(&self) -> bool {
        self.is_writable
    }

    /// Wakes waiters; returns whether there was one.
    pub(super) fn wake(&self) -> bool {
        word::settle(); // SYNC POINT: P1, the acknowledged index, before P2, the word
        let is_awaited = self.word().clear();
        if is_awaited {
            futex::wake(self.cells.word(layout::WORD_AT), true);
        }
        is_awaited
    }
}

fn for_writing_if_allowed<T>(open: impl Fn(bool) -> Result<T>) -> Result<T> {
    match open(true) {
        Err(Error::Io { source, .. }) if is_refused(&source) => open(false),
        opened => opened,
    }
}

fn is_refused(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem)
}

pub(super) const fn word_of(index: Option<i64>) -> u64 {
    match index {
        Some(index) => index.cast_unsigned(),
        None => NO_INDEX,
    }
}

pub(super) fn index_of(word: u64) -> Option<i64> {
    i64::try_from(word).ok()
}

fn text(text: &str) -> Result<&[u8]> {
    if text.is_empty() || text.len() > TEXT_MAX {
        let length = text.len();
        return Err(Error::Invalid(format!(
            "a name or an address has 1 to {TEXT_MAX} bytes: length={length}"
        )));
    }
    Ok(text.as_bytes())
}

const fn access(write: bool) -> Access {
    Access { write, create_mode: None }
}

fn fill(file: &File) -> io::Result<()> {
    files::extend(file, LEN)?;
    files::reserve(file, 0, LEN)?;
    let header = [MAGIC.to_le_bytes(), clock::boot_id().to_le_bytes()].concat();
    file.write_all_at(&header, layout::MAGIC_AT)?;
    files::sync(file)
}

fn corrupt(path: &Path, position: u64, found: String, expected: String) -> Error {
    Error::corrupt(HEADER.otherwise, path, position, found, expected)
}
