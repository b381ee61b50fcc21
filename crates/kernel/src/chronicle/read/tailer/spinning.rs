//! Waiting for a message without a pause: a look costs a few nanoseconds, a call from Python many.

use super::{Ask, AtOnce, Scan, Tailer};
use crate::Result;

impl Tailer {
    /// Polls for the next message `looks` times; paused if there was none yet. The position stays.
    pub fn spin(&self, looks: usize) -> Result<Scan<()>> {
        for _ in 0..looks {
            match self.look()? {
                AtOnce::Found(()) => return Ok(Scan::Found(())),
                AtOnce::Nothing => std::hint::spin_loop(),
                AtOnce::Unknown => match self.prepare(Ask::First)? {
                    Scan::Nothing => std::hint::spin_loop(),
                    found_or_paused => return Ok(found_or_paused),
                },
            }
        }
        Ok(Scan::Paused)
    }

    /// Whether there is a message to read, if finding out takes no system call.
    #[inline]
    fn look(&self) -> Result<AtOnce<()>> {
        let Some(mut inner) = self.inner.try_lock() else { return Ok(AtOnce::Unknown) };
        self.check_open()?;
        if inner.prepared.is_some() {
            return Ok(AtOnce::Found(()));
        }
        if !self.finish_at_once(&mut inner)? {
            return Ok(AtOnce::Unknown);
        }
        Ok(match inner.cursor.find_at_once(&self.queue, false) {
            AtOnce::Found(_) => AtOnce::Found(()),
            AtOnce::Nothing => self.at_end(&mut inner),
            AtOnce::Unknown => AtOnce::Unknown,
        })
    }
}
