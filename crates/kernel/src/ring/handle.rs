//! A ring as its producers use it. Opening it also starts a thread that drains it, unless another
//! process does (`drainer.rs`).
//!
//! A ring that ran full may have a successor, and so on: a chain, which is drained in order.
//! Messages are put into the last ring.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard};
use std::time::{Duration, Instant};

use super::file::{self, FILE_NAME, RingFile};
use super::format::{Layout, MOST_CAPACITY, SUM_LEN};
use super::noted::Noted;
use super::protocol::{self, Refused};
use crate::chronicle::append::appender::Appender;
use crate::chronicle::format::blocks;
use crate::chronicle::protocol::lock::lock_wait::{self, LockWait};
use crate::chronicle::protocol::lock::recovery;
use crate::chronicle::protocol::publish::Payload;
use crate::chronicle::queue::handle::Queue;
use crate::os::detached::{Detached, SharedState};
use crate::os::interrupt::{self, Signals};
use crate::os::threads::Running;
use crate::os::{clock, process};
use crate::{Error, Result, warnings};

/// The longest single sleep of a producer that waits for room.
const LONGEST_PAUSE: Duration = Duration::from_millis(1);
/// The largest value that Python's and the exporters' integers hold.
const MOST_STALLS: u64 = i64::MAX.cast_unsigned();
/// How often a waiting producer checks for signals.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// What a producer does when the ring is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnFull {
    /// Wait up to the timeout of the write lock.
    Block,
    /// Fail.
    Raise,
    /// Make a larger ring; wait if that is impossible.
    Grow,
}

/// How full a chain of rings is and has been.
#[derive(Clone, Copy, Debug)]
pub struct Stats {
    pub capacity: u64,
    pub used: u64,
    pub high_water: u64,
    pub pending: u64,
    pub stalls: u64,
}

impl Stats {
    /// The statistics of a directory's rings, read without changing them; None if there is no ring.
    pub fn of(dir: &Path) -> Result<Option<Self>> {
        let chain = RingFile::map_read_only(dir)?;
        let words = chain.iter().map(|(region, layout)| protocol::Ring::new(region, *layout));
        Ok((!chain.is_empty()).then(|| Self::read(words)))
    }

    /// The index at which a drainer was about to append, or has appended, messages that may still
    /// be in the ring: the next drainer compares them. None if no drainer has left one.
    pub fn intended(dir: &Path) -> Result<Option<i64>> {
        let chain = RingFile::map_read_only(dir)?;
        let words = chain.iter().map(|(region, layout)| protocol::Ring::new(region, *layout));
        let waiting = words.filter(|words| words.pending() > 0);
        Ok(waiting.filter_map(|words| words.intent().map(|intent| intent.index)).min())
    }

    fn read<'a>(chain: impl Iterator<Item = protocol::Ring<'a>>) -> Self {
        let mut sum = Self { capacity: 0, used: 0, high_water: 0, pending: 0, stalls: 0 };
        for words in chain {
            // Its predecessors are drained, and its own words include their statistics.
            if words.has_begun() {
                sum = Self {
                    capacity: 0,
                    used: 0,
                    pending: 0,
                    stalls: words.earlier_stalls().min(MOST_STALLS),
                    ..sum
                };
            }
            // Limited to possible values, whatever the files hold.
            sum.capacity += words.capacity();
            sum.used += words.used();
            sum.high_water = sum.high_water.max(words.high_water().min(2 * MOST_CAPACITY));
            sum.pending += words.pending();
            sum.stalls = sum.stalls.saturating_add(words.own_stalls()).min(MOST_STALLS);
        }
        sum
    }
}

/// The state of this process's drainer.
pub struct DrainState {
    /// The ring that it drains or waits to drain.
    pub(super) file: Arc<RingFile>,
    /// Whether it holds the drainer's lock.
    pub(super) holds: bool,
    /// Whether the intent may name messages that are both in the queue and in the ring.
    pub(super) is_in_doubt: bool,
    /// An unfinished slot, and since when the drainer has been waiting for it.
    pub(super) waits: Option<(u64, Instant)>,
}

impl DrainState {
    /// The state before any ring is known.
    pub(super) const fn at(file: Arc<RingFile>, holds: bool) -> Self {
        Self { file, holds, is_in_doubt: holds, waits: None }
    }
}

