//! Detects the layout of a cycle's files. The files do not state it: it is the layout under which
//! their entries point to records.

use std::collections::HashMap;
use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::directory;
use crate::os::files::{self, Access};
use crate::probe::fault;
use crate::vanilla::format::entry::{Location, Packing, TID_BITS};
use crate::vanilla::format::names::FileName;
use crate::vanilla::format::record::{self, Length};
use crate::{Error, Result};

/// Java's default block size of index files.
pub const INDEX_BLOCK: u64 = 16 << 20;
/// Java's default block size of data files.
pub const DATA_BLOCK: u64 = 64 << 20;
/// How many entries are tried.
const SAMPLE: usize = 64;
/// The greatest block size, as a power of two.
const LARGEST_BLOCK_BITS: u32 = 40;

/// The layout as far as the caller gives it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Asked {
    /// Bits of the thread id in entries.
    pub tid_bits: Option<u32>,
    /// Length of an index file in bytes.
    pub index_block: Option<u64>,
    /// Length of a data file in bytes.
    pub data_block: Option<u64>,
}

/// The layout of a cycle's files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// How entries are packed.
    pub packing: Packing,
    /// Length of a whole index file in bytes.
    pub index_block: u64,
}

impl Layout {
    /// Entries of an index file.
    #[must_use]
    pub const fn entries_per_file(&self) -> u64 {
        self.index_block / 8
    }
}

impl std::fmt::Display for Layout {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (Packing { tid_bits, data_block }, index_block) = (self.packing, self.index_block);
        write!(
            out,
            "(tid_bits={tid_bits} data_block_bytes={data_block} index_block_bytes={index_block})"
        )
    }
}

/// The requested layout, completed by what Java would choose on this machine.
pub fn default_layout(asked: Asked) -> Result<Layout> {
    let data_block = asked.data_block.unwrap_or(DATA_BLOCK);
    let tid_bits = asked.tid_bits.map_or_else(tid_bits_of_machine, Ok)?;
    let index_block = asked.index_block.unwrap_or(INDEX_BLOCK);
    Ok(Layout { packing: Packing { tid_bits, data_block }, index_block })
}

/// Bits for thread ids as in Java: enough for the greatest process id, and at least 16.
fn tid_bits_of_machine() -> Result<u32> {
    let path = Path::new("/proc/sys/kernel/pid_max");
    let known = match fault::call!("vanilla.machine.read", std::fs::read_to_string(path)) {
        Ok(text) => text.trim().parse().ok(),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => return Err(Error::io("cannot read", path, error)),
    };
    let limit: u64 = known.unwrap_or(1 << 16);
    Ok(limit.clamp(1 << 16, 1 << 24).next_power_of_two().trailing_zeros())
}

/// A layout, and how many of the tried entries point to a record under it.
#[derive(Clone, Copy, Debug)]
pub struct Fit {
    /// The layout.
    pub layout: Layout,
    /// Entries that point to a record.
    pub records: usize,
    /// Entries that were tried.
    pub entries: usize,
}

/// The first entries of a cycle, and its files. As writers may append meanwhile, fits are only
/// comparable within one sample.
pub struct Sample {
    index: PathBuf,
    entries: Vec<u64>,
    index_block: u64,
    data: DataFiles,
}

impl Sample {
    /// A sample of a directory; None while there is no entry.
    pub fn of(directory: &Path) -> Result<Option<Self>> {
        let Some((index, entries)) = first_used(directory)? else { return Ok(None) };
        // Listed only now: a data file is created before the entries that point to it.
        let files = directory::files(directory)?;
        let data = DataFiles::new(directory, &files);
        Ok(Some(Self { index, entries, index_block: index_block(&files), data }))
    }

    /// The layout that fits best.
    pub fn fit(&mut self, asked: Asked) -> Result<Fit> {
        let index_block = asked.index_block.unwrap_or(self.index_block);
        let blocks =
            asked.data_block.map_or_else(|| self.data.block_candidates(), |block| vec![block]);
        let all_bits = asked.tid_bits.map_or_else(|| TID_BITS.to_vec(), |bits| vec![bits]);
        let entries = self.entries.len();
        let mut best: Option<Fit> = None;
        for tid_bits in all_bits {
            for data_block in &blocks {
                let packing = Packing { tid_bits, data_block: *data_block };
                let records = self.data.count_records(packing, &self.entries)?;
                let fit = Fit { layout: Layout { packing, index_block }, records, entries };
                if records == entries {
                    return Ok(fit);
                }
                if records > best.map_or(0, |best| best.records) {
                    best = Some(fit);
                }
            }
        }
        best.ok_or_else(|| no_layout(&self.index, self.entries[0], asked))
    }
}

/// The layout of the files in a cycle's directory; None while they have no entry.
pub fn detect(directory: &Path, asked: Asked) -> Result<Option<Fit>> {
    Sample::of(directory)?.map(|mut sample| sample.fit(asked)).transpose()
}

#[cold]
fn no_layout(path: &Path, entry: u64, asked: Asked) -> Error {
    let expected = if asked.data_block.is_some() || asked.tid_bits.is_some() {
        "an entry that names a record (leave out the block sizes and tid_bits to detect them)"
    } else {
        "an entry that names a record of a data file (is one missing?)"
    };
    Error::corrupt("no layout fits the entries", path, 0, format!("entry {entry:#x}"), expected)
}

