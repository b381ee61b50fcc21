//! Named producers that share an index without a lock.
//!
//! 1. The message is stored after the producer's last one, in data of its own.
//! 2. Its end replaces the older of the two ends in the profile: they take turns.
//! 3. The index of the entry to be claimed is stored in the profile (Quire's own step).
//! 4. The entry's stamp is claimed by compare-and-swap; if another producer has it, the next one.
//! 5. The entry's index is stored in the profile as the last one claimed.
//! 6. The message's address is stored in the entry.
//! 7. The stamp is completed with release: readers see the message.
//!
//! A crash before 4 leaves a message that nothing refers to, and the next one overwrites it. A
//! later crash leaves a pending entry (`pending.rs`): opened again, the producer completes it. Step
//! 3 records where to search, so that only entries appended since then are searched.

use std::path::Path;

use super::directory::{Form, length_of};
use super::end::end_of_index;
use super::entries::{Entries, Entry};
use super::entry_words;
use super::pages::Pages;
use super::pending::{self, Search};
use super::profile_file::{OTHER, ProfileFile};
use super::single::check_room;
use super::space::Space;
use super::survey::survey;
use crate::os::detached::Detached;
use crate::os::files;
use crate::os::locked_file::LockedFile;
use crate::os::process;
use crate::probe::fault::{self, step};
use crate::quick_queue::format::address::PageSize;
use crate::quick_queue::format::entry::{ENTRY, Stamp, State};
use crate::quick_queue::format::producer::Producer;
use crate::quick_queue::format::profile::{ATTEMPT, LAST, Profile};
use crate::{Error, Result, warnings};

/// A producer, which is alive while it holds the lock of its profile.
pub struct Shared {
    _queue_lock: LockedFile,
    _lock: LockedFile,
    /// The fork generation of the process that opened it: a forked child does not close it.
    generation: u32,
    producer: Producer,
    profile: ProfileFile,
    data: Space,
    index: Space,
    /// Where the next message begins.
    data_end: u64,
    /// Where in the profile its end is stored.
    slot: u64,
    /// No entry before this one is free.
    next: u64,
}

impl Shared {
    /// Continues after the producer's last message, completing it if necessary.
    pub fn open(
        locks: (LockedFile, LockedFile),
        producer: Producer,
        dir: &Path,
        size: PageSize,
        file_mode: u32,
        may_wait: &Detached,
    ) -> Result<Self> {
        let index = Pages::index(dir, Form::Shared, size);
        let listing = survey(dir)?;
        let next = end_of_index(&index, listing.index(Form::Shared), |s| s != Stamp::FREE)?;
        make_directory(&dir.join(producer.as_str()), file_mode)?;
        let data = Space::new(Pages::data(dir, Some(producer), size), file_mode);
        let profile = ProfileFile::open(dir, producer, file_mode)?;
        let (queue_lock, lock) = locks;
        let mut shared = Self {
            _queue_lock: queue_lock,
            _lock: lock,
            generation: process::generation(),
            producer,
            profile,
            data,
            index: Space::new(index, file_mode),
            data_end: 0,
            slot: 0,
            next,
        };
        let profile = shared.profile.read();
        shared.data_end = shared.recover(profile, may_wait)?;
        shared.check_end(profile)?;
        shared.slot = shared.profile.settle(profile, shared.data_end);
        // Readers no longer wait for an entry that could not be completed.
        shared.profile.region.store_release(ATTEMPT, next, step!("quick-queue.attempt.store"));
        if listing.index(Form::Shared).is_none() {
            shared.index.start(may_wait)?;
        }
        Ok(shared)
    }

    /// Its name.
    #[must_use]
    pub const fn producer(&self) -> Producer {
        self.producer
    }

