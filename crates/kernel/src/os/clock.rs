//! Clocks: the wall clock, which tests can set, the monotonic one, and when the machine started.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, clock_gettime};
#[cfg(target_os = "linux")]
use rustix::time::{DynamicClockId, clock_gettime_dynamic};

/// The source of the current time, in epoch milliseconds.
#[derive(Clone, Debug)]
pub enum Clock {
    /// The system clock.
    System,
    /// A clock that is set manually, for tests.
    Manual(Arc<AtomicI64>),
}

impl Clock {
    /// The time in epoch milliseconds. The system clock is read at its coarse resolution (at most
    /// a few milliseconds late): a late writer still follows `listing.highestCycle`.
    #[must_use]
    pub fn now_ms(&self) -> i64 {
        match self {
            Self::System => coarse_time_ms(),
            Self::Manual(now) => now.load(Ordering::Acquire),
        }
    }

    /// The same at full resolution: never earlier than a previous reading, unless the clock was set
    /// back.
    #[must_use]
    pub fn exact_ms(&self) -> i64 {
        match self {
            Self::System => {
                let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
                i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
            }
            Self::Manual(_) => self.now_ms(),
        }
    }
}

/// When the machine booted, by its current wall clock.
#[cfg(target_os = "linux")]
#[must_use]
pub fn machine_started() -> Option<std::time::SystemTime> {
    let running = clock_gettime_dynamic(DynamicClockId::Boottime).ok()?;
    let running = u64::try_from(running.tv_sec).ok()?;
    std::time::SystemTime::now().checked_sub(std::time::Duration::from_secs(running))
}

/// Unknown on this system.
#[cfg(not(target_os = "linux"))]
#[must_use]
pub fn machine_started() -> Option<std::time::SystemTime> {
    None
}

/// Epoch milliseconds from the coarse clock: at most a few milliseconds late, and four times
/// cheaper than the exact one.
#[must_use]
pub fn coarse_time_ms() -> i64 {
    #[cfg(target_os = "linux")]
    const CLOCK: ClockId = ClockId::RealtimeCoarse;
    #[cfg(not(target_os = "linux"))]
    const CLOCK: ClockId = ClockId::Realtime;
    let now = clock_gettime(CLOCK);
    now.tv_sec * 1000 + now.tv_nsec / 1_000_000
}

/// Nanoseconds of the clock that Java's `System.nanoTime` reads, which starts at boot.
#[must_use]
pub fn monotonic_time_ns() -> i64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec * 1_000_000_000 + now.tv_nsec
}

/// Nanoseconds since the machine was started, including suspends, and independent of the wall
/// clock.
#[must_use]
pub fn boot_time_ns() -> u64 {
    #[cfg(target_os = "linux")]
    let now = clock_gettime_dynamic(DynamicClockId::Boottime)
        .unwrap_or_else(|_| clock_gettime(ClockId::Monotonic));
    #[cfg(not(target_os = "linux"))]
    let now = clock_gettime(ClockId::Monotonic);
    (now.tv_sec * 1_000_000_000 + now.tv_nsec).cast_unsigned()
}

/// A number that identifies this boot of the machine, never 0, and the same in every program; 1 if
/// the system has none.
#[must_use]
pub fn boot_id() -> u64 {
    static FOUND: OnceLock<u64> = OnceLock::new();
    *FOUND.get_or_init(|| {
        let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        let digits = text.chars().filter_map(|it| it.to_digit(16)).take(16);
        digits.fold(0, |number, digit| (number << 4) | u64::from(digit)) | 1
    })
}
