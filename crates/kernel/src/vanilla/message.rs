use std::sync::Arc;

use super::format::entry::Location;
use crate::memory::window::Region;

/// A message where it lies in its data file.
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
    /// The bytes. Other consumers may change claim words and locks within them.
    #[must_use]
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        self.region.bytes(self.at.position, self.length)
    }
}
