//! Which history of a queue an index belongs to. A message may lose its index to another message:
//! its queue becomes a replica and sets the message aside, or a repair cuts it off.
//!
//! ```text
//! appender   A1 load the history               cutter, or new epoch, holding the source's lock
//!            A2 append, get the index          C1 clip acknowledged indexes to what stays, or none
//! waiter     W1 load acknowledged indexes      C2 store the history
//!            W2 load the history, compare      C3 cut messages off, or let others append
//! source     S1 store acknowledged indexes, holding the source's lock
//! ```
//!
//! SYNC POINT: all of these are acquire and release. If W1 finds an index that S1 has stored after
//! C2, W2 finds the new history, and the wait ends with an error. If W2 finds that of A1, the index
//! of W1 is of the same history, or of C1: no other message has had this index since A2, so
//! replicas have this very message. S1 never comes between C1 and C3: both hold the source's lock,
//! which a source keeps while it has sessions. A repair also holds the write lock: nothing is
//! appended between C1 and the end of C3. A replica that sets messages aside holds the append lock,
//! and acknowledges nothing itself.
//!
//! If the cutter is killed between C1 and C2, nothing was cut, and the next one starts over. If it
//! is killed after C2, the next repair or sink completes C3, and waiters get an error for messages
//! that may still exist. A1 before C2 and A2 after it ends in such an error, too. The error may be
//! a false alarm; an acknowledgement never is.

use super::layout::{self, NO_INDEX, SLOTS, at};
use super::quorum::Quorum;
use super::side_file::{ReplicaStates, index_of, word_of};
use crate::Result;
use crate::probe::fault::step;

/// The history of a queue: while it stays the same, an index belongs to one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct History {
    /// The number of the source's epoch.
    pub epoch: u64,
    /// How often messages were removed from the queue's end.
    pub cuts: u64,
}

impl ReplicaStates {
    /// The current history (A1, W2). A waiter loads it before its append.
    #[must_use]
    pub fn history(&self) -> History {
        History { epoch: self.epoch(), cuts: self.word_at(layout::CUTS_AT) }
    }

    /// W1 and W2: the index that n members have acknowledged, and then the history that it belongs
    /// to.
    #[must_use]
    pub fn reached(&self, quorum: Quorum) -> (Option<i64>, History) {
        let acknowledged = self.acknowledged(quorum);
        (acknowledged, self.history())
    }

    /// Begins an epoch, unless this is the current one: acknowledgements of earlier epochs no
    /// longer count. The caller holds the source's lock.
    ///
    /// Another source may have been active since then, and replicas or this queue may have lost
    /// messages: the same index may now belong to another message. Members stay members.
    pub fn begin_epoch(&self, epoch: u64) -> Result<()> {
        self.check_writable()?;
        if self.epoch() == epoch {
            return Ok(());
        }
        for slot in 0..SLOTS {
            self.store(at(slot, layout::SENT), NO_INDEX);
            self.store(at(slot, layout::ACKNOWLEDGED), NO_INDEX);
            self.store(at(slot, layout::TIME), 0);
        }
        self.store(layout::EPOCH_AT, epoch);
        self.wake();
        Ok(())
    }

    /// Notes that the queue ends, or is about to end, with this message; None if it has none, or
    /// unknown. Later messages no longer count as replicated, and waits for messages appended
    /// before the cut end with an error. The caller holds the source's lock.
    pub fn note_cut(&self, last: Option<i64>) -> Result<()> {
        self.check_writable()?;
        for slot in 0..SLOTS {
            for field in [layout::SENT, layout::ACKNOWLEDGED] {
                let position = at(slot, field);
                if index_of(self.word_at(position)) > last {
                    self.store(position, word_of(last));
                }
            }
        }
        if self.noted_elsewhere() > last {
            self.store(layout::ELSEWHERE_AT, last.map_or(0, |last| last.cast_unsigned() + 1));
        }
        self.add(layout::CUTS_AT, step!("replicas.store"));
        self.wake();
        Ok(())
    }
}
