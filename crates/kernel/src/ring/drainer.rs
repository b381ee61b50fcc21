//! Draining a ring: appends its messages to the queue, in order and each once.
//!
//! One process drains at a time: it holds a lock on the file, which the system releases when it
//! dies. Threads of other processes check now and then whether to take over. A drainer stores in
//! the ring what it is about to append, and at which index. Its successor compares the messages
//! there with the ring's, and counts those that are equal as appended.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use super::file::RingFile;
use super::format::SUM_LEN;
use super::handle::{DrainState, OnFull, Ring};
use super::protocol::{Entry, Intent, Next, Ring as Words};
use crate::chronicle::protocol::lock::lock_wait::{self, LockWait};
use crate::chronicle::protocol::publish::Payload;
use crate::chronicle::queue::handle::Queue;
use crate::os::detached::Detached;
use crate::os::interrupt::{self, Signals};
use crate::os::process;
use crate::os::threads::{self, Running};
use crate::{Error, Result, warnings};

/// How many messages, and about how many bytes, are appended under one lock.
const RUN: usize = 256;
const RUN_BYTES: u64 = 1 << 20;
/// How long a message may stay incomplete before the drainer checks whether its producer is alive.
const PATIENCE: Duration = Duration::from_millis(20);
/// How the thread waits: it first yields, then sleeps for increasing times, and for `OTHERS_PAUSE`
/// while another process drains or after an error.
const YIELDS: u32 = 64;
const LONGEST_PAUSE: Duration = Duration::from_millis(1);
const OTHERS_PAUSE: Duration = Duration::from_millis(20);

impl Ring {
    /// Appends messages that an earlier process left in a queue's ring, unless another process
    /// drains it. Messages that cannot be appended now, for example on a full disk, are appended
    /// later by a thread of the returned ring.
    pub fn drain_left_over(
        queue: &Arc<Queue>,
        may_wait: &mut Detached,
    ) -> Result<Option<Arc<Self>>> {
        let directory = Arc::new(queue.own_directory()?);
        let file = RingFile::open(&directory, &mut Signals::Handled(may_wait))?;
        let Some(file) = file else { return Ok(None) };
        let ring = Self::with(queue, file, OnFull::Raise, may_wait)?;
        match ring.drain_left_or_say(may_wait) {
            Ok(true) => {
                ring.close(may_wait);
                Ok(None)
            }
            Ok(false) => {
                ring.is_left_over.store(true, Ordering::Release);
                ring.start()?;
                Ok(Some(ring))
            }
            Err(error) => {
                ring.close(may_wait);
                Err(error)
            }
        }
    }

    /// Logs and returns false if the ring's messages cannot be appended now; an error if the ring
    /// cannot be read.
    pub(super) fn drain_left_or_say(&self, may_wait: &mut Detached) -> Result<bool> {
        match self.drain_left(may_wait) {
            Err(error) if self.is_of_queue(&error) => {
                self.give_back(&mut self.drain_state.lock(may_wait));
                warnings::leave(format!(
                    "messages stay in the ring, and are appended later: path={} error={error}",
                    self.path().display()
                ));
                Ok(false)
            }
            drained => drained.map(|()| true),
        }
    }

    /// Whether an error came from appending to the queue: the messages then stay in the ring.
    fn is_of_queue(&self, error: &Error) -> bool {
        let is_of_ring = |path: &Path| {
            path.parent() == Some(self.queue().path())
                && path.extension() == self.path().extension()
        };
        match error {
            Error::Interrupted | Error::Closed { .. } | Error::Forked | Error::Unsupported(_) => {
                false
            }
            Error::Corrupt { file, .. } => !is_of_ring(file),
            Error::Io { path, .. } => !is_of_ring(path),
            _ => true,
        }
    }

    pub(super) fn drain_left(&self, may_wait: &mut Detached) -> Result<()> {
        let mut drained = self.drain_by_tries(Signals::Handled(may_wait), Duration::ZERO)?;
        // The slot of a dead producer is given up after a while.
        let start = Instant::now();
        while drained.is_some() && !self.is_empty(may_wait)? && start.elapsed() < 4 * PATIENCE {
            may_wait.sleep(LONGEST_PAUSE);
            drained = self.drain_by_tries(Signals::Handled(may_wait), Duration::ZERO)?;
        }
        self.give_back(&mut self.drain_state.lock(may_wait));
        Ok(())
    }

