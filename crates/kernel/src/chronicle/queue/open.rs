//! What is at a path, and how it is to be opened: the rules about options and what exists already.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::options::Options;
use super::trust;
use crate::chronicle::format::blocks;
use crate::chronicle::format::roll_cycle::{INDEX_COUNT_MIN, INDEX_SHAPE_MAX, RollCycle, SUFFIX};
use crate::chronicle::format::store::RollFields;
use crate::chronicle::format::table::{self, Metadata};
use crate::chronicle::protocol::create;
use crate::chronicle::protocol::listing::{self, Names};
use crate::chronicle::protocol::lock::guard::WriteGuard;
use crate::chronicle::protocol::lock::recovery::{self, ForceUnlock};
use crate::chronicle::protocol::repair;
use crate::chronicle::protocol::table::registry;
use crate::chronicle::protocol::table::store::TableStore;
use crate::os::files::{self, OwnName};
use crate::os::paths;
use crate::probe::fault;
use crate::{Error, Result, warnings};

/// What a queue is opened with when nobody says otherwise.
const DEFAULT_ROLL_CYCLE: &str = "FAST_DAILY";
const DEFAULT_WIRE_TYPE: &str = "BINARY_LIGHT";
/// Wire types whose queues Java opens; the others it refuses.
const WIRE_TYPES: [&str; 4] = [DEFAULT_WIRE_TYPE, "BINARY", FIELDLESS, "COMPRESSED_BINARY"];
/// The wire type whose roll files have no field names in their headers.
pub const FIELDLESS: &str = "FIELDLESS_BINARY";
const DIRECTORY_BITS: u32 = 0o100;
const BLOCK_MAX: u64 = 1 << 40;
/// Writers look each second whether their table is still there.
const NOTICED_AFTER: Duration =
    Duration::from_millis(if cfg!(any(feature = "fault-points", feature = "power-loss")) {
        0
    } else {
        1500
    });

/// An opened path.
pub struct Opened {
    /// The path as it was given.
    pub path: PathBuf,
    /// Its directory's name, and those of the directories that were made for it.
    pub own_name: OwnName,
    /// The queue's directory.
    pub dir: PathBuf,
    /// The cycle of the one file that was opened, if it was one file.
    pub single: Option<i32>,
    /// The table store, where there is one.
    pub table: Option<Arc<TableStore>>,
    /// The roll cycle.
    pub roll: &'static RollCycle,
    /// Epoch in milliseconds.
    pub epoch_ms: i64,
    /// Chronicle's name of the wire type.
    pub wire_type: String,
    /// The queue's id in message history.
    pub source_id: i32,
    /// Slots of new index arrays.
    pub index_count: u32,
    /// Every n-th message is indexed, in new files.
    pub index_spacing: u32,
    /// Block size in bytes.
    pub block: u64,
}

/// Opens `path` by the rules of `docs/compatibility.md`.
pub fn open(path: &Path, options: &Options) -> Result<Opened> {
    paths::check_local(path)?;
    // A relative one would lead elsewhere once the process changes its directory.
    let path = &std::path::absolute(path).map_err(|e| Error::io("cannot find", path, e))?;
    check_wire_type(options)?;
    check_sizes(options)?;
    let epoch_ms = epoch(options)?;
    if is_file(path) {
        return open_single(path, options);
    }
    let made = prepare_directory(path, options)?;
    // A table says all that names could: a directory of many files is not looked through.
    let has_table = TableStore::is_ready(path);
    let names = if has_table { None } else { roll_cycle_of_files(path)? };
    let (found, file) = names.unzip();
    if !options.create && !has_table && found.is_none() && !has_unfinished_table(path) {
        let why = format!("no {} and no *{SUFFIX} file", table::FILE_NAME);
        return Err(Error::NotAQueue { why, path: path.clone() });
    }
    trust::check(path, options);
    // Files without a table may be of an older version: look before anything is made.
    let stored = file.map(|file| roll_of_version_4(&file, options)).transpose()?.flatten();
    let epoch_ms = stored.as_ref().map_or(epoch_ms, |stored| Some(stored.epoch_ms));
    let options = &Options {
        epoch_ms,
        roll_time: options.roll_time.clone().filter(|_| stored.is_none()),
        ..options.clone()
    };
    let opened = if options.read_only {
        open_read_only(path, options, found)
    } else {
        if !has_table {
            wait_for_noticing(path, found)?;
        }
        open_for_writing(path, options, has_table, found, epoch_ms)
    };
    opened.map(|opened| Opened { own_name: OwnName::new(made), ..opened })
}

