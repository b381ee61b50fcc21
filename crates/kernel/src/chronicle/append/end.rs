//! The end of the queue while the write lock is held: the ten steps of an append, in their order
//! (`docs/protocol.md` §5):
//!
//! 1. check the append lock;
//! 2. take the write lock;
//! 3. choose the cycle: the clock's, or the listing's highest if that is greater;
//! 4. open or create its file, and roll if the cycle has changed;
//! 5. reload the write position, which other appenders may have moved;
//! 6. walk from there to the first 0 header, counting messages;
//! 7. make room;
//! 8. publish (`publish.rs`): 8a check the lock word, 8b copy the payload after a 0 header, 8c
//!    store zeros after it, 8d check the lock word again, 8e CAS the header;
//! 9. leave hints (`hints.rs`, `indexing.rs`): 9a raise the write position, 9b store the sequence
//!    word, 9c find or add the index array, 9d store the slot;
//! 10. release the write lock: the guard of step 2 is dropped.
//!
//! Steps 1, 2 and 10 are the appender's `with_write_lock`, which hands out the [`End`] in between.
//! For most messages steps 4 to 7 have nothing to do: [`Tail::is_ready_for`] finds out with two
//! loads.

use std::ops::Range;
use std::sync::Arc;

use jiff::Timestamp;

use super::append_checksums::Span;
use super::lost_tail;
use super::sync::{Unsynced, is_removed};
use super::tail::{Layered, Tail};
use crate::chronicle::protocol::create;
use crate::chronicle::protocol::listing;
use crate::chronicle::protocol::lock::guard::{DetachedGuard, HeldLock};
use crate::chronicle::protocol::publish::Payload;
use crate::chronicle::protocol::table::store::TableStore;
use crate::chronicle::queue::handle::{LOOK_MS, Queue};
use crate::os::interrupt::Signals;
use crate::replicas::side_file::ReplicaStates;
use crate::sealed::layers::{Layers, Storing};
use crate::waiting::side_file::SideFile;
use crate::waiting::word;
use crate::{Error, Result, warnings};

mod replica;

pub use replica::end_of_replica;

/// If the newest cycle begins this long after the clock's time, a clock was wrong.
const FAR_AHEAD_MS: i64 = 86_400_000;
/// The clock is read again after this many messages of a bulk write.
pub const CLOCK_EVERY: usize = 64;

/// An appender's knowledge of the end of the queue between two calls.
#[derive(Default)]
pub struct State {
    /// The file that was appended to last.
    pub tail: Option<Tail>,
    /// The cycle of the clock's last time, and the milliseconds for which this cycle is known to be
    /// current.
    clock_cycle: (i32, Range<i64>),
    /// The index of the last message this appender wrote.
    pub last_index: Option<i64>,
    /// The cycle after that of a removed file: no append goes to one before it.
    lowest: i32,
    /// Appends that are not synced yet.
    pub unsynced: Unsynced,
    /// The side file for waking sleeping readers; None if no reader ever slept.
    pub sleepers: Option<Arc<SideFile>>,
    /// Buffers for storing messages transformed.
    storing: Storing,
    /// The states of replicas, if there are any.
    replicas: Option<Arc<ReplicaStates>>,
}

impl State {
    /// Whether a reader sleeps until there is a message: P2 of `waiting/word.rs`.
    #[inline]
    #[must_use]
    pub fn is_awaited(&self) -> bool {
        self.sleepers.as_ref().is_some_and(|file| file.word().is_armed())
    }

    /// An error if the queue's source has a lease that has expired.
    #[inline]
    pub fn check_lease(&self) -> Result<()> {
        self.replicas.as_ref().map_or(Ok(()), |replicas| replicas.check_lease())
    }
}

/// What one call appended.
#[derive(Clone, Copy, Default)]
pub struct Appended {
    /// Messages, without metadata.
    pub messages: u64,
    /// The bytes of their payloads.
    pub bytes: u64,
    /// The index of the last one that is visible.
    pub last: Option<i64>,
    /// Index and position of the first one in the cycle that the last one is in.
    pub first: Option<(i64, u64)>,
}

/// Number and total size of messages.
#[derive(Default)]
struct Stored {
    messages: u64,
    bytes: u64,
}

