//! The cycle length of a queue.
//!
//! Directories are named by days both for daily and for weekly cycles. If names do not show the
//! length, Quire stores it in `.cycle-length`, which Java skips, when it creates the queue or the
//! caller names the length. Without that file, directories that all begin a week are ambiguous:
//! nothing is appended until the caller names the length.

use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use jiff::tz::TimeZone;

use super::format::cycle::{self, CycleFormat, DAY_MS, NAMED};
use super::format::index::IndexSplit;
use super::options::VanillaOptions;
use super::protocol::listing::{self, Listing};
use crate::os::files::{self, Access};
use crate::probe::fault;
use crate::{Error, Result};

/// The name of the file that stores the length.
pub const NAME: &str = ".cycle-length";
/// The length of that file in bytes.
pub const LENGTH: usize = 64;
const KEY: &str = "cycle_length_ms=";
/// Days of the longest cycle whose directories are named by days.
const WEEK: i32 = 7;

/// How the cycles of a queue are named and numbered.
pub struct Cycles {
    /// Lengths and names.
    pub format: CycleFormat,
    /// How indexes are split.
    pub split: IndexSplit,
    /// Whether their length is only guessed from the names of directories.
    is_guessed: bool,
    /// Whether the length is to be stored, for other processes.
    is_kept: AtomicBool,
}

impl Cycles {
    /// The cycles by the options, the stored length, and the names of directories.
    pub fn of(path: &Path, options: &VanillaOptions) -> Result<Self> {
        let is_named = options.roll_cycle.is_some() && options.cycle_format.is_some();
        let guess = if is_named { None } else { listing::guess_pattern(path)? };
        let named = options.roll_cycle.as_deref().and_then(cycle::by_name);
        let guessed = guess.as_ref().map(|guess| guess.named);
        let kept = load(path)?;
        let by_length = kept.and_then(|kept| NAMED.into_iter().find(|it| it.length_ms == kept));
        let base = named.or(guessed).or(by_length).unwrap_or(NAMED[0]);
        let pattern = match (&options.cycle_format, &guess) {
            (Some(pattern), _) => pattern.clone(),
            (None, Some(guess)) if named.is_none_or(|it| it.pattern == guess.named.pattern) => {
                guess.pattern.clone()
            }
            (None, Some(guess)) => {
                return Err(mismatch(path, base.name, guess.named.name));
            }
            (None, None) => base.pattern.to_owned(),
        };
        let zone = options.zone.clone().unwrap_or(TimeZone::UTC);
        let format =
            |length_ms| CycleFormat::new(&pattern, length_ms, zone.clone()).map_err(Error::Invalid);
        let asked = options.cycle_length_ms.or(named.map(|it| it.length_ms));
        let mut found = format(asked.unwrap_or(base.length_ms))?;
        let kept = match kept {
            Some(kept) if guess.is_some() => Some(kept).filter(|_| fits(path, &found, kept)),
            kept => kept.filter(|_| asked.is_none() && by_length.is_some()),
        };
        if let Some(kept) = kept.filter(|kept| *kept != found.length_ms()) {
            if asked.is_some() {
                return Err(mismatch(path, &shown(found.length_ms()), &shown(kept)));
            }
            found = format(kept)?;
        }
        let is_known = asked.is_some() || kept.is_some();
        let entries = options.entries_per_cycle.map(u64::trailing_zeros);
        Ok(Self {
            is_guessed: !is_known && guess.is_some() && found.length_ms() == DAY_MS,
            is_kept: AtomicBool::new(
                kept.is_some() || (!is_known && guess.is_some()) || names_show_length(&found),
            ),
            format: found,
            split: IndexSplit { sequence_bits: entries.unwrap_or(base.sequence_bits) },
        })
    }

    /// An error if the directories may be those of weekly cycles, and a message of this cycle would
    /// then belong into another directory.
    pub fn check(&self, path: &Path, listing: &Listing, cycle: i32) -> Result<()> {
        if !self.is_guessed {
            return Ok(());
        }
        let cycles = listing.all()?;
        if cycles.is_empty() || cycles == [cycle] || cycles.iter().any(|it| it % WEEK != 0) {
            return Ok(());
        }
        Err(Error::CycleLengthUnknown { cycles: cycles.len(), path: path.to_path_buf() })
    }

