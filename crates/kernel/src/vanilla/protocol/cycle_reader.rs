//! Reading the entries and records of one cycle.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::block::Block;
use super::detect::{self, Asked, Layout};
use super::{directory, entries, rebuild};
use crate::memory::window::Region;
use crate::os::files;
use crate::vanilla::format::entry::{Location, quotient};
use crate::vanilla::format::names::FileName;
use crate::vanilla::format::record::{self, Length};
use crate::{Error, Result};

/// Data files that stay mapped.
const MOST_OPEN: usize = 32;

/// The location of a message's bytes.
pub struct Payload<'a> {
    /// The data file, mapped.
    pub region: &'a Arc<Region>,
    /// The first byte.
    pub at: Location,
    /// Bytes.
    pub length: u64,
}

/// An open cycle.
pub struct CycleReader {
    cycle: i32,
    directory: PathBuf,
    asked: Asked,
    /// None while the cycle has no entry.
    layout: Option<Layout>,
    index: Option<(u64, Block)>,
    /// The open data files, the most recently used last.
    data: Vec<((u32, u64), Block)>,
    /// A copy of the message read last, as other consumers may change claim words and locks in it.
    copy: Vec<u8>,
}

impl CycleReader {
    /// Opens no file yet.
    #[must_use]
    pub const fn new(cycle: i32, directory: PathBuf, asked: Asked) -> Self {
        let data = Vec::new();
        Self { cycle, directory, asked, layout: None, index: None, data, copy: Vec::new() }
    }

    /// The number of the cycle.
    pub const fn cycle(&self) -> i32 {
        self.cycle
    }

    /// Its directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The layout; None while there is no entry.
    pub fn layout(&mut self) -> Result<Option<Layout>> {
        if self.layout.is_none() && self.word(0, 0)? != 0 {
            self.detect()?;
        }
        Ok(self.layout)
    }

    /// The layout, even if the first entry was lost; None while there is no entry at all.
    pub fn layout_of_any(&mut self) -> Result<Option<Layout>> {
        if self.layout()?.is_none() {
            self.detect()?;
        }
        Ok(self.layout)
    }

    fn detect(&mut self) -> Result<()> {
        self.layout = detect::detect(&self.directory, self.asked)?.map(|fit| fit.layout);
        Ok(())
    }

    /// The entry of a sequence number; 0 while it is free.
    #[inline]
    pub fn entry(&mut self, sequence: u64) -> Result<u64> {
        let Some(layout) = self.layout else {
            return self.first_entry(sequence);
        };
        let (number, slot) = quotient(sequence, layout.entries_per_file());
        self.word(number, slot)
    }

    #[cold]
    fn first_entry(&mut self, sequence: u64) -> Result<u64> {
        // An empty cycle is polled, so only its first entry is checked.
        let layout = if sequence == 0 { self.layout()? } else { self.layout_of_any()? };
        if layout.is_some() { self.entry(sequence) } else { Ok(0) }
    }

    #[inline]
    fn word(&mut self, number: u64, slot: u64) -> Result<u64> {
        if !matches!(&self.index, Some((open, _)) if *open == number) {
            let path = directory::path_of(&self.directory, FileName::Index(number));
            let Some(block) = Block::open(&path, false)? else { return Ok(0) };
            self.index = Some((number, block));
        }
        let Some((_, block)) = &mut self.index else { return Ok(0) };
        block.word64(slot * 8)
    }

    /// The first free sequence number.
    pub fn end(&mut self) -> Result<u64> {
        let Some(layout) = self.layout()? else { return Ok(0) };
        let per_file = layout.entries_per_file();
        let mut number = 0;
        // An index file is created when the preceding one is full.
        let last = entries::index_numbers(&self.directory, per_file)?.pop().unwrap_or(0);
        while number < last && self.word(number + 1, 0)? != 0 {
            number += 1;
        }
        let slot = entries::first_free(0, per_file, |slot| Ok(self.word(number, slot)? != 0))?;
        Ok(number * per_file + slot)
    }

    /// The first taken sequence number from `sequence` on, if free ones precede it, as after a
    /// power cut or the loss of a file.
    pub fn after_gap(&mut self, sequence: u64) -> Result<Option<u64>> {
        let taken = self.taken_from(sequence)?;
        // Writers may have filled slots after they were checked: a second search sees all slots
        // that were taken before the one found.
        if taken.is_some_and(|taken| taken > sequence) {
            self.taken_from(sequence)
        } else {
            Ok(taken)
        }
    }

