//! The waiting tasks of an event loop: a pipe that the loop watches becomes readable when some are
//! due.

use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::fs::{OFlags, fcntl_setfl};

use crate::os::process;

/// An event loop with tasks that wait.
pub struct EventLoop {
    /// The numbers of due waits that the loop has not taken yet.
    due: Mutex<Vec<u64>>,
    reader: PipeReader,
    writer: PipeWriter,
    generation: u32,
    is_prompt: AtomicBool,
}

impl EventLoop {
    /// An event loop without waiting tasks.
    pub fn new() -> io::Result<Self> {
        let (reader, writer) = io::pipe()?;
        fcntl_setfl(&reader, OFlags::NONBLOCK)?;
        fcntl_setfl(&writer, OFlags::NONBLOCK)?;
        let (due, generation) = (Mutex::default(), process::generation());
        Ok(Self { due, reader, writer, generation, is_prompt: AtomicBool::new(false) })
    }

    /// The descriptor that becomes readable when a wait is due.
    #[must_use]
    pub fn descriptor(&self) -> RawFd {
        self.reader.as_raw_fd()
    }

    /// Whether new waits are to be woken by the very next message, at the cost of a wake-up for its
    /// appender.
    #[must_use]
    pub fn is_prompt(&self) -> bool {
        self.is_prompt.load(Ordering::Relaxed)
    }

    /// Sets [`EventLoop::is_prompt`] for waits that begin from now on.
    pub fn set_prompt(&self, is_prompt: bool) {
        self.is_prompt.store(is_prompt, Ordering::Relaxed);
    }

    /// Notes that a wait is due. If the pipe is full it is readable anyway.
    pub fn wake(&self, number: u64) {
        let is_first = {
            let mut due = self.lock();
            due.push(number);
            due.len() == 1
        };
        if is_first {
            let _ = (&self.writer).write(&[1]);
        }
    }

    /// The numbers of the waits that have become due since the last call. Never blocks.
    #[must_use]
    pub fn take_due(&self) -> Vec<u64> {
        if self.generation != process::generation() {
            return Vec::new(); // the parent reads from the pipe
        }
        // In this order: a wait that becomes due in between makes the pipe readable again.
        let _ = (&self.reader).read(&mut [0; 64]);
        std::mem::take(&mut *self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, Vec<u64>> {
        self.due.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
