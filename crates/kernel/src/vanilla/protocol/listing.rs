//! Lists the cycles of a queue, at a cost that does not grow with their number while nothing
//! changes.
//!
//! The directories are listed once. Afterwards only the modification times of directories that
//! would get a later cycle's directory are checked: one for each level of the pattern. If a
//! directory has many cycles, the first and the last are cached there, so that opening the queue
//! does not list it again, and neighbours of a cycle between them are looked for by name.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use super::hint::{Hint, Stamp};
use crate::os::directory::{Entry, first_entries};
use crate::probe::fault;
use crate::vanilla::format::cycle::{self, CycleFormat, NamedCycleGuess};
use crate::vanilla::format::names::FileName;
use crate::{Error, Result};

/// The most levels of directories searched for cycles of an unknown pattern.
const MOST_LEVELS: usize = 6;
/// The most directories examined for the pattern.
const SAMPLE: usize = 64;
/// Listing fewer cycles is about as fast as reading a hint.
const HINTED_FROM: usize = 64;
/// How many neighbours of a cycle are looked for by name before the directory is listed.
const NEIGHBOURS: i32 = 3;

/// The cycles of a queue.
pub struct Listing {
    base: PathBuf,
    format: CycleFormat,
    hint: Hint,
    /// The mode of a new hint file; None: never write one.
    file_mode: Option<u32>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// In ascending order.
    cycles: Vec<i32>,
    /// Whether `cycles` has all cycles; otherwise only the first and the last.
    is_whole: bool,
    /// The stamps of directories before they were listed.
    stamps: Vec<(PathBuf, Stamp)>,
    is_settled: bool,
}

impl Listing {
    /// A listing that has not been read yet.
    #[must_use]
    pub fn new(base: &Path, format: CycleFormat, file_mode: Option<u32>) -> Self {
        let hint = Hint::new(base, &format);
        Self { base: base.to_path_buf(), format, hint, file_mode, state: Mutex::default() }
    }

    /// The first cycle after this one.
    pub fn after(&self, cycle: i32) -> Result<Option<i32>> {
        let next = (1..=NEIGHBOURS).map(|step| cycle.saturating_add(step));
        self.at(next, |found| found <= cycle, |cycles, at| cycles.get(at).copied())
    }

    /// The last cycle before this one.
    pub fn before(&self, cycle: i32) -> Result<Option<i32>> {
        let last = |cycles: &[i32], at: usize| at.checked_sub(1).map(|at| cycles[at]);
        let previous = (1..=NEIGHBOURS).map(|step| cycle.saturating_sub(step));
        self.at(previous, |found| found < cycle, last)
    }

    /// All cycles in ascending order, listed now.
    pub fn all(&self) -> Result<Vec<i32>> {
        let mut state = self.lock();
        *state = self.list()?;
        Ok(state.cycles.clone())
    }

    /// Makes the next query list nested directories again: creating one in an older directory
    /// changes none of the checked times.
    pub fn refresh(&self) {
        if !self.is_flat() {
            self.lock().stamps.clear();
        }
    }

