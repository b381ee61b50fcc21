//! The file of the table store: its first document, and the locks held while it is created.
//!
//! Creating the table, under the key lock (a record lock on one byte):
//! 1. make the file long enough and reserve its space;
//! 2. CAS the first header from 0 to "not complete" (or find it so: its creator died);
//! 3. write the header document; 4. publish its header.
//!
//! A table that was never completed, or was cut short within its first document, says nothing about
//! its queue and is created again.

use std::fs::File;
use std::path::Path;
use std::time::{Duration, Instant};

use super::keys;
use crate::chronicle::format::document::{self, HEADER_LEN, Header, NOT_COMPLETE};
use crate::chronicle::format::store::MAX_HEADER_LEN;
use crate::chronicle::format::table::{self, FILE_LEN, Metadata};
use crate::memory::pages::Pages;
use crate::memory::{Cells, Mapping, is_unsupported};
use crate::os::detached::Detached;
use crate::os::files::{self, Access};
use crate::os::interrupt::Signals;
use crate::os::lease;
use crate::os::locked_file::LockedFile;
use crate::os::range_lock::{Range, RecordLock};
use crate::probe::fault::{self, step};
use crate::{Error, Result};

const KEY_LOCK: Range = Range { start: table::KEY_LOCK_START, length: 1 };
/// Tables hold a few hundred keys at most: longer files are mapped only up to here.
pub const MOST_MAPPED: u64 = 16 << 20;
const READY_TIMEOUT: Duration = Duration::from_millis(500);

/// The state of a table's first document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum First {
    /// A complete first document.
    Ready,
    /// Missing or under construction: it may still be completed.
    Unfinished,
    /// A part of a first document, as in a file that was cut short.
    Cut,
}

/// The lock around every change of a table's documents.
pub fn key_lock<'a>(
    file: &'a LockedFile,
    path: &Path,
    timeout: Duration,
    signals: Signals<'a>,
) -> Result<RecordLock<'a>> {
    file.lock(path, KEY_LOCK, timeout, signals)
}

/// Maps the table. Without a complete first document it is created as `wanted`; None if that is
/// None.
pub fn initialise(
    path: &Path,
    file: &LockedFile,
    wanted: Option<&Metadata>,
    timeout: Duration,
    may_wait: &Detached,
) -> Result<Option<Cells>> {
    let _lock = key_lock(file, path, timeout, Signals::Deferred(may_wait))?;
    let failed = |e| Error::io("cannot reserve space", path, e);
    let first = first(path, file)?;
    if first != First::Ready && wanted.is_none() {
        return Ok(None);
    }
    if first == First::Cut {
        fault::call!("table.file.grow", files::set_len(file, 0)).map_err(failed)?;
    }
    let len = len_of(path, file)?;
    if len < FILE_LEN {
        fault::call!("table.file.grow", files::extend(file, FILE_LEN)).map_err(failed)?;
    }
    files::reserve(file, 0, FILE_LEN).map_err(failed)?;
    // Checked before the file is mapped below, by another description.
    let frees = first == First::Ready && is_almost_full(path, file)? && lease::is_only_writer(file);
    let mapped = len.clamp(FILE_LEN, MOST_MAPPED);
    let again = files::open_again(file, path, Access { write: true, create_mode: None })?;
    let mapping = Mapping::new(&again, mapped, true).map_err(failed)?;
    mapping.populate_write(0, FILE_LEN).or_else(ignore_unsupported).map_err(failed)?;
    let cells = Cells::new(mapping);
    let found = cells.load_header_acquire(0);
    match wanted {
        Some(wanted) if document::parse_first(found) == Header::Waiting => {
            publish_first(path, &cells, found, wanted)?;
        }
        _ => {}
    }
    if frees {
        keys::free_removed(&cells);
    }
    Ok(Some(cells))
}

/// Waits briefly for a complete first document; returns the file's length, or None if there is
/// none.
pub fn wait_until_ready(path: &Path, file: &File, may_wait: &Detached) -> Result<Option<u64>> {
    let deadline = Instant::now() + READY_TIMEOUT;
    while first(path, file)? != First::Ready {
        if Instant::now() >= deadline {
            return Ok(None);
        }
        may_wait.sleep(Duration::from_millis(10));
    }
    len_of(path, file).map(Some)
}

