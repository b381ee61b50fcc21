//! Whether the ring's files are still those of the queue's directory. Messages put into a file that
//! has lost its name would be lost with the processes that have it open.

use std::sync::atomic::Ordering;

use super::file::{FILE_NAME, RingFile};
use super::handle::Ring;
use crate::os::clock;
use crate::{Error, Result};

/// How often the files are checked, in milliseconds.
const LOOK_MS: u64 = 500;

impl Ring {
    /// Fails if the ring or the queue's table was removed or replaced. Checks only now and then.
    #[inline]
    pub(super) fn check_present(&self) -> Result<()> {
        let now = clock::coarse_time_ms();
        if now.abs_diff(self.looked_ms.load(Ordering::Relaxed)) < LOOK_MS {
            return Ok(());
        }
        self.look_for_files()?;
        self.looked_ms.store(now, Ordering::Relaxed);
        Ok(())
    }

    #[cold]
    fn look_for_files(&self) -> Result<()> {
        if let Some(table) = self.queue().table() {
            table.shared.check_present()?;
        }
        let Some(newest) = self.chain().last().cloned() else { return Err(self.damaged()) };
        if newest.words().is_closed() {
            return Ok(()); // the next put or drain looks for its successor
        }
        match newest.head()? {
            None => Err(self.lost("removed")),
            Some(found) if self.has(found)? || is_handed_over(&newest)? => Ok(()),
            Some(_) => Err(self.lost("replaced")),
        }
    }

    fn has(&self, found: (u64, u64)) -> Result<bool> {
        for file in self.chain().iter() {
            if file.identity()? == found {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn lost(&self, what: &'static str) -> Error {
        Error::RingLost { what, path: self.queue().path().join(FILE_NAME) }
    }
}

/// Whether the ring named [`FILE_NAME`](super::file::FILE_NAME) comes before `newest` and is
/// drained.
fn is_handed_over(newest: &RingFile) -> Result<bool> {
    let head = RingFile::look_at_head(newest.directory())?;
    Ok(head.is_some_and(|(number, is_closed)| number < newest.number && is_closed))
}
