//! Replica states of a queue whose messages are about to be cut off.

use crate::Result;
use crate::chronicle::protocol::lock::guard::DetachedGuard;
use crate::chronicle::protocol::roll_file::View;
use crate::chronicle::queue::handle::Queue;
use crate::chronicle::verify::walk::Walked;
use crate::replicas::side_file::{ReplicaStates, SourceLock};

/// Resets acknowledged indexes to at most the last walked message. No source can start until the
/// returned lock is dropped; None if the queue has no replicas.
///
/// # Errors
/// The source of the queue is running: it would continue from its old position.
pub fn note_cut(
    queue: &Queue,
    view: &View,
    walked: &Walked,
    guard: &DetachedGuard<'_>,
) -> Result<Option<SourceLock>> {
    let Some(states) = ReplicaStates::open_existing(queue.path(), true)? else { return Ok(None) };
    let lock = states.lock_source(guard.may_wait())?;
    let last = walked.next_sequence.checked_sub(1);
    let last = last.map(|last| queue.roll().to_index(view.file().cycle, last)).transpose()?;
    states.note_cut(last)?;
    Ok(Some(lock))
}