    fn taken_from(&mut self, sequence: u64) -> Result<Option<u64>> {
        let Some(layout) = self.layout_of_any()? else { return Ok(None) };
        let per_file = layout.entries_per_file();
        for number in entries::index_numbers(&self.directory, per_file)? {
            if number < sequence / per_file {
                continue;
            }
            let from = if number == sequence / per_file { sequence % per_file } else { 0 };
            if let Some(slot) = self.taken_slot(number, from, per_file)? {
                return Ok(number.checked_mul(per_file).map(|first| first + slot));
            }
        }
        Ok(None)
    }

    /// An error if a cycle has records but no index. Without an index each writer can have at most
    /// one record, as it publishes a second one only after the entry of the first.
    pub fn check_index_is_there(&self) -> Result<()> {
        let found = directory::files(&self.directory)?;
        if found.iter().any(|(name, _)| matches!(name, FileName::Index(_))) {
            return Ok(());
        }
        for (name, _) in found {
            let path = directory::path_of(&self.directory, name);
            if rebuild::has_records(&path, 2)? {
                let index = directory::path_of(&self.directory, FileName::Index(0));
                let found = format!("no index, and records in {name}");
                let expected = "entries that name the records (stop the writers and rebuild the \
                                index: quire repair)";
                return Err(Error::corrupt(
                    "the index of a cycle is gone",
                    &index,
                    0,
                    found,
                    expected,
                ));
            }
        }
        Ok(())
    }

    /// The last taken sequence number before `sequence`, skipping free entries.
    pub fn taken_before(&mut self, sequence: u64) -> Result<Option<u64>> {
        let Some(before) = sequence.checked_sub(1) else { return Ok(None) };
        if self.entry(before)? != 0 {
            return Ok(Some(before));
        }
        let Some(layout) = self.layout else { return Ok(None) };
        let per_file = layout.entries_per_file();
        let numbers = entries::index_numbers(&self.directory, per_file)?;
        for number in numbers.into_iter().rev().filter(|number| *number <= before / per_file) {
            let end = (sequence - number * per_file).min(per_file);
            if let Some(slot) = self.last_taken_slot(number, end)? {
                return Ok(Some(number * per_file + slot));
            }
        }
        Ok(None)
    }

    /// The last entry of a file before `end` that is not 0.
    fn last_taken_slot(&self, number: u64, end: u64) -> Result<Option<u64>> {
        let path = directory::path_of(&self.directory, FileName::Index(number));
        let Some(block) = Block::open(&path, false)? else { return Ok(None) };
        let mut found = None;
        let looked = files::each_used_page(block.file(), 0, |at, page| {
            let words = page.as_chunks::<8>().0.iter().zip(at / 8..);
            let taken = words.filter(|(word, slot)| **word != [0; 8] && *slot < end);
            found = taken.last().map(|(_, slot)| slot).or(found);
            Ok(())
        });
        looked.map_err(|e| Error::io("cannot read", &path, e))?;
        Ok(found)
    }

    /// The first entry of a file, from one on, that is not 0. Holes are skipped.
    fn taken_slot(&self, number: u64, from: u64, per_file: u64) -> Result<Option<u64>> {
        let path = directory::path_of(&self.directory, FileName::Index(number));
        let Some(block) = Block::open(&path, false)? else { return Ok(None) };
        let mut found = None;
        let looked = files::each_used_page(block.file(), from * 8, |at, page| {
            let words = page.as_chunks::<8>().0.iter().zip(at / 8..);
            let taken = |(word, slot): &(&[u8; 8], u64)| **word != [0; 8] && *slot >= from;
            found = found.or_else(|| words.clone().find(taken).map(|(_, slot)| slot));
            Ok(())
        });
        looked.map_err(|e| Error::io("cannot read", &path, e))?;
        Ok(found.filter(|slot| *slot < per_file))
    }

