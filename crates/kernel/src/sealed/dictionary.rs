//! Dictionaries of zstd, trained on messages of a queue, which lie beside them (`docs/format.md`
//! §1.13).
//!
//! A dictionary is named by a hash of its content, so that one number never means different
//! dictionaries in two queues, and damage is noticed. `dictionary.quire` names the one to compress
//! with.

use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use zstd::zstd_safe::{CDict, DDict};

use super::cipher::{Cipher, Encryption, Place, Sealing};
use crate::chronicle::protocol::publish::Payload;
use crate::os::files::{self, Access};
use crate::{Error, Result};

/// The longest dictionary, in bytes.
pub const LONGEST: usize = 1 << 20;
/// The longest file of a dictionary, which may be encrypted.
const LONGEST_STORED: usize = LONGEST + 1024;
/// The file that names the dictionary to compress with.
pub const CURRENT: &str = "dictionary.quire";
/// The longest content of [`CURRENT`].
const LONGEST_NAME: usize = 64;
/// The suffix, after its number, of a dictionary's file name.
pub const SUFFIX: &str = ".dictionary.quire";
/// Numbers have four groups of seven bits.
const NUMBER_MASK: u32 = 0x0fff_ffff;
/// At most this many dictionaries are kept, as messages may refer to any.
const KEPT: usize = 8;

/// A dictionary, by which messages are compressed and decompressed.
pub struct Dictionary {
    number: u32,
    encoder: CDict<'static>,
    decoder: DDict<'static>,
}

impl fmt::Debug for Dictionary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dictionary").field("number", &self.number).finish_non_exhaustive()
    }
}

impl Dictionary {
    /// None if zstd refuses the content.
    fn new(content: &[u8], level: i32) -> Option<Self> {
        let (encoder, decoder) = (CDict::try_create(content, level)?, DDict::try_create(content)?);
        Some(Self { number: number_of(content), encoder, decoder })
    }

    /// The number by which messages refer to it.
    #[must_use]
    pub const fn number(&self) -> u32 {
        self.number
    }

    #[must_use]
    pub const fn encoder(&self) -> &CDict<'static> {
        &self.encoder
    }

    #[must_use]
    pub const fn decoder(&self) -> &DDict<'static> {
        &self.decoder
    }
}

/// The number of a dictionary with this content: never 0, which means none.
#[must_use]
pub fn number_of(content: &[u8]) -> u32 {
    let hash = blake3::hash(content);
    let (first, _) = hash.as_bytes().split_at(4);
    let number = first.iter().fold(0, |sum, byte| sum << 8 | u32::from(*byte)) & NUMBER_MASK;
    number.max(1)
}

/// The name of a dictionary's file.
#[must_use]
pub fn file_name(number: u32) -> String {
    format!("{number:07x}{SUFFIX}")
}

/// The dictionaries in a queue's directory, read when a message refers to them.
pub struct Dictionaries {
    folder: PathBuf,
    level: i32,
    encryption: Encryption,
    known: Mutex<Vec<Arc<Dictionary>>>,
}

impl fmt::Debug for Dictionaries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dictionaries").field("folder", &self.folder).finish_non_exhaustive()
    }
}

impl Dictionaries {
    /// The dictionaries in a directory, for compression at a level of zstd; encrypted like its
    /// messages.
    #[must_use]
    pub fn new(folder: &Path, level: i32, encryption: Encryption) -> Self {
        Self { folder: folder.to_path_buf(), level, encryption, known: Mutex::default() }
    }

    /// The dictionary with this number.
    pub fn get(&self, number: u32) -> Result<Arc<Dictionary>> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = known.iter().find(|it| it.number == number) {
            return Ok(Arc::clone(found));
        }
        let path = self.folder.join(file_name(number));
        let made = read(&path, LONGEST_STORED)?
            .map(|stored| self.opened(number, stored))
            .transpose()?
            .flatten()
            .filter(|content| number_of(content) == number)
            .and_then(|content| Dictionary::new(&content, self.level))
            .ok_or(Error::DictionaryMissing { path })?;
        let made = Arc::new(made);
        if known.len() >= KEPT {
            known.remove(0);
        }
        known.push(Arc::clone(&made));
        Ok(made)
    }

    /// The content of a dictionary's file; None if it cannot be authenticated. An unencrypted
    /// dictionary is not used for an encrypted queue, as it could change the content of messages.
    fn opened(&self, number: u32, stored: Vec<u8>) -> Result<Option<Vec<u8>>> {
        let Some(cipher) = self.encryption.cipher() else { return Ok(Some(stored)) };
        match cipher.open(Place::of_dictionary(number), &stored) {
            Ok(opened) => Ok(opened),
            Err(Error::NotAuthentic { .. } | Error::Plain { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The dictionary to compress with, if the queue has one, and messages can be appended.
    pub fn current(&self) -> Result<Option<Arc<Dictionary>>> {
        if matches!(self.encryption, Encryption::WithoutKey) {
            return Ok(None);
        }
        let path = self.folder.join(CURRENT);
        let Some(content) = read(&path, LONGEST_NAME)? else { return Ok(None) };
        let number = std::str::from_utf8(&content)
            .ok()
            .and_then(|text| u32::from_str_radix(text.trim(), 16).ok())
            .ok_or(Error::DictionaryMissing { path })?;
        self.get(number).map(Some)
    }
}

/// The content of a file; None if it is missing. An error if it is not a regular file, or too long.
pub(super) fn read(path: &Path, longest: usize) -> Result<Option<Vec<u8>>> {
    let file = match files::open(path, Access { write: false, create_mode: None }) {
        Ok(Some(file)) => file,
        Ok(None) => return Ok(None),
        Err(Error::NotAQueue { path, .. }) => return Err(Error::DictionaryMissing { path }),
        Err(error) => return Err(error),
    };
    let mut content = Vec::new();
    file.take(longest as u64 + 1)
        .read_to_end(&mut content)
        .map_err(|error| Error::io("cannot read", path, error))?;
    if content.len() > longest {
        return Err(Error::DictionaryMissing { path: path.to_path_buf() });
    }
    Ok(Some(content))
}

/// A dictionary as an encrypted queue stores it.
pub fn encrypted(cipher: &Cipher, number: u32, content: &[u8]) -> Result<Vec<u8>> {
    let (place, mut sealing) = (Place::of_dictionary(number), Sealing::default());
    let sealed = cipher.seal(place, Payload::new(content), &mut sealing)?;
    Ok(sealed.to_vec())
}

/// Trains a dictionary on samples; an error if there are too few of them.
pub fn train(samples: &[impl AsRef<[u8]>], longest: usize) -> Result<Vec<u8>> {
    let mut made = zstd::dict::from_samples(samples, longest.min(LONGEST)).map_err(|error| {
        let (count, reason) = (samples.len(), error);
        Error::Invalid(format!(
            "no dictionary can be trained on the messages: samples={count} reason={reason} (more \
             messages, or more similar ones, are needed)"
        ))
    })?;
    // Frames do not store this id: messages refer to the dictionary by the hash of its content.
    if let Some(id) = made.get_mut(4..8) {
        id.fill(0);
    }
    Ok(made)
}
