//! The thread that sleeps for all tailers of the process which wait for a message. It starts with
//! the first wait, and ends when there has been none for a while.
//!
//! It sleeps at the words of all queues at once (W1 to W4 of [`word`](super::word)), and at one of
//! its own, which a new wait changes. No signal handler runs in it.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use super::side_file::SideFile;
use super::wait::{Looked, Place, Wait};
use super::word;
use crate::os::detached::Detached;
use crate::os::fork::{ForkMutex, Inherited};
use crate::os::futex::{self, Expected};
use crate::os::threads;
use crate::{Error, Result};

/// The interval at which the thread polls for unannounced messages: a 250th of the time since a
/// poll last found one, within these limits.
const LOOK_AT_LEAST: Duration = Duration::from_millis(1);
const LOOK_AT_MOST: Duration = Duration::from_millis(20);
const LOOK_AFTER: u32 = 250;

/// Of several waits at one place only one is polled, but all of them every fiftieth time, since
/// another thread may have moved a tailer.
const LOOKS_AT_ONE: u32 = 50;

/// After a message, a queue's word stays even for this long, so that appenders in a burst do not
/// pay for a wake-up per message. The time doubles with each announced message that no waiter
/// wanted, up to `MOST_IN_VAIN` times.
const LINGERS: Duration = Duration::from_micros(100);
const MOST_IN_VAIN: u32 = 5;

/// The thread ends after this long without waits.
const STAYS: Duration = Duration::from_secs(5);

/// New waits for the thread to take.
struct Inbox {
    new: Vec<Arc<Wait>>,
    has_thread: bool,
}

static INBOX: ForkMutex<Inbox> = ForkMutex::new(Inbox { new: Vec::new(), has_thread: false });

/// Incremented for every new wait.
static ADDED: AtomicU32 = AtomicU32::new(0);

impl Inherited for Inbox {
    fn after_fork_in_child(&mut self) {
        // Leaked: other threads of the parent may have been using the state of these waits at the
        // fork.
        std::mem::forget(std::mem::take(&mut self.new));
        self.has_thread = false;
    }
}

/// Begins a wait, starting the thread if necessary.
pub fn begin(wait: &Arc<Wait>) -> Result<()> {
    let has_thread = {
        let mut inbox = INBOX.lock();
        inbox.new.push(Arc::clone(wait));
        std::mem::replace(&mut inbox.has_thread, true)
    };
    if !has_thread {
        start()?;
    }
    ADDED.fetch_add(1, Ordering::Release);
    futex::wake(&ADDED, false);
    Ok(())
}

fn start() -> Result<()> {
    let builder = std::thread::Builder::new().name("quire-wait".into());
    let started = builder.spawn(|| {
        threads::block_signals();
        threads::wake_in_time();
        Thread::default().run(&Detached::here());
    });
    match started {
        Ok(_) => Ok(()),
        Err(error) => {
            abandon();
            Err(Error::io("cannot start a thread", Path::new("quire-wait"), error))
        }
    }
}

/// Ends all new waits because there is no thread: waiters poll by themselves, and start a thread
/// when they wait again.
fn abandon() {
    let new = {
        let mut inbox = INBOX.lock();
        inbox.has_thread = false;
        std::mem::take(&mut inbox.new)
    };
    for wait in new {
        wait.end();
    }
}

/// The state of the thread.
struct Thread {
    /// The waits of each side file, by its address; waits without a side file are under 0.
    queues: HashMap<usize, Waits>,
    /// When a poll last found an unannounced message.
    found_alone: Instant,
    /// When all queues are polled next.
    look_at: Instant,
}

/// The waits of one queue.
struct Waits {
    side_file: Option<Arc<SideFile>>,
    all: Vec<Arc<Wait>>,
    /// Waits from this position in `all` on have not been polled yet.
    new_from: usize,
    /// One wait per place, and all waits without a place.
    chosen: Vec<Arc<Wait>>,
    places: HashSet<Place>,
    /// The value of the word to sleep at; None while it is left alone, until `arm_at`.
    value: Option<u32>,
    arm_at: Instant,
    /// How many successive announcements had a message for none of these waits.
    in_vain: u32,
    /// How often only one wait per place was polled since all of them were.
    looks_at_one: u32,
}

/// Which waits to poll.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Which {
    New,
    OneOfEachPlace,
    All,
}

impl Default for Thread {
    fn default() -> Self {
        let now = Instant::now();
        Self { queues: HashMap::new(), found_alone: now, look_at: now + LOOK_AT_LEAST }
    }
}

