//! The file of a ring: completed before it gets its name, and checked before it is trusted.

use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use super::format::{
    BEGUN, CAPACITY_AT, DRAINED_SLOTS, Descriptor, HEADER, HIGH_WATER, IDENTITIES, IDENTITY_AT,
    LAST_PRODUCER, Layout, MAGIC, NUMBER_AT, OLDER, SLOTS_AT, SUCCESSOR, TAIL, VERSION, VERSION_AT,
};
use super::protocol::Ring;
use crate::memory::window::{Region, Window};
use crate::os::detached::Detached;
use crate::os::files::{self, Access};
use crate::os::interrupt::Signals;
use crate::os::locked_file::{LockedFile, patiently};
use crate::os::names;
use crate::os::own_directory::OwnDirectory;
use crate::os::process;
use crate::os::range_lock::{self, Kind, Range};
use crate::probe::fault::{self, step};
use crate::{Error, Result};

/// The name of the ring that is drained, which Java ignores.
pub const FILE_NAME: &str = "async.ring";
/// The names of later rings: this prefix and suffix, with the number in the predecessor in between.
const PREFIX: &str = "async-";
const SUFFIX: &str = ".ring";
/// How often to retry when a ring is replaced by its successor while it is opened.
const RENAMES: usize = 20;
/// The lock of the process that drains the ring.
const DRAINER: Range = Range { start: 0, length: 1 };
/// The locks of all producers.
const PRODUCERS: Range = Range { start: 1, length: LAST_PRODUCER.cast_signed() };
/// How long another process may take to open the ring.
const OPENING: Duration = Duration::from_secs(10);
/// The lock of the process that opens the ring, and examines it if no other process has it open.
const OPENER: Range = Range { start: 1 + LAST_PRODUCER.cast_signed(), length: 1 };

/// An open ring, mapped and populated.
pub struct RingFile {
    dir: Arc<OwnDirectory>,
    pub path: PathBuf,
    pub(crate) region: Arc<Region>,
    pub layout: Layout,
    /// Its number in the chain: its successor has the next one.
    pub number: u64,
    /// A separate description that is not mapped: the drainer's and the producer's locks end with
    /// it.
    lock: LockedFile,
    /// This process's number as a producer: it has locked that byte.
    pub producer: u32,
    /// How many threads of this process are putting messages in.
    pub busy: AtomicU64,
    /// Whether no other process had it open.
    pub is_alone: bool,
}

impl RingFile {
    /// Opens the ring that is being drained; None if there is none. No other process opens it
    /// before [`RingFile::is_opened`].
    pub fn open(dir: &Arc<OwnDirectory>, signals: &mut Signals<'_>) -> Result<Option<Self>> {
        for _ in 0..RENAMES {
            match Self::open_at(dir, FILE_NAME, signals) {
                Err(error) if is_gone(&error) => {}
                Err(Error::Unsupported(_)) if remove_older(dir)? => {}
                Ok(Some(head)) if !head.words().has_begun() => return Err(head.without_beginning()),
                opened => return opened,
            }
        }
        Err(Error::gone("replaced while it was opened", &dir.shown(FILE_NAME)))
    }

    /// Opens a ring by its file's name.
    fn open_at(
        dir: &Arc<OwnDirectory>,
        name: &str,
        signals: &mut Signals<'_>,
    ) -> Result<Option<Self>> {
        let (path, access) = (dir.shown(name), Access { write: true, create_mode: None });
        let Some(file) = dir.open_file(name, access)? else { return Ok(None) };
        let again = LockedFile::open(|| dir.open_again(&file, name, access).map(Some))?;
        let lock = again.ok_or_else(|| Error::gone("removed", &path))?;
        let window = Window::new(&path, file, true)?;
        let header = Header::read(&window)?;
        // No other process opens the ring meanwhile.
        patiently(signals.again(), OPENING, |may_wait, step| {
            lock.keep(&path, OPENER, Kind::Exclusive, step, may_wait)
        })?;
        let failed = |e| Error::io("cannot lock", &path, e);
        let is_alone = !range_lock::is_held_elsewhere(&lock, PRODUCERS).map_err(failed)?;
        let producer = take_number(&lock).map_err(failed)?;
        let mut region = window.region();
        window.reserve(&mut region, 0, header.layout.file_len())?;
        let (layout, number) = (header.layout, header.number);
        let (dir, busy) = (Arc::clone(dir), AtomicU64::new(0));
        Ok(Some(Self { dir, path, region, layout, number, lock, producer, busy, is_alone }))
    }

