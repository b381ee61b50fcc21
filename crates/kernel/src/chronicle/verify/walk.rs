//! Walks the documents of a roll file in order; from an unreadable part it skips to the next
//! message that the index reaches.

use super::scan;
use crate::chronicle::format::document::{self, HEADER_LEN, Header, NOT_COMPLETE};
use crate::chronicle::format::index::Shape;
use crate::chronicle::protocol::hints::{self, Pair};
use crate::chronicle::protocol::locate::{self, Located};
use crate::chronicle::protocol::roll_file::{Document, Known, Slot, View};
use crate::chronicle::protocol::walk::Walk;
use crate::os::interrupt::Signals;
use crate::sealed::cipher;
use crate::{Error, Result};

/// Signals are checked after this many documents.
const BETWEEN_LOOKS: u64 = 1 << 18;
/// Retry limit for index entries after damage: each try may have to walk the file.
const MOST_TRIES: usize = 64;
/// Retry limit while a file keeps growing during the search for gaps; then none is reported.
const MOST_ROUNDS: usize = 16;

/// The slot after the last document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// A header that is not complete, mostly 0.
    Waiting(u32),
    /// The end-of-file marker.
    EndOfData,
    /// A header that claims more bytes than the file has.
    Broken(String),
}

/// Unreadable messages, and the first one after them that the index reaches; None if that could not
/// be determined.
#[derive(Clone, Debug)]
pub struct Gap {
    pub from: u64,
    pub found: String,
    pub sequence: u64,
    pub to: Option<Known>,
}

/// Unencrypted documents in a file of an encrypted queue.
#[derive(Clone, Copy, Debug, Default)]
pub struct Plain {
    pub messages: u64,
    /// Metadata documents, without those that belong to the file.
    pub metadata: u64,
    /// The position of the first one, with its sequence or, for metadata, that of the next message.
    pub first: Option<Known>,
}

impl Plain {
    /// Counts a document with this sequence; for metadata, that of the next message.
    fn look_at(&mut self, view: &mut View, document: &Document, sequence: u64) -> Result<()> {
        let is_encrypted = if document.is_metadata {
            let at = document.position + HEADER_LEN;
            view.is_of_file(document)
                || view
                    .copied(at, u64::from(document.length))?
                    .is_none_or(|payload| cipher::is_sealed(&payload))
        } else {
            cipher::is_sealed(view.payload(document))
        };
        if !is_encrypted {
            self.messages += u64::from(!document.is_metadata);
            self.metadata += u64::from(document.is_metadata);
            self.first.get_or_insert(Known { position: document.position, sequence });
        }
        Ok(())
    }
}

/// The result of a walk.
pub struct Walked {
    /// Where the documents end.
    pub position: u64,
    pub ending: Ending,
    pub last: Option<Known>,
    /// Messages that were read.
    pub messages: u64,
    /// The sequence of the next message.
    pub next_sequence: u64,
    /// Positions of the messages that are due for an index entry; 0 for one in a gap.
    pub due: Vec<u64>,
    /// Positions of the index arrays.
    pub arrays: Vec<u64>,
    pub gaps: Vec<Gap>,
    /// The document after the end whose only fault is that it is not marked as complete: its
    /// position, and the correct header word.
    pub unmarked: Option<(u64, u32)>,
    /// Unencrypted documents; None if the queue is not encrypted.
    pub plain: Option<Plain>,
    /// `writePosition` before the walk: its message was visible by then.
    pub write_position: u64,
    /// The document that `write_position` lies inside of, if any.
    over: Option<Known>,
    /// `lastIndex` before the walk.
    pub last_index: u64,
    documents: u64,
}

impl Walked {
    /// Walks through a file, checking for signals; with `plain`, counts unencrypted documents.
    pub fn through(
        view: &mut View,
        plain: Option<Plain>,
        mut signals: Signals<'_>,
    ) -> Result<Self> {
        let last_index = view.file().layout.last_index;
        let mut walked = Self {
            position: 0,
            ending: Ending::Waiting(0),
            last: None,
            messages: 0,
            next_sequence: 0,
            due: Vec::new(),
            arrays: Vec::new(),
            gaps: Vec::new(),
            unmarked: None,
            plain,
            over: None,
            write_position: view.write_position()?,
            last_index: if last_index == 0 { 0 } else { view.word(last_index)? },
            documents: 0,
        };
        walked.go_on(view, u64::MAX, &mut signals)?;
        let mut rounds = 0;
        while let Some(gap) = walked.gap(view)? {
            if walked.goes_on(view, &mut signals)? {
                rounds += 1;
                if rounds == MOST_ROUNDS {
                    break;
                }
                continue;
            }
            let to = gap.to;
            if walked.gaps.is_empty() {
                walked.unmarked = walked.unmarked(view, to)?;
            }
            walked.gaps.push(gap);
            let Some(to) = to else { break };
            walked.skip_to(to, view.file().shape);
            walked.go_on(view, u64::MAX, &mut signals)?;
        }
        if walked.gaps.is_empty() {
            let wrong = match walked.miscounted(view)? {
                None => walked.stepped_over(view)?,
                found => found,
            };
            walked.gaps.extend(wrong);
        }
        if walked.gaps.is_empty() {
            let left = walked.leftover(view)?;
            walked.gaps.extend(left);
        }
        Ok(walked)
    }

