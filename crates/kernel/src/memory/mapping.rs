//! A shared mapping of a file, and raw access to it. The crate's bounds checks are here.

use std::ffi::c_void;
use std::fs::File;
use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};

#[cfg(target_os = "linux")]
use rustix::mm::Advice;
use rustix::mm::{MapFlags, MsyncFlags, ProtFlags};

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
    writable: bool,
}

// SAFETY: the mapping belongs to no thread, and stays valid until it is dropped. Bytes that several
// threads of this process store to are accessed through atomics, or under the lock that a protocol
// has for them; bytes that one thread copies in plainly are read by others only after it stored a
// word with release order that they loaded with acquire order. Other processes are not covered: one
// that breaks the protocols changes what is read, and one that truncates the file ends this process
// by a signal.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps `len` bytes of `file`, shared.
    pub fn new(file: &File, len: u64, writable: bool) -> io::Result<Self> {
        let mapping = fault::call!("map.new", map(file, 0, len, writable))?;
        recorder::mapped(mapping.address(), file);
        Ok(mapping)
    }

    /// Maps `len` bytes of `file` for writing, from `start` on, a multiple of the page size.
    pub fn part(file: &File, start: u64, len: u64) -> io::Result<Self> {
        fault::call!("map.new", map(file, start, len, true))
    }

    /// Private memory, for Miri, which does not support files.
    #[cfg(miri)]
    pub fn anonymous(len: u64) -> io::Result<Self> {
        let len = usize::try_from(len).map_err(|_| io::ErrorKind::OutOfMemory)?;
        Ok(Self { base: map_anonymous(len)?, len, writable: true })
    }

    /// Length in bytes.
    #[must_use]
    #[allow(clippy::len_without_is_empty)] // a mapping is never empty
    pub const fn len(&self) -> u64 {
        self.len as u64
    }

    /// Whether stores are allowed: a store to a read-only mapping ends the process.
    #[inline]
    pub(super) const fn is_writable(&self) -> bool {
        self.writable
    }

    /// The start address.
    #[inline]
    pub(crate) fn address(&self) -> usize {
        self.base.as_ptr() as usize
    }

    /// Returns when the pages of a range are on the medium.
    pub fn sync(&self, start: u64, end: u64) -> io::Result<()> {
        let start = Pages::here().down(start);
        let at = self.checked(start, end - start);
        let count = usize::try_from(end - start).map_err(|_| io::ErrorKind::InvalidInput)?;
        // SAFETY: the range lies in this mapping (checked), and the call changes no byte.
        unsafe { rustix::mm::msync(at.cast(), count, MsyncFlags::SYNC) }.map_err(io::Error::from)
    }

    /// Populates the pages of a range for reading; an error if that is impossible.
    #[cfg(target_os = "linux")]
    pub fn populate_read(&self, start: u64, end: u64) -> io::Result<()> {
        let advice = populate::supported(Advice::LinuxPopulateRead)?;
        let start = Pages::here().down(start);
        fault::call!("map.populate-read", self.advise_pages(start, end, advice))
    }

    /// Populates the pages of a range for writing, unchanged.
    #[cfg(target_os = "linux")]
    pub fn populate_write(&self, start: u64, end: u64) -> io::Result<()> {
        let advice = populate::supported(Advice::LinuxPopulateWrite)?;
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
        self.advise_pages(start, end, Advice::LinuxDontNeed)
    }

    /// Replaces the file by private memory that begins with these bytes: the file is no longer
    /// mapped, the addresses stay valid, and later stores are invisible to other processes.
    #[cfg(target_os = "linux")]
    pub fn leave_file(&self, bytes: &[u8]) -> io::Result<()> {
        let count = bytes.len().min(self.len);
        let private = Self { base: map_anonymous(self.len)?, len: self.len, writable: true };
        let (from, to) = (private.base.as_ptr(), self.base.as_ptr());
        // SAFETY: `count` bytes are readable in `bytes` and writable in `private`, which nothing
        // else refers to yet.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), from, count) };
        let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
        // SAFETY: both ranges are those of a mapping of ours. The system replaces the second one in
        // one step: concurrent loads see the file's bytes or the new ones, as if another process
        // had stored them.
        let moved =
            unsafe { libc::mremap(from.cast(), self.len, self.len, flags, to.cast::<c_void>()) };
        if moved == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        std::mem::forget(private); // its pages have moved to `self`
        Ok(())
    }

    /// Not available on this system: the file stays mapped until this is dropped.
    #[cfg(not(target_os = "linux"))]
    pub fn leave_file(&self, _bytes: &[u8]) -> io::Result<()> {
        Ok(())
    }

    /// Not available on this system.
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
    fn advise_pages(&self, start: u64, end: u64, advice: Advice) -> io::Result<()> {
        let at = self.checked(start, end - start);
        let count = usize::try_from(end - start).map_err(|_| io::ErrorKind::InvalidInput)?;
        debug_assert!(matches!(
            advice,
            Advice::LinuxPopulateRead | Advice::LinuxPopulateWrite | Advice::LinuxDontNeed
        ));
        // SAFETY: the range lies in this mapping (checked) of a file, which is shared: neither
        // populating its pages nor dropping their entries (asserted) changes a byte.
        unsafe { rustix::mm::madvise(at.cast(), count, advice) }.map_err(io::Error::from)
    }

    /// The atomic at an aligned position.
    ///
    /// # Panics
    /// If the position is outside, or not a multiple of the word's size: callers check.
    #[expect(clippy::inline_always, reason = "once a message or more: a call costs 1 %")]
    #[inline(always)]
    #[must_use]
    pub(super) fn word32(&self, position: u64) -> &AtomicU32 {
        assert!(position.is_multiple_of(4), "unaligned word: position={position:#x}");
        // SAFETY: in range (checked) and aligned (asserted; mappings start at a page). Threads of
        // this process access such a word only through this atomic, or copy it in before it is
        // published to other threads. If the mapping is not writable the word is only loaded.
        unsafe { AtomicU32::from_ptr(self.checked(position, 4).cast()) }
    }

    /// The atomic at an aligned position.
    ///
    /// # Panics
    /// As [`Mapping::word32`].
    #[expect(clippy::inline_always, reason = "once a message or more: a call costs 1 %")]
    #[inline(always)]
    #[must_use]
    pub(super) fn word64(&self, position: u64) -> &AtomicU64 {
        assert!(position.is_multiple_of(8), "unaligned word: position={position:#x}");
        // SAFETY: as for `word32`.
        unsafe { AtomicU64::from_ptr(self.checked(position, 8).cast()) }
    }

    /// Copies bytes into a range that no other thread accesses until a word is stored with release
    /// order.
    #[expect(clippy::inline_always, reason = "once a message or more: a call costs 1 %")]
    #[inline(always)]
    pub(super) fn copy_in(&self, position: u64, bytes: &[u8]) {
        debug_assert!(self.writable);
        let at = self.checked(position, bytes.len() as u64);
        // SAFETY: in range (checked). By the protocols the caller has exclusive access to the
        // range: it holds the lock on it, or has claimed it, and other threads read it only after
        // the release store that publishes it. `bytes` do not overlap it: only published bytes are
        // borrowed in place, and this range is not published.
        unsafe { at.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) }
    }

    /// Stores zero bytes, under the conditions of [`Mapping::copy_in`].
    #[inline]
    pub(super) fn zero(&self, position: u64, count: u64) {
        debug_assert!(self.writable);
        let at = self.checked(position, count);
        // SAFETY: as for `copy_in`; `count` is at most the length, a `usize` (checked).
        #[allow(clippy::cast_possible_truncation)]
        unsafe {
            at.write_bytes(0, count as usize);
        }
    }

    /// Stores bytes one by one; other threads may be copying them.
    pub(super) fn store_each(&self, position: u64, bytes: &[u8]) {
        debug_assert!(self.writable);
        let at = self.checked(position, bytes.len() as u64);
        for (offset, byte) in bytes.iter().enumerate() {
            // SAFETY: in range (checked). Other threads of this process also access such bytes
            // through atomics.
            unsafe { AtomicU8::from_ptr(at.add(offset)) }.store(*byte, Ordering::Relaxed);
        }
    }

    /// A copy of bytes that other threads may be changing: each is loaded once, and no word at a
    /// multiple of 8 is torn.
    #[must_use]
    pub fn copy_out(&self, position: u64, count: u64) -> Vec<u8> {
        self.checked(position, count);
        // At most the length of the mapping, a `usize`.
        let mut bytes = Vec::with_capacity(usize::try_from(count).unwrap_or_default());
        self.append_to(&mut bytes, position, count);
        bytes
    }

    /// Appends what [`Mapping::copy_out`] copies to `bytes`.
    pub(super) fn append_to(&self, bytes: &mut Vec<u8>, position: u64, count: u64) {
        let from = self.checked(position, count);
        // At most the length, a `usize` (checked).
        #[allow(clippy::cast_possible_truncation)]
        let (head, count) = ((position.wrapping_neg() % 8).min(count) as usize, count as usize);
        let tail = head + (count - head) / 8 * 8;
        bytes.reserve(count);
        let to = bytes.spare_capacity_mut().as_mut_ptr().cast::<u8>();
        // SAFETY: all offsets are below `count`, which is in range (checked) and has room
        // (reserved), and at the end `count` bytes were written. The words are aligned, as `head`
        // leads to a multiple of 8 and mappings start at a page; so are halves of them before and
        // after. They are loaded as `byte` loads.
        unsafe {
            let copy_half = |at: usize| {
                let half = AtomicU32::from_ptr(from.add(at).cast()).load(Ordering::Relaxed);
                to.add(at).cast::<[u8; 4]>().write(half.to_le_bytes());
            };
            if head == 4 && position.is_multiple_of(4) {
                copy_half(0);
            } else {
                (0..head).for_each(|at| to.add(at).write(byte(from, at)));
            }
            let mut at = head;
            while at < tail {
                let word = AtomicU64::from_ptr(from.add(at).cast()).load(Ordering::Relaxed);
                to.add(at).cast::<[u8; 8]>().write(word.to_le_bytes());
                at += 8;
            }
            if count - at >= 4 {
                copy_half(at);
                at += 4;
            }
            (at..count).for_each(|at| to.add(at).write(byte(from, at)));
            bytes.set_len(bytes.len() + count);
        }
    }

    /// The bytes at a position, loaded as [`Mapping::copy_out`] does.
    #[must_use]
    pub(super) fn array<const N: usize>(&self, position: u64) -> [u8; N] {
        let from = self.checked(position, N as u64);
        std::array::from_fn(|offset| byte(from, offset))
    }

    /// Bytes in place, which must not be stored to while the slice lives: callers have the key that
    /// [`Cells::bytes`](super::Cells::bytes) requires.
    #[inline]
    #[must_use]
    pub(super) fn bytes(&self, position: u64, count: u64) -> &[u8] {
        let at = self.checked(position, count);
        // SAFETY: in range (checked), and `count` is at most the length, a `usize`. The word that
        // publishes the bytes was loaded with acquire order (`Published`), and by the protocols no
        // thread of this process stores to them from then on. That no other process does is not
        // guaranteed: one that breaks the protocols changes the bytes read here, not their range.
        #[allow(clippy::cast_possible_truncation)]
        unsafe {
            std::slice::from_raw_parts(at, count as usize)
        }
    }

    /// The address of a range in place, for readers that take no reference: other threads may
    /// change it.
    #[must_use]
    pub(super) fn address_of(&self, position: u64, count: u64) -> *const u8 {
        self.checked(position, count)
    }

    #[expect(clippy::inline_always, reason = "once a message or more: a call costs 1 %")]
    #[inline(always)]
    fn checked(&self, position: u64, count: u64) -> *mut u8 {
        let end = position.checked_add(count);
        assert!(end.is_some_and(|end| end <= self.len()), "position outside: {position:#x}");
        // SAFETY: the offset lies in the mapping, or just after it (asserted).
        #[allow(clippy::cast_possible_truncation)]
        unsafe {
            self.base.as_ptr().add(position as usize)
        }
    }
}

