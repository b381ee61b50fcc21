//! The side file of a cycle's append times: points, at most one per millisecond.
//!
//! A writer adds to it after it has published messages and released the write lock: 1. unless the
//! last point is of its millisecond or later, it claims the next one by a CAS of the time; 2. it
//! raises the point's count of messages. Writers may do so concurrently: times never decrease, and
//! a count only states that those messages exist. A writer killed before 1 or 2 leaves messages
//! without a point, which then get the next point's time.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{Ordering, fence};

use super::side_chunks::{self, CHUNK, Mapped, length_of};
use crate::chronicle::format::time_index::{
    self, CYCLE_AT, MAGIC, MAGIC_AT, MESSAGES_AT, POINT_LEN,
};
use crate::os::files::{self, Access};
use crate::probe::fault;
use crate::{Error, Result, warnings};

/// The most points without a count, which are those of writers that died or are just adding it.
const MOST_WITHOUT_COUNT: u64 = 256;

/// The points of a cycle, for reading.
pub struct Stored {
    path: PathBuf,
    file: File,
    room: u64,
}

impl Stored {
    /// Opens the file at `path`; None if it is missing or still being created.
    pub fn open(path: &Path, cycle: i32) -> Result<Option<Self>> {
        let Some(file) = files::open(path, Access { write: false, create_mode: None })? else {
            return Ok(None);
        };
        let len = length_of(&file, path)?;
        let stored = Self { path: path.to_path_buf(), file, room: time_index::room(len) };
        match (stored.word(MAGIC_AT)?, stored.word(CYCLE_AT)?) {
            (0, _) | (MAGIC, 0) => Ok(None),
            (MAGIC, word) if time_index::number(word, CYCLE_AT) == u64::try_from(cycle).ok() => {
                Ok(Some(stored))
            }
            (found, _) => Err(stored.damaged(MAGIC_AT, found, "points of this cycle")),
        }
    }

    /// How many messages of the cycle had been appended before a time, according to the points.
    pub fn messages_before(&self, time_ms: i64) -> Result<u64> {
        let time = u64::try_from(time_ms).unwrap_or(0);
        self.messages_at(self.count_while(|found| found < time)?)
    }

    /// How many messages of the cycle the points cover.
    pub fn messages(&self) -> Result<u64> {
        self.messages_at(self.count()?)
    }

    /// By when each of these messages had been appended; None if no point covers it. Fastest if
    /// they ascend.
    pub fn times_of(&self, messages: impl Iterator<Item = u64>) -> Result<Vec<Option<u64>>> {
        let points = self.count()?;
        let (mut point, mut last) = (0, 0);
        messages
            .map(|message| {
                let from = if message < last { 0 } else { point };
                (point, last) = (self.point_of(message, from, points)?, message);
                if point < points { self.number(time_index::position(point)) } else { Ok(None) }
            })
            .collect()
    }

