//! Cycles: how long one is, and which directory it has.
//!
//! A directory is named by the start of its cycle in a pattern of Java's `SimpleDateFormat`. Only
//! the letters that distinguish cycles are known: `y M d D H m s`. A name belongs to the cycle
//! whose start formats to it, so that no zone or odd length can lead to the preceding cycle.

use std::ops::Range;

use jiff::tz::TimeZone;
use jiff::{Timestamp, civil};

/// Milliseconds of a day.
pub const DAY_MS: i64 = 86_400_000;

/// A named length: pattern, milliseconds, bits of the sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NamedCycle {
    /// Java's name.
    pub name: &'static str,
    /// Pattern of the directories.
    pub pattern: &'static str,
    /// Milliseconds.
    pub length_ms: i64,
    /// Bits of the sequence in an index.
    pub sequence_bits: u32,
}

/// The cycles of Java 3.6.4, and the weekly one of releases up to 3.4.4.
pub const NAMED: [NamedCycle; 5] = [
    named("DAYS", "yyyyMMdd", DAY_MS, 40),
    named("HOURS", "yyyyMMddHH", 3_600_000, 40),
    named("MINUTES", "yyyyMMddHHmm", 60_000, 34),
    named("SECONDS", "yyyyMMddHHmmss", 1_000, 28),
    named("WEEKS", "yyyyMMdd", 7 * DAY_MS, 40),
];

const fn named(
    name: &'static str,
    pattern: &'static str,
    length_ms: i64,
    sequence_bits: u32,
) -> NamedCycle {
    NamedCycle { name, pattern, length_ms, sequence_bits }
}

/// The named cycle with Java's name.
#[must_use]
pub fn by_name(name: &str) -> Option<NamedCycle> {
    NAMED.into_iter().find(|known| known.name == name)
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Field(u8, usize),
    Text(String),
}

/// Length and directory names of cycles.
#[derive(Clone, Debug)]
pub struct CycleFormat {
    pattern: String,
    parts: Vec<Part>,
    length_ms: i64,
    zone: TimeZone,
}

impl CycleFormat {
    /// The error is why the pattern cannot be used.
    pub fn new(pattern: &str, length_ms: i64, zone: TimeZone) -> Result<Self, String> {
        if length_ms < 1 {
            return Err(format!(
                "the length of a cycle must be positive: cycle_length_ms={length_ms}"
            ));
        }
        let parts = parts(pattern)?;
        let format = Self { pattern: pattern.to_owned(), parts, length_ms, zone };
        format.check()?;
        Ok(format)
    }

    /// The pattern.
    #[must_use]
    pub fn pattern(&self) -> &str {
        &self.pattern
    }

    /// The zone that directories are named in.
    #[must_use]
    pub const fn zone(&self) -> &TimeZone {
        &self.zone
    }

    /// Milliseconds of a cycle.
    #[must_use]
    pub const fn length_ms(&self) -> i64 {
        self.length_ms
    }