/// One byte of a range that the caller has checked.
#[inline]
fn byte(from: *mut u8, offset: usize) -> u8 {
    // SAFETY: callers pass the start of a range of a mapping that they have checked, and an offset
    // in it. Other threads of this process store to such bytes through atomics, or not at all.
    unsafe { AtomicU8::from_ptr(from.add(offset)) }.load(Ordering::Relaxed)
}

/// Whether the system supports populating pages. One that does not returns `EINVAL`, as it does for
/// an unaligned range. To distinguish the two, support is tested once, on a page for which there is
/// no other cause.
#[cfg(target_os = "linux")]
mod populate {
    use std::io;
    use std::sync::atomic::{AtomicU8, Ordering};

    use rustix::mm::Advice;

    use super::{Mapping, Pages, map_anonymous};

    const UNKNOWN: u8 = 0;
    const SUPPORTED: u8 = 1;
    const UNSUPPORTED: u8 = 2;
    static READ: AtomicU8 = AtomicU8::new(UNKNOWN);
    static WRITE: AtomicU8 = AtomicU8::new(UNKNOWN);

    /// The advice, if the system knows it.
    pub fn supported(advice: Advice) -> io::Result<Advice> {
        if is_supported(advice) { Ok(advice) } else { Err(io::ErrorKind::Unsupported.into()) }
    }

