//! Everything that can go wrong below Python, one enum. Texts read `what is wrong: name=value ...`.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use quire_wire::WireError;

/// The result of a kernel operation.
pub type Result<T> = std::result::Result<T, Error>;

/// A lock that could not be taken in time.
#[derive(Clone, Copy, Debug)]
pub struct Locked {
    /// The process that holds it; None for a lock of a file description, which has no process.
    pub holder: Option<u32>,
    /// How long this process waited.
    pub waited: Duration,
}

/// Lets a tailer continue after a loss that it reported. An error does not always reach the caller:
/// one that follows messages of a batch is dropped, and so is one met by a poll for a sleeping
/// reader. The tailer reports the loss again until [`Raised::note`] confirms that the caller has
/// received it.
#[derive(Clone, Debug, Default)]
pub struct Raised {
    tailer: Arc<AtomicI64>,
    expected: i64,
}

impl Raised {
    #[cfg(not(loom))]
    pub(crate) fn new(tailer: &Arc<AtomicI64>, expected: i64) -> Self {
        Self { tailer: Arc::clone(tailer), expected }
    }

    /// Notes that the caller gets the error.
    pub fn note(&self) {
        self.tailer.store(self.expected, Ordering::Relaxed);
    }
}

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // each variant's text says it
pub enum Error {
    #[error("{what}: path={} error={source}", path.display())]
    Io { what: &'static str, path: PathBuf, source: io::Error },
    #[error("the {what} is closed: path={} ({})", path.display(), after_closing(what))]
    Closed { what: &'static str, path: PathBuf },
    #[error("{what} needs a writable queue: path={} read_only=True", path.display())]
    ReadOnly { what: &'static str, path: PathBuf },
    #[error("not a Chronicle Queue 5 queue: {why} path={}", path.display())]
    NotAQueue { why: String, path: PathBuf },
    #[error("not a Quick-Queue: {why} path={}", path.display())]
    NotAQuickQueue { why: String, path: PathBuf },
    #[error("not a Vanilla Chronicle: {why} path={}", path.display())]
    NotAVanillaQueue { why: String, path: PathBuf },
    #[error("not an Indexed Chronicle: {why} path={}", path.display())]
    NotAnIndexedQueue { why: &'static str, path: PathBuf },
    #[error(
        "the file has another name, as by a hard link or cp -al, and writing would change it \
         there, too: path={} names={names} (cp -p FILE NEW && mv NEW FILE makes it the queue's \
         own; quire copy makes backups)", path.display()
    )]
    SecondName { path: PathBuf, names: u64 },
    #[error("{what} path={} (close that appender, or wait for its process to end)", path.display())]
    WriterInUse { what: String, path: PathBuf },
    #[error(
        "a producer died while it wrote a message, which is skipped: producer={producer} \
         index={index:#x} path={} (the next read continues after it)", path.display()
    )]
    ProducerDied { producer: String, index: u64, path: PathBuf },
    #[error("message too large: length={length} limit={limit}")]
    MessageTooLong { length: u64, limit: u64 },
    #[error(
        "the queue's table was {what} while the queue was open: path={} (others may be writing \
         under the lock of another table: close the queue and open it again)", path.display()
    )]
    TableLost { what: &'static str, path: PathBuf },
    #[error(
        "the ring of asynchronous appends was {what} while it was in use: path={} (the last \
         messages may be lost when the processes that have it open end: close the queue, which \
         appends the remaining messages, and open it again)", path.display()
    )]
    RingLost { what: &'static str, path: PathBuf },
    #[error(
        "the queue has another roll cycle: asked={asked} found={found} path={} (omit roll_cycle to \
         open it with its own)", path.display()
    )]
    RollCycleMismatch { asked: String, found: String, path: PathBuf },
    #[error(
        "the cycles may be days or weeks, as all directories begin a week: cycles={cycles} path={} \
         (open the queue with quire.vanilla.open and roll_cycle='DAYS' or 'WEEKS')", path.display()
    )]
    CycleLengthUnknown { cycles: usize, path: PathBuf },
    #[error("not supported: {0}")]
    Unsupported(String),
    #[error(
        "corrupt file: {what} file={} position={position:#x} found={found} expected={expected}",
        file.display()
    )]
    Corrupt { what: &'static str, file: PathBuf, position: u64, found: String, expected: String },
    #[error(
        "cannot read the document at position={position:#x}: found=length {length}, part of it in \
         a hole without disk space, as left by a writer that died on a full disk"
    )]
    Hole { file: PathBuf, position: u64, length: u32 },
    #[error(
        "message too large: length={length} limit={limit} block_bytes={block_bytes} \
         (open the queue with block_bytes of at least four messages)"
    )]
    MessageTooLarge { length: u64, limit: u64, block_bytes: u64 },
    #[error(
        "the queue is encrypted: path={} (open it with key=, or give --key-file)", path.display()
    )]
    Encrypted { path: PathBuf },
    #[error("none of the keys opens the data key of a message: data_key={}", number_text(*number))]
    KeyMissing { number: Option<u32> },
    #[error(
        "the key that encrypts messages has expired: expired={} (open the queue with a newer \
         current key; reading still works)", time_text(*expired_ms)
    )]
    KeyExpired { expired_ms: i64 },
    #[error(
        "a message is encrypted, and the queue had no wrapped keys when it was opened: path={} \
         (restore keys.quire from a copy of the queue, and open it with key=)", path.display()
    )]
    KeysMissing { path: PathBuf },
    #[error(
        "the message is not the one that was written here: index={index:#x} (it was changed, or \
         moved from another place or queue)"
    )]
    NotAuthentic { index: i64 },
    #[error(
        "the message is not encrypted: index={index:#x} (open the queue with allow_plain=True, or \
         give --allow-plain, to read what Java, or a process without the key, appended)"
    )]
    Plain { index: i64 },
    #[error(
        "a message was compressed with a dictionary that is missing or damaged: file={} (restore the \
         file from a copy of the queue)", path.display()
    )]
    DictionaryMissing { path: PathBuf },
    #[error("not enough memory: needed_bytes={0}")]
    OutOfMemory(usize),
    #[error("index out of range: {0}")]
    IndexOutOfRange(String),
    #[error("the document is buffered and gets its index when it closes")]
    IndexNotAvailable,
    #[error(
        "the cycle cannot number another message: cycle={cycle} sequence={sequence} limit={limit}"
    )]
    CycleFull { cycle: i32, sequence: u64, limit: u64 },
    #[error("the cycle is closed by an end-of-file marker: file={} position={position:#x}", file.display())]
    WriteAfterEof { file: PathBuf, position: u64 },
    #[error(
        "the write lock was taken away, nothing was published: expected={expected:#x} found={found:#x}"
    )]
    LockLost { expected: u64, found: u64 },
    #[error(
        "messages were deleted before they were read: tailer={tailer} expected={expected:#x} \
         first={first} path={} (on_missing=\"skip\" continues with the first remaining message)",
        path.display()
    )]
    DataLoss { tailer: String, expected: i64, first: String, path: PathBuf, raised: Raised },
    #[error(
        "the named tailer is in use: tailer={tailer} pid={pid} since={since} path={} ({})",
        path.display(), other_tailer(*pid)
    )]
    TailerInUse { tailer: String, pid: u32, since_s: i64, since: String, path: PathBuf },
    #[error(
        "the side file of the group was removed or replaced, other consumers may get the same \
         messages: group={group} path={} (open the group again)", path.display()
    )]
    GroupLost { group: String, path: PathBuf },
    #[error("{what}: group={group} path={}", path.display())]
    Group { what: String, group: String, path: PathBuf },
    #[error("{0}")]
    Wire(WireError),
    #[error("the handle belongs to the parent process: open the queue again in the child")]
    Forked,
    #[error(
        "the {lock} stayed taken: holder_pid={holder}{} waited_ms={waited_ms} \
         force_unlock={mode}{place}", held_text(*held_ms)
    )]
    LockTimeout {
        lock: &'static str,
        holder: u32,
        /// For how long the holder has held it, if recorded.
        held_ms: Option<u64>,
        waited_ms: u64,
        mode: &'static str,
        /// The holder's pid in this pid namespace, in parentheses, or empty.
        place: String,
    },
    #[error(
        "another process keeps the file locked, as while it creates or extends it: file={} \
         holder_pid={} waited_ms={}",
        file.display(), locked.holder.map_or_else(|| "unknown".to_owned(), |pid| pid.to_string()),
        locked.waited.as_millis()
    )]
    FileLocked { file: PathBuf, locked: Locked },
    #[error("a document is open in this thread: close it before appending again")]
    DocumentOpen,
    #[error(
        "the append lock is held, as by a replication sink: holder_pid={0} (append, and open \
         replicated tailers, at the source)"
    )]
    AppendLocked(u32),
    #[error(
        "the lease of this source is over, and another machine may be the source now: {} path={} \
         (append at the source; quire replicate node renews the lease of the source)",
        over.map_or_else(
            || "the machine was restarted since".to_owned(),
            |over| format!("over_ms={}", over.as_millis())
        ),
        path.display()
    )]
    LeaseExpired { path: PathBuf, over: Option<Duration> },
    #[error(
        "the queue has too many replicas: limit={limit} path={} (quire replicate forget removes one \
         from the in-sync set)", path.display()
    )]
    ReplicasFull { path: PathBuf, limit: u64 },
    #[error("a batch for a replica does not continue it: path={} {reason}", path.display())]
    NotNext { path: PathBuf, reason: String },
    #[error(
        "the ring of asynchronous appends is full: path={} used_bytes={used} \
         capacity_bytes={capacity} waited_ms={waited_ms} (is the drainer stopped? a larger \
         RingOptions(capacity_bytes=...) holds more)",
        path.display()
    )]
    RingFull { path: PathBuf, used: u64, capacity: u64, waited_ms: u64 },
    #[error(
        "the ring of asynchronous appends was not drained in time: path={} messages={pending} \
         waited_ms={waited_ms}",
        path.display()
    )]
    RingNotDrained { path: PathBuf, pending: u64, waited_ms: u64 },
    #[error(
        "the clock is far ahead of the newest cycle: now={now} newest_cycle_ended={newest} \
         limit_s={limit_s} path={} (set the clock right; if the queue was idle that long, open \
         with a larger max_clock_ahead_s)",
        path.display()
    )]
    ClockAhead { now: String, newest: String, limit_s: u64, path: PathBuf },
    #[error("{0}")]
    Invalid(String),
    #[error("interrupted while waiting")]
    Interrupted,
}

