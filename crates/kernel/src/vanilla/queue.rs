use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use super::cycle_length::Cycles;
use super::format::cycle::CycleFormat;
use super::format::index::IndexSplit;
use super::format::names::FileName;
use super::message::Message;
use super::named_position::{self, Kept, NamedPosition};
use super::options::VanillaOptions;
use super::protocol::block::Block;
use super::protocol::cycle_reader::CycleReader;
use super::protocol::detect::{self, Asked, Layout, Sample};
use super::protocol::directory;
use super::protocol::listing::Listing;
use super::protocol::rebuild::{self, Places, Rebuilt};
use super::{snapshot, verify};
use crate::finding::Report;
use crate::os::detached::Detached;
use crate::os::files::{self, OwnName};
use crate::os::handles::Handles;
use crate::os::{paths, process};
use crate::probe::fault::{self, step};
use crate::snapshot::Snapshot;
use crate::{Error, Result};

/// Data files that stay mapped for stores into their messages.
const MOST_WRITABLE: usize = 16;

type Writable = ((i32, FileName), Block);

/// A directory of cycles.
pub struct VanillaQueue {
    path: PathBuf,
    own_name: OwnName,
    options: VanillaOptions,
    cycles: Cycles,
    listing: Listing,
    is_closed: AtomicBool,
    generation: u32,
    /// The most recently used last.
    writable: Mutex<Vec<Writable>>,
    pub(super) handles: Handles,
}

impl VanillaQueue {
    /// Opens a directory, created if missing and allowed.
    pub fn open(path: &Path, options: VanillaOptions) -> Result<Self> {
        options.check()?;
        paths::check_local(path)?;
        let path = std::path::absolute(path).map_err(|e| Error::io("cannot open", path, e))?;
        if !options.read_only && !options.allow_network {
            check_local(&path)?;
        }
        let mut own_name = OwnName::default();
        if !is_there(&path)? {
            if options.read_only || !options.create {
                return Err(missing(&path));
            }
            let permissions = directory::permissions(options.file_mode);
            let made =
                fault::call!("vanilla.dir.create", files::make_directories(&path, permissions));
            own_name = OwnName::new(made.map_err(|e| Error::io("cannot make", &path, e))?);
        }
        let cycles = Cycles::of(&path, &options)?;
        let file_mode = (!options.read_only).then_some(options.file_mode);
        let listing = Listing::new(&path, cycles.format.clone(), file_mode);
        let (is_closed, generation) = (AtomicBool::new(false), process::generation());
        let writable = Mutex::default();
        Ok(Self {
            path,
            own_name,
            options,
            cycles,
            listing,
            is_closed,
            generation,
            writable,
            handles: Handles::default(),
        })
    }

    /// Returns when the directory's own name is on the medium.
    pub(super) fn sync_own_name(&self) -> Result<()> {
        self.own_name.sync(&self.path)
    }

    /// The queue's directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The options that the queue was opened with.
    #[must_use]
    pub const fn options(&self) -> &VanillaOptions {
        &self.options
    }

    /// Lengths and names of cycles.
    #[must_use]
    pub const fn format(&self) -> &CycleFormat {
        &self.cycles.format
    }

    /// How indexes are split.
    #[must_use]
    pub const fn split(&self) -> IndexSplit {
        self.cycles.split
    }

    /// Checks that must pass before a cycle is appended to.
    pub(super) fn check_cycle(&self, cycle: i32) -> Result<()> {
        self.cycles.check(&self.path, &self.listing, cycle)?;
        self.cycles.keep(&self.path, self.options.file_mode)
    }

    pub(super) const fn listing(&self) -> &Listing {
        &self.listing
    }

    /// Closes the queue and its handles, with their files. A named tailer keeps its last stored
    /// position.
    pub fn close(&self, may_wait: &Detached) {
        let was_closed = self.is_closed.swap(true, Ordering::AcqRel);
        if was_closed || self.generation != process::generation() {
            return; // a child's handles may be locked by threads that do not exist there
        }
        self.handles.close(may_wait);
        self.writable.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Whether the queue was closed.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }

