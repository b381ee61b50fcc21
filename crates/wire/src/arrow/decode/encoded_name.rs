//! Names as encoded in messages, for comparison without decoding.

use crate::reader::Reader;

/// The size of a word: names are compared word by word.
const WORD: usize = size_of::<u128>();

/// The token of a name.
#[derive(Debug)]
pub struct Head {
    bytes: Box<[u8]>,
    /// The token in one word, if it fits, and the mask of the bits in use.
    word: u128,
    mask: u128,
}

impl Head {
    pub fn new(bytes: &[u8]) -> Self {
        let (mut word, mut mask) = ([0; WORD], [0; WORD]);
        if let (Some(word), Some(mask)) = (word.get_mut(..bytes.len()), mask.get_mut(..bytes.len()))
        {
            word.copy_from_slice(bytes);
            mask.fill(0xFF);
        }
        let (word, mask) = (u128::from_le_bytes(word), u128::from_le_bytes(mask));
        Self { bytes: bytes.into(), word, mask }
    }

    pub fn is(&self, bytes: &[u8]) -> bool {
        *self.bytes == *bytes
    }

    /// Consumes the name if it is next.
    #[inline]
    pub fn take(&self, cursor: &mut Reader<'_>) -> bool {
        match cursor.rest().first_chunk() {
            Some(next) if self.mask != 0 => {
                u128::from_le_bytes(*next) & self.mask == self.word
                    && cursor.take(self.bytes.len()).is_some()
            }
            _ => cursor.take_if(&self.bytes),
        }
    }
}
