//! Checks and restores the first documents of a roll file: its header and the upper index array.
//!
//! Most of their bytes are the same in every file of a queue. The documents that follow confirm the
//! lengths: the header's is right if the upper array begins after it, and that array's if the first
//! lower one begins after it. Only these constant bytes are ever restored: never those of a
//! message, nor words that appenders change.

use std::ops::Range;
use std::path::Path;

use super::lock::guard::WriteGuard;
use super::roll_file;
use super::{listing, unfinished};
use crate::Result;
use crate::chronicle::format::document::{self, HEADER_LEN, Header};
use crate::chronicle::format::index::{self, ArrayLayout, INDEX, INDEX2INDEX, PREAMBLE_MAX};
use crate::chronicle::format::store::{self, MAX_HEADER_LEN, StoreLayout};
use crate::memory::window::Window;
use crate::os::files::{self, Access};
use crate::probe::fault::step;

/// How many other files of the queue are consulted for their headers.
const NEIGHBOURS: usize = 4;
const WORD: u64 = 8;
/// Bytes of a header word and of a 64-bit word, as `usize`.
const HEADER: usize = size_of::<u32>();
const WORD_LEN: usize = size_of::<u64>();

/// The stores that make the documents after the damaged ones reachable.
#[derive(Debug)]
pub struct Damage {
    /// Where the damaged document begins.
    pub position: u64,
    /// Constant bytes, by position.
    bytes: Vec<(u64, Vec<u8>)>,
    /// Header words, by position; the last one makes the file readable.
    words: Vec<(u64, u32)>,
}

/// A candidate for the header document of a file.
struct FirstHeader {
    payload: Vec<u8>,
    layout: StoreLayout,
}

impl FirstHeader {
    fn new(payload: Vec<u8>, layout: StoreLayout) -> Option<Self> {
        (layout.aligned && layout.roll.is_none()).then_some(Self { payload, layout })
    }

    /// The header in the first bytes of a file, if its object is whole.
    fn of(start: &[u8]) -> Option<Self> {
        let payload = start.get(HEADER..)?;
        let length = store::length_of(payload)? as usize;
        Self::new(payload.get(..length)?.to_vec(), store::parse(payload.get(..length)?)?)
    }

    fn length(&self) -> u32 {
        u32::try_from(self.payload.len()).unwrap_or(document::LENGTH_MASK)
    }

    fn next(&self) -> u64 {
        document::next(0, self.length(), true)
    }

    /// The constant parts of the payload, as positions in the file.
    fn constants(&self) -> Vec<Range<u64>> {
        let layout = &self.layout;
        let mut words = vec![layout.write_position, layout.index2index];
        words.extend(layout.sequence);
        words.extend(Some(layout.last_index).filter(|at| *at != 0));
        words.sort_unstable();
        let (mut from, mut parts) = (HEADER_LEN, Vec::new());
        for word in words {
            parts.push(from..word);
            from = word + WORD;
        }
        parts.push(from..HEADER_LEN + self.payload.len() as u64);
        parts
    }

    fn bytes(&self) -> Vec<(u64, Vec<u8>)> {
        let part = |range: Range<u64>| {
            let (from, to) = (range.start - HEADER_LEN, range.end - HEADER_LEN);
            let bytes = usize::try_from(from).ok().zip(usize::try_from(to).ok());
            let bytes = bytes.and_then(|(from, to)| self.payload.get(from..to));
            (range.start, bytes.unwrap_or_default().to_vec())
        };
        self.constants().into_iter().map(part).collect()
    }
}

/// An empty index array at a position, as newly written: its header word, and its first bytes.
struct Array {
    position: u64,
    word: u32,
    preamble: Vec<u8>,
}

impl Array {
    fn new(name: &str, position: u64, index_count: u32) -> Self {
        let preamble = index::preamble(name, position, index_count, 0);
        let length = preamble.len() as u64 + index::slots_len(index_count);
        let length = u32::try_from(length).unwrap_or(document::LENGTH_MASK);
        Self { position, word: document::word(length, true), preamble }
    }

    fn next(&self) -> u64 {
        document::next(self.position, self.word & document::LENGTH_MASK, true)
    }