    /// Whether all cycles are in one directory.
    pub fn is_flat(&self) -> bool {
        self.format.depth() == 1
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls the second closure with the position that partitions the cycles. If only the first and
    /// the last are known, and the cycle is between them, the nearest of `neighbours` that exists is
    /// taken.
    fn at(
        &self,
        mut neighbours: impl Iterator<Item = i32>,
        is_left: impl Fn(i32) -> bool,
        pick: impl FnOnce(&[i32], usize) -> Option<i32>,
    ) -> Result<Option<i32>> {
        let mut state = self.lock();
        if !state.is_current() {
            *state = self.hinted()?.map_or_else(|| self.list(), Ok)?;
        }
        let divided = |state: &State| state.cycles.partition_point(|found| is_left(*found));
        let mut at = divided(&state);
        if !state.is_whole && at > 0 && at < state.cycles.len() {
            if let Some(found) = neighbours.find(|cycle| self.exists(*cycle)) {
                return Ok(Some(found));
            }
            *state = self.list()?;
            at = divided(&state);
        }
        Ok(pick(&state.cycles, at))
    }

    /// Whether a cycle has a directory, as far as can be seen.
    fn exists(&self, cycle: i32) -> bool {
        let Some(name) = self.format.name(cycle) else { return false };
        let path = self.base.join(name);
        fault::call!("vanilla.dir.stat", std::fs::symlink_metadata(path))
            .is_ok_and(|it| it.is_dir())
    }

    fn hinted(&self) -> Result<Option<State>> {
        if !self.is_flat() {
            return Ok(None);
        }
        let stamp = changed(&self.base)?;
        Ok(self.hint.load(stamp).map(|(first, last)| State {
            cycles: vec![first, last],
            is_whole: false,
            stamps: vec![(self.base.clone(), stamp)],
            is_settled: true,
        }))
    }

    fn list(&self) -> Result<State> {
        let now = SystemTime::now();
        let mut names = Vec::new();
        // Taken before the names: later changes give another time.
        let base = changed(&self.base)?;
        leaves(&self.base, "", self.format.depth(), &mut names)?;
        let mut cycles: Vec<_> =
            names.iter().filter_map(|name| Some((self.format.cycle_of(name)?, name))).collect();
        cycles.sort_unstable();
        cycles.dedup_by_key(|(cycle, _)| *cycle);
        let mut stamps = vec![(self.base.clone(), base)];
        if let Some((_, newest)) = cycles.last() {
            for (end, _) in newest.match_indices('/') {
                let path = self.base.join(&newest[..end]);
                let changed = changed(&path)?;
                stamps.push((path, changed));
            }
        }
        let is_settled = stamps.iter().all(|(_, stamp)| stamp.is_settled(now));
        let cycles: Vec<_> = cycles.into_iter().map(|(cycle, _)| cycle).collect();
        if is_settled
            && self.is_flat()
            && let Some(file_mode) = self.file_mode
            && cycles.len() >= HINTED_FROM
            && let [first, .., last] = cycles[..]
        {
            self.hint.store(base, first, last, file_mode);
        }
        Ok(State { cycles, is_whole: true, stamps, is_settled })
    }
}

impl State {
    fn is_current(&self) -> bool {
        let is_same = |(path, before): &(PathBuf, Stamp)| {
            changed(path).is_ok_and(|changed| changed == *before)
        };
        self.is_settled && !self.stamps.is_empty() && self.stamps.iter().all(is_same)
    }
}

/// Follows a link to the queue's own directory, as the link itself never changes.
fn changed(path: &Path) -> Result<Stamp> {
    let found = fault::call!("vanilla.dir.stat", std::fs::metadata(path));
    found.map(|found| Stamp::of(&found)).map_err(|e| Error::io("cannot look at", path, e))
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

/// The pattern of the cycles below `base`, by the first directories that look like cycles; None if
/// none do.
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
    match fault::call!("vanilla.dir.read", first_entries(path, SAMPLE, |_| true)) {
        Ok(entries) => {
            let mut names = entries.iter().filter_map(|entry| entry.name.to_str());
            Ok(names.any(|name| FileName::parse(name).is_some()))
        }
        Err(error) if is_out_of_sight(&error) => Ok(false),
        Err(error) => Err(Error::io("cannot list", path, error)),
    }
}

/// Whether a directory was removed, or is not accessible to this user. Ignoring other failures
/// would hide cycles, and a writer would begin new ones by another pattern.
fn is_out_of_sight(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::PermissionDenied)
}

