//! The file of a table, shared with its locks by all of a process's open queues on it.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::os::files;
use crate::os::locked_file::LockedFile;
use crate::probe::fault;
use crate::{Error, Result};

/// The file of an open table.
pub struct SharedFile {
    path: PathBuf,
    /// Device and inode number.
    identity: (u64, u64),
    used: Mutex<Used>,
}

/// The file, and how many queues are open on it: the last one closes it.
struct Used {
    file: Option<Arc<LockedFile>>,
    users: usize,
}

/// Which file the directory has under the table's name.
enum Named {
    This,
    Nothing,
    Another,
}

impl SharedFile {
    /// A file that one queue uses.
    #[must_use]
    pub fn new(path: PathBuf, file: Arc<LockedFile>, identity: (u64, u64)) -> Self {
        Self { path, identity, used: Mutex::new(Used { file: Some(file), users: 1 }) }
    }

    /// The file's path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Device and inode number.
    #[must_use]
    pub const fn identity(&self) -> (u64, u64) {
        self.identity
    }

    /// The file's inode number.
    #[must_use]
    pub const fn inode(&self) -> u64 {
        self.identity.1
    }

    /// Counts one more queue; false when the last one has closed the file.
    pub fn join(&self) -> bool {
        let mut used = self.lock_used();
        used.users += usize::from(used.file.is_some());
        used.file.is_some()
    }

    /// Ends one queue's use. The last one closes the file, and with it the presence lock, after
    /// `before_closing`.
    pub fn leave(&self, before_closing: impl FnOnce(&LockedFile)) {
        let mut used = self.lock_used();
        used.users = used.users.saturating_sub(1);
        if used.users == 0
            && let Some(file) = used.file.take()
        {
            before_closing(&file);
        }
    }

    /// The file, until the last queue on it is closed.
    pub fn get(&self) -> Result<Arc<LockedFile>> {
        let queue = || Error::closed("queue", self.path.parent().unwrap_or(&self.path));
        self.lock_used().file.clone().ok_or_else(queue)
    }

    fn lock_used(&self) -> MutexGuard<'_, Used> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Fails if the table is no longer the one in the directory: a process that opens the queue now
    /// creates or finds another one, with its own locks.
    pub fn check_present(&self) -> Result<()> {
        match self.named()? {
            Named::This => Ok(()),
            Named::Nothing => Err(self.lost("removed")),
            Named::Another => Err(self.lost("replaced")),
        }
    }

    /// An error if another table has replaced this one. If there is none, a reader simply waits.
    pub fn check_not_replaced(&self) -> Result<()> {
        match self.named()? {
            Named::This | Named::Nothing => Ok(()),
            Named::Another => Err(self.lost("replaced")),
        }
    }

    fn named(&self) -> Result<Named> {
        let found = fault::call!("table.named.stat", std::fs::symlink_metadata(&self.path));
        match found {
            Ok(found) if files::identity_of(&found) == self.identity => Ok(Named::This),
            Ok(_) => Ok(Named::Another),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Named::Nothing),
            Err(error) => Err(Error::io("cannot look at", &self.path, error)),
        }
    }

    fn lost(&self, what: &'static str) -> Error {
        Error::TableLost { what, path: self.path.clone() }
    }
}
