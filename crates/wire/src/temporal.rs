//! Dates and times as text, in the forms of Java's `java.time` classes (`docs/format.md` §8.1).

use crate::codes::{DATE, DATE_TIME, TIME, ZONED_DATE_TIME};

/// A calendar date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Date {
    /// May be outside Python's range.
    pub year: i32,
    /// 1 to 12.
    pub month: u8,
    /// 1 to 31.
    pub day: u8,
}

/// A time of day.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Time {
    /// 0 to 23.
    pub hour: u8,
    /// 0 to 59.
    pub minute: u8,
    /// 0 to 59.
    pub second: u8,
    /// 0 to 999,999,999.
    pub nanos: u32,
}

/// A time zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Zone<'a> {
    /// Seconds east of UTC.
    pub offset_s: i32,
    /// A zone name, such as `Europe/Paris`.
    pub name: Option<&'a str>,
}

/// The parts of a parsed text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp<'a> {
    pub date: Option<Date>,
    pub time: Option<Time>,
    pub zone: Option<Zone<'a>>,
}

impl Stamp<'_> {
    /// The code for this combination of parts.
    #[must_use]
    pub const fn code(&self) -> u8 {
        match (self.date, self.time, self.zone) {
            (_, None, _) => DATE,
            (None, _, _) => TIME,
            (_, _, None) => DATE_TIME,
            _ => ZONED_DATE_TIME,
        }
    }

    /// Nanoseconds since 1970 in UTC; without a zone, as if it were UTC.
    #[must_use]
    pub fn epoch_ns(&self) -> Option<i64> {
        let days = self.date.map_or(0, Date::epoch_day);
        let time = self.time.unwrap_or_default();
        let seconds = days * 86_400 + time.second_of_day()
            - i64::from(self.zone.map_or(0, |zone| zone.offset_s));
        seconds.checked_mul(1_000_000_000)?.checked_add(i64::from(time.nanos))
    }
}

impl Date {
    /// Days since 1970-01-01, in the proleptic Gregorian calendar.
    #[must_use]
    pub fn epoch_day(self) -> i64 {
        // Years that begin in March, so that the leap day is their last.
        let year = i64::from(self.year) - i64::from(self.month <= 2);
        let month = (i64::from(self.month) + 9) % 12;
        let day_of_year = (153 * month + 2) / 5 + i64::from(self.day) - 1;
        let era = year.div_euclid(400);
        let year_of_era = year.rem_euclid(400);
        let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
        era * 146_097 + day_of_era - 719_468
    }

    /// The date this many days after 1970-01-01, clamped to the range of years.
    #[must_use]
    pub fn of_epoch_day(days: i64) -> Self {
        let days = days.clamp(-700_000_000_000, 700_000_000_000) + 719_468;
        let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
        let leap_days = day_of_era / 1_460 - day_of_era / 36_524 + day_of_era / 146_096;
        let year_of_era = (day_of_era - leap_days) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let month = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * month + 2) / 5 + 1;
        let month = if month < 10 { month + 3 } else { month - 9 };
        let year = era * 400 + year_of_era + i64::from(month <= 2);
        let small = |number: i64| u8::try_from(number).unwrap_or(1);
        Self {
            year: i32::try_from(year).unwrap_or(if year < 0 { i32::MIN } else { i32::MAX }),
            month: small(month),
            day: small(day),
        }
    }
}

impl Time {
    /// Whole seconds since midnight.
    #[must_use]
    pub fn second_of_day(self) -> i64 {
        i64::from(self.hour) * 3600 + i64::from(self.minute) * 60 + i64::from(self.second)
    }
}

/// Parses a date, a time, or both, with or without a zone.
#[must_use]
pub fn parse(text: &str) -> Option<Stamp<'_>> {
    let Some((day, rest)) = text.split_once('T') else {
        return match date(text) {
            Some(date) => Some(Stamp { date: Some(date), time: None, zone: None }),
            None => Some(Stamp { date: None, time: Some(time(text)?), zone: None }),
        };
    };
    let (clock, offset) = split_offset(rest);
    let zone = if offset.is_empty() { None } else { Some(zone(offset)?) };
    Some(Stamp { date: Some(date(day)?), time: Some(time(clock)?), zone })
}

