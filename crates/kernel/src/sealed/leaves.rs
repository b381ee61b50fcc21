//! The leaves of a cycle: per message, one hash of its index, of the metadata before it, and of its
//! bytes.
//!
//! A leaf is the hash of 0, the index in 8 bytes, the length of the metadata hash (0 or 32), that
//! hash, and the hash of the message: a proof binds the index even when it is checked without the
//! message. The metadata hash covers the header words and payloads of all metadata documents since
//! the preceding message. The file header and index arrays are left out: their words change.

use sha2::{Digest, Sha256};

use super::tree::{self, Hash, Tree};
use crate::chronicle::format::append_checksums::{self, record};
use crate::chronicle::format::document::{self, HEADER_LEN};
use crate::chronicle::protocol::append_checksums::Stored;
use crate::chronicle::protocol::roll_file::{Document, Slot, View};
use crate::chronicle::queue::handle::Queue;
use crate::memory::pages::Pages;
use crate::os::detached::Detached;
use crate::os::interrupt;
use crate::{Error, Result};

/// How much of each leaf is kept in a side file: enough to find the first changed message.
pub const CHECKSUM_LEN: usize = 8;
const HASH_LEN_BYTE: u8 = 32;
const _: () = assert!(HASH_LEN_BYTE as usize == tree::HASH_LEN);
/// Signals are checked after this many documents.
const BETWEEN_LOOKS: u64 = 1 << 14;

/// Which leaves to hash.
pub struct Asked {
    pub cycle: i32,
    /// The tree of the preceding messages.
    pub tree: Tree,
    /// The numbers of messages after which the root is wanted, ascending.
    pub marks: Vec<u64>,
    /// The number of messages to stop at.
    pub until: u64,
    /// The message to prove.
    pub proving: Option<u64>,
}

/// The result of hashing.
#[derive(Default)]
pub struct Hashed {
    pub tree: Tree,
    /// The first bytes of each leaf.
    pub checksums: Vec<u8>,
    /// The roots at the marks that were reached.
    pub roots: Vec<Hash>,
    /// Whether the end-of-file marker was reached.
    pub is_ended: bool,
    /// The hash of metadata after the last message.
    pub metadata: Option<Hash>,
    /// The damage at which the walk ended.
    pub damage: Option<String>,
    /// The proven message, and the hash of the metadata before it.
    pub proven: Option<(Vec<u8>, Option<Hash>)>,
    pub appended: Appended,
}

/// The result of comparing the hashed messages with the checksums stored by appenders.
#[derive(Default)]
pub struct Appended {
    /// How many messages have one.
    pub known: u64,
    /// The first message that differs from the appended one, and whether a page of it was never
    /// written.
    pub changed: Option<(u64, bool)>,
    /// Whether messages were appended after the last remaining one.
    pub is_cut: bool,
    /// Why the checksums cannot be trusted.
    pub problem: Option<String>,
}

/// Hashes messages of a cycle; None if its file is missing or still being created.
pub fn hash(queue: &Queue, asked: Asked, may_wait: &mut Detached) -> Result<Option<Hashed>> {
    let Some(view) = queue.view(asked.cycle)? else { return Ok(None) };
    let first_index = queue.roll().to_index(asked.cycle, 0)?;
    let position = match asked.tree.count() {
        0 => 0,
        count => match queue.position_of(first_index + count.cast_signed() - 1)? {
            None => return Ok(Some(Hashed { tree: asked.tree, ..Hashed::default() })),
            Some(position) => position,
        },
    };
    let mut found = Hashed::default();
    let path = append_checksums::path_for(&queue.file_for_cycle(asked.cycle)?);
    let checksums = Stored::open(&path, asked.cycle).unwrap_or_else(|error| {
        found.appended.problem = Some(error.to_string());
        None
    });
    let mut walk = Walk { view, position, first_index, checksums, metadata: None, found };
    if asked.tree.count() > 0
        && let Slot::Document(last) = walk.view.slot(position)?
    {
        walk.position = last.next;
    }
    walk.found.tree = asked.tree;
    walk.run(&asked.marks, asked.until, asked.proving, may_wait)?;
    walk.found.metadata = walk.metadata.map(|hasher| hasher.finalize().into());
    Ok(Some(walk.found))
}

struct Walk {
    view: View,
    position: u64,
    first_index: i64,
    /// The checksums stored by appenders.
    checksums: Option<Stored>,
    /// The hash of metadata since the last message, if there is any.
    metadata: Option<Sha256>,
    found: Hashed,
}

