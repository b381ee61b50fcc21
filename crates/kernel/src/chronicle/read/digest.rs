//! The digest of a cycle's documents, by which a source and a sink find out whether they hold the same
//! (`docs/replication.md`, "Digest").
//!
//! It is the BLAKE3 hash of the header words and payloads of all documents from the start of the cycle
//! up to a place, as a batch carries them. The file header and index arrays are left out.

use crate::Result;
use crate::chronicle::format::batch::ReplicaEnd;
use crate::chronicle::format::document::{self, HEADER_LEN};
use crate::chronicle::protocol::roll_file::Slot;
use crate::chronicle::queue::handle::Queue;
use crate::os::detached::Detached;
use crate::os::interrupt;

/// Signals are looked for after this many documents.
const BETWEEN_LOOKS: u64 = 1 << 14;

/// The digest of a cycle up to a place; None if the queue has no such place.
pub fn digest(
    queue: &Queue,
    place: ReplicaEnd,
    may_wait: &mut Detached,
) -> Result<Option<[u8; 32]>> {
    let (cycle, sequence) = queue.roll().split(place.next)?;
    let Some(mut view) = queue.view(cycle)? else { return Ok(None) };
    let (mut messages, mut metadata, mut position) = (0, 0, 0);
    let mut hasher = blake3::Hasher::new();
    while (messages, metadata) != (sequence, place.metadata) {
        let Slot::Document(found) = view.slot(position)? else { return Ok(None) };
        position = found.next;
        if view.is_of_file(&found) {
            continue;
        }
        hasher.update(&document::word(found.length, found.is_metadata).to_le_bytes());
        if found.is_metadata {
            let payload = view.copied(found.position + HEADER_LEN, u64::from(found.length))?;
            hasher.update(&payload.unwrap_or_default());
            metadata += 1;
        } else {
            hasher.update(view.payload(&found));
            (messages, metadata) = (messages + 1, 0);
        }
        if messages > sequence {
            return Ok(None);
        }
        if messages % BETWEEN_LOOKS == 0 {
            interrupt::check(may_wait)?;
        }
    }
    Ok(Some(*hasher.finalize().as_bytes()))
}