impl From<WireError> for Error {
    fn from(fault: WireError) -> Self {
        match fault.lacking() {
            Some(needed) => Self::OutOfMemory(needed),
            None => Self::Wire(fault),
        }
    }
}

/// Advice about the tailer that uses a name.
fn other_tailer(pid: u32) -> &'static str {
    if pid == std::process::id() {
        "this process has it open, perhaps from an earlier run of this code: close() that tailer \
         or its queue, which `with` does by itself; or open this one with shared=True, as Java \
         does"
    } else {
        "close that one, or open this one with shared=True, as Java does"
    }
}

impl Error {
    /// The error number for [`Error::Hole`].
    pub const NO_SPACE: i32 = libc::ENOSPC;

    /// A failed system call while doing `what` to `path`.
    #[must_use]
    pub fn io(what: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Io { what, path: path.to_path_buf(), source }
    }

    /// Whether the cause is the system's, not the file's: a full disk or quota, or no descriptor or
    /// memory left.
    #[must_use]
    pub fn is_of_the_system(&self) -> bool {
        const CODES: [i32; 5] =
            [libc::ENOSPC, libc::EDQUOT, libc::EMFILE, libc::ENFILE, libc::ENOMEM];
        let Self::Io { source, .. } = self else { return false };
        source.raw_os_error().is_some_and(|code| CODES.contains(&code))
    }

