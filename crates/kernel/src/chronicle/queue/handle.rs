//! A queue: a directory, its table store, its roll files.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use super::commit::Commit;
use super::counting::Counting;
use super::low_space::LowSpace;
use super::open::{self, FIELDLESS, Opened};
use super::options::Options;
use super::sleepers::Sleepers;
use crate::chronicle::format::blocks::Growth;
use crate::chronicle::format::roll_cycle::{RollCycle, Schedule};
use crate::chronicle::format::table::{NO_HIGHEST, NO_INDEX};
use crate::chronicle::protocol::create;
use crate::chronicle::protocol::file_events::FileEvents;
use crate::chronicle::protocol::listing::{self, Listing, Names};
use crate::chronicle::protocol::locate::{self, Located};
use crate::chronicle::protocol::roll_file::{RollFile, Slot, View};
use crate::chronicle::protocol::table::store::TableStore;
use crate::memory::pretouch::Pretoucher;
use crate::metrics::Metrics;
use crate::os::detached::Detached;
use crate::os::interrupt::Signals;
use crate::os::{clock, process};
use crate::waiting::side_file::SideFile;
use crate::{Error, Result, warnings};

mod compressing;
mod files;

/// Up to this many cycles are looked up by name rather than by listing the directory.
const FEW_CYCLES: usize = 64;

/// How often, by the queue's clock, handles check the state of their files and of the disk.
pub const LOOK_MS: i64 = 1000;

/// A handle that a queue closes when it is closed.
pub trait Handle: Send + Sync {
    /// Unmaps and closes what the handle holds open.
    fn release_files(&self, may_wait: &Detached);

    /// The same when `queue` closes, which may happen on dropping its last reference.
    fn release_files_of(&self, may_wait: &Detached, _queue: &Queue) {
        self.release_files(may_wait);
    }
}

/// Where the documents of a cycle end.
struct CycleEnd {
    position: u64,
    messages: u64,
    /// Whether it has an end-of-file marker.
    is_marked: bool,
}

impl CycleEnd {
    const fn last_sequence(&self) -> Option<u64> {
        self.messages.checked_sub(1)
    }
}

/// An open queue; appenders and tailers share it.
pub struct Queue {
    pub(super) opened: Opened,
    options: Options,
    generation: u32,
    closed: AtomicBool,
    listing: Listing,
    files: Mutex<HashMap<i32, Weak<RollFile>>>,
    handles: Mutex<Vec<Weak<dyn Handle>>>,
    pretoucher: Pretoucher,
    low_space: Arc<LowSpace>,
    commit: Commit,
    /// The background sync thread, once there is an appender.
    committer: OnceLock<Arc<dyn Handle>>,
    counting: Counting,
    pub(super) sleepers: Sleepers,
    /// When a reader last checked whether the table was replaced.
    looked_ms: AtomicI64,
    file_events: Option<Arc<FileEvents>>,
    /// Cycles whose damaged files have been warned about.
    warned: Mutex<HashSet<i32>>,
}

impl Queue {
    /// Opens the queue at `path`, a directory or (read-only) one roll file.
    pub fn open(path: &Path, options: Options, may_wait: &mut Detached) -> Result<Arc<Self>> {
        let opened = open::open(path, &options, may_wait)?;
        let low_space = Arc::new(LowSpace::new(&options));
        let pretoucher = Pretoucher::new(options.pretouch, low_space.watch());
        let commit = Commit::new(options.durability, options.group_commit, options.time_index);
        let counting = Counting::begin(&opened.dir, &options)?;
        let file_events = options.file_events.then(FileEvents::new);
        let queue = Self {
            opened,
            options,
            generation: process::generation(),
            closed: AtomicBool::new(false),
            listing: Listing::default(),
            files: Mutex::new(HashMap::new()),
            handles: Mutex::new(Vec::new()),
            pretoucher,
            low_space,
            commit,
            committer: OnceLock::new(),
            counting,
            sleepers: Sleepers::default(),
            looked_ms: AtomicI64::new(clock::coarse_time_ms()),
            file_events,
            warned: Mutex::default(),
        };
        Ok(Arc::new(queue))
    }

    /// An error when the queue was closed, or belongs to a parent process.
    #[inline]
    pub fn check_open(&self, what: &'static str) -> Result<()> {
        self.check_generation()?;
        if self.is_closed() { Err(Error::closed(what, self.path())) } else { Ok(()) }
    }

