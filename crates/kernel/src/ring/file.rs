//! The file of a ring: made whole and then given its name, checked before it is believed.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use super::format::{
    CAPACITY_AT, Descriptor, HEADER, Layout, MAGIC, SLOTS_AT, VERSION, VERSION_AT,
};
use crate::memory::window::{Region, Window};
use crate::os::files::{self, Access};
use crate::os::process;
use crate::os::range_lock::{self, Kind, Range};
use crate::probe::fault::{self, step};
use crate::{Error, Result};

/// The file's name, which Java ignores.
pub const FILE_NAME: &str = "async.ring";
/// The lock that the process draining the ring holds.
const DRAINER: Range = Range { start: 0, length: 1 };

/// Descriptors that may hold a drainer's lock: a child of a fork must let go of them.
pub type Drainers = Vec<Weak<File>>;

static DRAINERS: Mutex<Drainers> = Mutex::new(Vec::new());

/// Right before a fork: holds the list until the fork is over.
pub fn hold() -> MutexGuard<'static, Drainers> {
    DRAINERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// In a forked child: lets the parent's locks end with the parent.
pub fn detach(drainers: &mut Drainers) {
    drainers.drain(..).filter_map(|file| file.upgrade()).for_each(|file| {
        files::detach_descriptor(&file);
    });
}

/// An open ring, mapped and populated.
pub struct RingFile {
    pub path: PathBuf,
    pub region: Arc<Region>,
    pub layout: Layout,
    /// A description of its own, which is not mapped: the drainer's lock ends with it.
    lock: Arc<File>,
}

impl RingFile {
    /// Opens the ring of a directory; None if there is none.
    pub fn open(dir: &Path) -> Result<Option<Self>> {
        let path = dir.join(FILE_NAME);
        let access = Access { write: true, create_mode: None };
        let Some(file) = files::open(&path, access)? else { return Ok(None) };
        let lock = Arc::new(files::open_again(&file, &path, access)?);
        let window = Window::new(&path, file, true)?;
        let layout = read_layout(&window)?;
        let mut region = window.region();
        window.reserve(&mut region, 0, layout.file_len())?;
        let mut drainers = hold();
        drainers.retain(|file| file.strong_count() > 0);
        drainers.push(Arc::downgrade(&lock));
        drop(drainers);
        Ok(Some(Self { path, region, layout, lock }))
    }

    /// Maps the ring of a directory to look at, and changes nothing; None if there is none.
    pub fn map_read_only(dir: &Path) -> Result<Option<(Arc<Region>, Layout)>> {
        let path = dir.join(FILE_NAME);
        let access = Access { write: false, create_mode: None };
        let Some(file) = files::open(&path, access)? else { return Ok(None) };
        let window = Window::new(&path, file, false)?;
        let layout = read_layout(&window)?;
        Ok(Some((window.region(), layout)))
    }

    /// Opens the ring of a directory, or makes one of this layout.
    pub fn open_or_create(dir: &Path, layout: Layout, mode: u32) -> Result<Self> {
        loop {
            if let Some(found) = Self::open(dir)? {
                return Ok(found);
            }
            create(dir, layout, mode)?;
        }
    }

    /// Takes the drainer's lock, until [`RingFile::release`]; false if another one has it.
    pub fn try_hold(&self) -> Result<bool> {
        range_lock::try_hold(&self.lock, DRAINER, Kind::Exclusive)
            .map_err(|e| Error::io("cannot lock", &self.path, e))
    }

    /// Lets go of the drainer's lock.
    pub fn release(&self) {
        range_lock::release(&self.lock, DRAINER);
    }
}

/// Makes a ring under a name of its own, then gives it its name, unless another one was faster.
fn create(dir: &Path, layout: Layout, mode: u32) -> Result<()> {
    let path = dir.join(FILE_NAME);
    let own = dir.join(format!("{FILE_NAME}.{}", process::pid()));
    let remove = || fault::call!("ring.file.remove", std::fs::remove_file(&own));
    let Some(file) = files::create_new(&own, mode)? else {
        // Left by a process of this pid, or by another thread, which then fails and tries again.
        return remove().map_err(|e| Error::io("cannot remove", &own, e));
    };
    let created = fill(&own, file, layout).and_then(|()| {
        match fault::call!("ring.file.link", std::fs::hard_link(&own, &path)) {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                Err(Error::io("cannot make", &path, error))
            }
            _ => Ok(()),
        }
    });
    let _ = remove();
    created
}

fn fill(path: &Path, file: File, layout: Layout) -> Result<()> {
    let window = Window::new(path, file, true)?;
    window.grow(layout.file_len(), Duration::ZERO)?;
    let mut region = window.region();
    window.reserve(&mut region, 0, layout.file_len())?;
    for (at, word) in [
        (0, MAGIC),
        (VERSION_AT, VERSION),
        (CAPACITY_AT, layout.capacity),
        (SLOTS_AT, layout.slots),
    ] {
        region.store_release(at, word, step!("ring.header.store"));
    }
    for slot in 0..layout.slots {
        let empty = Descriptor::Empty(slot).word();
        region.store_release(layout.descriptor(slot), empty, step!("ring.header.store"));
    }
    Ok(())
}

/// The layout that a file says it has, if the file is as long.
fn read_layout(window: &Window) -> Result<Layout> {
    let mut header = vec![0; usize::try_from(HEADER).unwrap_or_default()];
    let got = window.read_at(&mut header, 0)?;
    let word = |at: u64| {
        let at = usize::try_from(at).unwrap_or_default();
        let mut word = [0; 8];
        word.copy_from_slice(&header[at..at + 8]);
        u64::from_le_bytes(word)
    };
    let corrupt = |position, found, expected: &str| {
        Error::corrupt(
            "not a ring of asynchronous appends",
            window.path(),
            position,
            found,
            expected,
        )
    };
    if got < header.len() || word(0) != MAGIC {
        return Err(corrupt(0, format!("{:#x}", word(0)), "QUIRERNG"));
    }
    if word(VERSION_AT) != VERSION {
        return Err(Error::Unsupported(format!(
            "a ring of another version: file={} version={} known={VERSION} (open the queue with \
             the Quire that made it: that drains the ring)",
            window.path().display(),
            word(VERSION_AT)
        )));
    }
    let layout = Layout { capacity: word(CAPACITY_AT), slots: word(SLOTS_AT) };
    if !layout.is_credible() {
        let found = format!("capacity {} slots {}", layout.capacity, layout.slots);
        return Err(corrupt(CAPACITY_AT, found, "a power of two, and a slot for each 32 bytes"));
    }
    if window.file_len() < layout.file_len() {
        let found = format!("{} bytes", window.file_len());
        return Err(corrupt(0, found, &format!("{} bytes", layout.file_len())));
    }
    Ok(layout)
}
