//! The two-level index, written by appenders (`docs/protocol.md` §5.1): step 9 of an append
//! (`append/end.rs`). Message `sequence` has just been published at `position`.
//!
//! - 9a. raise `writePosition`; 9b. store the sequence word;
//! - 9c. if the message is due: find the array of its slot, or publish a new one after the last
//!   document and CAS it into `index2index`;
//! - 9d. store the slot, raise `used`, raise `lastIndex`.
//!
//! A crash in between leaves a message without a slot: searches walk over it. An array that was
//! published but not linked is a metadata document that readers ignore.

use super::hints;
use super::lock::guard::{DetachedGuard, WriteGuard};
use super::publish::{self, NotPublished, Payload};
use super::roll_file::View;
use crate::chronicle::format::blocks::Growth;
use crate::chronicle::format::document::{self, HEADER_LEN, TAIL_ZEROS};
use crate::chronicle::format::index::{self, ArrayLayout};
use crate::memory::Cells;
use crate::probe::fault::step;
use crate::{Error, Result};

/// The words of an open file that appends change, at their positions in the mapping.
pub struct IndexWriter {
    upper: Option<ArrayLayout>,
    lower: Option<(u64, ArrayLayout)>,
    /// The upper array's slot of the lower array that is known to be writable.
    writable: Option<u64>,
}

impl IndexWriter {
    /// Finds the upper array of `view`'s file.
    pub fn new(view: &mut View) -> Result<Self> {
        let position = view.word(view.file().layout.index2index)?;
        Ok(Self { upper: view.array(position)?, lower: None, writable: None })
    }

    /// Steps 9a and 9b.
    #[expect(clippy::inline_always, reason = "once a message or more: a call costs 1 %")]
    #[inline(always)]
    pub fn record(view: &View, position: u64, sequence: u64, guard: &WriteGuard<'_>) {
        let file = view.file();
        hints::record(view.region(), &file.layout, file.shape, position, sequence, guard);
    }

    /// Whether a message of this sequence gets a slot.
    #[inline]
    #[must_use]
    pub fn is_due(view: &View, sequence: u64) -> bool {
        view.file().shape.is_indexed(sequence)
            && view.region().load_acquire(view.file().layout.last_index) <= sequence
    }

    /// Whether the array of a message's slot is known and writable.
    #[inline]
    #[must_use]
    pub fn is_ready(&self, view: &View, sequence: u64) -> bool {
        let number = view.file().shape.upper_slot(sequence);
        self.writable == Some(number) && self.lower.is_some_and(|(found, _)| found == number)
    }

    /// Makes the arrays that a message's slot needs writable; returns the room after the message
    /// for a new one, in bytes.
    pub fn make_room(&mut self, view: &mut View, sequence: u64) -> Result<u64> {
        let Some(upper) = self.upper else { return Ok(0) };
        let number = view.file().shape.upper_slot(sequence);
        if self.writable == Some(number) {
            return Ok(0);
        }
        if let Some(lower) = self.lower_array(view, sequence)? {
            view.make_array_writable(&lower)?;
            self.writable = Some(number);
            return Ok(0);
        }
        view.make_array_writable(&upper)?;
        let slots = index::slots_len(view.file().shape.index_count);
        Ok(HEADER_LEN + index::PREAMBLE_MAX as u64 + slots + TAIL_ZEROS + HEADER_LEN)
    }

    /// Steps 9c and 9d for a message that is due. `free` is the position after the last document;
    /// returns the new one.
    pub fn index(
        &mut self,
        view: &mut View,
        position: u64,
        sequence: u64,
        free: u64,
        guard: &WriteGuard<'_>,
    ) -> Result<u64> {
        let Some(upper) = self.upper else { return Ok(free) };
        let shape = view.file().shape;
        let (array, free) = match self.lower_array(view, sequence)? {
            Some(array) => (array, free),
            None => self.add_lower(view, upper, sequence, free, guard)?,
        };
        let layout = &view.file().layout;
        hints::store_slot(view.region(), layout, shape, &array, position, sequence, guard);
        Ok(free)
    }

