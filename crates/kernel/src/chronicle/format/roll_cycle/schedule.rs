//! When cycles start: at equal distances in UTC, or at the same times of day in a zone.

use std::ops::Range;

use jiff::Timestamp;
use jiff::tz::{AmbiguousOffset, TimeZone};

use super::{DAY_MS, RollCycle};
use crate::{Error, Result};

/// No two offsets of a zone are further apart, even across a change of the date line.
const OFFSETS_MAX_MS: i64 = 2 * DAY_MS;

/// When the cycles of a queue start.
#[derive(Clone, Debug)]
pub struct Schedule {
    roll: RollCycle,
    /// Bits of the sequence in a message index.
    shift: u32,
    epoch_ms: i64,
    /// Without one, cycles start at equal distances.
    zone: Option<TimeZone>,
}

impl Schedule {
    /// With a zone, the epoch is a local time: cycle 0 starts when clocks there first reach it.
    #[must_use]
    pub const fn new(roll: RollCycle, epoch_ms: i64, zone: Option<TimeZone>) -> Self {
        Self { shift: roll.shift(), roll, epoch_ms, zone }
    }

    /// The zone of this name; None for UTC.
    ///
    /// # Errors
    /// No such zone in this machine's database.
    pub fn zone(name: &str) -> Result<Option<TimeZone>> {
        if matches!(name, "UTC" | "Z") {
            return Ok(None);
        }
        let unknown = |_| {
            Error::Invalid(format!(
                "no such time zone: time_zone={name} (an IANA name, such as America/New_York; \
                 this machine may lack its tzdata package)"
            ))
        };
        TimeZone::get(name).map(Some).map_err(unknown)
    }

    /// The roll cycle.
    #[must_use]
    pub const fn roll(&self) -> &RollCycle {
        &self.roll
    }

    /// The epoch in milliseconds.
    #[must_use]
    pub const fn epoch_ms(&self) -> i64 {
        self.epoch_ms
    }

    /// The name of the zone, or UTC.
    #[must_use]
    pub fn zone_name(&self) -> &str {
        self.zone.as_ref().and_then(TimeZone::iana_name).unwrap_or("UTC")
    }

    /// Like [`RollCycle::to_index`], with a precomputed shift.
    #[expect(clippy::inline_always, reason = "once a message: a call costs 2 %")]
    #[inline(always)]
    pub fn to_index(&self, cycle: i32, sequence: u64) -> Result<i64> {
        self.roll.to_shifted_index(self.shift, cycle, sequence)
    }

    /// The cycle that this instant falls into.
    #[inline]
    pub fn cycle_at(&self, time_ms: i64) -> Result<i32> {
        match &self.zone {
            None => self.roll.cycle_at(time_ms, self.epoch_ms),
            Some(zone) => self.local_cycle_at(zone, time_ms),
        }
    }

    /// The milliseconds of a cycle; empty if clocks skip it.
    #[must_use]
    pub fn span_of(&self, cycle: i32) -> Range<i64> {
        match &self.zone {
            None => self.roll.span_of(cycle, self.epoch_ms),
            Some(zone) => {
                self.local_start(zone, i64::from(cycle))
                    ..self.local_start(zone, i64::from(cycle) + 1)
            }
        }
    }

    /// The last cycle that starts at or before this instant. Starts never decrease from one cycle
    /// to the next, so this also works for hours that are skipped or repeated.
    fn local_cycle_at(&self, zone: &TimeZone, time_ms: i64) -> Result<i32> {
        let near = time_ms.saturating_sub(self.epoch_ms) / self.roll.length_ms;
        let reach = OFFSETS_MAX_MS / self.roll.length_ms + 1;
        let (mut low, mut high) = (near - reach, near + reach);
        while low < high {
            let middle = low + (high - low + 1) / 2;
            if self.local_start(zone, middle) <= time_ms {
                low = middle;
            } else {
                high = middle - 1;
            }
        }
        i32::try_from(low).ok().filter(|cycle| *cycle >= 0).ok_or_else(|| {
            Error::IndexOutOfRange(format!(
                "no cycle at this time: time_ms={time_ms} epoch_ms={} cycle={low} roll_cycle={}",
                self.epoch_ms, self.roll.name
            ))
        })
    }

