//! A batch of consecutive documents of one cycle, on their way to a replica
//! (`docs/replication.md`, "Batch"). All integers are little-endian.
//!
//! ```text
//!  0  i64  index of the first message, or of the next one if the batch has no message
//!  8  u32  metadata documents between the message before it and the first document
//! 12  u32  documents
//! 16  u32  flags: 1, the cycle has ended after them
//! 20  documents, not aligned: header word as in the roll file, payload
//! ```

use super::document::{self, Header};

/// Bytes before the documents.
pub const HEAD: usize = 20;
/// Bytes of a header word.
pub const WORD: usize = 4;
/// The cycle has ended after these documents.
pub const ENDED: u32 = 1;

/// A document of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Document<'a> {
    /// It is metadata.
    pub is_metadata: bool,
    /// Its payload, as stored.
    pub payload: &'a [u8],
}

/// A batch whose lengths have been checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batch<'a> {
    /// The index of the first message, or of the next one if there is none.
    pub first: i64,
    /// Metadata documents between the preceding message and the first document.
    pub metadata_before: u32,
    /// The cycle has ended after the documents.
    pub is_ended: bool,
    /// How many of the documents are messages.
    pub messages: u64,
    /// Metadata documents after the last message.
    metadata_after: u32,
    documents: &'a [u8],
}

/// Why bytes are not a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed {
    /// What is wrong.
    pub what: &'static str,
    /// Where, in bytes from the start.
    pub offset: usize,
}

impl<'a> Batch<'a> {
    /// Checks that `bytes` are one whole batch.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let bad = |what, offset| Malformed { what, offset };
        let Some((head, documents)) = bytes.split_first_chunk::<HEAD>() else {
            return Err(bad("a batch is shorter than its head", bytes.len()));
        };
        let flags = word_at(head, 16);
        if flags & !ENDED != 0 {
            return Err(bad("a batch has unknown flags", 16));
        }
        let (metadata_before, count) = (word_at(head, 8), word_at(head, 12));
        let (mut left, mut messages, mut found) = (documents, 0, 0);
        let mut metadata_after = metadata_before;
        while !left.is_empty() {
            let offset = bytes.len() - left.len();
            let (document, rest) = split(left).map_err(|what| bad(what, offset))?;
            messages += u64::from(!document.is_metadata);
            metadata_after = metadata_through(metadata_after, document.is_metadata);
            found += 1;
            left = rest;
        }
        if found != count {
            return Err(bad("a batch has another number of documents than it says", 12));
        }
        let first = i64::from_le_bytes(*head.first_chunk().unwrap_or(&[0; 8]));
        let is_ended = flags & ENDED != 0;
        Ok(Self { first, metadata_before, is_ended, messages, metadata_after, documents })
    }

    /// Where a replica ends that has applied the batch.
    #[must_use]
    pub const fn end(&self) -> ReplicaEnd {
        ReplicaEnd {
            next: self.first + self.messages.cast_signed(),
            metadata: self.metadata_after,
            is_ended: self.is_ended,
        }
    }

    /// The documents, in order.
    pub fn documents(&self) -> impl Iterator<Item = Document<'a>> {
        let mut left = self.documents;
        std::iter::from_fn(move || {
            let (document, rest) = split(left).ok()?;
            left = rest;
            Some(document)
        })
    }
}

