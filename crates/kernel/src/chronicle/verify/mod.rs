//! Checking a queue, a copy of some of its files, or one file, against every rule of
//! `docs/protocol.md` and `docs/format.md`. Nothing is changed and no other process is kept
//! waiting: the queue may be in use.
//!
//! - [`walk`] goes through the documents of a file, skipping unreadable parts; [`scan`] finds
//!   documents that nothing points to;
//! - [`words`] and [`index`] compare with these the hints by which readers find messages;
//! - [`quiet`] distinguishes unfinished steps of a dead writer from those of a live one;
//! - [`roll_file`] puts these together, [`table`] checks `metadata.cq4t`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::chronicle::format::roll_cycle::{RollCycle, SUFFIX};
use crate::chronicle::format::table::FILE_NAME;
use crate::chronicle::protocol::compressed;
use crate::chronicle::protocol::listing::{self, Names};
use crate::chronicle::protocol::lock::recovery;
use crate::chronicle::protocol::stored_cycle;
use crate::chronicle::protocol::table::store::TableStore;
use crate::finding::{Finding, Kind, Report};
use crate::os::detached::Detached;
use crate::probe::fault;
use crate::sealed::cipher;
use crate::{Error, Result};
use quiet::Quiet;
use roll_file::Asked;

pub mod index;
pub mod quiet;
pub mod roll_file;
pub mod scan;
pub mod table;
pub mod walk;
pub mod words;

/// A directory of files to check.
pub struct Directory {
    pub dir: PathBuf,
    pub table: Option<Arc<TableStore>>,
    pub roll: RollCycle,
    pub epoch_ms: i64,
    /// Findings made while opening it.
    pub findings: Vec<Finding>,
}

/// Checks a queue's directory or one roll file.
pub fn verify(path: &Path, may_wait: &mut Detached) -> Result<Report> {
    let found = fault::call!("open.path.stat", std::fs::metadata(path));
    let is_file = match found {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let why = "no such file or directory".to_owned();
            return Err(Error::NotAQueue { why, path: path.to_path_buf() });
        }
        found => found.map_err(|e| Error::io("cannot open", path, e))?.is_file(),
    };
    let dir = if is_file { path.parent().unwrap_or(Path::new(".")) } else { path };
    let directory = Directory::open(dir, is_file.then_some(path), may_wait)?;
    if is_file { directory.check_one(path, may_wait) } else { directory.check_all(may_wait) }
}

impl Directory {
    /// Opens the table and determines the roll cycle; `file` is the one to check.
    pub fn open(dir: &Path, file: Option<&Path>, may_wait: &mut Detached) -> Result<Self> {
        let mut findings = Vec::new();
        let table_path = dir.join(FILE_NAME);
        let table = match TableStore::open_to_inspect(&table_path, may_wait) {
            Err(Error::Corrupt { position, found, expected, .. }) => {
                let kind = Kind::UnreadableTable;
                findings.push(Finding::at(kind, &table_path, position, found, expected));
                None
            }
            table => table?,
        };
        let name = |path: &Path| path.file_name().map(|it| it.to_string_lossy().into_owned());
        let by_names = match file.and_then(name) {
            Some(name) => RollCycle::by_file_name(&name).cloned(),
            None => files_of(dir)?.iter().find_map(|name| RollCycle::by_file_name(name)).cloned(),
        };
        let stored = table.as_deref().map(TableStore::metadata);
        let known = table
            .as_deref()
            .and_then(|table| stored_cycle::roll_cycle(dir, table, None, may_wait).ok());
        let Some(roll) = known.or(by_names) else { return Err(not_a_queue(dir, file)) };
        let epoch_ms = stored.map_or(roll.default_epoch_ms, |stored| stored.roll.epoch_ms);
        if table.is_none() && findings.is_empty() && file.is_none() {
            let kind = Kind::NoTable;
            findings.push(Finding::of(kind, &table_path, "no complete table", "a table"));
        }
        Ok(Self { dir: dir.to_path_buf(), table, roll, epoch_ms, findings })
    }

