//! Limits a tailer to messages that a replica has acknowledged.

use std::sync::Arc;

use crate::Result;
use crate::chronicle::queue::handle::{LOOK_MS, Queue};
use crate::os::clock;
use crate::replicas::history::History;
use crate::replicas::side_file::ReplicaStates;

/// How far messages are known to be on another machine.
#[derive(Default)]
pub struct Acknowledged {
    states: Option<Arc<ReplicaStates>>,
    looked_ms: Option<i64>,
    /// The greatest index that has been allowed: shown messages stay visible while their history is
    /// the same.
    up_to: Option<i64>,
    history: Option<History>,
}

impl Acknowledged {
    /// Whether the message of an index may be seen.
    pub fn allows(&mut self, queue: &Queue, index: i64) -> Result<bool> {
        let history = self.states.as_deref().map(ReplicaStates::history);
        if self.history != history {
            (self.up_to, self.history) = (None, history);
        }
        if self.up_to < Some(index) {
            self.up_to = self.up_to.max(self.look(queue)?);
        }
        Ok(self.up_to >= Some(index))
    }

    /// The index that all members of the in-sync set have acknowledged; with a Java source, the
    /// index that it has noted in the table.
    fn look(&mut self, queue: &Queue) -> Result<Option<i64>> {
        let now = clock::coarse_time_ms();
        let is_due = |then: i64| now.abs_diff(then) >= LOOK_MS.unsigned_abs();
        if self.states.is_none() || self.looked_ms.is_none_or(is_due) {
            self.looked_ms = Some(now);
            ReplicaStates::look_for(queue.path(), &mut self.states)?;
        }
        match &self.states {
            Some(states) => Ok(states.elsewhere()),
            None => queue.last_acknowledged_index(),
        }
    }
}
