//! Dates, times and decimals in Java's text form, formatted directly from the integers of columns.

use crate::arrow::schema::Unit;
use crate::codes::{DATE, DATE_TIME, TIME, ZONED_DATE_TIME};
use crate::out::Out;
use crate::temporal::Date;
use crate::writer;

const SECONDS_OF_DAY: i64 = 86_400;

/// Enough for the longest of these texts.
struct Text {
    bytes: [u8; 48],
    length: usize,
}

impl Text {
    const fn new() -> Self {
        Self { bytes: [0; 48], length: 0 }
    }

    #[inline]
    fn push(&mut self, letter: u8) {
        if let Some(place) = self.bytes.get_mut(self.length) {
            *place = letter;
            self.length += 1;
        }
    }

    /// The last digits of a number, this many.
    #[inline]
    fn digits(&mut self, number: u32, count: u32) {
        for place in (0..count).rev() {
            self.push(b'0' + (number / 10_u32.pow(place) % 10).to_le_bytes()[0]);
        }
    }

    fn date(&mut self, days: i64) {
        let Date { year, month, day } = Date::of_epoch_day(days);
        if year < 0 {
            self.push(b'-');
        } else if year > 9999 {
            self.push(b'+');
        }
        let year = year.unsigned_abs();
        self.digits(year, year.checked_ilog10().map_or(4, |log| (log + 1).max(4)));
        self.push(b'-');
        self.digits(month.into(), 2);
        self.push(b'-');
        self.digits(day.into(), 2);
    }

    /// Seconds are omitted if zero; fractions have 3, 6 or 9 digits.
    fn time(&mut self, second: u32, nanos: u32) {
        self.digits(second / 3600, 2);
        self.push(b':');
        self.digits(second / 60 % 60, 2);
        if second.is_multiple_of(60) && nanos == 0 {
            return;
        }
        self.push(b':');
        self.digits(second % 60, 2);
        if nanos > 0 {
            self.push(b'.');
            match nanos {
                it if it % 1_000_000 == 0 => self.digits(it / 1_000_000, 3),
                it if it % 1_000 == 0 => self.digits(it / 1_000, 6),
                it => self.digits(it, 9),
            }
        }
    }

    fn put(&self, out: &mut Out, code: u8) {
        let text = self.bytes.get(..self.length).unwrap_or_default();
        writer::put_temporal(out, code, std::str::from_utf8(text).unwrap_or_default());
    }
}

/// Appends a date.
pub fn put_date(out: &mut Out, days: i64) {
    let mut text = Text::new();
    text.date(days);
    text.put(out, DATE);
}

pub fn put_time(out: &mut Out, count: i64, unit: Unit) {
    let mut text = Text::new();
    let (second, nanos) = split(count, unit);
    text.time(within_day(second), nanos);
    text.put(out, TIME);
}

/// Appends a date and time, in UTC or without a zone.
pub fn put_timestamp(out: &mut Out, count: i64, unit: Unit, has_zone: bool) {
    let mut text = Text::new();
    let (second, nanos) = split(count, unit);
    text.date(second.div_euclid(SECONDS_OF_DAY));
    text.push(b'T');
    text.time(within_day(second), nanos);
    if has_zone {
        text.push(b'Z');
    }
    text.put(out, if has_zone { ZONED_DATE_TIME } else { DATE_TIME });
}

fn split(count: i64, unit: Unit) -> (i64, u32) {
    let per_second = unit.per_second();
    let part = count.rem_euclid(per_second) * (Unit::Nano.per_second() / per_second);
    (count.div_euclid(per_second), u32::try_from(part).unwrap_or(0))
}

fn within_day(second: i64) -> u32 {
    u32::try_from(second.rem_euclid(SECONDS_OF_DAY)).unwrap_or(0)
}

/// Appends a decimal, with an exponent where Java's `BigDecimal` and Python's
/// `Decimal` use one.
pub fn put_decimal(out: &mut Out, value: i128, scale: u8) {
    use std::fmt::Write;
    /// Numbers below a millionth have an exponent.
    const ZEROS_MAX: i32 = 6;
    let digits = value.unsigned_abs().to_string();
    let mut text = String::with_capacity(48);
    if value < 0 {
        text.push('-');
    }
    let scale_of = usize::from(scale);
    let exponent = i32::try_from(digits.len()).unwrap_or(0) - 1 - i32::from(scale);
    if scale == 0 {
        text.push_str(&digits);
    } else if exponent < -ZEROS_MAX {
        let (first, rest) = digits.split_at(1);
        let point = if rest.is_empty() { "" } else { "." };
        let _ = write!(text, "{first}{point}{rest}E{exponent}");
    } else if digits.len() > scale_of {
        let (whole, fraction) = digits.split_at(digits.len() - scale_of);
        let _ = write!(text, "{whole}.{fraction}");
    } else {
        let _ = write!(text, "0.{digits:0>scale_of$}");
    }
    writer::put_text(out, &text);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(put: impl FnOnce(&mut Out), head: usize) -> String {
        let mut out = Out::new();
        put(&mut out);
        String::from_utf8(out.finish().unwrap().split_off(head)).unwrap()
    }

    #[test]
    fn moments_are_shown_as_java_does() {
        for (count, unit, shown) in [
            (0, Unit::Second, "1970-01-01T00:00Z"),
            (-1, Unit::Nano, "1969-12-31T23:59:59.999999999Z"),
            (1_500, Unit::Milli, "1970-01-01T00:00:01.500Z"),
            (951_782_460_000_001, Unit::Micro, "2000-02-29T00:01:00.000001Z"),
            (253_402_300_800, Unit::Second, "+10000-01-01T00:00Z"),
            (-62_198_755_200, Unit::Second, "-0001-01-01T00:00Z"),
        ] {
            assert_eq!(text(|out| put_timestamp(out, count, unit, true), 2), shown);
        }
        let first = text(|out| put_timestamp(out, i64::MIN, Unit::Second, false), 2);
        assert!(first.starts_with("-1916532935-"), "{first}");
        assert_eq!(text(|out| put_time(out, 3_723_000, Unit::Milli), 2), "01:02:03");
        assert_eq!(text(|out| put_date(out, -719_529), 2), "-0001-12-31");
    }

    #[test]
    fn decimals_are_shown_as_java_does() {
        for (value, scale, shown) in [
            (150, 2, "1.50"),
            (-5, 2, "-0.05"),
            (0, 0, "0"),
            (0, 6, "0.000000"),
            (0, 7, "0E-7"),
            (123, 9, "1.23E-7"),
            (1, 6, "0.000001"),
            (-12_345, 0, "-12345"),
        ] {
            assert_eq!(text(|out| put_decimal(out, value, scale), 1), shown);
        }
    }
}