    /// Lets other processes open it.
    #[must_use]
    pub fn is_opened(self) -> Self {
        self.lock.release(OPENER);
        self
    }

    /// The words.
    #[must_use]
    pub fn words(&self) -> Ring<'_> {
        Ring::new(&self.region, self.layout)
    }

    /// The error for a ring that has taken its predecessor's name, but lacks the header words that
    /// were stored before that.
    fn without_beginning(&self) -> Error {
        let what = "the ring does not record how many messages preceded it, as a power cut may \
                    leave it";
        let expected = "1 (its messages may be in the queue already: move the file away, and append \
                        those that the queue lacks)";
        Error::corrupt(what, &self.path, BEGUN, "0", expected)
    }

    /// Opens the successor, as [`RingFile::open`] does; None if it is not there under its own name.
    pub fn open_successor(&self, signals: &mut Signals<'_>) -> Result<Option<Self>> {
        let Some(name) = self.words().successor() else { return Ok(None) };
        let next = unless_gone(Self::open_at(&self.dir, &file_of(name), signals))?;
        Ok(next.filter(|next| Some(next.number) == self.number.checked_add(1)))
    }

    /// Opens the successor, or the ring being drained if that is a later one.
    pub fn open_after(&self, mut signals: Signals<'_>) -> Result<Self> {
        for _ in 0..RENAMES {
            if let Some(next) = self.open_successor(&mut signals)? {
                return Ok(next.is_opened());
            }
            let head = Self::open(&self.dir, &mut signals)?;
            if let Some(head) = head.filter(|head| head.number > self.number) {
                return Ok(head.is_opened());
            }
        }
        Err(Error::gone("cannot open the ring's next file", &self.path))
    }

    /// Creates a successor, unless there is one. No process puts messages into it before this ring
    /// is closed.
    pub fn make_successor(&self, layout: Layout, mode: u32, may_wait: &Detached) -> Result<()> {
        if self.words().successor().is_some() {
            return Ok(());
        }
        let (name, file) = create_successor(&self.dir, mode)?;
        let path = self.dir.shown(&file_of(name));
        let high_water = self.words().high_water();
        let (number, identity) = (self.number.saturating_add(1), self.words().identity());
        let words = [(NUMBER_AT, number), (IDENTITY_AT, identity), (HIGH_WATER, high_water)];
        let filled = fill(&path, file, layout, &words, may_wait).and_then(|()| self.sync_names());
        if filled.is_err() || self.words().name_successor(name) != name {
            let _ = remove(&self.dir, &file_of(name));
        }
        filled
    }

    /// Syncs the directory: no ring may name a successor whose file a power cut could lose.
    fn sync_names(&self) -> Result<()> {
        fault::call!("ring.dir.sync", files::sync_directory(&self.dir.place_of("")))
            .map_err(|e| Error::io("cannot sync", &self.dir.shown(""), e))
    }

    /// Whether [`FILE_NAME`] refers to this ring's file (same inode).
    pub fn is_head(&self) -> Result<bool> {
        Ok(self.head()? == Some(self.identity()?))
    }

    /// Device and inode number of the ring named [`FILE_NAME`].
    pub fn head(&self) -> Result<Option<(u64, u64)>> {
        self.dir.identity_of(FILE_NAME)
    }

    /// Device and inode number.
    pub fn identity(&self) -> Result<(u64, u64)> {
        files::identity(&self.lock).map_err(|e| Error::io("cannot look at", &self.path, e))
    }

    /// Whether the file was removed.
    pub fn is_removed(&self) -> Result<bool> {
        files::is_removed(&self.lock).map_err(|e| Error::io("cannot look at", &self.path, e))
    }

    /// The directory that it is in.
    #[must_use]
    pub const fn directory(&self) -> &Arc<OwnDirectory> {
        &self.dir
    }

    /// Syncs the header, which must be durable before the ring takes [`FILE_NAME`].
    pub fn sync_header(&self) -> Result<()> {
        sync_up_to(HEADER, &self.region, &self.path)
    }

    /// Passes the name of this ring, which is drained, to its successor. The caller holds both
    /// drainer locks: renaming requires the lock of the ring named [`FILE_NAME`].
    pub fn hand_over(&self) -> Result<()> {
        let Some(name) = self.words().successor() else { return Ok(()) };
        let (from, to) = (self.dir.place_of(&file_of(name)), self.dir.place_of(FILE_NAME));
        fault::call!("ring.file.rename", files::rename(&from, &to))
            .map_err(|e| Error::io("cannot rename", &self.dir.shown(&file_of(name)), e))
    }

    /// The number of the ring named [`FILE_NAME`], and whether it is closed; read without opening
    /// the ring.
    pub fn look_at_head(dir: &OwnDirectory) -> Result<Option<(u64, bool)>> {
        let found = map_at(dir, FILE_NAME)?;
        Ok(found
            .map(|(header, region)| (header.number, Ring::new(&region, header.layout).is_closed())))
    }

    /// Maps the rings of a directory for inspection, oldest first, and changes nothing.
    pub fn map_read_only(dir: &Path) -> Result<Vec<(Arc<Region>, Layout)>> {
        let dir = OwnDirectory::open(dir)?;
        for _ in 0..RENAMES {
            let Some((header, region)) = map_at(&dir, FILE_NAME)? else { return Ok(Vec::new()) };
            let mut chain = vec![(region, header.layout)];
            let mut number = header.number;
            loop {
                let words = chain.last().map(|(region, layout)| Ring::new(region, *layout));
                let closed = words.filter(|words| words.is_closed());
                let Some(name) = closed.and_then(Ring::successor) else { return Ok(chain) };
                match map_at(&dir, &file_of(name))? {
                    Some((next, region)) if Some(next.number) == number.checked_add(1) => {
                        chain.push((region, next.layout));
                        number = next.number;
                    }
                    _ => break, // it took `FILE_NAME` meanwhile
                }
            }
        }
        Err(Error::gone("cannot open the ring's next file", &dir.shown(FILE_NAME)))
    }

    /// Opens the ring that is being drained, or makes one of this layout.
    pub fn open_or_create(
        dir: &Arc<OwnDirectory>,
        layout: Layout,
        mode: u32,
        mut signals: Signals<'_>,
    ) -> Result<Self> {
        let words = [(NUMBER_AT, 1), (IDENTITY_AT, process::random() % IDENTITIES), (BEGUN, 1)];
        let publish =
            |from: &Path, to: &Path| fault::call!("ring.file.publish", names::publish(from, to));
        loop {
            if let Some(found) = Self::open(dir, &mut signals)? {
                return Ok(found);
            }
            // If another thread or process was faster, its ring is opened.
            let may_wait = signals.again().deferred();
            let fill = |path: &Path, file| fill(path, file, layout, &words, may_wait);
            dir.create_filled(FILE_NAME, mode, fill, publish)?;
        }
    }

    /// Takes the drainer's lock until [`RingFile::release`]; false if another holder has it.
    pub fn try_hold(&self) -> Result<bool> {
        self.lock
            .try_keep(DRAINER, Kind::Exclusive)
            .map_err(|e| Error::io("cannot lock", &self.path, e))
    }

    /// Whether the producer of an unfinished message is dead: its lock ended with it.
    pub fn is_dead(&self, producer: u32) -> Result<bool> {
        if producer == self.producer {
            // A dead process had this number before, unless a thread of this one is working.
            return Ok(self.busy.load(Ordering::SeqCst) == 0);
        }
        range_lock::is_held_elsewhere(&self.lock, byte_of(producer))
            .map(|is_held| !is_held)
            .map_err(|e| Error::io("cannot look at", &self.path, e))
    }

    /// Releases the drainer's lock.
    pub fn release(&self) {
        self.lock.release(DRAINER);
    }
}

