//! Writing at the end of a queue (`docs/protocol.md` §5). Every kind of append takes the write
//! lock, by [`Appender::with_write_lock`] or without waiting, and goes through
//! [`Appender::holding`], which passes it the [`End`] to store through.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use quire_wire::writer;

use super::append_checksums::AppendChecksums;
use super::append_times::AppendTimes;
use super::committer::Committer;
pub use super::end::CLOCK_EVERY;
use super::end::{self, Appended, End, State};
use super::sync;
use crate::chronicle::format::{blocks, document, table};
use crate::chronicle::protocol::lock::gate;
use crate::chronicle::protocol::lock::guard::{DetachedGuard, HeldLock, LockOf, WriteGuard};
use crate::chronicle::protocol::lock::lock_wait::{self, LockWait};
pub use crate::chronicle::protocol::lock::open_document::Claim;
use crate::chronicle::protocol::lock::recovery::{self, ForceUnlock};
use crate::chronicle::protocol::publish::Payload;
use crate::chronicle::protocol::roll_file::RollFile;
use crate::chronicle::protocol::table::store::TableStore;
use crate::chronicle::queue::commit::Durability;
use crate::chronicle::queue::handle::{Handle, LOOK_MS, Queue};
use crate::chronicle::queue::handle_state::HandleState;
use crate::metrics::{Latency, Timer};
use crate::os::detached::{Detached, SharedState, SpinGuard, SpinState};
use crate::os::interrupt::Signals;
use crate::os::{clock, process};
use crate::sealed::packing::{Compression, packed};
use crate::{Error, Result};

/// Writes messages at the end of a queue.
pub struct Appender {
    queue: Arc<Queue>,
    closed: AtomicBool,
    /// The longest message.
    limit: u64,
    /// Whether the files of older cycles have been examined.
    older_ended: AtomicBool,
    state: SpinState<State>,
    /// Never locked together with the state.
    times: SharedState<AppendTimes>,
    /// None unless the queue's options ask for checksums. Locked before the state, and never while
    /// waiting for it.
    checksums: Option<SharedState<AppendChecksums>>,
}

/// The purpose of taking the write lock.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// A message: refused while a replication sink keeps the append lock, and after a failed sync.
    Message,
    /// Metadata, which the holder of the append lock may write.
    Metadata,
    /// No document, only changes of files.
    Files,
    /// A batch from the source: the sink keeps the append lock.
    Replica,
}

impl Appender {
    /// An appender of a queue that was opened for writing.
    pub fn new(queue: Arc<Queue>, signals: Signals<'_>) -> Result<Arc<Self>> {
        let limit = blocks::longest_payload(queue.block());
        Self::with_limit(queue, limit, signals)
    }

    /// An appender of messages that another process has accepted, which may be longer than this
    /// process would accept.
    pub fn of_accepted(queue: Arc<Queue>, signals: Signals<'_>) -> Result<Arc<Self>> {
        Self::with_limit(queue, u64::from(document::LENGTH_MASK), signals)
    }

    fn with_limit(queue: Arc<Queue>, limit: u64, mut signals: Signals<'_>) -> Result<Arc<Self>> {
        queue.check_open("queue")?;
        queue.writable_table("an appender")?.announce(signals.again())?;
        let checksums = queue.options().append_checksums.then(SharedState::default);
        let appender = Arc::new(Self {
            queue,
            closed: AtomicBool::new(false),
            limit,
            older_ended: AtomicBool::new(false),
            state: SpinState::default(),
            times: SharedState::default(),
            checksums,
        });
        let queue = &appender.queue;
        if queue.commit().durability() == Durability::Batch {
            queue.keep_committer(signals.deferred(), || {
                Committer::start(queue).map(|found| found as Arc<dyn Handle>)
            })?;
        }
        let weak = Arc::downgrade(&appender);
        appender.queue.adopt(weak);
        Ok(appender)
    }

    /// The queue.
    #[must_use]
    pub const fn queue(&self) -> &Arc<Queue> {
        &self.queue
    }

    /// Closes the appender.
    pub fn close(&self, may_wait: &Detached) {
        self.closed.store(true, Ordering::Release);
        // In a forked child the lock may be held by a thread that does not exist there.
        if self.queue.check_generation().is_ok() {
            self.release_files(may_wait);
        }
    }

