//! The ten steps of an append, in their order (`docs/protocol.md` §5):
//!
//! 1. check the append lock;
//! 2. take the write lock;
//! 3. choose the cycle: the clock's, or the listing's highest if that is greater;
//! 4. open or create its file, and roll if it is another one;
//! 5. look at the write position again: others may have moved it;
//! 6. walk from there to the first 0 header, counting messages;
//! 7. make room;
//! 8. publish (`publish.rs`): 8a look at the lock word, 8b copy the payload after a 0 header, 8c store
//!    zeros after it, 8d look at the lock word again, 8e CAS the header;
//! 9. leave hints (`hints.rs`, `indexing.rs`): 9a raise the write position, 9b store the sequence word,
//!    9c find or add the index array, 9d store the slot;
//! 10. release the write lock: the guard of step 2 is dropped.
//!
//! Between two messages 4 to 7 mostly have nothing to do: [`Tail::is_ready_for`] says so with two loads.

use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;

use super::{Appender, State};
use crate::chronicle::append::end::Tail;
use crate::chronicle::append::sync::is_removed;
use crate::chronicle::append::taken_back;
use crate::chronicle::format::table::NORMALISED_TO;
use crate::chronicle::protocol::create;
use crate::chronicle::protocol::listing;
use crate::chronicle::protocol::lock::gate;
use crate::chronicle::protocol::lock::guard::{LockOf, WriteGuard};
use crate::chronicle::protocol::lock::patience::{self, Patience};
use crate::chronicle::protocol::lock::recovery::{self, ForceUnlock};
use crate::chronicle::protocol::publish::Payload;
use crate::chronicle::protocol::table::store::TableStore;
use crate::chronicle::queue::handle::LOOK_MS;
use crate::metrics::Latency;
use crate::os::process;
use crate::probe::fault::step;
use crate::{Error, Result, warnings};

/// A queue whose newest cycle begins this much after the clock's time has had a wrong clock.
const FAR_AHEAD_MS: i64 = 86_400_000;

