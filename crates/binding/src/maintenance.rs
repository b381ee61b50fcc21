//! Checks and repairs of queue files, reported as rows that Python turns into objects.

use std::borrow::Cow;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;
use quire_kernel::chronicle::format::time_index;
use quire_kernel::chronicle::protocol::compressed::{Comparison, Compression};
use quire_kernel::chronicle::repair::{self, Action};
use quire_kernel::chronicle::verify;
use quire_kernel::explained::{Explained, Part};
use quire_kernel::finding::{Finding, Kind, Report};
use quire_kernel::metrics::Metrics;
use quire_kernel::os::{directory, files};
use quire_kernel::ring::handle::Stats;
use quire_kernel::snapshot::Snapshot;
use quire_kernel::warnings;

use crate::detached::detached;
use crate::error::or_raise;

/// Kind, file, position, found, expected.
pub type Row = (&'static str, OsString, Option<u64>, String, String);
/// Findings; files, messages and bytes that were examined.
pub type Rows = (Vec<Row>, u64, u64, u64);

/// Kind, file, position, what was done.
type Done = (&'static str, OsString, Option<u64>, String);

/// Section, position, length, depth, first bytes, code, meaning, file.
type PartRow = (&'static str, u64, u64, usize, Cow<'static, [u8]>, &'static str, String, OsString);
/// The file of a message, and its parts.
pub type ExplainedRow = (OsString, Vec<PartRow>);

fn part_row(part: Part) -> PartRow {
    let Part { section, file, position, length, depth, bytes, code, meaning } = part;
    let file = file.into_os_string();
    (section.name(), position, length, depth, bytes.into(), code, meaning, file)
}

/// An explained message as a row.
pub fn explained_row(found: Option<Explained>) -> Option<ExplainedRow> {
    let Explained { file, parts } = found?;
    Some((file.into_os_string(), parts.into_iter().map(part_row).collect()))
}

/// The names of all kinds of findings.
pub fn kinds() -> Vec<&'static str> {
    Kind::ALL.map(Kind::name).to_vec()
}

fn row(finding: Finding) -> Row {
    let Finding { kind, file, position, found, expected } = finding;
    (kind.name(), file.into_os_string(), position, found, expected)
}

/// A report as rows.
pub fn rows(report: Report) -> Rows {
    let findings = report.findings.into_iter().map(row).collect();
    (findings, report.files, report.messages, report.bytes)
}

/// A file's path below its queue's directory, bytes to copy, length.
type FileRow = (OsString, u64, u64);
/// The path of a file, position, bytes.
type PatchRow = (OsString, u64, Cow<'static, [u8]>);
/// Messages, the index of the last one, files and patches.
pub type SnapshotRow = (u64, Option<u64>, Vec<FileRow>, Vec<PatchRow>);

/// The content of a copy, as rows.
pub fn snapshot_row(snapshot: Snapshot) -> SnapshotRow {
    let Snapshot { messages, last_index, files, patches } = snapshot;
    let files = files.into_iter().map(|it| (it.name.into_os_string(), it.used, it.length));
    let patches =
        patches.into_iter().map(|it| (it.name.into_os_string(), it.position, it.bytes.into()));
    (messages, last_index, files.collect(), patches.collect())
}

#[doc = stub!("verify_journal")]
#[pyfunction]
#[pyo3(signature = (path, /))]
pub fn verify_journal(py: Python<'_>, path: PathBuf) -> PyResult<Rows> {
    or_raise(py, detached(py, |may_wait| verify::verify(&path, may_wait))).map(rows)
}

#[doc = stub!("times_file")]
#[pyfunction]
#[pyo3(signature = (cycle, points, /))]
pub fn times_file(cycle: u64, points: Vec<(u64, u64)>) -> PyResult<Vec<u8>> {
    time_index::file(cycle, &points).ok_or_else(|| {
        PyOverflowError::new_err(format!("a time or count is too large: cycle={cycle}"))
    })
}

#[doc = stub!("compress_roll_file")]
#[pyfunction]
#[pyo3(signature = (source, target, pause, /))]
pub fn compress_roll_file(
    py: Python<'_>,
    source: PathBuf,
    target: PathBuf,
    pause: &Bound<'_, PyAny>,
) -> PyResult<()> {
    let mut run = or_raise(py, py.detach(|| Compression::new(&source, &target)))?;
    while or_raise(py, py.detach(|| run.step()))? {
        pause.call0()?;
    }
    Ok(())
}

#[doc = stub!("is_compressed_copy")]
#[pyfunction]
#[pyo3(signature = (source, compressed, pause, /))]
pub fn is_compressed_copy(
    py: Python<'_>,
    source: PathBuf,
    compressed: PathBuf,
    pause: &Bound<'_, PyAny>,
) -> PyResult<bool> {
    let mut run = or_raise(py, py.detach(|| Comparison::new(&source, &compressed)))?;
    loop {
        if let Some(is_same) = or_raise(py, py.detach(|| run.step()))? {
            return Ok(is_same);
        }
        pause.call0()?;
    }
}

#[doc = stub!("network_file_system")]
#[pyfunction]
#[pyo3(signature = (path, /))]
pub fn network_file_system(py: Python<'_>, path: PathBuf) -> PyResult<Option<&'static str>> {
    or_raise(py, files::network_file_system_of(&path))
}

#[doc = stub!("first_entries")]
#[pyfunction]
#[pyo3(signature = (path, most, /))]
pub fn first_entries(
    py: Python<'_>,
    path: PathBuf,
    most: usize,
) -> PyResult<Vec<(OsString, bool)>> {
    let entries = py.detach(|| directory::first_entries(&path, most, |_| true))?;
    Ok(entries.into_iter().map(|entry| (entry.name, entry.is_dir)).collect())
}

#[doc = stub!("count_pruned")]
#[pyfunction]
#[pyo3(signature = (path, cycles, freed, now_ms, /))]
pub fn count_pruned(
    py: Python<'_>,
    path: PathBuf,
    cycles: u64,
    freed: u64,
    now_ms: u64,
) -> PyResult<()> {
    let found = or_raise(py, py.detach(|| Metrics::open_existing(&path, true)))?;
    if let Some(metrics) = found {
        metrics.pruned(cycles, freed, now_ms);
    }
    Ok(())
}

/// Capacity, bytes in use, the most ever in use, messages waiting, and stalls.
type RingStats = (u64, u64, u64, u64, u64);

#[doc = stub!("ring_stats")]
#[pyfunction]
#[pyo3(signature = (path, /))]
pub fn ring_stats(py: Python<'_>, path: PathBuf) -> PyResult<Option<RingStats>> {
    let found = or_raise(py, py.detach(|| Stats::of(&path)))?;
    Ok(found.map(|Stats { capacity, used, high_water, pending, stalls }| {
        (capacity, used, high_water, pending, stalls)
    }))
}

#[doc = stub!("reported_losses")]
#[pyfunction]
pub fn reported_losses() -> u64 {
    warnings::losses()
}

#[doc = stub!("ring_intended")]
#[pyfunction]
#[pyo3(signature = (path, /))]
pub fn ring_intended(py: Python<'_>, path: PathBuf) -> PyResult<Option<i64>> {
    or_raise(py, py.detach(|| Stats::intended(&path)))
}

#[doc = stub!("repair_journal")]
#[pyfunction]
#[pyo3(signature = (path, *, timeout_ms, allow_network, is_replica))]
pub fn repair_journal(
    py: Python<'_>,
    path: PathBuf,
    timeout_ms: u64,
    allow_network: bool,
    is_replica: bool,
) -> PyResult<Vec<Done>> {
    let asked =
        repair::Asked { timeout: Duration::from_millis(timeout_ms), allow_network, is_replica };
    let repaired = detached(py, |may_wait| repair::repair(&path, asked, may_wait));
    let row = |action: Action| {
        let Action { kind, file, position, done } = action;
        (kind.name(), file.into_os_string(), position, done)
    };
    Ok(or_raise(py, repaired)?.into_iter().map(row).collect())
}