const fn byte_of(producer: u32) -> Range {
    Range { start: producer as i64, length: 1 }
}

/// Chooses a number that no other producer has and locks its byte.
fn take_number(lock: &LockedFile) -> std::io::Result<u32> {
    loop {
        let number = u32::try_from(process::random() & LAST_PRODUCER).unwrap_or_default();
        if number != 0 && lock.try_keep(byte_of(number), Kind::Exclusive)? {
            return Ok(number);
        }
    }
}

/// Makes a successor's file under an unused name.
fn create_successor(dir: &OwnDirectory, mode: u32) -> Result<(u64, File)> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    loop {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = u64::from(process::pid()) << 32 | u64::from(number);
        if let Some(file) = dir.create_new(&file_of(name), mode)? {
            return Ok((name, file));
        }
    }
}

fn file_of(name: u64) -> String {
    format!("{PREFIX}{name:x}{SUFFIX}")
}

fn remove(dir: &OwnDirectory, name: &str) -> Result<()> {
    fault::call!("ring.file.remove", std::fs::remove_file(dir.place_of(name)))
        .map_err(|e| Error::io("cannot remove", &dir.shown(name), e))
}

/// Removes files of processes that died before a ring named their file as its successor.
pub fn remove_left(dir: &OwnDirectory, is_dead: impl Fn(u32) -> bool) -> Result<()> {
    let failed = |e| Error::io("cannot list", &dir.shown(""), e);
    let found = fault::call!("ring.dir.read", dir.names()).map_err(failed)?;
    for name in found.iter().filter_map(|name| name.to_str()) {
        // It never got its name, so no other process has opened it.
        if maker_of(name).is_some_and(&is_dead) {
            remove(dir, name)?;
        }
    }
    let mut names: Vec<_> = found.iter().filter_map(|name| name_of(name)).collect();
    // In this order: a dead process can no longer name a successor.
    names.retain(|name| is_dead(u32::try_from(name >> 32).unwrap_or_default()));
    if names.is_empty() {
        return Ok(());
    }
    let Some(known) = successors(dir)? else { return Ok(()) };
    for name in names.iter().filter(|name| !known.contains(name)) {
        remove_if_unused(dir, &file_of(*name))?;
    }
    Ok(())
}

