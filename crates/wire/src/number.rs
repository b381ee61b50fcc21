//! Numbers as Java prints them.

/// A float as Java's `Double.toString` prints it: plain from 0.001 to below ten million, otherwise
/// with an exponent, with the fewest digits that identify it.
#[must_use]
pub fn java_f64(value: f64) -> String {
    if value.is_nan() {
        return "NaN".into();
    }
    if value.is_infinite() {
        return if value > 0.0 { "Infinity".into() } else { "-Infinity".into() };
    }
    let size = value.abs();
    if size == 0.0 || (1e-3..1e7).contains(&size) {
        return format!("{value:?}");
    }
    let shortest = format!("{value:e}");
    let text = if shortest.contains('.') { shortest } else { format!("{value:.1e}") };
    text.replace('e', "E")
}

/// Parses a float as Java's wire does: None if invalid, NaN if empty.
#[must_use]
pub fn parse_f64(text: &str) -> Option<f64> {
    match text.trim() {
        "" | "NaN" => Some(f64::NAN),
        "Infinity" | "+Infinity" => Some(f64::INFINITY),
        "-Infinity" => Some(f64::NEG_INFINITY),
        digits if digits.bytes().all(|byte| b"+-.eE0123456789".contains(&byte)) => {
            digits.parse().ok()
        }
        _ => None,
    }
}

/// Parses an integer as Java's wire does: fractions are rounded, overflow saturates,
/// and an empty string is the minimum.
#[must_use]
#[allow(clippy::cast_possible_truncation)] // saturates, as Java does
pub fn parse_i64(text: &str) -> Option<i64> {
    match text.trim() {
        "" => Some(i64::MIN),
        digits => digits.parse().ok().or_else(|| Some((parse_f64(digits)? + 0.5).floor() as i64)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_shown_as_java_does() {
        for (value, text) in [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (1.5, "1.5"),
            (100.0, "100.0"),
            (9_999_999.0, "9999999.0"),
            (1e7, "1.0E7"),
            (0.001, "0.001"),
            (1e-6, "1.0E-6"),
            (f64::from(0.1_f32), "0.10000000149011612"),
            (f64::MAX, "1.7976931348623157E308"),
            (4.9e-324, "4.9E-324"),
        ] {
            assert_eq!(java_f64(value), text);
        }
    }

    #[test]
    fn texts_are_numbers_as_java_takes_them() {
        for (text, number) in [("5 ", 5), ("+5", 5), ("1.5", 2), ("1e3", 1000), ("", i64::MIN)] {
            assert_eq!(parse_i64(text), Some(number), "{text}");
        }
        assert_eq!(parse_i64("9223372036854775808"), Some(i64::MAX));
        for text in ["0x1F", "1_000", "abc", "inf", "nan", "1 2"] {
            assert_eq!((parse_i64(text), parse_f64(text)), (None, None), "{text}");
        }
    }
}
