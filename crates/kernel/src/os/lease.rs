//! Whether another process, in any container, has a file open: the kernel knows, and a lease
//! reveals it.

use std::fs::File;
use std::io::ErrorKind;
use std::time::Duration;

use crate::{Error, Result};

/// How long a lease can last: two system calls, unless its holder is stopped in between.
const PAUSE: Duration = Duration::from_millis(1);
const LOOKS: u32 = 1000;

/// Opens a file without blocking. If another process holds a lease on it, waits up to a second for
/// the lease to end.
pub fn waiting<T>(open: impl Fn() -> Result<T>) -> Result<T> {
    for _ in 0..LOOKS {
        match open() {
            Err(Error::Io { source, .. }) if source.kind() == ErrorKind::WouldBlock => {
                std::thread::sleep(PAUSE);
            }
            opened => return opened,
        }
    }
    open()
}

/// Whether this is the only open description of its file that may write, and no process has the
/// file mapped writable. False if unknown: for another user's file, and on other systems.
#[cfg(target_os = "linux")]
#[must_use]
pub fn is_only_writer(file: &File) -> bool {
    use std::os::fd::AsRawFd;

    /// From `magic.h`; missing in the crate.
    const OVERLAYFS_SUPER_MAGIC: i64 = 0x794c_7630;
    // A process that opens the file while the lease is held has this signal sent here; it is
    // ignored unless a handler is set. Without it, the signal would end this process.
    const SIGNAL: libc::c_int = libc::SIGURG;
    // On overlayfs, mappings refer to the underlying file and are not counted here.
    if rustix::fs::fstatfs(file).map_or(true, |found| found.f_type == OVERLAYFS_SUPER_MAGIC) {
        return false;
    }
    let descriptor = file.as_raw_fd();
    // SAFETY: the descriptor is open, as `file` is borrowed, and these commands take a number.
    unsafe {
        let is_set = libc::fcntl(descriptor, F_SETSIG, SIGNAL) != -1;
        let leased = is_set && libc::fcntl(descriptor, libc::F_SETLEASE, libc::F_WRLCK) != -1;
        if leased {
            libc::fcntl(descriptor, libc::F_SETLEASE, libc::F_UNLCK);
        }
        leased
    }
}

/// From `fcntl.h`; missing in the crate.
#[cfg(target_os = "linux")]
const F_SETSIG: libc::c_int = 10;

/// Unknown on this system.
#[cfg(not(target_os = "linux"))]
#[must_use]
pub const fn is_only_writer(_file: &File) -> bool {
    false
}
