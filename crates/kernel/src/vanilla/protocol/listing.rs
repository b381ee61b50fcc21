//! Which cycles there are, at a cost that does not grow with them while nothing changes.
//!
//! The directories are listed once. Afterwards the times of change are looked at of those in which a
//! later cycle would get its directory: one for each level of the pattern.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use crate::probe::fault;
use crate::vanilla::format::cycle::{self, CycleFormat, NamedCycleGuess};
use crate::vanilla::format::names::FileName;
use crate::{Error, Result};

/// A change within this time before a listing may share its time with one after it.
const TIME_GRAIN: Duration = Duration::from_millis(50);
/// Levels of directories that are looked at for cycles of an unknown pattern.
const MOST_LEVELS: usize = 6;
/// Directories that are looked at for the pattern.
const SAMPLE: usize = 64;

/// The cycles of a queue.
pub struct Listing {
    base: PathBuf,
    format: CycleFormat,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// In ascending order.
    cycles: Vec<i32>,
    /// Directories with their times of change.
    stamps: Vec<(PathBuf, SystemTime)>,
    is_settled: bool,
}

impl Listing {
    /// Nothing is looked at yet.
    #[must_use]
    pub fn new(base: &Path, format: CycleFormat) -> Self {
        Self { base: base.to_path_buf(), format, state: Mutex::default() }
    }

    /// The first cycle after this one.
    pub fn after(&self, cycle: i32) -> Result<Option<i32>> {
        self.with(|cycles| cycles.get(cycles.partition_point(|found| *found <= cycle)).copied())
    }

    /// The last cycle before this one.
    pub fn before(&self, cycle: i32) -> Result<Option<i32>> {
        self.with(|cycles| {
            let at = cycles.partition_point(|found| *found < cycle);
            at.checked_sub(1).and_then(|at| cycles.get(at)).copied()
        })
    }

    /// All cycles in ascending order, listed now.
    pub fn all(&self) -> Result<Vec<i32>> {
        self.forget();
        self.with(<[i32]>::to_vec)
    }

    /// Has the next question list the directories.
    pub fn forget(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).stamps.clear();
    }

    fn with<T>(&self, look: impl FnOnce(&[i32]) -> T) -> Result<T> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if !state.is_current() {
            *state = self.list()?;
        }
        Ok(look(&state.cycles))
    }

    fn list(&self) -> Result<State> {
        let now = SystemTime::now();
        let mut names = Vec::new();
        // Before the names: what comes later changes the time again.
        let base = (self.base.clone(), changed(&self.base)?);
        leaves(&self.base, "", self.format.depth(), &mut names)?;
        let mut cycles: Vec<_> =
            names.iter().filter_map(|name| Some((self.format.cycle_of(name)?, name))).collect();
        cycles.sort_unstable();
        cycles.dedup_by_key(|(cycle, _)| *cycle);
        let mut stamps = vec![base];
        if let Some((_, newest)) = cycles.last() {
            for (end, _) in newest.match_indices('/') {
                let path = self.base.join(&newest[..end]);
                let changed = changed(&path)?;
                stamps.push((path, changed));
            }
        }
        let is_settled = stamps
            .iter()
            .all(|(_, changed)| now.duration_since(*changed).is_ok_and(|since| since > TIME_GRAIN));
        let cycles = cycles.into_iter().map(|(cycle, _)| cycle).collect();
        Ok(State { cycles, stamps, is_settled })
    }
}

impl State {
    fn is_current(&self) -> bool {
        let is_same = |(path, before): &(PathBuf, SystemTime)| {
            changed(path).is_ok_and(|changed| changed == *before)
        };
        self.is_settled && !self.stamps.is_empty() && self.stamps.iter().all(is_same)
    }
}

fn changed(path: &Path) -> Result<SystemTime> {
    let found = fault::call!("vanilla.dir.stat", std::fs::symlink_metadata(path));
    found.and_then(|found| found.modified()).map_err(|e| Error::io("cannot look at", path, e))
}

/// Directories `depth` levels below `path`, by their paths. Links are not followed.
fn leaves(path: &Path, name: &str, depth: usize, found: &mut Vec<String>) -> Result<()> {
    let failed = |e| Error::io("cannot list", path, e);
    for entry in fault::call!("vanilla.dir.read", std::fs::read_dir(path)).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let own_name = entry.file_name();
        let Some(own_name) = own_name.to_str().filter(|it| !it.starts_with('.')) else { continue };
        if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            continue;
        }
        let name = if name.is_empty() { own_name.to_owned() } else { format!("{name}/{own_name}") };
        if depth == 1 {
            found.push(name);
        } else {
            leaves(&entry.path(), &name, depth - 1, found)?;
        }
    }
    Ok(())
}

/// The pattern of the cycles below `base`, by the first directories that look like some; None when
/// none does.
pub fn guess_pattern(base: &Path) -> Result<Option<NamedCycleGuess>> {
    let mut level = vec![String::new()];
    for _ in 0..MOST_LEVELS {
        let mut below = Vec::new();
        for name in &level {
            sample(base, name, &mut below)?;
        }
        for name in &below {
            if let Some(guess) = cycle::guess(name)
                && has_files(&base.join(name))?
            {
                return Ok(Some(guess));
            }
        }
        level = below;
    }
    Ok(None)
}

/// Whether a directory holds index or data files.
fn has_files(path: &Path) -> Result<bool> {
    let failed = |e| Error::io("cannot list", path, e);
    let entries = match fault::call!("vanilla.dir.read", std::fs::read_dir(path)) {
        Ok(entries) => entries,
        Err(error) if is_out_of_sight(&error) => return Ok(false),
        Err(error) => return Err(failed(error)),
    };
    for entry in entries.take(SAMPLE) {
        let name = entry.map_err(failed)?.file_name();
        if name.to_str().and_then(FileName::parse).is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether a directory is gone, or closed to this user. Any other failure would hide cycles, and a
/// writer would begin others by another pattern.
fn is_out_of_sight(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::PermissionDenied)
}

fn sample(base: &Path, name: &str, found: &mut Vec<String>) -> Result<()> {
    let path = base.join(name);
    let failed = |e| Error::io("cannot list", &path, e);
    let entries = match fault::call!("vanilla.dir.read", std::fs::read_dir(&path)) {
        Ok(entries) => entries,
        Err(error) if is_out_of_sight(&error) && !name.is_empty() => return Ok(()),
        Err(error) => return Err(failed(error)),
    };
    for entry in entries {
        if found.len() >= SAMPLE {
            break;
        }
        let entry = entry.map_err(failed)?;
        let own_name = entry.file_name();
        let Some(own_name) = own_name.to_str() else { continue };
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) && !own_name.starts_with('.') {
            found.push(if name.is_empty() {
                own_name.to_owned()
            } else {
                format!("{name}/{own_name}")
            });
        }
    }
    Ok(())
}
