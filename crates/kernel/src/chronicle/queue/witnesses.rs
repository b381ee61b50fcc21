//! Evidence that a roll file without a header had messages: a tailer's position, how far the queue
//! was synced or replicated, and its append times.
//!
//! The creator of a file publishes its header before anyone appends. A file without a header may
//! therefore never have been finished, unless there is such evidence.

use super::handle::Queue;
use crate::chronicle::format::{table, time_index};
use crate::chronicle::protocol::roll_file;
use crate::chronicle::protocol::time_index::Stored;
use crate::{Error, Result};

/// Words of the table that hold the index of a message.
const WORDS: [&str; 3] = [table::LAST_SYNCED, table::LAST_REPLICATED, table::LAST_ACKNOWLEDGED];

impl Queue {
    /// An error if a cycle's file exists and is not ready although it had messages.
    pub fn check_held_none(&self, cycle: i32) -> Result<()> {
        if !self.is_unready(cycle)? {
            return Ok(());
        }
        let Some(witness) = self.witness_of(cycle)? else { return Ok(()) };
        // Another process may have finished the file meanwhile, and the evidence be about that one.
        if !self.is_unready(cycle)? {
            return Ok(());
        }
        let path = self.file_for_cycle(cycle)?;
        let found = roll_file::first_bytes(&path).unwrap_or_else(|error| error.to_string());
        let expected =
            format!("messages, as {witness} shows (quire salvage brings those of the other files)");
        let what = "a roll file was emptied, or its beginning was lost";
        Err(Error::corrupt(what, &path, 0, found, expected))
    }

    /// Evidence that a cycle had messages, if any.
    fn witness_of(&self, cycle: i32) -> Result<Option<String>> {
        let entries = self.table_entries()?;
        let is_word = |key: &str| WORDS.iter().any(|word| word.eq_ignore_ascii_case(key));
        let word = entries.iter().find(|(key, index)| is_word(key) && self.is_in(*index, cycle));
        if let Some((key, index)) = word {
            return Ok(Some(format!("{key}={index:#x}")));
        }
        let tailers = table::named_tailers(&entries);
        let mut tailers = tailers.into_iter();
        // A tailer's index is that of the next message: the messages before it were read.
        let tailer = tailers.find(|(_, next)| self.is_in(next.saturating_sub(1), cycle));
        if let Some((name, next)) = tailer {
            return Ok(Some(format!("index={next:#x} of the tailer {name}")));
        }
        let path = time_index::path_for(&self.file_for_cycle(cycle)?);
        let stored = Stored::open(&path, cycle);
        let messages = stored.and_then(|stored| stored.map_or(Ok(0), |it| it.messages()));
        Ok(match messages {
            Ok(messages) if messages > 0 => {
                Some(format!("messages={messages} in {}", path.display()))
            }
            _ => None,
        })
    }

    /// Whether an index belongs to a message of a cycle.
    fn is_in(&self, index: i64, cycle: i32) -> bool {
        let last = self.roll().sequence_mask();
        self.roll().split(index).is_ok_and(|(found, sequence)| found == cycle && sequence < last)
    }
}