    /// The depth of a cycle's directory below the queue's.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.pattern.matches('/').count() + 1
    }

    /// The cycle of a time in epoch milliseconds; None if its number is out of range.
    #[must_use]
    pub fn cycle_at(&self, now_ms: i64) -> Option<i32> {
        i32::try_from(now_ms.div_euclid(self.length_ms)).ok().filter(|cycle| *cycle >= 0)
    }

    /// The times of a cycle, in epoch milliseconds.
    #[must_use]
    pub fn times(&self, cycle: i32) -> Range<i64> {
        let start = self.start_ms(cycle);
        start..start.saturating_add(self.length_ms)
    }

    /// Where a cycle starts, in epoch milliseconds.
    #[must_use]
    pub fn start_ms(&self, cycle: i32) -> i64 {
        i64::from(cycle).saturating_mul(self.length_ms)
    }

    /// The path of a cycle's directory below that of the queue; None after the year 9999.
    #[must_use]
    pub fn name(&self, cycle: i32) -> Option<String> {
        use std::fmt::Write;
        let start = Timestamp::from_millisecond(self.start_ms(cycle)).ok()?;
        let time = start.to_zoned(self.zone.clone()).datetime();
        let mut name = String::with_capacity(self.pattern.len());
        for part in &self.parts {
            match part {
                Part::Text(text) => name.push_str(text),
                Part::Field(letter, width) => {
                    let value = field(time, *letter);
                    let _ = write!(name, "{value:0width$}");
                }
            }
        }
        Some(name)
    }

    /// The cycle whose directory has this path below that of the queue.
    #[must_use]
    pub fn cycle_of(&self, name: &str) -> Option<i32> {
        let time = self.parse(name)?;
        let start = time.to_zoned(self.zone.clone()).ok()?.timestamp().as_millisecond();
        let near = i32::try_from(start.div_euclid(self.length_ms)).ok()?;
        let candidates = [near, near.checked_add(1)?, near.checked_sub(1)?];
        candidates.into_iter().find(|it| *it >= 0 && self.name(*it).as_deref() == Some(name))
    }

    fn parse(&self, name: &str) -> Option<civil::DateTime> {
        let mut rest = name;
        let (mut year, mut month, mut day, mut day_of_year) = (1970, 1, 1, None);
        let mut time = [0_i8; 3];
        for part in &self.parts {
            match part {
                Part::Text(text) => rest = rest.strip_prefix(text.as_str())?,
                Part::Field(letter, width) => {
                    let (digits, after) = rest.split_at_checked(*width)?;
                    let value: i16 = digits
                        .bytes()
                        .all(|it| it.is_ascii_digit())
                        .then(|| digits.parse().ok())??;
                    let small = i8::try_from(value);
                    match letter {
                        b'y' => year = value,
                        b'M' => month = small.ok()?,
                        b'd' => day = small.ok()?,
                        b'D' => day_of_year = Some(value),
                        b'H' => time[0] = small.ok()?,
                        b'm' => time[1] = small.ok()?,
                        _ => time[2] = small.ok()?,
                    }
                    rest = after;
                }
            }
        }
        let date = match day_of_year {
            None => civil::Date::new(year, month, day).ok()?,
            Some(day) => civil::Date::new(year, 1, 1).ok()?.with().day_of_year(day).build().ok()?,
        };
        let time = civil::Time::new(time[0], time[1], time[2], 0).ok()?;
        rest.is_empty().then(|| date.to_datetime(time))
    }

    /// An error if two consecutive cycles share a directory.
    fn check(&self) -> Result<(), String> {
        let names = [16_000, 16_001].map(|day: i64| {
            let cycle = i32::try_from(day * DAY_MS / self.length_ms).unwrap_or(0);
            (self.name(cycle), self.name(cycle.saturating_add(1)))
        });
        if names.iter().any(|(one, next)| one == next) {
            let (pattern, length) = (&self.pattern, self.length_ms);
            return Err(format!(
                "the pattern gives two cycles one directory: cycle_format={pattern:?} \
                 cycle_length_ms={length}"
            ));
        }
        Ok(())
    }
}

fn field(time: civil::DateTime, letter: u8) -> i16 {
    match letter {
        b'y' => time.year(),
        b'M' => i16::from(time.month()),
        b'd' => i16::from(time.day()),
        b'D' => time.day_of_year(),
        b'H' => i16::from(time.hour()),
        b'm' => i16::from(time.minute()),
        _ => i16::from(time.second()),
    }
}

/// The fields of a pattern, and the text between them.
fn parts(pattern: &str) -> Result<Vec<Part>, String> {
    let refused = |why: String| format!("{why}: cycle_format={pattern:?}");
    let mut parts: Vec<Part> = Vec::new();
    let mut is_quoted = false;
    for letter in pattern.chars() {
        match letter {
            '\'' => is_quoted = !is_quoted,
            'y' | 'M' | 'd' | 'D' | 'H' | 'm' | 's' if !is_quoted => match parts.last_mut() {
                Some(Part::Field(last, width)) if char::from(*last) == letter => *width += 1,
                _ => parts.push(Part::Field(u8::try_from(letter).unwrap_or_default(), 1)),
            },
            _ if letter.is_ascii_alphabetic() && !is_quoted => {
                return Err(refused(unknown_letter(letter)));
            }
            _ => match parts.last_mut() {
                Some(Part::Text(text)) => text.push(letter),
                _ => parts.push(Part::Text(letter.to_string())),
            },
        }
    }
    let is_wide = |part: &Part| match part {
        Part::Field(b'y', width) => *width == 4,
        Part::Field(b'D', width) => *width == 3,
        Part::Field(_, width) => *width == 2,
        Part::Text(_) => true,
    };
    if !parts.iter().all(is_wide) {
        return Err(refused("only yyyy, MM, dd, DDD, HH, mm and ss are supported".to_owned()));
    }
    let is_plain = pattern.split('/').all(|name| !name.is_empty() && !name.starts_with('.'));
    if pattern.is_empty() || is_quoted || !is_plain || pattern.contains('\0') {
        return Err(refused("not a path below the queue's directory".to_owned()));
    }
    Ok(parts)
}

fn unknown_letter(letter: char) -> String {
    match letter {
        // Java counts weeks from a day that depends on the locale, and also names 2009-12-31
        // 200901.
        'w' | 'W' | 'Y' => format!(
            "the letter {letter} stands for week numbers, which give two weeks of a year the same \
             name (rename each directory to its cycle's first day, and use roll_cycle='WEEKS')"
        ),
        _ => format!("the letter {letter} names no part of a cycle"),
    }
}

