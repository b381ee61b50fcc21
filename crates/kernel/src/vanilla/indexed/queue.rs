use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use super::reader::{Entry, Reader};
use crate::os::{paths, process};
use crate::{Error, Result};

/// The files `NAME.index` and `NAME.data`.
pub struct IndexedQueue {
    base: PathBuf,
    is_closed: AtomicBool,
    generation: u32,
}

impl IndexedQueue {
    /// Opens the files that `path` names: NAME, or one of the two.
    pub fn open(path: &Path) -> Result<Self> {
        paths::check_local(path)?;
        let path = std::path::absolute(path).map_err(|e| Error::io("cannot open", path, e))?;
        let base = base_of(path)?;
        Ok(Self { base, is_closed: AtomicBool::new(false), generation: process::generation() })
    }

    /// The path of the files without `.index` and `.data`.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.base
    }

    pub(super) fn reader(&self) -> Result<Reader> {
        Reader::open(&self.base)?.ok_or_else(|| missing(self.base.clone()))
    }

    /// Closes the queue and its tailers.
    pub fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
    }

    /// Whether the queue was closed.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }

    /// An error if `what`, the queue or one of its tailers, can no longer be used.
    #[inline]
    pub fn check_open(&self, what: &'static str) -> Result<()> {
        if self.generation != process::generation() {
            return Err(Error::Forked);
        }
        if self.is_closed() { Err(Error::closed(what, &self.base)) } else { Ok(()) }
    }

    /// The number of index entries, paddings included.
    pub fn entry_count(&self) -> Result<u64> {
        self.reader()?.end()
    }

    /// The index of the first message.
    pub fn first_index(&self) -> Result<Option<i64>> {
        let mut reader = self.reader()?;
        let mut sequence = 0;
        loop {
            match reader.entry(sequence)? {
                Entry::Message(message) => return Ok(Some(message.index)),
                Entry::Padding => sequence += 1,
                Entry::Free => match reader.taken_after(sequence)? {
                    Some(taken) => sequence = taken,
                    None => return Ok(None),
                },
            }
        }
    }

    /// The index of the last message.
    pub fn last_index(&self) -> Result<Option<i64>> {
        let mut reader = self.reader()?;
        let mut end = reader.end()?;
        while let Some(sequence) = end.checked_sub(1) {
            if let Entry::Message(message) = reader.entry(sequence)? {
                return Ok(Some(message.index));
            }
            end = sequence;
        }
        Ok(None)
    }

    /// How many messages there are from one sequence number to before another.
    pub fn count_between(&self, from: u64, to: u64) -> Result<u64> {
        let mut reader = self.reader()?;
        let mut count = 0;
        for sequence in from..to {
            count += u64::from(reader.is_message(sequence)?);
        }
        Ok(count)
    }
}

/// NAME of a path that is NAME, `NAME.index` or `NAME.data`.
fn base_of(path: PathBuf) -> Result<PathBuf> {
    if Reader::open(&path)?.is_some() {
        return Ok(path);
    }
    let base = path.with_extension("");
    let is_file = path.extension().is_some_and(|suffix| suffix == "index" || suffix == "data");
    if is_file && Reader::open(&base)?.is_some() { Ok(base) } else { Err(missing(path)) }
}

fn missing(path: PathBuf) -> Error {
    Error::NotAnIndexedQueue { why: "NAME.index or NAME.data is missing", path }
}
