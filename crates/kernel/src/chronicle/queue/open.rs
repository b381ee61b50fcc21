//! Decides how to open a path: the rules that combine options with the existing files.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use jiff::tz::TimeZone;

use super::options::Options;
use super::trust;
use crate::chronicle::format::blocks;
use crate::chronicle::format::roll_cycle::{
    DAY_MS, INDEX_COUNT_MIN, INDEX_SHAPE_MAX, RollCycle, SUFFIX, Schedule, is_roll_file_name,
};
use crate::chronicle::format::store::RollFields;
use crate::chronicle::format::table::{self, Metadata};
use crate::chronicle::protocol::listing::{self, Names};
use crate::chronicle::protocol::lock::recovery::{self, ForceUnlock};
use crate::chronicle::protocol::repair;
use crate::chronicle::protocol::stored_cycle::{self, roll_cycle_of_files};
use crate::chronicle::protocol::table::registry;
use crate::chronicle::protocol::table::store::TableStore;
use crate::chronicle::protocol::{compressed, create};
use crate::os::detached::Detached;
use crate::os::files::{self, OwnName};
use crate::os::interrupt::{self, Signals};
use crate::os::paths;
use crate::probe::fault;
use crate::sealed::compressing::Compressing;
use crate::sealed::difference::Kind;
use crate::sealed::layers::Layers;
use crate::{Error, Result, warnings};

/// The defaults of a new queue.
const DEFAULT_ROLL_CYCLE: &str = "FAST_DAILY";
const DEFAULT_WIRE_TYPE: &str = "BINARY_LIGHT";
/// Wire types of queues. Java appends to those of the first four.
const WIRE_TYPES: [&str; 6] = [
    DEFAULT_WIRE_TYPE,
    "BINARY",
    FIELDLESS,
    "COMPRESSED_BINARY",
    "DELTA_BINARY",
    "DEFAULT_ZERO_BINARY",
];
/// The wire type whose roll files have no field names in their headers.
pub const FIELDLESS: &str = "FIELDLESS_BINARY";
const DIRECTORY_BITS: u32 = 0o100;
const BLOCK_MAX: u64 = 1 << 40;
/// After this long all writers have noticed that their table was removed: they check each second.
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
    /// The name of its directory, and of the directories created for it.
    pub own_name: OwnName,
    /// The queue's directory.
    pub dir: PathBuf,
    /// The cycle of the one file that was opened, if it was one file.
    pub single: Option<i32>,
    /// The table store, if there is one.
    pub table: Option<Arc<TableStore>>,
    /// The roll cycle, and when its cycles start.
    pub schedule: Schedule,
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
    /// How messages are compressed.
    pub compressing: Compressing,
    /// Transformations of messages that depend on their index.
    pub layers: Option<Layers>,
}

/// Opens `path` by the rules of `docs/compatibility.md`.
pub fn open(path: &Path, options: &Options, may_wait: &mut Detached) -> Result<Opened> {
    paths::check_local(path)?;
    // A relative path would change its meaning with the process's working directory.
    let path = &std::path::absolute(path).map_err(|e| Error::io("cannot find", path, e))?;
    check_wire_type(options)?;
    check_sizes(options)?;
    roll_time(options)?;
    if is_file(path) {
        return open_single(path, options, may_wait);
    }
    let made = prepare_directory(path, options)?;
    // A table makes it unnecessary to list the names, which may be many.
    let has_table = TableStore::is_ready(path);
    let names =
        if has_table { None } else { roll_cycle_of_files(path, options.roll_cycle.as_ref())? };
    let (found, file) = names.unzip();
    if !options.create && !has_table && found.is_none() && !has_unfinished_table(path) {
        let why = format!("no {} and no *{SUFFIX} file", table::FILE_NAME);
        return Err(Error::NotAQueue { why, path: path.clone() });
    }
    trust::check(path, options);
    // Files without a table may be of an older version: check before anything is created.
    let stored =
        file.map(|file| roll_of_version_4(&file, options, may_wait)).transpose()?.flatten();
    let options = &Options {
        epoch_ms: stored.as_ref().map_or(options.epoch_ms, |stored| Some(stored.epoch_ms)),
        roll_time: options.roll_time.clone().filter(|_| stored.is_none()),
        roll_time_zone: options.roll_time_zone.clone().filter(|_| stored.is_none()),
        ..options.clone()
    };
    let opened = if options.read_only {
        open_read_only(path, options, found, may_wait)
    } else {
        if !has_table {
            wait_for_noticing(path, found.as_ref(), may_wait)?;
        }
        open_for_writing(path, options, has_table, found, may_wait)
    };
    let opened = opened?;
    let wire_type = wire_type_of_files(&opened, options, may_wait)?;
    Ok(Opened { own_name: OwnName::new(made), wire_type, ..opened })
}