/// Whether there are entries in the last quarter.
fn is_almost_full(path: &Path, file: &File) -> Result<bool> {
    use std::os::unix::fs::FileExt;
    let mut bytes = [0; 512];
    let read = fault::call!("table.file.read", file.read_at(&mut bytes, FILE_LEN / 4 * 3));
    read.map_err(|e| Error::io("cannot read", path, e))?;
    Ok(bytes.iter().any(|byte| *byte != 0))
}

fn len_of(path: &Path, file: &File) -> Result<u64> {
    let found = fault::call!("table.file.stat", file.metadata());
    found.map(|found| found.len()).map_err(|e| Error::io("cannot look at", path, e))
}

/// Checks the first bytes by reading the file, before it is mapped or changed; an error if the file
/// is of another kind.
pub fn first(path: &Path, file: &File) -> Result<First> {
    use std::os::unix::fs::FileExt;
    let mut bytes = [0; 8];
    let failed = |e| Error::io("cannot read", path, e);
    let found = fault::call!("table.file.read", file.read_at(&mut bytes, 0)).map_err(failed)?;
    let word = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    if found < bytes.len() {
        return Ok(if bytes == [0; 8] { First::Unfinished } else { First::Cut });
    }
    match document::parse_first(word) {
        Header::Waiting => Ok(First::Unfinished),
        Header::Meta(length) if length <= MAX_HEADER_LEN => {
            let is_cut = HEADER_LEN + u64::from(length) > len_of(path, file)?;
            Ok(if is_cut { First::Cut } else { First::Ready })
        }
        _ => Err(Error::corrupt(
            "not a table store",
            path,
            0,
            format!("{word:#010x}"),
            "a metadata document of at most 64 KiB",
        )),
    }
}

fn publish_first(path: &Path, cells: &Cells, found: u32, wanted: &Metadata) -> Result<()> {
    let taken = |found: u32| {
        let found = format!("{found:#010x}");
        Error::corrupt("header changed under the key lock", path, 0, found, "0x80000000")
    };
    cells.publish_header(0, found, NOT_COMPLETE, step!("table.first.cas")).map_err(taken)?;
    let payload = table::encode(wanted);
    cells.copy_in_plain(HEADER_LEN, &payload, step!("table.body.store"));
    let word = document::word(u32::try_from(payload.len()).unwrap_or(0), true);
    cells.publish_header(0, NOT_COMPLETE, word, step!("table.header.cas")).map_err(taken)?;
    Ok(())
}

/// The content of the first document.
pub fn read_header(path: &Path, cells: &Cells) -> Result<Metadata> {
    let (word, header) = cells.observe_header_acquire(0);
    let not_one = |what| Error::corrupt(what, path, 0, format!("{word:#010x}"), "header: !STStore");
    let Header::Meta(length) = document::parse(word) else {
        return Err(not_one("not a table store"));
    };
    if HEADER_LEN + u64::from(length) > cells.len() {
        return Err(not_one("the table store is cut short"));
    }
    let payload = cells.bytes(header.names(HEADER_LEN, u64::from(length)));
    table::parse(payload).ok_or_else(|| not_one("not a table store"))
}

/// Maps a table for reading up to its first hole: holes cannot be accessed on a full disk, and no
/// key lies after one.
pub fn map_present(file: &File, len: u64) -> std::io::Result<Mapping> {
    let mapping = Mapping::new(file, len, false)?;
    if mapping.populate_read(0, len).or_else(ignore_unsupported).is_ok() {
        return Ok(mapping);
    }
    let mut present = 0;
    for (start, end) in Pages::here().parts(0, len) {
        if let Err(error) = mapping.populate_read(start, end) {
            return if present == 0 { Err(error) } else { Mapping::new(file, present, false) };
        }
        present = end;
    }
    Ok(mapping)
}

fn ignore_unsupported(error: std::io::Error) -> std::io::Result<()> {
    if is_unsupported(&error) { Ok(()) } else { Err(error) }
}
