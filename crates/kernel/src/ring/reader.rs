//! A ring as its readers use it: a tailer at the end of the queue drains a run of messages itself,
//! unless another thread or process is draining, and then reads them from the queue.
//!
//! It holds the drainer's lock for one run only, and tries for the write lock once, so no other
//! thread waits for it. It continues after a dead drainer as other drainers do.

use std::sync::Arc;

use super::handle::{DrainState, OnFull, Ring};
use super::protocol::Next;
use crate::chronicle::protocol::lock::lock_wait::{self, LockWait};
use crate::chronicle::queue::handle::Queue;
use crate::chronicle::read::buffer::{Drained, ReadBuffer};
use crate::os::detached::Detached;
use crate::{Error, Result};

impl Ring {
    /// Opens the ring of a queue that only reads through it, or makes one, and appends what an
    /// earlier process left there. No thread drains it.
    pub fn open_to_read(
        queue: &Arc<Queue>,
        capacity: u64,
        may_wait: &mut Detached,
    ) -> Result<Arc<Self>> {
        let ring = Self::open(queue, capacity, OnFull::Raise, may_wait)?;
        ring.drain_left_or_say(may_wait)?;
        Ok(ring)
    }

    /// Appends the ring's messages, unless another thread or process is draining it or writing to
    /// the queue.
    pub(super) fn try_drain(&self, may_wait: &Detached) -> Result<()> {
        let Some(mut drain_state) = self.drain_state.try_lock() else { return Ok(()) };
        self.and_give_back(&mut drain_state, |drain_state| {
            while self.drain_run(drain_state, may_wait)? {}
            Ok(())
        })
    }

    /// Calls `drain`, and then releases the drainer's lock unless it was held before: a ring
    /// without a thread must not keep the lock from rings that have one.
    fn and_give_back<T>(
        &self,
        drain_state: &mut DrainState,
        drain: impl FnOnce(&mut DrainState) -> Result<T>,
    ) -> Result<T> {
        let is_drainer = drain_state.holds;
        let drained = drain(drain_state);
        if !is_drainer {
            self.give_back(drain_state);
        }
        drained
    }

    /// Drains a run of messages, or another slot; false if there is nothing to drain now, or
    /// another process drains.
    fn drain_run(&self, drain_state: &mut DrainState, may_wait: &Detached) -> Result<bool> {
        while self.hold(drain_state)? {
            match self.try_step(drain_state, may_wait)? {
                Some(0) => {}
                Some(_) => return Ok(true),
                None if drain_state.file.words().next() == Next::Closed => {
                    self.advance(drain_state, may_wait)?;
                }
                None => return Ok(false),
            }
        }
        Ok(false)
    }

    /// Like [`Ring::step`], but does nothing while another writer is working.
    fn try_step(&self, drain_state: &mut DrainState, may_wait: &Detached) -> Result<Option<u64>> {
        lock_wait::set(LockWait::Tries);
        let stepped = self.step(drain_state, may_wait);
        let _ = lock_wait::take(); // a step that appends nothing leaves it
        match stepped {
            Err(
                Error::LockTimeout { .. } | Error::AppendLocked(_) | Error::LeaseExpired { .. },
            ) => Ok(None),
            stepped => stepped,
        }
    }
}

impl ReadBuffer for Ring {
    fn look(&self) -> (Drained, bool) {
        let chain = self.chain();
        let Some(oldest) = chain.first() else { return (Drained::default(), false) };
        let (drained, has_more) = oldest.words().counts();
        ((oldest.number, drained), has_more)
    }

    fn drain_some(&self, may_wait: &Detached) -> Result<bool> {
        let Some(mut drain_state) = self.drain_state.try_lock() else { return Ok(false) };
        if self.check_open().is_err() {
            return Ok(false);
        }
        self.and_give_back(&mut drain_state, |drain_state| self.drain_run(drain_state, may_wait))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chronicle::append::appender::Appender;
    use crate::chronicle::protocol::publish::Payload;
    use crate::chronicle::queue::options::Options;
    use crate::os::interrupt::Signals;
    use crate::ring::format::DEFAULT_CAPACITY;

    const SAME: &[u8] = b"same";

    #[test]
    fn what_others_append_while_a_run_is_refused_is_not_taken_for_the_rest_of_the_last_one() {
        let may_wait = &mut Detached::here();
        let dir = tempfile::tempdir().expect("a directory");
        let queue = Queue::open(dir.path(), Options::default(), may_wait).expect("a queue");
        let ring = Ring::open(&queue, DEFAULT_CAPACITY, OnFull::Raise, may_wait).expect("a ring");
        (0..4).for_each(|_| ring.put(may_wait, Payload::new(SAME), false).expect("room"));
        let other =
            Appender::new(Arc::clone(&queue), Signals::Handled(may_wait)).expect("an appender");

        let mut drain_state = ring.drain_state.try_lock().expect("nobody else");
        assert!(ring.hold(&mut drain_state).expect("the lock"));
        // The first message of a file is appended alone.
        assert_eq!(ring.try_step(&mut drain_state, may_wait).expect("a step"), Some(1));
        other.append(Signals::Deferred(may_wait), None, Payload::new(SAME)).expect("an index");
        let claim = other.claim(Signals::Deferred(may_wait), None, false).expect("the write lock");
        assert_eq!(ring.try_step(&mut drain_state, may_wait).expect("a step"), None);
        other.publish(may_wait, claim, SAME).expect("an index");
        drop(drain_state);
        ring.try_drain(may_wait).expect("drained");

        assert_eq!(queue.entry_count().expect("a count"), 6);
    }
}
