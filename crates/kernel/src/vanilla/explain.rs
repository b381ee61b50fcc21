//! The bytes of one message: its record, and the entry that points to it.

use std::path::Path;

use super::format::entry::Location;
use super::format::names::FileName;
use super::format::record::{self, Length};
use super::place::{self, Place};
use super::protocol::block::Block;
use super::protocol::cycle_reader::Payload;
use super::protocol::directory;
use super::queue::VanillaQueue;
use crate::explained::{Explained, Part, SHOWN_MAX, Section};
use crate::{Error, Result};

const WORD: u64 = 8;

/// Explains the message at an index; None if there is none.
pub fn explain(queue: &VanillaQueue, index: i64) -> Result<Option<Explained>> {
    let Some(Place { mut reader, sequence }) = place::place_at(queue, index)? else {
        return Ok(None);
    };
    let entry = reader.entry(sequence)?;
    if entry == 0 {
        return Ok(None);
    }
    let Payload { at, length, .. } = reader.payload(sequence, entry)?;
    let Some(layout) = reader.layout_of_any()? else { return Ok(None) };
    let name = FileName::Data { tid: at.tid, file: at.file };
    let file = directory::path_of(reader.directory(), name);
    let mut block = Block::open(&file, false)?.ok_or_else(|| Error::gone("removed", &file))?;
    let mut parts = record_parts(&mut block, at.position, length)?;
    let (number, slot) =
        (sequence / layout.entries_per_file(), sequence % layout.entries_per_file());
    let index_file = directory::path_of(reader.directory(), FileName::Index(number));
    parts.push(entry_part(&index_file, slot, entry, at));
    Ok(Some(Explained { file, parts }))
}

/// The length word, the payload, and the padding after them.
fn record_parts(block: &mut Block, start: u64, length: u64) -> Result<Vec<Part>> {
    let header = start - record::HEADER;
    let word = block.word32(header)?.to_le_bytes();
    let meaning = format!("a message of {length} bytes: the inverted length");
    let mut parts = vec![part(block, Section::Header, header, (&word, 4), "u32", meaning)];
    let shown = length.min(SHOWN_MAX as u64);
    let bytes = if length > 0 && block.is_readable(start, start + length)? {
        block.region().copy_out_relaxed(start, shown)
    } else {
        Vec::new()
    };
    if length > 0 {
        let meaning = "the message".to_owned();
        parts.push(part(block, Section::Payload, start, (&bytes, length), "bytes", meaning));
    }
    let (end, next) = (start + length, record::next(start, length));
    if end < next && block.is_readable(end, next)? {
        let padding = block.region().copy_out_relaxed(end, next - end);
        let meaning = "up to a multiple of 4".to_owned();
        parts.push(part(block, Section::Next, end, (&padding, next - end), "padding", meaning));
    }
    if next + record::HEADER <= block.length() {
        let word = block.word32(next)?;
        let meaning = match record::length(word) {
            Length::Unpublished => "nothing yet".to_owned(),
            Length::Bytes(length) => format!("the next message of this writer: {length} bytes"),
            Length::Invalid if word == record::PADDING => {
                "padding: the next message begins at a multiple of 8".to_owned()
            }
            Length::Invalid => "damaged".to_owned(),
        };
        parts.push(part(block, Section::Next, next, (&word.to_le_bytes(), 4), "u32", meaning));
    }
    Ok(parts)
}

fn part(
    block: &Block,
    section: Section,
    position: u64,
    (bytes, length): (&[u8], u64),
    code: &'static str,
    meaning: String,
) -> Part {
    Part::plain((section, block.path()), (position, length), bytes, code, meaning)
}

fn entry_part(file: &Path, slot: u64, entry: u64, at: Location) -> Part {
    let Location { tid, file: number, position } = at;
    let meaning = format!("slot {slot}: thread {tid}, its data file {number}, at {position:x}");
    let bytes = entry.to_le_bytes();
    Part::plain((Section::Index, file), (slot * WORD, WORD), &bytes, "entry", meaning)
}
