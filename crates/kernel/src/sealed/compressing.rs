//! Compression and decompression of a queue's messages.

use std::path::Path;

use super::bases::Bases;
use super::cipher::Encryption;
use super::dictionary::Dictionaries;
use super::packed;
use super::packing::{Compression, Method, ZSTD_LEVEL};
use crate::Result;

/// How the messages of an open queue are compressed, and the dictionaries they refer to.
#[derive(Debug)]
pub struct Compressing {
    compression: Option<Compression>,
    /// Whether messages are compressed only once their index is known.
    is_late: bool,
    dictionaries: Dictionaries,
    bases: Bases,
}

impl Compressing {
    /// The compression of the queue in a directory: with zstd, its dictionary is used if it has
    /// one.
    pub fn open(dir: &Path, method: Option<Method>, encryption: &Encryption) -> Result<Self> {
        let dictionaries = Dictionaries::new(dir, ZSTD_LEVEL, encryption.clone());
        let compression = match method {
            None => None,
            Some(Method::Zstd) => {
                Some(Compression { method: Method::Zstd, dictionary: dictionaries.current()? })
            }
            Some(method) => Some(Compression { method, dictionary: None }),
        };
        Ok(Self { compression, is_late: false, dictionaries, bases: Bases::default() })
    }

    /// Defers compression until a message's index is known.
    #[must_use]
    pub fn late(self) -> Self {
        Self { is_late: true, ..self }
    }

    /// How messages are compressed before they are appended; None if they are not.
    #[inline]
    #[must_use]
    pub const fn ahead(&self) -> Option<&Compression> {
        if self.is_late { None } else { self.compression.as_ref() }
    }

    /// How messages are compressed; None if they are not.
    #[must_use]
    pub const fn compression(&self) -> Option<&Compression> {
        self.compression.as_ref()
    }

    /// The most recently read bases of differences.
    #[must_use]
    pub const fn bases(&self) -> &Bases {
        &self.bases
    }

    /// The content of a stored message; None if it is not compressed.
    pub fn unpacked(&self, stored: &[u8], index: i64) -> Result<Option<Vec<u8>>> {
        packed::unpack(stored, index, &self.dictionaries)
    }
}
