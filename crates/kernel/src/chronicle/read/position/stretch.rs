//! Runs of consecutive messages, for batches: what holds for all of a run is checked once.

use super::{Cursor, Direction, State};
use crate::Result;
use crate::chronicle::format::table::NO_INDEX;
use crate::chronicle::protocol::roll_file::Slot;
use crate::chronicle::queue::handle::Queue;
use crate::chronicle::read::scan::Take;

/// The result of taking consecutive messages.
pub struct Stretch {
    /// How many were taken.
    pub taken: usize,
    /// The index of the last one taken.
    pub last: i64,
    /// What `take` returned for the last message: [`Take::This`] if a regular step must find the
    /// next.
    pub became: Result<Take>,
}

impl Default for Stretch {
    fn default() -> Self {
        Self { taken: 0, last: NO_INDEX, became: Ok(Take::This) }
    }
}

impl Cursor {
    /// Calls `take` with up to `count` messages, as stored, and steps over those that are taken.
    /// Ends before the first one that needs more than checking a header, or for which `take`
    /// returns None.
    #[inline]
    pub fn take_stretch(
        &mut self,
        queue: &Queue,
        count: usize,
        mut take: impl FnMut(i64, &[u8]) -> Result<Option<Take>>,
    ) -> Stretch {
        let goes_on = self.state == State::FoundInCycle && self.direction == Direction::Forward;
        let (Some(view), Ok(first)) = (self.view.as_ref(), self.index(queue)) else {
            return Stretch::default();
        };
        if !goes_on || self.takes_more {
            return Stretch::default();
        }
        let numbers = queue.roll().sequence_mask() - self.sequence;
        let end = first + numbers.min(count as u64).cast_signed();
        let (mut index, mut position) = (first, self.position);
        let became = loop {
            if index == end {
                break Ok(Take::This);
            }
            let Some(Slot::Document(document)) = view.try_slot(position) else {
                break Ok(Take::This);
            };
            if document.is_metadata {
                break Ok(Take::This);
            }
            let became = match take(index, view.payload(&document)) {
                Ok(Some(Take::NotThis)) => break Ok(Take::NotThis),
                Ok(Some(became)) => became,
                Ok(None) => break Ok(Take::This),
                Err(error) => break Err(error),
            };
            (index, position) = (index + 1, document.next);
            if became == Take::Last {
                break Ok(Take::Last);
            }
        };
        let taken = index - first;
        self.sequence += taken.cast_unsigned();
        self.position = position;
        let taken = usize::try_from(taken).unwrap_or_default();
        Stretch { taken, last: index - 1, became }
    }
}
