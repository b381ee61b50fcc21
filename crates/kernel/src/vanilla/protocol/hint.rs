//! The first and the last cycle of a queue with many cycles, cached in its directory.
//!
//! A process that lists the directory leaves them in `.cycles`, with the directory's inode and time
//! of change. While those are the same, no name was created or removed there, and no other process
//! has to list it. Java skips the file; directories that it creates change the time.
//!
//! A power cut may bring back a time with other names, on file systems without a journal: a hint
//! counts only until the machine is started again.

use std::fs::Metadata;
use std::hash::{DefaultHasher, Hasher};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::os::files::{self, Access};
use crate::probe::fault;
use crate::vanilla::format::cycle::CycleFormat;

/// Its name.
const NAME: &str = ".cycles";
/// Length of the file; a longer pattern has no hint.
const LENGTH: usize = 512;
/// The file with an id that changes with each boot of the machine.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";
/// Two changes within this time may have the same time.
const TIME_GRAIN: Duration = Duration::from_millis(50);
/// Changes within this time may have the same time on a file system of whole or even seconds.
const COARSE_TIME_GRAIN: Duration = Duration::from_secs(3);

/// A stamp that changes whenever a name is created or removed in a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    pub(super) inode: u64,
    pub(super) seconds: i64,
    pub(super) nanos: i64,
}

impl Stamp {
    /// The stamp of a directory.
    #[must_use]
    pub fn of(directory: &Metadata) -> Self {
        let (seconds, nanos) = (directory.ctime(), directory.ctime_nsec());
        Self { inode: directory.ino(), seconds, nanos }
    }

    /// Whether a change after `now` would certainly have another stamp.
    #[must_use]
    pub fn is_settled(self, now: SystemTime) -> bool {
        let grain = if self.nanos == 0 { COARSE_TIME_GRAIN } else { TIME_GRAIN };
        let since = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let (seconds, nanos) = (u64::try_from(self.seconds), u32::try_from(self.nanos));
        let (Ok(seconds), Ok(nanos)) = (seconds, nanos) else { return false };
        since.checked_sub(Duration::new(seconds, nanos)).is_some_and(|age| age > grain)
    }
}

/// The hint file of a queue.
pub struct Hint {
    path: PathBuf,
    /// The naming of cycles: with another format the numbers mean other directories.
    format: String,
}

impl Hint {
    /// A hint that has not been read yet.
    #[must_use]
    pub fn new(base: &Path, format: &CycleFormat) -> Self {
        let named = format!("{} {:?} {}", format.length_ms(), format.zone(), format.pattern());
        Self { path: base.join(NAME), format: named }
    }

    /// The first and the last cycle, if the directory still has this stamp. None if the file is
    /// unreadable, torn or about another state.
    #[must_use]
    pub fn load(&self, stamp: Stamp) -> Option<(i32, i32)> {
        let file = files::open(&self.path, Access { write: false, create_mode: None }).ok()??;
        let mut bytes = [0; LENGTH];
        fault::call!("vanilla.hint.read", file.read_exact_at(&mut bytes, 0)).ok()?;
        let text = std::str::from_utf8(&bytes).ok()?.trim_end_matches('\0');
        let (said, sum) = text.rsplit_once(' ')?;
        let cycles = said.strip_prefix(&self.about(stamp)?).filter(|_| sum == checksum(said))?;
        let (first, last) = cycles.split_once(' ')?;
        Some((first.parse().ok()?, last.parse().ok()?)).filter(|(first, last)| first < last)
    }

    /// Stores them for other processes. If that fails, those list the directory.
    pub fn store(&self, stamp: Stamp, first: i32, last: i32, file_mode: u32) {
        let Some(about) = self.about(stamp) else { return };
        let said = format!("{about}{first} {last}");
        let mut bytes = format!("{said} {}", checksum(&said)).into_bytes();
        if bytes.len() > LENGTH {
            return;
        }
        bytes.resize(LENGTH, 0);
        let access = Access { write: true, create_mode: Some(file_mode) };
        if let Ok(Some(file)) = files::open(&self.path, access)
            // With a second name it is not Quire's file.
            && fault::call!("vanilla.hint.stat", file.metadata()).is_ok_and(|it| it.nlink() == 1)
        {
            // Written in place: replacing the file would change the directory's time.
            let _ = fault::call!("vanilla.hint.write", file.write_all_at(&bytes, 0));
        }
    }

    fn about(&self, stamp: Stamp) -> Option<String> {
        let Stamp { inode, seconds, nanos } = stamp;
        let boot = fault::call!("vanilla.hint.read", std::fs::read_to_string(BOOT_ID)).ok()?;
        Some(format!("cycles 1 {} {inode} {seconds}.{nanos:09} {} ", boot.trim(), self.format))
    }
}

/// A checksum that detects partial and concurrent writes.
fn checksum(said: &str) -> String {
    let mut hasher = DefaultHasher::new();
    hasher.write(said.as_bytes());
    format!("{:016x}", hasher.finish())
}