/// The process that made a file without its final name.
fn maker_of(name: &str) -> Option<u32> {
    let rest = name.strip_prefix(FILE_NAME)?.strip_prefix('.')?;
    rest.split('.').next()?.parse().ok()
}

fn name_of(file: &std::ffi::OsStr) -> Option<u64> {
    let name = file.to_str()?.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?;
    u64::from_str_radix(name, 16).ok()
}

/// Removes a ring of an older version if it is empty and unused.
fn remove_older(dir: &OwnDirectory) -> Result<bool> {
    let access = Access { write: true, create_mode: None };
    let Some(file) = dir.open_file(FILE_NAME, access)? else { return Ok(true) };
    let failed = |e| Error::io("cannot lock", &dir.shown(FILE_NAME), e);
    let path = dir.shown(FILE_NAME);
    let again = LockedFile::open(|| dir.open_again(&file, FILE_NAME, access).map(Some))?;
    let Some(lock) = again else { return Ok(true) };
    // Each program that uses it has a thread that holds this lock or waits for it.
    if !lock.try_keep(DRAINER, Kind::Exclusive).map_err(failed)? {
        return Ok(false);
    }
    let window = Window::new(&path, file, false)?;
    let words = Words::read(&window)?;
    let is_empty = words.at(TAIL) == words.at(DRAINED_SLOTS) && words.at(SUCCESSOR) == 0;
    if words.at(0) != MAGIC || !OLDER.contains(&words.at(VERSION_AT)) || !is_empty {
        return Ok(false);
    }
    remove(dir, FILE_NAME).map(|()| true)
}

/// The names of the rings after the one being drained; None if not all can be found now.
fn successors(dir: &OwnDirectory) -> Result<Option<Vec<u64>>> {
    let (mut file, mut known) = (FILE_NAME.to_owned(), Vec::new());
    while let Some((header, region)) = map_at(dir, &file)? {
        let Some(name) = Ring::new(&region, header.layout).successor() else {
            return Ok(Some(known));
        };
        if known.contains(&name) {
            return Ok(None);
        }
        known.push(name);
        file = file_of(name);
    }
    Ok(None)
}

/// Removes a ring that is incomplete or has never held a message.
fn remove_if_unused(dir: &OwnDirectory, name: &str) -> Result<()> {
    let access = Access { write: false, create_mode: None };
    let Some(file) = dir.open_file(name, access)? else { return Ok(()) };
    let window = Window::new(&dir.shown(name), file, false)?;
    let mut magic = [0; 8];
    window.read_at(&mut magic, 0)?;
    let is_whole = magic != [0; 8];
    if is_whole && Ring::new(&window.region(), Header::read(&window)?.layout).tail() > 0 {
        return Ok(());
    }
    remove(dir, name)
}

