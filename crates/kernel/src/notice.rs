//! What an operator should know although nothing failed: a forced unlock, a discarded file.
//!
//! The kernel cannot log: it may hold the write lock. It leaves a line here; whoever called picks
//! the lines up afterwards, with no lock held.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

const MOST_KEPT: usize = 256;

static WAITING: AtomicBool = AtomicBool::new(false);
static LINES: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Leaves one line; the oldest are kept when nobody picks them up.
pub fn leave(line: String) {
    if let Ok(mut lines) = LINES.lock()
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
    LINES.lock().map(|mut lines| std::mem::take(&mut *lines)).unwrap_or_default()
}
