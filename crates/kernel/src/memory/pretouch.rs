//! The pretoucher: a thread that populates file space ahead of a fast appender, which then does
//! not pause for it. It changes no byte, so nothing depends on it. It starts when a fast
//! appender first asks for it, on machines with more than one processor. It also checks the free
//! space of the disk, each second.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use super::window::Window;
use crate::os::process;

/// A callback that checks the disk space of the most recently appended file.
pub type Watch = Arc<dyn Fn(&Window) + Send + Sync>;

/// How often [`Watch`] is called.
const WATCH_EVERY: Duration = Duration::from_secs(1);

/// The pretoucher of a queue.
pub struct Pretoucher {
    generation: u32,
    thread: Mutex<Thread>,
    rest: Arc<Rest>,
    watch: Option<Watch>,
}

enum Thread {
    /// No appender has been fast yet.
    NotNeeded,
    /// Runs, and receives work through this channel; it ends when the channel is dropped.
    Started(SyncSender<Job>),
    /// Not wanted, failed to start, or ended.
    Never,
}

struct Job {
    window: Weak<Window>,
    to: u64,
}

/// Keeps the thread away from the files of a closed queue.
#[derive(Default)]
struct Rest {
    asked: AtomicBool,
    busy: AtomicBool,
}

impl Pretoucher {
    /// A pretoucher without a thread yet.
    #[must_use]
    pub fn new(enabled: bool, watch: Option<Watch>) -> Self {
        let thread = Mutex::new(if enabled { Thread::NotNeeded } else { Thread::Never });
        Self { generation: process::generation(), thread, rest: Arc::default(), watch }
    }

    /// Passes `window` to the thread, if its appender is fast and close enough.
    pub fn keep_ahead(&self, window: &Arc<Window>, end: u64) {
        let Some(to) = window.wanted_ahead_of(end) else { return };
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(*thread, Thread::NotNeeded) {
            *thread = start(&self.rest, self.watch.clone());
        }
        if let Thread::Started(jobs) = &*thread {
            // If the channel is full, the thread is busy, and the next step asks again.
            let _ = jobs.try_send(Job { window: Arc::downgrade(window), to });
        }
    }

    /// Ends the thread; returns when it has released all files.
    pub fn end(&self) {
        self.rest.asked.store(true, Ordering::SeqCst);
        *self.thread.lock().unwrap_or_else(PoisonError::into_inner) = Thread::Never;
        while self.rest.busy.load(Ordering::SeqCst) {
            std::thread::yield_now();
        }
    }
}

impl Drop for Pretoucher {
    fn drop(&mut self) {
        if self.generation != process::generation() {
            // The parent's thread may have been using the channel at the fork.
            let thread = self.thread.get_mut().unwrap_or_else(PoisonError::into_inner);
            std::mem::forget(std::mem::replace(thread, Thread::Never));
        }
    }
}

/// Starts the thread, unless there is only one processor.
fn start(rest: &Arc<Rest>, watch: Option<Watch>) -> Thread {
    if !std::thread::available_parallelism().is_ok_and(|count| count.get() > 1) {
        return Thread::Never;
    }
    let (sender, receiver) = mpsc::sync_channel(1);
    let rest = Arc::clone(rest);
    let thread = std::thread::Builder::new().name("quire-pretouch".into());
    match thread.spawn(move || work(&receiver, &rest, watch.as_ref())) {
        Ok(_) => Thread::Started(sender),
        Err(_) => Thread::Never,
    }
}

fn work(jobs: &Receiver<Job>, rest: &Rest, watch: Option<&Watch>) {
    let (mut last, mut watched) = (Weak::new(), Instant::now());
    loop {
        let job = match next(jobs, watch.is_some()) {
            Ok(job) => Some(job),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => return,
        };
        rest.busy.store(true, Ordering::SeqCst);
        if let Some(job) = job {
            let mut goes_on = true;
            while goes_on && !rest.asked.load(Ordering::SeqCst) {
                goes_on = job.window.upgrade().is_some_and(|window| window.touch_ahead(job.to));
            }
            last = job.window;
        }
        if let Some(watch) = watch
            && watched.elapsed() >= WATCH_EVERY
            && !rest.asked.load(Ordering::SeqCst)
        {
            watched = Instant::now();
            if let Some(window) = last.upgrade() {
                watch(&window);
            }
        }
        rest.busy.store(false, Ordering::SeqCst);
    }
}

fn next(jobs: &Receiver<Job>, watches: bool) -> Result<Job, RecvTimeoutError> {
    if watches {
        jobs.recv_timeout(WATCH_EVERY)
    } else {
        jobs.recv().map_err(|_| RecvTimeoutError::Disconnected)
    }
}
