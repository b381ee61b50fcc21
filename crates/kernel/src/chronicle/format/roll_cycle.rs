//! Roll cycles: cycle, index and file name (`docs/format.md` §1).
//!
//! ```text
//!  63                     shift                     0
//! +------------------------+------------------------+
//! |         cycle          |        sequence        |   shift = max(32, 2*log2(count) + log2(spacing))
//! +------------------------+------------------------+
//! ```

use std::borrow::Cow;
use std::fmt::Write;
use std::ops::Range;

use jiff::civil::{Date, ISOWeekDate, Time, Weekday};
use jiff::{Span, Timestamp, tz::TimeZone};

use crate::{Error, Result};
pub use schedule::Schedule;
pub use table::{ALIASES, ALL};

mod custom;
mod schedule;
mod table;

/// How roll files end.
pub const SUFFIX: &str = ".cq4";
/// The suffix of compressed roll files, after [`SUFFIX`].
pub const COMPRESSED: &str = ".zst";
/// Least slots of an index array; Java rounds up to it.
pub const INDEX_COUNT_MIN: u32 = 8;
/// Most slots of an index array, and most messages per slot, of files created here.
pub const INDEX_SHAPE_MAX: u32 = 1 << 20;
const SHIFT_MIN: u32 = 32;
/// A day.
pub const DAY_MS: i64 = 86_400_000;
/// Cycles named by weeks start on a Sunday: the first one after 1970-01-01.
const WEEKLY_EPOCH_MS: i64 = 3 * DAY_MS;

/// One row of the table of roll cycles, or a user's own.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RollCycle {
    /// Chronicle's name; of a user's own, its pattern.
    pub name: Cow<'static, str>,
    /// File-name pattern in Java's date-format letters.
    pub pattern: Cow<'static, str>,
    /// Length of a cycle in milliseconds.
    pub length_ms: i64,
    /// Slots in one index array.
    pub index_count: u32,
    /// Every n-th message is indexed.
    pub index_spacing: u32,
    /// Epoch used when none is given, in milliseconds.
    pub default_epoch_ms: i64,
}

/// Bits of the sequence in a word built for these index arrays.
#[must_use]
pub const fn shift(index_count: u32, index_spacing: u32) -> u32 {
    // `| 1` avoids a check for 0, which neither is, for each message.
    let bits = 2 * (index_count | 1).ilog2() + (index_spacing | 1).ilog2();
    if bits > SHIFT_MIN { bits } else { SHIFT_MIN }
}

/// How many messages index arrays of this shape can number in one cycle.
#[must_use]
pub const fn max_messages(index_count: u32, index_spacing: u32) -> u64 {
    let mask = (1_u64 << shift(index_count, index_spacing)) - 1;
    let slots = index_count as u64 * index_count as u64 * index_spacing as u64;
    if slots < mask { slots } else { mask }
}

/// The highest cycle whose index fits above `shift` bits of a sequence: no more than an `i32`
/// holds.
const fn highest_cycle(shift: u32) -> u64 {
    (i64::MAX >> shift).cast_unsigned()
}

