//! The documents of a roll file, found by their headers alone (`docs/format.md` §2.1).

use std::ops::Range;

use quire_kernel::chronicle::format::store::{self, StoreLayout};

/// A complete document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    /// Offset of its header.
    pub position: usize,
    /// Offsets of its payload.
    pub payload: Range<usize>,
    /// It is metadata.
    pub is_metadata: bool,
}

/// What follows the last document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Nothing yet, or an unfinished document.
    Open,
    /// An end-of-file marker.
    Marked,
    /// A header or a document that the file is too short for.
    Damaged,
}

/// A parsed roll file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Walk {
    /// Where the words are, as the kernel found them.
    pub layout: StoreLayout,
    /// The documents, the file's header first.
    pub documents: Vec<Document>,
    /// The offset after the documents.
    pub tail: usize,
    /// What follows the last document.
    pub end: End,
}

impl Walk {
    /// Parses a file; None if the kernel finds no roll file header in it.
    #[must_use]
    pub fn new(data: &[u8]) -> Option<Self> {
        let word = u32::from_le_bytes(data.first_chunk().copied()?);
        let first = data.get(4..4 + (word & 0x3FFF_FFFF) as usize)?;
        let is_ready = word & 0xC000_0000 == 0x4000_0000 && first.len() <= 65_536;
        let layout = is_ready.then(|| store::parse(first)).flatten()?;
        let mut walk = Self { layout, documents: Vec::new(), tail: 0, end: End::Damaged };
        walk.end = loop {
            let Some(header) = data.get(walk.tail..walk.tail + 4) else {
                let rest = data.get(walk.tail..).unwrap_or_default();
                break if rest.iter().any(|byte| *byte != 0) { End::Damaged } else { End::Open };
            };
            let word = u32::from_le_bytes(header.try_into().unwrap());
            match word {
                0xC000_0000 => break End::Marked,
                0 | 0x8000_0000.. => break End::Open,
                _ => {}
            }
            let payload = walk.tail + 4..walk.tail + 4 + (word & 0x3FFF_FFFF) as usize;
            if payload.end > data.len() {
                break End::Damaged;
            }
            let next =
                if walk.layout.aligned { payload.end.next_multiple_of(4) } else { payload.end };
            let is_metadata = word & 0x4000_0000 != 0;
            walk.documents.push(Document { position: walk.tail, payload, is_metadata });
            walk.tail = next;
        };
        Some(walk)
    }

    /// Whether the file's write position is at or after its end.
    #[must_use]
    pub fn hides_messages(&self, data: &[u8]) -> bool {
        let word = usize::try_from(self.layout.write_position).ok();
        let bytes = word.and_then(|word| data.get(word..word + 8)?.first_chunk().copied());
        bytes.is_some_and(|bytes| u64::from_le_bytes(bytes) >= self.tail as u64)
    }

    /// The messages among the documents.
    pub fn messages(&self) -> impl Iterator<Item = &Document> {
        self.documents.iter().filter(|document| !document.is_metadata)
    }

    /// The payloads of the messages.
    #[must_use]
    pub fn payloads(&self, data: &[u8]) -> Vec<Vec<u8>> {
        self.messages().map(|document| data[document.payload.clone()].to_vec()).collect()
    }

    /// The metadata documents at one of these positions, or that look like index arrays: every
    /// one after the header that is long enough for `index_count` slots.
    pub fn arrays(&self) -> impl Iterator<Item = &Document> {
        let slots = self.layout.index_count as usize * 8;
        let rest = self.documents.iter().skip(1);
        rest.filter(move |found| found.is_metadata && found.payload.len() > slots + 16)
    }

    /// Offsets of the words that only help to find messages: the header's, then of each array
    /// capacity, used and slots.
    #[must_use]
    pub fn hints(&self) -> Vec<usize> {
        let layout = &self.layout;
        let header = [layout.write_position, layout.index2index, layout.last_index];
        let header = header.into_iter().chain(layout.sequence);
        let mut words: Vec<usize> = header.map(|word| usize::try_from(word).unwrap()).collect();
        for array in self.arrays() {
            let first = array.payload.end - 8 * (layout.index_count as usize + 2);
            words.extend((first..array.payload.end).step_by(8));
        }
        words
    }
}
