//! Creating a roll file (`docs/protocol.md`, "Create").
//!
//! 1. create the file, make it long enough, reserve its space; 2. CAS its first header from 0 to
//!    "not complete"; 3. write the header document; 4. publish both index arrays after it; 5. CAS
//!    the first header to its length; 6. note the file in the listing.
//!
//! A crash before 2 leaves an empty file, which the next appender initialises in place. A crash
//! before 5 leaves a file that no reader opens: the next appender waits briefly, in case a writer
//! without the lock is still creating it, and renames it to `.discard`. A crash before 6 leaves a
//! file that other processes find when they list the directory.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::indexing::publish_first_array;
use super::lock::guard::{DetachedGuard, WriteGuard};
use super::roll_file::{self, RollFile};
use super::{beside, unfinished};
use crate::chronicle::format::blocks::{self, Growth};
use crate::chronicle::format::document::{
    self, HEADER_LEN, NOT_COMPLETE, NOT_INITIALIZED, TAIL_ZEROS,
};
use crate::chronicle::format::index::{self, ArrayLayout, Shape};
use crate::chronicle::format::store::{self, StoreLayout};
use crate::memory::Cells;
use crate::memory::window::Window;
use crate::os::files::{self, Access};
use crate::probe::fault::{self, step};
use crate::{Error, Result, warnings};

/// How long to wait for an unfinished file before it is discarded.
const ABANDONED_AFTER: Duration =
    Duration::from_millis(if cfg!(any(feature = "fault-points", feature = "power-loss")) {
        0
    } else {
        500
    });

/// How new files are made.
#[derive(Clone, Copy, Debug)]
pub struct NewFile {
    /// Shape of their index.
    pub shape: Shape,
    /// How they grow.
    pub growth: Growth,
    /// Permission bits.
    pub mode: u32,
    /// Leave the names of header fields out.
    pub fieldless: bool,
}

/// Opens the file of a cycle; None when it is missing or its header is not ready.
pub fn open_existing(path: &Path, cycle: i32, write: bool) -> Result<Option<RollFile>> {
    let Some(file) = files::open(path, Access { write, create_mode: None })? else {
        return Ok(None);
    };
    let window = Window::new(path, file, write)?;
    let layout = roll_file::read_layout(&window)?;
    Ok(layout.map(|layout| RollFile::new(cycle, window, layout)))
}

/// Opens the file of a cycle, creating it if necessary; true if it was created.
pub fn open_or_create(
    path: &Path,
    cycle: i32,
    new: &NewFile,
    guard: &DetachedGuard<'_>,
) -> Result<(RollFile, bool)> {
    let deadline = Instant::now() + ABANDONED_AFTER;
    loop {
        let access = Access { write: true, create_mode: Some(new.mode) };
        let file = files::open(path, access)?.ok_or_else(|| {
            Error::gone("cannot create, as its directory was removed or renamed", path)
        })?;
        step!("create.file.open").made();
        let window = Window::new(path, file, true)?;
        if let Some(layout) = finished_layout(&window)? {
            let file = RollFile::new(cycle, window, layout);
            return check_writable(&file).map(|()| (file, false));
        }
        match roll_file::first_word(&window)? {
            None | Some(NOT_INITIALIZED) => {
                check_nothing_is_lost(&window, new)?;
                beside::remove_stale(path, cycle);
                let layout =
                    initialise(&window, new, guard).inspect_err(|_| remove_empty(path, &window))?;
                return Ok((RollFile::new(cycle, window, layout), true));
            }
            Some(_) if Instant::now() < deadline => guard.may_wait().sleep(ABANDONED_AFTER / 50),
            Some(_) => {
                check_nothing_is_lost(&window, new)?;
                discard(path, guard)?;
            }
        }
    }
}

/// An error if messages follow a first header that is not ready: starting the file again would
/// overwrite or discard them.
fn check_nothing_is_lost(window: &Window, new: &NewFile) -> Result<()> {
    let path = window.path();
    if window.file_len() == 0 || !unfinished::holds_messages(path, new.shape.index_count)? {
        return Ok(());
    }
    Err(unfinished::no_header(path))
}

/// The layout of a file; None if its creator, or the system, died before it was complete.
fn finished_layout(window: &Window) -> Result<Option<StoreLayout>> {
    match roll_file::read_layout(window) {
        Err(Error::Corrupt { .. }) if roll_file::is_cut_in_header(window)? => Ok(None),
        layout => layout,
    }
}

/// Whether a file is of version 4: it can be read and ended, but not appended to.
#[must_use]
pub const fn is_of_version_4(file: &RollFile) -> bool {
    !file.layout.aligned
}

