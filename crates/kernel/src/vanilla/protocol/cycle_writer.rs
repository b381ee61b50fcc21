//! Appending to one cycle.
//!
//! 1. `make_room` finds and reserves room in a data file of its own; `stage` stores the payload,
//!    after a word of padding where the payload has to lie at a multiple of 8.
//! 2. `publish` stores the length with release: the record is complete.
//! 3. In a synchronous append, the data file is written to the medium.
//! 4. `claim_next`, or `claim`, stores the entry in the first free slot by compare-and-swap:
//!    readers see the message.
//! 5. In a synchronous append, the index file is written to the medium.
//!
//! A writer that dies before step 4 leaves a record that no entry points to, which readers never
//! see. An append that fails withdraws its record.
//!
//! Retention may remove the cycle of a writer that was paused for a minute. So after step 4, at
//! most once a second, the writer checks whether its index file still has its name: an entry in a
//! file without its name is an error, as no reader finds that message.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::block::Block;
use super::detect::Layout;
use super::{claims, directory, entries};
use crate::os::locked_file::LockedFile;
use crate::os::range_lock::{Kind, WHOLE_FILE};
use crate::os::{clock, files};
use crate::probe::fault::{self, step};
use crate::vanilla::format::entry::Location;
use crate::vanilla::format::names::{FileName, MOST_INDEX_FILES};
use crate::vanilla::format::record::{self, HEADER};
use crate::{Error, Result};

/// How often, at most, a writer checks that its index file still has its name.
const LOOK_MS: u64 = 1_000;

/// A record that is stored and has no entry yet.
#[derive(Clone, Copy, Debug)]
pub struct Staged {
    /// Its entry in the index.
    entry: u64,
    /// Position of the payload.
    position: u64,
    length: u32,
}

/// The room a message needs.
#[derive(Clone, Copy, Debug, Default)]
pub struct Room {
    /// The bytes that must fit the rest of its data file; at least the message's length.
    pub capacity: u64,
    /// Whether to start at a multiple of 8, so that 64-bit words at multiples of 8 in it can be
    /// swapped.
    pub is_aligned: bool,
}

impl Room {
    /// Bytes of padding before a record at `position`.
    #[inline]
    const fn padding(self, position: u64) -> u64 {
        if self.is_aligned { record::padding(position) } else { 0 }
    }
}

/// A cycle that is written to.
pub struct CycleWriter {
    /// The number of the cycle.
    pub cycle: i32,
    /// How its files are laid out.
    pub layout: Layout,
    directory: PathBuf,
    file_mode: u32,
    tid: u32,
    index: Block,
    index_number: u64,
    /// The slot to try next: all before it are taken.
    slot: u64,
    /// The last data file of this thread id that entries from before a restart point to.
    named_file: Option<u64>,
    data: Option<DataFile>,
    unsynced: Unsynced,
    /// When the index file was last checked to have its name.
    looked_ms: i64,
    /// Whether a sync has failed: the system drops pages it could not write, and reports that only
    /// once.
    pub has_sync_failed: bool,
}

/// The data file that is filled.
struct DataFile {
    number: u64,
    /// The entry of position 0; those of later positions count up from it.
    entry: u64,
    block: Block,
    /// Where the next record's length word belongs.
    position: u64,
    /// The file's lock, on another description, which forked children give up.
    _held: Option<LockedFile>,
}

impl CycleWriter {
    /// Opens the index of a cycle, created if missing.
    pub fn open(
        cycle: i32,
        base: &Path,
        name: &str,
        layout: Layout,
        tid: u32,
        file_mode: u32,
    ) -> Result<Self> {
        let directory = directory::find_or_make(base, name, file_mode)?;
        let per_file = layout.entries_per_file();
        let index_number = entries::index_numbers(&directory, per_file)?.pop().unwrap_or(0);
        let index = open_index(&directory, index_number, layout, file_mode)?;
        let survivors = Survivors::of(&directory, &layout, tid)?;
        Ok(Self {
            cycle,
            layout,
            unsynced: Unsynced::new(base, &directory),
            looked_ms: clock::coarse_time_ms(),
            has_sync_failed: false,
            directory,
            file_mode,
            tid,
            index,
            index_number,
            slot: survivors.end.saturating_sub(index_number.saturating_mul(per_file)).min(per_file),
            named_file: survivors.file,
            data: None,
        })
    }

