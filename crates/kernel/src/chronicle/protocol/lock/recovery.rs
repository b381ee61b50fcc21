//! Waiting for the write lock, and taking it from a dead holder (`docs/protocol.md`, "Recovery").
//!
//! 1. spin, then yield, then sleep, trying the CAS each time;
//! 2. after the first millisecond, check whether the holder is alive: a Quire process holds a
//!    shared record lock on the byte of its pid, which the system drops when it dies and which is
//!    seen across pid namespaces; for others the pid must exist and map the table;
//! 3. in mode `Dead`, a dead holder's word is forced at once; a live holder is waited for until the
//!    timeout and checked one last time, after which the wait is an error or, in mode `Always`, the
//!    word is forced.
//!
//! A crash anywhere here changes nothing: forcing is one CAS.

use std::time::{Duration, Instant};

use super::guard::{DetachedGuard, InProcessGuard, LockGuard, LockOf, ProcessLock, WriteGuard};
use super::word::LockWord;
use crate::chronicle::format::table::{self, UNLOCKED};
use crate::chronicle::protocol::table::store::TableStore;
use crate::os::detached::Detached;
use crate::os::interrupt::Signals;
use crate::os::process::{self, Liveness};
use crate::os::range_lock::{self, Range};
use crate::{Error, Result, warnings};

/// When a lock may be taken from its holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForceUnlock {
    /// Never.
    Never,
    /// From a dead holder, at once.
    Dead,
    /// From a dead holder at once, from a live one after the timeout.
    Always,
}

impl ForceUnlock {
    /// Its name as an option.
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

/// Takes the write lock of a table, waiting at most `timeout` for a live holder. The guard borrows
/// the token.
pub fn wait_to_write<'a>(
    table: &'a TableStore,
    mode: ForceUnlock,
    timeout: Duration,
    mut signals: Signals<'a>,
) -> Result<DetachedGuard<'a>> {
    let taken = wait(table, table.write_lock(), mode, timeout, signals.again())?;
    Ok(DetachedGuard::new(WriteGuard::new(taken), signals.deferred()))
}

/// Takes the lock of a `replicated:` tailer, like [`wait_to_write`]. The caller holds the tailer's
/// state.
pub fn wait_to_store<'a>(
    table: &TableStore,
    lock: ProcessLock<'a>,
    mode: ForceUnlock,
    timeout: Duration,
    may_wait: &Detached,
) -> Result<LockGuard<'a>> {
    wait(table, lock, mode, timeout, Signals::Deferred(may_wait))
}

fn wait<'a>(
    table: &TableStore,
    lock: ProcessLock<'a>,
    mode: ForceUnlock,
    timeout: Duration,
    signals: Signals<'_>,
) -> Result<LockGuard<'a>> {
    for _ in 0..SPINS {
        if let Some(taken) = lock.try_take() {
            return Ok(taken);
        }
        std::hint::spin_loop();
    }
    let (start, next_look) = (Instant::now(), FIRST_LOOK);
    let mut wait = Wait { lock, mode, timeout, start, next_look, signals };
    let in_process = wait.for_in_process(table)?;
    let in_process = wait.for_word(table, in_process)?;
    in_process.keep();
    Ok(LockGuard::resume(lock, process::pid()))
}

/// A wait for one lock.
struct Wait<'a, 's> {
    lock: ProcessLock<'a>,
    mode: ForceUnlock,
    timeout: Duration,
    start: Instant,
    next_look: Duration,
    signals: Signals<'s>,
}

