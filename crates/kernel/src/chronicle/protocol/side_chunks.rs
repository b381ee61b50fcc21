//! Side files that grow in chunks, mapped one at a time.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::memory::counters::Counters;
use crate::os::files::{self, Access};
use crate::probe::fault;
use crate::{Error, Result};

/// The unit by which the file grows and is mapped.
pub const CHUNK: u64 = 64 << 10;

/// The chunk of a side file that a writer has mapped.
pub struct Mapped {
    path: PathBuf,
    file: File,
    pub words: Counters,
    /// Where the chunk begins.
    pub start: u64,
}

impl Mapped {
    /// Maps the first chunk of the file at `path`, which is created if missing.
    pub fn open(path: &Path, mode: u32) -> Result<Self> {
        let access = Access { write: true, create_mode: Some(mode) };
        let file = files::open(path, access)?.ok_or_else(|| Error::gone("removed", path))?;
        let words = map(&file, path, 0)?;
        Ok(Self { path: path.to_path_buf(), file, words, start: 0 })
    }

    /// The file's path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Maps the chunk of a position, unless it is mapped.
    #[inline]
    pub fn go_to(&mut self, position: u64) -> Result<()> {
        let start = position / CHUNK * CHUNK;
        if start != self.start {
            (self.words, self.start) = (map(&self.file, &self.path, start)?, start);
        }
        Ok(())
    }

    /// Removes the file.
    pub fn remove(self) -> Result<()> {
        remove(&self.path).map_err(|e| Error::io("cannot remove", &self.path, e))
    }
}

/// Removes a side file.
pub fn remove(path: &Path) -> std::io::Result<()> {
    fault::call!("create.file.remove", std::fs::remove_file(path))
}

/// Reserves the blocks of a chunk and maps it: a full disk is an error here rather than a signal at
/// the first store.
fn map(file: &File, path: &Path, chunk: u64) -> Result<Counters> {
    let failed = |e| Error::io("cannot make room in", path, e);
    files::reserve(file, chunk, chunk + CHUNK).map_err(failed)?;
    if length_of(file, path)? < chunk + CHUNK {
        // Only this call cannot shorten a file that another process has just extended.
        fault::call!("window.grow", write_last(file, chunk + CHUNK)).map_err(failed)?;
    }
    Counters::part(file, chunk, CHUNK).map_err(|e| Error::io("cannot map", path, e))
}

/// Extends a file to at least this length.
fn write_last(file: &File, len: u64) -> std::io::Result<()> {
    file.write_all_at(&[0], len - 1)
}

/// The length of a file.
pub fn length_of(file: &File, path: &Path) -> Result<u64> {
    let found = fault::call!("file.stat", file.metadata());
    Ok(found.map_err(|e| Error::io("cannot look at", path, e))?.len())
}