fn open_for_writing(
    path: &Path,
    options: &Options,
    has_table: bool,
    found: Option<&'static RollCycle>,
    epoch_ms: Option<i64>,
) -> Result<Opened> {
    if let (Some(asked), Some(found)) = (options.roll_cycle, found) {
        check_roll_cycle(path, asked, found)?;
    }
    let roll = found.or(options.roll_cycle).map_or_else(default_roll_cycle, Ok)?;
    let wanted = wanted_metadata(options, roll, epoch_ms.unwrap_or(roll.default_epoch_ms));
    // One that is gone since it was seen is not made again at once: see `wait_for_noticing`.
    let wanted = (!has_table).then_some(&wanted);
    let table = registry::open_or_create(path, wanted, options.file_mode, options.timeout)?;
    let lost = || Error::TableLost { what: "removed", path: path.join(table::FILE_NAME) };
    let opened = opened(path, options, Some(table.ok_or_else(lost)?), roll)?;
    if let Some(asked) = options.roll_cycle.filter(|asked| *asked != opened.roll) {
        if roll_cycle_of_files(path)?.is_some() {
            check_roll_cycle(path, asked, opened.roll)?;
        }
        warnings::leave(format!(
            "the empty queue keeps its roll cycle: asked={} found={} path={}",
            asked.name,
            opened.roll.name,
            path.display()
        ));
    }
    if let Some(table) = &opened.table {
        recover_lock(table, options);
        let names = Names { dir: path, roll: opened.roll, epoch_ms: opened.epoch_ms };
        listing::refresh_if_needed(names, table)?;
        repair_after_restart(table, names, options)?;
    }
    Ok(opened)
}

fn open_read_only(
    path: &Path,
    options: &Options,
    found: Option<&'static RollCycle>,
) -> Result<Opened> {
    let table = TableStore::open_read_only(path)?;
    if table.is_none() && has_unfinished_table(path) {
        warnings::leave(format!(
            "{} was never completed: the queue is read without it, by the names of its files \
             path={}",
            table::FILE_NAME,
            path.display()
        ));
    }
    if table.is_none() && found.is_none() {
        let why = format!("no complete {} and no *{SUFFIX} file", table::FILE_NAME);
        return Err(Error::NotAQueue { why, path: path.to_path_buf() });
    }
    let roll = found.or(options.roll_cycle).map_or_else(default_roll_cycle, Ok)?;
    let opened = opened(path, options, table, roll)?;
    if let Some(asked) = options.roll_cycle.filter(|asked| *asked != opened.roll)
        && roll_cycle_of_files(path)?.is_some()
    {
        check_roll_cycle(path, asked, opened.roll)?;
    }
    Ok(opened)
}

/// What a file of version 4 says in its header about its queue; None where it is of version 5. An
/// error where nobody could append after it, unless that is not asked for.
fn roll_of_version_4(path: &Path, options: &Options) -> Result<Option<RollFields>> {
    let file = match create::open_existing(path, 0, false) {
        Ok(Some(file)) => file,
        Ok(None) => return Ok(None),
        Err(_) if options.read_only || create::is_unfinished(path)? => return Ok(None),
        Err(error) => return Err(error),
    };
    if create::is_of_version_4(&file) {
        return Ok(file.layout.roll);
    }
    if !options.read_only {
        create::check_writable(&file)?;
    }
    Ok(None)
}

/// One roll file on its own.
fn open_single(path: &Path, options: &Options) -> Result<Opened> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let not_one = |why: &str| Error::NotAQueue { why: why.into(), path: path.to_path_buf() };
    if !name.ends_with(SUFFIX) {
        return Err(not_one("a queue is a directory, or with read_only=True one *.cq4 file"));
    }
    if !options.read_only {
        return Err(Error::Unsupported(format!(
            "appending to one roll file alone: open its directory, or the file with read_only=True \
             path={}",
            path.display()
        )));
    }
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let roll = RollCycle::by_file_name(&name).or(options.roll_cycle);
    let roll = roll.ok_or_else(|| not_one("the file name follows no roll cycle's pattern"))?;
    let table = TableStore::open_read_only(dir).ok().flatten();
    let mut opened = opened(dir, options, table, roll)?;
    let cycle = opened.roll.cycle_of_file(&name, opened.epoch_ms);
    opened.single = Some(cycle.ok_or_else(|| not_one("the file name is not of its queue"))?);
    opened.path = path.to_path_buf();
    if create::open_existing(path, 0, false)?.is_none() {
        return Err(not_one("the file holds no ready header"));
    }
    Ok(opened)
}

