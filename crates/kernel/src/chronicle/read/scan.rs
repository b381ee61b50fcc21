//! Progress of a read, in one step or several.

use std::time::Instant;

use crate::os::detached::Detached;

/// The result of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scan<T> {
    /// This was found.
    Found(T),
    /// There is nothing yet.
    Nothing,
    /// Finding out needs a system call or a wait, which [`How::Try`] excludes.
    WouldWait,
    /// It is not finished: the same call continues from here.
    Paused,
    /// There are later messages, but whether reading continues with them will be known only at this
    /// instant, as when a file lacks its end-of-file marker: repeat the call then.
    Held(Instant),
}

impl<T> Scan<T> {
    /// The same result with `make` applied to the found value.
    #[inline]
    pub(super) fn map<U>(self, make: impl FnOnce(T) -> U) -> Scan<U> {
        match self.or_end() {
            Ok(found) => Scan::Found(make(found)),
            Err(end) => end,
        }
    }

    /// The found value, or the same result for another type.
    #[inline]
    pub(super) fn or_end<U>(self) -> Result<T, Scan<U>> {
        Err(match self {
            Self::Found(found) => return Ok(found),
            Self::Nothing => Scan::Nothing,
            Self::WouldWait => Scan::WouldWait,
            Self::Paused => Scan::Paused,
            Self::Held(then) => Scan::Held(then),
        })
    }
}

/// How far a step may go.
#[derive(Clone, Copy, Debug)]
pub enum How<'a> {
    /// Neither waits nor makes system calls.
    Try,
    /// May open files and wait for locks, but never waits for a message.
    Wait(&'a Detached),
}

/// Whether previously received messages count as processed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    /// The first step of a call: they count as processed.
    First,
    /// A further step of the same batch.
    OfBatch,
}

/// The request of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct What {
    /// Whether previously received messages count as processed.
    pub ask: Ask,
    /// Whether to include metadata documents.
    pub include_metadata: bool,
    /// Whether not to step over it, so that the next step finds it again.
    pub stays: bool,
    /// Whether to return it as stored, encrypted if messages are.
    pub stored: bool,
}

impl What {
    /// The next message.
    #[must_use]
    pub const fn message(ask: Ask) -> Self {
        Self::document(ask, false)
    }

    /// The next document.
    #[must_use]
    pub const fn document(ask: Ask, include_metadata: bool) -> Self {
        Self { ask, include_metadata, stays: false, stored: false }
    }

    /// The same, as stored.
    #[must_use]
    pub const fn as_stored(self) -> Self {
        Self { stored: true, ..self }
    }

    /// The same, not stepped over.
    #[must_use]
    pub const fn staying(self) -> Self {
        Self { stays: true, ..self }
    }
}

/// What to do with a message of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Take {
    /// It is taken.
    This,
    /// It is taken, and it is the last one wanted.
    Last,
    /// It is not stepped over, and the batch ends.
    NotThis,
}