impl RollCycle {
    /// The roll cycle of this name; case does not matter.
    #[must_use]
    pub fn by_name(name: &str) -> Option<&'static Self> {
        let alias = ALIASES.iter().find(|(alias, _)| alias.eq_ignore_ascii_case(name));
        let name = alias.map_or(name, |(_, name)| name);
        ALL.iter().find(|cycle| cycle.name.eq_ignore_ascii_case(name))
    }

    /// The roll cycle of this file-name pattern.
    #[must_use]
    pub fn by_pattern(pattern: &str) -> Option<&'static Self> {
        ALL.iter().find(|cycle| cycle.pattern == pattern)
    }

    /// The first roll cycle of the table to which this file name can belong.
    #[must_use]
    pub fn by_file_name(name: &str) -> Option<&'static Self> {
        ALL.iter().find(|cycle| cycle.cycle_of_file(name, cycle.default_epoch_ms).is_some())
    }

    /// Bits of the sequence in a message index.
    #[must_use]
    pub const fn shift(&self) -> u32 {
        shift(self.index_count, self.index_spacing)
    }

    /// The greatest sequence an index can hold.
    #[must_use]
    pub const fn sequence_mask(&self) -> u64 {
        (1 << self.shift()) - 1
    }

    /// The index of a message. Its sign bit stays clear.
    pub fn to_index(&self, cycle: i32, sequence: u64) -> Result<i64> {
        self.to_shifted_index(self.shift(), cycle, sequence)
    }

    #[expect(clippy::inline_always, reason = "once a message: a call costs 2 %")]
    #[inline(always)]
    fn to_shifted_index(&self, shift: u32, cycle: i32, sequence: u64) -> Result<i64> {
        // A negative cycle is greater than any.
        if u64::from(cycle.cast_unsigned()) > highest_cycle(shift) || sequence >> shift != 0 {
            return Err(self.out_of_range(cycle, sequence));
        }
        Ok((i64::from(cycle) << shift) + sequence.cast_signed())
    }

    #[cold]
    fn out_of_range(&self, cycle: i32, sequence: u64) -> Error {
        let (last, most) = (highest_cycle(self.shift()), self.sequence_mask());
        Error::IndexOutOfRange(format!(
            "cycle={cycle} sequence={sequence} max_cycle={last} max_sequence={most} roll_cycle={}",
            self.name
        ))
    }

    /// Cycle and sequence of an index.
    pub fn split(&self, index: i64) -> Result<(i32, u64)> {
        let cycle = i32::try_from(index >> self.shift()).ok().filter(|cycle| *cycle >= 0);
        let cycle = cycle.ok_or_else(|| {
            Error::IndexOutOfRange(format!("index={index:#x} roll_cycle={}", self.name))
        })?;
        Ok((cycle, index.cast_unsigned() & self.sequence_mask()))
    }

    /// The cycle that this instant falls into. Divides toward zero, as Java does.
    #[inline]
    pub fn cycle_at(&self, time_ms: i64, epoch_ms: i64) -> Result<i32> {
        let cycle = time_ms.saturating_sub(epoch_ms) / self.length_ms;
        i32::try_from(cycle).ok().filter(|cycle| *cycle >= 0).ok_or_else(|| {
            let name = &self.name;
            Error::IndexOutOfRange(format!(
                "no cycle at this time: time_ms={time_ms} epoch_ms={epoch_ms} cycle={cycle} \
                 roll_cycle={name}"
            ))
        })
    }

    /// The milliseconds of a cycle.
    #[must_use]
    pub fn span_of(&self, cycle: i32, epoch_ms: i64) -> Range<i64> {
        let start = (i64::from(cycle) * self.length_ms).saturating_add(epoch_ms);
        start..start.saturating_add(self.length_ms)
    }

    /// The name of a cycle's file, with its suffix.
    pub fn file_name(&self, cycle: i32, epoch_ms: i64) -> Result<String> {
        let ms = i64::from(cycle) * self.length_ms + whole_days(epoch_ms);
        let instant = Timestamp::from_millisecond(ms).ok().filter(|_| cycle >= 0);
        let instant = instant.ok_or_else(|| {
            Error::IndexOutOfRange(format!("cycle={cycle} has no file roll_cycle={}", self.name))
        })?;
        let at = instant.to_zoned(TimeZone::UTC).datetime();
        // Chronicle's weeks start on a Sunday: the ISO week is that of the day after.
        let week = at.date().saturating_add(Span::new().days(1)).iso_week_date();
        let mut name = String::new();
        for token in tokens(&self.pattern) {
            let _ = match token {
                Token::Text(text) => name.write_str(text),
                Token::Number('y', width) => write!(name, "{:0width$}", at.year()),
                Token::Number('M', width) => write!(name, "{:0width$}", at.month()),
                Token::Number('d', width) => write!(name, "{:0width$}", at.day()),
                Token::Number('D', width) => write!(name, "{:0width$}", at.day_of_year()),
                Token::Number('H', width) => write!(name, "{:0width$}", at.hour()),
                Token::Number('m', width) => write!(name, "{:0width$}", at.minute()),
                Token::Number('Y', width) => write!(name, "{:0width$}", week.year()),
                Token::Number('w', width) => write!(name, "{:0width$}", week.week()),
                Token::Number(_, width) => write!(name, "{:0width$}", at.second()),
            };
        }
        Ok(name + SUFFIX)
    }

    /// The cycle whose file, or compressed file, has this name, suffix included; None if it does
    /// not follow the pattern.
    #[must_use]
    pub fn cycle_of_file(&self, name: &str, epoch_ms: i64) -> Option<i32> {
        let mut rest = name.strip_suffix(COMPRESSED).unwrap_or(name).strip_suffix(SUFFIX)?;
        let mut fields = Fields::default();
        for token in tokens(&self.pattern) {
            match token {
                Token::Text(text) => rest = rest.strip_prefix(text)?,
                Token::Number(letter, width) => {
                    let (digits, after) = rest.split_at_checked(width)?;
                    fields.set(letter, digits)?;
                    rest = after;
                }
            }
        }
        if !rest.is_empty() {
            return None;
        }
        let ms = fields.to_ms()? - whole_days(epoch_ms);
        i32::try_from(ms.div_euclid(self.length_ms)).ok()
    }
}