/// The first index file with an entry, and its first entries.
fn first_used(directory: &Path) -> Result<Option<(PathBuf, Vec<u64>)>> {
    let found = directory::files(directory)?;
    let mut numbers: Vec<_> = found.iter().filter_map(|(name, _)| index_number(*name)).collect();
    numbers.sort_unstable();
    for number in numbers {
        let path = directory::path_of(directory, FileName::Index(number));
        let entries = first_entries(&path)?;
        if !entries.is_empty() {
            return Ok(Some((path, entries)));
        }
    }
    Ok(None)
}

const fn index_number(name: FileName) -> Option<u64> {
    match name {
        FileName::Index(number) => Some(number),
        FileName::Data { .. } => None,
    }
}

/// The first nonzero entries of an index file: among its first ones, or later ones if a power cut
/// or a lost page left none there.
fn first_entries(path: &Path) -> Result<Vec<u64>> {
    let Some(file) = open(path)? else { return Ok(Vec::new()) };
    let failed = |e| Error::io("cannot read", path, e);
    let mut bytes = [0; 8 * SAMPLE];
    let length = fault::call!("vanilla.index.read", file.read_at(&mut bytes, 0)).map_err(failed)?;
    let mut entries = Vec::new();
    add_entries(&mut entries, &bytes[..length]);
    if entries.is_empty() {
        files::each_used_page(&file, 0, |_, page| {
            add_entries(&mut entries, page);
            Ok(())
        })
        .map_err(failed)?;
    }
    Ok(entries)
}

fn add_entries(entries: &mut Vec<u64>, bytes: &[u8]) {
    let words = bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word));
    let room = SAMPLE.saturating_sub(entries.len());
    entries.extend(words.filter(|word| *word != 0).take(room));
}

/// The block size of index files: one that another follows is complete; others may be short.
fn index_block(files: &[(FileName, u64)]) -> u64 {
    let mut indexes: Vec<_> =
        files.iter().filter_map(|(name, len)| Some((index_number(*name)?, *len))).collect();
    indexes.sort_unstable();
    let is_block = |len: &u64| *len >= 8 && len.is_power_of_two();
    let followed = indexes.windows(2).filter(|pair| pair[0].0 + 1 == pair[1].0).map(|pair| pair[0]);
    let first = indexes.first().copied().filter(|_| indexes.len() == 1);
    let found = followed.chain(first).map(|(_, len)| len).find(is_block);
    let longest = indexes.iter().map(|(_, len)| *len).max().unwrap_or_default();
    found.unwrap_or_else(|| longest.max(INDEX_BLOCK).next_power_of_two())
}

fn open(path: &Path) -> Result<Option<File>> {
    files::open(path, Access { write: false, create_mode: None })
}

/// The data files of a directory, opened when an entry points to them.
struct DataFiles {
    directory: PathBuf,
    lengths: HashMap<(u32, u64), u64>,
    open: HashMap<(u32, u64), File>,
}

impl DataFiles {
    fn new(directory: &Path, files: &[(FileName, u64)]) -> Self {
        let data = files.iter().filter_map(|(name, len)| match name {
            FileName::Data { tid, file } => Some(((*tid, *file), *len)),
            FileName::Index(_) => None,
        });
        Self { directory: directory.to_path_buf(), lengths: data.collect(), open: HashMap::new() }
    }

    /// Block sizes, the likeliest first: files have the length of a block, unless they were copied
    /// short, or opened with a larger one.
    fn block_candidates(&self) -> Vec<u64> {
        let longest = self.lengths.values().copied().max().unwrap_or(DATA_BLOCK);
        let top = longest.next_power_of_two().trailing_zeros().min(LARGEST_BLOCK_BITS);
        let larger = (top..=LARGEST_BLOCK_BITS).map(|bits| 1 << bits);
        // A second file is created when the first one is full.
        let is_full = self.lengths.keys().any(|(_, file)| *file > 0);
        let is_whole = longest.is_power_of_two() || is_full;
        let first = if is_whole { 1 << top } else { DATA_BLOCK.max(1 << top) };
        let smaller = (6..top).rev().map(|bits| 1 << bits);
        std::iter::once(first).chain(larger).chain(smaller).collect()
    }

    fn count_records(&mut self, packing: Packing, entries: &[u64]) -> Result<usize> {
        let mut count = 0;
        for entry in entries {
            count += usize::from(self.is_record(packing.unpack(*entry))?);
        }
        Ok(count)
    }

    fn is_record(&mut self, at: Location) -> Result<bool> {
        let Some(len) = self.lengths.get(&(at.tid, at.file)).copied() else { return Ok(false) };
        if at.position < record::HEADER || !at.position.is_multiple_of(4) || at.position > len {
            return Ok(false);
        }
        let name = FileName::Data { tid: at.tid, file: at.file };
        let path = directory::path_of(&self.directory, name);
        let file = match self.open.entry((at.tid, at.file)) {
            std::collections::hash_map::Entry::Occupied(file) => file.into_mut(),
            std::collections::hash_map::Entry::Vacant(free) => match open(&path)? {
                Some(file) => free.insert(file),
                None => return Ok(false),
            },
        };
        let mut word = [0; 4];
        let header = at.position - record::HEADER;
        let found = fault::call!("vanilla.record.read", file.read_at(&mut word, header));
        let found = found.map_err(|e| Error::io("cannot read", &path, e))?;
        let length = record::length(u32::from_le_bytes(word));
        let fits = |length| at.position + u64::from(length) <= len;
        Ok(found == word.len() && matches!(length, Length::Bytes(length) if fits(length)))
    }
}
