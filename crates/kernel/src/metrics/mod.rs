//! Counters and latencies of a queue, in a side file that all its processes map: readers see
//! a change as soon as it is stored, and nothing is lost when a process dies.
//!
//! The file consists of 64-bit words, added to without any lock: a magic word, the
//! file's creation time, the counters by [`Counter`], and a histogram for each [`Latency`]: the
//! sum, the highest value and the buckets of [`histogram`]. Its length is fixed. Java ignores files
//! of this name.

use std::fs::File;
use std::path::Path;
use std::time::Instant;

use crate::memory::counters::Counters;
use crate::memory::side_file::{Header, MAGIC_AT};
use crate::os::clock;
use crate::os::files::{self, Access};
use crate::probe::fault;
use crate::{Error, Result};

pub mod histogram;

/// The name of the side file.
pub const FILE_NAME: &str = "metrics.quire";

const MAGIC: u64 = u64::from_le_bytes(*b"QuireMt1");
const MADE_AT: u64 = 8;
/// Writers and readers count in separate cache lines.
const LINE: u64 = 64;
const LAST_PRUNE_AT: u64 = 4 * LINE + 16;
const HISTOGRAMS_AT: u64 = 4096;
const HISTOGRAM_LEN: u64 = 20_480;
const SUM: u64 = 0;
const HIGHEST: u64 = 8;
const BUCKETS_AT: u64 = LINE;
const LEN: u64 = HISTOGRAMS_AT + Latency::ALL.len() as u64 * HISTOGRAM_LEN;
const HEADER: Header = Header {
    magic: MAGIC,
    len: LEN,
    otherwise: "not a file of metrics (remove it while no process has it open)",
};
const _: () = assert!(BUCKETS_AT + histogram::BUCKETS * 8 <= HISTOGRAM_LEN);

/// A counter of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counter {
    /// Messages appended.
    MessagesAppended,
    /// The bytes of their payloads, as stored.
    BytesAppended,
    /// Roll files created.
    Rolls,
    /// Messages read.
    MessagesRead,
    /// The bytes of their payloads, as stored.
    BytesRead,
    /// Messages that consumer groups delivered again.
    Redeliveries,
    /// Messages that consumer groups gave up on.
    DeadLetters,
    /// Messages that consumers refused.
    Refusals,
    /// Times that consumers asked for more time.
    Extensions,
    /// Messages delivered again because their consumer refused them.
    RedeliveriesRefused,
    /// Messages delivered again because they were not acknowledged in time.
    RedeliveriesTimedOut,
    /// Messages delivered again because their consumer died.
    RedeliveriesDied,
    /// Messages delivered again because their consumer was closed.
    RedeliveriesClosed,
    /// Messages delivered again because they were taken from their consumer.
    RedeliveriesReleased,
    /// Cycles that retention removed.
    CyclesRemoved,
    /// The disk space they took.
    BytesFreed,
}

impl Counter {
    /// All of them.
    pub const ALL: [Self; 16] = [
        Self::MessagesAppended,
        Self::BytesAppended,
        Self::Rolls,
        Self::MessagesRead,
        Self::BytesRead,
        Self::Redeliveries,
        Self::DeadLetters,
        Self::Refusals,
        Self::Extensions,
        Self::RedeliveriesRefused,
        Self::RedeliveriesTimedOut,
        Self::RedeliveriesDied,
        Self::RedeliveriesClosed,
        Self::RedeliveriesReleased,
        Self::CyclesRemoved,
        Self::BytesFreed,
    ];

