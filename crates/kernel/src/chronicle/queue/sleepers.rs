//! The side file of a queue's sleeping readers, shared by all handles of the queue.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use super::open::Opened;
use crate::chronicle::format::table::FILE_NAME as TABLE;
use crate::os::clock;
use crate::os::detached::Detached;
use crate::os::own_directory::OwnDirectory;
use crate::waiting::side_file::SideFile;
use crate::{Error, Result, warnings};

/// How often a sleeping reader checks that the side file is in its place.
const LOOK_MS: u64 = 1000;

/// What a queue knows of its side file.
#[derive(Default)]
pub struct Sleepers(Mutex<Known>);

#[derive(Default)]
struct Known {
    file: Option<Arc<SideFile>>,
    /// When a reader last checked.
    looked_ms: Option<i64>,
    /// When one who wakes readers last did.
    woke_ms: Option<i64>,
    has_warned: bool,
}

impl Sleepers {
    /// The side file for a reader about to sleep, created if it is missing and checked once a second;
    /// None if it cannot be created: the reader polls then.
    pub fn of_waiter(&self, opened: &Opened, mode: u32, _: &Detached) -> Option<Arc<SideFile>> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = clock::coarse_time_ms();
        if known.looked_ms.is_none_or(|then| now.abs_diff(then) >= LOOK_MS) {
            known.looked_ms = Some(now);
            known.file = match find_or_create(known.file.take(), opened, mode) {
                Ok(file) => file,
                Err(error) => known.without(&error),
            };
        }
        known.file.clone()
    }

    /// Forgets the side file, which stays mapped as long as a reader waits at it.
    pub fn close(&self, _: &Detached) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).file = None;
    }

    /// Finds the side file for an appender, which does not make one, and waits for nobody: it holds
    /// the write lock, and has seen that the table is in its place.
    pub fn look_for(&self, opened: &Opened, found: &mut Option<Arc<SideFile>>) {
        if let Some(mut known) = self.known() {
            known.look(opened);
            found.clone_from(&known.file);
        }
    }

    /// The side file for one who wakes readers often, found as for an appender once a second.
    pub fn to_wake(&self, opened: &Opened) -> Option<Arc<SideFile>> {
        let mut known = self.known()?;
        let now = clock::coarse_time_ms();
        let is_old = known.woke_ms.is_none_or(|then| now.abs_diff(then) >= LOOK_MS);
        if is_old || known.file.is_none() {
            known.woke_ms = Some(now);
            known.look(opened);
        }
        known.file.clone()
    }

    /// What is known, unless another thread is at it.
    fn known(&self) -> Option<MutexGuard<'_, Known>> {
        match self.0.try_lock() {
            Ok(known) => Some(known),
            Err(TryLockError::Poisoned(known)) => Some(known.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

impl Known {
    /// Finds the side file if it is not the one that is known.
    fn look(&mut self, opened: &Opened) {
        if self.file.as_ref().is_none_or(|file| !file.is_in(&opened.dir)) {
            self.file = match SideFile::open_existing(&opened.dir) {
                Ok(file) => file.map(Arc::new),
                Err(error) => self.without(&error),
            };
        }
    }

    /// A process that may not write to the file does without; what is wrong with it is reported once.
    fn without(&mut self, error: &Error) -> Option<Arc<SideFile>> {
        if matches!(error, Error::Corrupt { .. }) && !std::mem::replace(&mut self.has_warned, true)
        {
            warnings::leave(format!("those who wait look for messages themselves: {error}"));
        }
        None
    }
}

/// The side file in the queue's own directory; None where another one has its place.
fn find_or_create(
    known: Option<Arc<SideFile>>,
    opened: &Opened,
    mode: u32,
) -> Result<Option<Arc<SideFile>>> {
    let Some(table) = &opened.table else { return Ok(None) };
    let directory = OwnDirectory::open(&opened.dir)?;
    if directory.identity_of(TABLE)? != Some(table.shared.identity()) {
        return Ok(None);
    }
    match known.filter(|file| file.is_in(&opened.dir)) {
        Some(file) => Ok(Some(file)),
        None => SideFile::open_or_create(&directory, mode).map(|file| Some(Arc::new(file))),
    }
}
