//! A document that a step has found.

use std::sync::Arc;

use super::Tailer;
use crate::Result;
use crate::chronicle::format::document::HEADER_LEN;
use crate::chronicle::protocol::roll_file::Document;
use crate::chronicle::read::position::Cursor;
use crate::memory::window::Region;

/// A document, and where the message begins in its payload, after its key.
#[derive(Clone, Copy)]
pub(super) struct Message {
    pub document: Document,
    pub start: u32,
}

impl Message {
    /// The part of a payload after the key.
    #[inline]
    pub fn after_key<'a>(&self, payload: &'a [u8]) -> &'a [u8] {
        &payload[(self.start as usize).min(payload.len())..]
    }
}

/// A document that a step has found, while the tailer is locked.
pub struct Found<'a> {
    /// The message's index (metadata: that of the next message).
    pub index: i64,
    pub(super) tailer: &'a Tailer,
    pub(super) cursor: &'a Cursor,
    pub(super) message: &'a Message,
    /// The payload of a message, without the key of a tailer of topics.
    pub(super) bytes: &'a [u8],
    /// The decoded content of an encrypted or compressed document.
    pub(super) plain: Option<&'a [u8]>,
}

impl<'a> Found<'a> {
    /// The payload of a message, without the key of a tailer of topics: in place, unless it is
    /// encrypted or compressed.
    #[inline]
    #[must_use]
    pub const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The document's place.
    #[inline]
    #[must_use]
    pub const fn place(&self) -> DocumentPlace {
        let Message { document, start } = *self.message;
        DocumentPlace { document, start, index: self.index }
    }

    /// The document, for reading without the tailer's lock.
    #[inline]
    pub fn open(&self) -> Result<OpenDocument> {
        let region = self.cursor.region().ok_or_else(|| self.tailer.closed())?;
        let bytes = match self.plain {
            Some(plain) => Bytes::Copied(Arc::new(plain.to_vec())),
            None if self.message.document.is_metadata => {
                Bytes::Copied(copy_of(&region, &self.message.document)?)
            }
            None => Bytes::InPlace(region),
        };
        Ok(OpenDocument { place: self.place(), bytes })
    }

    /// Copies a message to the start of `room`; None if that is too small, or the message has a key
    /// before it. [`DocumentPlace::with_copy`] makes a document of it.
    #[inline]
    pub fn copy_whole(&self, room: &mut [u8]) -> Option<usize> {
        let room = room.get_mut(..self.bytes.len()).filter(|_| self.message.start == 0)?;
        room.copy_from_slice(self.bytes);
        Some(room.len())
    }
}

/// The place of a document, for errors and for going back to it.
#[derive(Clone, Copy)]
pub struct DocumentPlace {
    pub(super) document: Document,
    /// Where the message begins in the payload, after its key.
    start: u32,
    /// The message's index (metadata: that of the next message).
    pub index: i64,
}

impl DocumentPlace {
    /// The document of a message that was copied with [`Found::copy_whole`].
    #[must_use]
    pub fn with_copy(self, copy: &[u8]) -> OpenDocument {
        OpenDocument { place: self, bytes: Bytes::Copied(Arc::new(copy.to_vec())) }
    }
}

/// A document being read.
#[derive(Clone)]
pub struct OpenDocument {
    place: DocumentPlace,
    bytes: Bytes,
}

#[derive(Clone)]
enum Bytes {
    /// A message in its file, which stays mapped.
    InPlace(Arc<Region>),
    /// A copy: of metadata, whose words may change; of a decrypted message; or of a short one.
    Copied(Arc<Vec<u8>>),
}

impl OpenDocument {
    /// The document's place.
    #[must_use]
    pub const fn place(&self) -> &DocumentPlace {
        &self.place
    }

    /// The message's index (metadata: that of the next message).
    #[inline]
    #[must_use]
    pub const fn index(&self) -> i64 {
        self.place.index
    }

    /// The payload: of a message in place, of metadata as it was when it was opened.
    #[must_use]
    pub fn payload(&self) -> &[u8] {
        let DocumentPlace { document, start, .. } = self.place;
        match &self.bytes {
            Bytes::InPlace(region) => region.bytes(document.from(start).payload()),
            Bytes::Copied(copy) => &copy[(start as usize).min(copy.len())..],
        }
    }

    /// What a tailer of topics skipped before the message: its history and its key.
    #[must_use]
    pub fn before(&self) -> &[u8] {
        let DocumentPlace { document, start, .. } = self.place;
        match &self.bytes {
            Bytes::InPlace(region) => region.bytes(document.payload_start(start)),
            Bytes::Copied(copy) => &copy[..(start as usize).min(copy.len())],
        }
    }

    /// It is metadata.
    #[must_use]
    pub const fn is_metadata(&self) -> bool {
        self.place.document.is_metadata
    }
}

fn copy_of(region: &Region, document: &Document) -> Result<Arc<Vec<u8>>> {
    let mut copy = Vec::new();
    let (position, length) = (document.position + HEADER_LEN, u64::from(document.length));
    region.append_to_relaxed(&mut copy, position, length)?;
    Ok(Arc::new(copy))
}