    fn is_supported(advice: Advice) -> bool {
        let known = if advice == Advice::LinuxPopulateWrite { &WRITE } else { &READ };
        if known.load(Ordering::Relaxed) == UNKNOWN {
            let found = if answers(advice) { SUPPORTED } else { UNSUPPORTED };
            known.store(found, Ordering::Relaxed);
        }
        known.load(Ordering::Relaxed) == SUPPORTED
    }

    fn answers(advice: Advice) -> bool {
        let len = Pages::here().bytes();
        let Ok(count) = usize::try_from(len) else { return false };
        let Ok(base) = map_anonymous(count) else { return true };
        let page = Mapping { base, len: count, writable: true };
        let invalid = rustix::io::Errno::INVAL.raw_os_error();
        !page.advise_pages(0, len, advice).is_err_and(|e| e.raw_os_error() == Some(invalid))
    }
}

/// Whether populating failed because the system does not support it.
#[must_use]
pub fn is_unsupported(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::Unsupported
}

fn map(file: &File, start: u64, len: u64, writable: bool) -> io::Result<Mapping> {
    let len = usize::try_from(len).map_err(|_| io::ErrorKind::OutOfMemory)?;
    let write = if writable { ProtFlags::WRITE } else { ProtFlags::empty() };
    let (access, anywhere) = (ProtFlags::READ | write, std::ptr::null_mut());
    // SAFETY: a new mapping at an address of the kernel's choice overlaps no existing one.
    let base = unsafe { rustix::mm::mmap(anywhere, len, access, MapFlags::SHARED, file, start) }?;
    Ok(Mapping { base: not_null(base)?, len, writable })
}