fn sample(base: &Path, name: &str, found: &mut Vec<String>) -> Result<()> {
    let path = base.join(name);
    let room = SAMPLE.saturating_sub(found.len());
    let may_be_cycle = |entry: &Entry| {
        entry.is_dir && entry.name.to_str().is_some_and(|name| !name.starts_with('.'))
    };
    let entries = match fault::call!("vanilla.dir.read", first_entries(&path, room, may_be_cycle)) {
        Ok(entries) => entries,
        Err(error) if is_out_of_sight(&error) && !name.is_empty() => return Ok(()),
        Err(error) => return Err(Error::io("cannot list", &path, error)),
    };
    found.extend(entries.iter().filter_map(|entry| entry.name.to_str()).map(|own_name| {
        if name.is_empty() { own_name.to_owned() } else { format!("{name}/{own_name}") }
    }));
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    const FIRST: i32 = 17_000;
    const COUNT: i32 = 100;

    const MISSING: std::ops::Range<i32> = FIRST + 60..FIRST + 64;

    /// A queue's directory with a hint, and a new listing of it.
    fn hinted() -> (tempfile::TempDir, Listing) {
        let dir = tempfile::tempdir().unwrap();
        let format = CycleFormat::new("yyyyMMdd", cycle::DAY_MS, jiff::tz::TimeZone::UTC).unwrap();
        for cycle in (FIRST..FIRST + COUNT).filter(|cycle| !MISSING.contains(cycle)) {
            std::fs::create_dir(dir.path().join(format.name(cycle).unwrap())).unwrap();
        }
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let listing = Listing::new(dir.path(), format.clone(), Some(0o600));
            listing.before(i32::MAX).unwrap();
            if !listing.lock().is_whole {
                let listing = Listing::new(dir.path(), format, None);
                return (dir, listing);
            }
            assert!(Instant::now() < deadline, "no hint is left");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    #[test]
    fn neither_end_is_listed_for_while_the_directory_stays_as_it_is() {
        let (_dir, listing) = hinted();
        for _ in 0..3 {
            assert_eq!(listing.before(i32::MAX).unwrap(), Some(FIRST + COUNT - 1));
            assert_eq!(listing.after(FIRST + COUNT - 1).unwrap(), None);
            assert_eq!(listing.after(-1).unwrap(), Some(FIRST));
            assert_eq!(listing.before(FIRST).unwrap(), None);
            assert!(!listing.lock().is_whole);
        }
    }

    #[test]
    fn a_neighbour_is_found_by_its_name() {
        let (_dir, listing) = hinted();
        assert_eq!(listing.before(FIRST + 50).unwrap(), Some(FIRST + 49));
        assert_eq!(listing.after(FIRST + 50).unwrap(), Some(FIRST + 51));
        assert_eq!(listing.after(MISSING.start + 1).unwrap(), Some(MISSING.end));
        assert!(!listing.lock().is_whole);
        assert_eq!(listing.before(MISSING.end).unwrap(), Some(MISSING.start - 1));
        assert!(listing.lock().is_whole);
    }

    #[test]
    fn cycles_that_are_made_or_removed_are_noticed() {
        let (dir, listing) = hinted();
        listing.before(i32::MAX).unwrap();
        std::fs::create_dir(dir.path().join("20990101")).unwrap();
        let newest = listing.format.cycle_of("20990101");
        assert_eq!(listing.before(i32::MAX).unwrap(), newest);
        std::fs::remove_dir(dir.path().join("20990101")).unwrap();
        assert_eq!(listing.before(i32::MAX).unwrap(), Some(FIRST + COUNT - 1));
    }

    #[test]
    fn a_file_that_has_another_name_is_not_overwritten() {
        let (dir, listing) = hinted();
        let (hint, other) = (dir.path().join(".cycles"), dir.path().join("other"));
        std::fs::write(&hint, "theirs").unwrap();
        std::fs::hard_link(&hint, &other).unwrap();
        listing.hint.store(changed(dir.path()).unwrap(), FIRST, FIRST + 1, 0o600);
        assert_eq!(std::fs::read(&other).unwrap(), b"theirs");
    }

    #[test]
    fn whole_seconds_take_longer_to_settle() {
        let at = SystemTime::UNIX_EPOCH + Duration::from_secs(100);
        let of = |nanos| Stamp { inode: 1, seconds: 100, nanos };
        assert!(!of(0).is_settled(at + Duration::from_secs(2)));
        assert!(of(0).is_settled(at + Duration::from_secs(4)));
        assert!(of(1).is_settled(at + Duration::from_secs(1)));
        assert!(!of(1).is_settled(at));
    }

    #[test]
    fn a_damaged_hint_or_one_of_another_format_is_none() {
        let (dir, listing) = hinted();
        let stamp = changed(dir.path()).unwrap();
        assert_eq!(listing.hint.load(stamp), Some((FIRST, FIRST + COUNT - 1)));
        let week = 7 * cycle::DAY_MS;
        let weekly = CycleFormat::new("yyyyMMdd", week, jiff::tz::TimeZone::UTC).unwrap();
        assert_eq!(Hint::new(dir.path(), &weekly).load(stamp), None);
        let path = dir.path().join(".cycles");
        let whole = std::fs::read(&path).unwrap();
        for place in 0..128 {
            let mut bytes = whole.clone();
            bytes[place] ^= 1;
            std::fs::write(&path, bytes).unwrap();
            assert_eq!(listing.hint.load(stamp), None, "byte {place}");
        }
        listing.hint.store(stamp, FIRST, FIRST - 1, 0o600);
        assert_eq!(listing.hint.load(stamp), None);
        std::fs::write(&path, &whole[..60]).unwrap();
        assert_eq!(listing.hint.load(stamp), None);
    }
}