    /// Whether the appender, or its queue, was closed.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire) || self.queue.is_closed()
    }

    /// The index of the last message this appender wrote.
    pub fn last_index_appended(&self, may_wait: &Detached) -> Result<Option<i64>> {
        self.queue.check_generation()?;
        Ok(self.state.lock(may_wait).last_index)
    }

    /// The index of the last message, if that is known without waiting.
    #[must_use]
    pub fn handle_state(&self) -> HandleState {
        if self.queue.check_generation().is_err() {
            return HandleState::Forked;
        }
        self.state.try_lock().map_or(HandleState::Busy, |state| HandleState::At(state.last_index))
    }

    #[inline]
    pub(super) fn check_open(&self) -> Result<()> {
        self.queue.check_open("queue")?;
        if self.closed.load(Ordering::Acquire) { Err(end::closed(&self.queue)) } else { Ok(()) }
    }

    #[inline]
    fn table(&self) -> Result<&TableStore> {
        self.queue.writable_table("an append")
    }

    /// Takes the write lock, waiting for it, and hands out the end of the queue.
    pub(super) fn with_write_lock<T>(
        &self,
        mut signals: Signals<'_>,
        purpose: Purpose,
        now_ms: Option<i64>,
        way: impl FnOnce(&mut End<'_, DetachedGuard<'_>>) -> Result<T>,
    ) -> Result<T> {
        let (timer, table) = (Timer::start(self.queue.metrics()), self.table()?);
        if purpose != Purpose::Files {
            self.queue.commit().check()?;
        }
        self.check_open()?;
        if matches!(purpose, Purpose::Message | Purpose::Metadata) {
            self.queue.options().encryption.check_key(self.queue.path())?;
        }
        let is_replica = purpose == Purpose::Replica;
        let may_hold = is_replica || purpose == Purpose::Metadata;
        gate::check(table.append_lock(), may_hold)?;
        let lock_wait = lock_wait::take();
        if !is_replica && !self.older_ended.load(Ordering::Relaxed) {
            self.end_older(signals.again(), table, lock_wait, now_ms)?;
            self.older_ended.store(true, Ordering::Relaxed);
        }
        let guard = self.take_lock(signals, table, lock_wait)?;
        if is_replica {
            gate::check_kept(table.append_lock())?;
        } else {
            gate::check(table.append_lock(), may_hold)?;
        }
        self.holding(table, guard, timer, now_ms, way)
    }

    /// Like [`Self::holding_state`], for a thread that may wait; then stores append times and
    /// checksums, and syncs if the queue promises that.
    fn holding<T>(
        &self,
        table: &TableStore,
        guard: DetachedGuard<'_>,
        timer: Timer<'_>,
        now_ms: Option<i64>,
        way: impl FnOnce(&mut End<'_, DetachedGuard<'_>>) -> Result<T>,
    ) -> Result<T> {
        let may_wait = guard.may_wait();
        let (state, mut appended) = (self.state.lock(may_wait), Appended::default());
        let done = self.holding_state(state, table, guard, now_ms, &mut appended, way);
        self.note_time(may_wait, appended.last, now_ms);
        if let Some(checksums) = &self.checksums {
            checksums.lock(may_wait).note(&self.queue, appended.span());
        }
        // Matched in place: copying a `Result` would take longer than much of an append.
        let done = match done {
            Ok(done) => match self.make_durable(may_wait, appended.last) {
                Ok(()) => Ok(done),
                Err(error) => Err(error),
            },
            Err(error) => Err(not_alone(table, error)),
        };
        timer.appended(appended.messages, appended.bytes);
        done
    }

    /// Calls `way` with the end of the queue under the write lock, and then releases both locks.
    /// `appended` is set even if `way` fails.
    #[inline]
    fn holding_state<'g, T, G: HeldLock<'g>>(
        &self,
        mut state: SpinGuard<'_, State>,
        table: &TableStore,
        guard: G,
        now_ms: Option<i64>,
        appended: &mut Appended,
        way: impl FnOnce(&mut End<'_, G>) -> Result<T>,
    ) -> Result<T> {
        self.check_open()?; // another thread may have closed it before it released the lock
        let mut end = End::new(&self.queue, self.limit, table, &guard, &mut state, now_ms);
        let done = way(&mut end);
        let keeps_lock = end.keeps_lock;
        *appended = end.appended;
        if appended.last.is_some() {
            state.last_index = appended.last;
        }
        let sleepers = if state.is_awaited() { state.sleepers.clone() } else { None };
        drop(state);
        if keeps_lock {
            guard.keep();
        } else {
            drop(guard);
        }
        if let Some(file) = sleepers {
            file.wake(); // P3 and P4 of `waiting/word.rs`, without the write lock
        }
        done
    }

    /// Steps 1 and 2; None if they need a wait or a sync must follow the append.
    #[inline]
    fn try_lock<'a>(&self, table: &'a TableStore) -> Result<Option<WriteGuard<'a>>> {
        self.check_open()?;
        self.queue.options().encryption.check_key(self.queue.path())?;
        Ok(if self.queue.commit().is_slow() { None } else { table.try_write() })
    }

    /// Step 2.
    pub(super) fn take_lock<'a>(
        &self,
        signals: Signals<'a>,
        table: &'a TableStore,
        lock_wait: LockWait,
    ) -> Result<DetachedGuard<'a>> {
        let mode = self.queue.options().force_unlock;
        let waited_ms = if let LockWait::HasWaited(ms) = lock_wait { ms } else { 0 };
        if table.document().is_own() {
            let (lock, holder, mode) = (LockOf::Queue.name(), process::pid(), mode.name());
            let (held_ms, place) = (table.held_ms(holder), String::new());
            return Err(match lock_wait {
                LockWait::Waits => Error::DocumentOpen,
                // Another task of this thread may close it.
                _ => Error::LockTimeout { lock, holder, held_ms, waited_ms, mode, place },
            });
        }
        let (mode, timeout) = match lock_wait {
            LockWait::Waits => (mode, self.lock_timeout()),
            LockWait::Tries if mode == ForceUnlock::Always => (ForceUnlock::Dead, Duration::ZERO),
            LockWait::Tries | LockWait::HasWaited(_) => (mode, Duration::ZERO),
        };
        let timer = Timer::start(self.queue.metrics().filter(|_| self.is_locked()));
        let taken = recovery::wait_to_write(table, mode, timeout, signals);
        timer.took(Latency::LockWait);
        // Checked after the wait: once the last queue is closed, the table is unmapped, and the
        // lock is private to this process.
        self.check_open()?;
        taken.map_err(|mut error| {
            if let (Error::LockTimeout { waited_ms: all_ms, .. }, LockWait::HasWaited(_)) =
                (&mut error, lock_wait)
            {
                *all_ms = waited_ms;
            }
            error
        })
    }

    /// Appends one message and returns its index, if that needs neither waiting nor a system call;
    /// None otherwise, and the caller calls [`Self::append`].
    #[inline]
    pub fn try_append(&self, now_ms: Option<i64>, payload: Payload<'_>) -> Result<Option<i64>> {
        packed(self.compression(), payload, |stored| match &self.checksums {
            None => self.try_append_stored(now_ms, stored, &mut Appended::default()),
            Some(checksums) => self.try_append_summed(checksums, now_ms, stored),
        })
    }

    /// Like [`Self::try_append_stored`], and also stores the message's checksum.
    fn try_append_summed(
        &self,
        checksums: &SharedState<AppendChecksums>,
        now_ms: Option<i64>,
        payload: Payload<'_>,
    ) -> Result<Option<i64>> {
        let Some(mut checksums) = checksums.try_lock() else { return Ok(None) };
        if checksums.is_behind() {
            return Ok(None);
        }
        let mut appended = Appended::default();
        let done = self.try_append_stored(now_ms, payload, &mut appended);
        if let Some(span) = appended.span() {
            checksums.note_soon(&self.queue, span);
        }
        done
    }

    #[inline]
    fn try_append_stored(
        &self,
        now_ms: Option<i64>,
        payload: Payload<'_>,
        appended: &mut Appended,
    ) -> Result<Option<i64>> {
        let (timer, table) = (Timer::start(self.queue.metrics()), self.table()?);
        let Some(guard) = self.try_lock(table)? else { return Ok(None) };
        if !gate::is_open(table.append_lock()) {
            gate::check(table.append_lock(), false)?;
        }
        let Some(state) = self.state.try_lock() else { return Ok(None) };
        let done = self
            .holding_state(state, table, guard, now_ms, appended, |end| end.try_append(payload));
        timer.appended(appended.messages, appended.bytes);
        // Matched in place: copying a `Result` would take longer than much of an append.
        match done {
            Err(error) => Err(not_alone(table, error)),
            done => done,
        }
    }

    /// Appends one message and returns its index.
    pub fn append(
        &self,
        mut signals: Signals<'_>,
        now_ms: Option<i64>,
        payload: Payload<'_>,
    ) -> Result<i64> {
        // Compressed before taking the lock, for which others may wait.
        let (index, is_low) = packed(self.compression(), payload, |stored| {
            self.with_write_lock(signals.again(), Purpose::Message, now_ms, |end| {
                end.choose_cycle()?;
                let index = end.append(stored)?;
                Ok((index, end.take_low()))
            })
        })?;
        if is_low {
            self.take_ahead(signals.deferred());
        }
        Ok(index)
    }

    /// Appends a metadata document.
    pub fn append_metadata(
        &self,
        signals: Signals<'_>,
        now_ms: Option<i64>,
        document: &[u8],
    ) -> Result<()> {
        self.with_write_lock(signals, Purpose::Metadata, now_ms, |end| {
            end.choose_cycle()?;
            end.append_metadata(or_empty(document)).map(drop)
        })
    }

    /// Takes the next step of space between messages, without the write lock.
    #[cold]
    fn take_ahead(&self, may_wait: &Detached) {
        let Ok(()) = self.queue.check_generation() else { return };
        let found = {
            let state = self.state.lock(may_wait);
            state.tail.as_ref().map(|tail| (Arc::clone(tail.view.file()), tail.end()))
        };
        let Some((file, end)) = found else { return };
        if let Some(to) = file.window.take_ahead(end)
            && let Some(tail) = &mut self.state.lock(may_wait).tail
            && Arc::ptr_eq(tail.view.file(), &file)
        {
            tail.note_writable(to);
        }
    }

    /// Claims the place of the next document; the write lock stays held.
    pub fn claim(
        &self,
        mut signals: Signals<'_>,
        now_ms: Option<i64>,
        metadata: bool,
    ) -> Result<Claim> {
        let purpose = if metadata { Purpose::Metadata } else { Purpose::Message };
        self.check_open()?;
        self.table()?.prepare_held(signals.again())?;
        self.with_write_lock(signals, purpose, now_ms, |end| {
            end.choose_cycle()?;
            let index = end.next_index(metadata)?;
            let document = end.table().document().open();
            end.table().note_held();
            end.keeps_lock = true;
            Ok(Claim { index, metadata, document, looked_ms: clock::coarse_time_ms(), now_ms })
        })
    }

    /// Whether a claim would have to wait.
    #[must_use]
    pub fn is_locked(&self) -> bool {
        self.table().is_ok_and(|table| table.write_lock().word.read() != table::UNLOCKED)
    }

    /// Publishes a claimed document and releases the write lock; returns its index.
    #[allow(clippy::needless_pass_by_value)] // a claim is used up
    pub fn publish(&self, may_wait: &Detached, claim: Claim, payload: &[u8]) -> Result<i64> {
        self.queue.check_generation()?;
        let (timer, table) = (Timer::start(self.queue.metrics()), self.table()?);
        let guard = DetachedGuard::new(self.lock_of(table, &claim)?, may_wait);
        self.holding(table, guard, timer, claim.now_ms, |end| {
            end.guard().check_held()?;
            if clock::coarse_time_ms().abs_diff(claim.looked_ms) >= LOOK_MS.unsigned_abs() {
                end.table().shared.check_present()?;
            }
            end.check_lease()?;
            end.go_to(claim.index)?;
            let payload = or_empty(payload);
            if claim.metadata {
                return end.append_metadata(payload);
            }
            packed(self.compression(), payload, |payload| end.append(payload))
        })
    }

    /// The write lock that a claim holds.
    fn lock_of<'a>(&self, table: &'a TableStore, claim: &Claim) -> Result<WriteGuard<'a>> {
        table.take_document(claim.document).ok_or_else(|| {
            let (expected, found) = (u64::from(process::pid()), table.write_lock().word.read());
            let closed = self.queue.check_open("queue").err();
            closed.unwrap_or(Error::LockLost { expected, found })
        })
    }

    /// Gives up a claimed place: nothing was stored.
    #[allow(clippy::needless_pass_by_value)] // a claim is used up
    pub fn give_up(&self, claim: Claim) {
        if self.queue.check_generation().is_ok()
            && let Ok(table) = self.table()
        {
            drop(table.take_document(claim.document));
        }
    }

    /// Writes the end-of-file marker into every cycle before the newest that lacks one.
    pub fn normalise_eofs(&self, signals: Signals<'_>, now_ms: Option<i64>) -> Result<()> {
        self.with_write_lock(signals, Purpose::Files, now_ms, |end| {
            end.choose_cycle()?;
            end.normalise()
        })
    }

    /// Creates the file of the current cycle if there is none, as an append does, and appends
    /// nothing.
    pub fn prepare(&self, signals: Signals<'_>, now_ms: Option<i64>) -> Result<()> {
        self.with_write_lock(signals, Purpose::Files, now_ms, |end| {
            end.choose_cycle()?;
            end.tail().map(drop)
        })
    }

    /// Creates the file of a later cycle if there is none; the first append there announces it.
    pub fn prepare_cycle(&self, signals: Signals<'_>, cycle: i32) -> Result<Arc<RollFile>> {
        self.with_write_lock(signals, Purpose::Files, None, |end| {
            self.queue.file_for_append(cycle, end.guard()).map(|(file, _)| file)
        })
    }

    /// Records the append time of messages up to `last`, after the write lock was released.
    #[inline]
    fn note_time(&self, may_wait: &Detached, last: Option<i64>, now_ms: Option<i64>) {
        if let (true, Some(last)) = (self.queue.options().time_index, last) {
            let now = now_ms.unwrap_or_else(|| self.queue.options().clock.exact_ms());
            self.times.lock(may_wait).note(&self.queue, last, now);
        }
    }

    /// If appends are to be durable when they return: syncs messages up to `last`, unless another
    /// thread's sync has covered them meanwhile.
    #[inline]
    fn make_durable(&self, may_wait: &Detached, last: Option<i64>) -> Result<()> {
        let commit = self.queue.commit();
        match last {
            Some(last) if commit.durability() == Durability::Each => {
                self.sync_up_to(may_wait, last)
            }
            _ => Ok(()),
        }
    }

    #[cold]
    fn sync_up_to(&self, may_wait: &Detached, index: i64) -> Result<()> {
        let commit = self.queue.commit();
        let _syncing = commit.lock_syncing(may_wait);
        if commit.synced() >= index {
            return Ok(());
        }
        may_wait.sleep(commit.collects_for());
        let last = self.queue.last_index_left()?;
        self.sync(may_wait)?;
        commit.note(last.unwrap_or(index));
        Ok(())
    }

    /// Returns when every message that was in the queue at the time of the call is on the medium.
    pub fn sync(&self, may_wait: &Detached) -> Result<()> {
        self.check_open()?;
        let table = self.table()?;
        table.shared.check_present()?;
        let (own, last) = {
            let State { tail, unsynced, last_index, .. } = &mut *self.state.lock(may_wait);
            unsynced.check_nothing_lost(tail.as_mut())?;
            (unsynced.begin(tail.as_ref()), *last_index)
        };
        let synced = sync::sync(may_wait, &self.queue, table, own);
        self.state.lock(may_wait).unsynced.end(own, last, synced.is_ok());
        synced
    }

    /// The time of an append.
    #[inline]
    pub(super) fn now(&self, now_ms: Option<i64>) -> i64 {
        end::time_of(&self.queue, now_ms)
    }

    /// How long an append waits for the write lock.
    #[must_use]
    pub fn lock_timeout(&self) -> Duration {
        // Java waits 1.5 times its queue's timeout.
        self.queue.options().timeout.mul_f64(1.5)
    }

    pub(super) fn compression(&self) -> Option<&Compression> {
        self.queue.compressing().ahead()
    }

    /// Whether a message of this length can be written.
    pub fn check_length(&self, length: u64) -> Result<()> {
        end::check_length(&self.queue, self.limit, length)
    }
}

impl Handle for Appender {
    fn release_files(&self, may_wait: &Detached) {
        self.state.lock(may_wait).tail = None;
        *self.times.lock(may_wait) = AppendTimes::default();
        if let Some(checksums) = &self.checksums {
            std::mem::take(&mut *checksums.lock(may_wait)).note(&self.queue, None);
        }
    }

    fn release_files_of(&self, may_wait: &Detached, _queue: &Queue) {
        self.release_files(may_wait);
        self.state.lock(may_wait).sleepers = None;
    }
}

/// Replaces an error due to another writer's changes by one about the table, if the table was lost.
#[cold]
fn not_alone(table: &TableStore, error: Error) -> Error {
    match error {
        Error::Corrupt { .. } => table.shared.check_present().err().unwrap_or(error),
        _ => error,
    }
}

/// The payload of a document; if nothing was written to it, the encoding of an empty one.
const fn or_empty(bytes: &[u8]) -> Payload<'_> {
    Payload::new(if bytes.is_empty() { &writer::EMPTY_PAYLOAD } else { bytes })
}
