//! Where a named tailer resumes: a small file in the queue's directory, which Java ignores.
//!
//! | offset | content |
//! |---|---|
//! | 0 | `QuireVT1` |
//! | 8 | index of the next message; -1: the first |
//! | 16 | index of the next message of the cycle before, where a slow writer may still append; -1: none |
//! | 24 | process id of the tailer that has the lock of the file |
//! | 32 | epoch milliseconds of when it took it |
//! | 40 | index of the first message of the first cycle skipped as empty and still watched; 0: none |
//! | 48, 56 | as 16, of two cycles before that one; 0: none |

use std::fs::File;
use std::path::{Path, PathBuf};

use super::protocol::block::Block;
use crate::os::clock::Clock;
use crate::os::detached::Detached;
use crate::os::files;
use crate::os::locked_file::LockedFile;
use crate::os::process;
use crate::os::range_lock::{Kind, WHOLE_FILE};
use crate::probe::fault::{self, step};
use crate::{Error, Result};

const MAGIC: [u8; 8] = *b"QuireVT1";
const NEXT: u64 = 8;
const LATE: u64 = 16;
const PID: u64 = 24;
const SINCE: u64 = 32;
const FLOOR: u64 = 40;
const FURTHER: [u64; 2] = [48, 56];
const LENGTH: u64 = 64;
const PREFIX: &str = ".tailer-";
/// Names have at most this many bytes.
const LONGEST_NAME: usize = 100;

/// A position that is kept under a name.
pub struct NamedPosition {
    block: Block,
    /// The file's lock; None if shared.
    _held: Option<LockedFile>,
}

impl NamedPosition {
    /// Opens the file, created if missing, and takes its lock unless `shared`.
    pub fn open(
        base: &Path,
        name: &str,
        mode: u32,
        shared: bool,
        may_wait: &Detached,
    ) -> Result<Self> {
        let path = path_of(base, name)?;
        // Locked by another description, which forked children give up: mappings would keep it.
        let held = if shared {
            None
        } else {
            LockedFile::take(&path, mode, WHOLE_FILE, Kind::Exclusive, may_wait)?
        };
        let mut block = Block::open_or_create(&path, LENGTH, mode)?;
        match &held {
            None if !shared => return Err(in_use(&mut block, name)?),
            Some(held) if !is_same(held, block.file(), &path)? => {
                return Err(Error::gone("replaced", &path));
            }
            _ => {}
        }
        block.make_writable(0, LENGTH)?;
        let found = block.region().load_acquire(0);
        if found == 0 {
            block.region().store_release(NEXT, u64::MAX, step!("vanilla.position.next.store"));
            block.region().store_release(LATE, u64::MAX, step!("vanilla.position.late.store"));
            let magic = u64::from_le_bytes(MAGIC);
            block.region().store_release(0, magic, step!("vanilla.position.magic.store"));
        } else if found != u64::from_le_bytes(MAGIC) {
            let (found, expected) = (format!("{found:#x}"), "QuireVT1");
            return Err(Error::corrupt("not the position of a tailer", &path, 0, found, expected));
        }
        let (pid, now) = (u64::from(process::pid()), Clock::System.now_ms().cast_unsigned());
        block.region().store_release(PID, pid, step!("vanilla.position.pid.store"));
        block.region().store_release(SINCE, now, step!("vanilla.position.since.store"));
        Ok(Self { block, _held: held })
    }

    /// The stored position.
    pub fn load(&self) -> Kept {
        Kept::of(|at| Ok(self.block.region().load_acquire(at))).unwrap_or_default()
    }

    /// Stores a position. Earlier cycles are stored first: after a crash in between a message is
    /// read again.
    pub fn store(&self, kept: &Kept) {
        let region = self.block.region();
        let word = |value: Option<i64>| value.unwrap_or(-1).cast_unsigned();
        for (at, value) in FURTHER.into_iter().zip(&kept.late[1..]) {
            let value = value.unwrap_or_default().cast_unsigned();
            if region.load_acquire(at) != value {
                region.store_release(at, value, step!("vanilla.position.further.store"));
            }
        }
        let floor = kept.floor.unwrap_or_default().cast_unsigned();
        if region.load_acquire(FLOOR) != floor {
            region.store_release(FLOOR, floor, step!("vanilla.position.floor.store"));
        }
        region.store_release(LATE, word(kept.late[0]), step!("vanilla.position.late.store"));
        region.store_release(NEXT, word(kept.next), step!("vanilla.position.next.store"));
    }
}

/// A position, with those still needed in earlier cycles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// The index of the next message; None: the first.
    next: Option<i64>,
    /// Next indexes of earlier cycles to which slow writers may append, the latest first.
    late: [Option<i64>; Kept::MOST_LATE],
    /// From this cycle on, cycles without an index here had no message.
    floor: Option<i64>,
}

impl Kept {
    /// Earlier cycles that have an index.
    pub const MOST_LATE: usize = 1 + FURTHER.len();

