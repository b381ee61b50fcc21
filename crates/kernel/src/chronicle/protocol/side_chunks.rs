//! Side files that grow by chunks, which are mapped one at a time.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::memory::counters::Counters;
use crate::os::files;
use crate::probe::fault;
use crate::{Error, Result};

/// The file grows, and is mapped, by this.
pub const CHUNK: u64 = 64 << 10;

/// Maps a chunk, whose blocks are reserved before: a full disk is an error here rather than a signal
/// at the first store.
pub fn map(file: &File, path: &Path, chunk: u64) -> Result<Counters> {
    let failed = |e| Error::io("cannot make room in", path, e);
    files::reserve(file, chunk, chunk + CHUNK).map_err(failed)?;
    if length_of(file, path)? < chunk + CHUNK {
        // No other way is safe beside a process that has made it longer.
        fault::call!("window.grow", write_last(file, chunk + CHUNK)).map_err(failed)?;
    }
    Counters::part(file, chunk, CHUNK).map_err(|e| Error::io("cannot map", path, e))
}

/// Makes a file at least this long.
fn write_last(file: &File, len: u64) -> std::io::Result<()> {
    file.write_all_at(&[0], len - 1)
}

/// The length of a file.
pub fn length_of(file: &File, path: &Path) -> Result<u64> {
    let found = fault::call!("file.stat", file.metadata());
    Ok(found.map_err(|e| Error::io("cannot look at", path, e))?.len())
}
