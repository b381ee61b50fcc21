//! Sleeping until a word changes, by the system's futexes. Without futexes a sleep ends only by
//! timeout.

use std::sync::atomic::AtomicU32;

/// A word to sleep on, and the value it has until something happens.
#[derive(Clone, Copy)]
pub struct Expected<'a> {
    /// The word.
    pub word: &'a AtomicU32,
    /// The value for which to sleep.
    pub value: u32,
    /// Whether other processes map it too.
    pub is_shared: bool,
}

impl<'a> Expected<'a> {
    /// A word that only threads of this process change.
    #[must_use]
    pub const fn own(word: &'a AtomicU32, value: u32) -> Self {
        Self { word, value, is_shared: false }
    }
}

/// The most words that [`sleep`] can wait on; it ignores the rest.
pub const MOST: usize = 128;

#[cfg(target_os = "linux")]
pub use linux::{sleep, wake};
#[cfg(not(target_os = "linux"))]
pub use other::{sleep, wake};

#[cfg(target_os = "linux")]
mod linux {
    use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
    use std::time::Duration;

    use super::{Expected, MOST};

    /// Whether the system, or a sandbox such as seccomp, refused `futex_waitv` (Linux 5.16).
    static HAS_NO_WAITV: AtomicBool = AtomicBool::new(false);

    /// From `linux/futex.h`; missing in older headers.
    const SIZE_U32: u32 = 2;
    const PRIVATE: u32 = 128;

    #[repr(C)]
    struct Waitv {
        value: u64,
        address: u64,
        flags: u32,
        reserved: u32,
    }

    /// Wakes all threads, of any process, that sleep on the word.
    pub fn wake(word: &AtomicU32, is_shared: bool) {
        let operation = libc::FUTEX_WAKE | private_unless(is_shared);
        // SAFETY: the word is valid memory, and the call does not access it.
        unsafe {
            libc::syscall(libc::SYS_futex, word.as_ptr(), operation, i32::MAX);
        }
    }

    /// Sleeps while all words hold their values, for at most `timeout`; a signal ends it too. On a
    /// system that cannot wait for several words, only a change of the first one ends it.
    pub fn sleep(words: &[Expected<'_>], timeout: Duration) {
        match words {
            [] => {}
            [alone] => sleep_at(*alone, timeout),
            [first, ..] if HAS_NO_WAITV.load(Ordering::Relaxed) => sleep_at(*first, timeout),
            several => sleep_at_any(&several[..several.len().min(MOST)], timeout),
        }
    }

    fn sleep_at(Expected { word, value, is_shared }: Expected<'_>, timeout: Duration) {
        let operation = libc::FUTEX_WAIT | private_unless(is_shared);
        let timeout = timespec(timeout);
        // SAFETY: word and timeout are valid for the call, which writes to neither.
        unsafe {
            libc::syscall(libc::SYS_futex, word.as_ptr(), operation, value, &raw const timeout);
        }
    }

    fn sleep_at_any(words: &[Expected<'_>], timeout: Duration) {
        let list: Vec<Waitv> = words.iter().map(waitv).collect();
        let until = timespec(now() + timeout);
        // SAFETY: list and time are valid for the call, which writes to neither; so are the words.
        let result = unsafe {
            libc::syscall(
                libc::SYS_futex_waitv,
                list.as_ptr(),
                list.len(),
                0,
                &raw const until,
                libc::CLOCK_MONOTONIC,
            )
        };
        let error = (result < 0).then(std::io::Error::last_os_error);
        if matches!(error.and_then(|it| it.raw_os_error()), Some(libc::ENOSYS | libc::EPERM)) {
            HAS_NO_WAITV.store(true, Ordering::Relaxed);
        }
    }

    fn waitv(expected: &Expected<'_>) -> Waitv {
        let private = if expected.is_shared { 0 } else { PRIVATE };
        Waitv {
            value: u64::from(expected.value),
            address: expected.word.as_ptr() as u64,
            flags: SIZE_U32 | private,
            reserved: 0,
        }
    }

    const fn private_unless(is_shared: bool) -> libc::c_int {
        if is_shared { 0 } else { libc::FUTEX_PRIVATE_FLAG }
    }

    /// The time of the clock by which sleeps time out.
    fn now() -> Duration {
        let mut now = timespec(Duration::ZERO);
        // SAFETY: the call writes to `now` alone.
        unsafe {
            libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now);
        }
        let seconds = u64::try_from(now.tv_sec).unwrap_or_default();
        Duration::new(seconds, u32::try_from(now.tv_nsec).unwrap_or_default())
    }

    fn timespec(time: Duration) -> libc::timespec {
        libc::timespec {
            tv_sec: libc::time_t::try_from(time.as_secs()).unwrap_or(libc::time_t::MAX),
            tv_nsec: time.subsec_nanos().into(),
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod other {
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::{Duration, Instant};

    use super::Expected;

    /// How often a sleep polls its words.
    const LOOK: Duration = Duration::from_millis(1);

    /// Does nothing: sleeps poll their words.
    pub const fn wake(_word: &AtomicU32, _is_shared: bool) {}

    /// Sleeps while all words hold their values, for at most `timeout`.
    pub fn sleep(words: &[Expected<'_>], timeout: Duration) {
        let began = Instant::now();
        let is_unchanged = |it: &Expected<'_>| it.word.load(Ordering::Acquire) == it.value;
        while words.iter().all(is_unchanged)
            && let Some(left) = timeout.checked_sub(began.elapsed())
        {
            std::thread::sleep(left.min(LOOK));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;
    use std::time::Duration;

    use super::*;

    const LONG: Duration = Duration::from_secs(600);

    #[test]
    fn a_word_that_has_changed_already_ends_the_sleep_at_once() {
        let (first, second) = (AtomicU32::new(1), AtomicU32::new(7));
        sleep(&[Expected::own(&first, 0)], LONG);
        sleep(&[Expected::own(&first, 1), Expected::own(&second, 6)], LONG);
        sleep(&[], LONG);
    }

    #[test]
    fn a_change_of_any_word_ends_the_sleep() {
        for changed in 0..3 {
            let words = [const { AtomicU32::new(0) }; 3];
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    let expected = words.each_ref().map(|word| Expected::own(word, 0));
                    while words.iter().all(|word| word.load(Ordering::Acquire) == 0) {
                        sleep(&expected, LONG);
                    }
                });
                words[changed].store(1, Ordering::Release);
                wake(&words[changed], false);
            });
        }
    }
}