    /// The preamble without `used`, which appenders raise.
    fn constant(&self) -> &[u8] {
        &self.preamble[..self.preamble.len() - WORD_LEN]
    }

    /// Whether the file has exactly this array.
    fn is_in(&self, window: &Window) -> Result<bool> {
        let expected = [&self.word.to_le_bytes(), self.constant()].concat();
        Ok(read(window, self.position, expected.len())? == expected)
    }
}

/// The damage of a file's first documents, if the documents after them prove it. None for
/// unfinished files, which are not damaged, and for files of version 4, which are not checked.
pub fn damage(window: &Window, index_count: u32, spacing: u32) -> Result<Option<Damage>> {
    let word = roll_file::first_word(window)?.unwrap_or_default();
    if matches!(document::parse_first(word), Header::Waiting)
        && !unfinished::holds_messages(window.path(), index_count)?
    {
        return Ok(None);
    }
    let own = roll_file::read_layout(window).ok().flatten();
    if own.as_ref().is_some_and(|layout| !layout.aligned || layout.roll.is_some()) {
        return Ok(None);
    }
    if let (Some(layout), Header::Meta(length)) = (own, document::parse(word)) {
        let next = document::next(0, length, true);
        if has_array(window, next, layout.index_count)? {
            return array_damage(window, next, layout.index_count);
        }
        let array = Array::new(INDEX2INDEX, next, layout.index_count);
        if first_lower(&array).is_in(window)? {
            return array_damage(window, next, layout.index_count);
        }
    }
    for header in candidates(window, index_count, spacing)? {
        if let Some(damage) = proven(window, &header)? {
            return Ok(Some(damage));
        }
    }
    Ok(None)
}

/// Restores the first documents of a file; returns where the damaged one began, if there was one.
pub fn restore(
    path: &Path,
    index_count: u32,
    spacing: u32,
    guard: &WriteGuard<'_>,
) -> Result<Option<u64>> {
    let Some(file) = files::open(path, Access { write: false, create_mode: None })? else {
        return Ok(None);
    };
    let window = Window::new(path, file, false)?;
    let Some(damage) = damage(&window, index_count, spacing)? else { return Ok(None) };
    let Some(file) = files::open(path, Access { write: true, create_mode: None })? else {
        return Ok(None);
    };
    let window = Window::new(path, file, true)?;
    let is_stored = damage.mend(&window, guard)?;
    window.sync()?;
    Ok(is_stored.then_some(damage.position))
}

/// The first lower array, which a file's creator writes after the upper one.
fn first_lower(upper: &Array) -> Array {
    let count = upper.word & document::LENGTH_MASK;
    let count = (u64::from(count) - upper.preamble.len() as u64) / WORD;
    Array::new(INDEX, upper.next(), u32::try_from(count).unwrap_or_default())
}

/// Candidates for the header: by its own bytes, those of neighbouring files, and a new one.
fn candidates(window: &Window, index_count: u32, spacing: u32) -> Result<Vec<FirstHeader>> {
    let mut found: Vec<_> = FirstHeader::of(&start_of(window)?).into_iter().collect();
    found.extend(neighbours(window.path())?);
    for fieldless in [false, true] {
        let (payload, layout) = store::encode(index_count, spacing, fieldless);
        found.extend(FirstHeader::new(payload, layout));
    }
    Ok(found)
}

fn neighbours(path: &Path) -> Result<Vec<FirstHeader>> {
    let dir = path.parent().unwrap_or(Path::new("."));
    let mut names = listing::roll_file_names(dir)?;
    names.sort_unstable();
    let own = path.file_name().map(|name| name.to_string_lossy().into_owned());
    let at = names.iter().position(|name| Some(name) == own.as_ref()).unwrap_or_default();
    let near = names.iter().enumerate().filter(|(place, _)| *place != at);
    let mut near: Vec<_> = near.map(|(place, name)| (place.abs_diff(at), name)).collect();
    near.sort_unstable();
    let mut found = Vec::new();
    for (_, name) in near.into_iter().take(NEIGHBOURS) {
        let other = dir.join(name);
        let access = Access { write: false, create_mode: None };
        let Ok(Some(file)) = files::open(&other, access) else { continue };
        let Ok(window) = Window::new(&other, file, false) else { continue };
        if matches!(roll_file::read_layout(&window), Ok(Some(_))) {
            found.extend(FirstHeader::of(&start_of(&window)?));
        }
    }
    Ok(found)
}