/// The outcome of putting a message in.
enum Offered {
    Put,
    /// There was no room in this ring.
    Full(Arc<RingFile>),
    /// This ring has a successor.
    Closed(Arc<RingFile>),
}

/// The ring of a queue.
pub struct Ring {
    path: PathBuf,
    pub(super) noted: Noted,
    /// The rings that were not drained at the last check, oldest first; never empty.
    chain: RwLock<Vec<Arc<RingFile>>>,
    pub(super) appender: Arc<Appender>,
    /// The longest message that this process puts in; other processes may put in longer ones.
    longest: u64,
    pub(super) generation: u32,
    pub(super) is_ended: AtomicBool,
    /// Whether the thread timed out waiting for the write lock while the ring was being closed.
    pub(super) has_waited: AtomicBool,
    /// Whether to append again messages that a dead drainer may have appended, if the queue's
    /// copies cannot be read.
    pub(super) appends_again: AtomicBool,
    pub(super) drain_state: SharedState<DrainState>,
    pub(super) thread: Mutex<Option<Running>>,
    /// Whether its thread ends once the ring is empty: this handle puts no messages in.
    pub(super) is_left_over: AtomicBool,
    on_full: OnFull,
    /// When the ring's files were last seen to be those of the directory.
    pub(super) looked_ms: AtomicI64,
    /// The last logged reason why it could not grow.
    why_not_grown: Mutex<String>,
}

impl Ring {
    /// Opens the ring of a queue that was opened for writing, or makes one.
    pub fn open(
        queue: &Arc<Queue>,
        capacity: u64,
        on_full: OnFull,
        may_wait: &mut Detached,
    ) -> Result<Arc<Self>> {
        queue.check_open("queue")?;
        let mode = queue.options().file_mode;
        let dir = Arc::new(queue.own_directory()?);
        let (layout, signals) = (Layout::of(capacity), Signals::Handled(may_wait));
        let file = RingFile::open_or_create(&dir, layout, mode, signals)?;
        let is_dead = |pid| {
            pid != process::pid() && queue.table().is_some_and(|it| recovery::is_dead(it, pid))
        };
        if let Err(error) = file::remove_left(&dir, is_dead) {
            warnings::leave(format!("unused rings stay in the directory: error={error}"));
        }
        Self::with(queue, file, on_full, may_wait)
    }

    /// The ring in a file that was just opened; other processes wait for its opener lock.
    pub(super) fn with(
        queue: &Arc<Queue>,
        file: RingFile,
        on_full: OnFull,
        may_wait: &Detached,
    ) -> Result<Arc<Self>> {
        let noted = Noted::of(queue, &file, Signals::Deferred(may_wait))?;
        let file = Arc::new(file.is_opened());
        Ok(Arc::new(Self {
            path: queue.path().join(FILE_NAME),
            noted,
            chain: RwLock::new(vec![Arc::clone(&file)]),
            appender: Appender::of_accepted(Arc::clone(queue), Signals::Deferred(may_wait))?,
            longest: blocks::longest_payload(queue.block()),
            generation: process::generation(),
            is_ended: AtomicBool::new(false),
            has_waited: AtomicBool::new(false),
            appends_again: AtomicBool::new(false),
            drain_state: SharedState::new(DrainState::at(file, false)),
            thread: Mutex::default(),
            is_left_over: AtomicBool::new(false),
            on_full,
            looked_ms: AtomicI64::new(clock::coarse_time_ms()),
            why_not_grown: Mutex::default(),
        }))
    }

    /// The queue that it drains into.
    #[must_use]
    pub fn queue(&self) -> &Arc<Queue> {
        self.appender.queue()
    }

    /// The path of the ring that is being drained.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn chain(&self) -> RwLockReadGuard<'_, Vec<Arc<RingFile>>> {
        self.chain.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// An error if no more messages can be put in.
    pub fn check_open(&self) -> Result<()> {
        self.queue().check_open("queue")?;
        if self.is_ended.load(Ordering::Acquire) {
            return Err(Error::closed("queue", self.queue().path()));
        }
        Ok(())
    }

    /// Puts a message in; false if that may take a while or is impossible.
    #[inline]
    pub fn try_put(&self, payload: Payload<'_>, metadata: bool) -> Result<bool> {
        Ok(matches!(self.offer(payload, metadata)?, Offered::Put))
    }

