//! A shared mapping of a file, and raw access to it. The crate's bounds checks are here.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64};

#[cfg(target_os = "linux")]
use super::pages::Pages;
use crate::probe::fault;
use crate::probe::recorder;

#[cfg(target_endian = "big")]
compile_error!("the files are little-endian and words are accessed in place");

/// A mapping of the first `len` bytes of a file. It may extend past the file's end: check first
/// that the bytes exist (`window.rs`).
pub struct Mapping {
    base: NonNull<u8>,
    len: usize,
}

// SAFETY: the mapping is plain memory, valid until drop, and every access goes through atomics or
// through plain copies that the publish protocol orders.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps `len` bytes of `file`, shared.
    pub fn new(file: &File, len: u64, writable: bool) -> io::Result<Self> {
        let len = usize::try_from(len).map_err(|_| io::ErrorKind::OutOfMemory)?;
        let write = if writable { libc::PROT_WRITE } else { 0 };
        let (protection, fd) = (libc::PROT_READ | write, file.as_raw_fd());
        let mapping =
            fault::call!("map.new", map(len, protection, fd, 0)).map(|base| Self { base, len })?;
        recorder::mapped(mapping.address(), file);
        Ok(mapping)
    }

    /// Maps `len` bytes of `file` for writing, from `start` on, a multiple of the page size.
    pub fn part(file: &File, start: u64, len: u64) -> io::Result<Self> {
        let len = usize::try_from(len).map_err(|_| io::ErrorKind::OutOfMemory)?;
        let start = libc::off_t::try_from(start).map_err(|_| io::ErrorKind::OutOfMemory)?;
        let (protection, fd) = (libc::PROT_READ | libc::PROT_WRITE, file.as_raw_fd());
        let base = fault::call!("map.new", map(len, protection, fd, start))?;
        Ok(Self { base, len })
    }

    /// Private memory, for Miri, which does not support files.
    #[cfg(miri)]
    pub fn anonymous(len: u64) -> io::Result<Self> {
        let len = usize::try_from(len).map_err(|_| io::ErrorKind::OutOfMemory)?;
        let (access, kind) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a new mapping at an address of the system's choice overlaps nothing of ours.
        let base = unsafe { libc::mmap(std::ptr::null_mut(), len, access, kind, -1, 0) };
        let base = NonNull::new(base.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { base, len })
    }

    /// Length in bytes.
    #[must_use]
    #[allow(clippy::len_without_is_empty)] // a mapping is never empty
    pub const fn len(&self) -> u64 {
        self.len as u64
    }

    /// The start address.
    #[inline]
    pub(crate) fn address(&self) -> usize {
        self.base.as_ptr() as usize
    }

    /// Populates the pages of a range for reading; an error if that is impossible.
    #[cfg(target_os = "linux")]
    pub fn populate_read(&self, start: u64, end: u64) -> io::Result<()> {
        let advice = populate::supported(libc::MADV_POPULATE_READ)?;
        let start = Pages::here().down(start);
        fault::call!("map.populate-read", self.advise_pages(start, end, advice))
    }

    /// Populates the pages of a range for writing, unchanged.
    #[cfg(target_os = "linux")]
    pub fn populate_write(&self, start: u64, end: u64) -> io::Result<()> {
        let advice = populate::supported(libc::MADV_POPULATE_WRITE)?;
        let start = Pages::here().down(start);
        fault::call!("map.populate-write", self.advise_pages(start, end, advice))
    }

    /// Drops the page table entries of the whole pages in a range; the bytes stay in the file, and
    /// the next access maps them again.
    #[cfg(target_os = "linux")]
    pub fn release(&self, start: u64, end: u64) -> io::Result<()> {
        let end = Pages::here().down(end);
        if start >= end || Pages::here().up(start) >= end {
            return Ok(());
        }
        let start = Pages::here().up(start);
        self.advise_pages(start, end, libc::MADV_DONTNEED)
    }

    /// Left to the system.
    #[cfg(not(target_os = "linux"))]
    pub fn release(&self, _start: u64, _end: u64) -> io::Result<()> {
        Ok(())
    }

    /// Not available on this system: callers fall back to reading through the file.
    #[cfg(not(target_os = "linux"))]
    pub fn populate_read(&self, _start: u64, _end: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Not available on this system.
    #[cfg(not(target_os = "linux"))]
    pub fn populate_write(&self, _start: u64, _end: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// `start` is page-aligned.
    #[cfg(target_os = "linux")]
    fn advise_pages(&self, start: u64, end: u64, advice: libc::c_int) -> io::Result<()> {
        let at = self.checked(start, end - start);
        let count = usize::try_from(end - start).map_err(|_| io::ErrorKind::InvalidInput)?;
        // SAFETY: the range lies in this mapping of a file, which is shared: neither populating its
        // pages nor releasing them changes a byte.
        let result = unsafe { libc::madvise(at.cast(), count, advice) };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// The atomic at an aligned position.
    ///
    /// # Panics
    /// If the position is outside, or not a multiple of the word's size: callers check.
    #[inline]
    #[must_use]
    pub(super) fn word32(&self, position: u64) -> &AtomicU32 {
        assert!(position.is_multiple_of(4), "unaligned word: position={position:#x}");
        // SAFETY: in range (checked) and aligned (asserted; mappings start at a page), and all
        // accesses to header words go through this atomic, in other processes through theirs.
        unsafe { AtomicU32::from_ptr(self.checked(position, 4).cast()) }
    }

    /// The atomic at an aligned position.
    ///
    /// # Panics
    /// As [`Mapping::word32`].
    #[inline]
    #[must_use]
    pub(super) fn word64(&self, position: u64) -> &AtomicU64 {
        assert!(position.is_multiple_of(8), "unaligned word: position={position:#x}");
        // SAFETY: as for `word32`.
        unsafe { AtomicU64::from_ptr(self.checked(position, 8).cast()) }
    }

    /// Copies bytes in.
    #[inline]
    pub(super) fn copy_in(&self, position: u64, bytes: &[u8]) {
        let at = self.checked(position, bytes.len() as u64);
        // SAFETY: in range (checked); the caller is the only writer of bytes after an unpublished
        // header, and no reader looks at them before the header's release.
        unsafe { at.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) }
    }

    /// Stores zero bytes.
    #[inline]
    pub(super) fn zero(&self, position: u64, count: u64) {
        let at = self.checked(position, count);
        // SAFETY: as for `copy_in`; `count` was checked against a `usize` length.
        #[allow(clippy::cast_possible_truncation)]
        unsafe {
            at.write_bytes(0, count as usize);
        }
    }

    /// Copies bytes out.
    #[must_use]
    pub fn copy_out(&self, position: u64, count: u64) -> Vec<u8> {
        self.bytes(position, count).to_vec()
    }

    /// Bytes in place.
    #[inline]
    #[must_use]
    pub fn bytes(&self, position: u64, count: u64) -> &[u8] {
        let at = self.checked(position, count);
        // SAFETY: in range (checked), and bytes of a published document never change by the
        // protocol. A process that breaks it can change what is read, not where.
        #[allow(clippy::cast_possible_truncation)]
        unsafe {
            std::slice::from_raw_parts(at, count as usize)
        }
    }

    #[inline]
    fn checked(&self, position: u64, count: u64) -> *mut u8 {
        let end = position.checked_add(count);
        assert!(end.is_some_and(|end| end <= self.len()), "position outside: {position:#x}");
        // SAFETY: the offset lies in the mapping (asserted).
        #[allow(clippy::cast_possible_truncation)]
        unsafe {
            self.base.as_ptr().add(position as usize)
        }
    }
}

/// Whether the system supports populating pages. One that does not returns `EINVAL`, as it does for
/// an unaligned range. To distinguish the two, support is tested once, on a page for which there is
/// no other cause.
#[cfg(target_os = "linux")]
mod populate {
    use std::io;
    use std::sync::atomic::{AtomicU8, Ordering};

    use crate::memory::pages::Pages;

    const UNKNOWN: u8 = 0;
    const SUPPORTED: u8 = 1;
    const UNSUPPORTED: u8 = 2;
    static READ: AtomicU8 = AtomicU8::new(UNKNOWN);
    static WRITE: AtomicU8 = AtomicU8::new(UNKNOWN);

    /// The advice, or an error if the system does not support it.
    pub fn supported(advice: libc::c_int) -> io::Result<libc::c_int> {
        if is_supported(advice) { Ok(advice) } else { Err(io::ErrorKind::Unsupported.into()) }
    }

    fn is_supported(advice: libc::c_int) -> bool {
        let known = if advice == libc::MADV_POPULATE_WRITE { &WRITE } else { &READ };
        if known.load(Ordering::Relaxed) == UNKNOWN {
            let found = if answers(advice) { SUPPORTED } else { UNSUPPORTED };
            known.store(found, Ordering::Relaxed);
        }
        known.load(Ordering::Relaxed) == SUPPORTED
    }

    fn answers(advice: libc::c_int) -> bool {
        let Ok(len) = usize::try_from(Pages::here().bytes()) else { return false };
        let (access, kind) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a new mapping at an address of the system's choice overlaps nothing of ours, and
        // no other code knows it before it is unmapped.
        unsafe {
            let page = libc::mmap(std::ptr::null_mut(), len, access, kind, -1, 0);
            if page == libc::MAP_FAILED {
                return true;
            }
            let result = libc::madvise(page, len, advice);
            let error = std::io::Error::last_os_error();
            libc::munmap(page, len);
            result == 0 || error.raw_os_error() != Some(libc::EINVAL)
        }
    }
}

/// Whether populating failed because the system does not support it.
#[must_use]
pub fn is_unsupported(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::Unsupported
}

fn map(
    len: usize,
    protection: libc::c_int,
    fd: libc::c_int,
    start: libc::off_t,
) -> io::Result<NonNull<u8>> {
    // SAFETY: a new mapping at an address of the kernel's choice overlaps nothing of ours.
    let base =
        unsafe { libc::mmap(std::ptr::null_mut(), len, protection, libc::MAP_SHARED, fd, start) };
    if base == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    NonNull::new(base.cast()).ok_or_else(|| io::ErrorKind::OutOfMemory.into())
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: this is the mapping made in `new`, and no borrow of it is left.
        unsafe {
            libc::munmap(self.base.as_ptr().cast(), self.len);
        }
    }
}

#[cfg(all(test, target_os = "linux", not(miri)))]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_range_does_not_pass_for_a_system_that_cannot() {
        let file = tempfile::tempfile().unwrap();
        let page = Pages::here().bytes();
        file.set_len(4 * page).unwrap();
        let mapping = Mapping::new(&file, 4 * page, true).unwrap();

        mapping.populate_write(page + 1, 2 * page + 1).unwrap();
        mapping.populate_read(page - 1, page).unwrap();

        let error = mapping.advise_pages(1, page, libc::MADV_POPULATE_READ).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EINVAL));
        assert!(!is_unsupported(&error));
        assert!(is_unsupported(&io::ErrorKind::Unsupported.into()));
    }
}
