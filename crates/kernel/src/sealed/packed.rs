//! Compressed messages as they are stored (`docs/format.md` §1.13): one value that holds the
//! payload.
//!
//! gzip and lzw values are those that Java's library decompresses; a mark in their streams, which
//! it skips, distinguishes them from compressed values written by a user. Algorithms that Java
//! cannot read have a type of our own.

use quire_wire::WireError;
use quire_wire::compress::{Method as Blob, UNPACKED_MAX};
use zstd::zstd_safe;

use super::dictionary::Dictionaries;
use super::difference::{Difference, Kind};
use super::numbers::number;
use crate::{Error, Result};

/// The code of a type prefix, with which each compressed message begins.
const TYPE: u8 = 0xb6;
pub(super) const GZIP_TYPE: &[u8] = b"\xb6\x04gzip";
pub(super) const LZW_TYPE: &[u8] = b"\xb6\x03lzw";
pub(super) const OWN_TYPE: &[u8] = b"\xb6\x03qz1";
/// gzip's header, with a modification time that marks our messages.
pub(super) const GZIP_START: &[u8] = b"\x1f\x8b\x08\0Quir\0\xff";
/// zlib's header, and an empty block, with which no encoder begins: it marks our messages.
pub(super) const LZW_START: &[u8] = b"\x78\x9c\0\0\0\xff\xff";
/// The magic of a zstd frame, which is not stored.
pub(super) const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

pub(super) const STORED: u8 = 0;
pub(super) const SNAPPY: u8 = 1;
pub(super) const LZ4: u8 = 2;
pub(super) const ZSTD: u8 = 3;
pub(super) const DELTA: u8 = 4;
pub(super) const DEFAULT_ZERO: u8 = 5;

/// The longest payload that is compressed or decompressed.
pub const LONGEST: usize = UNPACKED_MAX;

pub(super) const BLOB: u8 = 0x8a;
/// Messages with a greater compression ratio are refused: LZ4 reaches at most 255.
const LZ4_MOST: usize = 256;
/// The same for zstd: a block of 128 KiB takes at least four bytes.
const ZSTD_MOST: u64 = 32 << 10;

/// The stream of a compressed message.
#[derive(Clone, Copy)]
enum Stream<'a> {
    Gzip(&'a [u8]),
    Lzw(&'a [u8]),
    Own { method: u8, rest: &'a [u8] },
}

/// Whether a payload begins like a compressed message, as few others do.
#[inline]
#[must_use]
pub fn may_be_packed(stored: &[u8]) -> bool {
    stored.first() == Some(&TYPE)
}

/// Whether a payload is a compressed message.
#[must_use]
pub fn is_packed(stored: &[u8]) -> bool {
    stream(stored).is_some()
}

fn stream(stored: &[u8]) -> Option<Stream<'_>> {
    if let Some(rest) = stored.strip_prefix(OWN_TYPE) {
        let (method, rest) = blob(rest)?.split_first()?;
        return Some(Stream::Own { method: *method, rest });
    }
    if let Some(rest) = stored.strip_prefix(GZIP_TYPE) {
        return blob(rest).filter(|it| it.starts_with(GZIP_START)).map(Stream::Gzip);
    }
    let rest = blob(stored.strip_prefix(LZW_TYPE)?)?;
    rest.starts_with(LZW_START).then_some(Stream::Lzw(rest))
}

/// The difference stored for a message; None if it is not stored as a difference.
#[must_use]
pub fn difference(stored: &[u8]) -> Option<Difference<'_>> {
    let Some(Stream::Own { method, rest }) = stream(stored) else { return None };
    let kind = match method {
        DELTA => Kind::Delta,
        DEFAULT_ZERO => Kind::DefaultZero,
        _ => return None,
    };
    let (distance, rest) = rest.split_first()?;
    let (sum, body) = rest.split_first_chunk()?;
    Some(Difference { kind, distance: *distance, sum: u32::from_le_bytes(*sum), body })
}