    #[inline]
    fn offer(&self, payload: Payload<'_>, metadata: bool) -> Result<Offered> {
        self.check_open()?;
        self.check_present()?;
        let length = payload.len();
        self.check_length(length)?;
        let chain = self.chain();
        let Some((last, earlier)) = chain.split_last() else { return Err(self.damaged()) };
        let _busy = Busy::at(last);
        let words = last.words();
        let used = earlier.iter().map(|file| file.words().used()).sum();
        let claim = match words.claim(last.producer, metadata, length + SUM_LEN, used) {
            Ok(claim) => claim,
            Err(Refused::Full) => {
                self.check_fits(length, words.capacity())?;
                return Ok(Offered::Full(Arc::clone(last)));
            }
            Err(Refused::Closed) => return Ok(Offered::Closed(Arc::clone(last))),
            Err(Refused::Damaged) => return Err(self.damaged()),
        };
        words.store(&claim, 0, payload.head);
        words.store(&claim, payload.head.len() as u64, payload.body);
        words.store_sum(&claim, payload.head, payload.body);
        if words.commit(&claim) { Ok(Offered::Put) } else { Err(self.damaged()) }
    }

    /// Puts a message into the newest ring; returns that ring if it has no room.
    fn offer_newest(
        &self,
        payload: Payload<'_>,
        metadata: bool,
        may_wait: &mut Detached,
    ) -> Result<Option<Arc<RingFile>>> {
        loop {
            match self.offer(payload, metadata)? {
                Offered::Put => return Ok(None),
                Offered::Full(full) => return Ok(Some(full)),
                Offered::Closed(closed) => self.follow(&closed, Signals::Handled(may_wait))?,
            }
        }
    }

    #[inline]
    fn check_length(&self, length: u64) -> Result<()> {
        let limit = self.longest;
        if length <= limit {
            return Ok(());
        }
        Err(Error::MessageTooLarge { length, limit, block_bytes: self.queue().block() })
    }

    /// An error if a message does not even fit an empty ring.
    fn check_fits(&self, length: u64, capacity: u64) -> Result<()> {
        let limit = if self.on_full == OnFull::Grow { MOST_CAPACITY } else { capacity } - SUM_LEN;
        if length > limit {
            return Err(Error::MessageTooLong { length, limit });
        }
        Ok(())
    }

    /// The ring that takes messages.
    pub(super) fn newest(&self, mut signals: Signals<'_>) -> Result<Arc<RingFile>> {
        loop {
            let Some(last) = self.chain().last().cloned() else { return Err(self.damaged()) };
            if !last.words().is_closed() {
                return Ok(last);
            }
            self.follow(&last, signals.again())?;
        }
    }

    /// The ring after one that is closed.
    pub(super) fn after(&self, file: &RingFile, may_wait: &Detached) -> Result<Arc<RingFile>> {
        self.newest(Signals::Deferred(may_wait))?;
        let next = self.chain().iter().find(|it| it.number > file.number).cloned();
        next.ok_or_else(|| self.damaged())
    }

    /// Finds the successor of a closed ring, and drops the rings that are drained.
    fn follow(&self, closed: &RingFile, signals: Signals<'_>) -> Result<()> {
        let next = closed.open_after(signals)?;
        self.go_on_in(next);
        Ok(())
    }

    fn go_on_in(&self, next: RingFile) {
        let mut chain = self.chain.write().unwrap_or_else(PoisonError::into_inner);
        if chain.last().is_none_or(|last| last.number < next.number) {
            chain.push(Arc::new(next));
        }
        drop(chain);
        self.forget_drained();
    }

    pub(super) fn forget_drained(&self) {
        let mut chain = self.chain.write().unwrap_or_else(PoisonError::into_inner);
        let begun = chain.iter().rposition(|file| file.words().has_begun()).unwrap_or_default();
        let drained: Vec<_> = chain.drain(..begun).collect();
        drop(chain);
        drop(drained); // slow if this is the last owner, which unmaps them
    }

    /// Closes a ring without room for `length` bytes and starts a larger one; false if impossible.
    fn grow(&self, full: &RingFile, length: u64, may_wait: &mut Detached) -> Result<bool> {
        let words = full.words();
        if words.is_closed() {
            return Ok(true); // another producer was faster
        }
        if words.capacity() == MOST_CAPACITY {
            return Ok(false);
        }
        let mode = self.queue().options().file_mode;
        let layout = Layout::of(length.max(2 * words.capacity()));
        // A ring is closed only once its successor is known to be complete; failing earlier is
        // harmless.
        let successor = full.make_successor(layout, mode, may_wait);
        match successor.and_then(|()| full.open_after(Signals::Handled(may_wait))) {
            Ok(next) => {
                words.close().map_err(|_| self.damaged())?;
                self.go_on_in(next);
                Ok(true)
            }
            Err(error) => {
                self.say_not_grown(&error);
                Ok(false)
            }
        }
    }

