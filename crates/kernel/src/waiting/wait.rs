//! One wait of one tailer: from its start until it is due, or cancelled.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::event_loop::EventLoop;
use super::side_file::SideFile;
use crate::os::detached::Detached;
use crate::os::futex::{self, Expected};
use crate::os::process;

/// The interface of a tailer to the waiting thread.
pub trait Look: Send + Sync {
    /// Whether its reader has something to do: read a message, or receive an error. Polling
    /// consumes nothing.
    fn is_due(&self, _: &Detached) -> bool;

    /// Where its reader waits: if one of several readers at the same place has nothing to do,
    /// neither have the others. None if this cannot be shared.
    fn place(&self) -> Option<Place> {
        None
    }

    /// The side file by which appenders announce messages; None if there is none to write to.
    fn side_file(&self, _: &Detached) -> Option<Arc<SideFile>> {
        None
    }
}

/// A queue by its address, a cycle, and a position there.
pub type Place = (usize, i32, u64);

/// A wait that has begun.
pub struct Wait {
    /// None once the wait is due or cancelled. Locked while the tailer is polled.
    look: Mutex<Option<Arc<dyn Look>>>,
    side_file: Option<Arc<SideFile>>,
    place: Option<Place>,
    generation: u32,
    is_prompt: bool,
    who: Who,
}

/// The waiter.
enum Who {
    /// A thread, at a word that is 0 until the wait is due.
    Thread(AtomicU32),
    /// A task of an event loop, by its number there.
    Task(Arc<EventLoop>, u64),
}

const DUE: u32 = 1;

impl Wait {
    /// A wait of the calling thread, to be started by `thread::begin`.
    pub fn of_thread(look: Arc<dyn Look>, may_wait: &Detached) -> Arc<Self> {
        Self::new(look, Who::Thread(AtomicU32::new(0)), may_wait)
    }

    /// A wait of a task.
    pub fn of_task(
        look: Arc<dyn Look>,
        event_loop: &Arc<EventLoop>,
        number: u64,
        may_wait: &Detached,
    ) -> Arc<Self> {
        Self::new(look, Who::Task(Arc::clone(event_loop), number), may_wait)
    }

    fn new(look: Arc<dyn Look>, who: Who, may_wait: &Detached) -> Arc<Self> {
        let (side_file, place) = (look.side_file(may_wait), look.place());
        let (look, generation) = (Mutex::new(Some(look)), process::generation());
        let is_prompt = matches!(&who, Who::Task(event_loop, _) if event_loop.is_prompt());
        Arc::new(Self { look, side_file, place, generation, is_prompt, who })
    }

    /// Sleeps until this thread's wait is due, a signal arrives, or `timeout` has passed. Returns
    /// whether the wait is due.
    pub fn sleep(&self, timeout: Duration, _: &Detached) -> bool {
        let Who::Thread(word) = &self.who else { return false };
        if word.load(Ordering::Acquire) != DUE {
            futex::sleep(&[Expected::own(word, 0)], timeout);
        }
        word.load(Ordering::Acquire) == DUE
    }

    /// The fork generation of the process that began it.
    #[must_use]
    pub const fn generation(&self) -> u32 {
        self.generation
    }

    /// Ends the wait. The tailer is no longer polled when this returns.
    pub fn cancel(&self, _: &Detached) {
        // In a forked child the lock may be held by a thread that does not exist there.
        if self.generation == process::generation() {
            drop(self.lock().take());
        }
    }

    /// Polls the tailer, and wakes the waiter if it is due.
    pub(super) fn look(&self, may_wait: &Detached) -> Looked {
        let mut look = self.lock();
        match &*look {
            Some(tailer) if !tailer.is_due(may_wait) => return Looked::Waits,
            Some(_) => {}
            None => return Looked::Ended,
        }
        *look = None;
        drop(look);
        self.wake();
        Looked::Due
    }

    /// Ends the wait as if it were due.
    pub(super) fn end(&self) {
        if self.lock().take().is_some() {
            self.wake();
        }
    }

    fn wake(&self) {
        match &self.who {
            Who::Thread(word) => {
                word.store(DUE, Ordering::Release);
                futex::wake(word, false);
            }
            Who::Task(event_loop, number) => event_loop.wake(*number),
        }
    }

    /// Whether the word is to be armed at once, so that the very next message is announced.
    pub(super) const fn is_prompt(&self) -> bool {
        self.is_prompt
    }

    /// Where its reader waits.
    pub(super) const fn place(&self) -> Option<Place> {
        self.place
    }

    /// The side file of its queue.
    pub(super) const fn side_file(&self) -> Option<&Arc<SideFile>> {
        self.side_file.as_ref()
    }

    fn lock(&self) -> MutexGuard<'_, Option<Arc<dyn Look>>> {
        self.look.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a poll found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Looked {
    /// There is nothing to read.
    Waits,
    /// There is a message or an error: the waiter was woken.
    Due,
    /// The wait had ended.
    Ended,
}
