//! Names of files: giving one to a new file, and refusing files that have several.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::probe::{fault, recorder};
use crate::{Error, Result};

/// Gives a new, complete file its name; an `AlreadyExists` error if the name is taken. The file
/// never has two names, unless the file system cannot rename without replacing.
pub fn publish(from: &Path, to: &Path) -> io::Result<()> {
    match rename_new(from, to) {
        Err(error) if matches!(error.raw_os_error(), Some(libc::EINVAL | libc::ENOSYS)) => {
            std::fs::hard_link(from, to)?;
            // A process that opened it in the meantime may have removed the name as a leftover.
            match std::fs::remove_file(from) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                _ => Ok(()),
            }
        }
        renamed => renamed,
    }?;
    recorder::renamed(from, to);
    Ok(())
}

#[cfg(target_os = "linux")]
fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    Ok(renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE)?)
}

#[cfg(not(target_os = "linux"))]
fn rename_new(_from: &Path, _to: &Path) -> io::Result<()> {
    Err(io::Error::from_raw_os_error(libc::ENOSYS))
}

/// Refuses to write to a file with a second name: the change would show under both, in a backup or
/// in another user's file. A temporary name left by a process that died while creating the file is
/// removed.
pub fn refuse_second(path: &Path, file: &File) -> Result<()> {
    let failed = |e| Error::io("cannot look at", path, e);
    if fault::call!("file.stat", file.metadata()).map_err(failed)?.nlink() < 2 {
        return Ok(());
    }
    remove_left(path, file).map_err(failed)?;
    let names = fault::call!("file.stat", file.metadata()).map_err(failed)?.nlink();
    if names < 2 {
        return Ok(());
    }
    Err(Error::SecondName { path: path.to_path_buf(), names })
}

/// Removes our own temporary names of this very file.
fn remove_left(path: &Path, file: &File) -> io::Result<()> {
    let (Some(dir), Some(name)) = (path.parent(), path.file_name()) else { return Ok(()) };
    let own = fault::call!("file.identity.stat", file.metadata())?;
    let dir = if dir.as_os_str().is_empty() { Path::new(".") } else { dir };
    for entry in fault::call!("file.names.read", std::fs::read_dir(dir))? {
        let entry = entry?;
        if is_temporary(&entry.file_name(), name) {
            let found = fault::call!("file.stat", std::fs::symlink_metadata(entry.path()));
            if found.is_ok_and(|it| (it.dev(), it.ino()) == (own.dev(), own.ino())) {
                match fault::call!("file.name.remove", std::fs::remove_file(entry.path())) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                    _ => {}
                }
            }
        }
    }
    Ok(())
}

/// Whether `found` is `name` with a process, a thread and a random number after it.
fn is_temporary(found: &OsStr, name: &OsStr) -> bool {
    let rest = found.as_encoded_bytes().strip_prefix(name.as_encoded_bytes());
    let rest = rest.and_then(|rest| rest.strip_prefix(b"."));
    rest.is_some_and(|rest| {
        !rest.is_empty() && rest.iter().all(|byte| byte.is_ascii_hexdigit() || *byte == b'.')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_file_gets_its_name_once_and_has_no_other() {
        let dir = tempfile::tempdir().unwrap();
        let (own, name) = (dir.path().join("ring.12.3"), dir.path().join("ring"));
        std::fs::write(&own, b"one").unwrap();
        publish(&own, &name).unwrap();
        assert!(!own.exists());
        assert_eq!(std::fs::metadata(&name).unwrap().nlink(), 1);
        std::fs::write(&own, b"two").unwrap();
        assert_eq!(publish(&own, &name).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(std::fs::read(&name).unwrap(), b"one");
    }

    #[test]
    fn only_a_name_that_a_dead_process_left_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let name = dir.path().join("ring");
        std::fs::write(&name, b"one").unwrap();
        let file = File::open(&name).unwrap();
        std::fs::hard_link(&name, dir.path().join("ring.12.3af")).unwrap();
        std::fs::write(dir.path().join("ring.13"), b"another's").unwrap();
        refuse_second(&name, &file).unwrap();
        assert!(!dir.path().join("ring.12.3af").exists());
        assert!(dir.path().join("ring.13").exists());
        std::fs::hard_link(&name, dir.path().join("backup")).unwrap();
        assert!(matches!(refuse_second(&name, &file), Err(Error::SecondName { names: 2, .. })));
        assert!(dir.path().join("backup").exists());
    }
}
