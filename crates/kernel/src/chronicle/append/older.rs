//! Ending the files of older cycles (`docs/protocol.md` §7.2). Other processes wait while the write
//! lock is held, so an appender examines older files before it takes the lock for its first append:
//!
//! 1. each older file but the last is examined, oldest first, without the lock;
//! 2. a file that lacks its end-of-file marker is ended under the lock, which is then released;
//! 3. `normalisedEOFsTo` is raised to the last file examined.
//!
//! The append itself examines files created since, by [`End::normalise_up_to`]. Markers are never
//! removed, so concurrent appenders cannot make the word too high; a crash at any step leaves it
//! too low. Rolling does not raise it: a Java writer whose clock lags may create a file for a
//! skipped cycle, which the next appender is to end.

use super::appender::Appender;
use super::end::End;
use crate::chronicle::format::table::NORMALISED_TO;
use crate::chronicle::protocol::listing;
use crate::chronicle::protocol::lock::gate;
use crate::chronicle::protocol::lock::guard::DetachedGuard;
use crate::chronicle::protocol::lock::lock_wait::LockWait;
use crate::chronicle::protocol::table::store::TableStore;
use crate::chronicle::queue::handle::Queue;
use crate::os::interrupt::Signals;
use crate::probe::fault::step;
use crate::{Result, warnings};

/// The word is raised after this many files, so that an interrupted pass need not start over.
const NOTE_EVERY: usize = 256;

impl Appender {
    /// Steps 1 to 3, before the lock is taken for the first append.
    #[cold]
    pub(super) fn end_older(
        &self,
        mut signals: Signals<'_>,
        table: &TableStore,
        lock_wait: LockWait,
        now_ms: Option<i64>,
    ) -> Result<()> {
        let queue = self.queue();
        let clock_cycle = queue.schedule().cycle_at(self.now(now_ms))?;
        let newest = listing::newest(table, clock_cycle);
        let older = queue.cycles_between(normalised_to(table)?, newest)?;
        let Some((_, older)) = older.split_last() else { return Ok(()) };
        for some in older.chunks(NOTE_EVERY) {
            for cycle in some {
                signals.check()?;
                if !queue.is_ended(*cycle)? {
                    let guard = self.take_lock(signals.again(), table, lock_wait)?;
                    gate::check(table.append_lock(), true)?;
                    end_missed(queue, *cycle, &guard)?;
                }
            }
            let (first, last) = (some[0], some[some.len() - 1]);
            if !raise(table, last)? {
                let guard = self.take_lock(signals.again(), table, lock_wait)?;
                create(table, first, last, &guard)?;
            }
        }
        Ok(())
    }
}

impl End<'_, DetachedGuard<'_>> {
    /// Writes the marker into every cycle before the newest that lacks it.
    pub fn normalise(&self) -> Result<()> {
        let newest = self.queue().last_cycle()?.unwrap_or(self.cycle());
        self.normalise_up_to(self.cycle().min(newest), true)
    }

    /// Writes the marker into the cycles below `cycle` that lack it. `normalisedEOFsTo` records how
    /// far that was done, if there was more than the latest file to examine.
    pub(super) fn normalise_up_to(&self, cycle: i32, always_note: bool) -> Result<()> {
        let (queue, table) = (self.queue(), self.table());
        let older = queue.cycles_between(normalised_to(table)?, cycle)?;
        for cycle in &older {
            // No warning for the last cycle: having no appends since it ended is normal.
            if always_note || older.last() != Some(cycle) {
                end_missed(queue, *cycle, self.guard())?;
            } else {
                queue.close_cycle_of(*cycle, self.guard())?;
            }
        }
        match (older.first(), older.last()) {
            (Some(first), Some(last)) if always_note || first != last => {
                create(table, *first, *last, self.guard())
            }
            _ => Ok(()),
        }
    }
}

fn end_missed(queue: &Queue, cycle: i32, guard: &DetachedGuard<'_>) -> Result<()> {
    if queue.close_cycle_of(cycle, guard)? {
        warnings::leave(format!("an older cycle had no end-of-file marker: cycle={cycle}"));
    }
    Ok(())
}

/// The cycle up to which every file has its marker; -1 if that is not known.
fn normalised_to(table: &TableStore) -> Result<i32> {
    let done = table.find(NORMALISED_TO)?.map_or(-1, |position| table.value(position, -1));
    Ok(i32::try_from(done).unwrap_or(-1))
}

/// Raises the word; false if the table has none.
fn raise(table: &TableStore, last: i32) -> Result<bool> {
    let Some(position) = table.find(NORMALISED_TO)? else { return Ok(false) };
    table.cells().raise_acq_rel(position, i64::from(last), step!("eof.normalised.cas"));
    Ok(true)
}

/// As [`raise`]; makes the word under the write lock, as Java does.
fn create(table: &TableStore, first: i32, last: i32, guard: &DetachedGuard<'_>) -> Result<()> {
    let signals = Signals::Deferred(guard.may_wait());
    table.find_or_create(NORMALISED_TO, i64::from(first), signals)?;
    raise(table, last).map(drop)
}