/// Puts together what the table says with what the options and the file names say.
fn opened(
    dir: &Path,
    options: &Options,
    table: Option<Arc<TableStore>>,
    roll: &'static RollCycle,
) -> Result<Opened> {
    let stored = table.as_deref().map(TableStore::metadata);
    let roll = match stored {
        Some(stored) => stored_roll_cycle(dir, stored)?,
        None => roll,
    };
    let epoch_ms = match stored {
        Some(stored) => stored.roll.epoch_ms,
        None => epoch(options)?.unwrap_or(roll.default_epoch_ms),
    };
    let index_count = rounded(options.index_count.unwrap_or(roll.index_count), INDEX_COUNT_MIN);
    let index_spacing = rounded(options.index_spacing.unwrap_or(roll.index_spacing), 1);
    Ok(Opened {
        path: dir.to_path_buf(),
        own_name: OwnName::default(),
        dir: dir.to_path_buf(),
        single: None,
        roll,
        epoch_ms,
        wire_type: match (&options.wire_type, stored) {
            (None, Some(stored)) => stored.wire_type.clone(),
            _ => wire_type(options),
        },
        source_id: stored.map_or(options.source_id, |stored| stored.source_id),
        index_count,
        index_spacing,
        block: blocks::block(options.block_bytes, index_count),
        table,
    })
}

fn stored_roll_cycle(dir: &Path, stored: &Metadata) -> Result<&'static RollCycle> {
    let unknown = |what| {
        Error::Unsupported(format!(
            "{what}: format={} length_ms={} path={}",
            stored.roll.format,
            stored.roll.length_ms,
            dir.display()
        ))
    };
    let roll = RollCycle::by_pattern(&stored.roll.format)
        .ok_or_else(|| unknown("the roll cycle of this queue"))?;
    if roll.length_ms == stored.roll.length_ms {
        Ok(roll)
    } else {
        Err(unknown("a roll cycle with another length"))
    }
}

fn wanted_metadata(options: &Options, roll: &'static RollCycle, epoch_ms: i64) -> Metadata {
    let with_time = options.roll_time.is_some();
    Metadata {
        // What Java's tables say whatever the wire type of the messages.
        wire_type: DEFAULT_WIRE_TYPE.to_owned(),
        roll: RollFields {
            length_ms: roll.length_ms,
            format: roll.pattern.to_owned(),
            epoch_ms,
            roll_time: options.roll_time.clone(),
            roll_time_zone: with_time.then(|| "UTC".to_owned()),
        },
        source_id: options.source_id,
    }
}

/// Makes the directory if there is none, and says which ones were made.
fn prepare_directory(path: &Path, options: &Options) -> Result<Vec<PathBuf>> {
    let mut made = Vec::new();
    match fault::call!("open.path.stat", std::fs::metadata(path)) {
        Ok(found) if found.is_dir() => {}
        Ok(_) => {
            let why = "a queue is a directory".to_owned();
            return Err(Error::NotAQueue { why, path: path.to_path_buf() });
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            if options.read_only || !options.create {
                let is_file = path.extension().is_some_and(|suffix| suffix == "cq4");
                let why = if is_file { "no such file" } else { "no such directory" }.to_owned();
                return Err(Error::NotAQueue { why, path: path.to_path_buf() });
            }
            made = make_directory(path, options)?;
        }
        Err(error) => return Err(Error::io("cannot open", path, error)),
    }
    if !options.read_only && !options.allow_network {
        check_file_system(path)?;
    }
    Ok(made)
}

fn make_directory(path: &Path, options: &Options) -> Result<Vec<PathBuf>> {
    // Users who may read a file may search the directory.
    let search = (options.file_mode & 0o444) >> 2;
    let permissions = options.file_mode | search | DIRECTORY_BITS;
    let made = fault::call!("open.dir.create", files::make_directories(path, permissions));
    made.map_err(|e| Error::io("cannot create", path, e))
}

fn check_file_system(path: &Path) -> Result<()> {
    match files::network_file_system_of(path)? {
        Some(name) => Err(Error::Unsupported(format!(
            "writing on a network file system: file_system={name} path={} (locks and shared memory \
             do not reach other hosts; allow_network=True if only one host uses the queue)",
            path.display()
        ))),
        None => Ok(()),
    }
}

/// The roll cycle that the directory's file names follow, and one of them; None without files.
fn roll_cycle_of_files(dir: &Path) -> Result<Option<(&'static RollCycle, PathBuf)>> {
    let failed = |e| Error::io("cannot list", dir, e);
    for entry in fault::call!("open.dir.read", std::fs::read_dir(dir)).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        let name = name.to_string_lossy();
        if name.ends_with(SUFFIX) {
            let roll = RollCycle::by_file_name(&name).ok_or_else(|| Error::NotAQueue {
                why: format!("file {name} follows no roll cycle's pattern"),
                path: dir.to_path_buf(),
            })?;
            return Ok(Some((roll, dir.join(name.as_ref()))));
        }
    }
    Ok(None)
}