    /// An error if `what`, the queue or one of its handles, can no longer be used.
    #[inline]
    pub fn check_open(&self, what: &'static str) -> Result<()> {
        if self.generation != process::generation() {
            return Err(Error::Forked);
        }
        if self.is_closed() { Err(Error::closed(what, &self.path)) } else { Ok(()) }
    }

    /// The cycle of a time, by default the clock's.
    pub fn cycle_at(&self, now_ms: Option<i64>) -> Result<i32> {
        let now_ms = now_ms.unwrap_or_else(|| self.options.clock.now_ms());
        self.cycles.format.cycle_at(now_ms).ok_or_else(|| {
            Error::IndexOutOfRange(format!("no cycle has this time: now_ms={now_ms}"))
        })
    }

    /// The path of a cycle's directory, which need not exist.
    pub fn directory_of(&self, cycle: i32) -> Result<PathBuf> {
        Ok(self.path.join(self.name_of(cycle)?))
    }

    pub(super) fn name_of(&self, cycle: i32) -> Result<String> {
        let found = self.cycles.format.name(cycle).filter(|_| cycle >= 0);
        found.ok_or_else(|| Error::IndexOutOfRange(format!("no such cycle: cycle={cycle}")))
    }

    /// The index of a message.
    pub fn index_of(&self, cycle: i32, sequence: u64) -> Result<i64> {
        self.cycles.split.join(cycle, sequence).ok_or_else(|| Error::CycleFull {
            cycle,
            sequence,
            limit: 1 << self.cycles.split.sequence_bits,
        })
    }

    /// A reader of a cycle; None while it has no directory.
    pub(super) fn reader(&self, cycle: i32) -> Result<Option<CycleReader>> {
        let Some(name) = self.cycles.format.name(cycle) else { return Ok(None) };
        let directory = directory::find(&self.path, &name)?;
        Ok(directory.map(|directory| CycleReader::new(cycle, directory, self.options.layout)))
    }

    /// The cycles that have a directory.
    pub fn cycles(&self) -> Result<Vec<i32>> {
        self.listing.all()
    }

    /// The named tailers, each with the least index that it still needs; None: all messages.
    pub fn named_positions(&self) -> Result<Vec<(String, Option<i64>)>> {
        let stored = named_position::stored(&self.path)?;
        stored.into_iter().map(|(name, kept)| Ok((name, self.least_needed(&kept)?))).collect()
    }

    /// The least index that a named tailer still needs; None: all messages.
    fn least_needed(&self, kept: &Kept) -> Result<Option<i64>> {
        let Some(next) = kept.next() else { return Ok(None) };
        let least = kept.late().fold(next, i64::min);
        let cycle_of = |index| self.cycles.split.split(index).map(|(cycle, _)| cycle);
        let Some(floor) = kept.floor().and_then(cycle_of) else { return Ok(Some(least)) };
        let known: Vec<_> = kept.late().chain([next]).filter_map(cycle_of).collect();
        let mut from = floor.saturating_sub(1);
        while let Some(cycle) = self.listing.after(from)?
            && self.index_of(cycle, 0)? < least
        {
            if !known.contains(&cycle) && self.count_in(cycle)? > 0 {
                return self.index_of(cycle, 0).map(Some);
            }
            from = cycle;
        }
        Ok(Some(least))
    }

    /// The index of the first message.
    pub fn first_index(&self) -> Result<Option<i64>> {
        self.listing.refresh();
        let mut next = self.listing.after(-1)?;
        while let Some(cycle) = next {
            if let Some(mut reader) = self.reader(cycle)?
                && let Some(first) = first_of(&mut reader)?
            {
                return self.index_of(cycle, first).map(Some);
            }
            next = self.listing.after(cycle)?;
        }
        Ok(None)
    }

    /// The index of the last message.
    pub fn last_index(&self) -> Result<Option<i64>> {
        let Some((cycle, end)) = self.end()? else { return Ok(None) };
        self.index_of(cycle, end - 1).map(Some)
    }

