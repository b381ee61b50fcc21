//! The side file of a queue's sleeping readers, shared by all handles of the queue.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use super::open::Opened;
use crate::chronicle::format::table::FILE_NAME as TABLE;
use crate::os::clock;
use crate::os::detached::Detached;
use crate::os::own_directory::OwnDirectory;
use crate::waiting::side_file::SideFile;
use crate::{Error, Result, warnings};

/// How often a sleeping reader checks that the side file still has its name.
const LOOK_MS: u64 = 1000;

/// A queue's side file of sleeping readers, as far as known.
#[derive(Default)]
pub struct Sleepers(Mutex<Known>);

#[derive(Default)]
struct Known {
    file: Option<Arc<SideFile>>,
    /// When a reader last checked.
    looked_ms: Option<i64>,
    /// When a frequent waker last checked.
    woke_ms: Option<i64>,
    has_warned: bool,
}

impl Sleepers {
    /// The side file for a reader about to sleep, created if it is missing and checked once a
    /// second; None if it cannot be created: the reader then polls.
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

    /// Drops the side file, which stays mapped while a reader waits on it.
    pub fn close(&self, _: &Detached) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).file = None;
    }

    /// Finds the side file for an appender, without creating it and without waiting: the appender
    /// holds the write lock, and has checked that the table still has its name.
    pub fn look_for(&self, opened: &Opened, found: &mut Option<Arc<SideFile>>) {
        if let Some(mut known) = self.known() {
            known.look(opened);
            found.clone_from(&known.file);
        }
    }

    /// The side file for a frequent waker, looked up like for an appender but only once a second.
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

    /// The known state; None while another thread is using it.
    fn known(&self) -> Option<MutexGuard<'_, Known>> {
        match self.0.try_lock() {
            Ok(known) => Some(known),
            Err(TryLockError::Poisoned(known)) => Some(known.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

impl Known {
    /// Looks up the side file if the known one has lost its name.
    fn look(&mut self, opened: &Opened) {
        if self.file.as_ref().is_none_or(|file| !file.is_in(&opened.dir)) {
            self.file = match SideFile::open_existing(&opened.dir) {
                Ok(file) => file.map(Arc::new),
                Err(error) => self.without(&error),
            };
        }
    }

    /// A process that cannot use the file does without; damage is reported once.
    fn without(&mut self, error: &Error) -> Option<Arc<SideFile>> {
        if matches!(error, Error::Corrupt { .. }) && !std::mem::replace(&mut self.has_warned, true)
        {
            warnings::leave(format!(
                "waiting readers cannot be woken, and poll for messages: {error}"
            ));
        }
        None
    }
}

/// The side file in the queue's own directory; None if another directory has taken its place.
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
