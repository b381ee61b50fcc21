//! How the messages of a queue are compressed.

use super::Queue;
use crate::sealed::compressing::Compressing;

impl Queue {
    /// What compresses and decompresses its messages.
    #[inline]
    #[must_use]
    pub const fn compressing(&self) -> &Compressing {
        &self.opened.compressing
    }
}