    /// Appends a message; returns its index, or None if the next page is not open and the thread
    /// may not wait for it.
    #[inline]
    pub fn append(
        &mut self,
        message: &[u8],
        length: u32,
        may_wait: Option<&Detached>,
    ) -> Result<Option<u64>> {
        let size = self.data.pages().size();
        let (begin, end) = (self.data_end, self.data_end + u64::from(length));
        check_room(size, begin, length, self.next)?;
        if !self.data.store(begin, message, may_wait)? {
            return Ok(None);
        }
        let (slot, replaced) = (self.slot, self.profile.region.load_acquire(self.slot));
        self.profile.region.store_release(slot, end, step!("quick-queue.end.store"));
        let claim = Stamp::claim(self.producer, length);
        let claimed = self.claim(claim, may_wait);
        let Ok(Some(index)) = claimed else {
            self.profile.restore(slot, replaced);
            return claimed;
        };
        self.profile.region.store_release(LAST, index, step!("quick-queue.last.store"));
        let position = size.position(index);
        let entry = self.index.ready(size.page(index), position, ENTRY, may_wait)?;
        let Some(entry) = entry else { unreachable!("the claim left its page open") };
        entry_words::complete(entry, position, begin, claim.completed());
        self.data_end = end;
        self.slot = OTHER - slot;
        self.next = index + ENTRY;
        Ok(Some(index))
    }

    /// Claims the first free entry; returns its index. On an error or None, no entry was claimed.
    #[inline]
    fn claim(&mut self, claim: Stamp, may_wait: Option<&Detached>) -> Result<Option<u64>> {
        let size = self.index.pages().size();
        loop {
            let (index, position) = (self.next, size.position(self.next));
            check_room(size, 0, 0, index)?;
            let entry = self.index.ready(size.page(index), position, ENTRY, may_wait)?;
            let Some(entry) = entry else { return Ok(None) };
            if entry_words::is_free(entry, position) {
                let profile = &self.profile.region;
                profile.store_release(ATTEMPT, index, step!("quick-queue.attempt.store"));
                if entry_words::claim(entry, position, claim) {
                    return Ok(Some(index));
                }
            }
            self.next = index + ENTRY;
        }
    }

    /// An error if no message can begin at the end that was found.
    fn check_end(&self, profile: Profile) -> Result<()> {
        let capacity = self.data.pages().size().capacity();
        if self.data_end <= capacity {
            return Ok(());
        }
        let found = format!("{:#x} and {:#x}", profile.ends[0], profile.ends[1]);
        let (path, expected) = (self.profile.window.path(), format!("up to {capacity:#x}"));
        Err(Error::corrupt(
            "the ends of a producer's data are beyond the queue",
            path,
            0,
            found,
            expected,
        ))
    }

    /// Completes or withdraws the last message of a dead producer of this name; returns where its
    /// data ends.
    fn recover(&mut self, profile: Profile, may_wait: &Detached) -> Result<u64> {
        let last = self.last_entry(profile)?;
        match last {
            Some(entry) if entry.stamp.state() == State::Claimed => {
                self.complete(entry, profile, may_wait)
            }
            Some(entry) => {
                let end = entry.end().unwrap_or(0);
                self.data.pages().check_before(end)?;
                Ok(end_of_data(end, profile))
            }
            None => Ok(end_of_data(0, profile)),
        }
    }

    /// The producer's newest entry, claimed or complete.
    fn last_entry(&self, profile: Profile) -> Result<Option<Entry>> {
        let mut entries = Entries::new(self.index.pages());
        let is_its_own = |entry: &Entry| entry.stamp.producer_bits() == self.producer.bits();
        let is_whole = |index: u64| index.is_multiple_of(ENTRY) && index < self.next;
        let named = if is_whole(profile.last) { entries.get(profile.last)? } else { None };
        let Some(named) = named.filter(is_its_own) else {
            // The message is its first one, or its profile was lost: then its entry may be
            // anywhere.
            let first = self.data.pages().path(0);
            let is_new = profile.data_end() == 0 && length_of(&first)?.is_none();
            let from = if is_whole(profile.attempt) { profile.attempt } else { 0 };
            return if is_new { Ok(None) } else { self.newest_from(from) };
        };
        let is_newest =
            named.stamp.state() == State::Claimed || named.end() == Some(profile.data_end());
        if is_newest {
            return Ok(Some(named));
        }
        // It died after it had stored the end of one more message: did it claim an entry for it?
        let from = if is_whole(profile.attempt) { profile.attempt } else { 0 };
        let newer = self.newest_from(from.max(named.index + ENTRY))?;
        Ok(newer.or(Some(named)))
    }