fn map_at(dir: &OwnDirectory, name: &str) -> Result<Option<(Header, Arc<Region>)>> {
    let access = Access { write: false, create_mode: None };
    let Some(file) = dir.open_file(name, access)? else { return Ok(None) };
    let window = Window::new(&dir.shown(name), file, false)?;
    Ok(Some((Header::read(&window)?, window.region())))
}

fn unless_gone(opened: Result<Option<RingFile>>) -> Result<Option<RingFile>> {
    match opened {
        Err(error) if is_gone(&error) => Ok(None),
        opened => opened,
    }
}

/// Whether the file was renamed between two checks of its name.
fn is_gone(error: &Error) -> bool {
    matches!(error, Error::Io { source, .. } if source.kind() == ErrorKind::NotFound)
}

/// Syncs a ring's start.
fn sync_up_to(end: u64, region: &Region, path: &Path) -> Result<()> {
    fault::call!("ring.header.sync", region.memory().sync(0, end))
        .map_err(|e| Error::io("cannot sync", path, e))
}

/// Stores all words of a new ring. The magic comes last: a partial ring is not taken for a ring.
/// They are synced before the ring can be found, so a power cut can lose messages in it, but not
/// its header.
fn fill(
    path: &Path,
    file: File,
    layout: Layout,
    words: &[(u64, u64)],
    may_wait: &Detached,
) -> Result<()> {
    let window = Window::new(path, file, true)?;
    window.grow(may_wait, layout.file_len(), Duration::ZERO)?;
    let mut region = window.region();
    window.reserve(&mut region, 0, layout.file_len())?;
    for slot in 0..layout.slots {
        let empty = Descriptor::Empty(slot).word();
        region.store_release(layout.descriptor(slot), empty, step!("ring.header.store"));
    }
    let shape = [(VERSION_AT, VERSION), (CAPACITY_AT, layout.capacity), (SLOTS_AT, layout.slots)];
    for (at, word) in shape.iter().chain(words).chain(&[(0, MAGIC)]) {
        region.store_release(*at, *word, step!("ring.header.store"));
    }
    sync_up_to(layout.byte(0), &region, path)
}

/// The words of a header.
struct Words {
    bytes: Vec<u8>,
    /// The file is shorter than a header.
    is_cut: bool,
}

impl Words {
    fn read(window: &Window) -> Result<Self> {
        let mut bytes = vec![0; usize::try_from(HEADER).unwrap_or_default()];
        let is_cut = window.read_at(&mut bytes, 0)? < bytes.len();
        Ok(Self { bytes, is_cut })
    }

    fn at(&self, at: u64) -> u64 {
        let at = usize::try_from(at).unwrap_or_default();
        let mut word = [0; 8];
        word.copy_from_slice(&self.bytes[at..at + 8]);
        u64::from_le_bytes(word)
    }
}

/// The content of the header.
struct Header {
    layout: Layout,
    number: u64,
}

impl Header {
    /// An error if that is impossible, or if the file is shorter.
    fn read(window: &Window) -> Result<Self> {
        let words = Words::read(window)?;
        let word = |at| words.at(at);
        let corrupt = |position, found, expected: &str| {
            let what = "not a ring of asynchronous appends";
            Error::corrupt(what, window.path(), position, found, expected)
        };
        if words.is_cut || word(0) != MAGIC {
            return Err(corrupt(0, format!("{:#x}", word(0)), "QUIRERNG"));
        }
        if word(VERSION_AT) != VERSION {
            return Err(Error::Unsupported(format!(
                "a ring of another version: file={} version={} known={VERSION} (open the queue \
                 with the version of Quire that created it, which drains the ring, and close it)",
                window.path().display(),
                word(VERSION_AT)
            )));
        }
        let layout = Layout { capacity: word(CAPACITY_AT), slots: word(SLOTS_AT) };
        if !layout.is_credible() {
            let found = format!("capacity {} slots {}", layout.capacity, layout.slots);
            return Err(corrupt(
                CAPACITY_AT,
                found,
                "a power of two, and a slot for each 32 bytes",
            ));
        }
        if window.file_len() < layout.file_len() {
            let found = format!("{} bytes", window.file_len());
            return Err(corrupt(0, found, &format!("{} bytes", layout.file_len())));
        }
        Ok(Self { layout, number: word(NUMBER_AT) })
    }
}