impl Appended {
    /// The span of appended messages in the cycle of the last one.
    pub fn span(&self) -> Option<Span> {
        let (first, position) = self.first?;
        Some(Span { first, position, last: self.last? })
    }
}

/// The end of the queue while the write lock is held.
pub struct End<'a, G> {
    queue: &'a Queue,
    /// The longest message.
    limit: u64,
    table: &'a TableStore,
    guard: &'a G,
    /// Transformations of messages; None if they are stored as given.
    layers: Option<&'a Layers>,
    state: &'a mut State,
    /// The time, if a clock of the caller gave it.
    now_ms: Option<i64>,
    /// The cycle that is appended to.
    cycle: i32,
    /// The messages appended so far.
    pub appended: Appended,
    /// Messages stored in the run and not yet visible.
    stored: Stored,
    /// The write lock stays taken when the call ends.
    pub keeps_lock: bool,
}

impl<'a, 'g, G: HeldLock<'g>> End<'a, G> {
    /// The end as `state` knows it, which [`End::choose_cycle`] brings up to date.
    #[inline]
    pub fn new(
        queue: &'a Queue,
        limit: u64,
        table: &'a TableStore,
        guard: &'a G,
        state: &'a mut State,
        now_ms: Option<i64>,
    ) -> Self {
        Self {
            queue,
            limit,
            table,
            guard,
            layers: queue.layers(),
            state,
            now_ms,
            cycle: 0,
            appended: Appended::default(),
            stored: Stored::default(),
            keeps_lock: false,
        }
    }

    /// The queue.
    pub const fn queue(&self) -> &'a Queue {
        self.queue
    }

    /// Like [`State::check_lease`], for a document claimed earlier.
    pub fn check_lease(&self) -> Result<()> {
        self.state.check_lease()
    }

    /// The cycle that is appended to.
    pub const fn cycle(&self) -> i32 {
        self.cycle
    }

    /// The table of the queue.
    pub const fn table(&self) -> &'a TableStore {
        self.table
    }

    /// The write lock.
    pub const fn guard(&self) -> &'a G {
        self.guard
    }

    /// The cycle to append to; None if the clock has left the known milliseconds.
    #[expect(clippy::inline_always, reason = "once a message: a call more costs 4 %")]
    #[inline(always)]
    fn known_cycle(&self, now: i64) -> Option<i32> {
        let (cycle, span) = &self.state.clock_cycle;
        span.contains(&now).then(|| listing::newest(self.table, *cycle))
    }

    /// Appends a message and returns its index, if that needs neither waiting nor a system call.
    /// None if it does, as when the next step of space is due ([`End::take_low`]).
    #[inline]
    pub fn try_append(&mut self, payload: Payload<'_>) -> Result<Option<i64>> {
        let now = time_of(self.queue, self.now_ms);
        let Some(cycle) = self.known_cycle(now) else { return Ok(None) };
        self.state.check_lease()?;
        let length = self.stored_length(payload);
        let State { tail, storing, .. } = &mut *self.state;
        match tail {
            Some(tail) if tail.is_ready_for(cycle, length) && !tail.is_low() => {
                let guard = self.guard.write();
                let (index, length) = match self.layers {
                    None => (tail.publish_message(guard, payload)?, length),
                    Some(layers) => {
                        let layered = layered(self.queue, layers, storing);
                        tail.publish_layered(guard, payload, false, layered)?
                    }
                };
                self.note(index, length);
                Ok(Some(index))
            }
            _ => Ok(None),
        }
    }

    /// The greatest length that a payload can have once stored.
    #[inline]
    const fn stored_length(&self, payload: Payload<'_>) -> u64 {
        payload.len() + if let Some(layers) = self.layers { layers.overhead() } else { 0 }
    }

    #[inline]
    fn note(&mut self, index: i64, length: u64) {
        if self.appended.first.is_none() {
            let position = self.state.tail.as_ref().map_or(u64::MAX, Tail::last_position);
            self.appended.first = Some((index, position));
        }
        self.appended.messages += 1;
        self.appended.bytes += length;
        self.appended.last = Some(index);
    }
}