/// The stores that give a file this header, if the arrays after it prove it.
fn proven(window: &Window, header: &FirstHeader) -> Result<Option<Damage>> {
    let (next, count) = (header.next(), header.layout.index_count);
    let upper = Array::new(INDEX2INDEX, next, count);
    let is_linked = word_at(window, header.layout.index2index)? == next;
    let has_upper = upper.is_in(window)? || (is_linked && has_array(window, next, count)?);
    if !has_upper && !first_lower(&upper).is_in(window)? {
        return Ok(None);
    }
    let (mut bytes, mut words) = (header.bytes(), vec![(0, document::word(header.length(), true))]);
    if !has_upper {
        bytes.push((next + HEADER_LEN, upper.constant().to_vec()));
        words.insert(0, (next, upper.word));
    }
    Ok(Some(Damage { position: 0, bytes, words }))
}

/// The damage of the upper array at a position. Its first bytes are proven by the first lower array
/// following it.
fn array_damage(window: &Window, position: u64, index_count: u32) -> Result<Option<Damage>> {
    let upper = Array::new(INDEX2INDEX, position, index_count);
    if has_array(window, position, index_count)? {
        let length = word_at(window, position)? & u64::from(document::LENGTH_MASK);
        let length = u32::try_from(length).unwrap_or_default();
        let after = document::next(position, length, true);
        if after == upper.next() || has_array(window, after, index_count)? {
            return Ok(None);
        }
    }
    if !first_lower(&upper).is_in(window)? {
        return Ok(None);
    }
    let bytes = vec![(position + HEADER_LEN, upper.constant().to_vec())];
    Ok(Some(Damage { position, bytes, words: vec![(position, upper.word)] }))
}

/// Whether an index array's document begins at a position, judging by its first bytes.
fn has_array(window: &Window, position: u64, index_count: u32) -> Result<bool> {
    let found = read(window, position, HEADER + PREAMBLE_MAX)?;
    let Some((word, payload)) = found.split_first_chunk::<4>() else { return Ok(false) };
    let is_complete = matches!(document::parse(u32::from_le_bytes(*word)), Header::Meta(_));
    Ok(is_complete && ArrayLayout::parse(position, payload, index_count).is_some())
}

fn start_of(window: &Window) -> Result<Vec<u8>> {
    read(window, 0, HEADER + MAX_HEADER_LEN as usize)
}

fn word_at(window: &Window, position: u64) -> Result<u64> {
    let found = read(window, position, WORD_LEN)?;
    Ok(found.first_chunk().map_or(0, |word| u64::from_le_bytes(*word)))
}

fn read(window: &Window, position: u64, count: usize) -> Result<Vec<u8>> {
    let mut bytes = vec![0; count];
    let got = window.read_at(&mut bytes, position)?;
    bytes.truncate(got);
    Ok(bytes)
}

impl Damage {
    /// Stores the correct bytes; false if the words changed meanwhile.
    fn mend(&self, window: &Window, guard: &WriteGuard<'_>) -> Result<bool> {
        guard.check_held()?;
        let end = |(at, bytes): &(u64, Vec<u8>)| at + bytes.len() as u64;
        let end = self.bytes.iter().map(end).max().unwrap_or_default();
        let mut region = window.region();
        window.reserve(&mut region, 0, end)?;
        for (position, bytes) in &self.bytes {
            if region.copy_out_relaxed(*position, bytes.len() as u64) != *bytes {
                region.store_each_relaxed(*position, bytes, step!("repair.head.store"));
            }
        }
        guard.check_held()?;
        let mut is_stored = true;
        for (position, word) in &self.words {
            let found = region.load_header_acquire(*position);
            let step = step!("repair.header.cas");
            is_stored &= region.publish_header(*position, found, *word, step).is_ok();
        }
        Ok(is_stored)
    }
}
