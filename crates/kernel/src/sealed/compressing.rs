//! Compression and decompression of a queue's messages.

use std::path::Path;

use super::bases::Bases;
use super::cipher::Encryption;
use super::dictionary::Dictionaries;
use super::packed;
use super::packing::{Compression, Method, ZSTD_LEVEL};
use crate::Result;

/// How the messages of an open queue are compressed, and the dictionaries that they name.
#[derive(Debug)]
pub struct Compressing {
    compression: Option<Compression>,
    /// Messages are compressed once their index is known.
    is_late: bool,
    dictionaries: Dictionaries,
    bases: Bases,
}

impl Compressing {
    /// That of a queue in a directory: with zstd, the queue's dictionary is used if it has one.
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

    /// Has messages compressed by those who know their index.
    #[must_use]
    pub fn late(self) -> Self {
        Self { is_late: true, ..self }
    }

    /// How messages are compressed before they are appended; None where they are not.
    #[inline]
    #[must_use]
    pub const fn ahead(&self) -> Option<&Compression> {
        if self.is_late { None } else { self.compression.as_ref() }
    }

    /// How messages are compressed; None where they are not.
    #[must_use]
    pub const fn compression(&self) -> Option<&Compression> {
        self.compression.as_ref()
    }

    /// The bases of differences that were read last.
    #[must_use]
    pub const fn bases(&self) -> &Bases {
        &self.bases
    }

    /// What a message holds that is stored so; None if it is not compressed.
    pub fn unpacked(&self, stored: &[u8], index: i64) -> Result<Option<Vec<u8>>> {
        packed::unpack(stored, index, &self.dictionaries)
    }
}