impl Appender {
    /// Steps 1 and 2.
    pub(super) fn take_lock(&self, metadata: bool) -> Result<WriteGuard<'_>> {
        self.check_open()?;
        let table = self.table()?;
        gate::check(table.append_lock(), metadata)?;
        let (patience, mode) = (patience::take(), self.queue.options().force_unlock);
        let waited_ms = if let Patience::HasWaited(ms) = patience { ms } else { 0 };
        if table.document().is_own() {
            let (lock, holder, mode) = (LockOf::Queue.name(), process::pid(), mode.name());
            return Err(match patience {
                Patience::Waits => Error::DocumentOpen,
                // Another task of this thread may close it.
                _ => Error::LockTimeout { lock, holder, waited_ms, mode },
            });
        }
        let (mode, timeout) = match patience {
            Patience::Waits => (mode, self.lock_timeout()),
            Patience::Tries if mode == ForceUnlock::Always => (ForceUnlock::Dead, Duration::ZERO),
            Patience::Tries | Patience::HasWaited(_) => (mode, Duration::ZERO),
        };
        let waits = self.queue.metrics().filter(|_| self.is_locked());
        let began = waits.map(|metrics| (metrics, Instant::now()));
        let taken = recovery::wait(table, table.write_lock(), mode, timeout);
        if let Some((metrics, began)) = began {
            metrics.took(Latency::LockWait, began);
        }
        taken.map(WriteGuard::new).map_err(|error| match (error, patience) {
            (Error::LockTimeout { lock, holder, mode, .. }, Patience::HasWaited(_)) => {
                Error::LockTimeout { lock, holder, waited_ms, mode }
            }
            (error, _) => error,
        })
    }

    /// Step 3. A clock that lags does not write into the past.
    #[inline]
    pub(super) fn cycle(
        &self,
        table: &TableStore,
        guard: &WriteGuard<'_>,
        state: &mut State,
        now_ms: Option<i64>,
    ) -> Result<i32> {
        let now = self.now(now_ms);
        if let Some(cycle) = state.cycle_at_once(table, now) {
            return Ok(cycle);
        }
        self.look_around(table, guard, state, now)?;
        Ok(listing::newest(table, state.clock_cycle.0))
    }

    #[inline]
    pub(in crate::chronicle::append) fn now(&self, now_ms: Option<i64>) -> i64 {
        now_ms.unwrap_or_else(|| self.queue.options().clock.now_ms())
    }

    /// Steps 4 to 9 for one message; `cycle` is the one it went to afterwards.
    pub(super) fn append_in(
        &self,
        table: &TableStore,
        guard: &WriteGuard<'_>,
        state: &mut State,
        cycle: &mut i32,
        payload: Payload<'_>,
        metadata: bool,
    ) -> Result<i64> {
        if let Some(tail) = &mut state.tail
            && !metadata
            && tail.is_ready_for(*cycle, payload.len())
        {
            return tail.publish(guard, payload, false);
        }
        self.check_length(payload.len())?;
        let tail = self.tail(table, guard, state, *cycle)?;
        *cycle = tail.view.file().cycle;
        tail.check_sequence(metadata)?;
        let end = tail.make_room(payload.len(), metadata, guard)?;
        self.queue.pretoucher().keep_ahead(&tail.view.file().window, end);
        tail.publish(guard, payload, metadata)
    }

    /// Steps 4 to 6: the tail of the cycle's file, up to date.
    pub(super) fn tail<'s>(
        &self,
        table: &TableStore,
        guard: &WriteGuard<'_>,
        state: &'s mut State,
        cycle: i32,
    ) -> Result<&'s mut Tail> {
        let mut cycle = cycle;
        if state.tail.as_ref().is_none_or(|tail| tail.view.file().cycle != cycle) {
            self.roll_to(table, guard, state, cycle)?;
        }
        while let Err(error) = self.catch_up(table, guard, state) {
            if !matches!(error, Error::WriteAfterEof { .. }) || cycle == i32::MAX {
                return Err(error);
            }
            // Somebody ended the newest file, and died before making the next one, or before the
            // listing named it.
            self.queue.refresh()?;
            cycle = listing::newest(table, cycle + 1);
            self.roll_to(table, guard, state, cycle)?;
        }
        state.tail.as_mut().ok_or_else(|| self.closed())
    }

    /// Step 4: closes the files before `cycle` and opens or creates its file.
    fn roll_to(
        &self,
        table: &TableStore,
        guard: &WriteGuard<'_>,
        state: &mut State,
        cycle: i32,
    ) -> Result<()> {
        match state.tail.take() {
            Some(mut tail) => {
                let closed = self.queue.close_cycle(&mut tail.view, guard).map(Some);
                self.queue.unless_unreadable(tail.view.file().cycle, closed)?;
                for between in self.queue.cycles_between(tail.view.file().cycle, cycle)? {
                    self.queue.close_cycle_of(between, guard)?;
                }
            }
            None => self.normalise_up_to(table, guard, cycle, false)?,
        }
        let cycle = self.after_ended(table, guard, cycle)?;
        let view = self.queue.view_for_append(table, cycle, guard)?;
        self.queue.look_at_space(view.file());
        state.tail = Some(Tail::new(view, self.queue.roll(), self.queue.growth())?);
        state.unsynced.add(cycle);
        Ok(())
    }

    /// Steps 5 and 6.
    fn catch_up(
        &self,
        table: &TableStore,
        guard: &WriteGuard<'_>,
        state: &mut State,
    ) -> Result<()> {
        let tail = state.tail.as_mut().ok_or_else(|| self.closed())?;
        let is_first_look = tail.end() == 0;
        tail.catch_up(guard)?;
        if is_first_look { taken_back::take_back(&self.queue, table, tail, guard) } else { Ok(()) }
    }

    /// How long an append waits for the write lock.
    #[must_use]
    pub fn lock_timeout(&self) -> Duration {
        // Java waits half as long again as its queue's timeout.
        self.queue.options().timeout.mul_f64(1.5)
    }

    /// Whether a message of this length can be written.
    pub fn check_length(&self, length: u64) -> Result<()> {
        let limit = self.limit;
        if length <= limit {
            Ok(())
        } else {
            let block_bytes = self.queue.block();
            Err(Error::MessageTooLarge { length, limit, block_bytes })
        }
    }
}

/// What steps 3 and 4 meet seldom.
impl Appender {
    /// What is looked at when the clock moved: its cycle, whether the table and the open file are
    /// still there, and whether there is space left.
    #[cold]
    fn look_around(
        &self,
        table: &TableStore,
        guard: &WriteGuard<'_>,
        state: &mut State,
        now: i64,
    ) -> Result<()> {
        table.shared.check_present()?;
        let schedule = self.queue.schedule();
        let cycle = schedule.cycle_at(now)?;
        if let Some(file) = state.tail.as_ref().map(|tail| Arc::clone(tail.view.file())) {
            if is_removed(&file)? {
                self.leave_removed(table, guard, state, cycle)?;
            }
            self.queue.look_at_space(&file);
        }
        self.check_clock(cycle, now)?;
        let span = schedule.span_of(cycle);
        let (from, to) = (now.saturating_sub(LOOK_MS) + 1, now.saturating_add(LOOK_MS));
        state.clock_cycle = (cycle.max(state.lowest), span.start.max(from)..span.end.min(to));
        Ok(())
    }