    /// A position without earlier cycles.
    pub fn new(next: Option<i64>) -> Self {
        Self { next, ..Self::default() }
    }

    fn of(mut word: impl FnMut(u64) -> Result<u64>) -> Result<Self> {
        let mut index = |at, least| -> Result<_> {
            Ok(Some(word(at)?.cast_signed()).filter(|it| *it >= least))
        };
        let next = index(NEXT, 0)?;
        let late = [index(LATE, 0)?, index(FURTHER[0], 1)?, index(FURTHER[1], 1)?];
        Ok(Self { next, late, floor: index(FLOOR, 1)? })
    }

    /// The index of the next message; None: the first.
    pub const fn next(&self) -> Option<i64> {
        self.next
    }

    /// The same with other indexes; none of them is greater.
    #[must_use]
    pub fn mapped(self, index: impl Fn(i64) -> i64) -> Self {
        let [late, further @ ..] = self.late.map(|it| it.map(&index));
        Self { next: self.next.map(index), late: [late, further[0], further[1]], floor: self.floor }
    }

    /// Indexes of the next messages of earlier cycles.
    pub fn late(&self) -> impl Iterator<Item = i64> {
        self.late.into_iter().flatten()
    }

    /// Adds a cycle that precedes all cycles added before.
    pub fn add_late(&mut self, index: i64) {
        if let Some(free) = self.late.iter_mut().find(|it| it.is_none()) {
            *free = Some(index);
        }
    }

    /// An index of the first cycle without an index that may still get messages.
    pub const fn floor(&self) -> Option<i64> {
        self.floor
    }

    /// Sets what [`Kept::floor`] returns.
    pub const fn set_floor(&mut self, index: i64) {
        self.floor = Some(index);
    }
}

/// The named tailers of a queue, each with its position.
pub fn stored(base: &Path) -> Result<Vec<(String, Kept)>> {
    let failed = |e| Error::io("cannot list", base, e);
    let mut found = Vec::new();
    for entry in fault::call!("vanilla.dir.read", std::fs::read_dir(base)).map_err(failed)? {
        let file = entry.map_err(failed)?.file_name();
        let Some(name) = file.to_str().and_then(name_of) else { continue };
        if let Some(mut block) = Block::open(&base.join(&file), false)? {
            found.push((name, kept_in(&mut block)?));
        }
    }
    found.sort_by(|(one, _), (other, _)| one.cmp(other));
    Ok(found)
}

/// The position in a file that other processes may be using.
fn kept_in(block: &mut Block) -> Result<Kept> {
    let magic = block.word64(0)?;
    if magic == 0 {
        return Ok(Kept::default());
    }
    if magic != u64::from_le_bytes(MAGIC) {
        let (found, expected) = (format!("{magic:#x}"), "QuireVT1");
        let what = "not the position of a tailer";
        return Err(Error::corrupt(what, block.path(), 0, found, expected));
    }
    Kept::of(|at| block.word64(at))
}

fn is_same(one: &File, other: &File, path: &Path) -> Result<bool> {
    let stat = |file: &File| fault::call!("vanilla.file.stat", file.metadata());
    let failed = |e| Error::io("cannot look at", path, e);
    let (one, other) = (stat(one).map_err(failed)?, stat(other).map_err(failed)?);
    Ok(files::identity_of(&one) == files::identity_of(&other))
}

fn in_use(block: &mut Block, name: &str) -> Result<Error> {
    let pid = u32::try_from(block.word64(PID)?).unwrap_or(0);
    let since_ms = block.word64(SINCE)?.cast_signed();
    let since = jiff::Timestamp::from_millisecond(since_ms).unwrap_or_default().to_string();
    let (tailer, path) = (name.to_owned(), block.path().to_path_buf());
    Ok(Error::TailerInUse { tailer, pid, since_s: since_ms / 1000, since, path })
}

/// The path for a name: letters and digits are kept, other bytes become two hexadecimal digits.
fn path_of(base: &Path, name: &str) -> Result<PathBuf> {
    use std::fmt::Write;
    if name.is_empty() || name.len() > LONGEST_NAME {
        let limit = LONGEST_NAME;
        return Err(Error::Invalid(format!(
            "a tailer's name has 1 to {limit} bytes: name={name:?}"
        )));
    }
    let mut file = String::from(PREFIX);
    for byte in name.bytes() {
        if byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_.".contains(&byte) {
            file.push(char::from(byte));
        } else {
            let _ = write!(file, "%{byte:02x}");
        }
    }
    Ok(base.join(file))
}

/// The tailer's name encoded in a file's name.
fn name_of(file: &str) -> Option<String> {
    let mut rest = file.strip_prefix(PREFIX)?.bytes();
    let mut name = Vec::new();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            name.push(byte);
            continue;
        }
        let digits = [rest.next()?, rest.next()?];
        name.push(u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?);
    }
    String::from_utf8(name).ok()
}
