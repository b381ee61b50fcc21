//! Roll cycles that are not in Chronicle's table.

use std::borrow::Cow;

use super::{
    DAY_MS, INDEX_COUNT_MIN, INDEX_SHAPE_MAX, RollCycle, Token, WEEKLY_EPOCH_MS, shift, tokens,
};
use crate::{Error, Result};

/// Longest accepted pattern.
const PATTERN_MAX: usize = 100;
/// Longest cycle: Java counts its milliseconds in 32 bits.
const LENGTH_MAX_MS: i64 = i32::MAX as i64;
/// Most slots of an index array in Java.
const INDEX_COUNT_MAX: u32 = 1 << 15;
/// Most bits of a sequence, as in the table: 15 are left for cycles.
const SHIFT_MAX: u32 = 48;

/// The letters of a pattern, with their widths and the time of one step of each.
const LETTERS: [(char, usize, i64); 9] = [
    ('y', 4, 0),
    ('M', 2, 0),
    ('d', 2, DAY_MS),
    ('D', 3, DAY_MS),
    ('Y', 4, 0),
    ('w', 2, 7 * DAY_MS),
    ('H', 2, 3_600_000),
    ('m', 2, 60_000),
    ('s', 2, 1_000),
];
/// The combinations of letters that name a date; each may be followed by one of `TIMES`.
const DATES: [&str; 3] = ["yMd", "yD", "Yw"];
const TIMES: [&str; 4] = ["", "H", "Hm", "Hms"];

impl RollCycle {
    /// A custom roll cycle, named by its pattern. If the table has an equal one, returns that.
    ///
    /// # Errors
    /// A pattern that does not name each cycle differently, or an index shape that Java does not
    /// support.
    pub fn custom(
        length_ms: i64,
        pattern: &str,
        index_count: u32,
        index_spacing: u32,
    ) -> Result<Self> {
        let finest_ms = check_pattern(pattern)?;
        if length_ms <= 0 || length_ms > LENGTH_MAX_MS || length_ms % finest_ms != 0 {
            return Err(Error::Invalid(format!(
                "the pattern does not name cycles of this length: length_ms={length_ms} \
                 pattern={pattern} (a multiple of {finest_ms}, and at most {LENGTH_MAX_MS})"
            )));
        }
        check_shape(index_count, index_spacing)?;
        let is_weekly = pattern.contains('w') && finest_ms == 7 * DAY_MS;
        let made = Self {
            name: Cow::Owned(pattern.to_owned()),
            pattern: Cow::Owned(pattern.to_owned()),
            length_ms,
            index_count,
            index_spacing,
            default_epoch_ms: if is_weekly { WEEKLY_EPOCH_MS } else { 0 },
        };
        match Self::by_pattern(pattern) {
            Some(known) if known.is_same_as(&made) => Ok(known.clone()),
            // Java takes the roll cycle of an existing queue from its pattern alone.
            Some(known) => Err(Error::Invalid(format!(
                "the pattern is that of another roll cycle: pattern={pattern} name={}",
                known.name
            ))),
            None => Ok(made),
        }
    }

    /// Whether it is one of Chronicle's table.
    #[must_use]
    pub fn is_named(&self) -> bool {
        self.name != self.pattern
    }

    /// Whether both have the same length and index shape.
    fn is_same_as(&self, other: &Self) -> bool {
        let shape = |it: &Self| (it.length_ms, it.index_count, it.index_spacing);
        self.pattern == other.pattern && shape(self) == shape(other)
    }
}

/// The shortest time that two names of this pattern are apart.
fn check_pattern(pattern: &str) -> Result<i64> {
    let bad =
        |why: String| Error::Invalid(format!("not a file-name pattern: pattern={pattern} {why}"));
    if pattern.len() > PATTERN_MAX {
        return Err(Error::Invalid(format!(
            "file-name pattern too long: length={} limit={PATTERN_MAX}",
            pattern.len()
        )));
    }
    let mut letters = String::new();
    for token in tokens(pattern) {
        match token {
            Token::Text(text) => check_text(text).map_err(bad)?,
            Token::Number(letter, width) => {
                let known = LETTERS.iter().any(|it| (it.0, it.1) == (letter, width));
                if !known || letters.contains(letter) {
                    let run = letter.to_string().repeat(width);
                    return Err(bad(format!(
                        "found={run} known=yyyy MM dd DDD YYYY ww HH mm ss, each once"
                    )));
                }
                letters.push(letter);
            }
        }
    }
    let is_complete = DATES.iter().any(|date| {
        let rest = letters.strip_prefix(date);
        rest.is_some_and(|rest| TIMES.contains(&rest))
    });
    // A week has no time of day: a week and an hour would name seven different hours.
    if !is_complete
        || letters.starts_with("Yw") && letters.len() > 2
        || !pattern.matches('\'').count().is_multiple_of(2)
    {
        let why = "expected=yyyyMMdd, yyyyDDD or YYYYww in this order, then HH, HHmm or HHmmss";
        return Err(bad(why.to_owned()));
    }
    let finest = letters.chars().last().and_then(|last| LETTERS.iter().find(|it| it.0 == last));
    Ok(finest.map_or(DAY_MS, |it| it.2))
}