    /// The record that an entry points to.
    #[inline]
    pub fn payload(&mut self, sequence: u64, entry: u64) -> Result<Payload<'_>> {
        let length = self.record(sequence, entry)?;
        let (at, region) = last_used(self.layout, &self.data, entry);
        Ok(Payload { region, at, length })
    }

    /// A copy of the bytes of the record that an entry points to.
    #[inline]
    pub fn bytes(&mut self, sequence: u64, entry: u64) -> Result<&[u8]> {
        let length = self.record(sequence, entry)?;
        self.copy.clear();
        let (at, region) = last_used(self.layout, &self.data, entry);
        region.append_to_relaxed(&mut self.copy, at.position, length)?;
        Ok(&self.copy)
    }

    /// The length of a record, whose data file becomes the most recently used one.
    #[inline]
    fn record(&mut self, sequence: u64, entry: u64) -> Result<u64> {
        match self.record_as_laid_out(sequence, entry) {
            Err(Error::Corrupt { .. }) => self.record_by_another_layout(sequence, entry),
            found => found,
        }
    }

    /// The layout detected from the first entries need not fit later ones.
    #[cold]
    fn record_by_another_layout(&mut self, sequence: u64, entry: u64) -> Result<u64> {
        let before = self.layout;
        if before.is_some() && self.detect().is_err() {
            self.layout = before;
        }
        self.record_as_laid_out(sequence, entry)
    }

    #[inline]
    fn record_as_laid_out(&mut self, sequence: u64, entry: u64) -> Result<u64> {
        let Some(layout) = self.layout else { return Err(self.dangling(sequence, entry)) };
        let at = layout.packing.unpack(entry);
        if at.position < record::HEADER || !at.position.is_multiple_of(4) {
            return Err(self.dangling(sequence, entry));
        }
        let Some(block) = self.data_file(at)? else {
            return Err(self.missing(at));
        };
        let header = at.position - record::HEADER;
        let Length::Bytes(length) = record::length(block.word32(header)?) else {
            return Err(bad_length(block, header));
        };
        let length = u64::from(length);
        let end = at.position + length;
        if end > layout.packing.data_block || !block.is_readable(header, end)? {
            return Err(bad_length(block, header));
        }
        Ok(length)
    }

    #[inline]
    fn data_file(&mut self, at: Location) -> Result<Option<&mut Block>> {
        let key = (at.tid, at.file);
        if !matches!(self.data.last(), Some((last, _)) if *last == key) {
            if let Some(place) = self.data.iter().rposition(|(open, _)| *open == key) {
                let newest = self.data.len() - 1;
                self.data.swap(place, newest);
            } else {
                let name = FileName::Data { tid: at.tid, file: at.file };
                let path = directory::path_of(&self.directory, name);
                let Some(block) = Block::open(&path, false)? else { return Ok(None) };
                if self.data.len() >= MOST_OPEN {
                    self.data.remove(0);
                }
                self.data.push((key, block));
            }
        }
        Ok(self.data.last_mut().map(|(_, block)| block))
    }

    #[cold]
    fn dangling(&self, sequence: u64, entry: u64) -> Error {
        let per_file = self.layout.map_or(u64::MAX, |layout| layout.entries_per_file());
        let path = directory::path_of(&self.directory, FileName::Index(sequence / per_file));
        let found = format!("entry {entry:#x}");
        let expected = "the location of a record";
        Error::corrupt("an entry names no record", &path, sequence % per_file * 8, found, expected)
    }

    #[cold]
    fn missing(&self, at: Location) -> Error {
        let name = FileName::Data { tid: at.tid, file: at.file };
        let path = directory::path_of(&self.directory, name);
        let what = "the data file of an entry is missing";
        Error::corrupt(what, &path, at.position, "no file", "the file of a writer")
    }
}

/// The location of the record that `record` has just found.
#[inline]
fn last_used(
    layout: Option<Layout>,
    data: &[((u32, u64), Block)],
    entry: u64,
) -> (Location, &Arc<Region>) {
    let (Some(layout), Some((_, block))) = (layout, data.last()) else {
        unreachable!("the record was found by its layout in an open data file")
    };
    (layout.packing.unpack(entry), block.region())
}

#[cold]
fn bad_length(block: &mut Block, header: u64) -> Error {
    let word = block.word32(header).unwrap_or_default();
    let expected = format!("an inverted length within the {} bytes of the file", block.length());
    Error::corrupt(
        "an entry names no record",
        block.path(),
        header,
        format!("{word:#010x}"),
        expected,
    )
}
