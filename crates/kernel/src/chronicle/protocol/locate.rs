//! Finding positions (`docs/protocol.md`, "Locate"): by write position, by index, by walking.
//!
//! The words and index arrays are hints. Every answer is confirmed by walking documents,
//! and a missing, stale or damaged hint only makes the walk longer (`index_search.rs`).

use std::cell::RefCell;
use std::sync::Arc;

use super::hints::{self, Pair};
use super::index_search::{UpTo, last_entry};
use super::roll_file::{Known, Slot, View};
use super::walk::{Met, Walk};
use crate::{Error, Result};

/// The end of a file's documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// Position of the first header that is not a complete document.
    pub position: u64,
    /// The last message.
    pub last: Option<Known>,
    /// The slot at that position: waiting, or the end-of-file marker.
    pub slot: Slot,
}

impl End {
    /// The sequence the next message would get.
    #[must_use]
    pub const fn next_sequence(&self) -> u64 {
        match self.last {
            Some(last) => last.sequence + 1,
            None => 0,
        }
    }
}

/// Where a sequence is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Located {
    /// There is a message.
    Found(u64),
    /// It would be the next message, at this position.
    NotYet(u64),
    /// It would be the next message, but the file has its end-of-file marker at this position.
    AfterEnd(u64),
    /// Beyond the next message.
    NotReached,
}

/// The end of the file, walked to from the write position if that can be trusted.
pub fn end(view: &mut View) -> Result<End> {
    let from = written(view)?;
    let mut walk = Walk::from(view, from);
    let mut last = None;
    loop {
        match walk.next_message()? {
            Met::Message(message) => last = Some(message),
            Met::End(slot) => return Ok(End { position: walk.at.position, last, slot }),
        }
    }
}

/// The message at the write position, numbered by the sequence word or by the index.
fn written(view: &mut View) -> Result<Option<Known>> {
    let (layout, shape) = (view.file().layout.clone(), view.file().shape);
    let view = RefCell::new(view);
    let position = || view.borrow_mut().write_position();
    let pair = hints::read_pair(&layout, shape, position, |at| view.borrow_mut().word(at))?;
    let view = view.into_inner();
    match pair {
        Pair::Empty => Ok(None),
        Pair::Known(position, sequence) => believed(view, Known { position, sequence }),
        // The word is stale: number the message at the write position by the messages before it.
        Pair::Unnumbered(position) => {
            Ok(sequence_at(view, position)?.map(|sequence| Known { position, sequence }))
        }
    }
}

/// The message with its sequence, checked: on first use of a file the message is also numbered by
/// the index.
fn believed(view: &mut View, known: Known) -> Result<Option<Known>> {
    if !view.is_message(known.position)? {
        return Ok(None);
    }
    let file = Arc::clone(view.file());
    if file.word_is_sound.get() == Some(&true) {
        return Ok(Some(known));
    }
    // If word and index agree, neither is damaged; otherwise the index is searched with checks.
    let counted = match count_to(view, known.position, false) {
        Ok(Some(counted)) if counted == known.sequence => Some(counted),
        Ok(_) | Err(Error::Corrupt { .. }) => sequence_at(view, known.position)?,
        Err(error) => return Err(error),
    };
    file.word_is_sound.get_or_init(|| counted == Some(known.sequence));
    Ok(counted.map(|sequence| Known { position: known.position, sequence }))
}

/// The sequence of the message at `position`; None if no message starts there.
pub fn sequence_at(view: &mut View, position: u64) -> Result<Option<u64>> {
    count_to(view, position, true)
}

fn count_to(view: &mut View, position: u64, checked: bool) -> Result<Option<u64>> {
    let base = last_entry(view, UpTo::Position(position), checked)?;
    let mut walk = Walk::from(view, base);
    while walk.at.position < position {
        let Slot::Document(_) = walk.step()? else { return Ok(None) };
    }
    let found = walk.at;
    if found.position > position {
        return Ok(None);
    }
    Ok(match walk.step()? {
        Slot::Document(document) if !document.is_metadata => Some(found.sequence),
        _ => None,
    })
}

/// Where the message numbered `sequence` is.
pub fn locate(view: &mut View, sequence: u64) -> Result<Located> {
    let base = last_entry(view, UpTo::Sequence(sequence), true)?;
    let mut walk = Walk::from(view, base);
    loop {
        match walk.next_message()? {
            Met::Message(at) if at.sequence == sequence => return Ok(Located::Found(at.position)),
            Met::Message(_) => {}
            Met::End(_) if walk.at.sequence != sequence => return Ok(Located::NotReached),
            Met::End(Slot::EndOfData) => return Ok(Located::AfterEnd(walk.at.position)),
            Met::End(_) => return Ok(Located::NotYet(walk.at.position)),
        }
    }
}

/// An error if the file's write position lies after its first empty header.
pub fn check_nothing_after(view: &mut View, position: u64) -> Result<()> {
    let last = view.word(view.file().layout.write_position)?; // even if the file is cut short
    if last < position || !matches!(view.slot(position)?, Slot::Waiting(_)) {
        return Ok(());
    }
    let found = format!("no document, and the last one at {last:#x}");
    let what = "messages are missing in the middle of the file";
    Err(Error::corrupt(what, view.file().path(), position, found, "a document"))
}

/// Positions of consecutive messages, for reading backward.
#[derive(Clone, Debug, Default)]
pub struct Run {
    /// Sequence of the first.
    pub first: u64,
    /// Their positions.
    pub positions: Vec<u64>,
    /// Position of the header after the last.
    pub end: u64,
}

impl Run {
    /// The position of a message of the run.
    #[must_use]
    pub fn position(&self, sequence: u64) -> Option<u64> {
        let place = usize::try_from(sequence.checked_sub(self.first)?).ok()?;
        self.positions.get(place).copied()
    }
}

/// The messages from the last indexed one up to `sequence`, or up to the file's last one.
pub fn run_up_to(view: &mut View, sequence: u64) -> Result<Run> {
    let base = last_entry(view, UpTo::Sequence(sequence), true)?;
    let mut walk = Walk::from(view, base);
    let (first, mut positions) = (walk.at.sequence, Vec::new());
    while walk.at.sequence <= sequence {
        let Met::Message(message) = walk.next_message()? else { break };
        positions.push(message.position);
    }
    Ok(Run { first, positions, end: walk.at.position })
}
