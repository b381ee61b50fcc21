//! The digest of a cycle's documents, by which a source and a sink find out whether they hold the
//! same (`docs/replication.md`, "Digest").
//!
//! It is the BLAKE3 hash of the header words and payloads of all documents from the start of the
//! cycle up to a given position, as a batch carries them. The file header and index arrays are left
//! out.

use crate::Result;
use crate::chronicle::format::batch::ReplicaEnd;
use crate::chronicle::format::document::{self, HEADER_LEN};
use crate::chronicle::protocol::roll_file::Slot;
use crate::chronicle::queue::handle::Queue;
use crate::os::detached::Detached;
use crate::os::interrupt;

/// Signals are checked after this many documents.
const BETWEEN_LOOKS: u64 = 1 << 14;

/// The digest of a cycle up to a position; None if the queue does not have it.
pub fn digest(
    queue: &Queue,
    place: ReplicaEnd,
    may_wait: &mut Detached,
) -> Result<Option<[u8; 32]>> {
    let (cycle, sequence) = queue.roll().split(place.next)?;
    let found = walk(queue, cycle, Some((sequence, place.metadata)), may_wait)?;
    Ok(found.map(|(_, digest)| digest))
}

/// Where the documents of a cycle end, and their digest; None if the queue has no such cycle.
pub fn digest_of_cycle(
    queue: &Queue,
    cycle: i32,
    may_wait: &mut Detached,
) -> Result<Option<(ReplicaEnd, [u8; 32])>> {
    let Some(((sequence, metadata, is_ended), digest)) = walk(queue, cycle, None, may_wait)? else {
        return Ok(None);
    };
    let next = queue.roll().to_index(cycle, sequence)?;
    Ok(Some((ReplicaEnd { next, metadata, is_ended }, digest)))
}

/// Sequence of the next message, metadata since the last one, and whether the cycle has ended
/// there.
type End = (u64, u32, bool);

/// The digest up to a position, or to the end of the cycle; None if the queue does not have it.
fn walk(
    queue: &Queue,
    cycle: i32,
    until: Option<(u64, u32)>,
    may_wait: &mut Detached,
) -> Result<Option<(End, [u8; 32])>> {
    let Some(mut view) = queue.view(cycle)? else { return Ok(None) };
    let (mut messages, mut metadata, mut position) = (0, 0, 0);
    let mut hasher = blake3::Hasher::new();
    let mut is_ended = false;
    while until != Some((messages, metadata)) {
        let found = match view.slot(position)? {
            Slot::Document(found) => found,
            slot if until.is_none() => {
                is_ended = slot == Slot::EndOfData;
                break;
            }
            _ => return Ok(None),
        };
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
        if until.is_some_and(|(sequence, _)| messages > sequence) {
            return Ok(None);
        }
        if messages % BETWEEN_LOOKS == 0 {
            interrupt::check(may_wait)?;
        }
    }
    Ok(Some(((messages, metadata, is_ended), *hasher.finalize().as_bytes())))
}
