//! Writing at the end of a queue (`docs/protocol.md`, "Append").
//!
//! 1. check the append lock; 2. take the write lock; 3. the cycle is the clock's, or the listing's
//!    highest if that is greater; 4. open or create its file, rolling if it is another one;
//! 5. look at the write position again: others may have moved it; 6. walk to the first 0 header;
//! 7. make room; 8. publish; 9. write position, sequence word, index; 10. release the write lock.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use spin::mutex::{SpinMutex, SpinMutexGuard};

use quire_wire::writer;

use super::end::Tail;
use super::sync::{self, Unsynced, is_removed};
use crate::chronicle::format::blocks;
use crate::chronicle::format::table::{self, NORMALISED_TO};
use crate::chronicle::protocol::create;
use crate::chronicle::protocol::listing;
use crate::chronicle::protocol::lock::guard::{self, Held};
pub use crate::chronicle::protocol::lock::open_document::Claim;
use crate::chronicle::protocol::publish::Payload;
use crate::chronicle::protocol::table::store::TableStore;
use crate::chronicle::queue::glance::Glance;
use crate::chronicle::queue::handle::{Handle, LOOK_MS, Queue};
use crate::os::{clock, process};
use crate::probe::fault;
use crate::{Error, Result, warnings};

mod locking;

/// The clock is read again after this many messages of a bulk write.
pub const CLOCK_EVERY: usize = 64;

/// Writes messages at the end of a queue.
pub struct Appender {
    queue: Arc<Queue>,
    closed: AtomicBool,
    state: SpinMutex<State, spin::Yield>,
}

/// Tried for with the interpreter held, so letting go must be cheap; waiters yield.
type StateGuard<'a> = SpinMutexGuard<'a, State, spin::Yield>;