    /// When clocks of the zone first show the start of a cycle or a later time.
    fn local_start(&self, zone: &TimeZone, cycle: i64) -> i64 {
        let local_ms = cycle.saturating_mul(self.roll.length_ms).saturating_add(self.epoch_ms);
        let local = Timestamp::from_millisecond(local_ms);
        let start = local.and_then(|local| {
            let shown = local.to_zoned(TimeZone::UTC).datetime();
            let found = zone.to_ambiguous_timestamp(shown);
            let skips = matches!(found.offset(), AmbiguousOffset::Gap { .. });
            let (before, after) = (found.earlier()?, found.compatible()?);
            let skipped = zone.following(before).next().filter(|_| skips);
            Ok(skipped.map_or(after, |change| change.timestamp()))
        });
        start.map_or(local_ms, Timestamp::as_millisecond)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR_MS: i64 = 3_600_000;

    fn schedule(name: &str, time_ms: i64, zone: &str) -> Schedule {
        let roll = RollCycle::by_name(name).unwrap().clone();
        Schedule::new(roll, time_ms, Schedule::zone(zone).unwrap())
    }

    fn ms(text: &str) -> i64 {
        text.parse::<Timestamp>().unwrap().as_millisecond()
    }

    #[test]
    fn a_day_rolls_at_the_same_local_time_in_summer_and_winter() {
        let days = schedule("FAST_DAILY", 17 * HOUR_MS, "America/New_York");
        for (start, file) in [
            ("2024-03-08T22:00:00Z", "20240308F.cq4"),
            ("2024-03-09T22:00:00Z", "20240309F.cq4"),
            ("2024-03-10T21:00:00Z", "20240310F.cq4"), // after the hour that is skipped
            ("2024-11-02T21:00:00Z", "20241102F.cq4"),
            ("2024-11-03T22:00:00Z", "20241103F.cq4"), // after the hour that is repeated
        ] {
            let cycle = days.cycle_at(ms(start)).unwrap();
            assert_eq!(days.roll().file_name(cycle, days.epoch_ms()).unwrap(), file);
            assert_eq!(days.cycle_at(ms(start) - 1).unwrap(), cycle - 1);
            assert_eq!(days.span_of(cycle).start, ms(start));
        }
        let lengths = ["2024-03-09T22:00:00Z", "2024-11-02T21:00:00Z"].map(|start| {
            let span = days.span_of(days.cycle_at(ms(start)).unwrap());
            (span.end - span.start) / HOUR_MS
        });
        assert_eq!(lengths, [23, 25]);
    }

    #[test]
    fn cycles_never_go_back_through_any_change_of_the_clocks() {
        for (zone, around) in [
            ("Europe/London", "2024-10-27T00:00:00Z"),
            ("Europe/London", "2024-03-31T00:00:00Z"),
            ("Australia/Lord_Howe", "2024-04-06T12:00:00Z"), // half an hour
            ("Pacific/Apia", "2011-12-30T06:00:00Z"),        // a day is skipped
            ("Pacific/Kwajalein", "1969-12-30T00:00:00Z"),
        ] {
            for name in ["FIVE_MINUTELY", "FAST_HOURLY", "SIX_HOURLY", "FAST_DAILY", "WEEKLY"] {
                let cycles = schedule(name, 90 * 60_000, zone);
                let mut before = i32::MIN;
                for minutes in -3000..3000 {
                    let time = ms(around) + minutes * 60_000;
                    let Ok(cycle) = cycles.cycle_at(time) else { continue };
                    assert!(cycle >= before, "{zone} {name} {time}");
                    assert!(cycles.span_of(cycle).contains(&time), "{zone} {name} {time}");
                    before = cycle;
                }
            }
        }
    }

    #[test]
    fn a_day_starts_when_clocks_first_reach_its_time() {
        let days = schedule("FAST_DAILY", 9_000_000, "America/New_York"); // 02:30
        assert_eq!(days.cycle_at(ms("2024-03-10T06:59:59Z")).unwrap(), 19_791);
        assert_eq!(days.cycle_at(ms("2024-03-10T07:00:00Z")).unwrap(), 19_792); // 03:00
        let days = schedule("FAST_DAILY", 5_400_000, "America/New_York"); // 01:30, twice
        let cycle = days.cycle_at(ms("2024-11-03T05:30:00Z")).unwrap();
        assert_eq!(days.span_of(cycle).start, ms("2024-11-03T05:30:00Z"));
        assert_eq!(days.cycle_at(ms("2024-11-03T06:30:00Z")).unwrap(), cycle);
    }

    #[test]
    fn unknown_zones_are_refused() {
        for name in ["", "Mars/Olympus", "../../etc/passwd", "America", "\0"] {
            assert!(Schedule::zone(name).is_err(), "{name:?}");
        }
        assert!(Schedule::zone("UTC").unwrap().is_none());
    }
}
