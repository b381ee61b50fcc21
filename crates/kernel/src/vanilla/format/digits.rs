//! Numbers in decimal digits, without an exponent, as the `Bytes` of Java's Chronicle 3 write and
//! read them.
//!
//! A float becomes the leading digits of the midpoint between it and the next greater float: the
//! fewest that Java's reader converts back to it. That reader is a little off for some digits, so
//! these are at times one more than the shortest. Where Java's writer loses precision itself, far
//! from 1, Quire writes the shortest digits.

use std::fmt::Write;

/// From here up floats are whole numbers.
const WHOLE_FROM: f64 = 9_007_199_254_740_992.0;
/// Below this, whole numbers are written as 64-bit integers.
const WHOLE_BELOW: f64 = 9_223_372_036_854_775_808.0;
/// The fraction of floats from here up fits 128 bits: 2 to the power of -70.
const EXACT_FROM: f64 = 8.470_329_472_543_003e-22;
/// Java's reader keeps the digits in 63 bits.
const MOST_DIGITS: u64 = 900_000_000_000_000_000;
/// Digits after the point that a rounded float may have.
pub const MOST_DECIMALS: u32 = 18;

/// A float in as many digits as identify it; Java's digits if they do.
#[must_use]
pub fn float(value: f64) -> String {
    if value.is_nan() {
        return "NaN".into();
    }
    let sign = if value.is_sign_negative() { "-" } else { "" };
    let size = value.abs();
    if size.is_infinite() {
        return format!("{sign}Infinity");
    }
    let exact = exact(size).filter(|text| text.parse() == Ok(size));
    format!("{sign}{}", exact.unwrap_or_else(|| size.to_string()))
}

/// A positive float as Java writes it, if that is lossless.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a whole number of 64 bits
fn exact(size: f64) -> Option<String> {
    if (WHOLE_FROM..WHOLE_BELOW).contains(&size) {
        return Some((size as u64).to_string());
    }
    if !(EXACT_FROM..WHOLE_FROM).contains(&size) {
        return None;
    }
    let bits = size.to_bits();
    let mantissa = u128::from(bits & ((1 << 52) - 1) | 1 << 52);
    let shift = u32::try_from(1075 - (bits >> 52)).ok()?;
    let (whole, part) = (mantissa >> shift, mantissa & ((1 << shift) - 1));
    let mut text = whole.to_string();
    if part > 0 {
        text.push('.');
        // The midpoint to the next float, in half units of the mantissa; its distance is one half
        // unit.
        put_decimals(&mut text, u64::try_from(whole).ok()?, part * 2 + 1, shift + 1, size)?;
    }
    Some(text)
}

/// Appends the digits of a fraction of `bits` bits until Java's reader takes them for `size`.
fn put_decimals(text: &mut String, whole: u64, mut part: u128, bits: u32, size: f64) -> Option<()> {
    let (mut digits, mut decimals, mut distance) = (whole, 0, 1);
    while part > distance {
        if digits > MOST_DIGITS / 10 {
            return None;
        }
        part *= 10;
        distance *= 10;
        let digit = u64::try_from(part >> bits).ok()?;
        part &= (1 << bits) - 1;
        digits = digits * 10 + digit;
        decimals += 1;
        let _ = write!(text, "{digit}");
        #[allow(clippy::float_cmp)] // whether it is the same number is the question
        if read_by_java(digits, decimals) == size {
            break;
        }
    }
    Some(())
}

/// The float that Java's reader computes from digits: it divides them, in 63 bits, by ten for each
/// decimal, and carries part of the remainder.
#[allow(clippy::cast_precision_loss)] // as in Java
fn read_by_java(digits: u64, decimals: u32) -> f64 {
    const MOST: u64 = i64::MAX as u64;
    let (mut value, mut exponent) = (digits, 0);
    let mut scale = |value: &mut u64, shifts: &[u32]| {
        let mut weight = 1;
        for shift in shifts {
            if *value < MOST >> shift {
                *value <<= shift;
                weight <<= shift;
                exponent -= shift.cast_signed();
            }
        }
        weight
    };
    if decimals > 0 && value < MOST / 2 {
        let _: u64 = scale(&mut value, &[32, 16, 8, 4, 2, 1]);
    }
    for left in (0..decimals).rev() {
        let rest = value % 5;
        value /= 5;
        let weight = scale(&mut value, &[4, 2, 1]);
        let rounding = if left == 0 { 4 } else { 0 };
        value += (weight * rest + rounding) / 5;
    }
    value as f64 * 2_f64.powi(exponent - decimals.cast_signed())
}

/// A float rounded to at most `decimals` digits after the point, without zeros at its end; Java
/// rounds the product with a power of ten.
#[must_use]
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
pub fn rounded(value: f64, decimals: u32) -> String {
    let power = 10_u64.pow(decimals.min(MOST_DECIMALS));
    let scaled = value.abs() * power as f64;
    if scaled.is_nan() || scaled >= WHOLE_BELOW {
        return float(value); // not a number, or too large for 64 bits
    }
    let sign = if value < 0.0 { "-" } else { "" };
    let units = (scaled + 0.5) as u64;
    let (whole, part) = (units / power, units % power);
    if part == 0 {
        return format!("{sign}{whole}");
    }
    let part = format!("{part:0width$}", width = decimals as usize);
    format!("{sign}{whole}.{}", part.trim_end_matches('0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_have_the_digits_of_java() {
        for (value, text) in [
            (0.0, "0"),
            (-0.0, "-0"),
            (1.5, "1.5"),
            (100.0, "100"),
            (0.1 + 0.2, "0.30000000000000007"),
            (0.551_232, "0.5512320000000001"),
            (20.679_340_254_495_58, "20.679340254495583"),
            (1e-7, "0.0000001"),
            (1e7, "10000000"),
            (3_434_302_867_568_906_240.0, "3434302867568906240"),
            (1e22, "10000000000000000000000"),
            (f64::NEG_INFINITY, "-Infinity"),
            (f64::NAN, "NaN"),
        ] {
            assert_eq!(float(value), text);
        }
    }

    #[test]
    fn digits_are_of_one_number() {
        let mut bits = 1_u64;
        for _ in 0..100_000 {
            bits = bits
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let value = f64::from_bits(bits);
            if value.is_finite() {
                let text = float(value);
                assert_eq!(text.parse::<f64>().map(f64::to_bits), Ok(bits), "{text}");
            }
        }
        for value in [f64::MAX, f64::MIN_POSITIVE, f64::from_bits(1)] {
            assert_eq!(float(value).parse(), Ok(value));
        }
    }

    #[test]
    fn floats_are_rounded_as_java_rounds() {
        for (value, decimals, text) in [
            (1.5, 2, "1.5"),
            (1.005, 2, "1"),
            (-0.004, 2, "-0"),
            (123.456, 1, "123.5"),
            (0.125, 2, "0.13"),
            (2.5, 0, "3"),
            (10.10, 2, "10.1"),
            (0.05, 1, "0.1"),
            (12.05, 3, "12.05"),
            (1e18, 3, "1000000000000000000"),
            (2.718_25, 18, "2.71825"),
            (f64::INFINITY, 1, "Infinity"),
            (f64::NAN, 1, "NaN"),
        ] {
            assert_eq!(rounded(value, decimals), text);
        }
    }
}
