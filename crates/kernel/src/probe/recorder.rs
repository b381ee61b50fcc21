//! Records every change of a queue's files, in order, for tests of the state after a power cut
//! (`tests/power_loss`). Without the feature `power-loss` these functions do nothing.

#[cfg(feature = "power-loss")]
pub use on::*;

#[cfg(not(feature = "power-loss"))]
#[cfg_attr(loom, allow(dead_code))]
mod off {
    use std::fs::File;
    use std::io;
    use std::path::Path;

    /// Bytes were stored through a mapping.
    #[inline]
    pub const fn stored(_address: usize, _position: u64, _bytes: &[u8]) {}

    /// Zeros were stored through a mapping.
    #[inline]
    pub const fn zeroed(_address: usize, _position: u64, _count: u64) {}

    /// A file was mapped.
    #[inline]
    pub const fn mapped(_address: usize, _file: &File) {}

    /// A file was opened, or created.
    #[inline]
    pub const fn opened(_file: &File, _path: &Path) {}

    /// A file was renamed.
    #[inline]
    pub const fn renamed(_from: &Path, _to: &Path) {}

    /// A file's length was changed.
    #[inline]
    pub const fn resized(_file: &File, _len: u64) {}

    /// A range of a file was zeroed, not through a mapping.
    #[inline]
    pub const fn zeroed_range(_file: &File, _start: u64, _end: u64) {}

    /// A file or directory is about to be synced.
    #[inline]
    #[allow(clippy::unnecessary_wraps)] // the other one can fail
    pub const fn before_sync() -> io::Result<()> {
        Ok(())
    }

    /// A file was synced.
    #[inline]
    pub const fn synced(_file: &File) {}

    /// A directory of the queue was created.
    #[inline]
    pub const fn made_directory(_path: &Path) {}

    /// A directory of the queue was synced.
    #[inline]
    pub const fn synced_directory(_path: &Path) {}

    /// A directory above the queue's was synced.
    #[inline]
    pub const fn synced_parent(_path: &Path) {}
}

#[cfg(not(feature = "power-loss"))]
pub(crate) use off::*;

/// The recording, and its interface for tests.
#[cfg(feature = "power-loss")]
mod on {
    use std::cell::{Cell, RefCell};
    use std::collections::HashMap;
    use std::collections::hash_map::Entry;
    use std::fs::File;
    use std::io;
    use std::os::unix::fs::MetadataExt;
    use std::path::{Path, PathBuf};

    /// One change. Files are named as they were when first opened, by their path below the queue's
    /// directory, which itself has the name "".
    #[derive(Clone, Debug)]
    pub enum Event {
        /// The file was opened for the first time since recording began.
        Opened(String),
        /// Bytes were stored through a mapping.
        Stored(String, u64, Vec<u8>),
        /// The file's length was changed.
        Resized(String, u64),
        /// Bytes from start to end read as zero.
        ZeroedRange(String, u64, u64),
        /// The file was renamed.
        Renamed(String, String),
        /// The file's bytes and length are on the medium.
        Synced(String),
        /// A directory was created below the queue's.
        MadeDirectory(String),
        /// Names in this directory are on the medium.
        SyncedDirectory(String),
        /// Names in this directory above the queue's are on the medium.
        SyncedParent(PathBuf),
    }

    #[derive(Default)]
    struct Recording {
        /// The queue's directory.
        root: PathBuf,
        events: Vec<Event>,
        /// Names by inode.
        names: HashMap<u64, String>,
        /// Names by the address of a mapping.
        mappings: HashMap<usize, String>,
    }

    thread_local!(static RECORDING: RefCell<Option<Recording>> = const { RefCell::new(None) });
    thread_local!(static FAILURE: Cell<i32> = const { Cell::new(0) });

    /// Starts a new recording of the queue at `root` for this thread, with no files known.
    pub fn begin(root: &Path) {
        let root = root.to_path_buf();
        RECORDING.set(Some(Recording { root, ..Recording::default() }));
    }