    /// The name shown to users.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::MessagesAppended => "messages_appended",
            Self::BytesAppended => "bytes_appended",
            Self::Rolls => "rolls",
            Self::MessagesRead => "messages_read",
            Self::BytesRead => "bytes_read",
            Self::Redeliveries => "redeliveries",
            Self::DeadLetters => "dead_letters",
            Self::Refusals => "refusals",
            Self::Extensions => "extensions",
            Self::RedeliveriesRefused => "redeliveries_refused",
            Self::RedeliveriesTimedOut => "redeliveries_timed_out",
            Self::RedeliveriesDied => "redeliveries_died",
            Self::RedeliveriesClosed => "redeliveries_closed",
            Self::RedeliveriesReleased => "redeliveries_released",
            Self::CyclesRemoved => "cycles_removed",
            Self::BytesFreed => "bytes_freed",
        }
    }

    const fn position(self) -> u64 {
        match self {
            Self::MessagesAppended => LINE,
            Self::BytesAppended => LINE + 8,
            Self::Rolls => LINE + 16,
            Self::MessagesRead => 2 * LINE,
            Self::BytesRead => 2 * LINE + 8,
            Self::Redeliveries => 3 * LINE,
            Self::DeadLetters => 3 * LINE + 8,
            Self::Refusals => 3 * LINE + 16,
            Self::Extensions => 3 * LINE + 24,
            Self::RedeliveriesRefused => 5 * LINE,
            Self::RedeliveriesTimedOut => 5 * LINE + 8,
            Self::RedeliveriesDied => 5 * LINE + 16,
            Self::RedeliveriesClosed => 5 * LINE + 24,
            Self::RedeliveriesReleased => 5 * LINE + 32,
            Self::CyclesRemoved => 4 * LINE,
            Self::BytesFreed => 4 * LINE + 8,
        }
    }
}

/// A latency, measured in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Latency {
    /// A call that appended.
    Append,
    /// A call that read something.
    Read,
    /// The wait of an append that found the write lock taken.
    LockWait,
}

impl Latency {
    /// All of them, in the order of their histograms.
    pub const ALL: [Self; 3] = [Self::Append, Self::Read, Self::LockWait];

    /// The name shown to users.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Append => "append_latency",
            Self::Read => "read_latency",
            Self::LockWait => "lock_wait",
        }
    }

    const fn position(self) -> u64 {
        HISTOGRAMS_AT + self as u64 * HISTOGRAM_LEN
    }
}

/// The values of a latency; values in one bucket differ by at most 1.6 %.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Values {
    /// Their sum.
    pub sum: u64,
    /// The highest.
    pub highest: u64,
    /// For each nonempty bucket: its lowest value, the lowest of the next bucket, and its count.
    pub buckets: Vec<(u64, u64, u64)>,
}

/// The metrics of a queue, mapped.
pub struct Metrics {
    words: Counters,
}

/// When a call began, if its queue counts.
#[derive(Clone, Copy, Default)]
pub struct Timer<'a>(Option<(&'a Metrics, Instant)>);

impl<'a> Timer<'a> {
    /// Begins a call.
    #[inline]
    #[must_use]
    pub fn start(metrics: Option<&'a Metrics>) -> Self {
        Self(metrics.map(|metrics| (metrics, Instant::now())))
    }

    /// Counts the call if it appended messages.
    #[inline]
    pub fn appended(self, messages: u64, bytes: u64) {
        if let Some((metrics, began)) = self.0 {
            metrics.appended(began, messages, bytes);
        }
    }

    /// Counts the call if it read messages.
    #[inline]
    pub fn read(self, messages: u64, bytes: u64) {
        if let Some((metrics, began)) = self.0 {
            metrics.read(began, messages, bytes);
        }
    }

    /// Counts how long the call took.
    #[inline]
    pub fn took(self, what: Latency) {
        if let Some((metrics, began)) = self.0 {
            metrics.took(what, began);
        }
    }
}

impl Metrics {
    /// Opens the metrics of the queue in `directory` for counting; the file is created if missing.
    pub fn open(directory: &Path, mode: u32) -> Result<Self> {
        let path = directory.join(FILE_NAME);
        let access = Access { write: true, create_mode: Some(mode) };
        let file = files::open(&path, access)?.ok_or_else(|| Error::gone("removed", &path))?;
        let failed = |e| Error::io("cannot make", &path, e);
        if !is_whole(&file, &path)? {
            files::extend(&file, LEN).map_err(failed)?; // others may be at it too: the same
        }
        // A full disk is an error here rather than a signal at the first store.
        files::reserve(&file, 0, LEN).map_err(failed)?;
        let metrics = Self::map(&file, &path, true)?;
        let now = clock::coarse_time_ms().cast_unsigned();
        metrics.words.set_once(MADE_AT, now);
        metrics.words.set_once(MAGIC_AT, MAGIC);
        metrics.checked(&path)?.ok_or_else(|| Error::gone("removed", &path))
    }