impl<'a> Wait<'a, '_> {
    /// Waits for the other threads of this process. Those are alive, so the lock is never taken
    /// from a thread that is writing; in mode `Always` it is taken from a thread's open document.
    fn for_in_process(&mut self, table: &TableStore) -> Result<InProcessGuard<'a>> {
        // The document last seen, and since when: each document gets the whole timeout.
        let (mut seen, mut since) = (0, Instant::now());
        loop {
            if let Some(in_process) = self.lock.try_in_process() {
                return Ok(in_process);
            }
            let waited = self.start.elapsed();
            if self.is_time_to_look(waited) {
                self.signals.check()?;
            }
            let document = if self.may_force() { table.document().number() } else { 0 };
            if document != seen {
                (seen, since) = (document, Instant::now());
            }
            let is_over = if seen == 0 { waited } else { since.elapsed() } >= self.timeout;
            if is_over && seen == 0 {
                return Err(self.timed_out(table, process::pid(), waited));
            }
            if is_over && table.end_document(seen) {
                return Ok(self.in_process_of_document(since.elapsed()));
            }
            pause(waited);
        }
    }

    /// Whether the lock may be taken from an open document of this process.
    fn may_force(&self) -> bool {
        self.mode == ForceUnlock::Always && self.lock.of == LockOf::Queue
    }

    /// The in-process lock of an open document that has lost the lock by force.
    fn in_process_of_document(&self, waited: Duration) -> InProcessGuard<'a> {
        let in_process = self.lock.in_process_taken_over();
        // Another process may have forced the word before.
        let _ = self.lock.word.release(process::pid());
        warnings::leave(format!(
            "{} taken from an open document of another thread: waited_ms={}",
            self.lock.of.name(),
            millis(waited)
        ));
        in_process
    }

    /// Waits for other processes.
    fn for_word(
        &mut self,
        table: &TableStore,
        mut in_process: InProcessGuard<'a>,
    ) -> Result<InProcessGuard<'a>> {
        // The holder last seen, and since when: each holder gets the whole timeout.
        let (mut seen, mut since) = (UNLOCKED, Instant::now());
        loop {
            let Err(found) = self.lock.word.try_take(process::pid()) else { return Ok(in_process) };
            let waited = self.start.elapsed();
            if found != seen {
                (seen, since) = (found, Instant::now());
            }
            let may_force = self.mode != ForceUnlock::Never && found != UNLOCKED;
            let waits_for_each = self.mode == ForceUnlock::Always;
            let is_over = if waits_for_each { since.elapsed() } else { waited } >= self.timeout;
            // A timeout shorter than the first check's delay still gets one check.
            let looks = self.is_time_to_look(waited) || is_over;
            if looks && may_force && force_if_dead(table, &in_process, self.lock.word, found) {
                continue;
            }
            if is_over && !waits_for_each {
                return Err(self.timed_out_of(table, table::holder(found), waited));
            }
            if is_over && may_force {
                self.force(found, since.elapsed());
                seen = UNLOCKED;
                continue;
            }
            if looks && matches!(self.signals, Signals::Handled(_)) {
                // A handler may append: it must not find the in-process lock taken by the thread it
                // interrupts.
                drop(in_process);
                self.signals.check()?;
                in_process = self.for_in_process(table)?;
            }
            pause(waited);
        }
    }

    fn force(&self, found: u64, waited: Duration) {
        if self.lock.word.force(found) {
            let (name, holder) = (self.lock.of.name(), table::holder(found));
            warnings::leave(format!(
                "{name} taken from a live holder: holder_pid={holder} waited_ms={}",
                millis(waited)
            ));
        }
    }

    /// Whether it is time to check the holder and pending signals.
    fn is_time_to_look(&mut self, waited: Duration) -> bool {
        let is_due = waited >= self.next_look;
        if is_due {
            self.next_look = waited + LOOK_EVERY;
        }
        is_due
    }

    /// The timeout error; for a holder in another pid namespace it includes its pid in this one.
    fn timed_out_of(&self, table: &TableStore, holder: u32, waited: Duration) -> Error {
        let place = elsewhere(table, holder)
            .filter(|here| *here != holder)
            .map_or_else(String::new, |here| {
                format!(" (it is in another pid namespace, and is process {here} in this one)")
            });
        self.timed_out_at(table, holder, waited, place)
    }

    fn timed_out(&self, table: &TableStore, holder: u32, waited: Duration) -> Error {
        self.timed_out_at(table, holder, waited, String::new())
    }

    fn timed_out_at(
        &self,
        table: &TableStore,
        holder: u32,
        waited: Duration,
        place: String,
    ) -> Error {
        let (lock, mode, waited_ms) = (self.lock.of.name(), self.mode.name(), millis(waited));
        let is_queues = self.lock.of == LockOf::Queue;
        let held = is_queues.then(|| table.held_ms(holder)).flatten();
        Error::LockTimeout { lock, holder, held_ms: held, waited_ms, mode, place }
    }
}

fn pause(waited: Duration) {
    if waited < YIELDS_FOR {
        std::thread::yield_now();
    } else {
        std::thread::sleep((waited / 8).min(LONGEST_PAUSE));
    }
}

/// Forces the lock if the holder that `found` names is dead, and returns whether it did. The
/// in-process lock serialises the threads of this process: the second one must not take for dead a
/// lock that the first one freed and a third one took.
pub fn force_if_dead(
    table: &TableStore,
    _in_process: &InProcessGuard<'_>,
    word: LockWord<'_>,
    found: u64,
) -> bool {
    let holder = table::holder(found);
    let forced = is_dead(table, holder) && word.read() == found && word.force(found);
    if forced {
        table.forget_held(holder);
        warnings::leave(format!("lock taken from a dead holder: holder_pid={holder}"));
    }
    forced
}

/// The holder of a lock whose word is `word`, and whether it is alive; None if the lock is free.
/// For display only: both may have changed since.
#[must_use]
pub fn holder_of(table: &TableStore, word: u64) -> Option<(u32, bool)> {
    let holder = table::holder(word);
    let lives = || holder == process::pid() || !is_dead(table, holder);
    (word != UNLOCKED).then(|| (holder, lives()))
}

/// Whether the owner is dead. The caller holds the in-process lock, so the owner is not a thread of
/// this process.
pub fn is_dead(table: &TableStore, holder: u32) -> bool {
    let byte = Range { start: table::PRESENCE_START + i64::from(holder), length: 1 };
    let held = table.file().map(|file| range_lock::is_held_elsewhere(&file, byte));
    let announced = !matches!(held, Ok(Ok(false)));
    let pid_again = holder == process::pid();
    let liveness = || process::liveness(holder, table::FILE_NAME, table.shared.inode());
    !announced && (pid_again || liveness() == Liveness::Dead) && elsewhere(table, holder).is_none()
}

/// The pid in this namespace of a holder, such as a Java process, that has another pid in a nested
/// one.
fn elsewhere(table: &TableStore, holder: u32) -> Option<u32> {
    process::elsewhere(holder, table::FILE_NAME, table.shared.inode())
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
