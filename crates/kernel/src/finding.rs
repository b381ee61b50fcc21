//! Findings of a check of a queue's files, as values: which rule is broken, where, the value found
//! and the value expected. The texts for people are in Python.

use std::path::{Path, PathBuf};

/// Which rule of a format is broken. The names are public: scripts compare them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A roll file that does not begin with the header of one, or that cannot be read.
    UnreadableFile,
    /// Messages follow a first header that is not ready.
    LostHeader,
    /// A roll file whose creator died before it was ready.
    UnfinishedFile,
    /// A `.cq4` file with a name that no cycle of the queue has.
    WrongName,
    /// Messages are missing; later ones of the file are still reached by the index.
    Gap,
    /// The last messages of the file are missing: nothing after this can be read.
    LostEnd,
    /// A whole message whose header says that it is not complete.
    UnmarkedMessage,
    /// A document that was begun and not completed.
    DeadHeader,
    /// An older file without its end-of-file marker.
    MissingEndMark,
    /// `writePosition` does not point to the last message.
    WritePosition,
    /// The sequence word does not belong to `writePosition`.
    SequenceWord,
    /// A message that is due has no entry.
    IndexHole,
    /// An entry does not point to its message.
    IndexEntry,
    /// There is no index array for messages that are due.
    IndexArray,
    /// `used` of an array, or `lastIndex`, is not what the entries say.
    IndexCount,
    /// A queue without a table.
    NoTable,
    /// A file that is not a table, or an unreadable one.
    UnreadableTable,
    /// An entry of the table that cannot be read, and with it those after it.
    TableEntry,
    /// A key that every queue has is missing.
    TableKey,
    /// A lock that is held by a dead process.
    StaleLock,
    /// The first or last cycle of the listing is not that of the directory.
    Listing,
    /// A named tailer's position is after the end of its queue.
    TailerPosition,
    /// Messages in an encrypted queue, or metadata, that are not encrypted.
    PlainMessages,
    /// A compressed file whose messages a roll file of its cycle hides.
    HiddenMessages,
    /// The table has little room for more names of tailers.
    TableFull,
    /// The examination of the files after a restart was not completed.
    Restart,
    /// Messages wait in the ring of asynchronous appends.
    PendingRing,
    /// The ring cannot be read.
    UnreadableRing,
    /// A live process holds the write lock: words that it may be changing were not checked.
    LockHeld,
    /// Vanilla Chronicle: an entry that points to no record.
    EntryWithoutRecord,
    /// Vanilla Chronicle: two entries point to the same record.
    RepeatedEntry,
    /// Vanilla Chronicle: a record that no entry points to.
    RecordWithoutEntry,
    /// Vanilla Chronicle: free entries before taken ones.
    FreeEntries,
    /// Quick-Queue: a page that is missing, or has another length.
    Page,
    /// Quick-Queue: an entry that points to no message.
    Entry,
    /// Quick-Queue: an entry that a dead producer did not complete.
    PendingEntry,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 36] = [
        Self::UnreadableFile,
        Self::LostHeader,
        Self::UnfinishedFile,
        Self::WrongName,
        Self::Gap,
        Self::LostEnd,
        Self::UnmarkedMessage,
        Self::DeadHeader,
        Self::MissingEndMark,
        Self::WritePosition,
        Self::SequenceWord,
        Self::IndexHole,
        Self::IndexEntry,
        Self::IndexArray,
        Self::IndexCount,
        Self::NoTable,
        Self::UnreadableTable,
        Self::TableEntry,
        Self::TableKey,
        Self::StaleLock,
        Self::Listing,
        Self::TailerPosition,
        Self::PlainMessages,
        Self::HiddenMessages,
        Self::TableFull,
        Self::Restart,
        Self::PendingRing,
        Self::UnreadableRing,
        Self::LockHeld,
        Self::EntryWithoutRecord,
        Self::RepeatedEntry,
        Self::RecordWithoutEntry,
        Self::FreeEntries,
        Self::Page,
        Self::Entry,
        Self::PendingEntry,
    ];

    /// Its public name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::UnreadableFile => "unreadable-file",
            Self::LostHeader => "lost-header",
            Self::UnfinishedFile => "unfinished-file",
            Self::WrongName => "wrong-name",
            Self::Gap => "gap",
            Self::LostEnd => "lost-end",
            Self::UnmarkedMessage => "unmarked-message",
            Self::DeadHeader => "dead-header",
            Self::MissingEndMark => "missing-end-mark",
            Self::WritePosition => "write-position",
            Self::SequenceWord => "sequence-word",
            Self::IndexHole => "index-hole",
            Self::IndexEntry => "index-entry",
            Self::IndexArray => "index-array",
            Self::IndexCount => "index-count",
            Self::NoTable => "no-table",
            Self::UnreadableTable => "unreadable-table",
            Self::TableEntry => "table-entry",
            Self::TableKey => "table-key",
            Self::StaleLock => "stale-lock",
            Self::Listing => "listing",
            Self::TailerPosition => "tailer-position",
            Self::PlainMessages => "plain-messages",
            Self::HiddenMessages => "hidden-messages",
            Self::TableFull => "table-full",
            Self::Restart => "restart",
            Self::PendingRing => "pending-ring",
            Self::UnreadableRing => "unreadable-ring",
            Self::LockHeld => "lock-held",
            Self::EntryWithoutRecord => "entry-without-record",
            Self::RepeatedEntry => "repeated-entry",
            Self::RecordWithoutEntry => "record-without-entry",
            Self::FreeEntries => "free-entries",
            Self::Page => "page",
            Self::Entry => "entry",
            Self::PendingEntry => "pending-entry",
        }
    }
}

/// Something that breaks a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The rule.
    pub kind: Kind,
    /// The file, or its directory if the file is missing.
    pub file: PathBuf,
    /// Position in the file, if there is one.
    pub position: Option<u64>,
    /// The value found.
    pub found: String,
    /// The expected value.
    pub expected: String,
}

impl Finding {
    /// A finding at a position of a file.
    #[must_use]
    pub fn at(
        kind: Kind,
        file: &Path,
        position: u64,
        found: impl Into<String>,
        expected: impl Into<String>,
    ) -> Self {
        Self { position: Some(position), ..Self::of(kind, file, found, expected) }
    }

    /// A finding about a file as a whole.
    #[must_use]
    pub fn of(
        kind: Kind,
        file: &Path,
        found: impl Into<String>,
        expected: impl Into<String>,
    ) -> Self {
        let (found, expected) = (found.into(), expected.into());
        Self { kind, file: file.to_path_buf(), position: None, found, expected }
    }
}

/// The extent of a check, and its findings.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// In the order of the files.
    pub findings: Vec<Finding>,
    /// Files that were examined.
    pub files: u64,
    /// Messages in them.
    pub messages: u64,
    /// Bytes of documents in them.
    pub bytes: u64,
}
