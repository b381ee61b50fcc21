//! Files and their space: safe opening, reserving blocks, identifying file systems.

use std::fs::{File, Metadata, OpenOptions, Permissions};
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

#[cfg(target_os = "linux")]
use rustix::fs::{FallocateFlags, SeekFrom};
use rustix::fs::{Timespec, Timestamps, UTIME_NOW};
#[cfg(target_os = "linux")]
use rustix::io::Errno;
use rustix::io::{FdFlags, dup2, fcntl_setfd};

use super::{lease, names};
use crate::probe::fault;
use crate::probe::recorder;
use crate::{Error, Result};

/// The granularity of searches through a file, whatever the system's page size.
pub const PAGE: u64 = PAGE_LEN as u64;
/// The same as a file position.
pub const PAGE_LEN: usize = 4096;
/// The read size of such searches, in bytes.
const CHUNK: usize = 16 * PAGE_LEN;
const ZEROS: [u8; PAGE_LEN] = [0; PAGE_LEN];

/// The system writes changes to the medium within a minute; files left alone for longer are whole.
pub const WHOLE_AFTER: Duration = Duration::from_secs(600);

const PERMISSIONS: u32 = 0o777;
const SET_IDS: u32 = 0o7000; // of a directory: new files in it belong to its group

/// How to open a file of the queue.
#[derive(Clone, Copy, Debug)]
pub struct Access {
    /// Open for writing too.
    pub write: bool,
    /// Create it if missing, with these permission bits.
    pub create_mode: Option<u32>,
}

/// Opens a regular file; None if it is missing. Never follows a symbolic link, never blocks. A file
/// opened for writing must not have another name.
pub fn open(path: &Path, access: Access) -> Result<Option<File>> {
    loop {
        if let Some(file) = lease::waiting(|| open_existing(path, access.write))? {
            return Ok(Some(file));
        }
        let Some(mode) = access.create_mode else { return Ok(None) };
        if let Some(file) = create_new(path, mode)? {
            return Ok(Some(file));
        }
    }
}

fn open_existing(path: &Path, write: bool) -> Result<Option<File>> {
    let mut options = OpenOptions::new();
    options.read(true).write(write);
    options.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_CLOEXEC);
    match fault::call!("file.open", options.open(path)) {
        Ok(file) => {
            let kind = fault::call!("file.stat", file.metadata())
                .map_err(|e| Error::io("cannot look at", path, e))?;
            if !kind.is_file() {
                return Err(not_regular(path, kind.file_type()));
            }
            if write && kind.nlink() > 1 {
                names::refuse_second(path, &file)?;
            }
            recorder::opened(&file, path);
            Ok(Some(file))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(why_not_opened(path, error)),
    }
}

/// Creates a file exclusively, for reading and writing, with these permissions whatever the umask;
/// None if the name is taken.
pub fn create_new(path: &Path, mode: u32) -> Result<Option<File>> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true).mode(mode);
    options.custom_flags(libc::O_NOFOLLOW | libc::O_CLOEXEC);
    match fault::call!("file.open", options.open(path)) {
        Ok(file) => {
            fault::call!("file.mode.set", set_mode(&file, mode))
                .map_err(|e| Error::io("cannot set the mode of", path, e))?;
            recorder::opened(&file, path);
            Ok(Some(file))
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(None),
        Err(error) => Err(Error::io("cannot make", path, error)),
    }
}

/// Sets permission bits that the umask withheld; set-ID bits stay.
fn set_mode(file: &File, mode: u32) -> io::Result<()> {
    let found = file.metadata()?.mode();
    if found & PERMISSIONS == mode & PERMISSIONS {
        return Ok(());
    }
    file.set_permissions(Permissions::from_mode(found & SET_IDS | mode & PERMISSIONS))
}

/// An unnamed file for reading and writing, in `dir`, or in the directory for temporary files if
/// this user may not write to `dir`.
pub fn without_name(dir: &Path) -> io::Result<File> {
    match without_name_in(dir) {
        Err(error) if is_not_writable(&error) => without_name_in(&std::env::temp_dir()),
        made => made,
    }
}

fn is_not_writable(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem)
}

#[cfg(target_os = "linux")]
fn without_name_in(dir: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(0o600);
    options.custom_flags(libc::O_TMPFILE | libc::O_CLOEXEC);
    match options.open(dir) {
        // Not supported by this file system or kernel.
        Err(error) if matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::EISDIR)) => {
            made_without_name(dir)
        }
        made => made,
    }
}

