//! Fault points: every step that changes a shared file, and every system call, has a name.
//!
//! ```text
//! cells.store_release(at, value, step!("append.sequence.store"));  // a store or CAS
//! step!("create.file.open").made();                                // anything else, just done
//! fault::call!("window.grow", self.file.set_len(len))              // returns io::Result
//! ```
//!
//! A name that is not in [`POINTS`] does not compile. In ordinary builds this check is the only
//! effect: a [`Step`] has no size, and a call is just made. With the feature `fault-points`, which
//! only tests enable, steps and calls are counted, and one of them can be armed for its Nth time:
//! to kill the process right after the step, to make the call fail without being made, or to stop
//! the calling thread before or after the step until it may continue (a pause point). The effect of
//! a crash at each name is described in `docs/protocol.md`, "Fault points".

#[cfg(feature = "fault-points")]
pub use armed::{after, arm, before, hits, is_unmended, reached};
pub use names::{POINTS, number_of};

/// The name of a store or compare-and-swap in a shared file; every such access requires one.
#[derive(Clone, Copy)]
pub struct Step {
    #[cfg(feature = "fault-points")]
    point: usize,
}

impl Step {
    /// The step of a name in [`POINTS`].
    #[must_use]
    pub const fn named(name: &str) -> Self {
        Self::numbered(number_of(name))
    }
}

#[cfg(not(feature = "fault-points"))]
impl Step {
    const fn numbered(_: usize) -> Self {
        Self {}
    }

    /// Marks that the step comes next.
    #[inline]
    pub(crate) const fn reached(self) {
        let Self {} = self;
    }

    /// Marks that the step was just made.
    #[inline]
    pub(crate) const fn made(self) {
        let Self {} = self;
    }
}

#[cfg(feature = "fault-points")]
impl Step {
    const fn numbered(point: usize) -> Self {
        Self { point }
    }

    /// Marks that the step comes next: stops there if armed.
    pub(crate) fn reached(self) {
        reached(self.point);
    }

    /// Marks that the step was just made: counts it, and dies or stops if armed.
    pub(crate) fn made(self) {
        let _ = before(self.point);
        after(self.point);
    }
}

/// Whether to bring back a fixed defect, for tests that show that it would be found.
#[cfg(not(feature = "fault-points"))]
#[must_use]
pub const fn is_unmended(_step: &str) -> bool {
    false
}

/// The [`Step`] of a name.
macro_rules! step {
    ($name:literal) => {
        const { $crate::probe::fault::Step::named($name) }
    };
}

/// Makes a system call.
#[cfg(not(feature = "fault-points"))]
macro_rules! call {
    ($name:literal, $call:expr) => {{
        const _: usize = $crate::probe::fault::number_of($name);
        $call
    }};
}

/// Makes a system call, unless it is armed to fail.
#[cfg(feature = "fault-points")]
macro_rules! call {
    ($name:literal, $call:expr) => {{
        const POINT: usize = $crate::probe::fault::number_of($name);
        $crate::probe::fault::reached(POINT);
        $crate::probe::fault::before(POINT).and_then(|()| {
            let result = $call;
            $crate::probe::fault::after(POINT);
            result
        })
    }};
}

pub(crate) use {call, step};

