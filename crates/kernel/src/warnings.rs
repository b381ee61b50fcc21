//! What an operator should know although nothing failed: a forced unlock, a discarded file.
//!
//! The kernel cannot log: it may hold the write lock. It leaves a line here; the caller
//! collects the lines afterwards, with no lock held.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, TryLockError};

const MOST_KEPT: usize = 256;
const MOST_TRIES: usize = 10_000;

static WAITING: AtomicBool = AtomicBool::new(false);
static LINES: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Leaves one line; the oldest are kept when nobody picks them up.
pub fn leave(line: String) {
    if let Some(mut lines) = lines()
        && lines.len() < MOST_KEPT
    {
        lines.push(line);
        WAITING.store(true, Ordering::Release);
    }
}

/// Takes the lines left since the last call; costs one load when there are none.
#[must_use]
pub fn take() -> Vec<String> {
    if !WAITING.load(Ordering::Acquire) {
        return Vec::new();
    }
    WAITING.store(false, Ordering::Release);
    lines().map(|mut lines| std::mem::take(&mut *lines)).unwrap_or_default()
}

/// The lines; None where a fork copied them while a thread of the parent was at them. Elsewhere they
/// are free again within some instructions.
fn lines() -> Option<MutexGuard<'static, Vec<String>>> {
    for _ in 0..MOST_TRIES {
        match LINES.try_lock() {
            Ok(lines) => return Some(lines),
            Err(TryLockError::Poisoned(lines)) => return Some(lines.into_inner()),
            Err(TryLockError::WouldBlock) => std::thread::yield_now(),
        }
    }
    None
}