    /// Opens the metrics of the queue in `directory`; None if it has none.
    pub fn open_existing(directory: &Path, writable: bool) -> Result<Option<Self>> {
        let path = directory.join(FILE_NAME);
        let access = Access { write: writable, create_mode: None };
        let Some(file) = files::open(&path, access)? else { return Ok(None) };
        if !is_whole(&file, &path)? {
            return Ok(None); // being made
        }
        Self::map(&file, &path, writable)?.checked(&path)
    }

    fn map(file: &File, path: &Path, writable: bool) -> Result<Self> {
        let words = Counters::map(file, LEN, writable);
        Ok(Self { words: words.map_err(|e| Error::io("cannot map", path, e))? })
    }

    /// None if the file is still being created.
    fn checked(self, path: &Path) -> Result<Option<Self>> {
        let is_made = HEADER.has_magic(self.words.load(MAGIC_AT), path)?;
        Ok(is_made.then_some(self))
    }

    /// Unmaps the file: counts from here on are discarded.
    pub fn close(&self) {
        self.words.leave_file();
    }

    /// Counts one call that appended.
    pub fn appended(&self, began: Instant, messages: u64, bytes: u64) {
        if messages > 0 {
            self.words.add(Counter::MessagesAppended.position(), messages);
            self.words.add(Counter::BytesAppended.position(), bytes);
            self.took(Latency::Append, began);
        }
    }

    /// Counts one call that read.
    pub fn read(&self, began: Instant, messages: u64, bytes: u64) {
        if messages > 0 {
            self.words.add(Counter::MessagesRead.position(), messages);
            self.words.add(Counter::BytesRead.position(), bytes);
            self.took(Latency::Read, began);
        }
    }

    /// Counts a new roll file.
    pub fn rolled(&self) {
        self.words.add(Counter::Rolls.position(), 1);
    }

    /// Counts an event of consumer groups.
    pub fn shared(&self, what: Counter, count: u64) {
        self.words.add(what.position(), count);
    }

    /// Counts a run of retention: removed cycles and bytes, and its time in epoch milliseconds.
    pub fn pruned(&self, cycles: u64, bytes: u64, now_ms: u64) {
        self.words.add(Counter::CyclesRemoved.position(), cycles);
        self.words.add(Counter::BytesFreed.position(), bytes);
        self.words.raise(LAST_PRUNE_AT, now_ms);
    }

    /// When retention ran last, in epoch milliseconds; 0 if it never did.
    #[must_use]
    pub fn last_prune_ms(&self) -> u64 {
        self.words.load(LAST_PRUNE_AT)
    }

    /// Counts the time since `began`.
    pub fn took(&self, what: Latency, began: Instant) {
        let nanos = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let at = what.position();
        self.words.raise(at + HIGHEST, nanos); // before the bucket: the readers' upper bound
        self.words.add(at + SUM, nanos);
        self.words.add(at + BUCKETS_AT + 8 * histogram::bucket(nanos), 1);
    }

    /// When the file was created, in epoch milliseconds.
    #[must_use]
    pub fn made_ms(&self) -> u64 {
        self.words.load(MADE_AT)
    }

    /// The value of a counter.
    #[must_use]
    pub fn counted(&self, what: Counter) -> u64 {
        self.words.load(what.position())
    }

    /// The values of a latency. Values counted concurrently may be missing from some fields.
    #[must_use]
    pub fn values(&self, what: Latency) -> Values {
        let at = what.position();
        let highest = self.words.load(at + HIGHEST);
        let bucket = |number| {
            let count = self.words.load(at + BUCKETS_AT + 8 * number);
            let (low, high) = histogram::bounds(number);
            (count > 0).then_some((low, high, count))
        };
        Values {
            sum: self.words.load(at + SUM),
            highest,
            buckets: (0..=histogram::bucket(highest)).filter_map(bucket).collect(),
        }
    }
}

/// False if the file is still being created.
fn is_whole(file: &File, path: &Path) -> Result<bool> {
    let found = fault::call!("metrics.file.stat", file.metadata());
    HEADER.has_length(found.map_err(|e| Error::io("cannot look at", path, e))?.len(), path)
}