/// The wire type of a queue whose newest files have no field names, for which the table says
/// `BINARY_LIGHT`, as Java's does. An option overrides it.
fn wire_type_of_files(
    opened: &Opened,
    options: &Options,
    may_wait: &mut Detached,
) -> Result<String> {
    if options.wire_type.is_some() || opened.wire_type != DEFAULT_WIRE_TYPE {
        return Ok(opened.wire_type.clone());
    }
    let (roll, epoch_ms) = (opened.schedule.roll(), opened.schedule.epoch_ms());
    let names = Names { dir: &opened.dir, roll, epoch_ms };
    let mut layout = |cycle| {
        let path = opened.dir.join(roll.file_name(cycle, epoch_ms).ok()?);
        let pause = &mut || interrupt::check(may_wait);
        compressed::open_cycle(&path, cycle, false, pause).ok()?.map(|file| file.layout)
    };
    let listed = opened.table.as_deref().and_then(listing::highest).and_then(&mut layout);
    let newest = match listed {
        Some(layout) => Some(layout),
        // The newest file may not be ready, and the word may be stale.
        None => listing::list_well_named(names)?.into_iter().rev().find_map(layout),
    };
    let is_fieldless = newest.is_some_and(|layout| layout.fieldless);
    Ok(if is_fieldless { FIELDLESS } else { DEFAULT_WIRE_TYPE }.to_owned())
}

fn open_for_writing(
    path: &Path,
    options: &Options,
    has_table: bool,
    found: Option<RollCycle>,
    may_wait: &mut Detached,
) -> Result<Opened> {
    if let (Some(asked), Some(found)) = (&options.roll_cycle, &found) {
        check_roll_cycle(path, asked, found)?;
    }
    let roll = found.or_else(|| options.roll_cycle.clone()).map_or_else(default_roll_cycle, Ok)?;
    let wanted = wanted_metadata(options, &roll)?;
    // A table removed since the check above is not created again: see `wait_for_noticing`.
    let wanted = (!has_table).then_some(&wanted);
    let table = {
        let (mode, timeout) = (options.file_mode, options.timeout);
        registry::open_or_create(path, wanted, mode, timeout, Signals::Handled(may_wait))?
    };
    let lost = || Error::TableLost { what: "removed", path: path.join(table::FILE_NAME) };
    let table = table.ok_or_else(lost)?;
    if table.metadata().roll.format == roll.pattern {
        stored_cycle::record(&table, &roll, Signals::Handled(may_wait))?;
    }
    let opened = opened(path, options, Some(table), Some(roll), may_wait)?;
    let found = opened.schedule.roll();
    if let Some(asked) = options.roll_cycle.as_ref().filter(|asked| *asked != found) {
        if roll_cycle_of_files(path, Some(found))?.is_some() {
            check_roll_cycle(path, asked, found)?;
        }
        warnings::leave(format!(
            "the empty queue keeps its roll cycle: asked={} found={} path={}",
            asked.name,
            found.name,
            path.display()
        ));
    }
    if let Some(table) = &opened.table {
        recover_lock(table, options);
        let names = Names { dir: path, roll: found, epoch_ms: opened.schedule.epoch_ms() };
        listing::refresh_if_needed(names, table, Signals::Handled(may_wait))?;
        repair_after_restart(table, names, options, may_wait)?;
    }
    Ok(opened)
}