    /// The producer's last entry from `index` on.
    fn newest_from(&self, index: u64) -> Result<Option<Entry>> {
        let mut entries = Entries::new(self.index.pages());
        let mut at = self.next;
        while at > index {
            at -= ENTRY;
            let Some(entry) = entries.get(at)? else { return Ok(None) };
            if entry.stamp.producer_bits() == self.producer.bits() {
                return Ok(Some(entry));
            }
        }
        Ok(None)
    }

    /// Completes the entry of a whole message.
    fn complete(&mut self, entry: Entry, profile: Profile, may_wait: &Detached) -> Result<u64> {
        let index = self.index.pages();
        let Some(begin) = pending::proven_begin(index, self.producer, entry, profile)? else {
            return self.pass_over(entry, profile);
        };
        self.data.pages().check_before(profile.data_end())?;
        let size = index.size();
        let position = size.position(entry.index);
        self.profile.region.store_release(LAST, entry.index, step!("quick-queue.last.store"));
        let page = size.page(entry.index);
        let found = self.index.ready(page, position, ENTRY, Some(may_wait))?;
        let Some(found) = found else { unreachable!("a page that was waited for is open") };
        entry_words::complete(found, position, begin, entry.stamp.completed());
        warnings::leave(format!(
            "completed the message of a producer that died: producer={} index={:#x} path={}",
            self.producer,
            entry.index,
            self.profile.window.path().display()
        ));
        Ok(profile.data_end())
    }

    /// Leaves an entry whose message cannot be found; readers skip it.
    fn pass_over(&self, entry: Entry, profile: Profile) -> Result<u64> {
        warnings::leave(format!(
            "a producer died and left an entry that cannot be completed: producer={} index={:#x} \
             path={}",
            self.producer,
            entry.index,
            self.profile.window.path().display()
        ));
        let before = pending::last_complete_before(self.index.pages(), self.producer, entry.index)?;
        let end = if let Search::Found(before) = before { before.end() } else { None };
        Ok(profile.data_end().max(end.unwrap_or(0)))
    }
}

/// Where the next message begins: after the last one with an entry. A later end belongs to a
/// message for which no entry was claimed; if both ends are later, the bytes there are unknown.
fn end_of_data(named: u64, profile: Profile) -> u64 {
    let is_taken_back = profile.previous_end() == named;
    if is_taken_back { named } else { profile.data_end().max(named) }
}

impl Drop for Shared {
    fn drop(&mut self) {
        if self.generation == process::generation() {
            self.profile.region.store_release(ATTEMPT, 0, step!("quick-queue.attempt.store"));
        }
    }
}

/// Creates the directory of a producer's data. A symbolic link in its place is refused.
fn make_directory(path: &Path, file_mode: u32) -> Result<()> {
    let mode = file_mode | (file_mode & 0o444) >> 2 | 0o100;
    match fault::call!("quick-queue.dir.create", files::make_directory(path, mode)) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => check_directory(path),
        Err(error) => Err(Error::io("cannot create", path, error)),
    }
}

/// Checks that the path of a producer's directory is a directory.
pub fn check_directory(path: &Path) -> Result<()> {
    match fault::call!("quick-queue.dir.stat", std::fs::symlink_metadata(path)) {
        Ok(found) if !found.is_dir() => Err(Error::NotAQuickQueue {
            why: "not a directory, where the directory of a producer belongs".into(),
            path: path.to_path_buf(),
        }),
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(Error::io("cannot look at", path, error))
        }
        _ => Ok(()),
    }
}