/// Parses a time and its zone: `Z` or an offset, and a name in brackets.
#[must_use]
pub fn split_offset(text: &str) -> (&str, &str) {
    text.split_at(text.find(['Z', '+', '-', '[']).unwrap_or(text.len()))
}

fn date(text: &str) -> Option<Date> {
    let (year, rest) = match text.strip_prefix('-') {
        Some(rest) => rest.split_once('-').map(|(year, rest)| (format!("-{year}"), rest))?,
        None => text.split_once('-').map(|(year, rest)| (year.to_owned(), rest))?,
    };
    let (month, day) = rest.split_once('-')?;
    let date = Date { year: year.parse().ok()?, month: two(month)?, day: two(day)? };
    let leap = date.year % 4 == 0 && (date.year % 100 != 0 || date.year % 400 == 0);
    let longest = match date.month {
        2 => 28 + u8::from(leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    (1..=longest).contains(&date.day).then_some(date)
}

fn time(text: &str) -> Option<Time> {
    let (hour, rest) = text.split_once(':')?;
    let (minute, seconds) = rest.split_once(':').unwrap_or((rest, "00"));
    let (second, fraction) = seconds.split_once('.').unwrap_or((seconds, "0"));
    if fraction.is_empty() || fraction.len() > 9 || !fraction.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let nanos = format!("{fraction:0<9}").parse().ok()?;
    let time = Time { hour: two(hour)?, minute: two(minute)?, second: two(second)?, nanos };
    (time.hour < 24 && time.minute < 60 && time.second < 60).then_some(time)
}

fn two(digits: &str) -> Option<u8> {
    let is_two = digits.len() == 2 && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_two.then(|| digits.parse().ok()).flatten()
}

fn zone(text: &str) -> Option<Zone<'_>> {
    let (offset, name) = match text.strip_suffix(']') {
        Some(rest) => rest.split_once('[').map(|(offset, name)| (offset, Some(name)))?,
        None => (text, None),
    };
    Some(Zone { offset_s: offset_seconds(offset)?, name })
}

fn offset_seconds(text: &str) -> Option<i32> {
    let (sign, rest) = match text {
        "Z" | "" => return Some(0),
        text if text.starts_with('-') => (-1, &text[1..]),
        text => (1, text.strip_prefix('+')?),
    };
    let mut seconds = 0;
    for (part, unit) in rest.split(':').zip([3600, 60, 1]) {
        seconds += i32::from(two(part)?) * unit;
    }
    (seconds <= 18 * 3600).then_some(sign * seconds)
}

/// Converts a time from the usual ISO form to Java's: no seconds if they are zero, and fractions of
/// 3, 6 or 9 digits.
#[must_use]
pub fn java_time(iso: &str) -> String {
    let (whole, fraction) = iso.split_once('.').unwrap_or((iso, ""));
    let fraction = fraction.trim_end_matches('0');
    if !fraction.is_empty() {
        let digits = fraction.len().div_ceil(3) * 3;
        return format!("{whole}.{fraction:0<digits$}");
    }
    match whole.strip_suffix(":00") {
        Some(short) if short.len() == 5 => short.to_owned(),
        _ => whole.to_owned(),
    }
}

/// Converts an offset to Java's form: `Z` for zero.
#[must_use]
pub fn java_offset(iso: &str) -> &str {
    if iso == "+00:00" { "Z" } else { iso }
}

/// Formats nanoseconds as Java's `Duration` does, such as `PT25H1M-0.5S`: days become hours.
#[must_use]
pub fn java_duration(nanos: i128) -> String {
    use std::fmt::Write;
    if nanos == 0 {
        return "PT0S".into();
    }
    let seconds = nanos / 1_000_000_000;
    let (hours, minutes, seconds) = (seconds / 3600, seconds % 3600 / 60, seconds % 60);
    let fraction = (nanos % 1_000_000_000).unsigned_abs();
    let mut text = String::from("PT");
    for (value, unit) in [(hours, 'H'), (minutes, 'M')] {
        if value != 0 {
            let _ = write!(text, "{value}{unit}");
        }
    }
    if fraction != 0 {
        let sign = if nanos < 0 && seconds == 0 { "-" } else { "" };
        let digits = format!("{fraction:09}");
        let _ = write!(text, "{sign}{seconds}.{}S", digits.trim_end_matches('0'));
    } else if seconds != 0 {
        let _ = write!(text, "{seconds}S");
    }
    text
}

/// Parses an ISO duration such as `P1DT2H3M4.5S` to microseconds; finer fractions are truncated.
#[must_use]
pub fn parse_duration(text: &str) -> Option<i128> {
    let (sign, rest) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let (days, clock) = match rest.strip_prefix('P')?.split_once('T') {
        Some((_, "")) => return None,
        Some(parts) => parts,
        None => (rest.strip_prefix('P')?, ""),
    };
    if days.is_empty() && clock.is_empty() {
        return None;
    }
    let total = sum(days, &[('D', 86_400)])?
        .checked_add(sum(clock, &[('H', 3600), ('M', 60), ('S', 1)])?)?;
    total.checked_mul(sign)
}

/// Sums numbers with units, which must be in this order.
fn sum(mut text: &str, units: &[(char, i128)]) -> Option<i128> {
    let mut total = 0_i128;
    for (unit, seconds) in units {
        let Some((number, rest)) = text.split_once(*unit) else { continue };
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if !fraction.bytes().all(|byte| byte.is_ascii_digit())
            || (!fraction.is_empty() && *unit != 'S')
        {
            return None;
        }
        let micros: i128 = format!("{fraction:0<6}").get(..6)?.parse().ok()?;
        let micros = if whole.starts_with('-') { -micros } else { micros };
        let part = i128::from(whole.parse::<i64>().ok()?) * *seconds * 1_000_000;
        total = total.checked_add(part)?.checked_add(micros)?;
        text = rest;
    }
    text.is_empty().then_some(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_shown_as_java_does() {
        for (micros, text) in [
            (90_000_000, "PT1M30S"),
            (500_000, "PT0.5S"),
            (-500_000, "PT-0.5S"),
            (-90_500_000, "PT-1M-30.5S"),
            (86_400_000_000, "PT24H"),
            (0, "PT0S"),
        ] {
            assert_eq!(java_duration(micros * 1000), text);
            assert_eq!(parse_duration(text), Some(micros), "{text}");
        }
        assert_eq!(java_duration(-1), "PT-0.000000001S");
        assert_eq!(parse_duration("P1DT1S"), Some(86_401_000_000));
        let longest = 86_400_000_000_i128 * 1_000_000_000 - 1; // of Python
        assert_eq!(java_duration(longest * 1000), "PT23999999999H59M59.999999S");
        assert_eq!(parse_duration("PT23999999999H59M59.999999S"), Some(longest));
        for text in ["", "P", "PT", "1S", "PT1", "PT1S1M", "PxD"] {
            assert_eq!(parse_duration(text), None, "{text}");
        }
    }

    #[test]
    fn a_day_is_found_by_its_number() {
        for day in (-800_000..800_000).step_by(13).chain([-1, 0, 11_016, 2_932_896]) {
            assert_eq!(Date::of_epoch_day(day).epoch_day(), day);
        }
        assert_eq!(Date::of_epoch_day(11_016), Date { year: 2000, month: 2, day: 29 });
    }

    #[test]
    fn times_are_shown_as_java_does() {
        for (iso, java) in [
            ("01:02:00", "01:02"),
            ("01:02:03", "01:02:03"),
            ("01:02:00.500000", "01:02:00.500"),
            ("01:02:03.000001", "01:02:03.000001"),
        ] {
            assert_eq!(java_time(iso), java);
        }
    }

    #[test]
    fn what_is_read_has_the_code_of_its_kind() {
        for (text, code, ns) in [
            ("1970-01-02", DATE, 86_400_000_000_000),
            ("00:00:00.000000007", TIME, 7),
            ("1970-01-01T00:01", DATE_TIME, 60_000_000_000),
            ("1970-01-01T01:00+01:00[Europe/Paris]", ZONED_DATE_TIME, 0),
            ("1969-12-31T23:59:59.999Z", ZONED_DATE_TIME, -1_000_000),
            ("2000-02-29", DATE, 951_782_400_000_000_000),
        ] {
            let stamp = parse(text).unwrap();
            assert_eq!((stamp.code(), stamp.epoch_ns()), (code, Some(ns)), "{text}");
        }
        for text in ["", "1970-02-30", "24:00", "1970-01-01T", "1970-01-01T00:00+1", "1970-1-01"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