fn open_read_only(
    path: &Path,
    options: &Options,
    found: Option<RollCycle>,
    may_wait: &mut Detached,
) -> Result<Opened> {
    let table = TableStore::open_read_only(path, may_wait)?;
    if table.is_none() && has_unfinished_table(path) {
        warnings::leave(format!(
            "{} was never completed: the queue is read without it, by the names of its roll files: \
             path={}",
            table::FILE_NAME,
            path.display()
        ));
    }
    if table.is_none() && found.is_none() {
        let why = format!("no complete {} and no *{SUFFIX} file", table::FILE_NAME);
        return Err(Error::NotAQueue { why, path: path.to_path_buf() });
    }
    let opened = opened(path, options, table, found, may_wait)?;
    let found = opened.schedule.roll();
    if let Some(asked) = options.roll_cycle.as_ref().filter(|asked| *asked != found)
        && roll_cycle_of_files(path, Some(found))?.is_some()
    {
        check_roll_cycle(path, asked, found)?;
    }
    Ok(opened)
}

/// The roll parameters in the header of a version 4 file; None if the file is of version 5. An
/// error if appends after it are impossible, unless the queue is opened read-only.
fn roll_of_version_4(
    path: &Path,
    options: &Options,
    may_wait: &mut Detached,
) -> Result<Option<RollFields>> {
    let file = match compressed::open_either(path, 0, &mut || interrupt::check(may_wait)) {
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

/// Opens a single roll file.
fn open_single(path: &Path, options: &Options, may_wait: &mut Detached) -> Result<Opened> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let not_one = |why: &str| Error::NotAQueue { why: why.into(), path: path.to_path_buf() };
    if !is_roll_file_name(&name) {
        return Err(not_one("a queue is a directory, or with read_only=True one *.cq4 file"));
    }
    if !options.read_only {
        return Err(Error::Unsupported(format!(
            "appending to a single roll file: open its directory, or the file with read_only=True: \
             path={}",
            path.display()
        )));
    }
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let roll = stored_cycle::roll_cycle_of_file(&name, options.roll_cycle.as_ref());
    let table = TableStore::open_read_only(dir, may_wait).ok().flatten();
    if roll.is_none() && table.is_none() {
        return Err(not_one("the file name follows no roll cycle's pattern"));
    }
    let mut opened = opened(dir, options, table, roll, may_wait)?;
    let schedule = &opened.schedule;
    let cycle = schedule.roll().cycle_of_file(&name, schedule.epoch_ms());
    opened.single = Some(cycle.ok_or_else(|| not_one("the file name is not of its queue"))?);
    opened.path = path.to_path_buf();
    let Some(file) = compressed::open_either(path, 0, &mut || interrupt::check(may_wait))? else {
        return Err(not_one("the file holds no ready header"));
    };
    if options.wire_type.is_none() && file.layout.fieldless {
        FIELDLESS.clone_into(&mut opened.wire_type);
    }
    Ok(opened)
}

/// Combines the table, the options and the file names.
fn opened(
    dir: &Path,
    options: &Options,
    table: Option<Arc<TableStore>>,
    roll: Option<RollCycle>,
    may_wait: &mut Detached,
) -> Result<Opened> {
    let asked = options.roll_cycle.as_ref();
    let roll = match &table {
        Some(table) => stored_cycle::roll_cycle(dir, table, asked, may_wait)?,
        None => roll.or_else(|| asked.cloned()).map_or_else(default_roll_cycle, Ok)?,
    };
    let stored = table.as_deref().map(TableStore::metadata);
    let (epoch_ms, zone) = match stored {
        Some(stored) => (stored.roll.epoch_ms, stored.roll.roll_time_zone.as_deref()),
        None => (epoch(options, &roll)?, options.roll_time_zone.as_deref()),
    };
    if let Some(stored) = stored {
        warn_ignored_times(dir, options, &stored.roll)?;
        if ![0, stored.source_id].contains(&options.source_id) {
            let (asked, found) = (options.source_id.to_string(), stored.source_id.to_string());
            warn_ignored(dir, "source id", &asked, &found);
        }
    }
    let zone = zone_of(dir, options, zone)?;
    let wire_type = match (&options.wire_type, stored) {
        (None, Some(stored)) => stored.wire_type.clone(),
        (_, stored) => {
            let asked = wire_type(options);
            stored
                .map_or(Ok(()), |stored| check_stored_wire_type(dir, &asked, &stored.wire_type))?;
            asked
        }
    };
    let kind = Kind::of_wire_type(&wire_type);
    let compressing = Compressing::open(dir, options.compression, &options.encryption)?;
    let index_count = rounded(options.index_count.unwrap_or(roll.index_count), INDEX_COUNT_MIN);
    let index_spacing = rounded(options.index_spacing.unwrap_or(roll.index_spacing), 1);
    Ok(Opened {
        path: dir.to_path_buf(),
        own_name: OwnName::default(),
        dir: dir.to_path_buf(),
        single: None,
        schedule: Schedule::new(roll, epoch_ms, zone),
        wire_type,
        source_id: stored.map_or(options.source_id, |stored| stored.source_id),
        index_count,
        index_spacing,
        block: blocks::block(options.block_bytes, index_count),
        table,
        compressing: if kind.is_some() { compressing.late() } else { compressing },
        layers: Layers::new(&options.encryption, kind),
    })
}

/// Warns if the queue's roll time or zone differs from the options.
fn warn_ignored_times(dir: &Path, options: &Options, stored: &RollFields) -> Result<()> {
    let name = |zone: Option<TimeZone>| zone.and_then(|it| it.iana_name().map(str::to_owned));
    if let Some(asked) = &options.roll_time_zone {
        let found = stored.roll_time_zone.as_deref().unwrap_or("UTC");
        if asked != found
            && name(Schedule::zone(asked)?) != Schedule::zone(found).map_or(None, name)
        {
            warn_ignored(dir, "time zone", asked, found);
        }
    }
    if let Some(asked) = &options.roll_time {
        let found_ms = match &stored.roll_time {
            Some(time) => time_of_day(time).ok(),
            None => Some(stored.epoch_ms.rem_euclid(DAY_MS)),
        };
        if let Some(found_ms) = found_ms.filter(|found| time_of_day(asked).ok() != Some(*found)) {
            let minutes = found_ms / 60_000;
            warn_ignored(
                dir,
                "roll time",
                asked,
                &format!("{:02}:{:02}", minutes / 60, minutes % 60),
            );
        }
    }
    Ok(())
}

fn warn_ignored(dir: &Path, what: &str, asked: &str, found: &str) {
    warnings::leave(format!(
        "the queue keeps the {what} that it was created with: asked={asked} found={found} path={}",
        dir.display()
    ));
}

/// The zone of a queue. Readers ignore a zone that is unknown on this machine.
fn zone_of(dir: &Path, options: &Options, name: Option<&str>) -> Result<Option<TimeZone>> {
    match name.map_or(Ok(None), Schedule::zone) {
        Err(error) if options.read_only => {
            warnings::leave(format!(
                "cycles are assumed to start in UTC: {error} path={}",
                dir.display()
            ));
            Ok(None)
        }
        zone => zone,
    }
}

fn wanted_metadata(options: &Options, roll: &RollCycle) -> Result<Metadata> {
    let epoch_ms = epoch(options, roll)?;
    let zone = options.roll_time_zone.as_deref().map(Schedule::zone).transpose()?.flatten();
    let zone = zone.as_ref().and_then(TimeZone::iana_name).unwrap_or("UTC");
    let midnight = (zone != "UTC").then(|| "00:00".to_owned());
    let roll_time = options.roll_time.clone().or(midnight);
    Ok(Metadata {
        // Java's tables say this for every wire type of messages; another value keeps Java out.
        wire_type: Some(wire_type(options))
            .filter(|asked| Kind::of_wire_type(asked).is_some())
            .unwrap_or_else(|| DEFAULT_WIRE_TYPE.to_owned()),
        roll: RollFields {
            length_ms: roll.length_ms,
            format: roll.pattern.clone().into_owned(),
            epoch_ms,
            roll_time_zone: roll_time.is_some().then(|| zone.to_owned()),
            roll_time,
        },
        source_id: options.source_id,
    })
}

/// Creates the directory if missing, and returns the directories created.
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
                let is_file = is_roll_file_name(&path.to_string_lossy());
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

fn is_file(path: &Path) -> bool {
    fault::call!("open.path.stat", std::fs::metadata(path)).is_ok_and(|found| found.is_file())
}

/// Whether the directory has an unfinished table.
fn has_unfinished_table(dir: &Path) -> bool {
    let path = dir.join(table::FILE_NAME);
    fault::call!("open.table.stat", std::fs::symlink_metadata(path)).is_ok()
}

/// If a table may just have been removed, waits until its writers have noticed: none of them may
/// still be writing once this process creates another table with another lock.
fn wait_for_noticing(dir: &Path, found: Option<&RollCycle>, may_wait: &Detached) -> Result<()> {
    if found.is_none() {
        return Ok(());
    }
    let looked = fault::call!("open.table.stat", std::fs::metadata(dir));
    let changed =
        looked.and_then(|it| it.modified()).map_err(|e| Error::io("cannot look at", dir, e))?;
    // Removing a file changes its directory.
    let since = changed.elapsed().unwrap_or_default();
    may_wait.sleep(NOTICED_AFTER.saturating_sub(since));
    Ok(())
}

fn check_roll_cycle(path: &Path, asked: &RollCycle, found: &RollCycle) -> Result<()> {
    if asked == found {
        return Ok(());
    }
    let (asked, found) = (asked.name.to_string(), found.name.to_string());
    Err(Error::RollCycleMismatch { asked, found, path: path.to_path_buf() })
}

fn default_roll_cycle() -> Result<RollCycle> {
    RollCycle::by_name(DEFAULT_ROLL_CYCLE)
        .cloned()
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

/// An error if the requested wire type and the stored one are of different kinds.
fn check_stored_wire_type(dir: &Path, asked: &str, found: &str) -> Result<()> {
    if Kind::of_wire_type(asked) == Kind::of_wire_type(found) {
        return Ok(());
    }
    Err(Error::Unsupported(format!(
        "another wire type than the queue was created with: asked={asked} found={found} path={} \
         (open it without wire_type, or create a new queue)",
        dir.display()
    )))
}

/// The time of day of the roll in milliseconds, if requested.
fn roll_time(options: &Options) -> Result<Option<i64>> {
    let zone = options.roll_time_zone.as_deref().map(Schedule::zone).transpose()?.flatten();
    let Some(time) = &options.roll_time else { return Ok(zone.map(|_| 0)) };
    time_of_day(time).map(Some)
}

fn time_of_day(time: &str) -> Result<i64> {
    let bad = || Error::Invalid(format!("not a time of day: roll_time={time} expected=HH:mm"));
    let time: jiff::civil::Time = time.parse().map_err(|_| bad())?;
    let seconds = i64::from(time.hour()) * 3600 + i64::from(time.minute()) * 60;
    Ok((seconds + i64::from(time.second())) * 1000)
}

/// The epoch by the options: with a roll time, `epoch_ms` gives only the day.
fn epoch(options: &Options, roll: &RollCycle) -> Result<i64> {
    let day_ms = options.epoch_ms.unwrap_or(roll.default_epoch_ms);
    let Some(time_ms) = roll_time(options)? else { return Ok(day_ms) };
    if day_ms % DAY_MS == 0 {
        return Ok(day_ms + time_ms);
    }
    Err(Error::Invalid(format!(
        "a roll time goes with an epoch of whole days: epoch_ms={day_ms} roll_time_ms={time_ms}"
    )))
}

/// Rounded as in Java: up to a power of two of at least `least`.
fn rounded(asked: u32, least: u32) -> u32 {
    asked.max(least).next_power_of_two()
}

/// Java has no upper bounds; these are far above useful values.
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

/// Checks the newest files if the machine was started since they were written.
fn repair_after_restart(
    table: &TableStore,
    names: Names<'_>,
    options: &Options,
    may_wait: &mut Detached,
) -> Result<()> {
    if !repair::is_due(names, table)? {
        return Ok(());
    }
    // Other processes, also in other containers, must see that the holder is alive.
    table.announce(Signals::Handled(may_wait))?;
    let (mode, timeout) = (options.force_unlock, options.timeout);
    let guard = recovery::wait_to_write(table, mode, timeout, Signals::Handled(may_wait))?;
    repair::repair(names, table, &guard)?;
    listing::refresh(names, table, Signals::Deferred(guard.may_wait()))
}

/// Frees the write lock of a holder that died.
fn recover_lock(table: &TableStore, options: &Options) {
    let lock = table.write_lock();
    let found = lock.word.read();
    if found != table::UNLOCKED
        && options.force_unlock != ForceUnlock::Never
        && let Some(in_process) = lock.try_in_process()
    {
        recovery::force_if_dead(table, &in_process, lock.word, found);
    }
}