    /// The last cycle with a message, and the sequence number after that.
    pub(super) fn end(&self) -> Result<Option<(i32, u64)>> {
        self.listing.refresh();
        let mut next = self.listing.before(i32::MAX)?;
        while let Some(cycle) = next {
            if let Some(mut reader) = self.reader(cycle)? {
                let end = end_of(&mut reader)?;
                if end > 0 {
                    return Ok(Some((cycle, end)));
                }
            }
            next = self.listing.before(cycle)?;
        }
        Ok(None)
    }

    /// How many messages there are.
    pub fn entry_count(&self) -> Result<u64> {
        let mut count = 0;
        for cycle in self.listing.all()? {
            count += self.count_in(cycle)?;
        }
        Ok(count)
    }

    /// The sequence after the last message of a cycle; 0 if it has none.
    pub fn count_in(&self, cycle: i32) -> Result<u64> {
        self.reader(cycle)?.map_or(Ok(0), |mut reader| end_of(&mut reader))
    }

    /// How many messages there are from one index to before another.
    pub fn count_between(&self, from: i64, to: i64) -> Result<u64> {
        let mut count = 0;
        for cycle in self.listing.all()? {
            let first = self.index_of(cycle, 0)?;
            let end = first + self.count_in(cycle)?.cast_signed();
            let overlap = end.min(to) - first.max(from);
            count += u64::try_from(overlap).unwrap_or(0);
        }
        Ok(count)
    }

    /// Rebuilds lost or damaged indexes from the data files; returns the result for each cycle.
    /// Named tailers move along with messages that get other indexes, and are locked meanwhile.
    pub fn rebuild_index(&self, may_wait: &Detached) -> Result<Vec<(i32, Rebuilt)>> {
        if self.options.read_only {
            let path = self.path.clone();
            return Err(Error::ReadOnly { what: "rebuilding an index", path });
        }
        let mut report = Vec::new();
        for cycle in self.listing.all()? {
            if let Some(directory) = directory::find(&self.path, &self.name_of(cycle)?)? {
                let (rebuilt, plan) = rebuild::plan(&directory, self.options.layout)?;
                if let Some(plan) = plan {
                    let held = self.tailers_to_move(cycle, &plan.places, may_wait)?;
                    plan.write(|| held.iter().for_each(|(tailer, to)| tailer.store(to)))?;
                }
                report.push((cycle, rebuilt));
            }
        }
        Ok(report)
    }

    /// The named tailers that go on elsewhere once the entries of a cycle have other places, and
    /// where. If a kill leaves these the old ones, messages are read again.
    fn tailers_to_move(
        &self,
        cycle: i32,
        places: &Places,
        may_wait: &Detached,
    ) -> Result<Vec<(NamedPosition, Kept)>> {
        let split = self.cycles.split;
        let moved = |index| match split.split(index) {
            Some((of, at)) if of == cycle => split.join(cycle, places.next(at)).unwrap_or(index),
            _ => index,
        };
        let mut held = Vec::new();
        for (name, kept) in named_position::stored(&self.path)? {
            if kept.mapped(moved) != kept {
                let mode = self.options.file_mode;
                let tailer = NamedPosition::open(&self.path, &name, mode, false, may_wait)?;
                let to = tailer.load().mapped(moved);
                held.push((tailer, to));
            }
        }
        Ok(held)
    }

    /// Checks every cycle; nothing is changed.
    pub fn verify(&self) -> Result<Report> {
        let mut report = Report::default();
        for cycle in self.listing.all()? {
            if let Some(directory) = directory::find(&self.path, &self.name_of(cycle)?)? {
                verify::cycle(&directory, self.options.layout, &mut report)?;
            }
        }
        Ok(report)
    }