#[cfg(not(target_os = "linux"))]
fn without_name_in(dir: &Path) -> io::Result<File> {
    made_without_name(dir)
}

/// Creates a file and removes its name.
fn made_without_name(dir: &Path) -> io::Result<File> {
    static MADE: AtomicU64 = AtomicU64::new(0);
    let number = MADE.fetch_add(1, Ordering::Relaxed);
    let path = dir.join(format!(".quire.{}.{number}.tmp", std::process::id()));
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true).mode(0o600);
    let file = options.custom_flags(libc::O_CLOEXEC).open(&path)?;
    std::fs::remove_file(&path)?;
    Ok(file)
}

fn why_not_opened(path: &Path, error: io::Error) -> Error {
    match std::fs::symlink_metadata(path) {
        Ok(found) if !found.is_file() => not_regular(path, found.file_type()),
        _ => Error::io("cannot open", path, error),
    }
}

fn not_regular(path: &Path, kind: std::fs::FileType) -> Error {
    let found = if kind.is_dir() {
        "a directory"
    } else if kind.is_symlink() {
        "a symbolic link"
    } else if kind.is_fifo() {
        "a FIFO"
    } else {
        "a special file"
    };
    Error::NotAQueue {
        why: format!("found {found} where a regular file belongs"),
        path: path.to_path_buf(),
    }
}

/// Extends a file to at least `len` bytes by a call that cannot shrink it: even if the caller's
/// length is outdated, nothing appended by other processes is cut off.
pub fn extend(file: &File, len: u64) -> io::Result<()> {
    let Some(last) = len.checked_sub(1) else { return Ok(()) };
    reach(file, last)?;
    recorder::resized(file, len);
    Ok(())
}

/// Extends the file beyond this position. If space cannot be allocated, writes a zero byte: the
/// caller holds the lock on the file's length and found the file shorter.
fn reach(file: &File, last: u64) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    match checked(last).and_then(|last| allocate(file, last, 1)) {
        Err(error) if is_missing(&error) => {}
        reached => return reached,
    }
    file.write_all_at(&[0], last)
}

/// Converts a position to the system's signed type; an error if it does not fit.
#[cfg(target_os = "linux")]
fn checked(position: u64) -> io::Result<u64> {
    match i64::try_from(position) {
        Ok(_) => Ok(position),
        Err(_) => Err(io::Error::from_raw_os_error(libc::EFBIG)),
    }
}

/// Whether the system or the file system does not support allocating space.
#[cfg(target_os = "linux")]
fn is_missing(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::ENOSYS))
}

/// Sets the length of a file that no other process has open, or empties one under its lock.
pub fn set_len(file: &File, len: u64) -> io::Result<()> {
    file.set_len(len)?;
    recorder::resized(file, len);
    Ok(())
}

/// Creates a directory and its missing parents; returns those created.
pub fn make_directories(path: &Path, mode: u32) -> io::Result<Vec<PathBuf>> {
    use std::os::unix::fs::DirBuilderExt;
    let missing = |dir: &&Path| !dir.as_os_str().is_empty() && !dir.exists();
    let new: Vec<_> = path.ancestors().take_while(missing).map(Path::to_path_buf).collect();
    std::fs::DirBuilder::new().recursive(true).mode(mode).create(path)?;
    for made in &new {
        fault::call!("file.mode.set", set_directory_mode(made, mode))?;
    }
    Ok(new)
}

/// Creates one directory; an error if the name is taken.
pub fn make_directory(path: &Path, mode: u32) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new().mode(mode).create(path)?;
    fault::call!("file.mode.set", set_directory_mode(path, mode))?;
    recorder::made_directory(path);
    Ok(())
}

fn set_directory_mode(path: &Path, mode: u32) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(libc::O_NOFOLLOW | libc::O_DIRECTORY | libc::O_CLOEXEC);
    set_mode(&options.open(path)?, mode)
}

/// Copies a file to a new one and syncs it.
pub fn copy(from: &Path, to: &Path, mode: u32) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(libc::O_NOFOLLOW | libc::O_CLOEXEC);
    let mut source = options.open(from)?;
    let mut new = OpenOptions::new();
    new.write(true).create_new(true).mode(mode).custom_flags(libc::O_NOFOLLOW | libc::O_CLOEXEC);
    let mut copy = new.open(to)?;
    io::copy(&mut source, &mut copy)?;
    copy.sync_all()
}

