//! The two-level index, written by appenders (`docs/protocol.md`, "Index"). The caller holds the
//! write lock and has just published message `sequence` at `position`.
//!
//! 1. raise `writePosition`; 2. store the sequence word;
//! 3. if the message is due: find the array of its slot, or publish a new one behind the last
//!    document and CAS it into `index2index`;
//! 4. store the slot, raise `used`, raise `lastIndex`.
//!
//! A crash in between leaves a message without a slot: searches walk over it. An array that was
//! published and not linked is a metadata document nobody looks at.

use super::hints;
use super::publish::{self, NotPublished, Payload};
use super::roll_file::View;
use crate::chronicle::format::document::{self, HEADER_LEN, TAIL_ZEROS};
use crate::chronicle::format::index::{self, ArrayLayout};
use crate::memory::Cells;
use crate::probe::fault;
use crate::{Error, Result};

/// The words of an open file that appends change, at their positions in the mapping.
pub struct IndexWriter {
    upper: Option<ArrayLayout>,
    lower: Option<(u64, ArrayLayout)>,
    /// The lower array that is known to be writable.
    writable: Option<u64>,
}

impl IndexWriter {
    /// Finds the upper array of `view`'s file.
    pub fn new(view: &mut View) -> Result<Self> {
        let position = view.word(view.file().layout.index2index)?;
        Ok(Self { upper: view.array(position)?, lower: None, writable: None })
    }

    /// Steps 1 and 2.
    #[inline]
    pub fn record(view: &View, position: u64, sequence: u64) {
        let file = view.file();
        hints::record(view.region(), &file.layout, file.shape, position, sequence);
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

    /// Makes the arrays that a message's slot needs writable; returns the room behind the message
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

    /// Steps 3 and 4 for a message that is due. `free` is the position behind the last document;
    /// returns it as it is afterwards.
    pub fn index(
        &mut self,
        view: &mut View,
        position: u64,
        sequence: u64,
        free: u64,
        lock: impl Fn() -> std::result::Result<(), u64>,
    ) -> Result<u64> {
        let Some(upper) = self.upper else { return Ok(free) };
        let shape = view.file().shape;
        let (array, free) = match self.lower_array(view, sequence)? {
            Some(array) => (array, free),
            None => self.add_lower(view, upper, sequence, free, lock)?,
        };
        hints::store_slot(view.region(), &view.file().layout, shape, &array, position, sequence);
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
        lock: impl Fn() -> std::result::Result<(), u64>,
    ) -> Result<(ArrayLayout, u64)> {
        let index_count = view.file().shape.index_count;
        let number = view.file().shape.upper_slot(sequence);
        let cells = view.region();
        let (array, next) = publish_array(cells, index::INDEX, free, index_count, 0, lock)
            .map_err(|error| not_published(view, free, error))?;
        fault::point!("index.array.publish");
        // A slot that holds something unusable is replaced: the array it should name is lost.
        let found = cells.load_acquire(upper.slot(number));
        let _ = cells.swap_acq_rel(upper.slot(number), found, free);
        fault::point!("index.link.cas");
        cells.raise_acq_rel(upper.used, (number + 1).cast_signed());
        fault::point!("index.upper-used.cas");
        self.lower = Some((number, array));
        self.writable = Some(number);
        Ok((array, next))
    }
}

/// Publishes an empty array at a free position that is writable; returns its words and the position
/// behind it.
pub fn publish_array(
    cells: &Cells,
    name: &str,
    position: u64,
    index_count: u32,
    used: u64,
    lock: impl Fn() -> std::result::Result<(), u64>,
) -> std::result::Result<(ArrayLayout, u64), NotPublished> {
    let preamble = index::preamble(name, position, index_count, used);
    let payload = Payload { head: &[], body: &preamble, zeros: index::slots_len(index_count) };
    // At most 2^20 slots of eight bytes: far below the length a header can hold.
    let length = u32::try_from(payload.len()).unwrap_or(document::LENGTH_MASK);
    publish::publish(cells, position, payload, document::word(length, true), lock)?;
    let slots = position + HEADER_LEN + preamble.len() as u64;
    let array = ArrayLayout { used: slots - 8, slots };
    Ok((array, document::next(position, length, true)))
}

/// A publish that failed, as an error with its place.
#[must_use]
pub fn not_published(view: &View, position: u64, error: NotPublished) -> Error {
    match error {
        NotPublished::LockLost(found) => {
            Error::LockLost { expected: u64::from(crate::os::process::pid()), found }
        }
        NotPublished::HeaderTaken(found) => Error::corrupt(
            "header changed under the write lock",
            view.file().path(),
            position,
            format!("{found:#010x}"),
            "0",
        ),
    }
}
