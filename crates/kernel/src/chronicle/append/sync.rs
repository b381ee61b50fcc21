//! Which files a sync covers (`docs/durability.md`).
//!
//! `chronicle.lastIndexMSynced` says how far any process has synced the queue. It is a hint: its
//! file may have been moved away since, and later appends may lie below it. An appender therefore
//! also remembers the oldest file it has written to since its own last sync. If the word names a
//! missing message, files are synced from the newest down to the first that has been unchanged for
//! longer than the system takes to write back dirty pages. No file is mapped for this.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::tail::Tail;
use crate::chronicle::format::table::NO_INDEX;
use crate::chronicle::protocol::roll_file::RollFile;
use crate::chronicle::protocol::table::store::TableStore;
use crate::chronicle::queue::handle::Queue;
use crate::os::detached::Detached;
use crate::os::files::{self, Access};
use crate::probe::fault::{self, step};
use crate::{Error, Result};

/// Syncs every file that may hold messages that are not on the medium; `own` is the oldest cycle
/// the caller has written to since its last sync.
pub fn sync(
    may_wait: &Detached,
    queue: &Queue,
    table: &TableStore,
    own: Option<i32>,
) -> Result<()> {
    // The word is loaded before the last index: other processes append before they raise the word.
    let word = table.value(table.words().last_synced, NO_INDEX);
    let last = queue.last_index_left()?;
    let is_credible = word >= 0 && last.is_some_and(|last| word <= last);
    table.remember_sync(|| {
        if let Some(newest) = queue.last_cycle()? {
            let synced = queue.roll().split(word).ok().filter(|_| is_credible);
            let from =
                synced.map_or_else(|| changed_from(queue, newest), |(cycle, _)| Ok(cycle))?;
            sync_files(queue, own.map_or(from, |own| from.min(own)), newest)?;
        }
        table.sync(may_wait)?;
        sync_directory(queue.path())?;
        queue.sync_own_name()
    })?;
    // The path may have come to name another queue's directory since the caller checked.
    table.shared.check_present()?;
    note(table, word, last);
    Ok(())
}

/// The oldest cycle, from the newest down, whose file the system may not have written back yet.
fn changed_from(queue: &Queue, newest: i32) -> Result<i32> {
    let (mut from, mut latest) = (newest, None);
    let mut next = Some(newest);
    while let Some(cycle) = next {
        if let Some(changed) = changed(&queue.file_for_cycle(cycle)?)? {
            let latest = *latest.get_or_insert(changed);
            if latest.duration_since(changed).is_ok_and(|since| since > files::WHOLE_AFTER) {
                break;
            }
        }
        from = cycle;
        next = queue.cycle_before(cycle)?;
    }
    Ok(from)
}

fn changed(path: &Path) -> Result<Option<SystemTime>> {
    match fault::call!("sync.file.stat", std::fs::symlink_metadata(path)) {
        Ok(found) => Ok(found.modified().ok()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::io("cannot look at", path, error)),
    }
}

fn sync_files(queue: &Queue, from: i32, newest: i32) -> Result<()> {
    let older = queue.cycles_between(from.saturating_sub(1), newest)?;
    for cycle in older.into_iter().chain([newest]) {
        // An open description reports all write errors since it was opened.
        if let Some(file) = queue.open_file(cycle) {
            file.window.sync()?;
            continue;
        }
        let path = queue.file_for_cycle(cycle)?;
        if let Some(file) = files::open(&path, Access { write: false, create_mode: None })? {
            let synced = fault::call!("window.sync", files::sync(&file));
            synced.map_err(|e| Error::io("cannot sync", &path, e))?;
        }
    }
    Ok(())
}

/// Notes how far the queue is synced now. A word beyond the last message refers to a removed file;
/// left there it would cover future messages.
fn note(table: &TableStore, word: i64, last: Option<i64>) {
    let (cells, position) = (table.cells(), table.words().last_synced);
    let last = last.unwrap_or(NO_INDEX);
    if word > last {
        // On failure another process has just done it.
        let (old, new) = (word.cast_unsigned(), last.cast_unsigned());
        let _ = cells.swap_acq_rel(position, old, new, step!("sync.last-synced.cas"));
    }
    cells.raise_acq_rel(position, last, step!("sync.last-synced.cas"));
}

/// Syncs the names in a directory.
fn sync_directory(path: &Path) -> Result<()> {
    let synced = fault::call!("sync.directory.sync", files::sync_directory(path));
    synced.map_err(|e| Error::io("cannot sync", path, e))
}

/// What an appender has written to since its last sync.
#[derive(Default)]
pub struct Unsynced {
    /// The oldest cycle it has opened.
    from: Option<i32>,
    /// The last index it had written when it last synced.
    synced: Option<i64>,
    /// A file that was removed with messages that were never synced, until a sync reports it.
    lost: Option<PathBuf>,
    /// Whether a sync has reported this for the open file.
    is_reported: bool,
}

impl Unsynced {
    /// Notes that the appender has opened a cycle's file.
    pub fn add(&mut self, cycle: i32) {
        self.from = Some(self.from.map_or(cycle, |from| from.min(cycle)));
    }

    /// The oldest cycle to sync. Concurrent appends belong to the next sync.
    pub fn begin(&mut self, tail: Option<&Tail>) -> Option<i32> {
        std::mem::replace(&mut self.from, tail.map(|tail| tail.view.file().cycle))
    }

    /// Notes the outcome of a sync from `own` on that covered the appender's messages up to `last`.
    pub fn end(&mut self, own: Option<i32>, last: Option<i64>, is_done: bool) {
        if is_done {
            self.synced = last.max(self.synced);
        } else if let Some(own) = own {
            self.add(own);
        }
    }

    /// Notes that the appender leaves a file that was removed.
    pub fn note_lost(&mut self, tail: Option<&mut Tail>) -> Result<()> {
        let lost = self.lost_with(tail)?;
        if !std::mem::take(&mut self.is_reported) {
            self.lost = lost.or_else(|| self.lost.take());
        }
        Ok(())
    }

    /// An error if messages were removed that no sync had covered.
    pub fn check_nothing_lost(&mut self, tail: Option<&mut Tail>) -> Result<()> {
        let lost = if let Some(lost) = self.lost.take() {
            lost
        } else {
            let Some(lost) = self.lost_with(tail)? else { return Ok(()) };
            self.is_reported = true;
            lost
        };
        let gone = std::io::Error::from_raw_os_error(libc::ENOENT);
        Err(Error::io("cannot sync a removed file", &lost, gone))
    }

    /// The open file, if it was removed while it was appended to and holds messages that were never
    /// synced. None for a finished file: those are removed on purpose.
    fn lost_with(&self, tail: Option<&mut Tail>) -> Result<Option<PathBuf>> {
        let Some(tail) = tail else { return Ok(None) };
        if !is_removed(tail.view.file())? {
            return Ok(None);
        }
        let last = tail.last_if_open()?.filter(|last| Some(*last) > self.synced);
        Ok(last.map(|_| tail.view.path()))
    }
}

/// Whether a file has no name any more, or is no longer at its cycle's path.
pub fn is_removed(file: &RollFile) -> Result<bool> {
    let found = files::has_lost_name(file.window.file(), file.path());
    found.map_err(|e| Error::io("cannot look at", file.path(), e))
}
