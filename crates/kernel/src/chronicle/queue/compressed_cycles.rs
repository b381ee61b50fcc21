//! Cycles whose files were compressed: read like others, but never written.

use std::path::PathBuf;

use super::handle::Queue;
use crate::chronicle::protocol::compressed::{self, Summary};
use crate::chronicle::protocol::listing;
use crate::os::interrupt::Signals;
use crate::{Error, Result};

impl Queue {
    /// The summary of a compressed cycle, so that counting messages needs no decompression; None if
    /// the cycle is not compressed, or its file was made by the `zstd` command.
    pub(super) fn summary_of(&self, cycle: i32) -> Result<Option<Summary>> {
        if self.open_file(cycle).is_some() || !self.is_compressed(cycle) {
            return Ok(None);
        }
        compressed::summary(&compressed::path_for(&self.file_for_cycle(cycle)?))
    }

    /// An error if a new roll file would hide a compressed one.
    pub(super) fn check_not_compressed(&self, cycle: i32) -> Result<()> {
        if !self.is_compressed(cycle) {
            return Ok(());
        }
        let file = compressed::path_for(&self.file_for_cycle(cycle)?);
        Err(Error::WriteAfterEof { file, position: 0 })
    }

    /// The path of a cycle's file, which is the compressed one if that is the only one.
    pub fn place_of_cycle(&self, cycle: i32) -> Result<PathBuf> {
        let path = self.file_for_cycle(cycle)?;
        Ok(if self.is_compressed(cycle) { compressed::path_for(&path) } else { path })
    }

    /// Whether a cycle is compressed: finished, and read-only.
    #[must_use]
    pub fn is_compressed(&self, cycle: i32) -> bool {
        listing::is_compressed(self.names(), cycle)
    }

    /// Notes in the table that a cycle is about to be compressed.
    pub fn announce_compression(&self, cycle: i32, signals: Signals<'_>) -> Result<()> {
        let table = self.writable_table("a compression of files")?;
        listing::announce_compression(table, cycle, signals)
    }
}
