//! A message as a tailer returns it.

use std::sync::Arc;

use crate::memory::Published;
use crate::memory::window::Region;
use crate::quick_queue::format::producer::Producer;

/// A message, in place if it lies in one page.
pub struct Message<'a> {
    /// Its index.
    pub index: u64,
    /// The producer, in a queue of named producers.
    pub producer: Option<Producer>,
    /// Its bytes.
    pub bytes: Bytes<'a>,
}

/// The bytes of a message.
pub enum Bytes<'a> {
    /// In one page.
    InPlace {
        /// The page.
        region: &'a Arc<Region>,
        /// Where the message is in it.
        at: Published,
    },
    /// Copied from several pages.
    Copied(&'a [u8]),
}

/// Bytes of a message in its page, which stays mapped as long as this is kept.
#[derive(Clone)]
pub struct MappedBytes {
    region: Arc<Region>,
    at: Published,
}

impl MappedBytes {
    /// The bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.region.bytes(self.at)
    }
}

impl Bytes<'_> {
    /// The bytes.
    #[inline]
    #[must_use]
    pub fn as_slice(&self) -> &[u8] {
        match self {
            Self::InPlace { region, at } => region.bytes(*at),
            Self::Copied(bytes) => bytes,
        }
    }

    /// Keeps them in their page; None if they lie in several.
    #[must_use]
    pub fn mapped(&self) -> Option<MappedBytes> {
        let Self::InPlace { region, at } = self else { return None };
        Some(MappedBytes { region: Arc::clone(region), at: *at })
    }
}