    fn is_left_over_and_empty(&self, may_wait: &Detached) -> bool {
        let is_done =
            self.is_left_over.load(Ordering::Acquire) && self.is_empty(may_wait).is_ok_and(|it| it);
        if is_done {
            self.give_back(&mut self.drain_state.lock(may_wait));
        }
        is_done
    }

    fn is_empty(&self, may_wait: &Detached) -> Result<bool> {
        let words = self.newest(Signals::Deferred(may_wait))?;
        let words = words.words();
        Ok(words.has_begun() && words.drained() >= words.tail())
    }

    /// Starts a thread that drains the ring until it is closed.
    pub fn start(self: &Arc<Self>) -> Result<()> {
        let weak = Arc::downgrade(self);
        let builder = std::thread::Builder::new().name("quire-drain".into());
        let started = builder.spawn(move || run(&weak));
        let started = started.map_err(|e| Error::io("cannot start a thread", self.path(), e))?;
        *self.lock_thread() = Some(Running::new(started));
        Ok(())
    }

    fn lock_thread(&self) -> MutexGuard<'_, Option<Running>> {
        self.thread.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends the ring's messages; returns the number of slots, or None if another process drains.
    pub fn drain(&self, may_wait: &Detached) -> Result<Option<u64>> {
        self.drain_with(LockWait::Waits, may_wait)
    }

    /// Like [`Ring::drain`], but only tries for the write lock, and checks for signals between
    /// tries while holding nothing. Times out as a blocking wait would; `before` is how long the
    /// caller has waited already.
    fn drain_by_tries(&self, mut signals: Signals<'_>, before: Duration) -> Result<Option<u64>> {
        let start = Instant::now();
        loop {
            let waited = before.saturating_add(start.elapsed());
            let is_over = waited >= self.timeout();
            let lock_wait =
                if is_over { LockWait::HasWaited(millis(waited)) } else { LockWait::Tries };
            match self.drain_with(lock_wait, signals.again().deferred()) {
                Err(Error::LockTimeout { .. }) if !is_over => {}
                drained => return drained,
            }
            signals.check()?;
            signals.again().deferred().sleep(LONGEST_PAUSE);
        }
    }

    fn drain_with(&self, lock_wait: LockWait, may_wait: &Detached) -> Result<Option<u64>> {
        let drained = self.drain_steps(lock_wait, may_wait);
        let _ = lock_wait::take(); // a step that appends nothing does not take it
        drained
    }

    fn drain_steps(&self, lock_wait: LockWait, may_wait: &Detached) -> Result<Option<u64>> {
        let mut drain_state = self.drain_state.lock(may_wait);
        let mut drained = 0;
        while self.hold(&mut drain_state)? {
            lock_wait::set(lock_wait);
            while let Some(count) = self.step(&mut drain_state, may_wait)? {
                drained += count;
                lock_wait::set(lock_wait);
            }
            if drain_state.file.words().next() != Next::Closed {
                return Ok(Some(drained));
            }
            self.advance(&mut drain_state, may_wait)?;
        }
        Ok(None)
    }

    /// Takes the drainer's lock unless this ring holds it already; false if another process drains.
    pub(super) fn hold(&self, drain_state: &mut DrainState) -> Result<bool> {
        if !drain_state.holds {
            if !drain_state.file.try_hold()? {
                return Ok(false);
            }
            (drain_state.holds, drain_state.is_in_doubt) = (true, true);
        }
        if drain_state.is_in_doubt {
            self.settle(drain_state.file.words())?;
            drain_state.is_in_doubt = false;
        }
        Ok(true)
    }

    /// Releases the drainer's lock, if held.
    pub(super) fn give_back(&self, drain_state: &mut DrainState) {
        if !std::mem::take(&mut drain_state.holds) {
            return;
        }
        if !drain_state.is_in_doubt || self.settle(drain_state.file.words()).is_ok() {
            drain_state.file.words().intend_nothing();
        }
        drain_state.file.release();
    }

    /// Advances to the successor of a ring that is closed and drained.
    pub(super) fn advance(&self, drain_state: &mut DrainState, may_wait: &Detached) -> Result<()> {
        let next = self.after(&drain_state.file, may_wait)?;
        let holds = next.try_hold()?;
        if holds && let Err(error) = Self::hand_over(&drain_state.file, &next) {
            next.release();
            return Err(error);
        }
        drain_state.file.release();
        *drain_state = DrainState::at(next, holds);
        self.forget_drained();
        Ok(())
    }

