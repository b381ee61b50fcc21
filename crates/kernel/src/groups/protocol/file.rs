//! Side files: opened and checked, created, and replaced.
//!
//! A side file gets its name once it is complete, so no process sees a partial one. A file that is
//! damaged, or whose group is to start elsewhere, is replaced under the change lock, a byte of the
//! file itself: 1. it is marked, so that no member joins it any more; 2. the new one is renamed
//! into its place. Members of the old one notice the mark and have to open the group again.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{Ordering, fence};
use std::time::Duration;

use super::claims::Claims;
use super::liveness;
use crate::groups::format::layout::{self, FILE_LEN, Layout, MAGIC, VERSION};
use crate::memory::{Cells, Mapping, is_unsupported};
use crate::os::files::{self, Access};
use crate::os::interrupt::Signals;
use crate::os::locked_file::LockedFile;
use crate::os::names;
use crate::os::new_file::NewFile;
use crate::os::range_lock::{Range, RecordLock};
use crate::probe::fault::{self, step};
use crate::{Error, Result};

const CHANGE: Range = Range { start: layout::CHANGE_LOCK, length: 1 };
const TIMEOUT: Duration = Duration::from_secs(10);
const MARKED: u64 = 1;

/// The fixed properties of a group, as its side file has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Whether messages of one key are delivered in order, to one member at a time.
    pub keyed: bool,
    /// The distance from one index of the queue to the next.
    pub step: u64,
    /// The index to start at; 0 is the first message.
    pub start: u64,
    /// Messages before this index may have been delivered by a state whose counts are lost.
    pub known: u64,
}

/// An open side file.
pub struct SideFile {
    pub path: PathBuf,
    pub file: File,
    pub(crate) cells: Cells,
    pub shape: Shape,
}

/// What was found under a side file's name.
pub enum Found {
    Missing,
    /// Bytes that no member stores.
    Damaged(String),
    Whole(SideFile),
}

/// Opens and checks the side file at `path`.
pub fn open(path: &Path, writable: bool) -> Result<Found> {
    let Some(file) = files::open(path, Access { write: writable, create_mode: None })? else {
        return Ok(Found::Missing);
    };
    let failed = |e| Error::io("cannot read", path, e);
    let len = fault::call!("file.stat", file.metadata()).map_err(failed)?.len();
    if len < FILE_LEN {
        return Ok(Found::Damaged(format!("length={len} expected={FILE_LEN}")));
    }
    if writable {
        // A copy may have holes, and a store into a hole raises SIGBUS on a full disk.
        fault::call!("group.file.reserve", files::reserve(&file, 0, FILE_LEN)).map_err(failed)?;
    }
    let mapping = Mapping::new(&file, FILE_LEN, writable).map_err(failed)?;
    // A page without disk space would raise SIGBUS at its first use.
    mapping.populate_read(0, FILE_LEN).or_else(ignore_unsupported).map_err(failed)?;
    let cells = Cells::new(mapping);
    let shape = match check(path, &cells)? {
        Ok(shape) => shape,
        Err(what) => return Ok(Found::Damaged(what)),
    };
    Ok(Found::Whole(SideFile { path: path.to_path_buf(), file, cells, shape }))
}

fn ignore_unsupported(error: io::Error) -> io::Result<()> {
    if is_unsupported(&error) { Ok(()) } else { Err(error) }
}

/// The shape in a side file, or what is wrong with it.
fn check(path: &Path, cells: &Cells) -> Result<std::result::Result<Shape, String>> {
    let load = |at| cells.load_acquire(at);
    let (magic, version) = (load(layout::MAGIC_AT), load(layout::VERSION_AT));
    let (keyed, step) = (load(layout::KEYED_AT), load(layout::STEP_AT));
    let start = load(layout::START_AT);
    if magic != MAGIC {
        return Ok(Err(format!("magic={magic:#x} expected={MAGIC:#x}")));
    }
    if load(layout::SUM_AT) != layout::sum(version, keyed, step, start) || keyed > 1 || step == 0 {
        return Ok(Err("the checksum of its header is wrong".to_owned()));
    }
    if version != VERSION {
        return Err(Error::Unsupported(format!(
            "the side file of a group is of another version: found={version} expected={VERSION} \
             file={} (let the consumers of that version finish; then remove the file, and reset the \
             group to where they stopped)",
            path.display()
        )));
    }
    if let Err(what) = check_claims(&Claims::new(cells, Layout::FILE), step) {
        return Ok(Err(what));
    }
    let known = load(layout::KNOWN_AT);
    Ok(Ok(Shape { keyed: keyed == 1, step, start, known }))
}