/// Steps that may wait while holding the lock.
impl End<'_, DetachedGuard<'_>> {
    /// Step 3. A clock that lags does not write into the past.
    #[inline]
    pub fn choose_cycle(&mut self) -> Result<()> {
        let now = time_of(self.queue, self.now_ms);
        self.cycle = if let Some(cycle) = self.known_cycle(now) {
            cycle
        } else {
            self.check_surroundings(now)?;
            listing::newest(self.table, self.state.clock_cycle.0)
        };
        self.state.check_lease()
    }

    /// Steps 4 to 9 for one message; returns its index.
    pub fn append(&mut self, payload: Payload<'_>) -> Result<i64> {
        let length = self.stored_length(payload);
        let State { tail, storing, .. } = &mut *self.state;
        let (index, length) = match tail {
            Some(tail) if tail.is_ready_for(self.cycle, length) => match self.layers {
                None => (tail.publish(self.guard, payload, false)?, length),
                Some(layers) => {
                    let layered = layered(self.queue, layers, storing);
                    tail.publish_layered(self.guard, payload, false, layered)?
                }
            },
            _ => self.append_with_room(payload, false)?,
        };
        self.note(index, length);
        Ok(index)
    }

    /// Steps 4 to 8 for a metadata document; returns the index of the next message.
    pub fn append_metadata(&mut self, payload: Payload<'_>) -> Result<i64> {
        self.append_with_room(payload, true).map(|(index, _)| index)
    }

    /// Steps 4 to 9 with checks; returns the index and the document's stored length.
    fn append_with_room(&mut self, payload: Payload<'_>, metadata: bool) -> Result<(i64, u64)> {
        let length = self.stored_length(payload);
        check_length(self.queue, self.limit, length)?;
        let (guard, queue, layers) = (self.guard, self.queue(), self.layers);
        let tail = self.tail()?;
        tail.check_sequence(metadata)?;
        let end = tail.make_room(length, metadata, guard)?;
        queue.pretoucher().keep_ahead(&tail.view.file().window, end);
        let Some(layers) = layers else {
            return Ok((tail.publish(guard, payload, metadata)?, length));
        };
        let State { tail: Some(tail), storing, .. } = &mut *self.state else {
            return Err(closed(queue));
        };
        tail.publish_layered(guard, payload, metadata, layered(queue, layers, storing))
    }

    /// Appends `count` messages in runs, as `each` adds them.
    pub fn append_all(
        &mut self,
        count: usize,
        mut each: impl FnMut(usize, &mut Self) -> Result<()>,
    ) -> Result<()> {
        let added = (0..count).try_for_each(|number| {
            if number % CLOCK_EVERY == 0 {
                self.show_run()?;
                self.choose_cycle()?;
            }
            each(number, self)
        });
        let shown = self.show_run();
        added.and(shown)
    }

    /// Adds a message to the run, or appends it on its own if it needs a step that waits.
    #[inline]
    pub fn add(&mut self, payload: Payload<'_>) -> Result<()> {
        if self.store_in_run(payload)? {
            return Ok(());
        }
        self.show_run()?;
        self.append(payload).map(drop)
    }

    /// Stores a message in the run; false if that needs a step that waits.
    #[inline]
    pub fn store_in_run(&mut self, payload: Payload<'_>) -> Result<bool> {
        let length = self.stored_length(payload);
        let State { tail: Some(tail), storing, .. } = &mut *self.state else { return Ok(false) };
        let (guard, cycle) = (self.guard, self.cycle);
        let stored = match self.layers {
            None => tail.store_in_run(guard, cycle, payload)?.then_some(length),
            Some(layers) => {
                tail.store_layered(guard, cycle, payload, layered(self.queue, layers, storing))?
            }
        };
        if let Some(length) = stored {
            self.stored.messages += 1;
            self.stored.bytes += length;
        }
        Ok(stored.is_some())
    }

    /// Makes the run visible: from then on its messages count as appended.
    pub fn show_run(&mut self) -> Result<()> {
        let stored = std::mem::take(&mut self.stored);
        if let Some(tail) = &mut self.state.tail
            && let Some(Span { first, position, last }) = tail.show_run(self.guard)?
        {
            self.appended.first.get_or_insert((first, position));
            self.appended.last = Some(last);
            self.appended.messages += stored.messages;
            self.appended.bytes += stored.bytes;
        }
        Ok(())
    }

