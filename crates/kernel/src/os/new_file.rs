//! A file that is written under a temporary name, and gets its final one when it is complete, so
//! that no process sees part of it.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use super::{files, process};
use crate::Result;
use crate::probe::fault;

/// A file under a temporary name, which is removed on drop.
#[derive(Debug)]
pub struct NewFile {
    own: PathBuf,
    has_final_name: bool,
}

impl NewFile {
    /// An empty file that is to be named `path`, and the file itself; an error if its temporary
    /// name is taken, which should be unique to this thread, process and container.
    pub fn create(path: &Path, mode: u32) -> Result<(Self, File)> {
        let mut own = path.as_os_str().to_owned();
        // A pid and a thread are not enough: another container may have the same ones.
        let (pid, thread) = (process::pid(), process::thread_id());
        own.push(format!(".{pid}.{thread}.{:016x}", process::random()));
        let own = PathBuf::from(own);
        let taken = || crate::Error::io("cannot make", path, io::ErrorKind::AlreadyExists.into());
        let file = files::create_new(&own, mode)?.ok_or_else(taken)?;
        Ok((Self { own, has_final_name: false }, file))
    }

    /// Gives the file its final name, by calling `name`: [`publish`](super::names::publish) or
    /// [`files::rename`]; false if another file has the name and is not to be replaced.
    pub fn name(
        mut self,
        path: &Path,
        name: impl FnOnce(&Path, &Path) -> io::Result<()>,
    ) -> io::Result<bool> {
        match name(&self.own, path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            named => {
                named?;
                self.has_final_name = true;
                Ok(true)
            }
        }
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if !self.has_final_name {
            let _ = fault::call!("file.name.remove", std::fs::remove_file(&self.own));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::os::names;

    #[test]
    fn a_file_that_does_not_get_its_name_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("group");
        let make = |text: &[u8]| {
            let (new, mut file) = NewFile::create(&path, 0o600).unwrap();
            io::Write::write_all(&mut file, text).unwrap();
            new
        };
        assert!(!path.exists());
        assert!(make(b"first").name(&path, names::publish).unwrap());
        assert!(!make(b"second").name(&path, names::publish).unwrap());
        assert_eq!(std::fs::read(&path).unwrap(), b"first");
        assert!(make(b"third").name(&path, files::rename).unwrap());
        drop(make(b"given up"));
        assert_eq!(std::fs::read(&path).unwrap(), b"third");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}