    /// The content of a copy of the queue. The latest cycle is read first, so that the copy has
    /// every message appended before those it has of later cycles.
    pub fn snapshot(&self) -> Result<Snapshot> {
        self.check_open("queue")?;
        let mut snapshot = Snapshot::default();
        for cycle in self.listing.all()?.into_iter().rev() {
            let Some(mut reader) = self.reader(cycle)? else { continue };
            let end = end_of(&mut reader)?;
            snapshot::add_cycle(&mut reader, &self.name_of(cycle)?, end, &mut snapshot)?;
            if snapshot.last_index.is_none() && end > 0 {
                snapshot.last_index = Some(self.index_of(cycle, end - 1)?.cast_unsigned());
            }
        }
        snapshot::add_cycle_length(&self.path, &mut snapshot);
        snapshot.files.reverse();
        Ok(snapshot)
    }

    /// The layout for writing a cycle: that of its files, of other cycles, or of Java on this
    /// machine.
    pub(super) fn layout_for(&self, cycle: i32) -> Result<Layout> {
        let asked = self.options.layout;
        if let Some(mut reader) = self.reader(cycle)? {
            if let Some(found) = reader.layout_of_any()? {
                return self.checked(found, reader.directory());
            }
            // New messages would take the places of messages whose entries are lost.
            reader.check_index_is_there()?;
        }
        let newest = self.listing.before(cycle)?;
        if let Some(mut reader) = newest.map(|cycle| self.reader(cycle)).transpose()?.flatten()
            && let Some(Layout { packing, index_block }) = reader.layout_of_any()?
        {
            let found = Asked {
                tid_bits: asked.tid_bits.or(Some(packing.tid_bits)),
                data_block: asked.data_block.or(Some(packing.data_block)),
                index_block: asked.index_block.or(Some(index_block)),
            };
            return detect::default_layout(found);
        }
        detect::default_layout(asked)
    }

    /// An error if another layout fits the files better than the requested one.
    fn checked(&self, found: Layout, directory: &Path) -> Result<Layout> {
        let Some(mut sample) = Sample::of(directory)? else { return Ok(found) };
        let by_asked = sample.fit(self.options.layout)?;
        let by_files = sample.fit(Asked::default())?;
        if by_asked.records >= by_files.records {
            return Ok(found);
        }
        let (asked, found) = (by_asked.layout, by_files.layout);
        Err(Error::Invalid(format!(
            "the files of the cycle have another layout: asked={asked} found={found} path={}",
            directory.display()
        )))
    }

    /// Compares a 32-bit word of a message with `old` and stores `new` if they are equal; otherwise
    /// returns the word found.
    pub fn swap32(
        &self,
        message: &Message,
        offset: u64,
        old: u32,
        new: u32,
    ) -> Result<std::result::Result<(), u32>> {
        self.store_word(message, offset, 4, |block, at| {
            block.region().publish_header(at, old, new, step!("vanilla.word.cas"))
        })
    }

    /// Compares and swaps 64 bits.
    pub fn swap64(
        &self,
        message: &Message,
        offset: u64,
        old: u64,
        new: u64,
    ) -> Result<std::result::Result<(), u64>> {
        self.store_word(message, offset, 8, |block, at| {
            block.region().swap_acq_rel(at, old, new, step!("vanilla.word.cas"))
        })
    }

    /// Stores bytes in a message. An aligned word is stored at once, with release; other bytes are
    /// stored one by one, as readers that do not hold the message's lock may see.
    pub fn write_in_place(&self, message: &Message, offset: u64, bytes: &[u8]) -> Result<()> {
        let length = bytes.len() as u64;
        if offset.checked_add(length).is_none_or(|end| end > message.length) {
            return Err(Error::Invalid(format!(
                "outside the message: offset={offset} bytes={length} length={}",
                message.length
            )));
        }
        let step = step!("vanilla.bytes.store");
        self.store_bytes(message, offset, length, |block, at| {
            let region = block.region();
            if let (Ok(word), true) = (bytes.try_into(), at.is_multiple_of(4)) {
                region.store_header_release(at, u32::from_le_bytes(word), step);
            } else if let (Ok(word), true) = (bytes.try_into(), at.is_multiple_of(8)) {
                region.store_release(at, u64::from_le_bytes(word), step);
            } else {
                region.store_each_relaxed(at, bytes, step);
            }
        })
    }

