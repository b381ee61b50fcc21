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
    /// What follows the key in a payload.
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
    /// What an encrypted or compressed document holds.
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

    /// The document, to be read without the tailer's lock.
    #[inline]
    pub fn open(&self) -> Result<OpenDocument> {
        let region = self.cursor.region().ok_or_else(|| self.tailer.closed())?;
        let Message { document, start } = *self.message;
        let copied = match self.plain {
            Some(plain) => Some(Arc::new(plain.to_vec())),
            None if document.is_metadata => Some(copy_of(&region, &document)?),
            None => None,
        };
        Ok(OpenDocument { region, document, start, copied, index: self.index })
    }
}

/// A document being read.
#[derive(Clone)]
pub struct OpenDocument {
    region: Arc<Region>,
    pub(super) document: Document,
    /// Where the message begins in the payload, after its key.
    start: u32,
    /// A copy of metadata, in which words may change, or what an encrypted document holds.
    copied: Option<Arc<Vec<u8>>>,
    /// The message's index (metadata: that of the next message).
    pub index: i64,
}

impl OpenDocument {
    /// The payload: of a message in place, of metadata as it was when it was opened.
    #[must_use]
    pub fn payload(&self) -> &[u8] {
        match &self.copied {
            None => self.region.bytes(self.document.from(self.start).payload()),
            Some(copy) => &copy[(self.start as usize).min(copy.len())..],
        }
    }

    /// What a tailer of topics skipped before the message: its history and its key.
    #[must_use]
    pub fn before(&self) -> &[u8] {
        match &self.copied {
            None => self.region.bytes(self.document.payload_start(self.start)),
            Some(copy) => &copy[..(self.start as usize).min(copy.len())],
        }
    }

    /// It is metadata.
    #[must_use]
    pub const fn is_metadata(&self) -> bool {
        self.document.is_metadata
    }
}

fn copy_of(region: &Region, document: &Document) -> Result<Arc<Vec<u8>>> {
    let mut copy = Vec::new();
    let (position, length) = (document.position + HEADER_LEN, u64::from(document.length));
    region.append_to_relaxed(&mut copy, position, length)?;
    Ok(Arc::new(copy))
}