impl Thread {
    fn run(mut self, may_wait: &Detached) {
        loop {
            let added = ADDED.load(Ordering::Acquire);
            self.take_new();
            self.look(may_wait);
            if self.queues.values().any(|queue| !queue.all.is_empty()) {
                self.sleep(added);
            } else if Self::rest(added) {
                return;
            }
        }
    }

    fn take_new(&mut self) {
        let new = std::mem::take(&mut INBOX.lock().new);
        for wait in new {
            self.add(wait);
        }
    }

    fn add(&mut self, wait: Arc<Wait>) {
        let file = wait.side_file();
        let key = file.map_or(0, |file| Arc::as_ptr(file) as usize);
        let queue = self.queues.entry(key).or_insert_with(|| Waits::new(file.cloned()));
        if wait.is_prompt() {
            queue.arm_at = Instant::now();
        }
        queue.all.push(wait);
    }

    /// Polls new and announced waits, and from time to time all of them.
    fn look(&mut self, may_wait: &Detached) {
        let now = Instant::now();
        let is_time = now >= self.look_at;
        for queue in self.queues.values_mut() {
            if queue.step(is_time, now, may_wait) {
                self.found_alone = now;
            }
        }
        if is_time {
            let quiet = now.duration_since(self.found_alone) / LOOK_AFTER;
            self.look_at = now + quiet.clamp(LOOK_AT_LEAST, LOOK_AT_MOST);
        }
        self.queues.retain(|_, queue| !queue.all.is_empty() || now < queue.arm_at);
    }

    /// W4: sleeps at the words of all queues.
    fn sleep(&self, added: u32) {
        let mut words = vec![Expected::own(&ADDED, added)];
        words.extend(self.queues.values().filter_map(Waits::expected).take(futex::MOST - 1));
        let left = self.queues.values().filter_map(Waits::is_left_until);
        let until = left.fold(self.look_at, Instant::min);
        futex::sleep(&words, until.saturating_duration_since(Instant::now()));
    }

    /// Sleeps for a while without waits. Returns whether the thread is to end.
    fn rest(added: u32) -> bool {
        futex::sleep(&[Expected::own(&ADDED, added)], STAYS);
        let mut inbox = INBOX.lock();
        inbox.has_thread = ADDED.load(Ordering::Acquire) != added || !inbox.new.is_empty();
        !inbox.has_thread
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        if std::thread::panicking() {
            for wait in self.queues.values().flat_map(|queue| &queue.all) {
                wait.end();
            }
            abandon();
        }
    }
}

impl Waits {
    fn new(side_file: Option<Arc<SideFile>>) -> Self {
        let arm_at = Instant::now();
        Self {
            side_file,
            all: Vec::new(),
            new_from: 0,
            chosen: Vec::new(),
            places: HashSet::new(),
            value: None,
            arm_at,
            in_vain: 0,
            looks_at_one: 0,
        }
    }

    /// Polls the waits that there is reason to poll. The word is armed on return unless it is to
    /// stay even until `arm_at`. Returns whether an unannounced wait was due.
    fn step(&mut self, is_time: bool, now: Instant, may_wait: &Detached) -> bool {
        let is_announced = self.is_announced();
        if is_announced {
            self.value = None;
        }
        let is_over = self.value.is_none() && now >= self.arm_at;
        let which = self.which(is_time, is_announced || is_over);
        let (found, found_old) = self.look(which, may_wait);
        if found {
            self.in_vain = 0;
        } else if is_announced && !self.all.is_empty() {
            self.in_vain = MOST_IN_VAIN.min(self.in_vain + 1);
        }
        if found || is_announced {
            self.arm_at = now + LINGERS * (1 << self.in_vain);
        } else if is_over {
            self.arm(may_wait);
        }
        found_old && is_time && !is_announced && !is_over
    }

    /// Which waits to poll. If one is due, all are polled next time.
    const fn which(&mut self, is_time: bool, has_reason: bool) -> Which {
        let which = match (has_reason, is_time) {
            (true, _) => Which::All,
            (false, true) if self.looks_at_one >= LOOKS_AT_ONE => Which::All,
            (false, true) => Which::OneOfEachPlace,
            (false, false) => return Which::New,
        };
        self.looks_at_one = if matches!(which, Which::All) { 0 } else { self.looks_at_one + 1 };
        which
    }

    fn is_announced(&self) -> bool {
        let (Some(file), Some(value)) = (&self.side_file, self.value) else { return false };
        file.word().value() != value
    }

    /// W1 to W3: arms the word and polls the queue again.
    fn arm(&mut self, may_wait: &Detached) {
        if let (Some(file), false) = (&self.side_file, self.all.is_empty()) {
            self.value = Some(file.word().arm());
            word::settle();
            self.look(Which::All, may_wait);
        }
    }