    /// Stores the length of a new queue, or one whose length was given.
    pub fn keep(&self, path: &Path, file_mode: u32) -> Result<()> {
        if !self.is_kept.load(Ordering::Acquire) {
            store(path, self.format.length_ms(), file_mode)?;
            self.is_kept.store(true, Ordering::Release);
        }
        Ok(())
    }
}

/// Whether the names determine the length, and it is this one.
fn names_show_length(format: &CycleFormat) -> bool {
    let guess = format.name(0).and_then(|name| cycle::guess(&name));
    let length_ms = guess.map(|guess| guess.named.length_ms);
    length_ms == Some(format.length_ms()) && length_ms != Some(DAY_MS)
}

fn shown(length_ms: i64) -> String {
    let known = NAMED.into_iter().find(|it| it.length_ms == length_ms);
    known.map_or_else(|| format!("{KEY}{length_ms}"), |it| it.name.to_owned())
}

fn mismatch(path: &Path, asked: &str, found: &str) -> Error {
    let (asked, found) = (asked.to_owned(), found.to_owned());
    Error::RollCycleMismatch { asked, found, path: path.to_path_buf() }
}

/// Whether every directory begins a cycle of this length: otherwise the file belongs to other
/// directories.
fn fits(path: &Path, format: &CycleFormat, length_ms: i64) -> bool {
    let shortest = format.length_ms().min(length_ms).min(DAY_MS);
    let Ok(days) = CycleFormat::new(format.pattern(), shortest, format.zone().clone()) else {
        return false;
    };
    let cycles = Listing::new(path, days.clone(), None).all().unwrap_or_default();
    cycles.iter().all(|it| days.start_ms(*it).rem_euclid(length_ms) == 0)
}

fn path_of(path: &Path) -> PathBuf {
    path.join(NAME)
}

/// The stored length; None if the file has none, or is not Quire's.
fn load(path: &Path) -> Result<Option<i64>> {
    let name = path_of(path);
    let Some(file) = files::open(&name, Access { write: false, create_mode: None })? else {
        return Ok(None);
    };
    let mut bytes = [0; LENGTH];
    let read = fault::call!("vanilla.cycle-length.read", file.read_at(&mut bytes, 0));
    let read = read.map_err(|e| Error::io("cannot read", &name, e))?;
    let text = std::str::from_utf8(&bytes[..read]).unwrap_or_default();
    let length = text.trim().strip_prefix(KEY).and_then(|length| length.parse().ok());
    Ok(length.filter(|length| *length > 0))
}

/// Stored in place: a write of this length is not torn.
fn store(path: &Path, length_ms: i64, file_mode: u32) -> Result<()> {
    let name = path_of(path);
    let access = Access { write: true, create_mode: Some(file_mode) };
    let file = files::open(&name, access)?.ok_or_else(|| Error::gone("cannot make", &name))?;
    let found = fault::call!("vanilla.cycle-length.stat", file.metadata());
    if found.map_err(|e| Error::io("cannot look at", &name, e))?.nlink() > 1 {
        return Ok(()); // with a second name it is not Quire's file
    }
    let text = format!("{:<width$}\n", format!("{KEY}{length_ms}"), width = LENGTH - 1);
    let written = fault::call!("vanilla.cycle-length.write", file.write_all_at(text.as_bytes(), 0));
    written.map_err(|e| Error::io("cannot write", &name, e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_length_is_none() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(load(dir.path()).unwrap(), None);
        store(dir.path(), 604_800_000, 0o600).unwrap();
        assert_eq!(load(dir.path()).unwrap(), Some(604_800_000));
        assert_eq!(std::fs::metadata(path_of(dir.path())).unwrap().len(), LENGTH as u64);
        for text in ["", "cycle_length_ms=", "cycle_length_ms=-1", "WEEKS", "\u{fffd}"] {
            std::fs::write(path_of(dir.path()), text).unwrap();
            assert_eq!(load(dir.path()).unwrap(), None, "{text}");
        }
    }
}
