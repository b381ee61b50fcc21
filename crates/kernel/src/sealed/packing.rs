//! Compression of messages before they are appended (`docs/format.md` §1.13).
//!
//! A message is compressed if that makes it shorter. An uncompressed message that looks compressed
//! is wrapped, so its content never depends on how the queue was opened.

use std::cell::Cell;
use std::sync::Arc;

use flate2::{Compress, FlushCompress, Status};
use quire_wire::out::Out;
use quire_wire::writer;
use zstd::zstd_safe::{CCtx, CParameter};

use super::dictionary::Dictionary;
use super::numbers::Number;
use super::packed::{
    self, BLOB, GZIP_START, GZIP_TYPE, LONGEST, LZ4, LZW_START, LZW_TYPE, OWN_TYPE, SNAPPY, STORED,
    ZSTD, ZSTD_MAGIC,
};
use crate::chronicle::protocol::publish::Payload;
use crate::{Error, Result};

/// zstd's own default.
pub const ZSTD_LEVEL: i32 = 3;
/// Compressing shorter messages never saves anything.
const SHORTEST: u64 = 16;
/// The most bytes of buffers that a thread keeps.
const KEPT: usize = 1 << 20;
/// The length of zlib's header, which is part of the message's mark.
const ZLIB_HEADER: usize = 2;

/// How messages are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    Gzip,
    Lzw,
    Snappy,
    Lz4,
    Zstd,
}

impl Method {
    /// The method with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "gzip" => Self::Gzip,
            "lzw" => Self::Lzw,
            "snappy" => Self::Snappy,
            "lz4" => Self::Lz4,
            "zstd" => Self::Zstd,
            _ => return None,
        })
    }
}

/// How an appender compresses messages.
#[derive(Clone, Debug)]
pub struct Compression {
    pub method: Method,
    pub dictionary: Option<Arc<Dictionary>>,
}

/// Calls `then` with the payload in its stored form.
#[inline]
pub fn packed<T>(
    compression: Option<&Compression>,
    payload: Payload<'_>,
    then: impl FnOnce(Payload<'_>) -> Result<T>,
) -> Result<T> {
    let mut held = Held(None);
    let start = if payload.head.is_empty() { payload.body } else { payload.head };
    let packed = if compression.is_some() || packed::may_be_packed(start) {
        pack(compression, payload, &mut held)?
    } else {
        None
    };
    // Only one call site, as much is inlined there. Most payloads have no head, and packed ones
    // never do.
    then(packed.map_or(payload, Payload::new))
}

/// The payload in its stored form, if that differs; `held` keeps its buffer.
#[cold]
#[inline(never)]
fn pack<'h>(
    compression: Option<&Compression>,
    payload: Payload<'_>,
    held: &'h mut Held,
) -> Result<Option<&'h [u8]>> {
    // Taken out of the thread's slot: code that runs during a wait of the append may append, too.
    let packing = held.0.insert(PACKING.take().unwrap_or_default());
    let is_packed = packing.pack(compression, payload)?;
    if is_packed { packing.out.written().map(Some).map_err(Error::Wire) } else { Ok(None) }
}

/// A thread's compression state while its buffer is in use; returned to the thread on drop.
struct Held(Option<Box<Packing>>);

impl Drop for Held {
    #[inline]
    fn drop(&mut self) {
        if let Some(packing) = self.0.take() {
            give_back(packing);
        }
    }
}

#[cold]
#[inline(never)]
fn give_back(mut packing: Box<Packing>) {
    packing.shrink();
    PACKING.set(Some(packing));
}

thread_local! {
    static PACKING: Cell<Option<Box<Packing>>> = const { Cell::new(None) };
}

/// A thread's compression state.
#[derive(Default)]
struct Packing {
    /// The joined parts of a payload.
    joined: Vec<u8>,
    stream: Vec<u8>,
    out: Out,
    deflate: Option<Compress>,
    zlib: Option<Compress>,
    snappy: Option<snap::raw::Encoder>,
    zstd: Option<CCtx<'static>>,
}

impl Packing {
    /// Compresses a payload into `out`; false if it is stored as given.
    fn pack(&mut self, compression: Option<&Compression>, payload: Payload<'_>) -> Result<bool> {
        let length = usize::try_from(payload.len()).unwrap_or(usize::MAX);
        if length > LONGEST {
            return Ok(false);
        }
        let mut joined = std::mem::take(&mut self.joined);
        let plain = if payload.head.is_empty() && payload.zeros == 0 {
            payload.body
        } else {
            joined.clear();
            joined.try_reserve(length).map_err(|_| Error::OutOfMemory(length))?;
            joined.extend_from_slice(payload.head);
            joined.extend_from_slice(payload.body);
            joined.resize(length, 0);
            &joined
        };
        let done = self.pack_bytes(compression, plain);
        self.joined = joined;
        done
    }