    /// Refuses to begin a cycle far ahead, if there is a limit, and warns where somebody began one:
    /// every append goes there until the clock has caught up.
    fn check_clock(&self, cycle: i32, now: i64) -> Result<()> {
        let (queue, schedule) = (&self.queue, self.queue.schedule());
        let Some(newest) = i32::try_from(queue.highest_cycle()).ok().filter(|it| *it >= 0) else {
            return Ok(());
        };
        let (span, path) = (schedule.span_of(newest), queue.path().to_path_buf());
        if span.start.saturating_sub(now) > FAR_AHEAD_MS {
            queue.tell_once(newest, || {
                let (now, starts) = (time_text(now), time_text(span.start));
                format!(
                    "the newest cycle is far ahead of the clock, and gets every message until then: \
                     cycle={newest} starts={starts} now={now} path={}",
                    path.display()
                )
            });
            return Ok(());
        }
        let gap = schedule.span_of(cycle).start.saturating_sub(span.end);
        match queue.options().max_clock_ahead_ms {
            Some(limit) if cycle > newest && gap > limit.try_into().unwrap_or(i64::MAX) => {
                let (now, newest) = (time_text(now), time_text(span.end));
                Err(Error::ClockAhead { now, newest, limit_s: limit / 1000, path })
            }
            _ => Ok(()),
        }
    }

    /// Leaves a file that was removed while it was appended to: nobody else finds what is written
    /// there. It is ended, for those who read it still, and the next cycle is used.
    fn leave_removed(
        &self,
        table: &TableStore,
        guard: &WriteGuard<'_>,
        state: &mut State,
        cycle: i32,
    ) -> Result<()> {
        state.unsynced.note_lost(state.tail.as_mut())?;
        let Some(mut tail) = state.tail.take() else { return Ok(()) };
        let file = Arc::clone(tail.view.file());
        // The clock's, if that is later; or it was made again, and is used. No index is given twice,
        // even if a step from here on fails and the next append finds no file at all.
        let is_next = file.cycle >= cycle && !self.queue.has_file(file.cycle);
        if is_next {
            state.lowest = file.cycle.saturating_add(1);
        }
        self.queue.close_cycle(&mut tail.view, guard)?;
        warnings::leave(format!(
            "the file that was appended to had been removed, with what was in it: file={}",
            file.path().display()
        ));
        if is_next { self.roll_to(table, guard, state, state.lowest) } else { Ok(()) }
    }

    /// This cycle, or the next one if it is compressed, or if its file is of version 4, which is
    /// ended: appending goes on in version 5.
    fn after_ended(
        &self,
        table: &TableStore,
        guard: &WriteGuard<'_>,
        mut cycle: i32,
    ) -> Result<i32> {
        while cycle < i32::MAX && (self.queue.is_compressed(cycle) || self.end_old(guard, cycle)?) {
            cycle = listing::newest(table, cycle + 1);
        }
        Ok(cycle)
    }

    /// Ends the file of a cycle if it is of version 4; whether it is.
    fn end_old(&self, guard: &WriteGuard<'_>, cycle: i32) -> Result<bool> {
        match self.queue.view(cycle) {
            Ok(Some(mut view)) if create::is_of_version_4(view.file()) => {
                self.queue.close_cycle(&mut view, guard).map(|_| true)
            }
            _ => Ok(false),
        }
    }

    /// Writes the marker into the cycles below `cycle` that lack it. `normalisedEOFsTo` remembers
    /// how far that was done, once there was more than the latest file to look at.
    pub(super) fn normalise_up_to(
        &self,
        table: &TableStore,
        guard: &WriteGuard<'_>,
        cycle: i32,
        always_note: bool,
    ) -> Result<()> {
        let done = table.find(NORMALISED_TO)?.map_or(-1, |position| table.value(position, -1));
        let done = i32::try_from(done).unwrap_or(-1);
        let older = self.queue.cycles_between(done, cycle)?;
        for cycle in &older {
            if self.queue.close_cycle_of(*cycle, guard)? {
                warnings::leave(format!("an older cycle had no end-of-file marker: cycle={cycle}"));
            }
        }
        if let (Some(first), Some(last)) = (older.first(), older.last())
            && (always_note || first != last)
        {
            let position = table.find_or_create(NORMALISED_TO, i64::from(*first))?;
            table.cells().raise_acq_rel(position, i64::from(*last), step!("eof.normalised.cas"));
        }
        Ok(())
    }
}

fn time_text(ms: i64) -> String {
    Timestamp::from_millisecond(ms).map_or_else(|_| format!("{ms} ms"), |it| it.to_string())
}

/// The error of a step that met another writer's changes under the write lock: that the table was
/// lost, if it was, and the lock with it.
#[cold]
pub(super) fn not_alone(table: &TableStore, error: Error) -> Error {
    match error {
        Error::Corrupt { .. } => table.shared.check_present().err().unwrap_or(error),
        _ => error,
    }
}
