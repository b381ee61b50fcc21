//! Positions where reading stalls although there are later messages (`docs/protocol.md` §9.3): how
//! long one must stay unchanged before it is skipped, and how a read waits for that.

use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use crate::os::detached::Detached;
use crate::os::files;

/// The system writes changes to the medium within a minute and notes their time again after that:
/// a file whose time is older than this was left alone.
const LEFT_ALONE: Duration = Duration::from_secs(120);
/// A waiting read looks again after at most this long.
const LOOK: Duration = Duration::from_millis(10);

/// A place of a queue: a cycle and a position in its file.
pub type At = (i32, u64);

/// Since when reading is held up, and where.
#[derive(Default)]
pub struct Hold {
    place: Option<(At, Instant)>,
    decides_at: Option<Instant>,
}

impl Hold {
    /// Reading went on.
    pub fn end(&mut self) {
        *self = Self::default();
    }

    /// Reading stops with nothing to wait for.
    pub fn has_nothing_ahead(&mut self) {
        self.decides_at = None;
    }

    /// When it is known whether reading goes on from a place that has later messages after it.
    /// None where there is nothing to wait for but new messages.
    pub fn decides_at(&self) -> Option<Instant> {
        self.decides_at
    }

    /// Whether this is where reading was held up last.
    pub fn is_at(&self, at: At) -> bool {
        self.place.is_some_and(|(place, _)| place == at)
    }

    /// Notes that reading is held up; true once that lasts for `limit`.
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

    /// As [`Hold::lasts`] where later messages are there: reads wait for the answer. It is known at
    /// once where the file has been left alone for long enough.
    pub fn lasts_before_later_data(&mut self, at: At, limit: Duration, file: &Path) -> bool {
        let is_new = !self.is_at(at);
        if self.lasts(at, limit) || is_new && is_left_alone(file, limit) {
            return true;
        }
        self.decides_at = self.place.and_then(|(_, since)| since.checked_add(limit));
        false
    }
}

/// Whether nobody has written to a file for at least `limit`, as far as its time shows.
fn is_left_alone(file: &Path, limit: Duration) -> bool {
    let Ok(changed) = files::changed(file) else { return false };
    let quiet = SystemTime::now().duration_since(changed).unwrap_or_default();
    quiet >= limit.max(LEFT_ALONE) && files::notes_changes(file).unwrap_or(false)
}

/// Waits some of the time until then; the caller holds no lock, and looks for signals afterwards.
pub fn wait_toward(_: &Detached, then: Instant) {
    std::thread::sleep(then.saturating_duration_since(Instant::now()).min(LOOK));
}
