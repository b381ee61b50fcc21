//! The first entries of a directory, however many it has: the standard library reads a thousand at
//! once.

use std::ffi::OsString;
use std::io;
use std::path::Path;

/// An entry of a directory.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Its name.
    pub name: OsString,
    /// Whether it is a directory, not a link to one.
    pub is_dir: bool,
}

/// Up to `most` wanted entries of a directory, in the file system's order.
#[cfg(target_os = "linux")]
pub fn first_entries(
    path: &Path,
    most: usize,
    wanted: impl Fn(&Entry) -> bool,
) -> io::Result<Vec<Entry>> {
    use std::ffi::OsStr;
    use std::mem::MaybeUninit;
    use std::os::unix::ffi::OsStrExt;

    use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RawDir, openat, statat};

    /// Room for some sixty names, and for the longest.
    const ROOM: usize = 2048;

    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory = openat(CWD, path, flags, Mode::empty())?;
    let mut buffer = [MaybeUninit::uninit(); ROOM];
    let mut entries = RawDir::new(&directory, &mut buffer);
    let mut found = Vec::new();
    while found.len() < most
        && let Some(entry) = entries.next()
    {
        let entry = entry?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name == "." || name == ".." {
            continue;
        }
        let kind = match entry.file_type() {
            // Some file systems do not report the type.
            FileType::Unknown => statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW)
                .map_or(FileType::Unknown, |found| FileType::from_raw_mode(found.st_mode)),
            known => known,
        };
        let entry = Entry { name: name.to_owned(), is_dir: kind == FileType::Directory };
        if wanted(&entry) {
            found.push(entry);
        }
    }
    Ok(found)
}

/// Up to `most` wanted entries of a directory, in the file system's order.
#[cfg(not(target_os = "linux"))]
pub fn first_entries(
    path: &Path,
    most: usize,
    wanted: impl Fn(&Entry) -> bool,
) -> io::Result<Vec<Entry>> {
    let entry = |entry: io::Result<std::fs::DirEntry>| {
        let entry = entry?;
        let is_dir = entry.file_type().is_ok_and(|kind| kind.is_dir());
        Ok(Entry { name: entry.file_name(), is_dir })
    };
    let is_wanted = |entry: &io::Result<Entry>| entry.as_ref().map_or(true, &wanted);
    std::fs::read_dir(path)?.map(entry).filter(is_wanted).take(most).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn no_more_entries_come_than_are_asked_for_and_all_if_there_are_fewer() {
        let directory = tempfile::tempdir().unwrap();
        let names: HashSet<OsString> =
            (0..300).map(|number| OsString::from(format!("{number:0>255}"))).collect();
        for name in &names {
            std::fs::write(directory.path().join(name), "").unwrap();
        }
        let found = first_entries(directory.path(), 1000, |_| true).unwrap();
        assert_eq!(found.iter().map(|entry| entry.name.clone()).collect::<HashSet<_>>(), names);
        assert_eq!(first_entries(directory.path(), 7, |_| true).unwrap().len(), 7);
    }

    #[test]
    fn a_link_to_a_directory_is_none() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("directory")).unwrap();
        std::os::unix::fs::symlink("directory", directory.path().join("link")).unwrap();
        let found = first_entries(directory.path(), 10, |entry| entry.is_dir).unwrap();
        assert_eq!(found.iter().map(|entry| entry.name.clone()).collect::<Vec<_>>(), ["directory"]);
    }
}
