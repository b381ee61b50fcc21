//! Writing at the end of a queue (`docs/protocol.md` §5). This is the handle; `steps` are the ten steps
//! of an append.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use spin::mutex::{SpinMutex, SpinMutexGuard};

use quire_wire::out::Out;
use quire_wire::writer;

use super::committer::Committer;
use super::end::Tail;
use super::sync::{self, Unsynced};
use super::times::AppendTimes;
use crate::chronicle::format::{blocks, document, table};
use crate::chronicle::protocol::listing;
use crate::chronicle::protocol::lock::gate;
use crate::chronicle::protocol::lock::guard::WriteGuard;
pub use crate::chronicle::protocol::lock::open_document::Claim;
use crate::chronicle::protocol::publish::Payload;
use crate::chronicle::protocol::roll_file::RollFile;
use crate::chronicle::protocol::table::store::TableStore;
use crate::chronicle::queue::commit::Durability;
use crate::chronicle::queue::glance::Glance;
use crate::chronicle::queue::handle::{Handle, LOOK_MS, Queue};
use crate::os::{clock, process};
use crate::{Error, Result};

mod counted;
mod steps;

use steps::not_alone;

/// The clock is read again after this many messages of a bulk write.
pub const CLOCK_EVERY: usize = 64;

/// Writes messages at the end of a queue.
pub struct Appender {
    queue: Arc<Queue>,
    closed: AtomicBool,
    /// The longest message.
    limit: u64,
    state: SpinMutex<State, spin::Yield>,
    /// Never locked together with the state.
    times: Mutex<AppendTimes>,
}

/// Tried for with the interpreter held, so letting go must be cheap; waiters yield.
type StateGuard<'a> = SpinMutexGuard<'a, State, spin::Yield>;

#[derive(Default)]
struct State {
    tail: Option<Tail>,
    /// The cycle the clock was last in, and for which of its milliseconds that holds.
    clock_cycle: (i32, Range<i64>),
    last_index: Option<i64>,
    /// The cycle after that of a removed file: no append goes to one before it.
    lowest: i32,
    unsynced: Unsynced,
}

/// A message that was appended without waiting.
#[derive(Clone, Copy, Debug)]
pub struct Appended {
    /// Its index.
    pub index: i64,
    /// The space after it runs low.
    pub is_low: bool,
}

impl Appender {
    /// An appender of a queue that was opened for writing.
    pub fn new(queue: Arc<Queue>) -> Result<Arc<Self>> {
        let limit = blocks::longest_payload(queue.block());
        Self::with_limit(queue, limit)
    }

    /// One of messages that another process has accepted: with other blocks they may be longer than
    /// this process would accept them itself.
    pub fn of_accepted(queue: Arc<Queue>) -> Result<Arc<Self>> {
        Self::with_limit(queue, u64::from(document::LENGTH_MASK))
    }