/// Renames a file within its directory.
pub fn rename(from: &Path, to: &Path) -> io::Result<()> {
    std::fs::rename(from, to)?;
    recorder::renamed(from, to);
    Ok(())
}

/// Returns when the file's bytes and length are durable.
pub fn sync(file: &File) -> io::Result<()> {
    recorder::before_sync()?;
    file.sync_all()?;
    recorder::synced(file);
    Ok(())
}

/// Returns when the names in a directory are durable.
pub fn sync_directory(path: &Path) -> io::Result<()> {
    recorder::before_sync()?;
    File::open(path)?.sync_all()?;
    recorder::synced_directory(path);
    Ok(())
}

/// Like [`sync_directory`], for a directory above the queue's.
pub fn sync_parent(path: &Path) -> io::Result<()> {
    recorder::before_sync()?;
    File::open(path)?.sync_all()?;
    recorder::synced_parent(path);
    Ok(())
}

/// Device and inode number, which identify a file under any name.
pub fn identity(file: &File) -> io::Result<(u64, u64)> {
    fault::call!("file.identity.stat", file.metadata()).map(|found| identity_of(&found))
}

/// The device and inode number of a file, from its metadata.
#[must_use]
pub fn identity_of(found: &Metadata) -> (u64, u64) {
    (found.dev(), found.ino())
}

/// Opens another description of a file, for mapping it: a mapping keeps its description open, with
/// its record locks, also in forked children.
pub fn open_again(file: &File, path: &Path, access: Access) -> Result<File> {
    let failed = |e| Error::io("cannot look at", path, e);
    let again = open(path, access)?;
    let found = again.as_ref().map(identity).transpose().map_err(failed)?;
    match again {
        Some(again) if found == Some(identity(file).map_err(failed)?) => Ok(again),
        _ => Err(Error::gone("replaced while it was opened", path)),
    }
}

/// Reserves the blocks of a range, so that later stores into it cannot fail. A file system that
/// cannot reserve allocates on first touch.
#[cfg(target_os = "linux")]
pub fn reserve(file: &File, start: u64, end: u64) -> io::Result<()> {
    let (offset, length) = (checked(start)?, checked(end - start)?);
    loop {
        match fault::call!("file.reserve", allocate(file, offset, length)) {
            Ok(()) => return Ok(()),
            Err(error) => match error.raw_os_error() {
                Some(libc::EINTR) => {}
                _ if is_missing(&error) => return Ok(()),
                _ => return Err(error),
            },
        }
    }
}

#[cfg(target_os = "linux")]
fn allocate(file: &File, offset: u64, length: u64) -> io::Result<()> {
    // Without flags the call never makes the file shorter.
    Ok(rustix::fs::fallocate(file, FallocateFlags::empty(), offset, length)?)
}

/// Not available on this system: blocks are allocated on first touch.
#[cfg(not(target_os = "linux"))]
pub fn reserve(_file: &File, _start: u64, _end: u64) -> io::Result<()> {
    Ok(())
}

/// Zeroes all nonzero bytes from `start` on, also where they are mapped. The blocks stay reserved:
/// other processes may store into them. Returns whether there were any.
pub fn zero(file: &File, start: u64) -> io::Result<bool> {
    let mut is_zeroed = false;
    each_used_page(file, start, |at, page| {
        let before = usize::try_from(start.saturating_sub(at)).unwrap_or(page.len());
        let page = &page[before.min(page.len())..];
        if page.iter().all(|byte| *byte == 0) {
            return Ok(());
        }
        let at = at.max(start);
        fault::call!("restart.zeros.write", file.write_all_at(&ZEROS[..page.len()], at))?;
        recorder::zeroed_range(file, at, at + page.len() as u64);
        is_zeroed = true;
        Ok(())
    })?;
    Ok(is_zeroed)
}

/// Calls `each` with the position and bytes of every page that is not all zeros, starting with
/// the page of `start`. Holes are skipped and stay holes.
pub fn each_used_page(
    file: &File,
    start: u64,
    mut each: impl FnMut(u64, &[u8]) -> io::Result<()>,
) -> io::Result<()> {
    let mut chunk = vec![0; CHUNK];
    let mut at = start / PAGE * PAGE;
    while let Some(data) = fault::call!("restart.data.seek", next_data(file, at))? {
        at = data;
        let count = fault::call!("restart.data.read", file.read_at(&mut chunk, at))?;
        if count == 0 {
            break;
        }
        for page in chunk[..count].chunks(PAGE_LEN) {
            if page.iter().any(|byte| *byte != 0) {
                each(at, page)?;
            }
            at += page.len() as u64;
        }
    }
    Ok(())
}