    fn pack_bytes(&mut self, compression: Option<&Compression>, plain: &[u8]) -> Result<bool> {
        self.out.clear();
        if let Some(compression) = compression
            && plain.len() as u64 >= SHORTEST
            && let Some(length) = self.compress(compression, plain)
        {
            self.put(compression, plain, length)?;
            if self.out.len() < plain.len() {
                return Ok(true);
            }
        }
        if !packed::is_packed(plain) {
            return Ok(false);
        }
        self.out.clear();
        self.out.extend_from_slice(OWN_TYPE);
        put_blob(&mut self.out, &[&[STORED], plain])?;
        Ok(true)
    }

    /// Compresses into `stream`; returns its length, or None if it is not shorter.
    fn compress(&mut self, compression: &Compression, plain: &[u8]) -> Option<usize> {
        let room = match compression.method {
            Method::Snappy => snap::raw::max_compress_len(plain.len()),
            Method::Lz4 => lz4_flex::block::get_maximum_output_size(plain.len()),
            _ => plain.len(),
        };
        if self.stream.len() < room {
            // When out of memory, the payload is stored as given.
            self.stream.try_reserve(room - self.stream.len()).ok()?;
            self.stream.resize(room, 0);
        }
        let stream = &mut self.stream[..room];
        match compression.method {
            Method::Gzip => deflate(&mut self.deflate, false, plain, stream),
            Method::Lzw => deflate(&mut self.zlib, true, plain, stream),
            Method::Snappy => {
                let encoder = self.snappy.get_or_insert_with(snap::raw::Encoder::new);
                encoder.compress(plain, stream).ok()
            }
            Method::Lz4 => lz4_flex::block::compress_into(plain, stream).ok(),
            Method::Zstd => zstd(&mut self.zstd, compression.dictionary.as_deref(), plain, stream),
        }
    }

    fn put(&mut self, compression: &Compression, plain: &[u8], length: usize) -> Result<()> {
        let (out, stream) = (&mut self.out, &self.stream[..length]);
        match compression.method {
            Method::Gzip => {
                let (sum, size) = (crc32fast::hash(plain), u32::try_from(plain.len()).unwrap_or(0));
                out.extend_from_slice(GZIP_TYPE);
                let parts = [GZIP_START, stream, &sum.to_le_bytes(), &size.to_le_bytes()];
                put_blob(out, &parts)
            }
            Method::Lzw => {
                out.extend_from_slice(LZW_TYPE);
                put_blob(out, &[LZW_START, stream.get(ZLIB_HEADER..).unwrap_or_default()])
            }
            Method::Snappy => {
                out.extend_from_slice(OWN_TYPE);
                put_blob(out, &[&[SNAPPY], stream])
            }
            Method::Lz4 => {
                out.extend_from_slice(OWN_TYPE);
                put_blob(out, &[&[LZ4], Number::of(plain.len()).bytes(), stream])
            }
            Method::Zstd => {
                let number = compression.dictionary.as_ref().map_or(0, |it| it.number());
                let frame = stream.strip_prefix(&ZSTD_MAGIC).unwrap_or(stream);
                out.extend_from_slice(OWN_TYPE);
                put_blob(out, &[&[ZSTD], Number::of(number as usize).bytes(), frame])
            }
        }
    }

    fn shrink(&mut self) {
        if self.joined.capacity().max(self.stream.capacity()).max(self.out.capacity()) > KEPT {
            (self.joined, self.stream, self.out) = (Vec::new(), Vec::new(), Out::new());
        }
    }
}

/// Puts a blob of consecutive parts.
pub(super) fn put_blob(out: &mut Out, parts: &[&[u8]]) -> Result<()> {
    let length: usize = parts.iter().map(|it| it.len()).sum();
    writer::put_length(out, length + 1).map_err(Error::Wire)?;
    out.push(BLOB);
    for part in parts {
        out.extend_from_slice(part);
    }
    out.check().map_err(Error::Wire)
}

fn deflate(kept: &mut Option<Compress>, zlib: bool, plain: &[u8], out: &mut [u8]) -> Option<usize> {
    let made = || Compress::new(flate2::Compression::default(), zlib);
    let deflate = kept.get_or_insert_with(made);
    deflate.reset();
    let done = deflate.compress(plain, out, FlushCompress::Finish).ok()?;
    (done == Status::StreamEnd).then(|| usize::try_from(deflate.total_out()).ok())?
}

fn zstd(
    kept: &mut Option<CCtx<'static>>,
    dictionary: Option<&Dictionary>,
    plain: &[u8],
    out: &mut [u8],
) -> Option<usize> {
    let context = kept.get_or_insert_with(|| {
        let mut made = CCtx::create();
        // A failure here will show in the compression.
        let _ = made.set_parameter(CParameter::CompressionLevel(ZSTD_LEVEL));
        made
    });
    match dictionary {
        None => context.compress2(out, plain).ok(),
        Some(given) => context.compress_using_cdict(out, plain, given.encoder()).ok(),
    }
}
