//! Checking a cycle of a Vanilla Chronicle: each entry points to a record, each record has an
//! entry.
//!
//! Records are read before entries. So only the last record of a running writer may lack an entry,
//! which is not a finding while the writer has its file open.

use std::collections::HashSet;
use std::path::Path;

use super::format::entry::Location;
use super::format::names::FileName;
use super::protocol::detect::{Asked, Layout};
use super::protocol::directory;
use super::protocol::rebuild::{self, Compared};
use crate::Result;
use crate::finding::{Finding, Kind, Report};

/// Checks the files of a cycle's directory.
pub fn cycle(directory: &Path, asked: Asked, report: &mut Report) -> Result<()> {
    let found = directory::files(directory)?;
    report.files += found.len() as u64;
    let Some(compared) = rebuild::compare(directory, asked, &found)? else { return Ok(()) };
    report.messages += compared.kept.len() as u64;
    report.bytes += found.iter().map(|(_, length)| length).sum::<u64>();
    let files = CycleFiles { directory, layout: compared.layout };
    report.findings.extend(entries(&files, &compared));
    report.findings.extend(free_entries(&files, &compared));
    report.findings.extend(records(&files, &compared)?);
    Ok(())
}

/// The files of a cycle's entries and records.
struct CycleFiles<'a> {
    directory: &'a Path,
    layout: Layout,
}

impl CycleFiles<'_> {
    fn of_entry(&self, kind: Kind, sequence: u64, found: String, expected: &str) -> Finding {
        let per_file = self.layout.entries_per_file();
        let file = directory::path_of(self.directory, FileName::Index(sequence / per_file));
        Finding::at(kind, &file, sequence % per_file * 8, found, expected)
    }
}

/// Findings for the first entry that points to no record, and the first that repeats one.
fn entries(files: &CycleFiles<'_>, compared: &Compared) -> Vec<Finding> {
    let kept: HashSet<_> = compared.kept.iter().map(|(sequence, _)| *sequence).collect();
    let named: HashSet<_> = compared.kept.iter().map(|(_, entry)| *entry).collect();
    let dropped = compared.entries.iter().filter(|(sequence, _)| !kept.contains(sequence));
    let (repeated, without): (Vec<_>, Vec<_>) =
        dropped.partition(|(_, entry)| named.contains(entry));
    let finding = |kind, wrong: &[&(u64, u64)], expected| {
        let (sequence, entry) = wrong.first()?;
        let found = format!("entry {entry:#x} (the first of {})", wrong.len());
        Some(files.of_entry(kind, *sequence, found, expected))
    };
    let without = finding(Kind::EntryWithoutRecord, &without, "an entry that names a record");
    let repeated = finding(Kind::RepeatedEntry, &repeated, "an entry of its own for each record");
    without.into_iter().chain(repeated).collect()
}

fn free_entries(files: &CycleFiles<'_>, compared: &Compared) -> Option<Finding> {
    let is_free = |(number, (sequence, _)): &(u64, &(u64, u64))| number != sequence;
    let (number, (sequence, _)) = (0..).zip(&compared.entries).find(is_free)?;
    let found = format!("free entries up to sequence {}", sequence - 1);
    Some(files.of_entry(Kind::FreeEntries, number, found, "entries one after the other"))
}

fn records(files: &CycleFiles<'_>, compared: &Compared) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    let lost: Vec<_> =
        compared.lost.iter().map(|entry| files.layout.packing.unpack(*entry)).collect();
    let of_file = |one: &Location, other: &Location| (one.tid, one.file) == (other.tid, other.file);
    for records in lost.chunk_by(of_file) {
        let Some(first) = records.first() else { continue };
        let name = FileName::Data { tid: first.tid, file: first.file };
        let path = directory::path_of(files.directory, name);
        let is_at_work = records.len() == 1 && rebuild::is_written_to(&path)?;
        if !is_at_work {
            let found = format!("{} records without an entry", records.len());
            let (kind, position) = (Kind::RecordWithoutEntry, first.position);
            findings.push(Finding::at(kind, &path, position, found, "an entry for each record"));
        }
    }
    Ok(findings)
}
