//! Background threads owned by handles.

use std::sync::{Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use super::detached::Detached;
use super::process;

/// The thread of a handle.
///
/// A forked child does not have it, but may have started one of its own at the same address: to
/// drop the parent's `JoinHandle` there would detach that one, and nobody could join it.
pub struct Running {
    thread: Option<JoinHandle<()>>,
    generation: u32,
}

impl Running {
    /// Takes over a thread that this process has started.
    #[must_use]
    pub fn new(thread: JoinHandle<()>) -> Self {
        Self { thread: Some(thread), generation: process::generation() }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.generation != process::generation() {
            std::mem::forget(self.thread.take());
        }
    }
}

/// Wakes a thread that was asked to end, and waits for it; a thread does not wait for itself. A
/// panic in it has been printed.
pub fn join(_: &Detached, running: &Mutex<Option<Running>>) {
    let running = running.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(thread) = running.and_then(|mut running| running.thread.take())
        && thread.thread().id() != thread::current().id()
    {
        thread.thread().unpark();
        let _ = thread.join();
    }
}

/// Blocks signals in this thread, so that they go to threads whose waits they should end.
pub fn block_signals() {
    let faults = [libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGSEGV];
    // SAFETY: the set is valid for the calls, and the mask is that of this thread alone.
    unsafe {
        let mut all = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        for fault in faults {
            libc::sigdelset(&raw mut all, fault);
        }
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const all, std::ptr::null_mut());
    }
}

/// Makes short sleeps of this thread end in time: by default the system may end them 50 us late.
pub fn wake_in_time() {
    #[cfg(target_os = "linux")]
    // SAFETY: the call changes an attribute of this thread alone.
    unsafe {
        libc::prctl(libc::PR_SET_TIMERSLACK, 1);
    }
}
