//! Data keys that were added to `keys.quire` after a process opened the queue.

use std::path::PathBuf;

use serde_json::Value;

use super::cipher::{DataKey, KEY_LEN, Key, QueueId, WRAPPED_LEN, unwrap};
use super::dictionary::read;
use crate::Result;
use crate::memory::secret::Secret;

/// The longest `keys.quire`, in bytes.
const LONGEST: usize = 1 << 20;

/// The file to which data keys are added, and the user's keys that may wrap them.
pub struct AddedKeys {
    file: PathBuf,
    keys: Vec<Secret<[u8; KEY_LEN]>>,
}

impl AddedKeys {
    /// The keys that will be added to a file.
    pub fn new(file: PathBuf, keys: &[Key]) -> Result<Self> {
        let kept = |key: &Key| {
            let mut kept = Secret::new([0; KEY_LEN])?;
            kept.copy_from_slice(key.as_slice());
            Ok(kept)
        };
        Ok(Self { file, keys: keys.iter().map(kept).collect::<Result<_>>()? })
    }

    /// The data key with this number, if the file has it by now and one of the user's keys unwraps
    /// it.
    ///
    /// The file needs no further check: a wrapped key that is not authentic does not unwrap.
    #[must_use]
    pub fn find(&self, queue: &QueueId, number: u32) -> Option<DataKey> {
        let content = read(&self.file, LONGEST).ok()??;
        let found: Value = serde_json::from_slice(&content).ok()?;
        let rows = found.get("keys")?.as_array()?;
        let row = rows.iter().find(|it| it["number"].as_u64() == Some(number.into()))?;
        let wrapped = from_hexadecimal(row["wrapped"].as_str()?)?;
        self.keys.iter().find_map(|key| unwrap(key, queue, number, &wrapped).ok()?)
    }
}

fn from_hexadecimal(text: &str) -> Option<Vec<u8>> {
    let is_right = text.len() == 2 * WRAPPED_LEN && text.bytes().all(|it| it.is_ascii_hexdigit());
    let bytes = (0..text.len()).step_by(2);
    is_right
        .then(|| bytes.map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap_or(0)).collect())
}