/// Whether a file name ends as those of roll files and of compressed ones do.
#[must_use]
pub fn is_roll_file_name(name: &str) -> bool {
    name.strip_suffix(COMPRESSED).unwrap_or(name).ends_with(SUFFIX)
}

/// The part of an epoch that shifts file names: whole days, rounded as in Java.
fn whole_days(epoch_ms: i64) -> i64 {
    if epoch_ms >= 0 {
        epoch_ms - epoch_ms % DAY_MS
    } else if epoch_ms % DAY_MS == 0 {
        epoch_ms
    } else {
        -DAY_MS
    }
}

enum Token<'a> {
    Text(&'a str),
    Number(char, usize),
}

/// Splits a pattern into numbers (runs of one letter) and text (in quotes, or other characters).
fn tokens(pattern: &str) -> impl Iterator<Item = Token<'_>> {
    let mut rest = pattern;
    std::iter::from_fn(move || {
        let first = rest.chars().next()?;
        let (token, used) = if let Some(quoted) = rest.strip_prefix('\'') {
            let text = quoted.split('\'').next().unwrap_or(quoted);
            (Token::Text(text), text.len() + 2)
        } else if first.is_ascii_alphabetic() {
            let width = rest.chars().take_while(|c| *c == first).count();
            (Token::Number(first, width), width)
        } else {
            (Token::Text(&rest[..first.len_utf8()]), first.len_utf8())
        };
        rest = rest.get(used..).unwrap_or_default();
        Some(token)
    })
}

/// The numbers found in a file name.
#[derive(Default)]
struct Fields {
    year: Option<i16>,
    month: i8,
    day: i8,
    day_of_year: Option<i16>,
    hour: i8,
    minute: i8,
    second: i8,
    week_year: Option<i16>,
    week: i8,
}

impl Fields {
    fn set(&mut self, letter: char, digits: &str) -> Option<()> {
        if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let number: i16 = digits.parse().ok()?;
        let small = i8::try_from(number);
        match letter {
            'y' => self.year = Some(number),
            'Y' => self.week_year = Some(number),
            'D' => self.day_of_year = Some(number),
            'M' => self.month = small.ok()?,
            'd' => self.day = small.ok()?,
            'H' => self.hour = small.ok()?,
            'm' => self.minute = small.ok()?,
            's' => self.second = small.ok()?,
            'w' => self.week = small.ok()?,
            _ => return None,
        }
        Some(())
    }