    fn with_limit(queue: Arc<Queue>, limit: u64) -> Result<Arc<Self>> {
        queue.check_open("queue")?;
        queue.writable_table("an appender")?.announce()?;
        let appender = Arc::new(Self {
            queue,
            closed: AtomicBool::new(false),
            limit,
            state: SpinMutex::default(),
            times: Mutex::default(),
        });
        let queue = &appender.queue;
        if queue.commit().durability() == Durability::Batch {
            queue
                .keep_committer(|| Committer::start(queue).map(|found| found as Arc<dyn Handle>))?;
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
    pub fn close(&self) {
        self.closed.store(true, Ordering::Release);
        // In a forked child the lock may be that of a thread which is not there.
        if self.queue.check_generation().is_ok() {
            self.let_go();
        }
    }

    /// Whether the appender, or its queue, was closed.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire) || self.queue.is_closed()
    }

    /// The index of the last message this appender wrote.
    pub fn last_index_appended(&self) -> Result<Option<i64>> {
        self.queue.check_generation()?;
        Ok(self.lock_state().last_index)
    }

    /// The index of the last message, as far as that is known at once.
    #[must_use]
    pub fn glance(&self) -> Glance {
        if self.queue.check_generation().is_err() {
            return Glance::Forked;
        }
        self.state.try_lock().map_or(Glance::Busy, |state| Glance::At(state.last_index))
    }

    #[cold]
    fn closed(&self) -> Error {
        Error::closed("appender", self.queue.path())
    }

    #[inline]
    fn check_open(&self) -> Result<()> {
        self.queue.check_open("queue")?;
        if self.closed.load(Ordering::Acquire) { Err(self.closed()) } else { Ok(()) }
    }

    #[inline]
    fn table(&self) -> Result<&TableStore> {
        self.queue.writable_table("an append")
    }

    /// Appends one message, if that needs neither waiting nor a system call; None if it does.
    /// Afterwards call [`Self::take_ahead`] if it says so.
    #[inline]
    pub fn try_append(
        &self,
        now_ms: Option<i64>,
        payload: Payload<'_>,
    ) -> Result<Option<Appended>> {
        let began = self.queue.metrics().map(|metrics| (metrics, Instant::now()));
        let appended = self.try_append_now(now_ms, payload)?;
        if let (Some((metrics, began)), Some(_)) = (began, &appended) {
            metrics.appended(began, 1, payload.len());
        }
        Ok(appended)
    }

    #[inline]
    fn try_append_now(
        &self,
        now_ms: Option<i64>,
        payload: Payload<'_>,
    ) -> Result<Option<Appended>> {
        self.check_open()?;
        let table = self.table()?;
        gate::check(table.append_lock(), false)?;
        if self.queue.commit().is_slow() {
            return Ok(None);
        }
        let Some(guard) = table.try_write() else { return Ok(None) };
        let mut state = self.lock_state();
        self.check_open()?; // another thread may have closed it before it let go of the lock
        let Some(cycle) = state.cycle_at_once(table, self.now(now_ms)) else {
            return Ok(None);
        };
        let State { tail, last_index, .. } = &mut *state;
        match tail {
            Some(tail) if tail.is_ready_for(cycle, payload.len()) => {
                let published = tail.publish(&guard, payload, false);
                let index = published.map_err(|error| not_alone(table, error))?;
                *last_index = Some(index);
                Ok(Some(Appended { index, is_low: tail.is_low() }))
            }
            _ => Ok(None),
        }
    }

    /// Takes the next step of space between messages, without the write lock.
    #[cold]
    pub fn take_ahead(&self) {
        let Ok(()) = self.queue.check_generation() else { return };
        let found = {
            let state = self.lock_state();
            state.tail.as_ref().map(|tail| (Arc::clone(tail.view.file()), tail.end()))
        };
        let Some((file, end)) = found else { return };
        if let Some(to) = file.window.take_ahead(end)
            && let Some(tail) = &mut self.lock_state().tail
            && Arc::ptr_eq(tail.view.file(), &file)
        {
            tail.note_writable(to);
        }
    }

    /// Appends one message and returns its index.
    pub fn append(&self, now_ms: Option<i64>, payload: Payload<'_>) -> Result<i64> {
        self.append_all(now_ms, 1, |_| Ok(payload)).map(Option::unwrap_or_default)
    }

    /// Appends `count` messages under one lock, as `payload` gives them; returns the last index.
    /// What was published before an error stays published.
    pub fn append_all<'p>(
        &self,
        now_ms: Option<i64>,
        count: usize,
        payload: impl Fn(usize) -> Result<Payload<'p>>,
    ) -> Result<Option<i64>> {
        self.append_each(now_ms, None, count, |number, append| append(payload(number)?))
    }

