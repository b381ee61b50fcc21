//! Waiting for the write lock, and taking it from a dead holder (`docs/protocol.md`, "Recovery").
//!
//! 1. spin, then yield, then sleep, trying the CAS each time;
//! 2. from the first millisecond on look whether the holder lives: a Quire process holds a shared
//!    record lock on the byte of its pid, which the system drops when it dies and which is seen
//!    across pid namespaces; for others the pid must exist and map the table;
//! 3. a dead holder's word is forced at once in mode `Dead`; a living one is waited for until the
//!    timeout, then it is an error, or in mode `Always` the word is forced.
//!
//! A crash anywhere here changes nothing: forcing is one CAS.

use std::time::{Duration, Instant};

use super::held_lock::{ProcessLock, Turn};
use super::table_store::TableStore;
use super::write_lock::LockWord;
use crate::format::table::{self, UNLOCKED};
use crate::memory::process::{self, Liveness};
use crate::memory::record_lock::{self, Range};
use crate::{Error, Result, interrupt, notice};

/// When a lock may be taken from its holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForceUnlock {
    /// Never.
    Never,
    /// From a dead holder, at once.
    Dead,
    /// From a dead holder at once, from a living one after the timeout.
    Always,
}

impl ForceUnlock {
    /// The name a user gives it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Never => "never",
            Self::Dead => "dead",
            Self::Always => "always",
        }
    }
}

const SPINS: u32 = 64;
const YIELDS_FOR: Duration = Duration::from_micros(200);
const FIRST_LOOK: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(1);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Takes `lock`, waiting at most `timeout` for a living holder.
pub fn wait(
    table: &TableStore,
    lock: ProcessLock<'_>,
    mode: ForceUnlock,
    timeout: Duration,
) -> Result<()> {
    for _ in 0..SPINS {
        if lock.try_take() {
            return Ok(());
        }
        std::hint::spin_loop();
    }
    let start = Instant::now();
    let turn = wait_for_turn(lock, mode, start, timeout)?;
    let mut next_look = FIRST_LOOK;
    loop {
        let Err(found) = lock.word.try_take(process::pid()) else {
            turn.keep();
            return Ok(());
        };
        let waited = start.elapsed();
        if waited >= next_look {
            if mode != ForceUnlock::Never && found != UNLOCKED {
                force_if_dead(table, &turn, lock.word, found);
            }
            next_look = waited + LOOK_EVERY;
            interrupt::check()?;
        }
        if waited >= timeout {
            give_up_or_force(lock.word, found, mode, waited)?;
        }
        pause(waited);
    }
}

/// Waits for the other threads of this process. They live, so the lock is not taken from them.
fn wait_for_turn(
    lock: ProcessLock<'_>,
    mode: ForceUnlock,
    start: Instant,
    timeout: Duration,
) -> Result<Turn<'_>> {
    let mut next_look = FIRST_LOOK;
    loop {
        if let Some(turn) = lock.try_turn() {
            return Ok(turn);
        }
        let waited = start.elapsed();
        if waited >= next_look {
            next_look = waited + LOOK_EVERY;
            interrupt::check()?;
        }
        if waited >= timeout {
            return Err(timed_out(process::pid(), waited, mode));
        }
        pause(waited);
    }
}

fn timed_out(holder: u32, waited: Duration, mode: ForceUnlock) -> Error {
    Error::LockTimeout { holder, waited_ms: millis(waited), mode: mode.name() }
}

fn pause(waited: Duration) {
    if waited < YIELDS_FOR {
        std::thread::yield_now();
    } else {
        std::thread::sleep((waited / 8).min(LONGEST_PAUSE));
    }
}

fn give_up_or_force(
    lock: LockWord<'_>,
    found: u64,
    mode: ForceUnlock,
    waited: Duration,
) -> Result<()> {
    let (holder, waited_ms) = (table::holder(found), millis(waited));
    if mode != ForceUnlock::Always {
        return Err(timed_out(holder, waited, mode));
    }
    if found != UNLOCKED && lock.force(found) {
        notice::leave(format!(
            "write lock taken from a living holder: holder_pid={holder} waited_ms={waited_ms}"
        ));
    }
    Ok(())
}

/// Forces the lock if the holder that `found` names is dead. Its turn makes threads of one process
/// do so one at a time: the second one must not take for dead what the first one freed and a third
/// one took.
pub fn force_if_dead(table: &TableStore, _turn: &Turn<'_>, word: LockWord<'_>, found: u64) {
    let holder = table::holder(found);
    if is_dead(table, holder) && word.read() == found && word.force(found) {
        notice::leave(format!("lock taken from a dead holder: holder_pid={holder}"));
    }
}

/// Whether a process is dead that is not seen to be this one's thread: the caller has the turn.
fn is_dead(table: &TableStore, holder: u32) -> bool {
    let byte = Range { start: table::PRESENCE_START + i64::from(holder), length: 1 };
    let held = table.file().map(|file| record_lock::is_held_elsewhere(&file, byte));
    let announced = !matches!(held, Ok(Ok(false)));
    let pid_again = holder == process::pid();
    let liveness = || process::liveness(holder, table::FILE_NAME, table.inode());
    !announced && (pid_again || liveness() == Liveness::Dead)
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
