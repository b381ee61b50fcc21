//! The side files of a cycle whose messages were lost.

use std::path::Path;

use super::{append_checksums, time_index};
use crate::Result;

/// Removes side-file entries after the first `messages` messages, since new messages will get those
/// indexes.
pub fn forget_beyond(roll_file: &Path, cycle: i32, messages: u64) -> Result<()> {
    time_index::retire_beyond(roll_file, cycle, messages)?;
    append_checksums::forget_from(roll_file, cycle, messages)
}

/// Removes the side files of a roll file that was deleted, as by hand, and is about to be created
/// again.
pub fn remove_stale(roll_file: &Path, cycle: i32) {
    time_index::remove_stale(roll_file, cycle);
    append_checksums::remove_stale(roll_file);
}