    /// The array that holds the slot of `sequence`, if it is linked.
    fn lower_array(&mut self, view: &mut View, sequence: u64) -> Result<Option<ArrayLayout>> {
        let number = view.file().shape.upper_slot(sequence);
        if let Some((found, array)) = self.lower
            && found == number
        {
            return Ok(Some(array));
        }
        let Some(upper) = self.upper else { return Ok(None) };
        let position = view.word(upper.slot(number))?;
        let array = view.array(position)?;
        self.lower = array.map(|array| (number, array));
        Ok(array)
    }

    fn add_lower(
        &mut self,
        view: &mut View,
        upper: ArrayLayout,
        sequence: u64,
        free: u64,
        guard: &WriteGuard<'_>,
    ) -> Result<(ArrayLayout, u64)> {
        let index_count = view.file().shape.index_count;
        let number = view.file().shape.upper_slot(sequence);
        let cells = view.region();
        let preamble = index::preamble(index::INDEX, free, index_count, 0);
        let (payload, word) = array_document(&preamble, index_count);
        publish::publish(cells, free, payload, word, guard)
            .map_err(|error| not_published(view, free, error, guard))?;
        let (array, next) = array_at(free, &preamble, payload);
        step!("index.array.publish").made();
        // An unusable slot value is replaced: the array it should point to is lost.
        let found = cells.load_acquire(upper.slot(number));
        let _ = cells.swap_acq_rel(upper.slot(number), found, free, step!("index.link.cas"));
        cells.raise_acq_rel(upper.used, (number + 1).cast_signed(), step!("index.upper-used.cas"));
        self.lower = Some((number, array));
        self.writable = Some(number);
        Ok((array, next))
    }
}

/// The document of an empty array: its payload and its header word.
fn array_document(preamble: &[u8], index_count: u32) -> (Payload<'_>, u32) {
    let payload = Payload { head: &[], body: preamble, zeros: index::slots_len(index_count) };
    (payload, document::word(array_length(payload), true))
}

/// At most 2^20 slots of eight bytes: far below the length a header can hold.
fn array_length(payload: Payload<'_>) -> u32 {
    u32::try_from(payload.len()).unwrap_or(document::LENGTH_MASK)
}

/// The words of the array whose document is at `position`, and the position after it.
fn array_at(position: u64, preamble: &[u8], payload: Payload<'_>) -> (ArrayLayout, u64) {
    let slots = position + HEADER_LEN + preamble.len() as u64;
    let array = ArrayLayout { used: slots - 8, slots };
    (array, document::next(position, array_length(payload), true))
}

/// Publishes an empty array in a file that is not visible yet, at a free writable position; returns
/// its words and the position after it.
pub fn publish_first_array(
    cells: &Cells,
    name: &str,
    position: u64,
    index_count: u32,
) -> std::result::Result<(ArrayLayout, u64), u32> {
    let preamble = index::preamble(name, position, index_count, 0);
    let (payload, word) = array_document(&preamble, index_count);
    publish::publish_unseen(cells, position, payload, word)?;
    Ok(array_at(position, &preamble, payload))
}

/// Publishes an empty array at a free position of a file in use; returns the position after it.
pub fn publish_array(
    view: &mut View,
    position: u64,
    growth: Growth,
    guard: &DetachedGuard<'_>,
) -> Result<u64> {
    let index_count = view.file().shape.index_count;
    let preamble = index::preamble(index::INDEX, position, index_count, 0);
    let (payload, word) = array_document(&preamble, index_count);
    let end = position + HEADER_LEN + payload.len() + TAIL_ZEROS + HEADER_LEN;
    view.make_writable(position, end, growth, guard)?;
    publish::publish(view.region(), position, payload, word, guard)
        .map_err(|error| not_published(view, position, error, guard))?;
    step!("index.array.publish").made();
    Ok(array_at(position, &preamble, payload).1)
}

/// The error of a failed publish, with its position.
#[must_use]
pub fn not_published(
    view: &View,
    position: u64,
    error: NotPublished,
    guard: &WriteGuard<'_>,
) -> Error {
    match error {
        NotPublished::LockLost(found) => guard.lost(found),
        NotPublished::HeaderTaken(found) => Error::corrupt(
            "header changed under the write lock",
            view.file().path(),
            position,
            format!("{found:#010x}"),
            "0",
        ),
    }
}