    /// Continues the walk until after `limit`, or to the end, over documents appended since.
    pub fn advance(&mut self, view: &mut View, limit: u64) -> Result<()> {
        self.walk(view, limit, || Ok(()))
    }

    fn go_on(&mut self, view: &mut View, limit: u64, signals: &mut Signals<'_>) -> Result<()> {
        self.walk(view, limit, || signals.check())
    }

    /// Continues the walk, calling `pause` periodically.
    fn walk(
        &mut self,
        view: &mut View,
        limit: u64,
        mut pause: impl FnMut() -> Result<()>,
    ) -> Result<()> {
        while self.position <= limit {
            self.ending = match view.slot(self.position) {
                Ok(Slot::Document(document)) => {
                    self.pass(view, document)?;
                    if self.documents.is_multiple_of(BETWEEN_LOOKS) {
                        pause()?;
                    }
                    continue;
                }
                Ok(Slot::Waiting(word)) => Ending::Waiting(word),
                Ok(Slot::EndOfData) => Ending::EndOfData,
                Err(Error::Corrupt { found, .. }) => Ending::Broken(found),
                Err(error) => return Err(error),
            };
            break;
        }
        Ok(())
    }

    /// Continues the walk; returns whether documents were appended since: the index, read after the
    /// end was met, may then have entries for these.
    fn goes_on(&mut self, view: &mut View, signals: &mut Signals<'_>) -> Result<bool> {
        let before = self.position;
        self.go_on(view, u64::MAX, signals)?;
        Ok(self.position > before)
    }

    fn pass(&mut self, view: &mut View, document: Document) -> Result<()> {
        if (document.position + 1..document.next).contains(&self.write_position) {
            let sequence = self.next_sequence;
            self.over = Some(Known { position: document.position, sequence });
        }
        if let Some(plain) = &mut self.plain {
            plain.look_at(view, &document, self.next_sequence)?;
        }
        if document.is_metadata {
            if view.array(document.position)?.is_some() {
                self.arrays.push(document.position);
            }
        } else {
            if view.file().shape.is_indexed(self.next_sequence) {
                self.due.push(document.position);
            }
            self.last = Some(Known { position: document.position, sequence: self.next_sequence });
            self.next_sequence += 1;
            self.messages += 1;
        }
        self.position = document.next;
        self.documents += 1;
        Ok(())
    }

    fn skip_to(&mut self, to: Known, shape: Shape) {
        let due = to.sequence.div_ceil(u64::from(shape.index_spacing));
        self.due.resize(usize::try_from(due).unwrap_or(usize::MAX), 0);
        (self.position, self.next_sequence, self.last) = (to.position, to.sequence, None);
    }