    /// As [`Self::append_all`], with a metadata document in front: under the same lock, so that
    /// nobody else's message comes between.
    pub fn append_noted<'p>(
        &self,
        now_ms: Option<i64>,
        note: &[u8],
        count: usize,
        payload: impl Fn(usize) -> Result<Payload<'p>>,
    ) -> Result<Option<i64>> {
        self.append_each(now_ms, Some(note), count, |number, append| append(payload(number)?))
    }

    fn append_each(
        &self,
        now_ms: Option<i64>,
        note: Option<&[u8]>,
        count: usize,
        each: impl FnMut(usize, &mut dyn FnMut(Payload<'_>) -> Result<()>) -> Result<()>,
    ) -> Result<Option<i64>> {
        match self.queue.metrics() {
            None => self.append_each_now(now_ms, note, count, each),
            Some(metrics) => self.append_each_counted(metrics, now_ms, note, count, each),
        }
    }

    fn append_each_now(
        &self,
        now_ms: Option<i64>,
        note: Option<&[u8]>,
        count: usize,
        mut each: impl FnMut(usize, &mut dyn FnMut(Payload<'_>) -> Result<()>) -> Result<()>,
    ) -> Result<Option<i64>> {
        let table = self.table()?;
        self.queue.commit().check()?;
        let guard = self.take_lock(false)?;
        let mut state = self.lock_state();
        self.check_open()?;
        let before = state.last_index.take();
        let mut write = || {
            let mut cycle = 0;
            if let Some(note) = note {
                cycle = self.cycle(table, &guard, &mut state, now_ms)?;
                self.append_in(table, &guard, &mut state, &mut cycle, Payload::new(note), true)?;
            }
            for number in 0..count {
                if number % CLOCK_EVERY == 0 {
                    state.show_run(&guard)?;
                    cycle = self.cycle(table, &guard, &mut state, now_ms)?;
                }
                each(number, &mut |payload| {
                    self.add(table, &guard, &mut state, &mut cycle, payload)
                })?;
            }
            Ok(())
        };
        let written = write();
        let shown = state.show_run(&guard);
        let last = state.last_index;
        state.last_index = last.or(before);
        drop(state);
        drop(guard);
        self.note_time(last, now_ms);
        written.and(shown).map_err(|error| not_alone(table, error))?;
        self.make_durable(last).map(|()| last)
    }

    /// Keeps the time of messages up to `last`, which the lock no longer covers.
    #[inline]
    fn note_time(&self, last: Option<i64>, now_ms: Option<i64>) {
        if let (true, Some(last)) = (self.queue.options().time_index, last) {
            let now = now_ms.unwrap_or_else(|| self.queue.options().clock.exact_ms());
            self.lock_times().note(&self.queue, last, now);
        }
    }

    fn lock_times(&self) -> MutexGuard<'_, AppendTimes> {
        self.times.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where each append is durable when it returns: syncs messages up to `last`, unless the sync of
    /// another thread has covered them meanwhile.
    #[inline]
    fn make_durable(&self, last: Option<i64>) -> Result<()> {
        let commit = self.queue.commit();
        match last {
            Some(last) if commit.durability() == Durability::Each => self.sync_up_to(last),
            _ => Ok(()),
        }
    }

    #[cold]
    fn sync_up_to(&self, index: i64) -> Result<()> {
        let commit = self.queue.commit();
        let _turn = commit.turn();
        if commit.synced() >= index {
            return Ok(());
        }
        std::thread::sleep(commit.collects_for());
        let last = self.queue.last_index_left()?;
        self.sync()?;
        commit.note(last.unwrap_or(index));
        Ok(())
    }

    /// Adds one message of a bulk write: to the run, or on its own if it needs a step that waits.
    #[inline]
    fn add(
        &self,
        table: &TableStore,
        guard: &WriteGuard<'_>,
        state: &mut State,
        cycle: &mut i32,
        payload: Payload<'_>,
    ) -> Result<()> {
        if let Some(tail) = &mut state.tail
            && tail.store_in_run(guard, *cycle, payload)?
        {
            return Ok(());
        }
        state.show_run(guard)?;
        state.last_index = Some(self.append_in(table, guard, state, cycle, payload, false)?);
        Ok(())
    }

    /// Appends `count` text values under one lock; `text` gives each one's UTF-8.
    pub fn append_texts<'p>(
        &self,
        now_ms: Option<i64>,
        count: usize,
        text: impl Fn(usize) -> Result<&'p [u8]>,
    ) -> Result<Option<i64>> {
        let mut buffer = Out::new();
        self.append_each(now_ms, None, count, |number, append| {
            let text = text(number)?;
            let stored = writer::stored_text(text)?;
            buffer.clear();
            writer::put_text_bytes(&mut buffer, stored.as_deref().unwrap_or(text));
            append(Payload::new(buffer.written()?))
        })
    }

    /// Takes the place of the next document; the write lock stays held.
    pub fn claim(&self, now_ms: Option<i64>, metadata: bool) -> Result<Claim> {
        let table = self.table()?;
        self.queue.commit().check()?;
        let guard = self.take_lock(metadata)?;
        let mut state = self.lock_state();
        self.check_open()?;
        let cycle = self.cycle(table, &guard, &mut state, now_ms)?;
        let tail = self.tail(table, &guard, &mut state, cycle)?;
        tail.check_sequence(metadata)?;
        let index = tail.next_index();
        let document = table.document().open();
        guard.keep();
        Ok(Claim { index, metadata, document, looked_ms: clock::coarse_time_ms(), now_ms })
    }

    /// Whether a claim would have to wait.
    #[must_use]
    pub fn is_locked(&self) -> bool {
        self.table().is_ok_and(|table| table.write_lock().word.read() != table::UNLOCKED)
    }

    /// Publishes a claimed document and lets go of the write lock; returns its index.
    #[allow(clippy::needless_pass_by_value)] // a claim is used up
    pub fn publish(&self, claim: Claim, payload: &[u8]) -> Result<i64> {
        match self.queue.metrics() {
            Some(metrics) if !claim.metadata => self.publish_counted(metrics, &claim, payload),
            _ => self.publish_now(&claim, payload),
        }
    }

    fn publish_now(&self, claim: &Claim, payload: &[u8]) -> Result<i64> {
        self.queue.check_generation()?;
        let table = self.table()?;
        let Some(guard) = table.take_document(claim.document) else {
            self.queue.check_open("queue")?;
            let (expected, found) = (u64::from(process::pid()), table.write_lock().word.read());
            return Err(Error::LockLost { expected, found });
        };
        let mut state = self.lock_state();
        self.check_open()?;
        let payload = if payload.is_empty() { &writer::EMPTY_PAYLOAD } else { payload };
        let written = self.publish_claimed(table, &guard, &mut state, claim, Payload::new(payload));
        if let (Ok(index), false) = (&written, claim.metadata) {
            state.last_index = Some(*index);
        }
        drop(state);
        drop(guard);
        let index = written.map_err(|error| not_alone(table, error))?;
        let last = Some(index).filter(|_| !claim.metadata);
        self.note_time(last, claim.now_ms);
        self.make_durable(last).map(|()| index)
    }

    fn publish_claimed(
        &self,
        table: &TableStore,
        guard: &WriteGuard<'_>,
        state: &mut State,
        claim: &Claim,
        payload: Payload<'_>,
    ) -> Result<i64> {
        guard.check_held()?;
        if clock::coarse_time_ms().abs_diff(claim.looked_ms) >= LOOK_MS.unsigned_abs() {
            table.shared.check_present()?;
        }
        let (mut cycle, sequence) = self.queue.roll().split(claim.index)?;
        if self.tail(table, guard, state, cycle)?.sequence != sequence {
            return Err(guard.lost_now());
        }
        self.append_in(table, guard, state, &mut cycle, payload, claim.metadata)
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
    pub fn normalise_eofs(&self, now_ms: Option<i64>) -> Result<()> {
        let table = self.table()?;
        let guard = self.take_lock(false)?;
        let cycle = self.cycle(table, &guard, &mut self.lock_state(), now_ms)?;
        let newest = self.queue.last_cycle()?.unwrap_or(cycle);
        self.normalise_up_to(table, &guard, cycle.min(newest), true)
    }

    /// Appends the first of `count` messages, as many as one header can show, and returns how many.
    /// `intend` gets the index of the first, and how many, before anybody can see them.
    pub fn append_run<'p>(
        &self,
        count: usize,
        payload: impl Fn(usize) -> Payload<'p>,
        intend: impl FnOnce(i64, usize),
    ) -> Result<usize> {
        let began = self.queue.metrics().map(|metrics| (metrics, Instant::now()));
        let appended = self.append_run_now(count, &payload, intend)?;
        if let Some((metrics, began)) = began {
            let bytes = (0..appended).map(|number| payload(number).len()).sum();
            metrics.appended(began, appended as u64, bytes);
        }
        Ok(appended)
    }

    fn append_run_now<'p>(
        &self,
        count: usize,
        payload: impl Fn(usize) -> Payload<'p>,
        intend: impl FnOnce(i64, usize),
    ) -> Result<usize> {
        let table = self.table()?;
        self.queue.commit().check()?;
        let guard = self.take_lock(false)?;
        let mut state = self.lock_state();
        self.check_open()?;
        let cycle = self.cycle(table, &guard, &mut state, None)?;
        let tail = self.tail(table, &guard, &mut state, cycle)?;
        tail.check_sequence(false)?;
        let mut cycle = tail.view.file().cycle;
        let (first, mut stored) = (tail.next_index(), 0);
        while stored < count && tail.store_in_run(&guard, cycle, payload(stored))? {
            stored += 1;
        }
        intend(first, stored.max(1));
        state.show_run(&guard)?;
        if stored == 0 && count > 0 {
            let index = self.append_in(table, &guard, &mut state, &mut cycle, payload(0), false)?;
            (state.last_index, stored) = (Some(index), 1);
        }
        let last = state.last_index;
        drop(state);
        drop(guard);
        self.note_time(last, None);
        self.make_durable(last).map(|()| stored)
    }

    /// Creates the file of the current cycle if there is none, as an append does, and appends
    /// nothing.
    pub fn prepare(&self, now_ms: Option<i64>) -> Result<()> {
        let table = self.table()?;
        let guard = self.take_lock(false)?;
        let mut state = self.lock_state();
        self.check_open()?;
        let cycle = self.cycle(table, &guard, &mut state, now_ms)?;
        self.tail(table, &guard, &mut state, cycle).map(drop)
    }

    /// Creates the file of a later cycle if there is none; the first append there announces it.
    pub fn prepare_cycle(&self, cycle: i32) -> Result<Arc<RollFile>> {
        let guard = self.take_lock(false)?;
        self.queue.file_for_append(cycle, &guard).map(|(file, _)| file)
    }

    /// Returns when every message that was in the queue at the time of the call is on the medium.
    pub fn sync(&self) -> Result<()> {
        self.check_open()?;
        let table = self.table()?;
        table.shared.check_present()?;
        let (own, last) = {
            let State { tail, unsynced, last_index, .. } = &mut *self.lock_state();
            unsynced.check_nothing_lost(tail.as_mut())?;
            (unsynced.begin(tail.as_ref()), *last_index)
        };
        let synced = sync::sync(&self.queue, table, own);
        self.lock_state().unsynced.end(own, last, synced.is_ok());
        synced
    }

    #[inline]
    fn lock_state(&self) -> StateGuard<'_> {
        self.state.lock()
    }
}

impl State {
    /// The cycle to append to, if nothing is to be looked at first.
    #[expect(clippy::inline_always, reason = "once a message: a call more costs 4 %")]
    #[inline(always)]
    fn cycle_at_once(&self, table: &TableStore, now: i64) -> Option<i32> {
        let (cycle, span) = &self.clock_cycle;
        span.contains(&now).then(|| listing::newest(table, *cycle))
    }

    /// Makes the run of a bulk write visible.
    fn show_run(&mut self, guard: &WriteGuard<'_>) -> Result<()> {
        if let Some(tail) = &mut self.tail
            && let Some(index) = tail.show_run(guard)?
        {
            self.last_index = Some(index);
        }
        Ok(())
    }
}

impl Handle for Appender {
    fn let_go(&self) {
        self.lock_state().tail = None;
        *self.lock_times() = AppendTimes::default();
    }
}