impl Walk {
    fn run(
        &mut self,
        marks: &[u64],
        until: u64,
        proving: Option<u64>,
        may_wait: &mut Detached,
    ) -> Result<()> {
        let mut marks = marks.iter().peekable();
        for step in 1_u64.. {
            while marks.next_if(|mark| **mark <= self.found.tree.count()).is_some() {
                self.found.roots.push(self.found.tree.root());
            }
            if self.found.tree.count() >= until {
                break;
            }
            match self.view.slot(self.position) {
                Ok(Slot::Document(document)) => self.take(&document, proving)?,
                Ok(Slot::Waiting(_)) => {
                    self.look_past()?;
                    break;
                }
                Ok(Slot::EndOfData) => {
                    self.found.is_ended = true;
                    break;
                }
                Err(error @ (Error::Corrupt { .. } | Error::Hole { .. })) => {
                    self.found.damage = Some(error.to_string());
                    break;
                }
                Err(error) => return Err(error),
            }
            if step.is_multiple_of(BETWEEN_LOOKS) {
                interrupt::check(may_wait)?;
            }
        }
        Ok(())
    }

    fn take(&mut self, document: &Document, proving: Option<u64>) -> Result<()> {
        self.position = document.next;
        if self.view.is_of_file(document) {
            return Ok(());
        }
        if document.is_metadata {
            let at = document.position + HEADER_LEN;
            let payload = self.view.copied(at, u64::from(document.length))?.unwrap_or_default();
            let hasher = self.metadata.get_or_insert_with(Sha256::new);
            hasher.update(document::word(document.length, true).to_le_bytes());
            hasher.update(&payload);
            return Ok(());
        }
        let number = self.found.tree.count();
        let metadata: Option<Hash> = self.metadata.take().map(|it| it.finalize().into());
        let payload = self.view.payload(document);
        let leaf = leaf_of(self.first_index + number.cast_signed(), metadata.as_ref(), payload);
        if proving == Some(number) {
            self.found.proven = Some((payload.to_vec(), metadata));
        }
        self.found.checksums.extend_from_slice(&leaf[..CHECKSUM_LEN]);
        self.found.tree.push(leaf);
        self.compare(document, number)
    }

    /// Compares a message with the checksum stored by its appender.
    fn compare(&mut self, document: &Document, number: u64) -> Result<()> {
        let Some(checksums) = &mut self.checksums else { return Ok(()) };
        let found = checksums.record(number)?;
        if found == 0 {
            return Ok(());
        }
        self.found.appended.known += 1;
        let payload = self.view.payload(document);
        let made = record(self.first_index + number.cast_signed(), payload);
        // An appender may be about to replace the record of a lost message.
        if found != made && ![0, made].contains(&checksums.newest(number)?) {
            let is_torn = has_unwritten_page(document.position + HEADER_LEN, payload);
            self.found.appended.changed.get_or_insert((number, is_torn));
        }
        Ok(())
    }

    /// Checks whether there are checksums of messages after the last one.
    fn look_past(&mut self) -> Result<()> {
        let Some(checksums) = &mut self.checksums else { return Ok(()) };
        if checksums.newest(self.found.tree.count())? != 0 {
            // False if a message was appended since.
            self.found.appended.is_cut = matches!(self.view.slot(self.position)?, Slot::Waiting(_));
        }
        Ok(())
    }
}

/// Whether one of a payload's pages is all zeros, as if a power cut prevented its write. The page
/// of the document's header is known to be written.
fn has_unwritten_page(position: u64, payload: &[u8]) -> bool {
    let page = Pages::here().bytes();
    let beside_header = usize::try_from(position.next_multiple_of(page) - position);
    let rest = payload.get(beside_header.unwrap_or(usize::MAX)..).unwrap_or_default();
    let mut pages = rest.chunks(usize::try_from(page).unwrap_or(usize::MAX));
    pages.any(|part| part.iter().all(|byte| *byte == 0))
}

/// The leaf of a message.
#[must_use]
pub fn leaf_of(index: i64, metadata: Option<&Hash>, payload: &[u8]) -> Hash {
    let length = if metadata.is_some() { &[HASH_LEN_BYTE] } else { &[0] };
    let metadata = metadata.map_or(&[][..], |hash| hash);
    let message: Hash = Sha256::digest(payload).into();
    tree::leaf(&[&index.to_le_bytes(), length, metadata, &message])
}