/// The first page at or after `from` that is not in a hole.
#[cfg(target_os = "linux")]
fn next_data(file: &File, from: u64) -> io::Result<Option<u64>> {
    // Nothing uses the file offset that the call moves.
    match rustix::fs::seek(file, SeekFrom::Data(checked(from)?)) {
        Ok(found) => Ok(Some((found / PAGE * PAGE).max(from))),
        Err(Errno::NXIO) => Ok(None),
        Err(Errno::INVAL | Errno::OPNOTSUPP) => Ok(Some(from)),
        Err(error) => Err(error.into()),
    }
}

/// Unknown on this system.
#[cfg(not(target_os = "linux"))]
#[allow(clippy::unnecessary_wraps)] // the other definition can fail
fn next_data(_file: &File, from: u64) -> io::Result<Option<u64>> {
    Ok(Some(from))
}

/// Sets a file's times to now: anyone who may write to it may do that, not only its owner.
pub fn touch(file: &File) -> io::Result<()> {
    let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
    Ok(rustix::fs::futimens(file, &Timestamps { last_access: now, last_modification: now })?)
}

/// Whether a file has been unlinked.
pub fn is_removed(file: &File) -> io::Result<bool> {
    fault::call!("file.removed.stat", file.metadata()).map(|found| found.nlink() == 0)
}

/// Whether a file has been unlinked, or another file has taken its name.
pub fn has_lost_name(file: &File, path: &Path) -> io::Result<bool> {
    let own = fault::call!("file.removed.stat", file.metadata())?;
    if own.nlink() == 0 {
        return Ok(true);
    }
    let named = fault::call!("file.removed.stat", std::fs::symlink_metadata(path));
    let Ok(named) = named else { return Ok(false) };
    Ok(identity_of(&named) != identity_of(&own))
}

/// The size and free space of a file system, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct Left {
    /// Available to unprivileged users.
    pub free: u64,
    pub total: u64,
}

/// The size and free space of the file system of a file.
pub fn left(file: &File) -> io::Result<Left> {
    let found =
        fault::call!("file.left.stat", rustix::fs::fstatvfs(file).map_err(io::Error::from))?;
    let bytes = |blocks: u64| blocks.saturating_mul(found.f_frsize);
    Ok(Left { free: bytes(found.f_bavail), total: bytes(found.f_blocks) })
}

/// Syncs the name of the directory at `path`, and those of the parent directories that were `made`.
pub fn sync_names(path: &Path, made: &[PathBuf]) -> Result<()> {
    let others = made.iter().map(PathBuf::as_path).filter(|made| *made != path);
    for made in std::iter::once(path).chain(others) {
        let Some(parent) =
            std::path::absolute(made).ok().and_then(|it| it.parent().map(Path::to_path_buf))
        else {
            continue;
        };
        let synced = fault::call!("sync.parent.sync", sync_parent(&parent));
        match synced {
            // Another user's directory, which may be searchable but not readable.
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {}
            synced => synced.map_err(|e| Error::io("cannot sync", &parent, e))?,
        }
    }
    Ok(())
}

/// The name of a queue's directory and those of the parents created for it, durable once synced.
#[derive(Debug, Default)]
pub struct OwnName {
    made: Vec<PathBuf>,
    is_synced: AtomicBool,
}

impl OwnName {
    /// For a directory whose parents in this list were created.
    #[must_use]
    pub const fn new(made: Vec<PathBuf>) -> Self {
        Self { made, is_synced: AtomicBool::new(false) }
    }

    /// The first time, syncs the name of the directory at `path` and those of the created parents.
    pub fn sync(&self, path: &Path) -> Result<()> {
        if !self.is_synced.load(Ordering::Acquire) {
            sync_names(path, &self.made)?;
            self.is_synced.store(true, Ordering::Release);
        }
        Ok(())
    }
}