    /// Whether the next step of space is due, to be taken without the lock; returns true once per
    /// step.
    pub fn take_low(&mut self) -> bool {
        self.state.tail.as_mut().is_some_and(Tail::take_low)
    }

    /// The index the next message gets, checking that a sequence is left for it unless it is
    /// metadata.
    pub fn next_index(&mut self, metadata: bool) -> Result<i64> {
        let tail = self.tail()?;
        tail.check_sequence(metadata)?;
        Ok(tail.next_index())
    }

    /// Goes to the place that was claimed for an index; an error if another writer has written
    /// there.
    pub fn go_to(&mut self, index: i64) -> Result<()> {
        let sequence;
        (self.cycle, sequence) = self.queue().roll().split(index)?;
        if self.tail()?.sequence == sequence { Ok(()) } else { Err(self.guard.lost_now()) }
    }

    /// Steps 4 to 6: the tail of the cycle's file, up to date.
    pub fn tail(&mut self) -> Result<&mut Tail> {
        if self.state.tail.as_ref().is_none_or(|tail| tail.view.file().cycle != self.cycle) {
            self.roll_to(self.cycle)?;
        }
        while let Err(error) = self.catch_up() {
            if !matches!(error, Error::WriteAfterEof { .. }) || self.cycle == i32::MAX {
                return Err(error);
            }
            // A writer ended the newest file and died before creating the next one, or before
            // adding it to the listing.
            self.queue().refresh(Signals::Deferred(self.guard.may_wait()))?;
            self.cycle = listing::newest(self.table, self.cycle + 1);
            self.roll_to(self.cycle)?;
        }
        let tail = self.state.tail.as_mut().ok_or_else(|| closed(self.queue))?;
        self.cycle = tail.view.file().cycle;
        Ok(tail)
    }

    /// Step 4: closes the files before `cycle` and opens or creates its file.
    fn roll_to(&mut self, cycle: i32) -> Result<()> {
        let (queue, guard) = (self.queue(), self.guard);
        self.table.shared.check_present()?; // else the file would be created in another directory
        self.appended.first = None;
        match self.state.tail.take() {
            Some(mut tail) => {
                let closed = queue.close_cycle(&mut tail.view, guard).map(Some);
                queue.unless_unreadable(tail.view.file().cycle, closed)?;
                for between in queue.cycles_between(tail.view.file().cycle, cycle)? {
                    queue.close_cycle_of(between, guard)?;
                }
            }
            None => self.normalise_up_to(cycle, false)?,
        }
        let cycle = self.after_ended(cycle)?;
        let view = queue.view_for_append(self.table, cycle, guard)?;
        queue.look_at_space(view.file());
        self.state.tail = Some(Tail::new(view, queue.roll(), queue.growth())?);
        self.state.unsynced.add(cycle);
        // SYNC POINT with W1 to W3 of `waiting/word.rs`: a sleeper finds the file before its first
        // message.
        word::settle();
        Ok(())
    }

    /// Steps 5 and 6.
    fn catch_up(&mut self) -> Result<()> {
        let (queue, table, guard) = (self.queue(), self.table, self.guard);
        let tail = self.state.tail.as_mut().ok_or_else(|| closed(self.queue))?;
        let is_first_look = tail.end() == 0;
        tail.catch_up(guard)?;
        if is_first_look { lost_tail::rewind_tailers(queue, table, tail, guard) } else { Ok(()) }
    }
}

/// Rare cases of steps 3 and 4.
impl End<'_, DetachedGuard<'_>> {
    /// Checks that are due when the clock has moved: the cycle, whether the table and the open file
    /// still exist, and whether there is space left.
    #[cold]
    fn check_surroundings(&mut self, now: i64) -> Result<()> {
        let queue = self.queue();
        self.table.shared.check_present()?;
        queue.look_for_sleepers(&mut self.state.sleepers);
        ReplicaStates::look_for(queue.path(), &mut self.state.replicas)?;
        let schedule = queue.schedule();
        let cycle = schedule.cycle_at(now)?;
        if let Some(file) = self.state.tail.as_ref().map(|tail| Arc::clone(tail.view.file())) {
            if is_removed(&file)? {
                self.leave_removed(cycle)?;
            }
            queue.look_at_space(&file);
        }
        check_clock(queue, cycle, now)?;
        let span = schedule.span_of(cycle);
        let (from, to) = (now.saturating_sub(LOOK_MS) + 1, now.saturating_add(LOOK_MS));
        let cycle = cycle.max(self.state.lowest);
        self.state.clock_cycle = (cycle, span.start.max(from)..span.end.min(to));
        Ok(())
    }