fn check_claims(claims: &Claims<'_>, step: u64) -> std::result::Result<(), String> {
    // Claims that were linked when the frontier was read end before it.
    let in_use = claims.in_use().ok_or("a claim has a state that does not exist")?;
    let frontier = claims.frontier().ok_or("the newest claim does not exist")?;
    if i64::try_from(frontier.next).is_err() {
        return Err(format!("end={:#x}: no index", frontier.next));
    }
    for seen in in_use.iter().filter(|seen| seen.is_linked) {
        let count = u64::from(u32::BITS - seen.word.pending.leading_zeros());
        let is_empty = seen.word.pending == 0 && !seen.word.is_prepared();
        let end = count.checked_mul(step).and_then(|length| seen.first.checked_add(length));
        let has_all = end.is_some_and(|end| end <= seen.next);
        // Messages of a claim after the frontier were cut from it when they were lost.
        let is_after = end.is_none_or(|end| end > frontier.next);
        if !has_all || is_empty || is_after {
            let (first, next, end) = (seen.first, seen.next, frontier.next);
            return Err(format!(
                "claim={} first={first:#x} next={next:#x} end={end:#x}",
                seen.number
            ));
        }
    }
    Ok(())
}

/// Makes a side file unless there is one.
pub fn create(path: &Path, shape: Shape, file_mode: u32) -> Result<()> {
    let publish =
        |from: &Path, to: &Path| fault::call!("group.file.publish", names::publish(from, to));
    // If another process was faster, its file is opened.
    let named = make_whole(path, &[(0, header(shape))], file_mode)?.name(path, publish);
    named.map(drop).map_err(|e| Error::io("cannot make", path, e))
}

/// The lock held around every creation, replacement and removal of a side file.
fn change_lock<'a>(
    path: &Path,
    file: &'a LockedFile,
    signals: Signals<'a>,
) -> Result<RecordLock<'a>> {
    file.lock(path, CHANGE, TIMEOUT, signals)
}

/// When to replace a side file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replace {
    /// If it is damaged.
    Damaged,
    /// If no member uses it.
    Unused,
}

/// The outcome of replacing a side file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Replaced {
    Done,
    /// Another process replaced it, or it is not damaged.
    NotNeeded,
    /// Members use it.
    InUse,
}

/// Replaces the side file at `path` by a new one.
pub fn replace(
    path: &Path,
    shape: Shape,
    file_mode: u32,
    why: Replace,
    signals: Signals<'_>,
) -> Result<Replaced> {
    replace_with(path, &[(0, header(shape))], file_mode, why, signals)
}

/// Bytes of a side file, and their position. Bytes that no part covers are 0.
pub type Part = (u64, Vec<u8>);

/// Like [`replace`], with more content than a header.
pub fn replace_with(
    path: &Path,
    parts: &[Part],
    file_mode: u32,
    why: Replace,
    signals: Signals<'_>,
) -> Result<Replaced> {
    let Some(old) = LockedFile::open_existing(path)? else {
        let publish =
            |from: &Path, to: &Path| fault::call!("group.file.publish", names::publish(from, to));
        let is_named = make_whole(path, parts, file_mode)?
            .name(path, publish)
            .map_err(|e| Error::io("cannot make", path, e))?;
        return Ok(if is_named { Replaced::Done } else { Replaced::NotNeeded });
    };
    let _lock = change_lock(path, &old, signals)?;
    if !is_at(&old, path)? || why == Replace::Damaged && !is_damaged(path)? {
        return Ok(Replaced::NotNeeded);
    }
    if why == Replace::Damaged {
        mark(path, &old, MARKED)?;
    } else if !mark_unused(path, &old)? {
        return Ok(Replaced::InUse);
    }
    put_in_place(path, parts, file_mode)
}

/// Step 2.
fn put_in_place(path: &Path, parts: &[Part], file_mode: u32) -> Result<Replaced> {
    let rename =
        |from: &Path, to: &Path| fault::call!("group.file.rename", files::rename(from, to));
    make_whole(path, parts, file_mode)?
        .name(path, rename)
        .map_err(|e| Error::io("cannot replace", path, e))?;
    Ok(Replaced::Done)
}

/// Replaces a side file by one made from it after its members were stopped, so that it has every
/// change whose success was reported to them. If `make` returns nothing or fails, the members
/// continue.
pub fn replace_by(
    path: &Path,
    file_mode: u32,
    signals: Signals<'_>,
    parts: impl FnOnce() -> Result<Option<Vec<Part>>>,
) -> Result<Replaced> {
    let Some(old) = LockedFile::open_existing(path)? else { return Ok(Replaced::NotNeeded) };
    let _lock = change_lock(path, &old, signals)?;
    if !is_at(&old, path)? {
        return Ok(Replaced::NotNeeded);
    }
    mark(path, &old, MARKED)?;
    let replaced = parts().and_then(|parts| match parts {
        Some(parts) => put_in_place(path, &parts, file_mode),
        None => Ok(Replaced::NotNeeded),
    });
    if !matches!(replaced, Ok(Replaced::Done)) {
        mark(path, &old, 0)?;
    }
    replaced
}

