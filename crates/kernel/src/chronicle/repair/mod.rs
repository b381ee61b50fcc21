//! Repairs what [`verify`](super::verify) finds wrong, under the write lock and file by file.
//!
//! 1. a damaged table is rebuilt from its readable entries ([`table`]);
//! 2. the queue is opened for writing: that creates a missing table and missing keys, frees the
//!    lock of a dead holder, and checks files after a restart;
//! 3. other stale locks are freed; 4. each file with findings is repaired ([`roll_file`]): its end,
//!    its index ([`index`]), its words, its end-of-file marker; 5. the listing is refreshed.
//!
//! Every step depends on the files alone, and preserves the evidence for later steps: if a repair
//! dies in between, the next one ends in the same bytes. Messages that are missing in the middle of
//! a file are left alone, since the index still reaches the messages after them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::chronicle::format::table::{self as keys, UNLOCKED};
use crate::chronicle::protocol::listing::{self, Names};
use crate::chronicle::protocol::lock::recovery::{self, ForceUnlock};
use crate::chronicle::protocol::lock::word::LockWord;
use crate::chronicle::protocol::table::store::TableStore;
use crate::chronicle::queue::handle::Queue;
use crate::chronicle::queue::options::Options;
use crate::chronicle::verify;
use crate::finding::{Finding, Kind};
use crate::os::detached::Detached;
use crate::os::interrupt::Signals;
use crate::{Error, Result};

pub mod index;
pub mod replicas;
pub mod roll_file;
pub mod service;
pub mod side_file;
pub mod table;

/// A repair that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Action {
    /// What was wrong.
    pub kind: Kind,
    pub file: PathBuf,
    pub position: Option<u64>,
    /// What was done about it.
    pub done: String,
}

impl Action {
    #[must_use]
    pub fn at(kind: Kind, file: &Path, position: u64, done: impl Into<String>) -> Self {
        Self { kind, file: file.to_path_buf(), position: Some(position), done: done.into() }
    }
}

/// How a queue is repaired.
#[derive(Clone, Copy)]
pub struct Asked {
    /// How long a living process may hold the write lock.
    pub timeout: Duration,
    pub allow_network: bool,
    /// Whether it is a replica: only its sink appends, so the append lock is not freed, even if its
    /// holder is dead.
    pub is_replica: bool,
}

/// Repairs the queue in a directory.
pub fn repair(dir: &Path, asked: Asked, may_wait: &mut Detached) -> Result<Vec<Action>> {
    let Asked { timeout, allow_network, is_replica } = asked;
    let report = verify::verify(dir, may_wait)?;
    let mut actions = Vec::new();
    let is_found = |kind: Kind| report.findings.iter().any(|finding| finding.kind == kind);
    if is_found(Kind::UnreadableTable) || is_found(Kind::TableEntry) {
        actions.push(table::build_again(dir, timeout, Signals::Handled(may_wait))?);
    }
    let options = Options {
        create: false,
        force_unlock: ForceUnlock::Dead,
        timeout,
        allow_network,
        pretouch: false,
        ..Options::default()
    };
    let queue = Queue::open(dir, options, may_wait)?;
    let table = queue.writable_table("repair")?;
    if is_found(Kind::LockHeld) {
        // Some checks were skipped because of the lock: an error, unless it is free by now.
        let signals = Signals::Handled(may_wait);
        recovery::wait_to_write(table, ForceUnlock::Dead, timeout, signals).map(drop)?;
    }
    actions.extend(report.findings.iter().filter_map(done_by_opening));
    actions.extend(free_locks(table, is_replica)?);
    for cycle in cycles_of(&queue, &report.findings)? {
        let signals = Signals::Handled(may_wait);
        let guard = recovery::wait_to_write(table, ForceUnlock::Dead, timeout, signals)?;
        roll_file::repair(&queue, cycle, &guard, &mut actions)?;
    }
    // Listing a file that was created ahead of its cycle would send appends there.
    if is_found(Kind::Listing) || is_found(Kind::NoTable) || changes_files(&actions) {
        let names = Names { dir, roll: queue.roll(), epoch_ms: queue.epoch_ms() };
        listing::refresh(names, table, Signals::Handled(may_wait))?;
    }
    Ok(actions)
}

/// Whether files came or went.
fn changes_files(actions: &[Action]) -> bool {
    let kinds = [Kind::UnfinishedFile, Kind::UnreadableTable, Kind::TableEntry, Kind::LostHeader];
    actions.iter().any(|action| kinds.contains(&action.kind))
}

/// The action for a finding that opening the queue has already repaired.
fn done_by_opening(finding: &Finding) -> Option<Action> {
    let done = match finding.kind {
        Kind::NoTable => "a table was made, with the roll cycle of the file names",
        Kind::TableKey => "the key was added",
        Kind::Restart => "the files were examined",
        Kind::Listing => "the directory was listed again",
        Kind::StaleLock if finding.found.starts_with(keys::WRITE_LOCK) => "unlocked",
        _ => return None,
    };
    let Finding { kind, file, position, .. } = finding.clone();
    Some(Action { kind, file, position, done: done.to_owned() })
}

/// Frees the append lock, unless it is a replica's, and those of replicated tailers, if their
/// holders are dead.
fn free_locks(table: &TableStore, is_replica: bool) -> Result<Vec<Action>> {
    let mut actions = Vec::new();
    let entries = table.entries()?;
    let is_meant =
        |key: &str| verify::table::is_lock(key) && !(is_replica && key == keys::APPEND_LOCK);
    for (key, _) in entries.iter().filter(|(key, _)| is_meant(key)) {
        let Some(position) = table.find(key)? else { continue };
        let word = LockWord::new(table.cells(), position);
        let found = word.read();
        if found != UNLOCKED
            && matches!(recovery::holder_of(table, found), Some((_, false)))
            && word.force(found)
        {
            actions.push(Action::at(Kind::StaleLock, table.path(), position, "unlocked"));
        }
    }
    Ok(actions)
}

/// The cycles whose files have findings, the oldest first.
fn cycles_of(queue: &Queue, findings: &[Finding]) -> Result<BTreeSet<i32>> {
    let mut cycles = BTreeSet::new();
    for cycle in queue.cycles()? {
        let path = queue.file_for_cycle(cycle)?;
        let is_named = |finding: &&Finding| finding.file.file_name() == path.file_name();
        if findings.iter().any(|finding| is_named(&finding) && finding.kind != Kind::WrongName) {
            cycles.insert(cycle);
        }
    }
    Ok(cycles)
}

/// An error if a process that may write to the queue is alive.
fn check_nobody_writes(table: &std::fs::File, path: &Path) -> Result<()> {
    use crate::os::range_lock::{self, Range};
    let pids = Range { start: keys::PRESENCE_START, length: 1 << 32 };
    let held = range_lock::is_held_elsewhere(table, pids);
    if held.map_err(|e| Error::io("cannot look at", path, e))? {
        let what = "a process writes to the queue:".to_owned();
        return Err(Error::WriterInUse { what, path: path.to_path_buf() });
    }
    Ok(())
}