    /// Starts a successor, unless another drainer has done so.
    fn hand_over(drained: &RingFile, next: &RingFile) -> Result<()> {
        if drained.is_head()? {
            next.words().begin_after(drained.words());
            next.sync_header()?;
            drained.hand_over()?;
        } else if drained.is_removed()? {
            next.words().begin_after(drained.words()); // its messages may be drained now
        }
        Ok(())
    }

    /// Drains a run of messages, or one other slot; None if there is nothing to drain now.
    pub(super) fn step(
        &self,
        drain_state: &mut DrainState,
        may_wait: &Detached,
    ) -> Result<Option<u64>> {
        let file = Arc::clone(&drain_state.file);
        let words = file.words();
        let run = next_run(words);
        if let Some((first, _)) = run.first() {
            let slot = first.slot;
            let intend = |index, count: usize| {
                drain_state.is_in_doubt = true;
                words.intend(Intent { slot, index, count: count as u64 });
            };
            let payload = |number: usize| Payload::new(&run[number].1);
            let signals = Signals::Deferred(may_wait);
            let appended = self.appender.append_run(signals, run.len(), payload, intend)?;
            if let Some((last, _)) = run[..appended].last() {
                self.note_drained(words, last)?;
            }
            run[..appended].iter().for_each(|(entry, _)| words.free(entry));
            drain_state.is_in_doubt = false;
            return Ok(Some(appended as u64));
        }
        match words.next() {
            Next::Message(entry) => match words.message(&entry) {
                Some(bytes) if entry.metadata => {
                    self.appender.append_metadata(Signals::Deferred(may_wait), None, &bytes)?;
                    self.note_drained(words, &entry)?;
                    words.free(&entry);
                }
                Some(_) => return Ok(Some(0)), // complete since the run was collected
                None => self.drop_partial(words, &entry),
            },
            Next::Abandoned(entry) => words.free(&entry),
            Next::Working { slot, producer } => {
                return self
                    .look_at(slot, producer, drain_state)
                    .map(|given_up| given_up.then_some(0));
            }
            Next::Nothing | Next::Closed => return Ok(None),
            Next::Damaged { .. } => return Err(self.damaged()),
        }
        Ok(Some(1))
    }

    /// Notes that a message and those before it are in the queue.
    fn note_drained(&self, words: Words<'_>, entry: &Entry) -> Result<()> {
        self.noted.note(self.queue().writable_table("a ring")?, words, entry.slot + 1);
        Ok(())
    }

    /// Frees the slot of a message that lost some of its bytes in a power cut.
    fn drop_partial(&self, words: Words<'_>, entry: &Entry) {
        words.free(entry);
        warnings::leave(format!(
            "an incomplete message in the ring, as a power cut may leave, is dropped: path={} \
             length={}",
            self.path().display(),
            entry.length - SUM_LEN.min(entry.length)
        ));
    }

    /// Gives up an unfinished slot if its producer is dead; returns whether it did.
    fn look_at(&self, slot: u64, producer: u32, drain_state: &mut DrainState) -> Result<bool> {
        match drain_state.waits {
            Some((found, since)) if found == slot => {
                if since.elapsed() < PATIENCE
                    || !drain_state.file.is_dead(producer)?
                    || !drain_state.file.words().abandon(slot)
                {
                    return Ok(false);
                }
                warnings::leave(format!(
                    "a producer died while it put a message into the ring, which is dropped: \
                     path={}",
                    self.path().display()
                ));
                Ok(true)
            }
            _ => {
                drain_state.waits = Some((slot, Instant::now()));
                Ok(false)
            }
        }
    }

    /// Frees the messages that the previous drainer appended but did not free. If the queue's
    /// messages cannot be read, for example without their dictionary, that is an error, and nothing
    /// is appended until a call of [`Ring::flush_again`].
    fn settle(&self, words: Words<'_>) -> Result<()> {
        let Some(intent) = words.intent() else { return Ok(()) };
        while let Next::Message(entry) = words.next()
            && let Some(after) = entry.slot.checked_sub(intent.slot)
            && after < intent.count
            && let Some(bytes) = words.message(&entry)
            && let index = intent.index.saturating_add_unsigned(after)
            && self.is_appended(index, &bytes, intent.count - after)?
        {
            words.free(&entry);
        }
        Ok(())
    }

    /// Whether a message that a drainer was about to append is in the queue; `left` counts it and
    /// those after it.
    fn is_appended(&self, index: i64, bytes: &[u8], left: u64) -> Result<bool> {
        match self.queue().message_at(index) {
            Err(error) if self.appends_again.load(Ordering::Acquire) => {
                warnings::leave(format!(
                    "messages that a dead drainer may have appended are appended again: \
                     messages={left} error={error}"
                ));
                Ok(false)
            }
            found => Ok(found?.is_some_and(|found| found == bytes)),
        }
    }