    /// The first point, not before `from`, that covers a message; `points` if there is none.
    fn point_of(&self, message: u64, from: u64, points: u64) -> Result<u64> {
        let (mut low, mut high, mut step) = (from, from, 1);
        while high < points && self.messages_at(high + 1)? <= message {
            low = high + 1;
            high += step; // in growing steps: the next message is near, the first may be far
            step *= 2;
        }
        high = high.min(points);
        while low < high {
            let middle = low.midpoint(high);
            if self.messages_at(middle + 1)? <= message {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Ok(low)
    }

    /// How many points there are.
    fn count(&self) -> Result<u64> {
        self.count_while(|_| true)
    }

    /// How many points have a time for which `holds` is true; it must be so for the first ones.
    fn count_while(&self, holds: impl Fn(u64) -> bool) -> Result<u64> {
        let (mut low, mut high) = (0, self.room);
        let (mut earlier, mut later) = (None, None);
        while low < high {
            let middle = low.midpoint(high);
            let time = self.number(time_index::position(middle))?;
            let Some(time) = time else {
                high = middle;
                continue;
            };
            if earlier.is_some_and(|it| time <= it) || later.is_some_and(|it| time >= it) {
                return Err(self.damaged(time_index::position(middle), time, "times in order"));
            }
            if holds(time) {
                (low, earlier) = (middle + 1, Some(time));
            } else {
                (high, later) = (middle, Some(time));
            }
        }
        Ok(low)
    }

    /// The message count of the last of the first `points` points that has one.
    fn messages_at(&self, points: u64) -> Result<u64> {
        for number in (points.saturating_sub(MOST_WITHOUT_COUNT)..points).rev() {
            if let Some(messages) = self.number(time_index::position(number) + MESSAGES_AT)? {
                return Ok(messages);
            }
        }
        Ok(0)
    }

    fn number(&self, position: u64) -> Result<Option<u64>> {
        match self.word(position)? {
            0 => Ok(None),
            word => match time_index::number(word, position) {
                None => Err(self.damaged(position, word, "a number and its check")),
                found => Ok(found),
            },
        }
    }

    fn word(&self, position: u64) -> Result<u64> {
        let mut word = [0; 8];
        let read = fault::call!("window.read", self.file.read_at(&mut word, position));
        read.map_err(|e| Error::io("cannot read", &self.path, e))?;
        Ok(u64::from_le_bytes(word))
    }

    fn damaged(&self, position: u64, found: u64, expected: &'static str) -> Error {
        damaged(&self.path, position, found, expected)
    }
}

/// The points of a cycle, for appending.
pub struct Points {
    pub cycle: i32,
    /// The number of an existing point near the last; 0 if there is none yet.
    last: u64,
    /// The chunk that contains it.
    mapped: Mapped,
}

impl Points {
    /// Opens the file at `path`, which is created if missing.
    pub fn open(path: &Path, cycle: i32, mode: u32) -> Result<Self> {
        let mapped = Mapped::open(path, mode)?;
        let number = u64::try_from(cycle).ok().and_then(|cycle| time_index::word(cycle, CYCLE_AT));
        let word = number.unwrap_or(MAGIC);
        mapped.words.set_once(CYCLE_AT, word); // other processes may store the same value
        mapped.words.set_once(MAGIC_AT, MAGIC);
        let mut points = Self { cycle, last: 0, mapped };
        let stored = Stored::open(path, cycle)?.ok_or_else(|| Error::gone("removed", path))?;
        points.go_to(stored.count()?.saturating_sub(1))?;
        Ok(points)
    }

    /// Notes that the first `messages` of the cycle have been appended by now.
    pub fn add(&mut self, time_ms: i64, messages: u64) -> Result<()> {
        let time = u64::try_from(time_ms).unwrap_or(0);
        // Other writers may claim points meanwhile, each for a later time than the preceding one.
        for _ in 0..time_index::MOST_POINTS {
            let position = time_index::position(self.last);
            let found = match self.load(position) {
                0 => None,
                word => Some(time_index::number(word, position).ok_or_else(|| {
                    damaged(self.mapped.path(), position, word, "a number and its check")
                })?),
            };
            if found.is_some_and(|found| found >= time) {
                self.raise(position + MESSAGES_AT, messages);
                break;
            }
            let next = self.last + u64::from(found.is_some());
            if next >= time_index::MOST_POINTS {
                break;
            }
            self.go_to(next)?;
            let position = time_index::position(next);
            let Some(word) = time_index::word(time, position) else { break };
            self.mapped.words.set_once(position - self.mapped.start, word);
        }
        Ok(())
    }

    /// Removes the file.
    pub fn remove(self) -> Result<()> {
        self.mapped.remove()
    }

    fn load(&self, position: u64) -> u64 {
        self.mapped.words.load(position - self.mapped.start)
    }

    fn raise(&self, position: u64, messages: u64) {
        if let Some(word) = time_index::word(messages, position) {
            fence(Ordering::Release); // the messages precede their count, which `Stored` reads
            self.mapped.words.raise(position - self.mapped.start, word);
        }
    }

    /// Goes to an existing point, or the one after the last.
    fn go_to(&mut self, number: u64) -> Result<()> {
        self.mapped.go_to(time_index::position(number))?;
        self.last = number;
        Ok(())
    }
}

const _: () =
    assert!(CHUNK.is_multiple_of(POINT_LEN) && time_index::HEADER_LEN.is_multiple_of(POINT_LEN));

/// Invalidates a time index that covers more messages than the cycle holds: the difference was
/// lost, and later messages with their indexes have other times.
pub fn retire_beyond(roll_file: &Path, cycle: i32, messages: u64) -> Result<()> {
    let path = time_index::path_for(roll_file);
    let is_beyond = match Stored::open(&path, cycle) {
        Ok(None) | Err(Error::NotAQueue { .. } | Error::Corrupt { .. }) => false,
        Ok(Some(stored)) => stored.messages().map_or(true, |found| found > messages),
        Err(error) => return Err(error),
    };
    let access = Access { write: true, create_mode: None };
    let (true, Some(file)) = (is_beyond, files::open(&path, access)?) else { return Ok(()) };
    let word = time_index::RETIRED.to_le_bytes();
    fault::call!("restart.zeros.write", file.write_all_at(&word, MAGIC_AT))
        .map_err(|e| Error::io("cannot write", &path, e))
}

/// Removes the points of a cycle whose roll file was deleted, as by hand, and is about to be
/// created again, since they are of other messages. Failures are ignored, so that the append can go
/// on.
pub fn remove_stale(roll_file: &Path, cycle: i32) {
    let path = time_index::path_for(roll_file);
    let messages = match Stored::open(&path, cycle) {
        Ok(Some(stored)) => stored.messages().unwrap_or(0),
        _ => 0,
    };
    if messages == 0 {
        return;
    }
    let file = path.display();
    warnings::leave(match side_chunks::remove(&path) {
        Ok(()) => format!("append times of a deleted roll file were removed: file={file}"),
        Err(e) => format!("append times of a deleted roll file are still there: file={file} {e}"),
    });
}

/// The error of a side file with impossible content.
#[must_use]
pub fn damaged(path: &Path, position: u64, found: u64, expected: &'static str) -> Error {
    Error::corrupt("not usable as append times", path, position, format!("{found:#x}"), expected)
}
