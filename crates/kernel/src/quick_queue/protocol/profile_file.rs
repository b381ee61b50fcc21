//! The file of a producer's profile, written by the producer or by a repair.

use std::path::Path;
use std::sync::Arc;

use super::pending;
use crate::memory::window::{Region, Window};
use crate::os::files::{self, Access};
use crate::probe::fault::{self, step};
use crate::quick_queue::format::producer::Producer;
use crate::quick_queue::format::profile::{ATTEMPT, LAST, PROFILE, Profile};
use crate::{Error, Result};

/// Where the second of the two ends is.
pub const OTHER: u64 = 8;

/// A producer's profile, mapped. Its lock is held by another description of the file.
pub struct ProfileFile {
    /// The file.
    pub(crate) window: Window,
    /// Its memory.
    pub(crate) region: Arc<Region>,
}

impl ProfileFile {
    /// Opens the profile, created if missing.
    pub fn open(dir: &Path, producer: Producer, file_mode: u32) -> Result<Self> {
        let path = pending::profile_path(dir, producer);
        let access = Access { write: true, create_mode: Some(file_mode) };
        let gone = || Error::gone("removed while it was opened", &path);
        let window = Window::new(&path, files::open(&path, access)?.ok_or_else(gone)?, true)?;
        // Its lock is held: no other process sets its length.
        if window.file_len() < PROFILE {
            let grown =
                fault::call!("quick-queue.profile.grow", files::extend(window.file(), PROFILE));
            grown.map_err(|e| Error::io("cannot grow", &path, e))?;
            window.refresh_len()?;
        }
        let mut region = window.region();
        window.reserve(&mut region, 0, PROFILE)?;
        Ok(Self { window, region })
    }

    /// Its content.
    #[must_use]
    pub fn read(&self) -> Profile {
        let word = |position| self.region.load_acquire(position);
        Profile { ends: [word(0), word(8)], last: word(LAST), attempt: word(ATTEMPT) }
    }

    /// Stores the end of all data as both ends. Returns the slot of the next end: the one that Java
    /// would use, which replaces the newer of two different ends.
    pub fn settle(&self, found: Profile, end: u64) -> u64 {
        for (slot, stored) in [(0, found.ends[0]), (OTHER, found.ends[1])] {
            if stored != end {
                self.region.store_release(slot, end, step!("quick-queue.end.store"));
            }
        }
        if found.ends[0] > found.ends[1] { 0 } else { OTHER }
    }

    /// Restores the previous end, if no entry could be claimed for a message.
    pub fn restore(&self, slot: u64, end: u64) {
        self.region.store_release(slot, end, step!("quick-queue.end.store"));
    }

    /// Stores the whole profile; no other process has the producer open.
    pub fn store(&self, profile: Profile) {
        for (slot, end) in [0, OTHER].into_iter().zip(profile.ends) {
            self.region.store_release(slot, end, step!("quick-queue.end.store"));
        }
        self.region.store_release(LAST, profile.last, step!("quick-queue.last.store"));
        self.region.store_release(ATTEMPT, profile.attempt, step!("quick-queue.attempt.store"));
    }
}