    /// Like [`Ring::flush`], but also appends again messages that a dead drainer may have appended,
    /// if the queue's copies can no longer be read.
    pub fn flush_again(&self, may_wait: &mut Detached, timeout: Duration) -> Result<()> {
        self.appends_again.store(true, Ordering::Release);
        let flushed = self.flush(may_wait, timeout);
        self.appends_again.store(false, Ordering::Release);
        flushed
    }

    /// Returns when everything put in before the call is in the queue. A signal handler may call
    /// it, too: no lock is held during the wait.
    pub fn flush(&self, may_wait: &mut Detached, timeout: Duration) -> Result<()> {
        self.check_open()?;
        let (newest, start) = (self.newest(Signals::Handled(may_wait))?, Instant::now());
        let words = newest.words();
        let target = words.tail();
        loop {
            self.try_drain(may_wait)?;
            if words.has_begun() && words.drained() >= target {
                return Ok(());
            }
            self.check_present()?;
            let waited = start.elapsed();
            if waited >= timeout {
                let waited_ms = millis(waited);
                let pending = self.stats(Signals::Handled(may_wait))?.pending;
                let path = self.path().to_path_buf();
                return Err(Error::RingNotDrained { path, pending, waited_ms });
            }
            interrupt::check(may_wait)?;
            may_wait.sleep(LONGEST_PAUSE);
        }
    }

    /// Stops taking messages and drains those in the ring, unless another process does.
    pub fn close(&self, may_wait: &Detached) {
        if self.is_ended.swap(true, Ordering::AcqRel) || self.generation != process::generation() {
            return;
        }
        let had_thread = self.lock_thread().is_some();
        threads::join(may_wait, &self.thread);
        // Drain what the thread left. If it has timed out waiting for the write lock, try only
        // once.
        let has_waited = self.has_waited.load(Ordering::Acquire);
        let before = if has_waited { self.timeout() } else { Duration::ZERO };
        if had_thread && let Err(error) = self.drain_by_tries(Signals::Deferred(may_wait), before) {
            warnings::leave(format!("messages stay in the ring until it is opened again: {error}"));
        }
        self.give_back(&mut self.drain_state.lock(may_wait));
        self.appender.close(may_wait);
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// The next messages other than metadata.
fn next_run(words: Words<'_>) -> Vec<(Entry, Vec<u8>)> {
    let (mut run, mut bytes) = (Vec::new(), 0);
    let mut next = words.next();
    while let Next::Message(entry) = next
        && !entry.metadata
        && run.len() < RUN
        && bytes < RUN_BYTES
        && let Some(message) = words.message(&entry)
    {
        run.push((entry, message));
        bytes += entry.length;
        next = words.after(&entry);
    }
    run
}

/// The thread's work. Errors are logged when they change: the disk may have room again later.
fn run(ring: &Weak<Ring>) {
    let (may_wait, mut reported, mut idle) = (&Detached::here(), String::new(), 0_u32);
    while let Some(ring) = ring.upgrade().filter(|ring| ring.check_open().is_ok()) {
        // A ring without a name is drained as well: it has acknowledged messages.
        let drained = ring.drain(may_wait).and_then(|count| ring.check_present().map(|()| count));
        let pause = match drained {
            Ok(Some(0)) if ring.is_left_over_and_empty(may_wait) => return,
            Ok(Some(0)) => {
                idle = idle.saturating_add(1);
                LONGEST_PAUSE.min(Duration::from_micros(10) * idle.saturating_sub(YIELDS))
            }
            Ok(Some(_)) => {
                (idle, reported) = (0, String::new());
                Duration::ZERO
            }
            Ok(None) => OTHERS_PAUSE,
            Err(error) => {
                let is_timeout = matches!(error, Error::LockTimeout { .. });
                if is_timeout && ring.is_ended.load(Ordering::Acquire) {
                    ring.has_waited.store(true, Ordering::Release);
                }
                let text =
                    format!("the ring cannot be drained; another attempt follows: error={error}");
                if text != reported {
                    warnings::leave(text.clone());
                    reported = text;
                }
                OTHERS_PAUSE
            }
        };
        drop(ring);
        match pause {
            Duration::ZERO => std::thread::yield_now(),
            pause => std::thread::park_timeout(pause),
        }
    }
}
