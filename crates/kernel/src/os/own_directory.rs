//! A directory handle that stays valid if its path is renamed or replaced: files are opened,
//! created and renamed in the directory that was opened.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::FlockOperation;
use rustix::io::Errno;

use super::files::{self, Access};
use super::new_file::NewFile;
use crate::probe::fault;
use crate::{Error, Result};

/// An open directory.
#[derive(Debug)]
pub struct OwnDirectory {
    /// Keeps the place below valid.
    handle: File,
    path: PathBuf,
    /// A path that leads to the open directory; its original path if the system has none.
    place: PathBuf,
}

impl OwnDirectory {
    /// Opens the directory at a path.
    pub fn open(path: &Path) -> Result<Self> {
        let mut options = OpenOptions::new();
        options.read(true).custom_flags(libc::O_DIRECTORY | libc::O_CLOEXEC);
        let handle = fault::call!("file.open", options.open(path));
        let handle = handle.map_err(|e| Error::io("cannot open", path, e))?;
        let failed = |e| Error::io("cannot look at", path, e);
        let own = files::identity(&handle).map_err(failed)?;
        let by_handle = PathBuf::from(format!("/proc/self/fd/{}", handle.as_raw_fd()));
        let leads_here =
            std::fs::metadata(&by_handle).is_ok_and(|found| files::identity_of(&found) == own);
        let place = if leads_here { by_handle } else { path.to_path_buf() };
        Ok(Self { handle, path: path.to_path_buf(), place })
    }

    /// Locks the directory with `flock` until this is dropped; false if another description holds
    /// the lock.
    pub fn try_lock(&self) -> Result<bool> {
        match rustix::fs::flock(&self.handle, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(true),
            Err(Errno::WOULDBLOCK) => Ok(false),
            Err(error) => Err(Error::io("cannot lock", &self.path, error.into())),
        }
    }

    /// The path of this file when the directory was opened, for messages to users.
    #[must_use]
    pub fn shown(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// A path by which to open a file of this name.
    #[must_use]
    pub fn place_of(&self, name: &str) -> PathBuf {
        self.place.join(name)
    }

    fn named<T>(&self, name: &str, found: Result<T>) -> Result<T> {
        found.map_err(|mut error| {
            if let Error::Io { path, .. }
            | Error::NotAQueue { path, .. }
            | Error::SecondName { path, .. } = &mut error
            {
                *path = self.shown(name);
            }
            error
        })
    }

    /// Opens a file, as [`files::open`] does.
    pub fn open_file(&self, name: &str, access: Access) -> Result<Option<File>> {
        self.named(name, files::open(&self.place_of(name), access))
    }

    /// Opens another description of a file, as [`files::open_again`] does.
    pub fn open_again(&self, file: &File, name: &str, access: Access) -> Result<File> {
        self.named(name, files::open_again(file, &self.place_of(name), access))
    }

    /// Creates a file, as [`files::create_new`] does.
    pub fn create_new(&self, name: &str, mode: u32) -> Result<Option<File>> {
        self.named(name, files::create_new(&self.place_of(name), mode))
    }

    /// Creates a file with `make_whole` and then gives it its name with `publish`, as [`NewFile`]
    /// does; false if another file has the name.
    pub fn create_filled(
        &self,
        name: &str,
        mode: u32,
        make_whole: impl FnOnce(&Path, File) -> Result<()>,
        publish: impl FnOnce(&Path, &Path) -> io::Result<()>,
    ) -> Result<bool> {
        let place = self.place_of(name);
        let (new, file) = self.named(name, NewFile::create(&place, mode))?;
        make_whole(&self.shown(name), file)?;
        new.name(&place, publish).map_err(|e| Error::io("cannot make", &self.shown(name), e))
    }

    /// Device and inode number of the file of this name; None if there is none.
    pub fn identity_of(&self, name: &str) -> Result<Option<(u64, u64)>> {
        let path = self.place_of(name);
        match fault::call!("file.identity.stat", std::fs::symlink_metadata(path)) {
            Ok(found) => Ok(Some(files::identity_of(&found))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::io("cannot look at", &self.shown(name), error)),
        }
    }

    /// The names in it.
    pub fn names(&self) -> io::Result<Vec<OsString>> {
        std::fs::read_dir(&self.place)?.map(|entry| entry.map(|it| it.file_name())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::os::names;

    #[test]
    fn a_file_is_whole_when_it_gets_its_name_and_never_replaces_another() {
        let dir = tempfile::tempdir().unwrap();
        let own = OwnDirectory::open(dir.path()).unwrap();
        let fill = |text: &'static str| {
            move |path: &Path, mut file: File| {
                io::Write::write_all(&mut file, text.as_bytes())
                    .map_err(|e| Error::io("cannot write", path, e))
            }
        };
        assert!(own.create_filled("one", 0o600, fill("first"), names::publish).unwrap());
        assert!(!own.create_filled("one", 0o600, fill("second"), names::publish).unwrap());
        let failed = own.create_filled("two", 0o600, |_, _| Err(Error::Forked), names::publish);
        assert!(failed.is_err());
        assert_eq!(std::fs::read(dir.path().join("one")).unwrap(), b"first");
        assert_eq!(own.names().unwrap(), ["one"]);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn names_belong_to_the_directory_that_was_opened() {
        let above = tempfile::tempdir().unwrap();
        let (path, moved) = (above.path().join("queue"), above.path().join("moved"));
        std::fs::create_dir(&path).unwrap();
        let own = OwnDirectory::open(&path).unwrap();
        std::fs::rename(&path, &moved).unwrap();
        std::fs::create_dir(&path).unwrap();
        own.create_new("file", 0o600).unwrap().unwrap();
        assert!(moved.join("file").exists() && !path.join("file").exists());
        assert!(own.identity_of("file").unwrap().is_some());
    }
}
