use std::ops::Range;
use std::sync::Arc;

use super::format::entry::Location;
use crate::Result;
use crate::memory::window::Region;

/// A message in place in its data file. Other consumers may change claim words and locks in it, so
/// its bytes are copied.
#[derive(Clone)]
pub struct Message {
    /// Its index.
    pub index: i64,
    pub(super) cycle: i32,
    pub(super) at: Location,
    pub(super) region: Arc<Region>,
    pub(super) length: u64,
}

impl Message {
    /// The number of bytes.
    #[must_use]
    pub const fn length(&self) -> u64 {
        self.length
    }

    /// A copy of the bytes as they are now.
    pub fn copied(&self) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.append_to(&mut bytes, 0..self.length)?;
        Ok(bytes)
    }

    /// Appends the bytes of a range within the message, as they are now.
    ///
    /// # Panics
    /// If the range ends after the message.
    #[inline]
    pub fn append_to(&self, bytes: &mut Vec<u8>, range: Range<u64>) -> Result<()> {
        assert!(range.start <= range.end && range.end <= self.length, "outside: {range:?}");
        let (position, count) = (self.at.position + range.start, range.end - range.start);
        self.region.append_to_relaxed(bytes, position, count)
    }

    /// The address of the bytes in place, for Python, which reads without a reference.
    #[must_use]
    pub fn address(&self) -> *const u8 {
        self.region.address_of(self.at.position, self.length)
    }

    /// A word as it is now, load-acquire if it lies at a multiple of 4 in its file; None if out of
    /// bounds.
    #[must_use]
    pub fn load32(&self, offset: u64) -> Option<u32> {
        offset.checked_add(4).filter(|end| *end <= self.length)?;
        let at = self.at.position + offset;
        Some(if at.is_multiple_of(4) {
            self.region.load_header_acquire(at)
        } else {
            self.region.observe_header_unaligned(at).0
        })
    }
}
