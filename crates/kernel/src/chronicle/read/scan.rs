//! Progress of a read, in one step or several.

use std::time::Instant;

use crate::os::detached::Detached;

/// How far a read got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scan<T> {
    /// This was found.
    Found(T),
    /// There is nothing yet.
    Nothing,
    /// To find out takes a system call, or a wait, which [`How::Try`] does not do.
    WouldWait,
    /// It is not finished: the same call continues from here.
    Paused,
    /// There are later messages, and only at this instant will it be known whether reading continues
    /// with them, as when a file lacks its end-of-file marker: repeat the call then.
    Held(Instant),
}

impl<T> Scan<T> {
    /// The same with what `make` makes of what was found.
    #[inline]
    pub(super) fn map<U>(self, make: impl FnOnce(T) -> U) -> Scan<U> {
        match self.or_end() {
            Ok(found) => Scan::Found(make(found)),
            Err(end) => end,
        }
    }

    /// What was found, or the end of a read of anything else.
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
    /// It neither waits nor calls the system.
    Try,
    /// It opens files, and waits for locks; it never waits for a message.
    Wait(&'a Detached),
}

/// Whether what was received before is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    /// The first step of a call: it is.
    First,
    /// A further step of the same batch.
    OfBatch,
}

/// What a step asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct What {
    /// Whether what was received before is done.
    pub ask: Ask,
    /// Metadata documents, too.
    pub include_metadata: bool,
    /// It is found and not stepped over: the next step finds it again.
    pub stays: bool,
    /// As it is stored: encrypted where messages are.
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

    /// The same, as it is stored.
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

/// What becomes of a message of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Take {
    /// It is taken.
    This,
    /// It is taken, and it is the last one wanted.
    Last,
    /// It is not stepped over, and the batch ends.
    NotThis,
}
