//! An entry that is claimed and not complete: is its producer at work, or dead?
//!
//! A producer stores a message and its end before it claims an entry, so the data of every claimed
//! entry is whole. What a dead producer's entry lacks is where the message begins, and its profile
//! still says that: it is the older of the two ends, provided that both ends belong to this message.
//! Readers deliver such a message without storing anything; its producer, once restarted, completes
//! the entry. Where nothing proves the beginning, the entry is skipped.
//!
//! A producer completes an entry before it goes on to the next one. So an entry is abandoned, too,
//! if its producer is alive and already further.

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

/// What becomes of a claimed entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Its producer lives, and may complete it.
    Wait,
    /// Its message is whole, and begins there.
    Begins(u64),
    /// Nobody can complete it.
    Abandoned,
}

/// The path of a producer's profile.
#[must_use]
pub fn profile_path(dir: &Path, producer: Producer) -> std::path::PathBuf {
    dir.join(format!("{producer}.{}", names::PROFILE))
}

/// What a producer's profile says; a missing one says nothing.
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

/// What becomes of an entry which `producer` had claimed when it was read. The caller looks at the
/// entry's stamp again afterwards: it may have been completed meanwhile.
pub fn judge(dir: &Path, index: &Pages, producer: Producer, entry: Entry) -> Result<Verdict> {
    let path = profile_path(dir, producer);
    let is_alive = locked_file::is_held(&path, WHOLE_FILE)?;
    let profile = read_profile(dir, producer)?;
    if profile.last > entry.index || (is_alive && profile.attempt > entry.index) {
        return Ok(Verdict::Abandoned);
    }
    // The second look is for a producer that was restarted between the first one and the profile.
    if is_alive || locked_file::is_held(&path, WHOLE_FILE)? {
        return Ok(Verdict::Wait);
    }
    let begin = proven_begin(index, producer, entry, profile)?;
    Ok(begin.map_or(Verdict::Abandoned, Verdict::Begins))
}

/// Where the message of a claimed entry begins, if the profile of its dead producer proves it: both
/// ends are of this message, and it follows the producer's message before.
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

/// An earlier entry of a producer.
pub enum Search {
    /// The last one.
    Found(Entry),
    /// There is none.
    None,
    /// There is none near.
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
