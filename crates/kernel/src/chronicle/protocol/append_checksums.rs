//! The side file of checksums of a cycle's messages, written by appenders.
//!
//! A writer adds to it after it has published messages and released the write lock, each record by
//! one store. A writer killed before that leaves messages without a record, as Java does; these
//! cannot be checked. A record is of the last message appended under its index, so it may replace
//! the record of a message lost in a power cut.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::side_chunks::{self, CHUNK, Mapped};
use crate::chronicle::format::append_checksums::{
    self, CYCLE_AT, HEADER_LEN, MAGIC, MAGIC_AT, RECORD_LEN, position,
};
use crate::os::files::{self, Access};
use crate::probe::fault;
use crate::{Error, Result, warnings};

const RECORD_BYTES: usize = 8;
const _: () = assert!(RECORD_BYTES as u64 == RECORD_LEN && HEADER_LEN.is_multiple_of(RECORD_LEN));

/// The records of a cycle, for reading.
pub struct Stored {
    path: PathBuf,
    file: File,
    /// The most recently read records, from sequence `first` on.
    read: Vec<u8>,
    first: u64,
}

impl Stored {
    /// Opens the file at `path`; None if it is missing or still being created.
    pub fn open(path: &Path, cycle: i32) -> Result<Option<Self>> {
        let access = Access { write: false, create_mode: None };
        let Some(file) = files::open(path, access)? else { return Ok(None) };
        let stored = Self { path: path.to_path_buf(), file, read: Vec::new(), first: 0 };
        let mut head = [0; 16];
        if stored.read_at(&mut head, MAGIC_AT)? < head.len() {
            return Ok(None);
        }
        let (words, _) = head.as_chunks::<8>();
        match (u64::from_le_bytes(words[0]), u64::from_le_bytes(words[1])) {
            (0, _) | (MAGIC, 0) => Ok(None),
            (MAGIC, word) if Some(word) == cycle_word(cycle) => Ok(Some(stored)),
            (found, _) => {
                let (what, expected) = ("not checksums of appends", "records of this cycle");
                Err(Error::corrupt(what, &stored.path, MAGIC_AT, format!("{found:#x}"), expected))
            }
        }
    }

    /// The current record of a message, read again; 0 if there is none.
    pub fn newest(&mut self, sequence: u64) -> Result<u64> {
        self.read.clear();
        self.record(sequence)
    }

    /// The record of a message; 0 if there is none. Reading records in order seldom needs a system
    /// call.
    pub fn record(&mut self, sequence: u64) -> Result<u64> {
        let is_read = |it: &Self| {
            let at = usize::try_from(sequence.checked_sub(it.first)?).ok()?;
            it.read.as_chunks::<RECORD_BYTES>().0.get(at).copied()
        };
        if let Some(record) = is_read(self) {
            return Ok(u64::from_le_bytes(record));
        }
        let mut read = std::mem::take(&mut self.read);
        read.clear();
        read.resize(usize::try_from(CHUNK).unwrap_or_default(), 0);
        self.read_at(&mut read, position(sequence))?; // zeros after the end: no records
        (self.read, self.first) = (read, sequence);
        Ok(is_read(self).map_or(0, u64::from_le_bytes))
    }

    fn read_at(&self, to: &mut [u8], position: u64) -> Result<usize> {
        let read = fault::call!("window.read", read_fully(&self.file, to, position));
        read.map_err(|e| Error::io("cannot read", &self.path, e))
    }
}

/// Reads until the buffer is full or the file ends.
fn read_fully(file: &File, to: &mut [u8], position: u64) -> io::Result<usize> {
    let mut done = 0;
    while done < to.len() {
        match file.read_at(&mut to[done..], position + done as u64) {
            Ok(0) => break,
            Ok(count) => done += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}

/// The records of a cycle, for appending.
pub struct Records {
    pub cycle: i32,
    mapped: Mapped,
}

impl Records {
    /// Opens the file at `path`, which is created if missing.
    pub fn open(path: &Path, cycle: i32, mode: u32) -> Result<Self> {
        let mapped = Mapped::open(path, mode)?;
        let word = cycle_word(cycle).unwrap_or(MAGIC);
        mapped.words.set_once(CYCLE_AT, word); // other processes may store the same value
        mapped.words.set_once(MAGIC_AT, MAGIC);
        Stored::open(path, cycle)?.ok_or_else(|| Error::gone("removed", path))?;
        Ok(Self { cycle, mapped })
    }

    /// Stores the record of a message; false if that needs a system call.
    #[inline]
    #[must_use]
    pub fn try_put(&self, sequence: u64, record: u64) -> bool {
        let at = position(sequence).wrapping_sub(self.mapped.start);
        if at >= CHUNK {
            return false;
        }
        self.mapped.words.store(at, record);
        true
    }

    /// Stores the record of a message.
    pub fn put(&mut self, sequence: u64, record: u64) -> Result<()> {
        self.mapped.go_to(position(sequence))?;
        let is_stored = self.try_put(sequence, record);
        debug_assert!(is_stored, "the chunk of {sequence} is mapped");
        Ok(())
    }

    /// Removes the file.
    pub fn remove(self) -> Result<()> {
        self.mapped.remove()
    }
}

fn cycle_word(cycle: i32) -> Option<u64> {
    u64::try_from(cycle).ok().map(|cycle| cycle + 1)
}

/// Clears the records from a sequence on: those messages were lost, and new ones will get their
/// indexes.
pub fn forget_from(roll_file: &Path, cycle: i32, messages: u64) -> Result<()> {
    let path = append_checksums::path_for(roll_file);
    match Stored::open(&path, cycle) {
        Ok(Some(_)) => {}
        Ok(None) | Err(Error::NotAQueue { .. } | Error::Corrupt { .. }) => return Ok(()),
        Err(error) => return Err(error),
    }
    let access = Access { write: true, create_mode: None };
    let Some(file) = files::open(&path, access)? else { return Ok(()) };
    // Zeroed, not truncated: another process may have the file mapped.
    files::zero(&file, position(messages))
        .map(drop)
        .map_err(|e| Error::io("cannot write", &path, e))
}

/// Removes the records of a cycle whose roll file was deleted, as by hand, and is about to be
/// created again, since they are of other messages. Failures are ignored, so that the append can go
/// on.
pub fn remove_stale(roll_file: &Path) {
    let path = append_checksums::path_for(roll_file);
    match side_chunks::remove(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => warnings::leave(format!(
            "checksums of a deleted roll file are still there: file={} {error}",
            path.display()
        )),
        _ => {}
    }
}
