//! The pretoucher that a user runs, by steps, in a thread, or in a process of its own.
//!
//! A step (1) finds the file that appends go to, and creates it if the cycle has none; (2) if
//! requested, creates the next cycle's file shortly before that cycle starts; (3) reserves and
//! populates space after the last message; (4) releases pages well before it. Space is prepared in
//! the same way as by the thread for fast appenders (`memory/pretouch.rs`), which then has nothing
//! left to do. No step waits for the write lock: if it is held, the next step tries again.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use super::appender::Appender;
use super::sync;
use crate::chronicle::format::blocks::{self, Growth};
use crate::chronicle::format::index;
use crate::chronicle::protocol::listing;
use crate::chronicle::protocol::lock::lock_wait::{self, LockWait};
use crate::chronicle::protocol::roll_file::{RollFile, View};
use crate::chronicle::queue::handle::{Handle, Queue};
use crate::os::detached::{Detached, SharedState};
use crate::os::interrupt::Signals;
use crate::os::process;
use crate::os::threads::{self, Running};
use crate::{Error, Result, warnings};

/// At least and at most this many bytes are prepared ahead.
const LEAST_AHEAD: u64 = 1 << 20;
const MOST_AHEAD: u64 = 64 << 20;
/// Space is prepared for this many times the bytes written since the last step.
const STEPS_AHEAD: u64 = 8;
/// This many bytes before the last message stay mapped; pages are released in pieces of this size.
const KEPT: u64 = 8 << 20;

/// Options of a pretoucher besides preparing space.
#[derive(Clone, Copy, Debug)]
pub struct Choices {
    /// Create the file of the next cycle before its time.
    pub early_acquire: bool,
    /// How long before that time, in milliseconds.
    pub preroll_ms: i64,
    /// Create no file at all.
    pub dont_write: bool,
}

/// Prepares the files of a queue ahead of its appenders.
pub struct Pretoucher {
    appender: Arc<Appender>,
    choices: Choices,
    generation: u32,
    is_ended: AtomicBool,
    state: SharedState<State>,
    thread: Mutex<Option<Running>>,
}

#[derive(Default)]
struct State {
    current: Option<TouchedFile>,
    next: Option<Arc<RollFile>>,
}

/// The file that appends go to.
struct TouchedFile {
    view: View,
    last_end: u64,
    released_to: u64,
}

impl Pretoucher {
    /// A pretoucher of a queue that was opened for writing.
    pub fn new(queue: &Arc<Queue>, choices: Choices, signals: Signals<'_>) -> Result<Arc<Self>> {
        let pretoucher = Arc::new(Self {
            appender: Appender::new(Arc::clone(queue), signals)?,
            choices,
            generation: process::generation(),
            is_ended: AtomicBool::new(false),
            state: SharedState::default(),
            thread: Mutex::default(),
        });
        let weak = Arc::downgrade(&pretoucher);
        queue.adopt(weak);
        Ok(pretoucher)
    }

    /// The queue.
    #[must_use]
    pub fn queue(&self) -> &Arc<Queue> {
        self.appender.queue()
    }

