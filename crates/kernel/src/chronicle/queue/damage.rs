//! Older files that cannot be read: they are logged, and other files stay usable
//! (`docs/durability.md`, "Damaged files").

use std::sync::Arc;

use super::handle::Queue;
use crate::chronicle::protocol::create;
use crate::chronicle::protocol::locate::{self, Located};
use crate::chronicle::protocol::lock::guard::DetachedGuard;
use crate::chronicle::protocol::roll;
use crate::chronicle::protocol::roll_file::{Slot, View};
use crate::chronicle::protocol::unfinished;
use crate::os::interrupt::Signals;
use crate::{Error, Result};

impl Queue {
    /// Whether a later cycle has a message, or had one before its file was damaged.
    pub fn has_data_after(&self, mut cycle: i32) -> Result<bool> {
        while let Some(next) = self.cycle_after(cycle)? {
            match self.has_data(next) {
                Ok(false) => cycle = next,
                Ok(true) | Err(Error::Corrupt { .. }) => return Ok(true),
                Err(error) => return Err(error),
            }
        }
        Ok(false)
    }

    fn has_data(&self, cycle: i32) -> Result<bool> {
        let Some(mut view) = self.view(cycle)? else {
            return self.check_held_none(cycle).map(|()| false);
        };
        Ok(matches!(locate::locate(&mut view, 0)?, Located::Found(_)))
    }

    /// An error if a file's first header is not ready although the file has or had messages.
    pub fn check_lost_messages(&self, cycle: i32) -> Result<()> {
        self.check_lost_header(cycle)?;
        self.check_held_none(cycle)
    }

    /// An error if a file's first header is not ready although messages lie after it.
    fn check_lost_header(&self, cycle: i32) -> Result<()> {
        let path = self.file_for_cycle(cycle)?;
        if unfinished::holds_messages(&path, self.index_count())? {
            return Err(unfinished::no_header(&path));
        }
        Ok(())
    }

    /// Whether a cycle's file exists and its first header is not ready.
    pub(super) fn is_unready(&self, cycle: i32) -> Result<bool> {
        Ok(self.has_file(cycle) && self.view(cycle)?.is_none())
    }

    /// An error if a cycle's file exists and is not ready although it had messages, or a later
    /// cycle has some, so that it will never be finished.
    pub fn check_finished(&self, cycle: i32) -> Result<()> {
        if !self.is_unready(cycle)? {
            return Ok(());
        }
        self.check_held_none(cycle)?;
        if !self.has_data_after(cycle)? || !self.is_unready(cycle)? {
            return Ok(());
        }
        self.check_lost_header(cycle)?;
        let what =
            "a roll file was never finished, or was emptied, though a later one has messages";
        Err(unfinished::not_ready(what, &self.file_for_cycle(cycle)?))
    }

    /// An error if the file of an index has messages after a lost one at this index: a reader at
    /// this index cannot advance.
    pub fn check_end(&self, index: i64) -> Result<()> {
        let (cycle, sequence) = self.roll().split(index)?;
        let Some(mut view) = self.view(cycle)? else { return Ok(()) };
        match locate::locate(&mut view, sequence)? {
            Located::NotYet(position) => locate::check_nothing_after(&mut view, position),
            _ => Ok(()),
        }
    }

    /// The index spacing of a cycle's file, or of the roll cycle if there is none.
    pub fn index_spacing_of(&self, cycle: i32) -> Result<u32> {
        let view = self.view(cycle)?;
        Ok(view.map_or(self.roll().index_spacing, |view| view.file().shape.index_spacing))
    }

    /// Like [`Queue::last_sequence_left`], but an unreadable file is logged and counts as empty.
    pub fn last_sequence_if_readable(&self, cycle: i32) -> Result<Option<u64>> {
        let found = match self.last_sequence_left(cycle) {
            Ok(None) => self.check_finished(cycle).map(|()| None),
            found => found,
        };
        self.unless_unreadable(cycle, found)
    }

    /// Replaces the error of an unreadable file by None, and logs it once.
    pub fn unless_unreadable<T>(&self, cycle: i32, found: Result<Option<T>>) -> Result<Option<T>> {
        match found {
            Err(error) if is_unreadable(&error) => {
                self.warn_once(cycle, || format!("an older file cannot be read: {error}"));
                Ok(None)
            }
            found => found,
        }
    }

    /// Whether the file of a cycle has its end-of-file marker, or is compressed; false if it is
    /// unreadable or not ready. The file is not kept mapped.
    pub fn is_ended(&self, cycle: i32) -> Result<bool> {
        if self.is_compressed(cycle) {
            return Ok(true);
        }
        let found = create::open_existing(&self.file_for_cycle(cycle)?, cycle, false);
        let found = self.unless_unreadable(cycle, found)?;
        let end = found.map(|file| locate::end(&mut View::new(Arc::new(file))));
        let end = self.unless_unreadable(cycle, end.transpose())?;
        Ok(end.is_some_and(|end| end.slot == Slot::EndOfData))
    }

    /// Ends a file; false if it was ended before.
    pub fn close_cycle(&self, view: &mut View, guard: &DetachedGuard<'_>) -> Result<bool> {
        if !create::is_of_version_4(view.file()) {
            create::check_writable(view.file())?;
        }
        roll::write_eof(view, self.growth(), guard)
    }

    /// Like [`Queue::close_cycle`], but discards the file if its creator died. An unreadable file
    /// is left as it is and does not prevent appends to later ones.
    pub fn close_cycle_of(&self, cycle: i32, guard: &DetachedGuard<'_>) -> Result<bool> {
        if self.is_compressed(cycle) {
            return Ok(false);
        }
        let put_aside = || self.put_aside_unfinished(cycle, guard).map(|()| None);
        let closed = match self.view(cycle) {
            Ok(Some(mut view)) => self.close_cycle(&mut view, guard).map(Some),
            Ok(None) => put_aside(),
            Err(Error::Corrupt { .. }) if matches!(self.is_unfinished(cycle), Ok(true)) => {
                put_aside()
            }
            Err(error) => Err(error),
        };
        Ok(self.unless_unreadable(cycle, closed)?.unwrap_or(false))
    }

    /// Discards the file of a cycle that was never finished, as readers would wait for it. An error
    /// if it holds messages. The caller writes to a later cycle.
    pub fn put_aside_unfinished(&self, cycle: i32, guard: &DetachedGuard<'_>) -> Result<()> {
        self.check_lost_header(cycle)?;
        if create::put_aside_unfinished(&self.file_for_cycle(cycle)?, guard)? {
            self.refresh(Signals::Deferred(guard.may_wait()))?;
        }
        Ok(())
    }
}

/// Whether the file is damaged, or not readable by this user.
fn is_unreadable(error: &Error) -> bool {
    match error {
        Error::Corrupt { .. } => true,
        Error::Io { source, .. } => source.kind() == std::io::ErrorKind::PermissionDenied,
        _ => false,
    }
}