    /// Whether messages after the end are reached by the index.
    fn gap(&self, view: &mut View) -> Result<Option<Gap>> {
        let mut tries = 0;
        let gap = |to| {
            let (from, sequence) = (self.position, self.next_sequence);
            Some(Gap { from, found: self.ending.text(), sequence, to })
        };
        for entry in self.entries_after(view)? {
            if !view.is_message(entry.position)? {
                continue;
            }
            tries += 1;
            if tries > MOST_TRIES {
                return Ok(gap(None));
            }
            match locate::locate(view, entry.sequence) {
                Ok(Located::Found(position)) if position == entry.position => {
                    return Ok(gap(Some(entry)));
                }
                Ok(_) | Err(Error::Corrupt { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(self.written_after(view)?.and_then(|to| gap(Some(to))))
    }

    /// The message after the end that `writePosition` points to.
    fn written_after(&self, view: &mut View) -> Result<Option<Known>> {
        if self.write_position <= self.position {
            return Ok(None);
        }
        let known = self.written(view)?;
        Ok(known.filter(|known| known.sequence >= self.next_sequence))
    }

    /// The message that `writePosition` points to, if there is one and the sequence word belongs to
    /// it.
    fn written(&self, view: &mut View) -> Result<Option<Known>> {
        let (layout, shape, named) =
            (view.file().layout.clone(), view.file().shape, self.write_position);
        let pair = hints::read_pair(&layout, shape, || Ok(named), |at| view.word(at))?;
        let Pair::Known(position, sequence) = pair else { return Ok(None) };
        Ok(view.is_message(position)?.then_some(Known { position, sequence }))
    }

    /// Documents after a damaged end: nothing points to them, and they may be messages.
    fn leftover(&self, view: &mut View) -> Result<Option<Gap>> {
        let is_damaged = matches!(self.ending, Ending::Broken(_))
            || (self.ending == Ending::Waiting(0) && self.write_position >= self.position);
        if !is_damaged {
            return Ok(None);
        }
        let found = scan::next_documents(view, self.position)?;
        Ok(found.map(|at| Gap {
            from: self.position,
            found: format!("{}, and documents from {at:#x} on", self.ending.text()),
            sequence: self.next_sequence,
            to: None,
        }))
    }

    /// The gap if the last message lies inside a document of the walk, whose header must therefore
    /// be damaged.
    fn stepped_over(&self, view: &mut View) -> Result<Option<Gap>> {
        let Some(over) = self.over else { return Ok(None) };
        let to = self.written(view)?.filter(|to| to.sequence >= over.sequence);
        let gap = |to: Known| Gap {
            from: over.position,
            found: format!("a document beyond the last message, which is at {:#x}", to.position),
            sequence: over.sequence,
            to: Some(to),
        };
        Ok(to.map(gap))
    }

    /// The header at the end without its not-complete bit, if the documents after it then lead to a
    /// later message with the right sequence.
    fn unmarked(&self, view: &mut View, to: Option<Known>) -> Result<Option<(u64, u32)>> {
        let (Ending::Waiting(word), Some(to)) = (&self.ending, to) else { return Ok(None) };
        let word = word & !NOT_COMPLETE;
        let (length, is_metadata) = match document::parse(word) {
            Header::Data(length) => (length, false),
            Header::Meta(length) => (length, true),
            _ => return Ok(None),
        };
        let next = document::next(self.position, length, view.file().layout.aligned);
        let sequence = self.next_sequence + u64::from(!is_metadata);
        let mut walk = Walk::from(view, Some(Known { position: next, sequence }));
        while walk.at.position < to.position {
            match walk.step() {
                Ok(Slot::Document(_)) => {}
                Ok(_) | Err(Error::Corrupt { .. }) => return Ok(None),
                Err(error) => return Err(error),
            }
        }
        Ok((walk.at == to).then_some((self.position, word)))
    }

    /// The gap before the first message whose sequence in the index differs from the walk's: a
    /// damaged header merged several messages into one, or split one.
    fn miscounted(&self, view: &mut View) -> Result<Option<Gap>> {
        let spacing = u64::from(view.file().shape.index_spacing);
        let due = |entry: &Known| {
            let number = usize::try_from(entry.sequence / spacing).ok()?;
            self.due.get(number).copied()
        };
        let entries = Self::entries(view, 0, |position| position < self.position)?;
        let wrong = entries.into_iter().filter(|entry| due(entry) != Some(entry.position));
        for (tries, entry) in wrong.enumerate() {
            let is_found = match locate::locate(view, entry.sequence) {
                Ok(Located::Found(position)) => position == entry.position,
                Ok(_) | Err(Error::Corrupt { .. }) => false,
                Err(error) => return Err(error),
            };
            if is_found || tries >= MOST_TRIES {
                let found = "messages that the index counts otherwise".to_owned();
                let to = is_found.then_some(entry);
                let (from, sequence) = (entry.position, entry.sequence);
                return Ok(Some(Gap { from, found, sequence, to }));
            }
        }
        Ok(None)
    }

    /// The entries for later messages that point past the end, in order.
    fn entries_after(&self, view: &mut View) -> Result<Vec<Known>> {
        let spacing = u64::from(view.file().shape.index_spacing);
        let first = self.next_sequence.next_multiple_of(spacing);
        Self::entries(view, first, |position| position > self.position)
    }

    /// The entries from a sequence on whose positions are `wanted`, in order.
    fn entries(view: &mut View, first: u64, wanted: impl Fn(u64) -> bool) -> Result<Vec<Known>> {
        let shape = view.file().shape;
        let count = u64::from(shape.index_count);
        let upper = view.word(view.file().layout.index2index)?;
        let Some(upper) = view.array(upper)? else { return Ok(Vec::new()) };
        let mut found = Vec::new();
        let mut looks = view.file().window.file_len() / 4 + count;
        for number in shape.upper_slot(first)..count {
            looks = looks.saturating_sub(1);
            let position = view.word(upper.slot(number))?;
            let Some(lower) = view.array(position)? else { continue };
            let is_first = number == shape.upper_slot(first);
            for slot in if is_first { shape.lower_slot(first) } else { 0 }..count {
                looks = looks.saturating_sub(1);
                let position = view.word(lower.slot(slot))?;
                if wanted(position) && view.is_document_position(position) {
                    found.push(Known { position, sequence: shape.sequence(number, slot) });
                }
            }
            if looks == 0 {
                break;
            }
        }
        Ok(found)
    }
}

impl Ending {
    /// The text of a finding.
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            Self::Waiting(word) => format!("header {word:#010x}"),
            Self::EndOfData => "the end-of-file marker".to_owned(),
            Self::Broken(found) => found.clone(),
        }
    }
}