    fn say_not_grown(&self, error: &Error) {
        let text = format!("the ring cannot grow, so appends wait for space: error={error}");
        let mut said = self.why_not_grown.lock().unwrap_or_else(PoisonError::into_inner);
        if *said != text {
            warnings::leave(text.clone());
            *said = text;
        }
    }

    /// Puts a message in; without room it waits, fails or grows, as configured.
    pub fn put(&self, may_wait: &mut Detached, payload: Payload<'_>, metadata: bool) -> Result<()> {
        let Some(full) = self.offer_newest(payload, metadata, may_wait)? else { return Ok(()) };
        let lock_wait = lock_wait::take();
        if let LockWait::HasWaited(ms) = lock_wait {
            return Err(self.full(Duration::from_millis(ms)));
        }
        full.words().count_stall();
        if self.on_full == OnFull::Grow && self.put_growing(payload, metadata, full, may_wait)? {
            return Ok(());
        }
        let (start, mut next_look) = (Instant::now(), LOOK_EVERY);
        let timeout = match lock_wait {
            LockWait::Waits if self.waits_for_room() => self.appender.lock_timeout(),
            _ => Duration::ZERO,
        };
        loop {
            let waited = start.elapsed();
            if waited >= timeout {
                return Err(self.full(waited));
            }
            if waited >= next_look {
                next_look = waited + LOOK_EVERY;
                interrupt::check(may_wait)?;
            }
            may_wait.sleep((waited / 8).min(LONGEST_PAUSE));
            if self.offer_newest(payload, metadata, may_wait)?.is_none() {
                return Ok(());
            }
        }
    }

    /// Grows until there is room; false if it cannot.
    fn put_growing(
        &self,
        payload: Payload<'_>,
        metadata: bool,
        mut full: Arc<RingFile>,
        may_wait: &mut Detached,
    ) -> Result<bool> {
        while self.grow(&full, payload.len() + SUM_LEN, may_wait)? {
            match self.offer_newest(payload, metadata, may_wait)? {
                None => return Ok(true),
                Some(other) => full = other,
            }
        }
        Ok(false)
    }

    /// Whether a message waits for room instead of failing.
    #[must_use]
    pub fn waits_for_room(&self) -> bool {
        self.on_full != OnFull::Raise
    }

    #[cold]
    fn full(&self, waited: Duration) -> Error {
        let Stats { used, capacity, .. } = self.known_stats();
        let waited_ms = u64::try_from(waited.as_millis()).unwrap_or(u64::MAX);
        Error::RingFull { path: self.path.clone(), used, capacity, waited_ms }
    }

    #[cold]
    pub(super) fn damaged(&self) -> Error {
        let expected = "slots that follow each other (no message was dropped: keep the file, close \
                        all processes, and remove it from the queue's directory)";
        Error::corrupt("the ring contradicts itself", &self.path, 0, "other slots", expected)
    }

    /// How long a producer waits for room.
    #[must_use]
    pub fn timeout(&self) -> Duration {
        self.appender.lock_timeout()
    }

    /// How full it is and has been.
    pub fn stats(&self, signals: Signals<'_>) -> Result<Stats> {
        if self.generation != process::generation() {
            self.check_open()?; // another thread of the parent may have held a lock at the fork
        }
        self.newest(signals)?;
        Ok(self.known_stats())
    }

    /// The statistics of the rings that this process has open; None in a forked child.
    #[must_use]
    pub fn stats_at_hand(&self) -> Option<Stats> {
        (self.generation == process::generation()).then(|| self.known_stats())
    }

    fn known_stats(&self) -> Stats {
        Stats::read(self.chain().iter().map(|file| file.words()))
    }
}

/// Counts a thread of this process that is working in a ring.
struct Busy<'a>(&'a AtomicU64);

impl<'a> Busy<'a> {
    fn at(file: &'a RingFile) -> Self {
        file.busy.fetch_add(1, Ordering::SeqCst);
        Self(&file.busy)
    }
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}
