//! Warnings for an operator, for events that are not errors: a forced unlock, a discarded file.
//!
//! The kernel cannot log, since it may hold the write lock. It queues a line here; the caller
//! collects the lines afterwards, without any lock.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, TryLockError};

use crate::Error;

const MOST_KEPT: usize = 256;
const MOST_TRIES: usize = 10_000;

static WAITING: AtomicBool = AtomicBool::new(false);
static LINES: Mutex<Vec<String>> = Mutex::new(Vec::new());
static LOSSES: AtomicU64 = AtomicU64::new(0);

/// Queues one line. When the queue is full, the oldest lines are kept.
pub fn leave(line: String) {
    if let Some(mut lines) = lines()
        && lines.len() < MOST_KEPT
    {
        lines.push(line);
        WAITING.store(true, Ordering::Release);
    }
}

/// Queues the line of a loss: messages that were deleted before a reader read them.
pub fn leave_loss(loss: &Error) {
    LOSSES.fetch_add(1, Ordering::Relaxed);
    leave(loss.to_string());
}

/// The number of losses that this process has warned of.
#[must_use]
pub fn losses() -> u64 {
    LOSSES.load(Ordering::Relaxed)
}

/// Takes the lines queued since the last call; costs one load if there are none.
#[must_use]
pub fn take() -> Vec<String> {
    if !WAITING.load(Ordering::Acquire) {
        return Vec::new();
    }
    WAITING.store(false, Ordering::Release);
    lines().map(|mut lines| std::mem::take(&mut *lines)).unwrap_or_default()
}

/// The lines; None if a fork copied them while another thread of the parent used them. Otherwise
/// the lock is released within a few instructions.
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
