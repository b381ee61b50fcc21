//! A consistent copy of a queue in use: files up to an end, before which only the content of
//! messages may change, and bytes that complete unfinished writes.

use std::path::PathBuf;

/// The content of a queue at one moment.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// How many messages.
    pub messages: u64,
    /// The index of the last one.
    pub last_index: Option<u64>,
    /// The files, by their paths below the queue's directory.
    pub files: Vec<File>,
    /// Bytes that differ in the copy.
    pub patches: Vec<Patch>,
}

/// A file of a queue.
#[derive(Clone, Debug)]
pub struct File {
    /// Its path below the queue's directory.
    pub name: PathBuf,
    /// The number of bytes to copy; later bytes are 0 in the copy.
    pub used: u64,
    /// Its length.
    pub length: u64,
}

/// Bytes of a file that differ from the source's.
#[derive(Clone, Debug)]
pub struct Patch {
    /// The file's path below the queue's directory.
    pub name: PathBuf,
    /// Position of the first one.
    pub position: u64,
    /// The copy's bytes.
    pub bytes: Vec<u8>,
}