/// Removes a side file that no member uses; None if there was none.
pub fn remove(path: &Path, signals: Signals<'_>) -> Result<Option<Replaced>> {
    let Some(old) = LockedFile::open_existing(path)? else {
        return Ok(None);
    };
    let _lock = change_lock(path, &old, signals)?;
    if !is_at(&old, path)? {
        return Ok(Some(Replaced::NotNeeded));
    }
    if !mark_unused(path, &old)? {
        return Ok(Some(Replaced::InUse));
    }
    fault::call!("group.file.remove", std::fs::remove_file(path))
        .map_err(|e| Error::io("cannot remove", path, e))?;
    Ok(Some(Replaced::Done))
}

/// Marks a file unless members use it.
fn mark_unused(path: &Path, file: &File) -> Result<bool> {
    let is_in_use = || Ok::<_, Error>(!liveness::members(path, file)?.is_empty());
    // Members of a marked file fail. A file with members is not marked, unless a member joins at
    // this moment.
    if is_in_use()? {
        return Ok(false);
    }
    mark(path, file, MARKED)?;
    if is_in_use()? {
        mark(path, file, 0)?;
        return Ok(false);
    }
    Ok(true)
}

/// Whether `path` still names this file.
pub fn is_at(file: &File, path: &Path) -> Result<bool> {
    let failed = |e| Error::io("cannot look at", path, e);
    let Some(named) = files::open(path, Access { write: false, create_mode: None })? else {
        return Ok(false);
    };
    let (named, own) = (files::identity(&named), files::identity(file));
    Ok(named.map_err(failed)? == own.map_err(failed)?)
}

fn is_damaged(path: &Path) -> Result<bool> {
    Ok(matches!(open(path, true)?, Found::Damaged(_)))
}

/// Step 1: marks a file that is about to be replaced. A file too short to hold the mark has no
/// members.
fn mark(path: &Path, file: &File, value: u64) -> Result<()> {
    let failed = |e| Error::io("cannot write", path, e);
    let len = fault::call!("file.stat", file.metadata()).map_err(failed)?.len();
    if len >= FILE_LEN {
        let write = || file.write_all_at(&value.to_le_bytes(), layout::RETIRED_AT);
        fault::call!("group.file.write", write()).map_err(failed)?;
        // SYNC POINT M1, with M2 in `member.rs`: either a member sees this mark after its change,
        // or the replacement sees the change.
        fence(Ordering::SeqCst);
        step!("group.retired.store").made();
    }
    Ok(())
}

/// Removes the mark of a process that died before it replaced the file.
pub fn unmark(path: &Path, signals: Signals<'_>) -> Result<()> {
    let Some(file) = LockedFile::open_existing(path)? else {
        return Ok(());
    };
    let _lock = change_lock(path, &file, signals)?;
    if is_at(&file, path)? { mark(path, &file, 0) } else { Ok(()) }
}

/// Whether a side file was marked.
#[must_use]
pub fn is_marked(cells: &Cells) -> bool {
    cells.load_acquire(layout::RETIRED_AT) != 0
}

/// Whether a sink keeps the file for its source.
#[must_use]
pub fn is_kept(cells: &Cells) -> bool {
    cells.load_acquire(layout::KEPT_AT) != 0
}

/// Creates a complete side file that has no name yet.
fn make_whole(path: &Path, parts: &[Part], file_mode: u32) -> Result<NewFile> {
    let failed = |e| Error::io("cannot make", path, e);
    let (new, file) = NewFile::create(path, file_mode)?;
    let write = || {
        files::extend(&file, FILE_LEN)?;
        files::reserve(&file, 0, FILE_LEN)?;
        parts.iter().try_for_each(|(at, bytes)| file.write_all_at(bytes, *at))
    };
    fault::call!("group.file.write", write()).map_err(failed)?;
    fault::call!("group.file.sync", files::sync(&file)).map_err(failed)?;
    Ok(new)
}

/// The bytes at the start of a side file.
#[must_use]
pub fn header(shape: Shape) -> Vec<u8> {
    let keyed = u64::from(shape.keyed);
    let sum = layout::sum(VERSION, keyed, shape.step, shape.start);
    let fields = [MAGIC, VERSION, keyed, shape.step, shape.start, sum, 0, shape.known];
    fields.iter().flat_map(|field| field.to_le_bytes()).collect()
}
