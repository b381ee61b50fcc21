//! A tailer's place in the cycle being read.

use std::sync::Arc;

use super::message::Message;
use super::protocol::cycle_reader::{CycleReader, Payload};
use super::queue::{VanillaQueue, first_of};
use crate::chronicle::read::missing::OnMissing;
use crate::error::Raised;
use crate::{Error, Result, warnings};

/// The result of offering the next message of a cycle.
pub enum Passed {
    /// The cycle has no further message yet.
    Nothing,
    /// The message was not wanted.
    Refused,
    /// The message has this index.
    Taken(i64),
}

/// The place of the next message of a cycle.
pub struct Place {
    /// The cycle.
    pub reader: CycleReader,
    /// The sequence number of the message.
    pub sequence: u64,
}

impl Place {
    /// The next message of the cycle.
    #[inline]
    pub fn next(&mut self, queue: &VanillaQueue) -> Result<Option<Message>> {
        let entry = self.reader.entry(self.sequence)?;
        if entry == 0 {
            return Ok(None);
        }
        let cycle = self.reader.cycle();
        let index = queue.index_of(cycle, self.sequence)?;
        let Payload { region, at, length } = self.reader.payload(self.sequence, entry)?;
        Ok(Some(Message { index, cycle, at, region: Arc::clone(region), length }))
    }

    /// Calls `each` with a copy of the next message of the cycle; returns its index if `each` took
    /// it.
    #[inline]
    pub fn pass(
        &mut self,
        queue: &VanillaQueue,
        each: &mut impl FnMut(i64, &[u8]) -> bool,
    ) -> Result<Passed> {
        let entry = self.reader.entry(self.sequence)?;
        if entry == 0 {
            return Ok(Passed::Nothing);
        }
        let index = queue.index_of(self.reader.cycle(), self.sequence)?;
        if !each(index, self.reader.bytes(self.sequence, entry)?) {
            return Ok(Passed::Refused);
        }
        self.sequence += 1;
        Ok(Passed::Taken(index))
    }

    /// Makes the message at this place the next one to read backward.
    pub fn turn_back(&mut self) -> Result<()> {
        self.sequence += u64::from(self.reader.entry(self.sequence)? != 0);
        Ok(())
    }
}

/// A cycle after `from` that has a message.
pub fn next_place(queue: &VanillaQueue, from: i32) -> Result<Option<Place>> {
    let mut from = from;
    while let Some(cycle) = queue.listing().after(from)? {
        if let Some(mut reader) = queue.reader(cycle)?
            && let Some(sequence) = first_of(&mut reader)?
        {
            return Ok(Some(Place { reader, sequence }));
        }
        from = cycle;
    }
    Ok(None)
}

/// The place of an index; None while its cycle has no directory.
pub fn place_at(queue: &VanillaQueue, index: i64) -> Result<Option<Place>> {
    let Some((cycle, sequence)) = queue.split().split(index) else { return Ok(None) };
    Ok(queue.reader(cycle)?.map(|reader| Place { reader, sequence }))
}

/// Whether a place is the end of its cycle.
pub fn end_is(place: &mut Place) -> Result<bool> {
    let before = place.sequence.checked_sub(1);
    before.map_or(Ok(true), |before| Ok(place.reader.entry(before)? != 0))
}

/// Where a named tailer continues if its cycle was deleted.
pub fn place_after_loss(
    queue: &VanillaQueue,
    name: &str,
    expected: i64,
    on_missing: OnMissing,
) -> Result<Option<Place>> {
    let Some((cycle, _)) = queue.split().split(expected) else { return Ok(None) };
    let place = next_place(queue, cycle)?;
    let first = match &place {
        Some(place) => format!("{:#x}", queue.index_of(place.reader.cycle(), place.sequence)?),
        None => "none".to_owned(),
    };
    let (tailer, path) = (name.to_owned(), queue.path().to_path_buf());
    let loss = Error::DataLoss { tailer, expected, first, path, raised: Raised::default() };
    match on_missing {
        OnMissing::Raise => return Err(loss),
        OnMissing::Warn => warnings::leave_loss(&loss),
        OnMissing::Skip => {}
    }
    Ok(place)
}