    fn store_word<T>(
        &self,
        message: &Message,
        offset: u64,
        width: u64,
        store: impl FnOnce(&Block, u64) -> T,
    ) -> Result<T> {
        let end = offset.checked_add(width).filter(|end| *end <= message.length);
        if end.is_none() || !(message.at.position + offset).is_multiple_of(width) {
            return Err(Error::Invalid(format!(
                "not an aligned word of the message: offset={offset} width={width} length={} \
                 position={:#x} in its file (ExcerptWriter.align places words)",
                message.length, message.at.position
            )));
        }
        self.store_bytes(message, offset, width, store)
    }

    /// Stores into a range within a message.
    fn store_bytes<T>(
        &self,
        message: &Message,
        offset: u64,
        width: u64,
        store: impl FnOnce(&Block, u64) -> T,
    ) -> Result<T> {
        self.check_open("queue")?;
        if self.options.read_only {
            let path = self.path.clone();
            return Err(Error::ReadOnly { what: "changing a message", path });
        }
        let at = message.at.position + offset;
        let mut open = self.writable.lock().unwrap_or_else(PoisonError::into_inner);
        let block = self.writable_block(&mut open, message)?;
        block.make_writable(at, at + width)?;
        Ok(store(block, at))
    }

    fn writable_block<'a>(
        &self,
        open: &'a mut Vec<Writable>,
        message: &Message,
    ) -> Result<&'a mut Block> {
        let name = FileName::Data { tid: message.at.tid, file: message.at.file };
        let key = (message.cycle, name);
        if let Some(place) = open.iter().position(|(it, _)| *it == key) {
            let newest = open.len() - 1;
            open.swap(place, newest);
        } else {
            let path = directory::path_of(&self.directory_of(message.cycle)?, name);
            let block = Block::open(&path, true)?;
            let block = block.ok_or_else(|| Error::gone("cannot open", &path))?;
            if open.len() >= MOST_WRITABLE {
                open.remove(0);
            }
            open.push((key, block));
        }
        let Some((_, block)) = open.last_mut() else { unreachable!("a file was just added") };
        Ok(block)
    }
}

/// The first taken sequence number of a cycle.
pub(super) fn first_of(reader: &mut CycleReader) -> Result<Option<u64>> {
    if reader.entry(0)? != 0 {
        return Ok(Some(0));
    }
    let first = reader.after_gap(0)?;
    if first.is_none() {
        reader.check_index_is_there()?;
    }
    Ok(first)
}

/// The sequence number after the last message, gaps or not.
pub(super) fn end_of(reader: &mut CycleReader) -> Result<u64> {
    let mut end = reader.end()?;
    while let Some(taken) = reader.after_gap(end)? {
        end = taken;
        while reader.entry(end)? != 0 {
            end += 1;
        }
    }
    if end == 0 {
        reader.check_index_is_there()?;
    }
    Ok(end)
}

fn is_there(path: &Path) -> Result<bool> {
    match fault::call!("vanilla.path.stat", std::fs::metadata(path)) {
        Ok(found) if found.is_dir() => Ok(true),
        Ok(_) => Err(Error::NotAVanillaQueue {
            why: "found a file where a directory belongs".into(),
            path: path.to_path_buf(),
        }),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(Error::io("cannot look at", path, error)),
    }
}

fn missing(path: &Path) -> Error {
    Error::NotAVanillaQueue { why: "there is no directory".into(), path: path.to_path_buf() }
}

fn check_local(path: &Path) -> Result<()> {
    let mut there = path;
    while !is_there(there)?
        && let Some(parent) = there.parent()
    {
        there = parent;
    }
    match files::network_file_system_of(there)? {
        Some(kind) => Err(Error::Unsupported(format!(
            "writing on a network file system: kind={kind} path={} (allow_network=True if only one \
             host uses the queue)",
            path.display()
        ))),
        None => Ok(()),
    }
}