/// The name of the network file system with this magic number. Record locks and shared mappings
/// are unreliable there between hosts.
#[must_use]
pub const fn network_file_system(magic: i64) -> Option<&'static str> {
    match magic & 0xFFFF_FFFF {
        0x6969 => Some("nfs"),
        0x517B => Some("smb"),
        0xFF53_4D42 => Some("cifs"),
        0xFE53_4D42 => Some("smb2"),
        0x5346_414F | 0x6B41_4653 => Some("afs"),
        0x7375_7245 => Some("coda"),
        0x00C3_6400 => Some("ceph"),
        0x0102_1997 => Some("9p"),
        0x0BD0_0BD0 => Some("lustre"),
        0x4750_4653 => Some("gpfs"),
        _ => None,
    }
}

/// The network file system of a path, if it is on one.
#[cfg(target_os = "linux")]
pub fn network_file_system_of(path: &Path) -> Result<Option<&'static str>> {
    use std::os::unix::ffi::OsStrExt;
    if path.as_os_str().as_bytes().contains(&0) {
        return Err(Error::Invalid("a path cannot hold a NUL character".into()));
    }
    fault::call!("file.system.stat", magic_of(path))
        .map(network_file_system)
        .map_err(|e| Error::io("cannot look at", path, e))
}

#[cfg(target_os = "linux")]
fn magic_of(path: &Path) -> io::Result<i64> {
    Ok(rustix::fs::statfs(path)?.f_type)
}

/// Unknown on this system.
#[cfg(not(target_os = "linux"))]
pub fn network_file_system_of(_path: &Path) -> Result<Option<&'static str>> {
    Ok(None)
}

/// When a file last changed, as recorded by the system.
pub fn changed(path: &Path) -> io::Result<std::time::SystemTime> {
    fault::call!("file.stat", std::fs::symlink_metadata(path))?.modified()
}

/// A time at which the file existed: its creation if the file system records it, else its last
/// change.
pub fn existed_since(path: &Path) -> io::Result<std::time::SystemTime> {
    let found = fault::call!("file.stat", std::fs::symlink_metadata(path))?;
    let changed = found.modified()?;
    Ok(found.created().map_or(changed, |made| made.min(changed)))
}

/// Whether stores through mappings update a file's modification time, at the latest when written
/// back: false for file systems in memory or on the network.
#[cfg(target_os = "linux")]
pub fn notes_changes(path: &Path) -> io::Result<bool> {
    const IN_MEMORY: [i64; 2] = [0x0102_1994, 0x8584_58F6]; // tmpfs, ramfs
    let magic = fault::call!("file.system.stat", magic_of(path))?;
    Ok(network_file_system(magic).is_none() && !IN_MEMORY.contains(&(magic & 0xFFFF_FFFF)))
}

/// Unknown on this system.
#[cfg(not(target_os = "linux"))]
pub fn notes_changes(_path: &Path) -> io::Result<bool> {
    Ok(false)
}

/// Replaces an inherited descriptor, so that its description and locks end with the process that
/// opened it. The number stays valid and reads as an empty file; programs that the child starts do
/// not inherit it.
pub fn detach_descriptor(file: &File) {
    if let Ok(null) = File::open("/dev/null") {
        // SAFETY: the descriptor is open, as `file` is borrowed, and `file` keeps its ownership:
        // this owner is never dropped, so it never closes it.
        let owned = unsafe { OwnedFd::from_raw_fd(file.as_raw_fd()) };
        let mut inherited = ManuallyDrop::new(owned);
        if dup2(&null, &mut inherited).is_ok() {
            // `dup2` clears the close-on-exec flag.
            let _ = fcntl_setfd(file, FdFlags::CLOEXEC);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn network_file_systems_are_told_by_their_magic_number() {
        assert_eq!(network_file_system(0x6969), Some("nfs"));
        assert_eq!(network_file_system(0xFF53_4D42), Some("cifs"));
        assert_eq!(network_file_system(0xEF53), None);
        assert_eq!(network_file_system(0x0102_1994), None);
    }

    #[test]
    fn only_regular_files_open() {
        let dir = tempfile::tempdir().unwrap();
        let access = Access { write: true, create_mode: None };
        std::os::unix::fs::symlink("/etc/passwd", dir.path().join("link")).unwrap();
        std::fs::create_dir(dir.path().join("folder")).unwrap();
        assert!(matches!(open(&dir.path().join("link"), access), Err(Error::NotAQueue { .. })));
        assert!(matches!(open(&dir.path().join("folder"), access), Err(Error::NotAQueue { .. })));
        assert!(matches!(open(&dir.path().join("missing"), access), Ok(None)));
    }
}
