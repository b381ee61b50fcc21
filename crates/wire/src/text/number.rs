//! Numbers in the decimal forms of Java's text wire (`docs/format.md` §8.9).

use std::fmt::Write;

use crate::number::java_f64;

/// Floats from here up use scientific notation.
const SCIENTIFIC_FROM: f64 = 1e15;
/// So do floats below this one.
const SCIENTIFIC_BELOW: f64 = 1e-7;
/// Floats below are scaled to a factor and a power of ten, with nine digits after the point.
const SCALED_BELOW: f64 = 1e-3;
/// After this many decimals, the shortest string that round-trips is used.
const DECIMALS_MAX: usize = 18;
/// The two-digit numbers from 00 to 99.
const PAIRS: &str = "00010203040506070809101112131415161718192021222324252627282930313233343536373839\
                     40414243444546474849505152535455565758596061626364656667686970717273747576777879\
                     8081828384858687888990919293949596979899";
/// Further digits exceed the precision of a float.
const MANTISSA_MAX: f64 = 1e15;

#[inline]
pub fn put_int(out: &mut String, value: i64) {
    if value < 0 {
        out.push('-');
    }
    put_digits(out, value.unsigned_abs(), 1);
}

/// Appends a number, padded with zeros to a minimum number of digits.
fn put_digits(out: &mut String, number: u64, least: usize) {
    if number >= 100 || least > 2 {
        put_digits(out, number / 100, least.saturating_sub(2));
    }
    let digits = &PAIRS[usize::from((number % 100).to_le_bytes()[0]) * 2..][..2];
    out.push_str(if number < 10 && least < 2 { &digits[1..] } else { digits });
}

/// Appends an integer as hexadecimal.
pub fn put_hex(out: &mut String, value: i64) {
    let _ = write!(out, "{value:#x}");
}

#[allow(clippy::cast_possible_truncation, clippy::float_cmp)] // compared to see what was lost
pub fn put_f64(out: &mut String, value: f64) {
    let size = value.abs();
    if !(size == 0.0 || (SCIENTIFIC_BELOW..SCIENTIFIC_FROM).contains(&size)) {
        return out.push_str(&java_f64(value));
    }
    let counted_in = |unit: f64| f64::from((size / unit) as i32) * unit == size && size != 0.0;
    if counted_in(1e6) {
        put_int(out, i64::from((value / 1e6) as i32));
        out.push_str("E6");
    } else if counted_in(1e3) {
        put_int(out, i64::from((value / 1e3) as i32));
        out.push_str("E3");
    } else if size < SCALED_BELOW && size != 0.0 {
        put_scaled(out, value);
    } else {
        put_decimal(out, value);
    }
}

/// Splits a small float into a factor of 1 to 10 and a power of ten.
fn put_scaled(out: &mut String, value: f64) {
    let sevenths = (value * 1e16).round() / 1e9;
    let (by, exponent) = match sevenths.abs() {
        size if size < 1e1 => (1.0, "E-7"),
        size if size < 1e2 => (1e1, "E-6"),
        size if size < 1e3 => (1e2, "E-5"),
        size if size < 1e4 => (1e3, "E-4"),
        _ => (1e4, "E-3"),
    };
    put_decimal(out, sevenths / by);
    out.push_str(exponent);
}

/// The fewest decimals that round-trip.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    clippy::float_cmp
)]
fn put_decimal(out: &mut String, value: f64) {
    if value.is_sign_negative() {
        out.push('-');
    }
    let size = value.abs();
    let mut factor = 1_u64;
    for decimals in 0..=DECIMALS_MAX {
        let mantissa = (size * factor as f64).round();
        if mantissa / factor as f64 == size {
            let (whole, part) = (mantissa as u64 / factor, mantissa as u64 % factor);
            put_digits(out, whole, 1);
            out.push('.');
            return put_digits(out, part, decimals.max(1));
        }
        if mantissa >= MANTISSA_MAX {
            break;
        }
        factor *= 10;
    }
    let _ = write!(out, "{size:?}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_read_as_java_writes_them() {
        for (value, text) in [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (1e3, "1E3"),
            (-40_000.0, "-40E3"),
            (1e6, "1E6"),
            (1e10, "10000E6"),
            (100.0, "100.0"),
            (65_536.0, "65536.0"),
            (123_456_789.0, "123456789.0"),
            (1_099_511_627_776.0, "1099511627776.0"),
            (9.99e-4, "9.99E-4"),
            (1e15, "1.0E15"),
            (-1_125_899_906_842_624.0, "-1.125899906842624E15"),
            (f64::from_bits(1), "4.9E-324"),
            (f64::MAX, "1.7976931348623157E308"),
            (1e-10, "1.0E-10"),
            (f64::from(std::f32::consts::PI), "3.1415927410125732"),
            (123.45, "123.45"),
            (0.001, "0.001"),
            (f64::NEG_INFINITY, "-Infinity"),
            (f64::NAN, "NaN"),
        ] {
            let mut out = String::new();
            put_f64(&mut out, value);
            assert_eq!(out, text, "{value}");
        }
    }

    #[test]
    fn integers_are_plain() {
        for value in [0, -1, 10, i64::MAX, i64::MIN] {
            let mut out = String::new();
            put_int(&mut out, value);
            assert_eq!(out, value.to_string());
        }
        let mut out = String::new();
        put_hex(&mut out, -1);
        assert_eq!(out, "0xffffffffffffffff");
    }
}
