//! Earlier cycles that a slow writer may still append to: cycles that the tailer has left, and
//! cycles it skipped because they were empty or had no directory.

use std::ops::Range;
use std::time::Instant;

use super::message::Message;
use super::named_position::Kept;
use super::place::{Place, place_at};
use super::queue::{VanillaQueue, end_of};
use crate::Result;

/// The most cycles that are looked up one by one, for a pattern with subdirectories.
const MOST_PROBED: i32 = 64;
/// The most cycles to watch, as manual clocks may lie far back.
const MOST_WATCHED: usize = 64;

/// The cycles before the current one that are watched for some time.
#[derive(Default)]
pub struct LateCycles {
    /// In the order in which they were left or found.
    places: Vec<Late>,
    /// Ranges of cycles that had no message, in ascending order.
    passed: Vec<Passed>,
}

struct Late {
    place: Place,
    until: Instant,
}

#[derive(Clone)]
struct Passed {
    cycles: Range<i32>,
    until: Instant,
}

/// The places to which [`LateCycles::return_to`] goes back.
pub struct LateMark {
    places: Vec<(i32, u64)>,
    passed: Vec<Passed>,
}

impl LateCycles {
    /// The late cycles of a named tailer that resumes in cycle `present`.
    pub fn resumed(queue: &VanillaQueue, kept: &Kept, present: i32) -> Result<Self> {
        let until = Instant::now() + queue.options().linger;
        let mut late = Self::default();
        for index in kept.late() {
            if let Some(place) = place_at(queue, index)?
                && place.reader.cycle() < present
            {
                late.places.push(Late { place, until });
            }
        }
        if let Some((floor, _)) = kept.floor().and_then(|floor| queue.split().split(floor)) {
            late.pass(floor..present, until);
        }
        Ok(late)
    }

