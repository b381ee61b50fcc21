//! Appending to one cycle.
//!
//! 1. `stage` finds room in a data file of its own, reserves it, and stores the payload.
//! 2. `publish` stores the length with release: the record is complete.
//! 3. Of a synchronous append, the data file is written to the medium.
//! 4. `claim` stores the entry in the first free slot by compare-and-swap: readers see the message.
//! 5. Of a synchronous append, the index file is written to the medium.
//!
//! A writer that dies before step 4 leaves a record that no entry names: nobody sees it. An append
//! that fails takes its record back.

use std::path::PathBuf;

use super::block::Block;
use super::detect::Layout;
use super::{directory, entries};
use crate::os::range_lock::{self, Kind, WHOLE_FILE};
use crate::probe::fault::step;
use crate::vanilla::format::entry::Location;
use crate::vanilla::format::names::FileName;
use crate::vanilla::format::record::{self, HEADER};
use crate::{Error, Result};

/// Index files of a cycle, as many as Java makes.
const MOST_INDEX_FILES: u64 = 10_000;

/// How files are made.
#[derive(Clone, Copy, Debug)]
pub struct Making {
    /// Permission bits of files.
    pub mode: u32,
    /// Names are on the medium before they are used.
    pub synced: bool,
}

/// A record that is stored and has no entry yet.
#[derive(Clone, Copy, Debug)]
pub struct Staged {
    at: Location,
    length: u32,
}

/// A cycle that is written to.
pub struct CycleWriter {
    /// The number of the cycle.
    pub cycle: i32,
    /// How its files are laid out.
    pub layout: Layout,
    directory: PathBuf,
    making: Making,
    tid: u32,
    index: Block,
    index_number: u64,
    /// The slot to try next: all before it are taken.
    slot: u64,
    data: Option<DataFile>,
}

/// The data file that is filled.
struct DataFile {
    number: u64,
    block: Block,
    /// Where the next record's length word belongs.
    position: u64,
}

impl CycleWriter {
    /// Opens the index of a cycle, and makes it where there is none.
    pub fn open(
        cycle: i32,
        directory: PathBuf,
        layout: Layout,
        tid: u32,
        making: Making,
    ) -> Result<Self> {
        let numbers =
            directory::files(&directory)?.into_iter().filter_map(|(name, _)| match name {
                FileName::Index(number) => Some(number),
                FileName::Data { .. } => None,
            });
        let index_number = numbers.max().unwrap_or(0);
        let index = open_index(&directory, index_number, layout, making)?;
        Ok(Self { cycle, layout, directory, making, tid, index, index_number, slot: 0, data: None })
    }

    /// The longest payload there is room for in a data file.
    #[must_use]
    pub const fn longest_payload(layout: &Layout) -> u64 {
        let block = layout.packing.data_block - HEADER;
        if block < record::LENGTH_LIMIT { block } else { record::LENGTH_LIMIT - 1 }
    }

    /// Appends a message; the sequence number it got.
    pub fn append(&mut self, parts: [&[u8]; 2], capacity: u64, synced: bool) -> Result<u64> {
        let staged = self.stage(parts, capacity)?;
        self.publish(staged);
        let claimed =
            if synced { self.sync_data() } else { Ok(()) }.and_then(|()| self.claim(staged));
        if claimed.is_err() {
            self.take_back(staged);
        } else if synced {
            self.index.sync()?;
        }
        claimed
    }

    /// Step 1. `capacity` is what has to fit the file.
    fn stage(&mut self, parts: [&[u8]; 2], capacity: u64) -> Result<Staged> {
        let block = self.layout.packing.data_block;
        let length = parts.iter().map(|part| part.len() as u64).sum::<u64>();
        let room = HEADER + capacity.max(length).min(block - HEADER);
        if self.data.as_ref().is_none_or(|data| data.position + room > block) {
            self.open_data()?;
        }
        let Some(data) = &mut self.data else { unreachable!("a data file was just opened") };
        let payload = data.position + HEADER;
        let after = (record::next(payload, length) + HEADER).min(block);
        data.block.reserve(data.position, after, block)?;
        let region = data.block.region();
        let mut at = payload;
        for part in parts {
            region.copy_in_plain(at, part, step!("vanilla.payload.store"));
            at += part.len() as u64;
        }
        let at = Location { tid: self.tid, file: data.number, position: payload };
        Ok(Staged { at, length: u32::try_from(length).unwrap_or(u32::MAX) })
    }

