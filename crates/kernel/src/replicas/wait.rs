//! Waiting until replicas have acknowledged a message, by the word of `waiting/word.rs`.

use std::time::{Duration, Instant};

use super::quorum::Quorum;
use super::side_file::ReplicaStates;
use crate::Result;
use crate::os::futex;
use crate::os::interrupt::Signals;
use crate::waiting::word;

/// Signals are looked at this often, should another thread have got them.
const STEP: Duration = Duration::from_millis(50);
/// One who cannot announce that it waits looks this often.
const LOOK: Duration = Duration::from_millis(1);

impl ReplicaStates {
    /// Waits until n members of the in-sync set have acknowledged the message, and all before
    /// it; false when the time is over.
    pub fn wait(
        &self,
        index: i64,
        quorum: Quorum,
        timeout: Option<Duration>,
        mut signals: Signals<'_>,
    ) -> Result<bool> {
        let began = Instant::now();
        loop {
            let armed = self.is_writable().then(|| self.word().arm());
            word::settle();
            if self.acknowledged(quorum).is_some_and(|found| found >= index) {
                return Ok(true);
            }
            signals.check()?;
            let left = timeout.map_or(STEP, |timeout| timeout.saturating_sub(began.elapsed()));
            if left.is_zero() {
                return Ok(false);
            }
            match armed {
                Some(value) => futex::sleep(&[self.expected(value)], left.min(STEP)),
                None => signals.again().deferred().sleep(left.min(LOOK)),
            }
        }
    }
}
