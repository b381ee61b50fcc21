//! Which roll cycle a directory has (`docs/format.md` §1.5).

use std::path::{Path, PathBuf};

use crate::chronicle::format::index::Shape;
use crate::chronicle::format::roll_cycle::{RollCycle, is_roll_file_name};
use crate::chronicle::format::table::INDEX_SHAPE;
use crate::chronicle::protocol::table::store::TableStore;
use crate::chronicle::protocol::{compressed, listing};
use crate::os::detached::Detached;
use crate::os::interrupt::{self, Signals};
use crate::probe::fault;
use crate::{Error, Result};

/// The roll cycle that a table names. For a custom one, facts missing from the table are taken from
/// `asked`, or from a roll file.
pub fn roll_cycle(
    dir: &Path,
    table: &TableStore,
    asked: Option<&RollCycle>,
    may_wait: &mut Detached,
) -> Result<RollCycle> {
    let stored = &table.metadata().roll;
    let unknown = |what: &str| {
        Error::Unsupported(format!(
            "{what}: format={} length_ms={} path={}",
            stored.format,
            stored.length_ms,
            dir.display()
        ))
    };
    if let Some(roll) = RollCycle::by_pattern(&stored.format) {
        let is_same = roll.length_ms == stored.length_ms;
        return is_same
            .then(|| roll.clone())
            .ok_or_else(|| unknown("a roll cycle with another length"));
    }
    let is_asked = |asked: &&RollCycle| {
        (&*asked.pattern, asked.length_ms) == (&*stored.format, stored.length_ms)
    };
    let shape = match (shape_of(table)?, asked.filter(is_asked)) {
        (Some(shape), _) => Some(shape),
        (None, Some(asked)) => return Ok(asked.clone()),
        (None, None) => shape_of_files(dir, may_wait)?,
    };
    let shape = shape.ok_or_else(|| {
        unknown(
            "the index layout of this custom roll cycle is not recorded, so pass \
             roll_cycle=RollCycle(...)",
        )
    })?;
    let made =
        RollCycle::custom(stored.length_ms, &stored.format, shape.index_count, shape.index_spacing);
    made.map_err(|error| unknown(&format!("the roll cycle of this queue ({error})")))
}

/// Records the index shape of a custom roll cycle; returns the roll cycle with the recorded shape.
pub fn record(table: &TableStore, roll: &RollCycle, signals: Signals<'_>) -> Result<RollCycle> {
    if roll.is_named() {
        return Ok(roll.clone());
    }
    let word = i64::from(roll.index_count) << 32 | i64::from(roll.index_spacing);
    table.find_or_create(INDEX_SHAPE, word, signals)?;
    let shape = shape_of(table)?
        .unwrap_or(Shape { index_count: roll.index_count, index_spacing: roll.index_spacing });
    RollCycle::custom(roll.length_ms, &roll.pattern, shape.index_count, shape.index_spacing)
}

fn shape_of(table: &TableStore) -> Result<Option<Shape>> {
    let Some(position) = table.find(INDEX_SHAPE)? else { return Ok(None) };
    let word = table.value(position, 0);
    let halves = (u32::try_from(word >> 32), u32::try_from(word & 0xFFFF_FFFF));
    Ok(match halves {
        (Ok(index_count), Ok(index_spacing)) => Some(Shape { index_count, index_spacing }),
        _ => None,
    })
}

/// The shape of the index in the first roll file that is ready.
fn shape_of_files(dir: &Path, may_wait: &mut Detached) -> Result<Option<Shape>> {
    let mut names = listing::roll_file_names(dir)?;
    names.sort_unstable();
    for name in names {
        let pause = &mut || interrupt::check(may_wait);
        if let Ok(Some(file)) = compressed::open_either(&dir.join(name), 0, pause) {
            return Ok(Some(file.shape));
        }
    }
    Ok(None)
}

/// The roll cycle that the directory's file names follow, and one of them; None without files.
/// Names that follow none of Chronicle's patterns may follow that of `asked`.
pub fn roll_cycle_of_files(
    dir: &Path,
    asked: Option<&RollCycle>,
) -> Result<Option<(RollCycle, PathBuf)>> {
    let failed = |e| Error::io("cannot list", dir, e);
    for entry in fault::call!("open.dir.read", std::fs::read_dir(dir)).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        let name = name.to_string_lossy();
        if is_roll_file_name(&name) {
            let roll = roll_cycle_of_file(&name, asked).ok_or_else(|| Error::NotAQueue {
                why: format!("file {name} follows no roll cycle's pattern"),
                path: dir.to_path_buf(),
            })?;
            return Ok(Some((roll, dir.join(name.as_ref()))));
        }
    }
    Ok(None)
}

/// The roll cycle that a file name follows.
#[must_use]
pub fn roll_cycle_of_file(name: &str, asked: Option<&RollCycle>) -> Option<RollCycle> {
    let is_asked = |asked: &&RollCycle| {
        !asked.is_named() && asked.cycle_of_file(name, asked.default_epoch_ms).is_some()
    };
    asked.filter(is_asked).or_else(|| RollCycle::by_file_name(name)).cloned()
}