    /// Polls the new waits and those given by `which`. Returns whether any is due, and whether one
    /// is due that was not new.
    fn look(&mut self, which: Which, may_wait: &Detached) -> (bool, bool) {
        let (new_from, mut number) = (self.new_from, 0);
        let (mut found, mut found_old) = (false, false);
        let is_quiet = match which {
            Which::New => true,
            Which::OneOfEachPlace => self.look_at_chosen(&mut found_old, may_wait),
            Which::All => {
                self.chosen.clear();
                self.places.clear();
                false
            }
        };
        if is_quiet && new_from == self.all.len() {
            return (false, false);
        }
        self.all.retain(|wait| {
            let (is_new, place) = (number >= new_from, wait.place());
            number += 1;
            let is_covered = place.is_some_and(|place| self.places.contains(&place));
            if !is_new && which != Which::All && (is_quiet || is_covered) {
                return true;
            }
            let looked = wait.look(may_wait);
            found |= looked == Looked::Due;
            found_old |= looked == Looked::Due && !is_new;
            if looked == Looked::Waits
                && place.map_or(is_new || which == Which::All, |it| self.places.insert(it))
            {
                self.chosen.push(Arc::clone(wait));
            }
            looked == Looked::Waits
        });
        self.new_from = self.all.len();
        (found || found_old, found_old)
    }

    /// Polls one wait per place. Returns whether all of them continue waiting.
    fn look_at_chosen(&mut self, found: &mut bool, may_wait: &Detached) -> bool {
        let count = self.chosen.len();
        self.chosen.retain(|wait| {
            let looked = wait.look(may_wait);
            *found |= looked == Looked::Due;
            if let (Looked::Due | Looked::Ended, Some(place)) = (looked, wait.place()) {
                self.places.remove(&place);
            }
            looked == Looked::Waits
        });
        self.chosen.len() == count
    }

    /// When the word is to be armed, if it is left alone until then.
    fn is_left_until(&self) -> Option<Instant> {
        let is_left = self.value.is_none() && self.side_file.is_some() && !self.all.is_empty();
        is_left.then_some(self.arm_at)
    }

    fn expected(&self) -> Option<Expected<'_>> {
        Some(self.side_file.as_ref()?.expected(self.value?))
    }
}

#[cfg(test)]
mod tests {
    use super::super::event_loop::EventLoop;
    use super::super::wait::Look;
    use super::*;
    use crate::os::own_directory::OwnDirectory;

    /// A tailer that never finds anything.
    struct Quiet(Arc<SideFile>);

    impl Look for Quiet {
        fn is_due(&self, _: &Detached) -> bool {
            false
        }

        fn side_file(&self, _: &Detached) -> Option<Arc<SideFile>> {
            Some(Arc::clone(&self.0))
        }
    }

    /// A thread with one wait, whose word is to stay even for a long time.
    fn waiting(is_prompt: bool, dir: &Path) -> (Thread, Arc<SideFile>, Arc<Wait>) {
        let directory = OwnDirectory::open(dir).expect("a directory");
        let file = Arc::new(SideFile::open_or_create(&directory, 0o600).expect("a file"));
        let event_loop = Arc::new(EventLoop::new().expect("a pipe"));
        event_loop.set_prompt(is_prompt);
        let look = Arc::new(Quiet(Arc::clone(&file)));
        let wait = Wait::of_task(look, &event_loop, 1, &Detached::here());
        let mut left_alone = Waits::new(Some(Arc::clone(&file)));
        left_alone.arm_at = Instant::now() + Duration::from_secs(3600);
        let mut thread = Thread::default();
        thread.queues.insert(Arc::as_ptr(&file) as usize, left_alone);
        thread.add(Arc::clone(&wait));
        thread.look(&Detached::here());
        (thread, file, wait)
    }

    #[test]
    fn a_prompt_wait_has_the_next_message_announced() {
        for is_prompt in [false, true] {
            let dir = tempfile::tempdir().expect("a directory");
            let (_, file, _) = waiting(is_prompt, dir.path());
            assert_eq!(file.word().is_armed(), is_prompt);
        }
    }

    #[test]
    fn a_wait_that_was_cancelled_does_not_make_others_wait_longer() {
        for is_cancelled in [false, true] {
            let dir = tempfile::tempdir().expect("a directory");
            let (mut thread, file, wait) = waiting(true, dir.path());
            if is_cancelled {
                wait.cancel(&Detached::here());
            }
            file.wake();
            thread.look(&Detached::here());
            let in_vain = thread.queues.values().map(|queue| queue.in_vain).max();
            assert_eq!(in_vain, Some(u32::from(!is_cancelled)));
        }
    }
}
