//! Buffers that grow with a message, and return an error when out of memory. A `Vec` would abort
//! the process.

use crate::error::{Result, WireError};

/// Checks that there is enough memory before running code that would abort the process otherwise.
pub fn room(needed: usize) -> Result<()> {
    let reserved = Vec::<u8>::new().try_reserve_exact(needed);
    reserved.map_err(|_| WireError::no_memory(needed))
}

/// Room for the header of a file.
const SMALL: usize = 4 << 10;

/// By how many bytes a buffer grows if it cannot double.
const STEP: usize = 64 << 10;

/// Bytes that are written sequentially. When out of memory, the rest is dropped and [`Out::check`]
/// returns an error, so that writing a value needs no check of its own.
#[derive(Clone, Debug, Default)]
pub struct Out {
    bytes: Vec<u8>,
    /// How many bytes could not be allocated; 0 if none failed.
    lacking: usize,
}

impl Out {
    /// No bytes yet.
    #[must_use]
    pub const fn new() -> Self {
        Self { bytes: Vec::new(), lacking: 0 }
    }

    /// No bytes yet, with room for a few.
    #[must_use]
    pub fn with_capacity(few: usize) -> Self {
        Self { bytes: Vec::with_capacity(few), lacking: 0 }
    }

    /// For a header: being out of memory for that aborts the process, as for any small allocation.
    #[must_use]
    pub fn small() -> Self {
        Self::with_capacity(SMALL)
    }

    /// The bytes written to an [`Out::small`].
    ///
    /// # Panics
    /// If there was no memory for it.
    #[must_use]
    pub fn into_small(self) -> Vec<u8> {
        assert_eq!(self.lacking, 0, "no memory for a header");
        self.bytes
    }

    /// The number of bytes.
    #[inline]
    #[must_use]
    pub const fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether it is empty.
    #[inline]
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The number of bytes that fit without growing.
    #[inline]
    #[must_use]
    pub const fn capacity(&self) -> usize {
        self.bytes.capacity()
    }

    /// Appends a byte.
    #[inline]
    pub fn push(&mut self, byte: u8) {
        if self.has_room(1) {
            self.bytes.push(byte);
        } else {
            self.extend_slowly(&[byte]);
        }
    }

    /// Appends bytes.
    #[inline]
    pub fn extend_from_slice(&mut self, bytes: &[u8]) {
        if self.has_room(bytes.len()) {
            self.bytes.extend_from_slice(bytes);
        } else {
            self.extend_slowly(bytes);
        }
    }

    #[cold]
    fn extend_slowly(&mut self, bytes: &[u8]) {
        if self.grow(bytes.len()) {
            self.bytes.extend_from_slice(bytes);
        }
    }

    #[inline]
    const fn has_room(&self, more: usize) -> bool {
        self.lacking == 0 && more <= self.bytes.capacity() - self.bytes.len()
    }

    /// Appends the same byte `count` times.
    #[inline]
    pub fn fill(&mut self, count: usize, byte: u8) {
        if self.reserve(count) {
            self.bytes.resize(self.bytes.len() + count, byte);
        }
    }

    /// Replaces the bytes before `end`.
    #[inline]
    pub fn replace_before<const N: usize>(&mut self, end: usize, bytes: [u8; N]) {
        if let Some(place) = self.bytes.get_mut(..end).and_then(|before| before.last_chunk_mut()) {
            *place = bytes;
        }
    }

    /// Truncates to this many bytes.
    #[inline]
    pub fn truncate(&mut self, length: usize) {
        self.bytes.truncate(length);
    }

    /// Removes all bytes.
    #[inline]
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.lacking = 0;
    }

    /// Makes room for `more` bytes; false when out of memory.
    #[inline]
    pub fn reserve(&mut self, more: usize) -> bool {
        self.has_room(more) || self.grow(more)
    }

    #[cold]
    fn grow(&mut self, more: usize) -> bool {
        if self.lacking > 0 {
            return false;
        }
        // Doubles the capacity or, if that fails, adds little more than is needed.
        if self.bytes.try_reserve(more).is_err()
            && self.bytes.try_reserve_exact(more.max(STEP)).is_err()
        {
            self.lacking = self.bytes.len().saturating_add(more);
            return false;
        }
        true
    }

    /// Whether everything was written. After an error, more can be written again.
    #[inline]
    pub fn check(&mut self) -> Result<()> {
        if self.lacking == 0 { Ok(()) } else { Err(self.failure()) }
    }

    #[cold]
    fn failure(&mut self) -> WireError {
        WireError::no_memory(std::mem::take(&mut self.lacking))
    }

    /// The bytes written; an error if some were dropped.
    #[inline]
    pub fn written(&self) -> Result<&[u8]> {
        if self.lacking == 0 { Ok(&self.bytes) } else { Err(WireError::no_memory(self.lacking)) }
    }

    /// The bytes written; an error if some were dropped.
    #[inline]
    pub fn finish(mut self) -> Result<Vec<u8>> {
        self.check()?;
        Ok(self.bytes)
    }
}

impl From<Vec<u8>> for Out {
    fn from(bytes: Vec<u8>) -> Self {
        Self { bytes, lacking: 0 }
    }
}

#[cfg(test)]
impl std::ops::Deref for Out {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        assert_eq!(self.lacking, 0);
        &self.bytes
    }
}

#[cfg(test)]
impl<T: AsRef<[u8]>> PartialEq<T> for Out {
    fn eq(&self, other: &T) -> bool {
        **self == *other.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_there_is_no_memory_for_is_said_once_and_later_writes_go_on() {
        let mut out = Out::new();
        out.push(1);
        assert!(!out.reserve(usize::MAX / 2));
        out.extend_from_slice(&[2, 3]); // dropped too, so that there is no hole
        assert_eq!(out.len(), 1);
        assert!(out.written().is_err());
        let fault = out.check().unwrap_err();
        assert_eq!(fault.lacking(), Some(usize::MAX / 2 + 1));
        out.push(4);
        assert_eq!(out.written().unwrap(), [1, 4]);
    }
}
