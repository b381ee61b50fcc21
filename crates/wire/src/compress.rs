//! Compressed blobs; the type prefix names the algorithm (`docs/format.md` §8.6).

use std::cell::Cell;
use std::io::Read;

use flate2::read::{GzDecoder, GzEncoder, ZlibDecoder, ZlibEncoder};

use crate::error::{Result, WireError};
use crate::out::{Out, room};

/// Limit on the decompressed size of all blobs of one message together: a message of one megabyte
/// can contain thousands of decompression bombs.
pub const UNPACKED_MAX: usize = 256 << 20;

/// Bytes that are decompressed at a time.
const PIECE: usize = 16 << 10;
/// The greatest expansion of a byte of Snappy: a copy of 64 bytes takes three.
const SNAPPY_MOST: usize = 22;

thread_local! {
    /// Decompressed bytes so far in the message that this thread is decoding.
    static UNPACKED: Cell<usize> = const { Cell::new(0) };
}

/// Call this before decoding the first value of a message.
#[inline]
pub fn begin_message() {
    UNPACKED.set(0);
}

/// A compression algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    Gzip,
    /// zlib, which Java's library calls `lzw`.
    Lzw,
    /// Snappy, raw format.
    Snappy,
}

impl Method {
    /// The algorithm with this type name.
    #[must_use]
    pub fn named(name: &[u8]) -> Option<Self> {
        match name {
            b"gzip" | b"!gzip" => Some(Self::Gzip),
            b"lzw" | b"!lzw" => Some(Self::Lzw),
            b"snappy" | b"!snappy" => Some(Self::Snappy),
            _ => None,
        }
    }

    /// The type prefix of the blob.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Lzw => "lzw",
            Self::Snappy => "snappy",
        }
    }

    /// Decompresses a blob of the current message, up to `limit` bytes and, together with its other
    /// blobs, up to [`UNPACKED_MAX`].
    pub fn unpack(self, packed: &[u8], limit: usize) -> Result<Vec<u8>> {
        let before = UNPACKED.get();
        let unpacked = self.unpack_alone(packed, limit.min(UNPACKED_MAX - before))?;
        UNPACKED.set(before + unpacked.len());
        Ok(unpacked)
    }

    /// Decompresses a blob, up to `limit` bytes.
    pub fn unpack_alone(self, packed: &[u8], limit: usize) -> Result<Vec<u8>> {
        match self {
            Self::Gzip => self.read(GzDecoder::new(packed), limit),
            Self::Lzw => self.read(ZlibDecoder::new(packed), limit),
            Self::Snappy => {
                let length = snap::raw::decompress_len(packed).map_err(|error| self.bad(error))?;
                if length > limit {
                    return Err(self.too_large(limit));
                }
                if length > packed.len().saturating_mul(SNAPPY_MOST) {
                    return Err(self.bad(format_args!("no {length} bytes are in so few")));
                }
                room(length)?;
                snap::raw::Decoder::new().decompress_vec(packed).map_err(|error| self.bad(error))
            }
        }
    }

    /// Compresses a blob.
    pub fn pack(self, bytes: &[u8]) -> Result<Vec<u8>> {
        let level = flate2::Compression::default();
        match self {
            Self::Gzip => self.read(GzEncoder::new(bytes, level), usize::MAX),
            Self::Lzw => self.read(ZlibEncoder::new(bytes, level), usize::MAX),
            Self::Snappy => {
                room(snap::raw::max_compress_len(bytes.len()))?;
                snap::raw::Encoder::new().compress_vec(bytes).map_err(|error| self.bad(error))
            }
        }
    }

    fn read(self, from: impl Read, limit: usize) -> Result<Vec<u8>> {
        let (mut found, mut piece) = (Out::new(), [0; PIECE]);
        let mut from = from.take((limit as u64).saturating_add(1));
        loop {
            match from.read(&mut piece).map_err(|error| self.bad(error))? {
                0 => break,
                length => found.extend_from_slice(&piece[..length]),
            }
            found.check()?;
        }
        if found.len() > limit { Err(self.too_large(limit)) } else { found.finish() }
    }

    fn bad(self, error: impl std::fmt::Display) -> WireError {
        WireError::new("a compressed blob does not unpack")
            .with("method", self.name())
            .with("error", error)
    }

    fn too_large(self, limit: usize) -> WireError {
        WireError::new("a compressed blob unpacks to more than is allowed")
            .with("method", self.name())
            .with("limit", limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bomb_meets_the_limit() {
        for method in [Method::Gzip, Method::Lzw, Method::Snappy] {
            let packed = method.pack(&vec![0; 1 << 20]).unwrap();
            begin_message();
            assert_eq!(method.unpack(&packed, 1 << 20).unwrap().len(), 1 << 20);
            let fault = method.unpack(&packed, (1 << 20) - 1).unwrap_err().to_string();
            assert!(fault.contains("unpacks to more"), "{fault}");
            assert!(method.unpack(&packed[..packed.len() / 2], 1 << 20).is_err());
        }
    }

    #[test]
    fn the_limit_is_that_of_all_blobs_of_a_message() {
        let packed = Method::Gzip.pack(&vec![0; 64 << 20]).unwrap();
        for _ in 0..2 {
            begin_message();
            for _ in 0..4 {
                assert_eq!(Method::Gzip.unpack(&packed, UNPACKED_MAX).unwrap().len(), 64 << 20);
            }
            let fault = Method::Gzip.unpack(&packed, UNPACKED_MAX).unwrap_err().to_string();
            assert!(fault.contains("unpacks to more"), "{fault}");
        }
    }
}