/// The pattern and length that a directory's path looks like; None for a foreign one.
#[must_use]
pub fn guess(name: &str) -> Option<NamedCycleGuess> {
    const LETTERS: [(&str, usize); 6] =
        [("yyyy", 4), ("MM", 2), ("dd", 2), ("HH", 2), ("mm", 2), ("ss", 2)];
    let mut pattern = String::new();
    let (mut rest, mut fields) = (name, 0);
    while let Some(first) = rest.chars().next() {
        if first.is_ascii_digit() {
            let (letters, width) = LETTERS.get(fields)?;
            let (digits, after) = rest.split_at_checked(*width)?;
            if !digits.bytes().all(|it| it.is_ascii_digit()) {
                return None;
            }
            (rest, fields) = (after, fields + 1);
            pattern.push_str(letters);
        } else if matches!(first, '/' | '-' | '_' | '.') {
            pattern.push(first);
            rest = &rest[1..];
        } else {
            return None;
        }
    }
    let known = NAMED[..4].iter().find(|known| known.pattern.len() == 2 * fields + 2)?;
    let cycle = CycleFormat::new(&pattern, known.length_ms, TimeZone::UTC).ok()?.cycle_of(name)?;
    Some(NamedCycleGuess { pattern, named: *known, cycle })
}

/// What [`guess`] found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedCycleGuess {
    /// The pattern with the separators of the path.
    pub pattern: String,
    /// Length and bits.
    pub named: NamedCycle,
    /// The cycle of the path.
    pub cycle: i32,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn format(pattern: &str, length_ms: i64) -> CycleFormat {
        CycleFormat::new(pattern, length_ms, TimeZone::UTC).unwrap()
    }

    #[test]
    fn directories_are_named_as_java_names_them() {
        for (pattern, length_ms, cycle, name) in [
            ("yyyyMMdd", DAY_MS, 16_436, "20150101"),
            ("yyyyMMdd", DAY_MS, 20_778, "20261121"),
            ("yyyyMMddHH", 3_600_000, 400_000, "2015081916"),
            ("yyyyMMddHHmm", 60_000, 24_480_001, "201607180001"),
            ("yyyy/MM/dd", DAY_MS, 17_000, "2016/07/18"),
            ("yyyyMMdd", 7 * DAY_MS, 2_800, "20230831"),
            ("yyyy'd'DDD", DAY_MS, 17_000, "2016d200"),
        ] {
            let format = format(pattern, length_ms);
            assert_eq!(format.name(cycle).as_deref(), Some(name));
            assert_eq!(format.cycle_of(name), Some(cycle), "{name}");
        }
    }

    #[test]
    fn a_directory_named_by_the_local_date_belongs_to_the_cycle_it_is_of() {
        let zone = TimeZone::fixed(jiff::tz::offset(-5));
        let format = CycleFormat::new("yyyyMMdd", DAY_MS, zone).unwrap();
        assert_eq!(format.name(17_000).as_deref(), Some("20160717"));
        assert_eq!(format.cycle_of("20160717"), Some(17_000));
    }

    #[test]
    fn foreign_directories_have_no_cycle() {
        let daily = format("yyyyMMdd", DAY_MS);
        for name in ["", "2015010", "201501011", "20151301", "20150230", "2015010a", "lost+found"] {
            assert_eq!(daily.cycle_of(name), None, "{name}");
        }
        assert_eq!(format("yyyyMMdd", 7 * DAY_MS).cycle_of("20230830"), None);
        assert_eq!(daily.cycle_of("19691231"), None);
    }

    #[test]
    fn patterns_that_cannot_work_are_refused() {
        let refused =
            ["", "yyyyww", "/yyyyMMdd", "yyyy//MM", "../yyyyMMdd", "yyMMdd", "yyyyMM", "'yyyyMMdd"];
        for pattern in refused {
            assert!(CycleFormat::new(pattern, DAY_MS, TimeZone::UTC).is_err(), "{pattern}");
        }
        assert!(CycleFormat::new("yyyyMMdd", 0, TimeZone::UTC).is_err());
    }

    #[test]
    fn a_path_shows_its_pattern() {
        for (name, pattern, length) in [
            ("20150101", "yyyyMMdd", "DAYS"),
            ("2016/07/18", "yyyy/MM/dd", "DAYS"),
            ("2016-07-18_13", "yyyy-MM-dd_HH", "HOURS"),
            ("20160718000102", "yyyyMMddHHmmss", "SECONDS"),
        ] {
            let guessed = guess(name).unwrap();
            assert_eq!((guessed.pattern.as_str(), guessed.named.name), (pattern, length));
        }
        for name in ["", "201507", "99999999", "data", "2016/07", "tailers"] {
            assert_eq!(guess(name), None, "{name}");
        }
    }
}
