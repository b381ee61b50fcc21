//! A ring as its producers use it. Who opens it also has a thread that drains it, unless another
//! process does (`drainer.rs`).

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::file::RingFile;
use super::format::HIGH_WATER;
use super::format::{Layout, STALLS};
use super::protocol::{self, Refused};
use crate::chronicle::append::appender::Appender;
use crate::chronicle::protocol::lock::interrupt;
use crate::chronicle::protocol::lock::patience::{self, Patience};
use crate::chronicle::protocol::publish::Payload;
use crate::chronicle::queue::handle::Queue;
use crate::memory::window::Region;
use crate::os::process;
use crate::{Error, Result};

/// A producer that waits for room sleeps for at most this long at once.
const LONGEST_PAUSE: Duration = Duration::from_millis(1);
/// It looks for signals this often.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Messages that threads of this process are putting into rings now.
static BUSY: AtomicU64 = AtomicU64::new(0);

/// What a producer does when the ring is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnFull {
    /// It waits, as long as an append waits for the write lock.
    Block,
    /// It fails.
    Raise,
}

/// How full a ring is, and was.
#[derive(Clone, Copy, Debug)]
pub struct Stats {
    pub capacity: u64,
    pub used: u64,
    pub high_water: u64,
    pub pending: u64,
    pub stalls: u64,
}

impl Stats {
    /// Those of the ring of a directory, which is not changed; None if there is none.
    pub fn of(dir: &Path) -> Result<Option<Self>> {
        let found = RingFile::map_read_only(dir)?;
        Ok(found.map(|(region, layout)| Self::read(&region, layout)))
    }

    fn read(region: &Region, layout: Layout) -> Self {
        let words = protocol::Ring::new(region, layout);
        Self {
            capacity: layout.capacity,
            used: words.used(),
            // Within what is possible, whatever the file holds.
            high_water: region.load_acquire(HIGH_WATER).min(layout.capacity),
            pending: words.tail().saturating_sub(words.drained()).min(layout.slots),
            stalls: region.load_acquire(STALLS).min(i64::MAX.cast_unsigned()),
        }
    }
}

/// What the drainer of this process knows.
#[derive(Default)]
pub struct Turn {
    /// It holds the drainer's lock.
    pub(super) holds: bool,
    /// The intent may speak of messages that are in the queue and in the ring.
    pub(super) is_in_doubt: bool,
    /// A slot that is being written, and since when that is waited for.
    pub(super) waits: Option<(u64, Instant)>,
}

/// The ring of a queue.
pub struct Ring {
    pub(super) file: RingFile,
    pub(super) appender: Arc<Appender>,
    pub(super) generation: u32,
    pub(super) is_ended: AtomicBool,
    pub(super) turn: Mutex<Turn>,
    pub(super) thread: Mutex<Option<JoinHandle<()>>>,
    on_full: OnFull,
}

impl Ring {
    /// Opens the ring of a queue that was opened for writing, or makes one.
    pub fn open(queue: &Arc<Queue>, capacity: u64, on_full: OnFull) -> Result<Arc<Self>> {
        queue.check_open("queue")?;
        let mode = queue.options().file_mode;
        let file = RingFile::open_or_create(queue.path(), Layout::of(capacity), mode)?;
        Self::with(queue, file, on_full)
    }

    pub(super) fn with(queue: &Arc<Queue>, file: RingFile, on_full: OnFull) -> Result<Arc<Self>> {
        Ok(Arc::new(Self {
            file,
            appender: Appender::new(Arc::clone(queue))?,
            generation: process::generation(),
            is_ended: AtomicBool::new(false),
            turn: Mutex::default(),
            thread: Mutex::default(),
            on_full,
        }))
    }

    /// The queue that it is drained into.
    #[must_use]
    pub fn queue(&self) -> &Arc<Queue> {
        self.appender.queue()
    }

    pub(super) fn words(&self) -> protocol::Ring<'_> {
        protocol::Ring::new(&self.file.region, self.file.layout)
    }

    /// An error when no message can be put in any more.
    pub fn check_open(&self) -> Result<()> {
        self.queue().check_open("queue")?;
        if self.is_ended.load(Ordering::Acquire) {
            return Err(Error::closed("queue", self.queue().path()));
        }
        Ok(())
    }

    /// Puts a message in, unless there is no room: then false.
    #[inline]
    pub fn try_put(&self, payload: Payload<'_>, metadata: bool) -> Result<bool> {
        self.check_open()?;
        let length = payload.len();
        self.appender.check_length(length)?;
        if length > self.file.layout.capacity {
            return Err(Error::MessageTooLong { length, limit: self.file.layout.capacity });
        }
        let (_busy, words) = (Busy::new(), self.words());
        let claim = match words.claim(process::pid(), metadata, length) {
            Ok(claim) => claim,
            Err(Refused::Full) => return Ok(false),
            Err(Refused::Damaged) => return Err(self.damaged()),
        };
        words.store(&claim, 0, payload.head);
        words.store(&claim, payload.head.len() as u64, payload.body);
        if words.commit(&claim) { Ok(true) } else { Err(self.damaged()) }
    }

    /// Puts a message in; where there is no room, it waits or fails, as was chosen.
    pub fn put(&self, payload: Payload<'_>, metadata: bool) -> Result<()> {
        if self.try_put(payload, metadata)? {
            return Ok(());
        }
        let patience = patience::take();
        if let Patience::HasWaited(ms) = patience {
            return Err(self.full(Duration::from_millis(ms)));
        }
        self.words().count_stall();
        let (start, mut next_look) = (Instant::now(), LOOK_EVERY);
        let timeout = match patience {
            Patience::Waits if self.waits_for_room() => self.appender.lock_timeout(),
            _ => Duration::ZERO,
        };
        loop {
            let waited = start.elapsed();
            if waited >= timeout {
                return Err(self.full(waited));
            }
            if waited >= next_look {
                next_look = waited + LOOK_EVERY;
                interrupt::check()?;
            }
            std::thread::sleep((waited / 8).min(LONGEST_PAUSE));
            if self.try_put(payload, metadata)? {
                return Ok(());
            }
        }
    }

    /// Whether a message waits when there is no room, instead of failing.
    #[must_use]
    pub fn waits_for_room(&self) -> bool {
        self.on_full == OnFull::Block
    }

    #[cold]
    fn full(&self, waited: Duration) -> Error {
        let Stats { used, capacity, .. } = self.stats();
        let waited_ms = u64::try_from(waited.as_millis()).unwrap_or(u64::MAX);
        Error::RingFull { path: self.file.path.clone(), used, capacity, waited_ms }
    }

    #[cold]
    pub(super) fn damaged(&self) -> Error {
        let expected = "slots that follow each other (no message was dropped: keep the file, close \
                        all processes, and remove it from the queue's directory)";
        Error::corrupt("the ring contradicts itself", &self.file.path, 0, "other slots", expected)
    }

    /// How long a producer waits for room.
    #[must_use]
    pub fn timeout(&self) -> Duration {
        self.appender.lock_timeout()
    }

    /// How full it is, and was.
    #[must_use]
    pub fn stats(&self) -> Stats {
        Stats::read(&self.file.region, self.file.layout)
    }
}

/// Counts a thread of this process that is at work in a ring.
struct Busy;

impl Busy {
    fn new() -> Self {
        BUSY.fetch_add(1, Ordering::SeqCst);
        Self
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        BUSY.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Whether a thread of this process is at work in a ring.
pub(super) fn is_busy() -> bool {
    BUSY.load(Ordering::SeqCst) > 0
}
