//! Finding the first message of a time by recorded append times.

use super::handle::Queue;
use crate::chronicle::format::time_index;
use crate::chronicle::protocol::time_index::{Stored, damaged};
use crate::{Error, Result, warnings};

impl Queue {
    /// A lower bound for the messages of a cycle that had been appended before a time: none of them
    /// is of that time or later. None if its append times are not kept, or damaged.
    pub fn messages_before(&self, cycle: i32, time_ms: i64) -> Result<Option<u64>> {
        let found = self.stored_times(cycle).and_then(|stored| {
            let Some(stored) = stored else { return Ok(None) };
            let found = stored.messages_before(time_ms)?;
            self.check_messages(cycle, stored.messages()?.max(found), 0)?;
            Ok(Some(found))
        });
        none_if_damaged(cycle, found)
    }

    /// When messages were appended, in epoch milliseconds, as far as is known. Ascending indexes of
    /// one cycle need only one pass.
    pub fn append_times(&self, indexes: &[i64]) -> Result<Vec<Option<u64>>> {
        let places: Vec<_> =
            indexes.iter().map(|index| self.roll().split(*index)).collect::<Result<_>>()?;
        let mut times = Vec::with_capacity(places.len());
        for group in places.chunk_by(|(cycle, _), (next, _)| cycle == next) {
            let cycle = group.first().map_or(0, |(cycle, _)| *cycle);
            match none_if_damaged(cycle, self.times_of_cycle(cycle, group))? {
                Some(found) => times.extend(found),
                None => times.extend(group.iter().map(|_| None)),
            }
        }
        Ok(times)
    }

    fn times_of_cycle(
        &self,
        cycle: i32,
        places: &[(i32, u64)],
    ) -> Result<Option<Vec<Option<u64>>>> {
        let Some(stored) = self.stored_times(cycle)? else { return Ok(None) };
        let times = stored.times_of(places.iter().map(|(_, sequence)| *sequence))?;
        self.check_messages(cycle, stored.messages()?, 0)?;
        Ok(Some(times))
    }

    /// An error if the append times of a cycle cover messages that it does not have; `known` are
    /// known to exist.
    pub fn check_times(&self, cycle: i32, known: u64) -> Result<()> {
        match self.stored_times(cycle)? {
            Some(stored) => self.check_messages(cycle, stored.messages()?, known),
            None => Ok(()),
        }
    }

    fn stored_times(&self, cycle: i32) -> Result<Option<Stored>> {
        Stored::open(&time_index::path_for(&self.file_for_cycle(cycle)?), cycle)
    }

    /// Counts the messages after `claimed` was read, as more may be appended at any moment.
    fn check_messages(&self, cycle: i32, claimed: u64, known: u64) -> Result<()> {
        if claimed <= known {
            return Ok(());
        }
        let messages = self.end_of_cycle(cycle)?.map_or(0, |(_, messages, _)| messages);
        if claimed <= messages {
            return Ok(());
        }
        let path = time_index::path_for(&self.file_for_cycle(cycle)?);
        Err(damaged(&path, time_index::HEADER_LEN, claimed, "at most the messages of the cycle"))
    }
}

/// Replaces the error of damaged append times by None.
fn none_if_damaged<T>(cycle: i32, found: Result<Option<T>>) -> Result<Option<T>> {
    match found {
        Err(error @ (Error::Corrupt { .. } | Error::NotAQueue { .. })) => {
            warnings::leave(format!("append times are not used: cycle={cycle} error={error}"));
            Ok(None)
        }
        found => found,
    }
}