    /// The longest payload that fits a data file, if it may lie at any multiple of 4.
    #[must_use]
    pub const fn longest_payload(layout: &Layout) -> u64 {
        let block = layout.packing.data_block - HEADER;
        if block < record::LENGTH_LIMIT { block } else { record::LENGTH_LIMIT - 1 }
    }

    /// Appends a message; returns its sequence number.
    #[inline]
    pub fn append(&mut self, parts: [&[u8]; 2], room: Room, synced: bool) -> Result<u64> {
        let length = (parts[0].len() + parts[1].len()) as u64;
        self.make_room(length, room)?;
        let staged = self.stage(parts, length);
        self.publish(staged);
        if !synced {
            self.unsynced.has_messages = true;
            // Matched in place: copying a `Result` would take longer than storing the entry.
            if let Some(sequence) = self.claim_next(staged) {
                if self.is_look_due() {
                    self.check_present()?;
                }
                return Ok(sequence);
            }
        }
        self.finish(staged, synced)
    }

    #[inline]
    fn is_look_due(&self) -> bool {
        clock::coarse_time_ms().abs_diff(self.looked_ms) >= LOOK_MS
    }

    /// An error if the index file has lost its name. Stored bytes are not undone.
    #[cold]
    fn check_present(&mut self) -> Result<()> {
        if !self.is_present()? {
            let what = "the cycle was removed while it was appended to, and its last messages cannot \
                        be read (append them again)";
            return Err(Error::gone(what, self.index.path()));
        }
        self.looked_ms = clock::coarse_time_ms();
        Ok(())
    }