#[derive(Default)]
struct State {
    tail: Option<Tail>,
    /// The cycle the clock was last in, and for which of its milliseconds that holds.
    clock_cycle: (i32, Range<i64>),
    last_index: Option<i64>,
    /// The cycle behind that of a removed file: no append goes to one before it.
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
        queue.check_open("queue")?;
        queue.writable_table("an appender")?.announce()?;
        let appender = Self { queue, closed: AtomicBool::new(false), state: SpinMutex::default() };
        let appender = Arc::new(appender);
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
        self.check_open()?;
        let table = self.table()?;
        guard::check_append_lock(table, false)?;
        if !table.write_lock().try_take() {
            return Ok(None);
        }
        let _held = Held { table };
        let mut state = self.lock_state();
        self.check_open()?; // another thread may have closed it before it let go of the lock
        let Some(cycle) = state.cycle_at_once(table, self.now(now_ms)) else {
            return Ok(None);
        };
        let State { tail, last_index, .. } = &mut *state;
        match tail {
            Some(tail) if tail.is_ready_for(cycle, payload.len()) => {
                let index = tail.publish(table, payload, false)?;
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
        mut each: impl FnMut(usize, &mut dyn FnMut(Payload<'_>) -> Result<()>) -> Result<()>,
    ) -> Result<Option<i64>> {
        let held = self.take_lock(false)?;
        let table = held.table;
        let mut state = self.lock_state();
        self.check_open()?;
        let before = state.last_index.take();
        let mut write = || {
            let mut cycle = 0;
            if let Some(note) = note {
                cycle = self.cycle(table, &mut state, now_ms)?;
                self.append_in(table, &mut state, &mut cycle, Payload::new(note), true)?;
            }
            for number in 0..count {
                if number % CLOCK_EVERY == 0 {
                    state.show_run(table)?;
                    cycle = self.cycle(table, &mut state, now_ms)?;
                }
                each(number, &mut |payload| self.add(table, &mut state, &mut cycle, payload))?;
            }
            Ok(())
        };
        let written = write();
        let shown = state.show_run(table);
        let last = state.last_index;
        state.last_index = last.or(before);
        drop(state);
        drop(held);
        written.and(shown).map(|()| last)
    }

    /// Adds one message of a bulk write: to the run, or by itself where it needs a step that waits.
    #[inline]
    fn add(
        &self,
        table: &TableStore,
        state: &mut State,
        cycle: &mut i32,
        payload: Payload<'_>,
    ) -> Result<()> {
        if let Some(tail) = &mut state.tail
            && tail.store_in_run(table, *cycle, payload)?
        {
            return Ok(());
        }
        state.show_run(table)?;
        state.last_index = Some(self.append_in(table, state, cycle, payload, false)?);
        Ok(())
    }

    /// Appends `count` text values under one lock; `text` gives each one's UTF-8.
    pub fn append_texts<'p>(
        &self,
        now_ms: Option<i64>,
        count: usize,
        text: impl Fn(usize) -> Result<&'p [u8]>,
    ) -> Result<Option<i64>> {
        let mut buffer = Vec::new();
        self.append_each(now_ms, None, count, |number, append| {
            let text = text(number)?;
            let stored = writer::stored_text(text);
            buffer.clear();
            writer::put_text_bytes(&mut buffer, stored.as_deref().unwrap_or(text));
            append(Payload::new(&buffer))
        })
    }

    /// Takes the place of the next document; the write lock stays held.
    pub fn claim(&self, now_ms: Option<i64>, metadata: bool) -> Result<Claim> {
        let held = self.take_lock(metadata)?;
        let table = held.table;
        let mut state = self.lock_state();
        self.check_open()?;
        let cycle = self.cycle(table, &mut state, now_ms)?;
        let tail = self.tail(table, &mut state, cycle)?;
        tail.check_sequence(metadata)?;
        let index = tail.next_index();
        let document = table.document().open();
        held.keep();
        Ok(Claim { index, metadata, document, looked_ms: clock::coarse_time_ms() })
    }

    /// Whether a claim would have to wait.
    #[must_use]
    pub fn is_locked(&self) -> bool {
        self.table().is_ok_and(|table| table.write_lock().word.read() != table::UNLOCKED)
    }

    /// Publishes a claimed document and lets go of the write lock; returns its index.
    #[allow(clippy::needless_pass_by_value)] // a claim is used up
    pub fn publish(&self, claim: Claim, payload: &[u8]) -> Result<i64> {
        self.queue.check_generation()?;
        let table = self.table()?;
        let Some(held) = table.take_document(claim.document) else {
            self.queue.check_open("queue")?;
            return Err(guard::lost(table.write_lock().word.read()));
        };
        let mut state = self.lock_state();
        self.check_open()?;
        let payload = if payload.is_empty() { &writer::EMPTY_PAYLOAD } else { payload };
        let written = self.publish_claimed(table, &mut state, &claim, Payload::new(payload));
        if let (Ok(index), false) = (&written, claim.metadata) {
            state.last_index = Some(*index);
        }
        drop(state);
        drop(held);
        written
    }

    fn publish_claimed(
        &self,
        table: &TableStore,
        state: &mut State,
        claim: &Claim,
        payload: Payload<'_>,
    ) -> Result<i64> {
        table.write_lock().word.still_held(process::pid()).map_err(guard::lost)?;
        if clock::coarse_time_ms().abs_diff(claim.looked_ms) >= LOOK_MS.unsigned_abs() {
            table.check_present()?;
        }
        let (mut cycle, sequence) = self.queue.roll().split(claim.index)?;
        if self.tail(table, state, cycle)?.sequence != sequence {
            return Err(guard::lost(table.write_lock().word.read()));
        }
        self.append_in(table, state, &mut cycle, payload, claim.metadata)
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
        let held = self.take_lock(false)?;
        let cycle = self.cycle(held.table, &mut self.lock_state(), now_ms)?;
        let newest = self.queue.last_cycle()?.unwrap_or(cycle);
        self.normalise_up_to(held.table, cycle.min(newest), true)
    }

    /// Returns when every message that was in the queue at the time of the call is on the medium.
    pub fn sync(&self) -> Result<()> {
        self.check_open()?;
        let table = self.table()?;
        table.check_present()?;
        let (own, last) = {
            let State { tail, unsynced, last_index, .. } = &mut *self.lock_state();
            unsynced.check_nothing_lost(tail.as_mut())?;
            (unsynced.begin(tail.as_ref()), *last_index)
        };
        let synced = sync::sync(&self.queue, table, own);
        self.lock_state().unsynced.end(own, last, synced.is_ok());
        synced
    }

    fn lock_state(&self) -> StateGuard<'_> {
        self.state.lock()
    }

    /// Step 3. A clock that is behind does not write into the past.
    #[inline]
    fn cycle(&self, table: &TableStore, state: &mut State, now_ms: Option<i64>) -> Result<i32> {
        let now = self.now(now_ms);
        if let Some(cycle) = state.cycle_at_once(table, now) {
            return Ok(cycle);
        }
        self.look_around(table, state, now)?;
        Ok(listing::newest(table, state.clock_cycle.0))
    }

    #[inline]
    fn now(&self, now_ms: Option<i64>) -> i64 {
        now_ms.unwrap_or_else(|| self.queue.options().clock.now_ms())
    }

    /// What is looked at when the clock moved: its cycle, whether the table and the open file are
    /// still there, and whether there is space left.
    #[cold]
    fn look_around(&self, table: &TableStore, state: &mut State, now: i64) -> Result<()> {
        table.check_present()?;
        let (roll, epoch_ms) = (self.queue.roll(), self.queue.epoch_ms());
        let cycle = roll.cycle_at(now, epoch_ms)?;
        if let Some(file) = state.tail.as_ref().map(|tail| Arc::clone(tail.view.file())) {
            if is_removed(&file)? {
                self.leave_removed(table, state, cycle)?;
            }
            self.queue.look_at_space(&file);
        }
        let span = roll.span_of(cycle, epoch_ms);
        let (from, to) = (now.saturating_sub(LOOK_MS) + 1, now.saturating_add(LOOK_MS));
        state.clock_cycle = (cycle.max(state.lowest), span.start.max(from)..span.end.min(to));
        Ok(())
    }

    /// Leaves a file that was removed while it was appended to: nobody else finds what is written
    /// there. It is ended, for those who read it still, and the next cycle is used.
    fn leave_removed(&self, table: &TableStore, state: &mut State, cycle: i32) -> Result<()> {
        state.unsynced.note_lost(state.tail.as_mut())?;
        let Some(mut tail) = state.tail.take() else { return Ok(()) };
        let file = Arc::clone(tail.view.file());
        // The clock's, if that is later; or it was made again, and is used. No index is given twice,
        // even if a step from here on fails and the next append finds no file at all.
        let is_next = file.cycle >= cycle && !self.queue.has_file(file.cycle);
        if is_next {
            state.lowest = file.cycle.saturating_add(1);
        }
        self.queue.close_cycle(&mut tail.view)?;
        warnings::leave(format!(
            "the file that was appended to had been removed, with what was in it: file={}",
            file.path().display()
        ));
        if is_next { self.roll_to(table, state, state.lowest) } else { Ok(()) }
    }

    /// Steps 4 to 9 for one message; `cycle` is the one it went to afterwards. The write lock is
    /// held.
    fn append_in(
        &self,
        table: &TableStore,
        state: &mut State,
        cycle: &mut i32,
        payload: Payload<'_>,
        metadata: bool,
    ) -> Result<i64> {
        if let Some(tail) = &mut state.tail
            && !metadata
            && tail.is_ready_for(*cycle, payload.len())
        {
            return tail.publish(table, payload, false);
        }
        self.check_length(payload.len())?;
        let tail = self.tail(table, state, *cycle)?;
        *cycle = tail.view.file().cycle;
        tail.check_sequence(metadata)?;
        let end = tail.make_room(payload.len(), metadata)?;
        self.queue.pretoucher().keep_ahead(&tail.view.file().window, end);
        tail.publish(table, payload, metadata)
    }

    /// Whether a message of this length can be written.
    pub fn check_length(&self, length: u64) -> Result<()> {
        let block_bytes = self.queue.block();
        let limit = blocks::longest_payload(block_bytes);
        if length <= limit {
            Ok(())
        } else {
            Err(Error::MessageTooLarge { length, limit, block_bytes })
        }
    }

    /// Steps 4 to 6: the tail of the cycle's file, up to date.
    fn tail<'s>(
        &self,
        table: &TableStore,
        state: &'s mut State,
        cycle: i32,
    ) -> Result<&'s mut Tail> {
        let mut cycle = cycle;
        if state.tail.as_ref().is_none_or(|tail| tail.view.file().cycle != cycle) {
            self.roll_to(table, state, cycle)?;
        }
        while let Err(error) = self.catch_up(state) {
            if !matches!(error, Error::WriteAfterEof { .. }) || cycle == i32::MAX {
                return Err(error);
            }
            // Somebody ended the newest file, and died before making the next one, or before the
            // listing told of it.
            self.queue.refresh()?;
            cycle = listing::newest(table, cycle + 1);
            self.roll_to(table, state, cycle)?;
        }
        state.tail.as_mut().ok_or_else(|| self.closed())
    }

    fn catch_up(&self, state: &mut State) -> Result<()> {
        state.tail.as_mut().ok_or_else(|| self.closed())?.catch_up()
    }

    /// Step 4: closes the files before `cycle` and opens or creates its file.
    fn roll_to(&self, table: &TableStore, state: &mut State, cycle: i32) -> Result<()> {
        match state.tail.take() {
            Some(mut tail) => {
                let closed = self.queue.close_cycle(&mut tail.view).map(Some);
                self.queue.unless_unreadable(tail.view.file().cycle, closed)?;
                for between in self.queue.cycles_between(tail.view.file().cycle, cycle)? {
                    self.queue.close_cycle_of(between)?;
                }
            }
            None => self.normalise_up_to(table, cycle, false)?,
        }
        let cycle = self.after_version_4(table, cycle)?;
        let view = self.queue.view_for_append(table, cycle)?;
        self.queue.look_at_space(view.file());
        state.tail = Some(Tail::new(view, self.queue.roll(), self.queue.growth())?);
        state.unsynced.add(cycle);
        Ok(())
    }

    /// This cycle, or the next one if its file is of version 4, which is ended: appending goes on in
    /// version 5.
    fn after_version_4(&self, table: &TableStore, mut cycle: i32) -> Result<i32> {
        while let Ok(Some(mut view)) = self.queue.view(cycle)
            && create::is_of_version_4(view.file())
            && cycle < i32::MAX
        {
            self.queue.close_cycle(&mut view)?;
            cycle = listing::newest(table, cycle + 1);
        }
        Ok(cycle)
    }

    /// Writes the marker into the cycles below `cycle` that lack it. `normalisedEOFsTo` remembers
    /// how far that was done, once there was more than the latest file to look at.
    fn normalise_up_to(&self, table: &TableStore, cycle: i32, always_note: bool) -> Result<()> {
        let done = table.find(NORMALISED_TO)?.map_or(-1, |position| table.value(position, -1));
        let done = i32::try_from(done).unwrap_or(-1);
        let older = self.queue.cycles_between(done, cycle)?;
        for cycle in &older {
            if self.queue.close_cycle_of(*cycle)? {
                warnings::leave(format!("an older cycle had no end-of-file marker: cycle={cycle}"));
            }
        }
        if let (Some(first), Some(last)) = (older.first(), older.last())
            && (always_note || first != last)
        {
            let position = table.find_or_create(NORMALISED_TO, i64::from(*first))?;
            table.cells().raise_acq_rel(position, i64::from(*last));
            fault::point!("eof.normalised.cas");
        }
        Ok(())
    }
}

impl State {
    /// The cycle to append to, if nothing is to be looked at first.
    #[inline]
    fn cycle_at_once(&self, table: &TableStore, now: i64) -> Option<i32> {
        let (cycle, span) = &self.clock_cycle;
        span.contains(&now).then(|| listing::newest(table, *cycle))
    }

    /// Makes the run of a bulk write visible.
    fn show_run(&mut self, table: &TableStore) -> Result<()> {
        if let Some(tail) = &mut self.tail
            && let Some(index) = tail.show_run(table)?
        {
            self.last_index = Some(index);
        }
        Ok(())
    }
}

impl Handle for Appender {
    fn let_go(&self) {
        self.lock_state().tail = None;
    }
}
