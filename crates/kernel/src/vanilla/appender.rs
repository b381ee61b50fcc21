use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, MutexGuard};
use std::time::Instant;

use super::format::record;
use super::protocol::cycle_writer::{CycleWriter, Room, Unsynced};
use super::protocol::detect::Layout;
use super::queue::VanillaQueue;
use crate::os::detached::{Detached, SharedState};
use crate::os::handles::Handle;
use crate::os::{files, process};
use crate::{Error, Result};

/// A message to append, in consecutive parts.
#[derive(Clone, Copy, Debug, Default)]
pub struct Record<'a> {
    /// The consecutive parts.
    pub parts: [&'a [u8]; 2],
    /// The room it needs.
    pub room: Room,
    /// Whether to return only when the message is on the medium.
    pub synchronous: bool,
}

/// Writes messages at the end of a queue.
pub struct VanillaAppender {
    queue: Arc<VanillaQueue>,
    /// The thread id; None: that of the thread that begins a cycle, as in Java. Quire writers with
    /// the same thread id share no file, but Java's do not check for others.
    tid: Option<u32>,
    state: SharedState<State>,
    is_closed: AtomicBool,
    /// The longest message of the current cycle; unlimited before there is one.
    longest: AtomicU64,
}

impl Handle for VanillaAppender {
    fn close_with_queue(&self, may_wait: &Detached) {
        self.close(may_wait);
    }
}

#[derive(Default)]
struct State {
    writer: Option<CycleWriter>,
    /// The times of its cycle.
    times: Range<i64>,
    /// Cycles that were left since the last sync, and when they were.
    left: Vec<(Instant, Unsynced)>,
    /// Whether a sync has failed: the system reports a failed write only once.
    has_sync_failed: bool,
    last: Option<i64>,
}

impl State {
    fn sync(&mut self) -> Result<()> {
        while let Some((_, left)) = self.left.last_mut() {
            left.sync()?;
            self.left.pop();
        }
        self.writer.as_mut().map_or(Ok(()), CycleWriter::sync)
    }
}

impl VanillaAppender {
    /// Opens no file yet. `tid` is the thread id in the names of its files.
    pub fn new(queue: Arc<VanillaQueue>, tid: Option<u32>) -> Result<Arc<Self>> {
        queue.check_open("queue")?;
        if queue.options().read_only {
            return Err(Error::ReadOnly { what: "an appender", path: queue.path().to_path_buf() });
        }
        Ok(Arc::clone(&queue).handles.adopt(Self {
            queue,
            tid,
            state: SharedState::default(),
            is_closed: AtomicBool::new(false),
            longest: AtomicU64::new(u64::MAX),
        }))
    }

    /// Its queue.
    #[must_use]
    pub const fn queue(&self) -> &Arc<VanillaQueue> {
        &self.queue
    }

    /// Appends a message in the cycle of `now_ms`, by default the clock's time.
    pub fn append(
        &self,
        may_wait: &Detached,
        now_ms: Option<i64>,
        record: Record<'_>,
    ) -> Result<i64> {
        let mut state = self.open_state(may_wait)?;
        self.append_in(&mut state, self.now(now_ms), record)
    }

    /// Like [`Self::append`]; None if that may wait: for another thread of this appender, for the
    /// files of another cycle, or for the medium.
    #[inline]
    pub fn try_append(&self, now_ms: Option<i64>, record: Record<'_>) -> Result<Option<i64>> {
        if record.synchronous || self.queue.options().synchronous {
            return Ok(None);
        }
        self.queue.check_open("appender")?;
        let Some(mut state) = self.state.try_lock() else { return Ok(None) };
        self.check_open()?;
        let now_ms = self.now(now_ms);
        if state.writer.is_none() || !state.times.contains(&now_ms) {
            return Ok(None);
        }
        self.append_in(&mut state, now_ms, record).map(Some)
    }

