//! A ring as its readers use it: a tailer that comes to the end of the queue drains a run of messages
//! itself, unless another thread or process is draining, and then reads them from the queue.
//!
//! It holds the drainer's lock for one run only, and has none waiting for it: it tries for the write
//! lock once. Dead drainers leave it the same as they leave to each other.

use std::sync::{Arc, MutexGuard, TryLockError};

use super::handle::{OnFull, Ring, Turn};
use super::protocol::Next;
use crate::chronicle::protocol::lock::patience::{self, Patience};
use crate::chronicle::queue::handle::Queue;
use crate::chronicle::read::buffer::{Drained, ReadBuffer};
use crate::{Error, Result};

impl Ring {
    /// Opens the ring of a queue that only reads through it, or makes one, and appends what an
    /// earlier process left there. No thread drains it.
    pub fn open_to_read(queue: &Arc<Queue>, capacity: u64) -> Result<Arc<Self>> {
        let ring = Self::open(queue, capacity, OnFull::Raise)?;
        ring.drain_left()?;
        Ok(ring)
    }

    fn try_turn(&self) -> Option<MutexGuard<'_, Turn>> {
        match self.turn.try_lock() {
            Ok(turn) => Some(turn),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Appends what is in the ring, as far as nobody else is draining it or writing to the queue.
    pub(super) fn try_drain(&self) -> Result<()> {
        let Some(mut turn) = self.try_turn() else { return Ok(()) };
        while self.drain_run(&mut turn)? {}
        Ok(())
    }

    /// Drains a run of messages, or another slot; false if there is nothing to be drained now, or
    /// another process drains.
    fn drain_run(&self, turn: &mut Turn) -> Result<bool> {
        while self.hold(turn)? {
            match self.try_step(turn)? {
                Some(0) => {}
                Some(_) => return Ok(true),
                None if turn.file.words().next() == Next::Closed => self.advance(turn)?,
                None => return Ok(false),
            }
        }
        Ok(false)
    }

    /// As [`Ring::step`], but does nothing while another writer is at work.
    fn try_step(&self, turn: &mut Turn) -> Result<Option<u64>> {
        patience::set(Patience::Tries);
        let stepped = self.step(turn);
        let _ = patience::take(); // a step that appends nothing leaves it
        match stepped {
            Err(Error::LockTimeout { .. } | Error::AppendLocked(_)) => Ok(None),
            stepped => stepped,
        }
    }
}

impl ReadBuffer for Ring {
    fn look(&self) -> (Drained, bool) {
        let chain = self.chain();
        let Some(oldest) = chain.first() else { return (Drained::default(), false) };
        let (drained, has_more) = oldest.words().glance();
        ((oldest.number, drained), has_more)
    }

    fn drain_some(&self) -> Result<bool> {
        let Some(mut turn) = self.try_turn() else { return Ok(false) };
        if self.check_open().is_err() {
            return Ok(false);
        }
        let is_drainer = turn.holds;
        let drained = self.drain_run(&mut turn);
        if !is_drainer {
            self.give_back(&mut turn);
        }
        drained
    }
}