mod names {
    /// All names.
    pub const POINTS: &[&str] = &[
        // Opening, and the table store.
        "open.path.stat",
        "open.dir.create",
        "open.dir.read",
        "open.table.stat",
        "table.file.open",
        "table.file.stat",
        "table.file.read",
        "table.file.grow",
        "table.named.stat",
        "table.first.cas",
        "table.body.store",
        "table.header.cas",
        "table.key.store",
        "table.key.cas",
        "table.key.remove",
        // The listing.
        "listing.dir.read",
        "listing.file.stat",
        "listing.highest.cas",
        "listing.lowest.cas",
        "listing.mod-count.add",
        // Metrics.
        "metrics.file.stat",
        // Sleeping readers.
        "waiting.file.stat",
        "waiting.file.store",
        "waiting.word.arm",
        "waiting.word.clear",
        // States of replicas.
        "replicas.file.stat",
        "replicas.file.write",
        "replicas.file.publish",
        "replicas.store",
        // Locks.
        "lock.take-over.cas",
        "lock.take.cas",
        "lock.release.cas",
        "lock.force.cas",
        "lock.since.store",
        "lock.since.clear",
        "holder.stat.read",
        "holder.maps.read",
        "holder.processes.list",
        // Roll files.
        "create.file.open",
        "create.first.cas",
        "create.body.store",
        "create.upper.publish",
        "create.index2index.store",
        "create.lower.publish",
        "create.upper-slot.store",
        "create.upper-used.store",
        "create.header.cas",
        "create.lowest.cas",
        "create.highest.cas",
        "create.mod-count.add",
        "create.file.remove",
        "create.file.discard",
        "create.same-file.stat",
        // Appending.
        "publish.payload.store",
        "publish.zeros.store",
        "publish.run-header.store",
        "publish.header.cas",
        "append.abandoned.cas",
        "append.first-position.cas",
        "append.write-position.store",
        "append.sequence.store",
        "index.array.publish",
        "index.link.cas",
        "index.upper-used.cas",
        "index.slot.store",
        "index.used.cas",
        "index.last-index.cas",
        "eof.header.cas",
        "eof.mark.store",
        "eof.normalised.cas",
        "sync.file.stat",
        "sync.directory.sync",
        "sync.parent.sync",
        "sync.last-synced.cas",
        "replica.acknowledged.cas",
        // After a power cut.
        "restart.from.store",
        "restart.normalised.cas",
        "restart.file.stat",
        "restart.link.store",
        "restart.slot.store",
        "restart.lowered.store",
        "restart.write-position.store",
        "restart.sequence.store",
        "restart.data.seek",
        "restart.data.read",
        "restart.aside.write",
        "restart.aside.sync",
        "restart.zeros.write",
        "restart.file.touch",
        // Named tailers.
        "tailer.index.store",
        "tailer.replicated.store",
        "tailer.version.add",
        // Repairs on request.
        "repair.aside.read",
        "repair.aside.write",
        "repair.aside.sync",
        "repair.head.store",
        "repair.header.cas",
        "repair.link.store",
        "repair.slot.store",
        "repair.count.store",
        "repair.write-position.store",
        "repair.sequence.store",
        "repair.table.read",
        "repair.table.stat",
        "repair.table.remove",
        "repair.table.write",
        "repair.table.sync",
        "repair.table.keep",
        "repair.table.rename",
        // Quick-Queue.
        "quick-queue.dir.read",
        "quick-queue.dir.create",
        "quick-queue.dir.stat",
        "quick-queue.dir.sync",
        "quick-queue.file.sync",
        "quick-queue.path.stat",
        "quick-queue.page.stat",
        "quick-queue.page.open",
        "quick-queue.repair.mark",
        "quick-queue.profile.read",
        "quick-queue.profile.grow",
        "quick-queue.payload.store",
        "quick-queue.end.store",
        "quick-queue.attempt.store",
        "quick-queue.claim.cas",
        "quick-queue.last.store",
        "quick-queue.begin.store",
        "quick-queue.stamp.store",
        // Vanilla Chronicle.
        "vanilla.dir.read",
        "vanilla.dir.create",
        "vanilla.dir.stat",
        "vanilla.dir.sync",
        "vanilla.path.stat",
        "vanilla.file.stat",
        "vanilla.file.grow",
        "vanilla.machine.read",
        "vanilla.cycle-length.read",
        "vanilla.cycle-length.stat",
        "vanilla.cycle-length.write",
        "vanilla.hint.read",
        "vanilla.hint.stat",
        "vanilla.hint.write",
        "vanilla.index.read",
        "vanilla.record.read",
        "vanilla.payload.store",
        "vanilla.length.store",
        "vanilla.entry.cas",
        "vanilla.length.clear",
        "vanilla.payload.clear",
        "vanilla.padding.store",
        "vanilla.word.cas",
        "vanilla.bytes.store",
        "vanilla.position.next.store",
        "vanilla.position.late.store",
        "vanilla.position.further.store",
        "vanilla.position.floor.store",
        "vanilla.position.magic.store",
        "vanilla.position.pid.store",
        "vanilla.position.since.store",
        "vanilla.rebuild.remove",
        "vanilla.rebuild.write",
        "vanilla.rebuild.grow",
        "vanilla.rebuild.sync",
        "vanilla.rebuild.keep",
        "vanilla.rebuild.rename",
        // Consumer groups.
        "group.file.reserve",
        "group.file.write",
        "group.file.sync",
        "group.file.publish",
        "group.file.rename",
        "group.file.remove",
        "group.retired.store",
        "group.prepare.cas",
        "group.high.cas",
        "group.deadline.store",
        "group.deadline.cas",
        "group.since.store",
        "group.stamp.cas",
        "group.first.store",
        "group.next.store",
        "group.key.store",
        "group.counts.store",
        "group.counts.cas",
        "group.tail.store",
        "group.known.cas",
        "group.frontier.cas",
        "group.unprepare.cas",
        "group.complete.cas",
        "group.settle.cas",
        "group.take.cas",
        "group.change.cas",
        "group.offer.cas",
        "group.end.cas",
        "group.member.store",
        // The ring of asynchronous appends.
        "ring.header.store",
        "ring.header.sync",
        "ring.claim.cas",
        "ring.tail.cas",
        "ring.high-water.cas",
        "ring.bytes.store",
        "ring.commit.cas",
        "ring.stalls.add",
        "ring.stalls.store",
        "ring.successor.cas",
        "ring.close.cas",
        "ring.begun.store",
        "ring.drained.store",
        "ring.abandon.cas",
        "ring.drained-bytes.store",
        "ring.free.store",
        "ring.intent.store",
        "ring.noted.store",
        "ring.earlier-slots.store",
        "ring.dir.sync",
        "ring.file.publish",
        "ring.file.remove",
        "ring.file.rename",
        "ring.dir.read",
        // Shared building blocks.
        "file.open",
        "file.mode.set",
        "file.names.read",
        "file.name.remove",
        "file.stat",
        "file.identity.stat",
        "file.system.stat",
        "file.removed.stat",
        "file.left.stat",
        "file.reserve",
        "map.new",
        "map.populate-read",
        "map.populate-write",
        "record-lock.take",
        "record-lock.look",
        "record-lock.release",
        "window.stat",
        "window.read",
        "window.grow",
        "window.sync",
    ];
    pub const COUNT: usize = POINTS.len();

