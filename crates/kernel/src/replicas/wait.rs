//! Waiting until replicas have acknowledged a message, by the word of `waiting/word.rs`.

use std::time::{Duration, Instant};

use super::history::History;
use super::quorum::Quorum;
use super::side_file::ReplicaStates;
use crate::Result;
use crate::os::futex;
use crate::os::interrupt::Signals;
use crate::waiting::word;

/// How often signals are checked, in case another thread received them.
const STEP: Duration = Duration::from_millis(50);
/// How often a waiter polls that cannot write to the side file.
const LOOK: Duration = Duration::from_millis(1);

/// How a wait has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waited {
    Acknowledged,
    /// The timeout has passed.
    Late,
    /// The index may now belong to another message.
    OtherHistory,
}

impl ReplicaStates {
    /// Waits until enough members of the in-sync set have acknowledged the message that had this
    /// index in this history, and all before it.
    pub fn wait(
        &self,
        index: i64,
        history: History,
        quorum: Quorum,
        timeout: Option<Duration>,
        mut signals: Signals<'_>,
    ) -> Result<Waited> {
        let began = Instant::now();
        loop {
            let armed = self.is_writable().then(|| self.word().arm());
            word::settle();
            let (acknowledged, found) = self.reached(quorum);
            if found != history {
                return Ok(Waited::OtherHistory);
            }
            if acknowledged.is_some_and(|acknowledged| acknowledged >= index) {
                return Ok(Waited::Acknowledged);
            }
            signals.check()?;
            let left = timeout.map_or(STEP, |timeout| timeout.saturating_sub(began.elapsed()));
            if left.is_zero() {
                return Ok(Waited::Late);
            }
            match armed {
                Some(value) => futex::sleep(&[self.expected(value)], left.min(STEP)),
                None => signals.again().deferred().sleep(left.min(LOOK)),
            }
        }
    }
}