    /// Whether it, or its queue, was closed or shut down.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.is_ended.load(Ordering::Acquire) || self.queue().is_closed()
    }

    fn check_open(&self) -> Result<()> {
        self.queue().check_open("queue")?;
        if self.is_closed() {
            Err(Error::closed("pretoucher", self.queue().path()))
        } else {
            Ok(())
        }
    }

    /// Takes one step.
    pub fn execute(&self, may_wait: &Detached, now_ms: Option<i64>) -> Result<()> {
        self.check_open()?;
        let (queue, now) = (self.queue(), self.appender.now(now_ms));
        let clock = queue.schedule().cycle_at(now)?;
        let cycle = listing::newest(queue.writable_table("a pretoucher")?, clock);
        let mut state = self.state.lock(may_wait);
        self.check_open()?; // another thread may have ended it meanwhile
        self.find_current(may_wait, &mut state, cycle, now)?;
        self.acquire_next(may_wait, &mut state, cycle, now)?;
        let Some(warm) = &mut state.current else { return Ok(()) };
        warm.touch(may_wait, queue.growth())?;
        warm.release()
    }

    /// Part 1.
    fn find_current(
        &self,
        may_wait: &Detached,
        state: &mut State,
        cycle: i32,
        now: i64,
    ) -> Result<()> {
        if let Some(warm) = &state.current
            && warm.view.file().cycle == cycle
            && self.queue().has_file(cycle)
        {
            if !sync::is_removed(warm.view.file())? {
                return Ok(());
            }
            self.queue().forget_file(warm.view.file()); // another file has its name
        }
        state.current = None;
        let mut file = self.queue().file(cycle)?;
        if file.is_none() && !self.choices.dont_write {
            let prepared = self.without_waiting(|appender| {
                appender.prepare(Signals::Deferred(may_wait), Some(now))
            })?;
            file = prepared.map_or(Ok(None), |()| self.queue().file(cycle))?;
            self.appender.release_files(may_wait);
        }
        state.current = file.map(TouchedFile::new);
        Ok(())
    }

    /// Part 2.
    fn acquire_next(
        &self,
        may_wait: &Detached,
        state: &mut State,
        cycle: i32,
        now: i64,
    ) -> Result<()> {
        if state.next.as_ref().is_some_and(|next| next.cycle <= cycle) {
            state.next = None;
        }
        let Choices { early_acquire, preroll_ms, dont_write } = self.choices;
        if !early_acquire || state.next.is_some() {
            return Ok(());
        }
        let soon = now.saturating_add(preroll_ms);
        let next = self.queue().schedule().cycle_at(soon)?;
        if next <= cycle {
            return Ok(());
        }
        state.next = if dont_write {
            self.queue().file(next)?
        } else {
            self.without_waiting(|appender| {
                appender.prepare_cycle(Signals::Deferred(may_wait), next)
            })?
        };
        if let Some(next) = &state.next {
            next.window.prepare(may_wait, 0, LEAST_AHEAD, 0, Duration::ZERO)?;
        }
        Ok(())
    }

    /// Takes a step under the write lock; None if the lock is taken.
    fn without_waiting<T>(&self, step: impl FnOnce(&Appender) -> Result<T>) -> Result<Option<T>> {
        lock_wait::set(LockWait::Tries);
        let done = step(&self.appender);
        // Reset, in case the step failed before taking the lock: this thread's next append must not
        // see it.
        let _ = lock_wait::take();
        match done {
            Ok(done) => Ok(Some(done)),
            Err(
                Error::LockTimeout { .. } | Error::AppendLocked(_) | Error::LeaseExpired { .. },
            ) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Starts a thread that takes a step every `interval`, until the pretoucher or the queue ends.
    pub fn start(self: &Arc<Self>, interval: Duration) -> Result<()> {
        self.check_open()?;
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if thread.is_some() {
            return Ok(());
        }
        let weak = Arc::downgrade(self);
        let builder = std::thread::Builder::new().name("quire-warm".into());
        let started = builder.spawn(move || run(&weak, interval));
        let path = self.queue().path();
        let started = started.map_err(|e| Error::io("cannot start a thread", path, e))?;
        *thread = Some(Running::new(started));
        Ok(())
    }

    /// Prevents further steps, also of the thread, without waiting for a running one.
    pub fn shut_down(&self) {
        self.is_ended.store(true, Ordering::Release);
    }

    /// Ends the pretoucher, and its thread, and releases its files.
    pub fn close(&self, may_wait: &Detached) {
        self.shut_down();
        if self.generation != process::generation() {
            return; // forked child: the parent's thread may hold any of the locks below
        }
        threads::join(may_wait, &self.thread);
        *self.state.lock(may_wait) = State::default();
        self.appender.close(may_wait);
    }
}

impl Handle for Pretoucher {
    fn release_files(&self, may_wait: &Detached) {
        self.close(may_wait);
    }
}

/// The thread's work. Errors are logged when they change: the disk may have room again later.
fn run(pretoucher: &Weak<Pretoucher>, interval: Duration) {
    let mut reported = String::new();
    while let Some(pretoucher) = pretoucher.upgrade().filter(|found| !found.is_closed()) {
        match pretoucher.execute(&Detached::here(), None) {
            Ok(()) | Err(Error::Closed { .. }) => reported.clear(),
            Err(error) => {
                let text = format!("the pretoucher failed, and keeps trying: error={error}");
                if text != reported {
                    warnings::leave(text.clone());
                    reported = text;
                }
            }
        }
        drop(pretoucher);
        std::thread::park_timeout(interval);
    }
}

impl TouchedFile {
    fn new(file: Arc<RollFile>) -> Self {
        Self { view: View::new(file), last_end: 0, released_to: 0 }
    }

    /// Part 3.
    fn touch(&mut self, may_wait: &Detached, growth: Growth) -> Result<()> {
        let end = self.view.write_position()?;
        let written = end.saturating_sub(self.last_end.min(end));
        let is_first = std::mem::replace(&mut self.last_end, end) == 0;
        let expected = if is_first { 0 } else { written.saturating_mul(STEPS_AHEAD) };
        let to = end + expected.clamp(LEAST_AHEAD, MOST_AHEAD);
        let len = blocks::file_len(to, to, growth.block);
        self.view.file().window.prepare(may_wait, end, to, len, growth.timeout)
    }

    /// Part 4. The index array in use stays mapped: appends return to it.
    fn release(&mut self) -> Result<()> {
        let limit = self.last_end.saturating_sub(KEPT);
        if limit < self.released_to + KEPT {
            return Ok(());
        }
        let (from, array) = (self.released_to.max(KEPT), self.array_in_use()?);
        let window = &self.view.file().window;
        window.release(from, limit.min(array.start))?;
        window.release(from.max(array.end), limit)?;
        self.released_to = limit;
        Ok(())
    }

    /// Where the newest index array lies.
    fn array_in_use(&mut self) -> Result<std::ops::Range<u64>> {
        let file = Arc::clone(self.view.file());
        let (layout, shape) = (&file.layout, file.shape);
        let (upper, last) =
            (self.view.word(layout.index2index)?, self.view.word(layout.last_index)?);
        let slot = shape.upper_slot(last).min(u64::from(shape.index_count) - 1);
        let lower = match self.view.array(upper)? {
            Some(upper) => self.view.word(upper.slot(slot))?,
            None => 0,
        };
        let len = index::slots_len(shape.index_count) + index::PREAMBLE_MAX as u64;
        Ok(lower..lower.saturating_add(len))
    }
}