    /// An error when the queue belongs to a parent process.
    #[inline]
    pub fn check_generation(&self) -> Result<()> {
        if self.generation == process::generation() { Ok(()) } else { Err(Error::Forked) }
    }

    /// Closes the queue and all its handles: their files are unmapped and closed.
    pub fn close(&self, may_wait: &Detached) {
        if self.closed.swap(true, Ordering::AcqRel) {
            return;
        }
        if self.check_generation().is_err() {
            return; // forked child: threads of the parent may hold any of the locks below
        }
        self.pretoucher.end();
        let handles = std::mem::take(&mut *self.lock_handles());
        handles
            .iter()
            .filter_map(Weak::upgrade)
            .for_each(|handle| handle.release_files_of(may_wait, self));
        self.lock_files().clear();
        self.sleepers.close(may_wait);
        if let Some(table) = &self.opened.table {
            table.close();
        }
        self.counting.close();
        if let Some(events) = &self.file_events {
            events.end();
        }
    }

    /// Registers a handle to be closed with the queue.
    pub fn adopt(&self, handle: Weak<dyn Handle>) {
        let mut handles = self.lock_handles();
        if handles.len() == handles.capacity() {
            handles.retain(|handle| handle.strong_count() > 0);
        }
        handles.push(handle);
    }