    /// Whether no cycle is watched.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.places.is_empty() && self.passed.is_empty()
    }

    /// Stops watching all cycles.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// The place of a message that [`LateCycles::find`] found.
    #[inline]
    pub fn place(&mut self, number: usize) -> Option<&mut Place> {
        self.places.get_mut(number).map(|late| &mut late.place)
    }

    /// The next message of one of the cycles, and the number of its place.
    pub fn find(&mut self, queue: &VanillaQueue) -> Result<Option<(Message, Option<usize>)>> {
        // Taken before the checks, so that messages appended in time are found by one of them.
        let now = Instant::now();
        self.look_for_directories(queue)?;
        for (number, late) in self.places.iter_mut().enumerate() {
            if let Some(message) = late.place.next(queue)? {
                return Ok(Some((message, Some(number))));
            }
        }
        self.places.retain(|late| late.until > now);
        self.passed.retain(|passed| passed.until > now);
        Ok(None)
    }

    /// Leaves the cycle of a place for one with a message, and notes all cycles between that ended
    /// recently.
    pub fn leave(&mut self, queue: &VanillaQueue, left: Option<Place>, next: i32) {
        let until = Instant::now() + queue.options().linger;
        let floor = floor_of(queue);
        let from = left.as_ref().map_or(0, |place| place.reader.cycle().saturating_add(1));
        if let Some(place) = left.filter(|place| place.reader.cycle() >= floor) {
            self.places.push(Late { place, until });
        }
        self.pass(from.max(floor)..next, until);
    }

    /// Makes later appends to cycles before `present` be delivered. `known` are the indexes of the
    /// last messages that the reader has in some of these cycles; it has none of the cycles
    /// between.
    pub fn watch(&mut self, queue: &VanillaQueue, present: i32, known: &[i64]) -> Result<()> {
        let known: Vec<_> = known.iter().filter_map(|index| queue.split().split(*index)).collect();
        let complete_from = known.iter().map(|(cycle, _)| *cycle).min().unwrap_or(present);
        let mut first = floor_of(queue).min(complete_from);
        if first >= present {
            return Ok(());
        }
        let until = Instant::now() + queue.options().linger;
        let mut before = present;
        while let Some(cycle) = queue.listing().before(before)?.filter(|cycle| *cycle >= first) {
            before = cycle;
            if self.places.len() >= MOST_WATCHED {
                first = cycle + 1;
                break;
            }
            let Some(mut reader) = queue.reader(cycle)? else { continue };
            let sequence = match known.iter().find(|(it, _)| *it == cycle) {
                Some((_, last)) => last + 1,
                None if cycle > complete_from => 0,
                None => end_of(&mut reader)?,
            };
            self.places.push(Late { place: Place { reader, sequence }, until });
        }
        self.places.reverse();
        self.pass(first..present, until);
        Ok(())
    }

    fn pass(&mut self, cycles: Range<i32>, until: Instant) {
        if !cycles.is_empty() {
            self.passed.push(Passed { cycles, until });
        }
    }

    /// Finds cycles whose directory was created since they were skipped.
    fn look_for_directories(&mut self, queue: &VanillaQueue) -> Result<()> {
        for Passed { cycles, until } in &self.passed {
            let mut from = cycles.start.saturating_sub(1);
            while let Some(cycle) = next_directory(queue, from, cycles.end)? {
                from = cycle;
                if self.places.iter().all(|late| late.place.reader.cycle() != cycle)
                    && let Some(reader) = queue.reader(cycle)?
                {
                    let place = Place { reader, sequence: 0 };
                    self.places.push(Late { place, until: *until });
                }
            }
        }
        Ok(())
    }

    /// The state to store for a named tailer.
    pub fn kept(&self, queue: &VanillaQueue, next: Option<i64>) -> Result<Kept> {
        let mut kept = Kept::new(next);
        let mut read: Vec<_> =
            self.places.iter().map(|late| &late.place).filter(|place| place.sequence > 0).collect();
        read.sort_unstable_by_key(|place| std::cmp::Reverse(place.reader.cycle()));
        let is_whole = read.len() <= Kept::MOST_LATE;
        read.truncate(Kept::MOST_LATE);
        for place in &read {
            kept.add_late(queue.index_of(place.reader.cycle(), place.sequence)?);
        }
        // How much was delivered of earlier cycles is no longer known: they are not watched again.
        let floor = match read.last() {
            Some(oldest) if !is_whole => Some(oldest.reader.cycle()),
            _ => self.passed.iter().map(|passed| passed.cycles.start).min(),
        };
        if let Some(floor) = floor {
            kept.set_floor(queue.index_of(floor, 0)?);
        }
        Ok(kept)
    }

    /// Their places, for [`LateCycles::return_to`].
    pub fn mark(&self) -> LateMark {
        let at = |late: &Late| (late.place.reader.cycle(), late.place.sequence);
        LateMark { places: self.places.iter().map(at).collect(), passed: self.passed.clone() }
    }

    /// Goes back to places: messages delivered since are delivered again.
    pub fn return_to(&mut self, queue: &VanillaQueue, mark: &LateMark) -> Result<()> {
        let until = Instant::now() + queue.options().linger;
        self.places.clear();
        for &(cycle, sequence) in &mark.places {
            if let Some(reader) = queue.reader(cycle)? {
                self.places.push(Late { place: Place { reader, sequence }, until });
            }
        }
        self.passed.clone_from(&mark.passed);
        Ok(())
    }
}

/// The first cycle that ended recently enough that a slow writer may still append to it.
fn floor_of(queue: &VanillaQueue) -> i32 {
    let options = queue.options();
    let linger_ms = i64::try_from(options.linger.as_millis()).unwrap_or(i64::MAX);
    // A cycle that ends at `since` is excluded: its last millisecond is the one before.
    let since = options.clock.now_ms().saturating_sub(linger_ms).max(0);
    queue.format().cycle_at(since).unwrap_or(i32::MAX)
}

/// The next cycle with a directory after one, before `end`.
fn next_directory(queue: &VanillaQueue, from: i32, end: i32) -> Result<Option<i32>> {
    let listing = queue.listing();
    if listing.is_flat() {
        return Ok(listing.after(from)?.filter(|cycle| *cycle < end));
    }
    // Creating a directory within another does not change the times of the directories above.
    for cycle in from.saturating_add(1).max(end.saturating_sub(MOST_PROBED))..end {
        if queue.reader(cycle)?.is_some() {
            return Ok(Some(cycle));
        }
    }
    Ok(None)
}