fn is_file(path: &Path) -> bool {
    fault::call!("open.path.stat", std::fs::metadata(path)).is_ok_and(|found| found.is_file())
}

/// Whether somebody has begun to make a table here.
fn has_unfinished_table(dir: &Path) -> bool {
    let path = dir.join(table::FILE_NAME);
    fault::call!("open.table.stat", std::fs::symlink_metadata(path)).is_ok()
}

/// Lets writers notice that their table was removed, where it may just have been: none of them may
/// still be writing once this process makes another one, with a lock of its own.
fn wait_for_noticing(dir: &Path, found: Option<&RollCycle>) -> Result<()> {
    if found.is_none() {
        return Ok(());
    }
    let looked = fault::call!("open.table.stat", std::fs::metadata(dir));
    let changed =
        looked.and_then(|it| it.modified()).map_err(|e| Error::io("cannot look at", dir, e))?;
    // Removing a file changes its directory.
    let since = changed.elapsed().unwrap_or_default();
    std::thread::sleep(NOTICED_AFTER.saturating_sub(since));
    Ok(())
}

fn check_roll_cycle(path: &Path, asked: &RollCycle, found: &RollCycle) -> Result<()> {
    if asked == found {
        return Ok(());
    }
    let (asked, found) = (asked.name.to_owned(), found.name.to_owned());
    Err(Error::RollCycleMismatch { asked, found, path: path.to_path_buf() })
}

fn default_roll_cycle() -> Result<&'static RollCycle> {
    RollCycle::by_name(DEFAULT_ROLL_CYCLE)
        .ok_or_else(|| Error::Unsupported(DEFAULT_ROLL_CYCLE.to_owned()))
}

fn wire_type(options: &Options) -> String {
    options.wire_type.as_deref().unwrap_or(DEFAULT_WIRE_TYPE).to_ascii_uppercase()
}

fn check_wire_type(options: &Options) -> Result<()> {
    let asked = wire_type(options);
    if WIRE_TYPES.contains(&asked.as_str()) {
        return Ok(());
    }
    let known = WIRE_TYPES.join(", ");
    Err(Error::Unsupported(format!("wire type of a queue: wire_type={asked} known={known}")))
}

/// The epoch that the options ask for, from a roll time or as it is.
fn epoch(options: &Options) -> Result<Option<i64>> {
    if let Some(zone) = options.roll_time_zone.as_deref().filter(|zone| *zone != "UTC") {
        return Err(Error::Unsupported(format!(
            "rolling in a zone: roll_time_zone={zone} known=UTC"
        )));
    }
    let Some(time) = &options.roll_time else { return Ok(options.epoch_ms) };
    let bad = || Error::Invalid(format!("not a time of day: roll_time={time} expected=HH:mm"));
    let time: jiff::civil::Time = time.parse().map_err(|_| bad())?;
    let seconds = i64::from(time.hour()) * 3600 + i64::from(time.minute()) * 60;
    Ok(Some((seconds + i64::from(time.second())) * 1000))
}

/// As Java rounds: up to a power of two of at least `least`.
fn rounded(asked: u32, least: u32) -> u32 {
    asked.max(least).next_power_of_two()
}

/// Java has no upper bounds; here they are far above what can be of use.
fn check_sizes(options: &Options) -> Result<()> {
    let sizes = [
        ("index_count", options.index_count.map(u64::from), u64::from(INDEX_SHAPE_MAX)),
        ("index_spacing", options.index_spacing.map(u64::from), u64::from(INDEX_SHAPE_MAX)),
        ("block_bytes", Some(options.block_bytes), BLOCK_MAX),
    ];
    for (name, asked, limit) in sizes {
        if let Some(asked) = asked.filter(|asked| *asked > limit) {
            return Err(Error::Invalid(format!("{name} too large: {name}={asked} limit={limit}")));
        }
    }
    Ok(())
}

/// Looks at the newest files if the machine was started since they were written.
fn repair_after_restart(table: &TableStore, names: Names<'_>, options: &Options) -> Result<()> {
    if !repair::is_due(names, table)? {
        return Ok(());
    }
    // Others must see that the holder lives, in other containers too.
    table.announce()?;
    let lock = table.write_lock();
    let taken = recovery::wait(table, lock, options.force_unlock, options.timeout)?;
    let guard = WriteGuard::new(taken);
    repair::repair(names, table, &guard)?;
    listing::refresh(names, table)
}

/// Frees the write lock of a holder that died.
fn recover_lock(table: &TableStore, options: &Options) {
    let lock = table.write_lock();
    let found = lock.word.read();
    if found != table::UNLOCKED
        && options.force_unlock != ForceUnlock::Never
        && let Some(turn) = lock.try_turn()
    {
        recovery::force_if_dead(table, &turn, lock.word, found);
    }
}
