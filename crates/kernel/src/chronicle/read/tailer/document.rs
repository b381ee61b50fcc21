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

/// A document that a step has found, while the tailer is locked.
pub struct Found<'a> {
    /// The message's index (metadata: that of the next message).
    pub index: i64,
    pub(super) tailer: &'a Tailer,
    pub(super) cursor: &'a Cursor,
    pub(super) message: &'a Message,
}

impl<'a> Found<'a> {
    /// The payload, in place, without the key of a tailer of topics.
    #[inline]
    #[must_use]
    pub fn bytes(&self) -> &'a [u8] {
        let Message { document, start } = self.message;
        self.cursor.payload(&document.from(*start))
    }

    /// The document, to be read without the tailer's lock.
    #[inline]
    pub fn open(&self) -> Result<OpenDocument> {
        let region = self.cursor.region().ok_or_else(|| self.tailer.closed())?;
        let Message { document, start } = *self.message;
        Ok(OpenDocument { region, document, start, index: self.index })
    }
}

/// A document being read.
#[derive(Clone)]
pub struct OpenDocument {
    region: Arc<Region>,
    pub(super) document: Document,
    /// Where the message begins in the payload, after its key.
    start: u32,
    /// The message's index (metadata: that of the next message).
    pub index: i64,
}

impl OpenDocument {
    /// The payload, in place.
    #[must_use]
    pub fn payload(&self) -> &[u8] {
        let part = self.document.from(self.start);
        self.region.bytes(part.position + HEADER_LEN, u64::from(part.length))
    }

    /// What a tailer of topics skipped before the message: its history and its key.
    #[must_use]
    pub fn before(&self) -> &[u8] {
        self.region.bytes(self.document.position + HEADER_LEN, u64::from(self.start))
    }

    /// It is metadata.
    #[must_use]
    pub const fn is_metadata(&self) -> bool {
        self.document.is_metadata
    }
}