    fn lock_handles(&self) -> MutexGuard<'_, Vec<Weak<dyn Handle>>> {
        self.handles.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the queue was closed.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// The directory, or the single file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.opened.path
    }

    /// The options it was opened with.
    #[must_use]
    pub const fn options(&self) -> &Options {
        &self.options
    }

    /// Whether it was opened read-only.
    #[must_use]
    pub const fn is_read_only(&self) -> bool {
        self.options.read_only
    }

    /// Its roll cycle.
    #[must_use]
    pub const fn roll(&self) -> &RollCycle {
        self.opened.schedule.roll()
    }

    /// Its epoch in milliseconds.
    #[must_use]
    pub const fn epoch_ms(&self) -> i64 {
        self.opened.schedule.epoch_ms()
    }

    /// When its cycles start.
    #[must_use]
    pub const fn schedule(&self) -> &Schedule {
        &self.opened.schedule
    }

    /// Chronicle's name of its wire type.
    #[must_use]
    pub fn wire_type(&self) -> &str {
        &self.opened.wire_type
    }

    /// Whether fields of messages have no names.
    #[must_use]
    pub fn is_fieldless(&self) -> bool {
        self.opened.wire_type == FIELDLESS
    }

    /// Its id in message history.
    #[must_use]
    pub const fn source_id(&self) -> i32 {
        self.opened.source_id
    }

    /// Block size in bytes.
    #[must_use]
    pub const fn block(&self) -> u64 {
        self.opened.block
    }

    /// The most slots that an index array of one of its files is expected to have.
    #[must_use]
    pub fn index_count(&self) -> u32 {
        self.opened.index_count.max(self.roll().index_count)
    }

    /// Prepares space ahead of fast appenders.
    #[must_use]
    pub const fn pretoucher(&self) -> &Pretoucher {
        &self.pretoucher
    }

    /// The state of its durability.
    #[must_use]
    pub const fn commit(&self) -> &Commit {
        &self.commit
    }

    /// Keeps the background sync thread for the life of the queue.
    pub fn keep_committer(
        &self,
        may_wait: &Detached,
        start: impl FnOnce() -> Result<Arc<dyn Handle>>,
    ) -> Result<()> {
        let _turn = self.commit.lock_syncing(may_wait);
        if self.committer.get().is_none() {
            let _ = self.committer.set(start()?);
        }
        Ok(())
    }

    /// The index up to which any process has synced the queue; None if unknown.
    pub fn last_index_synced(&self) -> Result<Option<i64>> {
        let Some(table) = self.table() else { return Ok(None) };
        let word = table.value(table.words().last_synced, NO_INDEX);
        Ok(self.last_index_left()?.filter(|last| (0..=*last).contains(&word)).map(|_| word))
    }

    /// The table store; None for a read-only queue that has none.
    #[must_use]
    pub fn table(&self) -> Option<&TableStore> {
        self.opened.table.as_deref()
    }

    /// The table store of a writable queue.
    pub fn writable_table(&self, what: &'static str) -> Result<&TableStore> {
        match self.table() {
            Some(table) if !self.is_read_only() => Ok(table),
            _ => Err(Error::ReadOnly { what, path: self.opened.path.clone() }),
        }
    }

    /// The metrics of its handles, if it was opened with metrics.
    #[inline]
    #[must_use]
    pub const fn metrics(&self) -> Option<&Metrics> {
        self.counting.own()
    }

    /// The metrics of any of its processes; None if none counts.
    pub fn any_metrics(&self) -> Result<Option<&Metrics>> {
        self.counting.any(&self.opened.dir)
    }

    /// The side file by which readers of this queue sleep; None if it is read-only.
    pub fn side_file_to_wait_at(&self, may_wait: &Detached) -> Option<Arc<SideFile>> {
        let may_write = !self.is_read_only() && self.check_open("queue").is_ok();
        let mode = self.options.file_mode;
        may_write.then(|| self.sleepers.of_waiter(&self.opened, mode, may_wait)).flatten()
    }

    /// Finds the side file of sleeping readers, for an appender.
    pub fn look_for_sleepers(&self, found: &mut Option<Arc<SideFile>>) {
        self.sleepers.look_for(&self.opened, found);
    }

    pub(super) fn names(&self) -> Names<'_> {
        Names { dir: &self.opened.dir, roll: self.roll(), epoch_ms: self.epoch_ms() }
    }

    /// The path of a cycle's file.
    pub fn file_for_cycle(&self, cycle: i32) -> Result<PathBuf> {
        Ok(self.opened.dir.join(self.roll().file_name(cycle, self.epoch_ms())?))
    }

    /// Lists the directory again, and updates the table if that is writable.
    pub fn refresh(&self, signals: Signals<'_>) -> Result<()> {
        self.listing.forget();
        match self.writable_table("refresh") {
            Ok(table) => listing::refresh(self.names(), table, signals),
            Err(_) => Ok(()),
        }
    }

    /// Like [`Queue::refresh`], but does nothing if the table is known to have both ends.
    pub fn refresh_if_needed(&self, signals: Signals<'_>) -> Result<()> {
        listing::refresh_if_needed(self.names(), self.writable_table("refresh")?, signals)
    }

    /// Notes in the table that the files of all cycles before this one are about to be removed.
    pub fn announce_removal(&self, first_left: i32) -> Result<()> {
        listing::announce_removal(self.writable_table("a removal of files")?, first_left);
        self.listing.forget();
        Ok(())
    }

    /// Calls `look` with the cycles that have a file.
    fn with_cycles<T>(
        &self,
        look: impl FnOnce(&std::collections::BTreeSet<i32>) -> T,
    ) -> Result<T> {
        match self.opened.single {
            Some(cycle) => Ok(look(&std::iter::once(cycle).collect())),
            None => self.listing.with(self.names(), self.table(), look),
        }
    }

    /// The cycles that have a file, ascending.
    pub fn cycles(&self) -> Result<Vec<i32>> {
        self.with_cycles(|cycles| cycles.iter().copied().collect())
    }

    /// Whether a cycle's file exists and was never completed.
    pub fn is_unfinished(&self, cycle: i32) -> Result<bool> {
        create::is_unfinished(&self.file_for_cycle(cycle)?)
    }

    /// The cycles that have a file and lie between two others, ascending.
    pub fn cycles_between(&self, after: i32, before: i32) -> Result<Vec<i32>> {
        let between = after.saturating_add(1)..before;
        if between.len() <= FEW_CYCLES {
            return Ok(between.filter(|cycle| self.has_file(*cycle)).collect());
        }
        self.with_cycles(|cycles| cycles.range(between).copied().collect())
    }

    /// The first cycle that has a file.
    pub fn first_cycle(&self) -> Result<Option<i32>> {
        Ok(self.ends()?.map(|(first, _)| first))
    }

    /// The last cycle that has a file.
    pub fn last_cycle(&self) -> Result<Option<i32>> {
        Ok(self.ends()?.map(|(_, last)| last))
    }

    fn ends(&self) -> Result<Option<(i32, i32)>> {
        match self.opened.single {
            Some(cycle) => Ok(Some((cycle, cycle))),
            None => self.listing.ends(self.names(), self.table()),
        }
    }

    /// The nearest cycle after this one that has a file.
    pub fn cycle_after(&self, cycle: i32) -> Result<Option<i32>> {
        if !self.may_have_after(cycle) {
            return self.look_at_table().map(|()| None);
        }
        match self.opened.single {
            Some(single) => Ok(Some(single).filter(|single| *single > cycle)),
            None => self.listing.after(self.names(), self.table(), cycle),
        }
    }

    /// An error if the table was replaced, and so is stale. Readers at the end check once a second.
    fn look_at_table(&self) -> Result<()> {
        let now = clock::coarse_time_ms();
        let before = self.looked_ms.load(Ordering::Relaxed);
        if now.abs_diff(before) < LOOK_MS.unsigned_abs() {
            return Ok(());
        }
        self.looked_ms.store(now, Ordering::Relaxed);
        self.table().map_or(Ok(()), |table| table.shared.check_not_replaced())
    }

    /// The nearest cycle before this one that has a file.
    pub fn cycle_before(&self, cycle: i32) -> Result<Option<i32>> {
        match self.opened.single {
            Some(single) => Ok(Some(single).filter(|single| *single < cycle)),
            None => self.listing.before(self.names(), self.table(), cycle),
        }
    }

    /// Whether the listing allows for a file after this cycle: one load.
    #[inline]
    #[must_use]
    pub fn may_have_after(&self, cycle: i32) -> bool {
        let highest = self.highest_cycle();
        highest == NO_HIGHEST || highest > i64::from(cycle)
    }

    /// `listing.highestCycle`, or [`NO_HIGHEST`] if unknown.
    #[inline]
    #[must_use]
    pub fn highest_cycle(&self) -> i64 {
        let table = self.table().filter(|_| self.opened.single.is_none());
        table.map_or(NO_HIGHEST, |table| table.value(table.words().highest, NO_HIGHEST))
    }

    /// Whether a cycle's file exists, ready or not.
    #[must_use]
    pub fn has_file(&self, cycle: i32) -> bool {
        listing::has_file(self.names(), i64::from(cycle))
    }

    /// Once, syncs the name of the queue's directory and of the parents created for it.
    pub fn sync_own_name(&self) -> Result<()> {
        self.opened.own_name.sync(self.path())
    }

    /// Warns of a problem with the file of a cycle, only once.
    pub fn warn_once(&self, cycle: i32, line: impl FnOnce() -> String) {
        if self.warned.lock().unwrap_or_else(PoisonError::into_inner).insert(cycle) {
            warnings::leave(line());
        }
    }

    /// How its files grow.
    #[must_use]
    pub const fn growth(&self) -> Growth {
        Growth { block: self.opened.block, timeout: self.options.timeout }
    }

    /// The index of the oldest message that can be read.
    pub fn first_index(&self) -> Result<Option<i64>> {
        for cycle in self.cycles()? {
            if self.last_sequence_if_readable(cycle)?.is_some() {
                return self.roll().to_index(cycle, 0).map(Some);
            }
        }
        Ok(None)
    }

    /// The index of the newest message.
    ///
    /// # Errors
    /// A file that it may lie in is damaged, or has lost its end.
    pub fn last_index(&self) -> Result<Option<i64>> {
        self.newest_by(|cycle| self.last_sequence(cycle))
    }

    /// Like [`Queue::last_index`], for appenders: earlier losses do not prevent appends.
    pub fn last_index_left(&self) -> Result<Option<i64>> {
        self.newest_by(|cycle| self.last_sequence_left(cycle))
    }

    fn newest_by(&self, look: impl Fn(i32) -> Result<Option<u64>>) -> Result<Option<i64>> {
        let mut next = self.last_cycle()?;
        while let Some(cycle) = next {
            if let Some(sequence) = look(cycle)? {
                return self.roll().to_index(cycle, sequence).map(Some);
            }
            next = self.cycle_before(cycle)?;
        }
        Ok(None)
    }

    /// The sequence of a cycle's last message; None if it has no file or no message.
    pub fn last_sequence(&self, cycle: i32) -> Result<Option<u64>> {
        Ok(self.checked_end(cycle)?.and_then(|end| end.last_sequence()))
    }

    /// Like [`Queue::last_sequence`], but ignores losses after that message.
    pub(super) fn last_sequence_left(&self, cycle: i32) -> Result<Option<u64>> {
        Ok(self.end_in(cycle)?.and_then(|(_, end)| end.last_sequence()))
    }

    /// Where a cycle's documents end; None if its file is missing, or not ready and without
    /// messages.
    fn checked_end(&self, cycle: i32) -> Result<Option<CycleEnd>> {
        let Some((view, end)) = self.end_in(cycle)? else {
            return self.check_held_none(cycle).map(|()| None);
        };
        if let Some(mut view) = view.filter(|_| !end.is_marked) {
            locate::check_nothing_after(&mut view, end.position)?;
        }
        Ok(Some(end))
    }

    fn end_in(&self, cycle: i32) -> Result<Option<(Option<View>, CycleEnd)>> {
        if let Some(summary) = self.summary_of(cycle)? {
            let (position, messages) = (summary.position, summary.messages);
            return Ok(Some((None, CycleEnd { position, messages, is_marked: true })));
        }
        let Some(mut view) = self.view(cycle)? else { return Ok(None) };
        let end = locate::end(&mut view)?;
        let (position, messages) = (end.position, end.next_sequence());
        let is_marked = end.slot == Slot::EndOfData;
        Ok(Some((Some(view), CycleEnd { position, messages, is_marked })))
    }

    fn entries_in(&self, cycle: i32) -> Result<u64> {
        match self.last_sequence(cycle)? {
            Some(last) => Ok(last + 1),
            None => self.check_finished(cycle).map(|()| 0),
        }
    }

    /// How many messages there are in the files that can be read.
    pub fn entry_count(&self) -> Result<u64> {
        let entries = |cycle| Ok(self.last_sequence_if_readable(cycle)?.map_or(0, |last| last + 1));
        self.cycles()?.into_iter().map(entries).sum()
    }

    /// How many messages there are from the lower index (included) to the higher one (excluded).
    pub fn count_excerpts(&self, from: i64, to: i64) -> Result<i64> {
        // In either order, as in Java.
        let (from, to) = (from.min(to), from.max(to));
        let ((first, from_sequence), (last, to_sequence)) =
            (self.bounded(from)?, self.bounded(to)?);
        let mut count = i128::from(to_sequence) - i128::from(from_sequence);
        for cycle in self.cycles()?.into_iter().filter(|cycle| (first..last).contains(cycle)) {
            count += i128::from(self.entries_in(cycle)?);
        }
        i64::try_from(count).map_err(|_| Error::IndexOutOfRange(format!("count={count}")))
    }

    /// Cycle and sequence of an index that is in the queue, or one past the end of its cycle.
    fn bounded(&self, index: i64) -> Result<(i32, u64)> {
        let (cycle, sequence) = self.roll().split(index)?;
        let entries = self.entries_in(cycle)?;
        if sequence > entries || !self.has_file(cycle) {
            return Err(Error::IndexOutOfRange(format!(
                "index={index:#x} cycle={cycle} sequence={sequence} messages_in_cycle={entries}"
            )));
        }
        Ok((cycle, sequence))
    }

    /// Where the documents of a cycle's file end, how many messages it holds, and whether it was
    /// closed by an end-of-file marker; None when it is missing or not ready.
    ///
    /// # Errors
    /// The file is not ready although a later one has messages, or has lost its end.
    pub fn end_of_cycle(&self, cycle: i32) -> Result<Option<(u64, u64, bool)>> {
        match self.checked_end(cycle)? {
            Some(end) => Ok(Some((end.position, end.messages, end.is_marked))),
            None => self.check_finished(cycle).map(|()| None),
        }
    }

    /// Where a message lies in its file; None if there is none.
    pub fn position_of(&self, index: i64) -> Result<Option<u64>> {
        let (cycle, sequence) = self.roll().split(index)?;
        let Some(mut view) = self.view(cycle)? else { return Ok(None) };
        Ok(match locate::locate(&mut view, sequence)? {
            Located::Found(position) => Some(position),
            _ => None,
        })
    }

    /// The write position of a cycle's file, after its end if messages were lost; 0 if it has no
    /// message, None if it is missing or not ready.
    pub fn write_position(&self, cycle: i32) -> Result<Option<u64>> {
        let Some(mut view) = self.view(cycle)? else { return Ok(None) };
        let word = view.file().layout.write_position;
        Ok(Some(view.word(word)?))
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        self.close(&Detached::here());
    }
}
