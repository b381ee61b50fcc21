//! The bytes of one message: its document, part by part, and the words and index entries that point
//! to it.

use quire_wire::explain;

use super::format::document::{self, HEADER_LEN};
use super::format::index::Shape;
use super::protocol::hints::{self, Pair};
use super::protocol::locate::{self, Located};
use super::protocol::roll_file::{Slot, View};
use super::queue::handle::Queue;
use crate::Result;
use crate::explained::{Explained, Part, SHOWN_MAX, Section};

const WORD: u64 = 8;

/// Explains the message at an index; None if there is none.
pub fn explain(queue: &Queue, index: i64) -> Result<Option<Explained>> {
    let (cycle, sequence) = queue.roll().split(index)?;
    let Some(mut view) = queue.view(cycle)? else { return Ok(None) };
    let Located::Found(position) = locate::locate(&mut view, sequence)? else { return Ok(None) };
    let mut walk = Walk { view: &mut view, parts: Vec::new() };
    walk.document(position)?;
    walk.index(position, sequence)?;
    let parts = walk.parts;
    Ok(Some(Explained { file: view.path(), parts }))
}

struct Walk<'v> {
    view: &'v mut View,
    parts: Vec<Part>,
}

impl Walk<'_> {
    fn add(
        &mut self,
        section: Section,
        (position, length): (u64, u64),
        code: &'static str,
        meaning: String,
    ) -> Result<()> {
        let bytes = self.view.copied(position, length.min(SHOWN_MAX as u64))?.unwrap_or_default();
        let place = (section, &*self.view.path());
        self.parts.push(Part::plain(place, (position, length), &bytes, code, meaning));
        Ok(())
    }

    fn document(&mut self, position: u64) -> Result<()> {
        let Slot::Document(found) = self.view.slot(position)? else { return Ok(()) };
        let meaning = format!("a message, ready: {} bytes", found.length);
        self.add(Section::Header, (position, HEADER_LEN), "u32", meaning)?;
        let start = position + HEADER_LEN;
        let file = self.view.path();
        let payload = self.view.copied(start, u64::from(found.length))?.unwrap_or_default();
        let parts = explain::parts(&payload).into_iter().map(|part| Part {
            section: Section::Payload,
            file: file.clone(),
            position: start + part.offset as u64,
            length: part.length as u64,
            depth: part.depth,
            bytes: payload[part.offset..][..part.length.min(SHOWN_MAX)].to_vec(),
            code: part.code,
            meaning: part.meaning,
        });
        self.parts.extend(parts);
        let end = start + u64::from(found.length);
        if end < found.next {
            let meaning = "up to a multiple of 4".to_owned();
            self.add(Section::Next, (end, found.next - end), "padding", meaning)?;
        }
        let (after, length) = match self.view.slot(found.next) {
            Ok(Slot::Document(next)) if next.is_metadata => ("metadata", Some(next.length)),
            Ok(Slot::Document(next)) => ("the next message", Some(next.length)),
            Ok(Slot::EndOfData) => ("the end of the file's messages", None),
            Ok(Slot::Waiting(document::NOT_INITIALIZED)) => ("nothing yet", None),
            Ok(Slot::Waiting(_)) => ("not complete", None),
            Err(_) => ("damaged", None),
        };
        let size = length.map(|length| format!(": {length} bytes")).unwrap_or_default();
        self.add(Section::Next, (found.next, HEADER_LEN), "u32", format!("{after}{size}"))
    }

    fn word(&mut self, position: u64, code: &'static str, meaning: String) -> Result<()> {
        self.add(Section::Index, (position, WORD), code, meaning)
    }

    fn index(&mut self, position: u64, sequence: u64) -> Result<()> {
        let (layout, shape) = (self.view.file().layout.clone(), self.view.file().shape);
        let last = self.view.write_position()?;
        let meaning = format!("the last message is at {last:x}");
        self.word(layout.write_position, "writePosition", meaning)?;
        if let Some(at) = layout.sequence {
            let pair = hints::read_pair(&layout, shape, || Ok(last), |at| self.view.word(at))?;
            let meaning = match pair {
                Pair::Known(_, last) => format!("its sequence is {last}"),
                Pair::Empty | Pair::Unnumbered(_) => "not of that position".to_owned(),
            };
            self.word(at, "sequence", meaning)?;
        }
        let upper = self.view.word(layout.index2index)?;
        let meaning = format!("the upper index array is at {upper:x}");
        self.word(layout.index2index, "index2Index", meaning)?;
        if layout.last_index != 0 {
            let next = self.view.word(layout.last_index)?;
            let meaning = format!("messages before sequence {next} are indexed");
            self.word(layout.last_index, "lastIndex", meaning)?;
        }
        self.entry(upper, shape, position, sequence)
    }

    /// The slots that name the message, or the nearest indexed one before it.
    fn entry(&mut self, upper: u64, shape: Shape, position: u64, sequence: u64) -> Result<()> {
        let Some(array) = self.view.array(upper)? else { return Ok(()) };
        let number = shape.upper_slot(sequence);
        if number >= u64::from(shape.index_count) {
            return Ok(());
        }
        let at = array.slot(number);
        let lower = self.view.word(at)?;
        let meaning = format!("slot {number}: an index array is at {lower:x}");
        self.word(at, "index2index", meaning)?;
        let Some(array) = self.view.array(lower)? else { return Ok(()) };
        let slot = shape.lower_slot(sequence);
        let found = self.view.word(array.slot(slot))?;
        let indexed = shape.sequence(number, slot);
        let meaning = match sequence - indexed {
            _ if found == 0 => format!("slot {slot}: sequence {indexed}, not indexed yet"),
            0 if found == position => format!("slot {slot}: this message is at {found:x}"),
            0 => format!("slot {slot}: names {found:x}, which is not this message"),
            steps => format!(
                "slot {slot}: sequence {indexed} is at {found:x}; this message is {steps} after it"
            ),
        };
        self.word(array.slot(slot), "index", meaning)
    }
}