    /// Leaves a file that was removed while it was appended to, as new readers could not find its
    /// messages. The file is ended for its remaining readers, and the next cycle is used.
    fn leave_removed(&mut self, cycle: i32) -> Result<()> {
        let state = &mut *self.state;
        state.unsynced.note_lost(state.tail.as_mut())?;
        let Some(mut tail) = state.tail.take() else { return Ok(()) };
        let file = Arc::clone(tail.view.file());
        // False if the clock's cycle is later, or if the file was created again and can be used.
        // `lowest` ensures that no index is assigned twice, even if a later step fails and the next
        // append finds no file at all.
        let is_next = file.cycle >= cycle && !self.queue().has_file(file.cycle);
        if is_next {
            self.state.lowest = file.cycle.saturating_add(1);
        }
        self.queue().close_cycle(&mut tail.view, self.guard)?;
        warnings::leave(format!(
            "the roll file had been removed while it was appended to, and its messages are lost: \
             file={}",
            file.path().display()
        ));
        if is_next { self.roll_to(self.state.lowest) } else { Ok(()) }
    }

    /// This cycle, or the next one if it is compressed, or if its file is of version 4, which is
    /// ended: appends continue in version 5.
    fn after_ended(&self, mut cycle: i32) -> Result<i32> {
        while cycle < i32::MAX && (self.queue().is_compressed(cycle) || self.end_old(cycle)?) {
            cycle = listing::newest(self.table, cycle + 1);
        }
        Ok(cycle)
    }

    /// Ends the file of a cycle if it is of version 4. Returns whether it is.
    fn end_old(&self, cycle: i32) -> Result<bool> {
        match self.queue().view(cycle) {
            Ok(Some(mut view)) if create::is_of_version_4(view.file()) => {
                self.queue().close_cycle(&mut view, self.guard).map(|_| true)
            }
            _ => Ok(false),
        }
    }
}

/// Refuses to begin a cycle far ahead, if there is a limit, and warns if one exists: every append
/// goes there until the clock has caught up.
fn check_clock(queue: &Queue, cycle: i32, now: i64) -> Result<()> {
    let schedule = queue.schedule();
    let Some(newest) = i32::try_from(queue.highest_cycle()).ok().filter(|it| *it >= 0) else {
        return Ok(());
    };
    let (span, path) = (schedule.span_of(newest), queue.path().to_path_buf());
    if span.start.saturating_sub(now) > FAR_AHEAD_MS {
        queue.warn_once(newest, || {
            let (now, starts) = (time_text(now), time_text(span.start));
            format!(
                "the newest cycle is far ahead of the clock; until the clock reaches it, it gets \
                 every message: cycle={newest} starts={starts} now={now} path={}",
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

/// The time of an append: that of the queue's clock, unless the caller gave it.
#[inline]
pub fn time_of(queue: &Queue, now_ms: Option<i64>) -> i64 {
    now_ms.unwrap_or_else(|| queue.options().clock.now_ms())
}

/// Whether a message of this length can be written.
pub fn check_length(queue: &Queue, limit: u64, length: u64) -> Result<()> {
    if length <= limit {
        Ok(())
    } else {
        Err(Error::MessageTooLarge { length, limit, block_bytes: queue.block() })
    }
}

const fn layered<'a>(
    queue: &'a Queue,
    layers: &'a Layers,
    storing: &'a mut Storing,
) -> Layered<'a> {
    Layered { layers, compression: queue.compressing().compression(), storing }
}

/// The error of an append after the appender was closed.
#[cold]
pub fn closed(queue: &Queue) -> Error {
    Error::closed("appender", queue.path())
}

fn time_text(ms: i64) -> String {
    Timestamp::from_millisecond(ms).map_or_else(|_| format!("{ms} ms"), |it| it.to_string())
}