/// An error if a file cannot be appended to.
pub fn check_writable(file: &RollFile) -> Result<()> {
    let layout = &file.layout;
    let words = [layout.write_position, layout.index2index, layout.last_index];
    if layout.last_index == 0 {
        let (found, expected) = ("no lastIndex", "lastIndex, which appends raise");
        return Err(Error::corrupt("header without a word", file.path(), 0, found, expected));
    }
    if layout.aligned && words.iter().all(|position| position.is_multiple_of(8)) {
        return Ok(());
    }
    Err(Error::Unsupported(format!(
        "appending to a file of an older version: file={} dataFormat=0 (open it read-only)",
        file.path().display()
    )))
}

/// Steps 1 to 5.
fn initialise(window: &Window, new: &NewFile, guard: &DetachedGuard<'_>) -> Result<StoreLayout> {
    let (payload, layout) =
        store::encode(new.shape.index_count, new.shape.index_spacing, new.fieldless);
    let header_end = HEADER_LEN + payload.len() as u64;
    let arrays = 2 * (index::slots_len(new.shape.index_count) + index::PREAMBLE_MAX as u64 + 16);
    let mut region = window.region();
    let (end, Growth { block, timeout }) = (header_end + arrays, new.growth);
    let len = blocks::file_len(0, end, block);
    window.writable(guard.may_wait(), &mut region, 0, end, len, timeout)?;
    let cells: &Cells = &region;
    cells
        .publish_header(0, NOT_INITIALIZED, NOT_COMPLETE, step!("create.first.cas"))
        .map_err(|found| corrupt(window, found))?;
    cells.copy_in_plain(HEADER_LEN, &payload, step!("create.body.store"));
    // A power cut may have kept a later part of a file whose header is lost.
    cells.zero_plain(header_end, TAIL_ZEROS, step!("create.body.store"));
    let upper_at = header_end.next_multiple_of(document::ALIGNMENT);
    publish_arrays(cells, upper_at, &layout, new.shape.index_count)
        .map_err(|found| corrupt(window, found))?;
    let length = u32::try_from(payload.len()).unwrap_or(document::LENGTH_MASK);
    cells
        .publish_header(0, NOT_COMPLETE, document::word(length, true), step!("create.header.cas"))
        .map_err(|found| corrupt(window, found))?;
    Ok(layout)
}

/// Step 4: the upper array, and one lower array in its slot 0.
fn publish_arrays(
    cells: &Cells,
    upper_at: u64,
    layout: &StoreLayout,
    index_count: u32,
) -> std::result::Result<ArrayLayout, u32> {
    let (upper, lower_at) = publish_first_array(cells, index::INDEX2INDEX, upper_at, index_count)?;
    step!("create.upper.publish").made();
    cells.store_release(layout.index2index, upper_at, step!("create.index2index.store"));
    let (lower, _) = publish_first_array(cells, index::INDEX, lower_at, index_count)?;
    step!("create.lower.publish").made();
    cells.store_release(upper.slot(0), lower_at, step!("create.upper-slot.store"));
    cells.store_release(upper.used, 1, step!("create.upper-used.store"));
    Ok(lower)
}

fn corrupt(window: &Window, found: u32) -> Error {
    let found = format!("{found:#010x}");
    Error::corrupt("header changed under the write lock", window.path(), 0, found, "0x80000000")
}

/// Removes a file whose creation failed, so that readers do not wait for it.
fn remove_empty(path: &Path, window: &Window) {
    if matches!(roll_file::first_word(window), Ok(None | Some(NOT_INITIALIZED))) {
        let _ = fault::call!("create.file.remove", std::fs::remove_file(path));
    }
}

/// Discards the file of an older cycle if it is still unfinished after `ABANDONED_AFTER`; returns
/// whether it was.
pub fn put_aside_unfinished(path: &Path, guard: &DetachedGuard<'_>) -> Result<bool> {
    let deadline = Instant::now() + ABANDONED_AFTER;
    while is_unfinished(path)? {
        if Instant::now() >= deadline {
            return discard(path, guard).map(|()| true);
        }
        guard.may_wait().sleep(ABANDONED_AFTER / 50);
    }
    Ok(false)
}

/// Whether a file exists and is not complete.
pub fn is_unfinished(path: &Path) -> Result<bool> {
    let Some(file) = files::open(path, Access { write: false, create_mode: None })? else {
        return Ok(false);
    };
    Ok(finished_layout(&Window::new(path, file, false)?)?.is_none())
}

/// Path of the side file that keeps discarded bytes of a file.
#[must_use]
pub fn aside(path: &Path) -> PathBuf {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis());
    let mut aside = path.as_os_str().to_owned();
    aside.push(format!("-{now}.discard"));
    aside.into()
}

/// Renames an unfinished file to end in `.discard`.
pub fn discard(path: &Path, _guard: &WriteGuard<'_>) -> Result<()> {
    let aside = aside(path);
    fault::call!("create.file.discard", files::rename(path, &aside))
        .map_err(|e| Error::io("cannot put aside", path, e))?;
    warnings::leave(format!(
        "an unfinished roll file was put aside: file={} as={}",
        path.display(),
        aside.display()
    ));
    Ok(())
}
