//! The side file with the [`Word`] of a queue: a magic word, the word, and zeros. It has one
//! length, and is created by the first process that sleeps. Java ignores files of this name.

use std::fs::File;
use std::path::Path;

use super::word::Word;
use crate::memory::side_file::{Header, MAGIC_AT};
use crate::memory::{Cells, Mapping};
use crate::os::files::{self, Access};
use crate::os::futex::{self, Expected};
use crate::os::own_directory::OwnDirectory;
use crate::probe::fault::{self, step};
use crate::{Error, Result};

/// The name of the side file.
pub const FILE_NAME: &str = "waiting.quire";

const MAGIC: u64 = u64::from_le_bytes(*b"QuireWt1");
const WORD_AT: u64 = 8;
const LEN: u64 = 64;
const HEADER: Header = Header {
    magic: MAGIC,
    len: LEN,
    otherwise: "not a file of waiting readers (remove it while no process has it open)",
};

/// The side file of a queue, mapped for writing.
pub struct SideFile {
    cells: Cells,
    /// Device and inode number.
    identity: (u64, u64),
}

impl SideFile {
    /// The side file of an open directory, created if missing.
    pub fn open_or_create(directory: &OwnDirectory, mode: u32) -> Result<Self> {
        let access = Access { write: true, create_mode: Some(mode) };
        let shown = directory.shown(FILE_NAME);
        let file = directory.open_file(FILE_NAME, access)?;
        let file = file.ok_or_else(|| Error::gone("removed", &shown))?;
        if !is_whole(&file, &shown)? {
            // Other processes may do the same concurrently; the result is the same.
            files::extend(&file, LEN).map_err(|e| Error::io("cannot make", &shown, e))?;
        }
        let found = Self::map(&file, &shown)?;
        let _ = found.cells.swap_acq_rel(MAGIC_AT, 0, MAGIC, step!("waiting.file.store"));
        found.checked(&shown)?.ok_or_else(|| Error::gone("removed", &shown))
    }

    /// The side file of the directory at a path; None if no process has slept there yet.
    pub fn open_existing(directory: &Path) -> Result<Option<Self>> {
        let path = directory.join(FILE_NAME);
        let access = Access { write: true, create_mode: None };
        match files::open(&path, access)? {
            Some(file) if is_whole(&file, &path)? => Self::map(&file, &path)?.checked(&path),
            _ => Ok(None),
        }
    }

    /// Maps a file of the right length. Its block is allocated, so a store cannot fail on a full
    /// disk.
    fn map(file: &File, path: &Path) -> Result<Self> {
        let failed = |e| Error::io("cannot map", path, e);
        files::reserve(file, 0, LEN).map_err(failed)?;
        let cells = Cells::new(Mapping::new(file, LEN, true).map_err(failed)?);
        Ok(Self { cells, identity: files::identity(file).map_err(failed)? })
    }

    /// None if the file is still being created.
    fn checked(self, path: &Path) -> Result<Option<Self>> {
        let is_made = HEADER.has_magic(self.cells.load_acquire(MAGIC_AT), path)?;
        Ok(is_made.then_some(self))
    }

    /// Whether the directory at a path still has this very file (same inode).
    #[must_use]
    pub fn is_in(&self, directory: &Path) -> bool {
        let path = directory.join(FILE_NAME);
        fault::call!("waiting.file.stat", std::fs::symlink_metadata(path))
            .is_ok_and(|found| files::identity_of(&found) == self.identity)
    }

    /// Its word.
    #[inline]
    #[must_use]
    pub const fn word(&self) -> Word<'_> {
        Word::new(&self.cells, WORD_AT)
    }

    /// The argument to sleep on the word while it has this value.
    #[must_use]
    pub fn expected(&self, value: u32) -> Expected<'_> {
        Expected { word: self.cells.word(WORD_AT), value, is_shared: true }
    }

    /// P3 and P4: wakes the sleepers, if there are any.
    pub fn wake(&self) {
        if self.word().clear() {
            futex::wake(self.cells.word(WORD_AT), true);
        }
    }
}

/// False if the file is still being created.
fn is_whole(file: &File, path: &Path) -> Result<bool> {
    let found = fault::call!("waiting.file.stat", file.metadata());
    HEADER.has_length(found.map_err(|e| Error::io("cannot look at", path, e))?.len(), path)
}