    fn date_in(&self, year: i16) -> Option<Date> {
        match self.day_of_year {
            Some(day) => Date::new(year, 1, 1).ok()?.with().day_of_year(day).build().ok(),
            None => Date::new(year, self.month, self.day).ok(),
        }
    }

    fn to_ms(&self) -> Option<i64> {
        let date = match (self.year, self.week_year) {
            (Some(year), _) => self.date_in(year)?,
            // Saturday, the last day of Chronicle's week: exactly one cycle starts in the seven
            // days up to it.
            (None, Some(year)) => ISOWeekDate::new(year, self.week, Weekday::Saturday).ok()?.date(),
            _ => return None,
        };
        let time = Time::new(self.hour, self.minute, self.second, 0).ok()?;
        let zoned = date.to_datetime(time).to_zoned(TimeZone::UTC).ok()?;
        Some(zoned.timestamp().as_millisecond())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW_MS: i64 = 1_700_000_000_000;

    fn named(name: &str) -> &'static RollCycle {
        RollCycle::by_name(name).unwrap()
    }

    #[test]
    fn names_at_an_instant_are_those_of_the_table() {
        let cases = [
            ("FAST_DAILY", 0, 19_675, "20231114F.cq4"),
            ("FAST_DAILY", 25_200_000, 19_675, "20231114F.cq4"),
            ("FAST_DAILY", 82_800_000, 19_674, "20231113F.cq4"),
            ("FAST_DAILY", 100 * DAY_MS + 25_200_000, 19_575, "20231114F.cq4"),
            ("FAST_DAILY", -25_200_000, 19_676, "20231114F.cq4"),
            ("FAST_HOURLY", 1_800_000, 472_221, "20231114-21F.cq4"),
            ("TWO_HOURLY", 3_600_000, 236_110, "20231114-20II.cq4"),
            ("TEST_SECONDLY", 0, 1_700_000_000, "20231114-221320T.cq4"),
            ("FIVE_MINUTELY", 0, 5_666_666, "20231114-2210V.cq4"),
            ("WEEKLY", 259_200_000, 2_810, "2023W46.cq4"),
        ];
        for (name, epoch, cycle, file) in cases {
            let roll = named(name);
            assert_eq!(roll.cycle_at(NOW_MS, epoch).unwrap(), cycle, "{name} {epoch}");
            assert_eq!(roll.file_name(cycle, epoch).unwrap(), file);
            assert_eq!(roll.cycle_of_file(file, epoch), Some(cycle));
        }
    }

    #[test]
    fn every_pattern_reads_back_what_it_writes() {
        for roll in &ALL {
            let epoch = roll.default_epoch_ms;
            for cycle in [0, 1, 100, roll.cycle_at(NOW_MS, epoch).unwrap()] {
                let file = roll.file_name(cycle, epoch).unwrap();
                assert_eq!(roll.cycle_of_file(&file, epoch), Some(cycle), "{file}");
            }
            let cycle = roll.cycle_at(NOW_MS, epoch).unwrap();
            let now = roll.file_name(cycle, epoch).unwrap();
            assert_eq!(RollCycle::by_file_name(&now), Some(roll));
        }
    }

    #[test]
    fn names_that_do_not_follow_the_pattern_are_refused() {
        for file in ["20231114.cq4", "2023111F.cq4", "20231314F.cq4", "20231114F", "x.cq4", "é.cq4"]
        {
            assert_eq!(named("FAST_DAILY").cycle_of_file(file, 0), None, "{file}");
        }
    }

    #[test]
    fn an_index_splits_into_what_it_was_made_of() {
        for roll in &ALL {
            let index = roll.to_index(16_000, 7).unwrap();
            assert_eq!(roll.split(index).unwrap(), (16_000, 7));
        }
        assert!(named("HUGE_DAILY_XSPARSE").to_index(32_768, 0).is_err());
        assert!(named("FAST_DAILY").split(-1).is_err());
        assert_eq!(max_messages(8, 1), 64);
        assert_eq!(max_messages(4096, 256), 4_294_967_295);
    }
}
