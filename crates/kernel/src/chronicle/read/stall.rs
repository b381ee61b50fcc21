//! Positions where reading stalls although there are later messages (`docs/protocol.md` §9.3): how
//! long one must stay unchanged before it is skipped, and how a read waits for that.

use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use crate::os::detached::Detached;
use crate::os::files;

/// The system writes changes back within a minute, and then updates the modification time again: a
/// file whose time is older than this has not been written to.
const LEFT_ALONE: Duration = Duration::from_secs(120);
/// A waiting read polls at least this often.
const LOOK: Duration = Duration::from_millis(10);

/// A place of a queue: a cycle and a position in its file.
pub type At = (i32, u64);

/// Where and since when reading is stalled.
#[derive(Default)]
pub struct Hold {
    place: Option<(At, Instant)>,
    decides_at: Option<Instant>,
}

impl Hold {
    /// Notes that reading continues.
    pub fn end(&mut self) {
        *self = Self::default();
    }

    /// Notes that reading has stopped with only new messages to wait for.
    pub fn has_nothing_ahead(&mut self) {
        self.decides_at = None;
    }

    /// When it will be known whether reading continues past a stalled position with later messages.
    /// None if there are only new messages to wait for.
    pub fn decides_at(&self) -> Option<Instant> {
        self.decides_at
    }

    /// Whether reading was last stalled here.
    pub fn is_at(&self, at: At) -> bool {
        self.place.is_some_and(|(place, _)| place == at)
    }

    /// Notes that reading is stalled here; true once that has lasted for `limit`.
    pub fn lasts(&mut self, at: At, limit: Duration) -> bool {
        self.decides_at = None;
        match self.place {
            Some((place, since)) if place == at => since.elapsed() >= limit,
            _ => {
                self.place = Some((at, Instant::now()));
                limit.is_zero()
            }
        }
    }

    /// Like [`Hold::lasts`], if there are later messages: reads wait for the answer. True at once
    /// if the file has been unchanged for long enough.
    pub fn lasts_before_later_data(&mut self, at: At, limit: Duration, file: &Path) -> bool {
        let is_new = !self.is_at(at);
        if self.lasts(at, limit) || is_new && is_left_alone(file, limit) {
            return true;
        }
        self.decides_at = self.place.and_then(|(_, since)| since.checked_add(limit));
        false
    }
}

/// Whether a file is unchanged for at least `limit`, by its modification time.
fn is_left_alone(file: &Path, limit: Duration) -> bool {
    let Ok(changed) = files::changed(file) else { return false };
    let quiet = SystemTime::now().duration_since(changed).unwrap_or_default();
    quiet >= limit.max(LEFT_ALONE) && files::notes_changes(file).unwrap_or(false)
}

/// Waits part of the time until `then`; the caller holds no lock, and checks for signals
/// afterwards.
pub fn wait_toward(_: &Detached, then: Instant) {
    std::thread::sleep(then.saturating_duration_since(Instant::now()).min(LOOK));
}