    /// The file at `path`, or its directory, no longer exists.
    #[must_use]
    pub fn gone(what: &'static str, path: &Path) -> Self {
        Self::io(what, path, io::Error::from_raw_os_error(libc::ENOENT))
    }

    /// `what`, a handle of the queue at `path`, was closed.
    #[cold]
    #[must_use]
    pub fn closed(what: &'static str, path: &Path) -> Self {
        Self::Closed { what, path: path.to_path_buf() }
    }

    /// Bytes of `file` that break a rule of `docs/format.md`.
    pub fn corrupt(
        what: &'static str,
        file: &Path,
        position: u64,
        found: impl Into<String>,
        expected: impl Into<String>,
    ) -> Self {
        let (found, expected) = (found.into(), expected.into());
        Self::Corrupt { what, file: file.to_path_buf(), position, found, expected }
    }
}

fn number_text(number: Option<u32>) -> String {
    number.map_or_else(|| "none".to_owned(), |number| number.to_string())
}

fn time_text(ms: i64) -> String {
    jiff::Timestamp::from_millisecond(ms).map_or_else(|_| format!("{ms} ms"), |it| it.to_string())
}

fn held_text(held_ms: Option<u64>) -> String {
    held_ms.map_or_else(String::new, |ms| format!(" held_ms={ms}"))
}

/// Advice after a handle was closed.
fn after_closing(what: &str) -> &'static str {
    match what {
        "queue" => "quire.open opens it again",
        "appender" => "queue.appender() returns another one",
        "tailer" => "queue.tailer() returns another one",
        "method reader" => "tailer.method_reader() returns another one",
        _ => "it can be used until its with block ends or close() is called",
    }
}
