//! Memory for keys: outside core dumps and, if the system's limit allows it, outside swap.

use std::ffi::c_void;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::slice;

#[cfg(all(target_os = "linux", not(miri)))]
use rustix::mm::{Advice, madvise, mlock};
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use zeroize::Zeroize;

use super::pages::Pages;
use crate::{Error, Result};

/// More stack than the functions that compute with keys use.
const STACK: usize = 16 << 10;

/// A value in its own pages, which are excluded from core dumps and overwritten on drop.
///
/// A child of `fork` inherits it.
pub struct Secret<T> {
    base: NonNull<u8>,
    len: usize,
    value: PhantomData<T>,
}

// SAFETY: the pages belong to the value alone, and are accessed through references to it.
unsafe impl<T: Send> Send for Secret<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for Secret<T> {}

impl<T> Secret<T> {
    /// Moves a value into such pages. The move leaves a copy on the stack, which [`wipe_stack`]
    /// removes; prefer to move zeros and fill them in place.
    pub fn new(value: T) -> Result<Self> {
        const { assert!(align_of::<T>() <= 4096) };
        let len = Pages::here().up(size_of::<T>().max(1) as u64);
        let len = usize::try_from(len).map_err(|_| Error::OutOfMemory(size_of::<T>()))?;
        let (access, anywhere) = (ProtFlags::READ | ProtFlags::WRITE, std::ptr::null_mut());
        // SAFETY: the system chooses where, so nothing else is mapped over.
        let base = unsafe { mmap_anonymous(anywhere, len, access, MapFlags::PRIVATE) };
        let base = base.ok().and_then(|base| NonNull::new(base.cast::<u8>()));
        let base = base.ok_or(Error::OutOfMemory(len))?;
        keep_private(base, len);
        // SAFETY: the pages are writable, long enough and aligned, and hold no value yet.
        unsafe { base.cast::<T>().write(value) };
        Ok(Self { base, len, value: PhantomData })
    }
}

/// Excludes pages from core dumps and swap, as far as the system allows.
#[cfg(all(target_os = "linux", not(miri)))]
fn keep_private(base: NonNull<u8>, len: usize) {
    let base = base.as_ptr().cast::<c_void>();
    // SAFETY: neither call changes the content of the pages, which belong to this module alone.
    unsafe {
        let _ = madvise(base, len, Advice::LinuxDontDump);
        let _ = mlock(base, len); // beyond RLIMIT_MEMLOCK it may be swapped
    }
}

/// Not available on this system.
#[cfg(not(all(target_os = "linux", not(miri))))]
const fn keep_private(_base: NonNull<u8>, _len: usize) {}

impl<T> Deref for Secret<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: `new` put a value there, which lives as long as this does.
        unsafe { self.base.cast::<T>().as_ref() }
    }
}

impl<T> DerefMut for Secret<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above, and `&mut self` makes the access exclusive.
        unsafe { self.base.cast::<T>().as_mut() }
    }
}

impl<T> Drop for Secret<T> {
    fn drop(&mut self) {
        // SAFETY: the value is dropped only here. After that its pages are plain bytes that belong
        // to this module alone, and no reference to the value outlives it.
        unsafe {
            self.base.cast::<T>().drop_in_place();
            slice::from_raw_parts_mut(self.base.as_ptr(), self.len).zeroize();
            let _ = munmap(self.base.as_ptr().cast::<c_void>(), self.len);
        }
    }
}

/// Overwrites what returned functions have left on this thread's stack.
#[inline(never)]
pub fn wipe_stack() {
    let mut below = [0_u8; STACK];
    below.zeroize();
    std::hint::black_box(&below);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_holds_its_value_until_it_is_dropped() {
        let mut made = Secret::new([0_u8; 32]).unwrap();
        made.copy_from_slice(&[7; 32]);
        assert_eq!(*made, [7; 32]);
        let counted = std::sync::Arc::new(());
        drop(Secret::new(std::sync::Arc::clone(&counted)).unwrap());
        assert_eq!(std::sync::Arc::strong_count(&counted), 1);
    }

    #[cfg(all(target_os = "linux", not(miri)))]
    #[test]
    fn its_pages_are_left_out_of_core_dumps() {
        let made = Secret::new([7_u8; 32]).unwrap();
        let start = format!("{:x}-", made.base.as_ptr() as usize);
        let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let flags = maps.lines().skip_while(|line| !line.starts_with(&start));
        let flags = flags.into_iter().find_map(|line| line.strip_prefix("VmFlags:")).unwrap();
        assert!(flags.split_whitespace().any(|flag| flag == "dd"), "{flags}");
    }
}