    /// Ends the recording and returns it.
    #[must_use]
    pub fn end() -> Vec<Event> {
        RECORDING.take().map(|recording| recording.events).unwrap_or_default()
    }

    /// How many changes there are so far.
    #[must_use]
    pub fn count() -> usize {
        RECORDING.with_borrow(|found| found.as_ref().map_or(0, |found| found.events.len()))
    }

    /// The next sync of this thread fails with this error number.
    pub fn fail_next_sync(error: i32) {
        FAILURE.set(error);
    }

    pub(crate) fn before_sync() -> io::Result<()> {
        match FAILURE.take() {
            0 => Ok(()),
            error => Err(io::Error::from_raw_os_error(error)),
        }
    }

    pub(crate) fn mapped(address: usize, file: &File) {
        with(|recording| {
            let name = file.metadata().ok().and_then(|found| recording.names.get(&found.ino()));
            let Some(name) = name.cloned() else { return };
            recording.mappings.insert(address, name);
        });
    }

    pub(crate) fn opened(file: &File, path: &Path) {
        with(|recording| {
            let Ok(inode) = file.metadata().map(|found| found.ino()) else { return };
            if let Entry::Vacant(vacant) = recording.names.entry(inode) {
                let name = vacant.insert(below(&recording.root, path)).clone();
                recording.events.push(Event::Opened(name));
            }
        });
    }

    pub(crate) fn renamed(from: &Path, to: &Path) {
        with(|recording| {
            let [from, to] = [from, to].map(|path| below(&recording.root, path));
            recording.names.retain(|_, name| *name != from);
            recording.events.push(Event::Renamed(from, to));
        });
    }

    pub(crate) fn stored(address: usize, position: u64, bytes: &[u8]) {
        with(|recording| {
            if let Some(name) = recording.mappings.get(&address).cloned() {
                recording.events.push(Event::Stored(name, position, bytes.to_vec()));
            }
        });
    }

    pub(crate) fn zeroed(address: usize, position: u64, count: u64) {
        stored(address, position, &vec![0; usize::try_from(count).unwrap_or_default()]);
    }

    pub(crate) fn resized(file: &File, len: u64) {
        of_file(file, |name| Event::Resized(name, len));
    }

    pub(crate) fn zeroed_range(file: &File, start: u64, end: u64) {
        of_file(file, |name| Event::ZeroedRange(name, start, end));
    }

    pub(crate) fn synced(file: &File) {
        of_file(file, Event::Synced);
    }

    pub(crate) fn made_directory(path: &Path) {
        with(|recording| {
            recording.events.push(Event::MadeDirectory(below(&recording.root, path)));
        });
    }

    pub(crate) fn synced_directory(path: &Path) {
        with(|recording| {
            recording.events.push(Event::SyncedDirectory(below(&recording.root, path)));
        });
    }

    pub(crate) fn synced_parent(path: &Path) {
        with(|recording| recording.events.push(Event::SyncedParent(path.to_path_buf())));
    }

    fn of_file(file: &File, event: impl FnOnce(String) -> Event) {
        with(|recording| {
            let Ok(inode) = file.metadata().map(|found| found.ino()) else { return };
            if let Some(name) = recording.names.get(&inode).cloned() {
                recording.events.push(event(name));
            }
        });
    }

    fn below(root: &Path, path: &Path) -> String {
        // The directory may be named by a descriptor, see `OwnDirectory`.
        let whole = || Some(path.parent()?.canonicalize().ok()?.join(path.file_name()?));
        let found = if path.starts_with(root) { None } else { whole() };
        let path = found.as_deref().unwrap_or(path);
        path.strip_prefix(root).unwrap_or(path).to_string_lossy().into_owned()
    }

    fn with(change: impl FnOnce(&mut Recording)) {
        RECORDING.with_borrow_mut(|found| found.as_mut().map(change));
    }
}