/// Checks the text between numbers, which becomes part of a path.
fn check_text(text: &str) -> std::result::Result<(), String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_+=,".contains(c);
    match text.chars().find(|c| !is_plain(*c)) {
        None => Ok(()),
        Some(found) => Err(format!("found={found:?} expected=letters, digits and -_+=,")),
    }
}

fn check_shape(index_count: u32, index_spacing: u32) -> Result<()> {
    let shape = [
        ("index_count", index_count, INDEX_COUNT_MIN..=INDEX_COUNT_MAX),
        ("index_spacing", index_spacing, 1..=INDEX_SHAPE_MAX),
    ];
    for (name, found, range) in shape {
        if !found.is_power_of_two() || !range.contains(&found) {
            return Err(Error::Invalid(format!(
                "not a power of two from {} to {}: {name}={found}",
                range.start(),
                range.end()
            )));
        }
    }
    let bits = shift(index_count, index_spacing);
    if bits > SHIFT_MAX {
        return Err(Error::Invalid(format!(
            "the index would have no room for cycles: index_count={index_count} \
             index_spacing={index_spacing} bits={bits} limit={SHIFT_MAX}"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cycle_of_ones_own_names_its_files() {
        for (length_ms, pattern) in [
            (6 * 3_600_000, "yyyyMMdd-HH'Q'"),
            (5 * 60_000, "yyyyMMdd_HHmm"),
            (7 * DAY_MS, "yyyyDDD"),
            (7 * DAY_MS, "YYYY'-W'ww"),
            (30 * 1_000, "yyyyDDD-HHmmss"),
        ] {
            let roll = RollCycle::custom(length_ms, pattern, 8, 1).unwrap();
            let epoch = roll.default_epoch_ms;
            for time_ms in [1_700_000_000_000, 951_782_399_999, 4_102_444_800_000] {
                let cycle = roll.cycle_at(time_ms, epoch).unwrap();
                let file = roll.file_name(cycle, epoch).unwrap();
                assert_eq!(roll.cycle_of_file(&file, epoch), Some(cycle), "{file}");
                assert_ne!(roll.file_name(cycle + 1, epoch).unwrap(), file);
            }
        }
    }

    #[test]
    fn one_of_the_table_is_that_one() {
        let daily = RollCycle::custom(DAY_MS, "yyyyMMdd'F'", 4096, 256).unwrap();
        assert_eq!(Some(&daily), RollCycle::by_name("fast_daily"));
        assert!(RollCycle::custom(DAY_MS, "yyyyMMdd'F'", 4096, 128).is_err());
    }

    #[test]
    fn patterns_that_do_not_name_each_cycle_are_refused() {
        for pattern in [
            "",
            "x",
            "yyyyMM",
            "yyyyMMddss",
            "ddMMyyyy",
            "yyyyMMdd'/'HH",
            "yyyyMMdd/HH",
            "yyMMdd",
            "yyyyMMdd'A",
            "YYYYww-HH",
            "yyyyMMddHHH",
            "yyyyMMddyyyy",
            "yyyyMMdd'..'",
            "EEE",
        ] {
            assert!(RollCycle::custom(7 * DAY_MS, pattern, 8, 1).is_err(), "{pattern}");
        }
        for length_ms in [0, -1, 1, DAY_MS - 1, DAY_MS + 1, i64::MAX] {
            assert!(RollCycle::custom(length_ms, "yyyyMMdd'C'", 8, 1).is_err(), "{length_ms}");
        }
        for (count, spacing) in [(4, 1), (9, 1), (8, 0), (8, 3), (1 << 15, 1 << 20), (1 << 16, 1)] {
            assert!(RollCycle::custom(DAY_MS, "yyyyMMdd'C'", count, spacing).is_err());
        }
    }
}
