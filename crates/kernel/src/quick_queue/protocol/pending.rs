//! Entries that are claimed but not complete: their producer may be at work, or dead.
//!
//! A producer stores a message and its end before it claims an entry, so the data of every claimed
//! entry is whole. A pending entry lacks only the address of its message. The producer's profile
//! has it: the older of the two ends, provided that both ends belong to this message. Readers
//! deliver such a message without storing anything; its producer, once restarted, completes the
//! entry.
//!
//! A Java producer does not: it continues, and its profile then has the ends of later messages.
//! Later readers still deliver the message if the producer's data has no gap: it begins where the
//! preceding message of the producer ends, if the next one begins where it ends. A gap, left by a
//! producer that died before it claimed an entry, makes the sums differ.
//!
//! If the beginning cannot be proven, the entry is skipped once its producer is dead or has claimed
//! a later entry: a producer completes an entry before it claims the next one.

use std::path::Path;

use super::entries::{Entries, Entry};
use super::pages::Pages;
use crate::os::files::{self, Access};
use crate::os::locked_file;
use crate::os::range_lock::WHOLE_FILE;
use crate::probe::fault;
use crate::quick_queue::format::entry::{ENTRY, State};
use crate::quick_queue::format::files as names;
use crate::quick_queue::format::producer::Producer;
use crate::quick_queue::format::profile::{PROFILE_LEN, Profile};
use crate::{Error, Result};

/// How many entries before a pending one are searched for the producer's previous entry.
const FAR: u64 = 1 << 20;

/// How to treat a claimed entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Its producer is alive, and may complete it.
    Wait,
    /// Its message is whole, and begins at this address.
    Begins(u64),
    /// It will never be completed.
    Abandoned,
}

/// The path of a producer's profile.
#[must_use]
pub fn profile_path(dir: &Path, producer: Producer) -> std::path::PathBuf {
    dir.join(format!("{producer}.{}", names::PROFILE))
}

/// The content of a producer's profile; zeros if it is missing.
pub fn read_profile(dir: &Path, producer: Producer) -> Result<Profile> {
    use std::os::unix::fs::FileExt;
    let path = profile_path(dir, producer);
    let mut bytes = [0; PROFILE_LEN];
    if let Some(file) = files::open(&path, Access { write: false, create_mode: None })? {
        let read = fault::call!("quick-queue.profile.read", file.read_at(&mut bytes, 0));
        read.map_err(|e| Error::io("cannot read", &path, e))?;
    }
    Ok(Profile::read(&bytes))
}

/// How to treat an entry which `producer` had claimed when it was read. The caller must load the
/// entry's stamp again afterwards: it may have been completed meanwhile.
pub fn judge(dir: &Path, index: &Pages, producer: Producer, entry: Entry) -> Result<Verdict> {
    let (profile, may_complete) = look_at_producer(dir, producer, entry)?;
    if let Some(begin) = proven_begin(index, producer, entry, profile)? {
        return Ok(Verdict::Begins(begin));
    }
    if may_complete {
        return Ok(Verdict::Wait);
    }
    let begin = begin_without_gap(index, producer, entry, profile)?;
    Ok(begin.map_or(Verdict::Abandoned, Verdict::Begins))
}

/// Whether the producer of a claimed entry is alive, and has not claimed a later entry without
/// completing it.
pub fn may_complete(dir: &Path, producer: Producer, entry: Entry) -> Result<bool> {
    look_at_producer(dir, producer, entry).map(|(_, may_complete)| may_complete)
}

fn look_at_producer(dir: &Path, producer: Producer, entry: Entry) -> Result<(Profile, bool)> {
    let path = profile_path(dir, producer);
    let is_alive = locked_file::is_held(&path, WHOLE_FILE)?;
    let profile = read_profile(dir, producer)?;
    if profile.last > entry.index || (is_alive && profile.attempt > entry.index) {
        return Ok((profile, false));
    }
    // The second check is for a producer that was restarted between the first check and reading the
    // profile.
    Ok((profile, is_alive || locked_file::is_held(&path, WHOLE_FILE)?))
}

/// Where the message of a claimed entry begins, if the profile of its dead producer proves it: both
/// ends are of this message, and it follows the producer's preceding message.
pub fn proven_begin(
    index: &Pages,
    producer: Producer,
    entry: Entry,
    profile: Profile,
) -> Result<Option<u64>> {
    let (begin, end) = (profile.previous_end(), profile.data_end());
    let is_its_end = end.checked_sub(begin) == Some(entry.stamp.length().into());
    let is_stored = entry.begin == begin || entry.begin == 0;
    if !is_its_end || !is_stored || end > index.size().capacity() {
        return Ok(None);
    }
    let previous = last_complete_before(index, producer, entry.index)?;
    let follows = match previous {
        Search::Found(previous) => previous.end() == Some(begin),
        Search::None => begin == 0,
        Search::TooFar => true,
    };
    Ok(follows.then_some(begin))
}

/// Where the message of a claimed entry begins, if the producer's entries around it show that its
/// data has no gap: they add up to where the next complete one begins, or to the end of the data.
fn begin_without_gap(
    index: &Pages,
    producer: Producer,
    entry: Entry,
    profile: Profile,
) -> Result<Option<u64>> {
    let (mut entries, mut begin) = (Entries::new(index), Some(0));
    let lowest = entry.index.saturating_sub(FAR * ENTRY);
    let is_its_own = |found: &Entry| found.stamp.producer_bits() == producer.bits();
    let length = |found: Entry| u64::from(found.stamp.length());
    let (mut at, mut before) = (entry.index, 0);
    while at > 0 {
        at -= ENTRY;
        let found = if at < lowest { None } else { entries.get(at)? };
        let Some(found) = found else { return Ok(None) };
        if is_its_own(&found) && found.stamp.state() == State::Complete {
            begin = found.end();
            break;
        }
        before += if is_its_own(&found) { length(found) } else { 0 };
    }
    let Some(begin) = begin.and_then(|begin: u64| begin.checked_add(before)) else {
        return Ok(None);
    };
    let mut end = begin + length(entry);
    for number in 1..FAR {
        let Some(found) = entries.get(entry.index + number * ENTRY)? else { break };
        match found.stamp.state() {
            State::Complete if is_its_own(&found) => {
                return Ok((found.begin == end).then_some(begin));
            }
            State::Claimed if is_its_own(&found) => end += length(found),
            State::Free => break,
            _ => {}
        }
    }
    Ok((profile.data_end() == end).then_some(begin))
}

/// An earlier entry of a producer.
pub enum Search {
    /// The last earlier entry.
    Found(Entry),
    /// There is none.
    None,
    /// There is none within `FAR` entries.
    TooFar,
}

/// The last complete entry of a producer before `index`.
pub fn last_complete_before(index: &Pages, producer: Producer, before: u64) -> Result<Search> {
    let mut entries = Entries::new(index);
    let lowest = before.saturating_sub(FAR * ENTRY);
    let mut at = before;
    while at > lowest {
        at -= ENTRY;
        let Some(entry) = entries.get(at)? else { return Ok(Search::TooFar) };
        let is_its_own = entry.stamp.producer_bits() == producer.bits();
        if is_its_own && entry.stamp.state() == State::Complete {
            return Ok(Search::Found(entry));
        }
    }
    Ok(if lowest == 0 { Search::None } else { Search::TooFar })
}