    /// Whether the index file has its name.
    pub fn is_present(&self) -> Result<bool> {
        let (path, file) = (self.index.path(), self.index.file());
        let failed = |e| Error::io("cannot look at", path, e);
        let own = fault::call!("vanilla.file.stat", file.metadata()).map_err(failed)?;
        match fault::call!("vanilla.file.stat", std::fs::symlink_metadata(path)) {
            Ok(found) => Ok(files::identity_of(&found) == files::identity_of(&own)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(failed(error)),
        }
    }

    /// Steps 3 to 5, if they need more than storing an entry.
    #[cold]
    fn finish(&mut self, staged: Staged, synced: bool) -> Result<u64> {
        let stored = if synced { self.sync_data() } else { Ok(()) };
        let claimed = stored.and_then(|()| self.claim(staged));
        if claimed.is_err() {
            self.take_back(staged);
            return claimed;
        }
        if synced {
            self.sync_index()?;
        }
        if self.is_look_due() {
            self.check_present()?;
        }
        claimed
    }

    /// Step 1: reserves space for a message, and stores the padding before it.
    #[inline]
    fn make_room(&mut self, length: u64, room: Room) -> Result<()> {
        let block = self.layout.packing.data_block;
        // Java takes an empty message at the end of a file for one of the next file.
        let needed = HEADER + room.capacity.max(length).max(1).min(block - HEADER);
        let start = |data: &DataFile| data.position + room.padding(data.position);
        if self.data.as_ref().is_none_or(|data| start(data) + needed > block) {
            self.open_data()?;
        }
        let Some(data) = &mut self.data else { unreachable!("a data file was just opened") };
        let start = data.position + room.padding(data.position);
        let after = (record::next(start + HEADER, length) + HEADER).min(block);
        data.block.reserve(data.position, after, block)?;
        if start > data.position {
            let step = step!("vanilla.padding.store");
            data.block.region().store_header_plain(data.position, record::PADDING, step);
            data.position = start;
        }
        Ok(())
    }

    /// Step 1: stores the payload.
    #[inline]
    fn stage(&mut self, [head, body]: [&[u8]; 2], length: u64) -> Staged {
        let Some(data) = &mut self.data else { unreachable!("there is room in a data file") };
        let position = data.position + HEADER;
        let (region, step) = (data.block.region(), step!("vanilla.payload.store"));
        if !head.is_empty() {
            region.copy_in_plain(position, head, step);
        }
        region.copy_in_plain(position + head.len() as u64, body, step);
        let length = u32::try_from(length).unwrap_or(u32::MAX);
        Staged { entry: data.entry + position, position, length }
    }

    /// Step 2.
    #[inline]
    fn publish(&mut self, staged: Staged) {
        let Some(data) = &mut self.data else { unreachable!("the record is in a data file") };
        let header = staged.position - HEADER;
        claims::publish_record(data.block.region(), header, staged.length);
        data.position = record::next(staged.position, u64::from(staged.length));
    }

    /// Step 3: the record, and the name of its file.
    fn sync_data(&mut self) -> Result<()> {
        let synced = self.data.as_ref().map_or(Ok(()), |data| data.block.sync());
        let synced = synced.and_then(|()| self.unsynced.sync_names());
        self.has_sync_failed |= synced.is_err();
        synced
    }

    /// Step 5.
    fn sync_index(&mut self) -> Result<()> {
        let synced = self.index.sync().and_then(|()| self.unsynced.sync_names());
        self.has_sync_failed |= synced.is_err();
        synced
    }

    /// Step 4, for the slot to try next; None if it is taken or its page must be reserved first.
    #[inline]
    fn claim_next(&mut self, staged: Staged) -> Option<u64> {
        let (per_file, position) = (self.layout.entries_per_file(), self.slot * 8);
        if self.slot >= per_file || !self.index.is_reserved(position, position + 8) {
            return None;
        }
        if !claims::claim_slot(self.index.region(), self.slot, staged.entry) {
            return None;
        }
        let sequence = self.index_number * per_file + self.slot;
        self.slot += 1;
        Some(sequence)
    }

    /// Step 4, for the first slot that is free.
    fn claim(&mut self, staged: Staged) -> Result<u64> {
        let per_file = self.layout.entries_per_file();
        loop {
            if self.slot >= per_file {
                self.next_index()?;
            }
            let position = self.slot * 8;
            self.index.reserve(position, position + 8, self.layout.index_block)?;
            let is_free = claims::entry(self.index.region(), self.slot) == 0;
            if is_free && let Some(sequence) = self.claim_next(staged) {
                return Ok(sequence);
            }
            let index = &mut self.index;
            self.slot =
                entries::first_free(self.slot, per_file, |slot| Ok(index.word64(slot * 8)? != 0))?;
        }
    }

    /// Undoes steps 1 and 2 for a record that no entry points to.
    fn take_back(&mut self, staged: Staged) {
        let Some(data) = &mut self.data else { return };
        let header = staged.position - HEADER;
        claims::take_back_record(data.block.region(), header);
        let length = u64::from(staged.length);
        data.block.region().zero_plain(staged.position, length, step!("vanilla.payload.clear"));
        data.position = header;
    }

    fn next_index(&mut self) -> Result<()> {
        let number = self.index_number + 1;
        if number >= MOST_INDEX_FILES {
            let limit = MOST_INDEX_FILES * self.layout.entries_per_file();
            return Err(Error::CycleFull { cycle: self.cycle, sequence: limit, limit });
        }
        let next = open_index(&self.directory, number, self.layout, self.file_mode)?;
        self.unsynced.add(std::mem::replace(&mut self.index, next).path());
        (self.index_number, self.slot) = (number, 0);
        Ok(())
    }

    /// Opens a data file that no other writer has: with the number after the last one of this
    /// thread id, or a later one.
    fn open_data(&mut self) -> Result<()> {
        let (block, tid) = (self.layout.packing.data_block, self.tid);
        let limit = self.layout.packing.file_limit();
        let last = match &self.data {
            Some(data) => Some(data.number),
            None => directory::files(&self.directory)?
                .into_iter()
                .filter_map(|(name, _)| match name {
                    // No entry can point to a file beyond the limit: ignore such a stray file.
                    FileName::Data { tid: found, file } if found == tid && file < limit => {
                        Some(file)
                    }
                    _ => None,
                })
                .max()
                .max(self.named_file),
        };
        let mut number = last.map_or(0, |last| last.saturating_add(1));
        while number < limit {
            let at = Location { tid, file: number, position: 0 };
            let Some(entry) = self.layout.packing.pack(at) else { break };
            let path = directory::path_of(&self.directory, FileName::Data { tid, file: number });
            if let Some(opened) = Block::create_new(&path, block, self.file_mode)? {
                // Shows a rebuild of the index that the writer is alive. No other process knows the
                // file yet.
                let held =
                    LockedFile::try_take(&path, self.file_mode, WHOLE_FILE, Kind::Exclusive)?;
                let opened = DataFile { number, entry, block: opened, position: 0, _held: held };
                let full = self.data.replace(opened);
                if let Some(full) = full {
                    self.unsynced.add(full.block.path());
                }
                self.unsynced.are_names_synced = false;
                return Ok(());
            }
            number += 1;
        }
        Err(self.too_many_data_files())
    }

    #[cold]
    fn too_many_data_files(&self) -> Error {
        let limit = self.layout.packing.file_limit();
        Error::CycleFull { cycle: self.cycle, sequence: limit, limit }
    }

    /// Returns when all appended messages are on the medium: data before the entries that point to
    /// it, except for files that were filled since the last sync.
    pub fn sync(&mut self) -> Result<()> {
        self.unsynced.sync_files()?;
        self.sync_data()?;
        self.sync_index()?;
        self.unsynced.has_messages = false;
        Ok(())
    }

    /// Leaves the cycle; returns the files that are still to be synced.
    #[must_use]
    pub fn leave(mut self) -> Option<Unsynced> {
        let data = self.data.as_ref().map(|data| data.block.path());
        data.into_iter().chain([self.index.path()]).for_each(|path| self.unsynced.add(path));
        self.unsynced.has_messages.then_some(self.unsynced)
    }
}

/// The state of an index from before the machine was booted. A power cut may have lost entries
/// before others, which readers have passed, and data files that entries point to.
#[derive(Default)]
struct Survivors {
    /// The sequence number after the last entry.
    end: u64,
    /// The last data file of the writer's thread id that an entry points to.
    file: Option<u64>,
}

impl Survivors {
    fn of(directory: &Path, layout: &Layout, tid: u32) -> Result<Self> {
        let Some(started) = clock::machine_started() else { return Ok(Self::default()) };
        let found = directory::files(directory)?;
        let mut is_older = false;
        for (name, _) in &found {
            let path = directory::path_of(directory, *name);
            let since = files::existed_since(&path);
            is_older |= since.map_err(|e| Error::io("cannot look at", &path, e))? < started;
        }
        if !is_older {
            return Ok(Self::default());
        }
        let per_file = layout.entries_per_file();
        let numbers = entries::index_numbers(directory, per_file)?;
        let mut entries = entries::taken(directory, layout, &found)?;
        entries.retain(|(sequence, _)| numbers.binary_search(&(sequence / per_file)).is_ok());
        let places = entries.iter().map(|(_, entry)| layout.packing.unpack(*entry));
        Ok(Self {
            end: entries.last().map_or(0, |(sequence, _)| sequence + 1),
            file: places.filter(|at| at.tid == tid).map(|at| at.file).max(),
        })
    }
}

fn open_index(directory: &Path, number: u64, layout: Layout, file_mode: u32) -> Result<Block> {
    let path = directory::path_of(directory, FileName::Index(number));
    Block::open_or_create(&path, layout.index_block, file_mode)
}

/// Files of a cycle that were filled or left, but not synced.
pub struct Unsynced {
    /// The queue's directory.
    base: PathBuf,
    directory: PathBuf,
    files: Vec<PathBuf>,
    are_names_synced: bool,
    /// Whether it has messages that are not on the medium.
    has_messages: bool,
}

impl Unsynced {
    fn new(base: &Path, directory: &Path) -> Self {
        Self {
            base: base.to_path_buf(),
            directory: directory.to_path_buf(),
            files: Vec::new(),
            are_names_synced: false,
            has_messages: false,
        }
    }

    /// Notes a file that another one replaces.
    fn add(&mut self, path: &Path) {
        self.are_names_synced = false;
        if self.has_messages {
            self.files.push(path.to_path_buf());
        }
    }

    fn sync_files(&mut self) -> Result<()> {
        while let Some(path) = self.files.last() {
            // A file that was deleted meanwhile need not be synced.
            if let Some(file) = Block::open(path, false)? {
                file.sync()?;
            }
            self.files.pop();
        }
        Ok(())
    }

    fn sync_names(&mut self) -> Result<()> {
        if !self.are_names_synced {
            directory::sync(&self.base, &self.directory)?;
            self.are_names_synced = true;
        }
        Ok(())
    }

    /// Returns when the files and their names are on the medium.
    pub fn sync(&mut self) -> Result<()> {
        self.sync_files()?;
        self.sync_names()
    }
}
