//! The document that a thread of this process has open, which holds the write lock.
//!
//! Each has a unique number, so that a document that lost the lock by force can neither release the
//! lock of a later document nor be published under it.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::os::process;

/// How many bits distinguish the documents of a thread.
const COUNT_BITS: u32 = 24;

/// At most one open document.
#[derive(Default)]
pub struct OpenDocument {
    /// Thread and count, or 0.
    number: AtomicU64,
    opened: AtomicU64,
}

impl OpenDocument {
    /// Notes that the calling thread has opened a document; returns its number.
    pub fn open(&self) -> u64 {
        let count = self.opened.fetch_add(1, Ordering::Relaxed) & ((1 << COUNT_BITS) - 1);
        let number = process::thread_id() << COUNT_BITS | count;
        self.number.store(number, Ordering::Release);
        number
    }

    /// The number of the document that is open, or 0.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.number.load(Ordering::Acquire)
    }

    /// Whether the calling thread has a document open.
    #[must_use]
    pub fn is_own(&self) -> bool {
        self.number() >> COUNT_BITS == process::thread_id()
    }

    /// Ends this document's ownership of the write lock; false if it no longer owns it.
    #[must_use]
    pub fn take(&self, number: u64) -> bool {
        number != 0
            && self.number.compare_exchange(number, 0, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}

/// A place claimed for one document: the write lock is held until it is published or given up.
#[derive(Debug)]
pub struct Claim {
    /// The index the message will have (metadata: that of the next message).
    pub index: i64,
    /// It is metadata.
    pub metadata: bool,
    /// The number of the open document.
    pub document: u64,
    /// When the table was last checked, by the machine's clock.
    pub looked_ms: i64,
    /// The time, if a clock of the caller gave it.
    pub now_ms: Option<i64>,
}
