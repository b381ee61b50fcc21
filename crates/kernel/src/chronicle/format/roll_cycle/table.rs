//! The table of roll cycles (`docs/format.md` §1.2), in the order in which Java tries them.

use std::borrow::Cow;

use super::RollCycle;

const fn row(
    name: &'static str,
    pattern: &'static str,
    length_ms: i64,
    index_count: u32,
    index_spacing: u32,
) -> RollCycle {
    let (name, pattern) = (Cow::Borrowed(name), Cow::Borrowed(pattern));
    RollCycle { name, pattern, length_ms, index_count, index_spacing, default_epoch_ms: 0 }
}

const fn weekly() -> RollCycle {
    let name = Cow::Borrowed("WEEKLY");
    let pattern = Cow::Borrowed("YYYY'W'ww");
    RollCycle {
        name,
        pattern,
        length_ms: 604_800_000,
        index_count: 4_096,
        index_spacing: 256,
        default_epoch_ms: super::WEEKLY_EPOCH_MS,
    }
}

/// Other accepted names of roll cycles in the table.
pub static ALIASES: [(&str, &str); 1] = [("SECONDLY", "TEST_SECONDLY")];

/// Every roll cycle Chronicle names.
#[rustfmt::skip]
pub static ALL: [RollCycle; 28] = [
    row("FIVE_MINUTELY", "yyyyMMdd-HHmm'V'", 300_000, 2_048, 256),
    row("TEN_MINUTELY", "yyyyMMdd-HHmm'X'", 600_000, 2_048, 256),
    row("TWENTY_MINUTELY", "yyyyMMdd-HHmm'XX'", 1_200_000, 2_048, 256),
    row("HALF_HOURLY", "yyyyMMdd-HHmm'H'", 1_800_000, 2_048, 256),
    row("FAST_HOURLY", "yyyyMMdd-HH'F'", 3_600_000, 4_096, 256),
    row("TWO_HOURLY", "yyyyMMdd-HH'II'", 7_200_000, 4_096, 256),
    row("FOUR_HOURLY", "yyyyMMdd-HH'IV'", 14_400_000, 4_096, 256),
    row("SIX_HOURLY", "yyyyMMdd-HH'VI'", 21_600_000, 4_096, 256),
    row("FAST_DAILY", "yyyyMMdd'F'", 86_400_000, 4_096, 256),
    weekly(),
    row("MINUTELY", "yyyyMMdd-HHmm", 60_000, 2_048, 16),
    row("HOURLY", "yyyyMMdd-HH", 3_600_000, 4_096, 16),
    row("DAILY", "yyyyMMdd", 86_400_000, 8_192, 64),
    row("LARGE_HOURLY", "yyyyMMdd-HH'L'", 3_600_000, 8_192, 64),
    row("LARGE_DAILY", "yyyyMMdd'L'", 86_400_000, 32_768, 128),
    row("XLARGE_DAILY", "yyyyMMdd'X'", 86_400_000, 32_768, 256),
    row("HUGE_DAILY", "yyyyMMdd'H'", 86_400_000, 32_768, 1_024),
    row("SMALL_DAILY", "yyyyMMdd'S'", 86_400_000, 8_192, 8),
    row("LARGE_HOURLY_SPARSE", "yyyyMMdd-HH'LS'", 3_600_000, 4_096, 1_024),
    row("LARGE_HOURLY_XSPARSE", "yyyyMMdd-HH'LX'", 3_600_000, 2_048, 1_048_576),
    row("HUGE_DAILY_XSPARSE", "yyyyMMdd'HX'", 86_400_000, 16_384, 1_048_576),
    row("TEST_SECONDLY", "yyyyMMdd-HHmmss'T'", 1_000, 32_768, 4),
    row("TEST4_SECONDLY", "yyyyMMdd-HHmmss'T4'", 1_000, 32, 4),
    row("TEST_HOURLY", "yyyyMMdd-HH'T'", 3_600_000, 16, 4),
    row("TEST_DAILY", "yyyyMMdd'T1'", 86_400_000, 8, 1),
    row("TEST2_DAILY", "yyyyMMdd'T2'", 86_400_000, 16, 2),
    row("TEST4_DAILY", "yyyyMMdd'T4'", 86_400_000, 32, 4),
    row("TEST8_DAILY", "yyyyMMdd'T8'", 86_400_000, 128, 8),
];