/// Private memory, zeroed.
#[cfg(target_os = "linux")]
fn map_anonymous(len: usize) -> io::Result<NonNull<u8>> {
    let (access, anywhere) = (ProtFlags::READ | ProtFlags::WRITE, std::ptr::null_mut());
    // SAFETY: as for `map`.
    let base = unsafe { rustix::mm::mmap_anonymous(anywhere, len, access, MapFlags::PRIVATE) }?;
    not_null(base)
}

fn not_null(base: *mut c_void) -> io::Result<NonNull<u8>> {
    NonNull::new(base.cast()).ok_or_else(|| io::ErrorKind::OutOfMemory.into())
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: this is a mapping that `map` or `map_anonymous` made, unmapped here alone, and
        // references into it do not outlive it.
        let unmapped = unsafe { rustix::mm::munmap(self.base.as_ptr().cast(), self.len) };
        debug_assert!(unmapped.is_ok(), "{unmapped:?}");
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

        let error = mapping.advise_pages(1, page, Advice::LinuxPopulateRead).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EINVAL));
        assert!(!is_unsupported(&error));
        assert!(is_unsupported(&io::ErrorKind::Unsupported.into()));
    }

    #[test]
    fn copies_are_whole_at_every_alignment() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(4096).unwrap();
        let mapping = Mapping::new(&file, 4096, true).unwrap();
        let content: Vec<u8> = (1..=64).collect();
        mapping.copy_in(0, &content);
        for start in 0..16 {
            for count in 0..40 {
                let copy = mapping.copy_out(start as u64, count as u64);
                assert_eq!(copy, content[start..start + count], "start={start} count={count}");
            }
        }
    }
}