    /// The position of a name in [`POINTS`]; evaluated at compile time.
    ///
    /// # Panics
    ///
    /// If the name is missing.
    #[must_use]
    pub const fn number_of(name: &str) -> usize {
        let mut number = 0;
        while number < COUNT && !is_same(POINTS[number].as_bytes(), name.as_bytes()) {
            number += 1;
        }
        assert!(number < COUNT, "a name that is not in POINTS");
        number
    }

    const fn is_same(left: &[u8], right: &[u8]) -> bool {
        let mut place = 0;
        while place < left.len() && place < right.len() && left[place] == right[place] {
            place += 1;
        }
        left.len() == right.len() && place == left.len()
    }
}

#[cfg(feature = "fault-points")]
mod armed {
    use std::fs;
    use std::io;
    use std::path::PathBuf;
    use std::sync::Mutex;
    use std::sync::PoisonError;
    use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

    use rustix::process::{Signal, getpid, kill_process};

    use super::names::{COUNT, POINTS};

    const NONE: usize = usize::MAX;

    static HITS: [AtomicU64; COUNT] = [const { AtomicU64::new(0) }; COUNT];
    static ARMED: AtomicUsize = AtomicUsize::new(NONE);
    static FAULT: Mutex<Option<Fault>> = Mutex::new(None);

    /// The armed fault.
    #[derive(Clone)]
    struct Fault {
        point: usize,
        /// The hits of the point at which it happens, from first to last.
        from: u64,
        to: u64,
        action: Action,
    }

    #[derive(Clone)]
    enum Action {
        Kill,
        /// Calls fail with this error number.
        Fail(i32),
        /// Stop the thread. The directory has two named pipes: `stopped` reports the stop, `go`
        /// lets it continue.
        StopBefore(PathBuf),
        StopAfter(PathBuf),
    }

