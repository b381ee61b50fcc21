//! A document to read: in the file of a queue, or received from elsewhere.

use std::sync::Arc;

use quire_kernel::chronicle::read::tailer::OpenDocument;

/// A document being read.
#[derive(Clone)]
pub enum Document {
    /// In the file of a queue.
    InPlace(OpenDocument),
    /// One that was received.
    Received(Received),
}

/// A document that a Python handle received, with its index or, for metadata, that of the next
/// message.
#[derive(Clone)]
pub struct Received {
    pub index: i64,
    pub bytes: Arc<Vec<u8>>,
    pub is_metadata: bool,
}

impl Document {
    #[inline]
    pub fn payload(&self) -> &[u8] {
        match self {
            Self::InPlace(open) => open.payload(),
            Self::Received(it) => &it.bytes,
        }
    }

    /// What a tailer of topics skipped before the message: its history and its key.
    #[inline]
    pub fn before(&self) -> &[u8] {
        match self {
            Self::InPlace(open) => open.before(),
            Self::Received(..) => &[],
        }
    }

    #[inline]
    pub const fn index(&self) -> i64 {
        match self {
            Self::InPlace(open) => open.index(),
            Self::Received(it) => it.index,
        }
    }

    #[inline]
    pub const fn is_metadata(&self) -> bool {
        match self {
            Self::InPlace(open) => open.is_metadata(),
            Self::Received(it) => it.is_metadata,
        }
    }
}