    /// Appends `count` messages in the current cycle; returns the last index. Messages before a
    /// failed one stay.
    pub fn append_all<'a>(
        &self,
        may_wait: &Detached,
        now_ms: Option<i64>,
        count: usize,
        record: impl Fn(usize) -> Result<Record<'a>>,
    ) -> Result<Option<i64>> {
        let mut state = self.open_state(may_wait)?;
        let now_ms = self.now(now_ms);
        let mut last = None;
        for number in 0..count {
            last = Some(self.append_in(&mut state, now_ms, record(number)?)?);
        }
        Ok(last)
    }

    #[inline]
    fn now(&self, now_ms: Option<i64>) -> i64 {
        now_ms.unwrap_or_else(|| self.queue.options().clock.now_ms())
    }

    #[inline]
    fn append_in(&self, state: &mut State, now_ms: i64, record: Record<'_>) -> Result<i64> {
        if state.writer.is_none() || !state.times.contains(&now_ms) {
            self.go_to(state, now_ms, record)?;
        }
        let Some(writer) = &mut state.writer else { unreachable!("a cycle was just opened") };
        check_length(record, &writer.layout)?;
        let synced = record.synchronous || self.queue.options().synchronous;
        if synced {
            self.queue.sync_own_name()?;
        }
        let appended = writer.append(record.parts, record.room, synced);
        state.has_sync_failed |= writer.has_sync_failed;
        let is_gone = appended.is_err() && matches!(writer.is_present(), Ok(false));
        let cycle = writer.cycle;
        if is_gone {
            state.writer = None; // the next append creates the cycle again
        }
        let index = self.queue.index_of(cycle, appended?)?;
        state.last = Some(index);
        Ok(index)
    }

    #[cold]
    fn go_to(&self, state: &mut State, now_ms: i64, record: Record<'_>) -> Result<()> {
        let cycle = self.queue.cycle_at(Some(now_ms))?;
        let layout = self.queue.layout_for(cycle)?;
        check_length(record, &layout)?;
        self.queue.check_cycle(cycle)?;
        let opened = self.open_cycle(cycle, layout)?;
        self.longest.store(CycleWriter::longest_payload(&opened.layout), Ordering::Release);
        let left = state.writer.replace(opened).and_then(CycleWriter::leave);
        state.times = self.queue.format().times(cycle);
        state.left.retain(|(since, _)| since.elapsed() < files::WHOLE_AFTER);
        state.left.extend(left.map(|left| (Instant::now(), left)));
        Ok(())
    }

    fn open_cycle(&self, cycle: i32, layout: Layout) -> Result<CycleWriter> {
        let bits = layout.packing.tid_bits;
        // Entries of a queue from another machine may have too few bits for it: use the greatest
        // that fits.
        let tid = self.tid.unwrap_or_else(|| process::system_thread_id().min((1 << bits) - 1));
        if tid >> bits != 0 {
            let what = "the thread id needs more bits than entries have for it";
            return Err(Error::Invalid(format!("{what}: thread_id={tid} tid_bits={bits}")));
        }
        let options = self.queue.options();
        let name = self.queue.name_of(cycle)?;
        CycleWriter::open(cycle, self.queue.path(), &name, layout, tid, options.file_mode)
    }

    /// An error for a message that does not fit a data file of the current cycle.
    pub fn check_fits(&self, length: u64) -> Result<()> {
        self.queue.check_open("appender")?;
        self.check_open()?;
        let limit = self.longest.load(Ordering::Acquire);
        if length <= limit { Ok(()) } else { Err(Error::MessageTooLong { length, limit }) }
    }

    /// The index of the last message of this appender.
    pub fn last_index_appended(&self, may_wait: &Detached) -> Result<Option<i64>> {
        Ok(self.open_state(may_wait)?.last)
    }

    /// Returns when all messages of this appender are on the medium.
    pub fn sync(&self, may_wait: &Detached) -> Result<()> {
        let mut state = self.open_state(may_wait)?;
        if state.has_sync_failed {
            let what = "an earlier sync failed, and messages written before it may be lost (close \
                        the appender and check its last messages)";
            let error = std::io::Error::from_raw_os_error(libc::EIO);
            return Err(Error::io(what, self.queue.path(), error));
        }
        let synced = state.sync().and_then(|()| self.queue.sync_own_name());
        state.has_sync_failed = matches!(synced, Err(Error::Io { .. }));
        synced
    }

    /// Closes the appender.
    pub fn close(&self, may_wait: &Detached) {
        self.is_closed.store(true, Ordering::Release);
        self.state.lock(may_wait).writer = None;
    }

    /// Whether the appender or its queue was closed.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire) || self.queue.is_closed()
    }

    fn open_state<'a>(&'a self, may_wait: &'a Detached) -> Result<MutexGuard<'a, State>> {
        self.queue.check_open("appender")?;
        let state = self.state.lock(may_wait);
        self.check_open().map(|()| state)
    }

    /// Called with the state locked: closing sets the flag and then waits for the state.
    #[inline]
    fn check_open(&self) -> Result<()> {
        if self.is_closed() {
            return Err(Error::closed("appender", self.queue.path()));
        }
        Ok(())
    }
}

#[inline]
fn check_length(record: Record<'_>, layout: &Layout) -> Result<()> {
    let length = record.parts.iter().map(|part| part.len() as u64).sum::<u64>();
    let padding = if record.room.is_aligned { record::padding(0) } else { 0 };
    let length = length.max(record.room.capacity);
    let limit = CycleWriter::longest_payload(layout) - padding;
    if length <= limit {
        return Ok(());
    }
    Err(Error::MessageTooLong { length, limit })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vanilla::VanillaOptions;

    #[test]
    fn a_tried_append_waits_for_no_other_thread() {
        let dir = tempfile::tempdir().unwrap();
        let queue = VanillaQueue::open(dir.path(), VanillaOptions::default()).unwrap();
        let appender = VanillaAppender::new(Arc::new(queue), None).unwrap();
        let record = Record { parts: [b"message", &[]], ..Record::default() };
        let (may_wait, now) = (&Detached::here(), Some(1_700_000_000_000));
        assert_eq!(appender.try_append(now, record).unwrap(), None, "no cycle is open");
        let first = appender.append(may_wait, now, record).unwrap();
        let syncing = appender.state.lock(may_wait);
        assert_eq!(appender.try_append(now, record).unwrap(), None, "another thread has it");
        assert!(!appender.is_closed());
        appender.check_fits(7).unwrap();
        drop(syncing);
        assert_eq!(appender.try_append(now, record).unwrap(), Some(first + 1));
        appender.close(may_wait);
        assert!(matches!(appender.try_append(now, record), Err(Error::Closed { .. })));
    }
}