    /// Restarts the counters, with at most one fault: `name:N:kill`, `name:N:ERRNO`,
    /// `name:N+:ERRNO` for the Nth call and all after it, or `name:N:before:DIR` and
    /// `name:N:after:DIR` to stop the thread there. Without text: none.
    pub fn arm(text: &str) -> Result<(), String> {
        let fault = if text.is_empty() { None } else { Some(parse(text)?) };
        ARMED.store(NONE, Ordering::SeqCst);
        for hits in &HITS {
            hits.store(0, Ordering::SeqCst);
        }
        let point = fault.as_ref().map_or(NONE, |fault| fault.point);
        *FAULT.lock().unwrap_or_else(PoisonError::into_inner) = fault;
        ARMED.store(point, Ordering::SeqCst);
        Ok(())
    }

    fn parse(text: &str) -> Result<Fault, String> {
        let bad = || format!("not a fault: {text}, expected name:N:kill");
        let mut parts = text.splitn(4, ':');
        let (Some(name), Some(nth), Some(action)) = (parts.next(), parts.next(), parts.next())
        else {
            return Err(bad());
        };
        let action = match (action, parts.next()) {
            ("kill", None) => Action::Kill,
            ("before", Some(directory)) => Action::StopBefore(directory.into()),
            ("after", Some(directory)) => Action::StopAfter(directory.into()),
            (errno, None) => Action::Fail(errno.parse().map_err(|_| bad())?),
            _ => return Err(bad()),
        };
        let from = nth.trim_end_matches('+').parse().map_err(|_| bad())?;
        Ok(Fault {
            point: POINTS.iter().position(|known| *known == name).ok_or_else(bad)?,
            from,
            to: if nth.ends_with('+') { u64::MAX } else { from },
            action,
        })
    }

    /// How often each point was hit since [`arm`].
    #[must_use]
    pub fn hits() -> Vec<(&'static str, u64)> {
        let hits = HITS.iter().map(|hits| hits.load(Ordering::SeqCst));
        POINTS.iter().copied().zip(hits).collect()
    }

    /// Whether `QUIRE_UNMENDED` names this step: then it behaves as before its defect was fixed.
    #[must_use]
    pub fn is_unmended(step: &str) -> bool {
        std::env::var_os("QUIRE_UNMENDED").is_some_and(|named| named == step)
    }

    /// The step comes next: stops before it if that is armed.
    pub fn reached(point: usize) {
        let next = HITS[point].load(Ordering::SeqCst) + 1;
        if let Some(Action::StopBefore(directory)) = due(point, next) {
            stop(&directory);
        }
    }

    /// Counts a step; an error if it is a call that is armed to fail.
    pub fn before(point: usize) -> io::Result<()> {
        let hit = HITS[point].fetch_add(1, Ordering::SeqCst) + 1;
        match due(point, hit) {
            Some(Action::Fail(errno)) => Err(io::Error::from_raw_os_error(errno)),
            _ => Ok(()),
        }
    }

    /// The step was made: dies or stops if that is armed.
    pub fn after(point: usize) {
        match due(point, HITS[point].load(Ordering::SeqCst)) {
            Some(Action::Kill) => {
                let _ = kill_process(getpid(), Signal::KILL);
            }
            Some(Action::StopAfter(directory)) => stop(&directory),
            _ => {}
        }
    }

    fn due(point: usize, hit: u64) -> Option<Action> {
        if ARMED.load(Ordering::SeqCst) != point {
            return None;
        }
        let fault = FAULT.lock().unwrap_or_else(PoisonError::into_inner);
        fault.as_ref().filter(|it| (it.from..=it.to).contains(&hit)).map(|it| it.action.clone())
    }

    /// Stops this thread until the test writes to the named pipe `go`. Disarms first, so that the
    /// point stops one thread only once.
    fn stop(directory: &std::path::Path) {
        ARMED.store(NONE, Ordering::SeqCst);
        let _ = fs::write(directory.join("stopped"), b"1");
        let _ = fs::read(directory.join("go"));
    }
}