    /// Step 2.
    fn publish(&mut self, staged: Staged) {
        let Some(data) = &mut self.data else { unreachable!("the record is in a data file") };
        let header = staged.at.position - HEADER;
        let word = record::word(staged.length);
        data.block.region().store_header_release(header, word, step!("vanilla.length.store"));
        data.position = record::next(staged.at.position, u64::from(staged.length));
    }

    /// Step 3.
    fn sync_data(&self) -> Result<()> {
        self.data.as_ref().map_or(Ok(()), |data| data.block.sync())
    }

    /// Step 4.
    fn claim(&mut self, staged: Staged) -> Result<u64> {
        let Some(entry) = self.layout.packing.pack(staged.at) else {
            return Err(self.too_many_data_files());
        };
        let per_file = self.layout.entries_per_file();
        loop {
            if self.slot >= per_file {
                self.next_index()?;
            }
            let position = self.slot * 8;
            self.index.reserve(position, position + 8, self.layout.index_block)?;
            let step = step!("vanilla.entry.cas");
            if self.index.region().swap_acq_rel(position, 0, entry, step).is_ok() {
                let sequence = self.index_number * per_file + self.slot;
                self.slot += 1;
                return Ok(sequence);
            }
            let index = &mut self.index;
            self.slot =
                entries::first_free(self.slot, per_file, |slot| Ok(index.word64(slot * 8)? != 0))?;
        }
    }

    /// Undoes steps 1 and 2 of a record that no entry names.
    fn take_back(&mut self, staged: Staged) {
        let Some(data) = &mut self.data else { return };
        let header = staged.at.position - HEADER;
        data.block.region().store_header_release(header, 0, step!("vanilla.length.clear"));
        let length = u64::from(staged.length);
        data.block.region().zero_plain(staged.at.position, length, step!("vanilla.payload.clear"));
        data.position = header;
    }

    fn next_index(&mut self) -> Result<()> {
        let number = self.index_number + 1;
        if number >= MOST_INDEX_FILES {
            let limit = MOST_INDEX_FILES * self.layout.entries_per_file();
            return Err(Error::CycleFull { cycle: self.cycle, sequence: limit, limit });
        }
        self.index = open_index(&self.directory, number, self.layout, self.making)?;
        (self.index_number, self.slot) = (number, 0);
        Ok(())
    }

    /// A data file that nobody else has: the name after the last of this thread id, or one after that.
    fn open_data(&mut self) -> Result<()> {
        let (block, tid) = (self.layout.packing.data_block, self.tid);
        let last = match &self.data {
            Some(data) => Some(data.number),
            None => directory::files(&self.directory)?
                .into_iter()
                .filter_map(|(name, _)| match name {
                    FileName::Data { tid: found, file } if found == tid => Some(file),
                    _ => None,
                })
                .max(),
        };
        let mut number = last.map_or(0, |last| last.saturating_add(1));
        while number < self.layout.packing.file_limit() {
            let path = directory::path_of(&self.directory, FileName::Data { tid, file: number });
            if let Some(opened) = Block::create_new(&path, block, self.making.mode)? {
                // Shows a rebuild of the index that the writer is alive. Nobody else knows the file.
                let held = range_lock::try_hold(opened.file(), WHOLE_FILE, Kind::Exclusive);
                held.map_err(|e| Error::io("cannot lock", &path, e))?;
                if self.making.synced {
                    directory::sync(&self.directory)?;
                }
                self.data = Some(DataFile { number, block: opened, position: 0 });
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

    /// Returns when all appended messages are on the medium.
    pub fn sync(&self) -> Result<()> {
        self.sync_data()?;
        self.index.sync()?;
        directory::sync(&self.directory)
    }
}

fn open_index(
    directory: &std::path::Path,
    number: u64,
    layout: Layout,
    making: Making,
) -> Result<Block> {
    let path = directory::path_of(directory, FileName::Index(number));
    let block = Block::open_or_create(&path, layout.index_block, making.mode)?;
    if making.synced {
        directory::sync(directory)?;
    }
    Ok(block)
}
