//! Distinguishing steps that a writer left unfinished from those that it is about to finish,
//! without taking the write lock.
//!
//! A writer holds the write lock while it changes words in steps. So if a word is unchanged after
//! the lock was seen free, or held by a dead process, it was left unfinished.

use std::cell::{Cell, RefCell, RefMut};
use std::time::{Duration, Instant};

use crate::Result;
use crate::chronicle::protocol::lock::recovery;
use crate::chronicle::protocol::table::store::TableStore;
use crate::os::detached::Detached;
use crate::os::interrupt;

/// The longest wait. A document may be open for longer: then words that its writer may change are
/// not checked.
const LONGEST_WAIT: Duration = Duration::from_secs(1);
/// Between polls of the lock: short enough to meet the free moment between two appends.
const PAUSE: Duration = Duration::from_micros(200);

/// Waits for a moment without a writer.
pub struct Quiet<'a> {
    table: Option<&'a TableStore>,
    is_held: Cell<bool>,
    may_wait: RefCell<&'a mut Detached>,
}

impl<'a> Quiet<'a> {
    /// Without a table there is no writer.
    #[must_use]
    pub const fn new(table: Option<&'a TableStore>, may_wait: &'a mut Detached) -> Self {
        Self { table, is_held: Cell::new(false), may_wait: RefCell::new(may_wait) }
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
            // After one long wait, do not wait again for each further file.
            if self.is_held.get() || Instant::now() >= deadline {
                self.is_held.set(true);
                return Ok(false);
            }
            let mut may_wait = self.may_wait();
            interrupt::check(&mut may_wait)?;
            may_wait.sleep(PAUSE);
        }
    }

    /// The token of the thread: a check holds no lock that others wait for.
    pub fn may_wait(&self) -> RefMut<'_, &'a mut Detached> {
        self.may_wait.borrow_mut()
    }

    /// Whether a live process held the lock until the wait timed out.
    #[must_use]
    pub const fn is_held(&self) -> bool {
        self.is_held.get()
    }
}
