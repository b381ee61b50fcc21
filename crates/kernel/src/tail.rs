//! The end of the file being appended to, as far as one appender knows (`docs/protocol.md`,
//! "Append", steps 5 to 9). The caller holds the write lock.

use crate::format::blocks;
use crate::format::document::{self, HEADER_LEN, NOT_INITIALIZED, TAIL_ZEROS};
use crate::memory::process;
use crate::protocol::indexing::{self, IndexWriter};
use crate::protocol::locate;
use crate::protocol::publish::{self, Payload};
use crate::protocol::roll_file::{Slot, View};
use crate::protocol::table_store::TableStore;
use crate::{Error, Result, fault, notice};

/// The file being appended to, and where its documents end as far as this appender knows.
pub struct Tail {
    pub view: View,
    index: IndexWriter,
    /// `writePosition` when the two below were true.
    write_position: u64,
    /// The first 0 header.
    free: u64,
    /// The sequence the next message gets.
    pub sequence: u64,
    /// Positions up to here are writable.
    writable_to: u64,
    /// The block that the last document started in: the file is long enough for it.
    block_number: u64,
}

impl Tail {
    pub const fn new(view: View, index: IndexWriter) -> Self {
        Self {
            view,
            index,
            write_position: u64::MAX,
            free: 0,
            sequence: 0,
            writable_to: 0,
            block_number: 0,
        }
    }

    /// Whether one more message can be published with no step that waits or calls the system.
    #[inline]
    pub fn is_ready_for(&self, cycle: i32, length: u64, block: u64) -> bool {
        let file = self.view.file();
        let cells = self.view.region();
        file.cycle == cycle
            && self.free + room(length) <= self.writable_to
            && self.free / block == self.block_number
            && length <= blocks::overlap(block)
            && self.sequence < file.shape.max_messages()
            && cells.load_acquire(file.layout.write_position) == self.write_position
            && cells.load_header_acquire(self.free) == NOT_INITIALIZED
            && !file.shape.is_indexed(self.sequence)
    }

    /// Steps 5 and 6.
    pub fn catch_up(&mut self) -> Result<()> {
        let file = self.view.file();
        let write_position = self.view.region().load_acquire(file.layout.write_position);
        if write_position != self.write_position || self.free == 0 {
            let end = locate::end(&mut self.view)?;
            (self.write_position, self.free) = (write_position, end.position);
            self.sequence = end.next_sequence();
        }
        loop {
            match self.view.slot(self.free)? {
                Slot::Waiting(NOT_INITIALIZED) => return Ok(()),
                Slot::Waiting(found) => return self.clear_abandoned(found),
                Slot::EndOfData => {
                    let file = self.view.path();
                    return Err(Error::WriteAfterEof { file, position: self.free });
                }
                // Published by a writer that died before it raised the write position.
                Slot::Document(document) => {
                    self.sequence += u64::from(!document.is_metadata);
                    self.free = document.next;
                }
            }
        }
    }

    /// Clears a header that a dead or foreign writer left incomplete.
    fn clear_abandoned(&self, found: u32) -> Result<()> {
        let (file, position) = (self.view.file(), self.free);
        notice::leave(format!(
            "an unfinished document is written over: file={} position={position:#x} \
             header={found:#010x}",
            file.path().display()
        ));
        self.view.region().publish_header(position, found, NOT_INITIALIZED).map_err(|found| {
            let found = format!("{found:#010x}");
            Error::corrupt("header changed under the write lock", file.path(), position, found, "0")
        })?;
        fault::point!("append.abandoned.cas");
        Ok(())
    }

    pub fn check_sequence(&self, metadata: bool) -> Result<()> {
        let (cycle, limit) = (self.view.file().cycle, self.view.file().shape.max_messages());
        if metadata || self.sequence < limit {
            return Ok(());
        }
        Err(Error::CycleFull { cycle, sequence: self.sequence, limit })
    }

    /// Step 7: room for the message, for the index array it may need, and for a next header.
    pub fn make_room(&mut self, length: u64, metadata: bool, block: u64) -> Result<()> {
        let mut end = self.free + room(length);
        if !metadata && IndexWriter::is_due(&self.view, self.sequence) {
            end += self.index.make_room(&mut self.view, self.sequence)?;
        }
        if end > self.writable_to || self.free / block != self.block_number {
            self.writable_to = self.view.make_writable(self.free, end, block)?;
            self.block_number = self.free / block;
        }
        Ok(())
    }

    /// Steps 8 and 9.
    #[inline]
    pub fn publish(
        &mut self,
        table: &TableStore,
        payload: Payload<'_>,
        metadata: bool,
    ) -> Result<()> {
        let (position, lock, pid) = (self.free, table.write_lock().word, process::pid());
        let still_held = || lock.still_held(pid);
        // The length was bounded by the overlap and the header's bits.
        #[allow(clippy::cast_possible_truncation)]
        let length = payload.len() as u32;
        let word = document::word(length, metadata);
        publish::publish(self.view.region(), position, payload, word, still_held)
            .map_err(|error| indexing::not_published(&self.view, position, error))?;
        self.free = document::next(position, length, true);
        if metadata {
            return Ok(());
        }
        let sequence = self.sequence;
        self.sequence += 1;
        IndexWriter::record(&self.view, position, sequence);
        self.write_position = position;
        if IndexWriter::is_due(&self.view, sequence) {
            match self.index.index(&mut self.view, position, sequence, self.free, still_held) {
                Ok(free) => self.free = free,
                Err(error) => self.leave_unindexed(sequence, &error),
            }
        }
        Ok(())
    }

    /// The message is visible and stays: a slot that is missing only makes searches longer.
    #[cold]
    fn leave_unindexed(&mut self, sequence: u64, error: &Error) {
        self.write_position = u64::MAX;
        notice::leave(format!(
            "a message stays without index entry: file={} sequence={sequence} reason={error}",
            self.view.file().path().display()
        ));
    }
}

/// Bytes a message of this length takes, with the zeros behind it and the next header.
#[inline]
const fn room(length: u64) -> u64 {
    HEADER_LEN + length + TAIL_ZEROS + HEADER_LEN + document::ALIGNMENT
}
