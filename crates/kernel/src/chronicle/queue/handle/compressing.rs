//! How the messages of a queue are stored.

use super::Queue;
use crate::chronicle::queue::bases::Bases;
use crate::sealed::compressing::Compressing;
use crate::sealed::layers::Layers;

impl Queue {
    /// What compresses and decompresses its messages.
    #[inline]
    #[must_use]
    pub const fn compressing(&self) -> &Compressing {
        &self.opened.compressing
    }

    /// The bases that were read last.
    pub const fn bases(&self) -> &Bases {
        &self.bases
    }

    /// What becomes of its messages once their index is known; None where they are stored as given.
    #[inline]
    #[must_use]
    pub const fn layers(&self) -> Option<&Layers> {
        self.opened.layers.as_ref()
    }
}