fn word_at(bytes: &[u8; HEAD], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn split(bytes: &[u8]) -> Result<(Document<'_>, &[u8]), &'static str> {
    let Some((word, rest)) = bytes.split_first_chunk::<WORD>() else {
        return Err("a header word in a batch is cut off");
    };
    let (length, is_metadata) = match document::parse(u32::from_le_bytes(*word)) {
        Header::Data(length) => (length, false),
        Header::Meta(length) => (length, true),
        Header::Waiting | Header::EndOfData => {
            return Err("a header word in a batch is not that of a complete document");
        }
    };
    match rest.split_at_checked(length as usize) {
        Some((payload, rest)) => Ok((Document { is_metadata, payload }, rest)),
        None => Err("a document in a batch is cut off"),
    }
}

/// Metadata documents since the last message, after one more document; `before` is the count before
/// it.
#[must_use]
pub const fn metadata_through(before: u32, is_metadata: bool) -> u32 {
    if is_metadata { before.saturating_add(1) } else { 0 }
}

/// A batch under construction.
pub struct BatchWriter {
    bytes: Vec<u8>,
    first: i64,
    metadata_before: u32,
    documents: u32,
    /// Messages so far, and metadata documents since the last of them.
    messages: u64,
    metadata: u32,
}

impl BatchWriter {
    /// An empty batch; `metadata_before` metadata documents lie between the preceding message and
    /// its first document.
    #[must_use]
    pub fn new(metadata_before: u32) -> Self {
        let bytes = vec![0; HEAD];
        Self {
            bytes,
            first: 0,
            metadata_before,
            documents: 0,
            messages: 0,
            metadata: metadata_before,
        }
    }

    /// Whether there is no document in it.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.documents == 0
    }

    /// Bytes so far.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Metadata documents since the last message.
    #[must_use]
    pub const fn metadata(&self) -> u32 {
        self.metadata
    }

    /// Begins with the cycle of this index. Metadata before it belongs to an earlier cycle if
    /// `is_new`.
    pub const fn begin(&mut self, index: i64, is_new: bool) {
        self.first = index;
        if is_new {
            (self.metadata_before, self.metadata) = (0, 0);
        }
    }

    /// Adds a document, whose payload `put` appends.
    pub fn add<E>(
        &mut self,
        is_metadata: bool,
        put: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<(), E> {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(&[0; WORD]);
        if let Err(error) = put(&mut self.bytes) {
            self.bytes.truncate(start);
            return Err(error);
        }
        let length = self.bytes.len() - start - WORD;
        // A payload came from a header word, whose length has 30 bits.
        let length = u32::try_from(length).unwrap_or(document::LENGTH_MASK);
        self.bytes[start..start + WORD]
            .copy_from_slice(&document::word(length, is_metadata).to_le_bytes());
        self.documents += 1;
        self.messages += u64::from(!is_metadata);
        self.metadata = metadata_through(self.metadata, is_metadata);
        Ok(())
    }

    /// The bytes of the batch, and where a replica ends that has applied it.
    #[must_use]
    pub fn finish(mut self, is_ended: bool) -> (Vec<u8>, ReplicaEnd) {
        let mut head = [0; HEAD];
        head[..8].copy_from_slice(&self.first.to_le_bytes());
        head[8..12].copy_from_slice(&self.metadata_before.to_le_bytes());
        head[12..16].copy_from_slice(&self.documents.to_le_bytes());
        head[16..].copy_from_slice(&u32::from(is_ended).to_le_bytes());
        self.bytes[..HEAD].copy_from_slice(&head);
        let next = self.first + self.messages.cast_signed();
        (self.bytes, ReplicaEnd { next, metadata: self.metadata, is_ended })
    }
}

/// Where a replica ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplicaEnd {
    /// The index of its next message, if that is in the same cycle.
    pub next: i64,
    /// Metadata documents after its last message, without those of the index.
    pub metadata: u32,
    /// Its last cycle has ended.
    pub is_ended: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch() -> Vec<u8> {
        let mut writer = BatchWriter::new(2);
        writer.begin(0x7_0000_0005, false);
        for (is_metadata, payload) in [(true, &b"note"[..]), (false, b"one"), (false, b"t")] {
            writer
                .add(is_metadata, |out| {
                    out.extend_from_slice(payload);
                    Ok::<_, ()>(())
                })
                .unwrap();
        }
        assert_eq!((writer.metadata(), writer.len()), (0, HEAD + 3 * WORD + 8));
        let (bytes, end) = writer.finish(true);
        assert_eq!(Batch::parse(&bytes).unwrap().end(), end);
        bytes
    }

    #[test]
    fn what_was_put_together_comes_apart_again() {
        let bytes = batch();
        let batch = Batch::parse(&bytes).unwrap();
        assert_eq!((batch.first, batch.metadata_before), (0x7_0000_0005, 2));
        assert_eq!((batch.messages, batch.is_ended), (2, true));
        let found: Vec<_> = batch.documents().map(|it| (it.is_metadata, it.payload)).collect();
        assert_eq!(found, [(true, &b"note"[..]), (false, b"one"), (false, b"t")]);
    }

    #[test]
    fn every_cut_and_every_changed_count_is_refused() {
        let bytes = batch();
        for end in 0..bytes.len() {
            assert!(Batch::parse(&bytes[..end]).is_err(), "{end}");
        }
        for (at, what) in [(12, "number of documents"), (16, "flags"), (23, "complete document")] {
            let mut changed = bytes.clone();
            changed[at] ^= 0x80;
            assert!(Batch::parse(&changed).unwrap_err().what.contains(what), "{at}");
        }
    }
}