    fn names(&self) -> Names<'_> {
        Names { dir: &self.dir, roll: &self.roll, epoch_ms: self.epoch_ms }
    }

    /// Whether messages of the queue are encrypted.
    fn is_encrypted(&self) -> bool {
        listing::exists(&self.dir.join(cipher::KEYS))
    }

    fn check_one(self, path: &Path, may_wait: &mut Detached) -> Result<Report> {
        let quiet = Quiet::new(self.table.as_deref(), may_wait);
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let cycle = self.roll.cycle_of_file(&name, self.epoch_ms).unwrap_or_default();
        let is_encrypted = self.is_encrypted();
        let asked = Asked { path, cycle, roll: &self.roll, is_older: false, is_encrypted };
        let mut report = Report { findings: self.findings, ..Report::default() };
        match roll_file::check(asked, &quiet)? {
            Some(checked) => add(&mut report, checked),
            None => return Err(Error::gone("cannot open", path)),
        }
        Ok(report)
    }

    fn check_all(mut self, may_wait: &mut Detached) -> Result<Report> {
        let table = self.table.clone();
        let quiet = Quiet::new(table.as_deref(), may_wait);
        let tailers = table.as_deref().map(table::tailers).unwrap_or_default();
        let mut report =
            Report { findings: std::mem::take(&mut self.findings), ..Report::default() };
        if let Some(table) = &table {
            report.files += 1;
            report.findings.extend(table::check(table)?);
        }
        let cycles = listing::list_well_named(self.names())?;
        report.findings.extend(self.wrong_names()?);
        let last = self.last_begun(&cycles)?;
        let is_encrypted = self.is_encrypted();
        let mut next = BTreeMap::new();
        for cycle in cycles {
            let mut path = self.dir.join(self.roll.file_name(cycle, self.epoch_ms)?);
            if listing::is_compressed(self.names(), cycle) {
                path = compressed::path_for(&path);
            }
            let is_older = last.is_some_and(|last| cycle < last);
            let (path, roll) = (path.as_path(), &self.roll);
            let asked = Asked { path, cycle, roll, is_older, is_encrypted };
            let Some(checked) = roll_file::check(asked, &quiet)? else { continue };
            next.extend(checked.next_sequence.map(|sequence| (cycle, sequence)));
            if checked.is_old {
                report.findings.retain(|finding| finding.kind != Kind::NoTable);
            }
            add(&mut report, checked);
        }
        if let Some(table) = &table {
            let findings = table::check_listing(self.names(), table, &quiet, last)?;
            report.findings.extend(findings);
            report.findings.extend(table::check_tailers(table.path(), &tailers, &self.roll, &next));
            report.findings.extend(held(table, &quiet));
        }
        Ok(report)
    }

    /// The last cycle that has begun, ignoring files created ahead of their cycle.
    fn last_begun(&self, cycles: &BTreeSet<i32>) -> Result<Option<i32>> {
        for cycle in cycles.iter().rev() {
            let path = self.dir.join(self.roll.file_name(*cycle, self.epoch_ms)?);
            if !roll_file::is_early(&path, *cycle)? {
                return Ok(Some(*cycle));
            }
        }
        Ok(None)
    }

    /// Findings for files that are named like roll files but belong to no cycle.
    fn wrong_names(&self) -> Result<Vec<Finding>> {
        let names = files_of(&self.dir)?;
        let cycle_of = |name: &String| self.roll.cycle_of_file(name, self.epoch_ms);
        let wrong = names.iter().filter(|name| cycle_of(name).is_none_or(|cycle| cycle < 0));
        let pattern = format!("a name that follows {}", self.roll.pattern);
        let finding = |name: &String| {
            Finding::of(Kind::WrongName, &self.dir.join(name), name.clone(), pattern.clone())
        };
        Ok(wrong.map(finding).collect())
    }
}

fn add(report: &mut Report, checked: roll_file::Checked) {
    report.files += 1;
    report.messages += checked.messages;
    report.bytes += checked.bytes;
    report.findings.extend(checked.findings);
}

fn held(table: &TableStore, quiet: &Quiet<'_>) -> Option<Finding> {
    let position = table.words().write_lock;
    let word = table.cells().load_acquire(position);
    let (holder, _) = recovery::holder_of(table, word).filter(|_| quiet.is_held())?;
    let found = format!("the write lock held by process {holder} for longer than a second");
    Some(Finding::at(Kind::LockHeld, table.path(), position, found, "a free moment"))
}

/// The names of a directory that end as those of roll files, in order.
fn files_of(dir: &Path) -> Result<Vec<String>> {
    let mut names = listing::roll_file_names(dir)?;
    names.sort_unstable();
    Ok(names)
}

fn not_a_queue(dir: &Path, file: Option<&Path>) -> Error {
    let (why, path) = match file {
        Some(file) => ("the file name follows no roll cycle's pattern".to_owned(), file),
        None => (format!("no {FILE_NAME} and no *{SUFFIX} file"), dir),
    };
    Error::NotAQueue { why, path: path.to_path_buf() }
}