/// The bytes of a blob that takes up the whole input.
fn blob(bytes: &[u8]) -> Option<&[u8]> {
    let (code, rest) = bytes.split_first()?;
    let width = match code {
        0x80 => 1,
        0x81 => 2,
        0x82 => 4,
        _ => return None,
    };
    let (length, rest) = rest.split_at_checked(width)?;
    let length = length.iter().rev().fold(0, |sum, byte| sum << 8 | usize::from(*byte));
    let (code, content) = rest.split_first()?;
    (*code == BLOB && length == rest.len()).then_some(content)
}

/// The payload in a stored message; None if it is not compressed.
pub fn unpack(stored: &[u8], index: i64, dictionaries: &Dictionaries) -> Result<Option<Vec<u8>>> {
    let Some(stream) = stream(stored) else { return Ok(None) };
    let found = match stream {
        Stream::Gzip(stream) => Blob::Gzip.unpack_alone(stream, LONGEST),
        Stream::Lzw(stream) => Blob::Lzw.unpack_alone(stream, LONGEST),
        Stream::Own { method: STORED, rest } => Ok(rest.to_vec()),
        Stream::Own { method: SNAPPY, rest } => Blob::Snappy.unpack_alone(rest, LONGEST),
        Stream::Own { method: LZ4, rest } => lz4(rest),
        Stream::Own { method: ZSTD, rest } => zstd(rest, dictionaries)?,
        Stream::Own { method: DELTA | DEFAULT_ZERO, .. } => {
            Err(damaged("it is the difference to another message"))
        }
        Stream::Own { method, .. } => Err(damaged("its method is unknown").with("method", method)),
    };
    found.map(Some).map_err(|fault| Error::Wire(fault.with("index", format_args!("{index:#x}"))))
}

fn damaged(why: impl std::fmt::Display) -> WireError {
    WireError::new("a compressed message does not decompress").with("error", why)
}

fn lz4(rest: &[u8]) -> std::result::Result<Vec<u8>, WireError> {
    let (length, rest) = number(rest).ok_or_else(|| damaged("it has no length"))?;
    if length > LONGEST || length > rest.len().saturating_mul(LZ4_MOST) {
        return Err(damaged("it is too long").with("length", length));
    }
    let found = lz4_flex::block::decompress(rest, length).map_err(damaged)?;
    if found.len() == length { Ok(found) } else { Err(damaged("its length is another")) }
}

fn zstd(
    rest: &[u8],
    dictionaries: &Dictionaries,
) -> Result<std::result::Result<Vec<u8>, WireError>> {
    let Some((name, rest)) = number(rest) else { return Ok(Err(damaged("it has no header"))) };
    let dictionary = match u32::try_from(name) {
        Ok(0) => None,
        Ok(number) => Some(dictionaries.get(number)?),
        Err(_) => return Ok(Err(damaged("its dictionary is unknown"))),
    };
    let frame = [&ZSTD_MAGIC, rest].concat();
    let most = (frame.len() as u64).saturating_mul(ZSTD_MOST).min(LONGEST as u64);
    let length = match zstd_safe::get_frame_content_size(&frame) {
        Ok(Some(length)) if length <= most => usize::try_from(length).unwrap_or(0),
        Ok(Some(length)) => return Ok(Err(damaged("it is too long").with("length", length))),
        _ => return Ok(Err(damaged("it has no length"))),
    };
    let mut found = Vec::new();
    found.try_reserve_exact(length).map_err(|_| Error::OutOfMemory(length))?;
    let mut context = CONTEXT.take().unwrap_or_else(|| Box::new(zstd_safe::DCtx::create()));
    let done = match dictionary {
        None => context.decompress(&mut found, &frame),
        Some(given) => context.decompress_using_ddict(&mut found, &frame, given.decoder()),
    };
    CONTEXT.set(Some(context));
    Ok(match done {
        Ok(_) if found.len() == length => Ok(found),
        Ok(_) => Err(damaged("its length is another")),
        Err(code) => Err(damaged(zstd_safe::get_error_name(code))),
    })
}

thread_local! {
    static CONTEXT: std::cell::Cell<Option<Box<zstd_safe::DCtx<'static>>>> =
        const { std::cell::Cell::new(None) };
}
