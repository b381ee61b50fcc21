//! Telling what a writer left from what it is about to complete, without taking its lock.
//!
//! A writer changes words in steps, and holds the write lock meanwhile. What was seen of one of its
//! steps, and is the same after the lock was seen free or held by a dead process, it has left.

use std::time::{Duration, Instant};

use crate::Result;
use crate::chronicle::protocol::lock::recovery;
use crate::chronicle::protocol::table::store::TableStore;
use crate::os::interrupt;

/// A document may be open for long: then what its writer may change is not judged.
const LONGEST_WAIT: Duration = Duration::from_secs(1);
/// Between looks at the lock: a free moment between two appends is met by many of them.
const PAUSE: Duration = Duration::from_micros(200);

/// Waits for a moment without a writer.
pub struct Quiet<'a> {
    table: Option<&'a TableStore>,
    is_held: std::cell::Cell<bool>,
}

impl<'a> Quiet<'a> {
    /// Without a table nobody writes.
    #[must_use]
    pub const fn new(table: Option<&'a TableStore>) -> Self {
        Self { table, is_held: std::cell::Cell::new(false) }
    }

    /// Whether the write lock was free, or its holder dead, at a moment since this was called.
    pub fn is_reached(&self) -> Result<bool> {
        let Some(table) = self.table.filter(|table| table.words().write_lock != 0) else {
            return Ok(true);
        };
        let deadline = Instant::now() + LONGEST_WAIT;
        loop {
            let word = table.cells().load_acquire(table.words().write_lock);
            if !matches!(recovery::holder_of(table, word), Some((_, true))) {
                return Ok(true);
            }
            // After one long wait, nobody waits for each of a thousand files.
            if self.is_held.get() || Instant::now() >= deadline {
                self.is_held.set(true);
                return Ok(false);
            }
            interrupt::check()?;
            std::thread::sleep(PAUSE);
        }
    }

    /// Whether a living process kept the lock for as long as it was waited for.
    #[must_use]
    pub const fn is_held(&self) -> bool {
        self.is_held.get()
    }
}
