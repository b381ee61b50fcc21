//! Events for a listener: which roll files a queue opens and closes.
//!
//! The kernel does not call the listener, since it may hold the write lock when it opens a file. It
//! queues the event, and the listener's thread takes it without holding any lock.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use crate::os::process;

/// The file of a cycle was opened by the first handle, or released by the last one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileEvent {
    /// The cycle.
    pub cycle: i32,
    /// Its file.
    pub path: PathBuf,
    /// Whether it was opened; otherwise released.
    pub is_acquired: bool,
}

/// The events of a queue that the listener has not taken yet.
pub struct FileEvents {
    generation: u32,
    state: Mutex<State>,
    came: Condvar,
}

#[derive(Default)]
struct State {
    /// For each cycle with an open file: the file, and how often it is open.
    open: BTreeMap<i32, (PathBuf, usize)>,
    waiting: Vec<FileEvent>,
    is_ended: bool,
}

/// Part of an open file: dropping it may emit the event of its release.
pub struct OpenFile {
    events: Arc<FileEvents>,
    cycle: i32,
}

impl FileEvents {
    /// No file is open yet.
    #[must_use]
    pub fn new() -> Arc<Self> {
        let (state, came) = (Mutex::default(), Condvar::new());
        Arc::new(Self { generation: process::generation(), state, came })
    }

    /// Notes that the file of a cycle was opened.
    #[must_use]
    pub fn open(self: &Arc<Self>, cycle: i32, path: &Path) -> OpenFile {
        if let Some(mut state) = self.lock()
            && !state.is_ended
        {
            let (_, count) = state.open.entry(cycle).or_insert_with(|| (path.to_path_buf(), 0));
            *count += 1;
            if *count == 1 {
                self.add(&mut state, cycle, path.to_path_buf(), true);
            }
        }
        OpenFile { events: Arc::clone(self), cycle }
    }

    fn release(&self, cycle: i32) {
        let Some(mut state) = self.lock() else { return };
        let Some((_, count)) = state.open.get_mut(&cycle) else { return };
        *count -= 1;
        if *count == 0
            && let Some((path, _)) = state.open.remove(&cycle)
        {
            self.add(&mut state, cycle, path, false);
        }
    }

    fn add(&self, state: &mut State, cycle: i32, path: PathBuf, is_acquired: bool) {
        state.waiting.push(FileEvent { cycle, path, is_acquired });
        self.came.notify_one();
    }

    /// The events since the last call, in their order; waits for the first. None when there will be
    /// no more.
    #[must_use]
    pub fn take(&self) -> Option<Vec<FileEvent>> {
        let mut state = self.lock()?;
        while state.waiting.is_empty() && !state.is_ended {
            state = self.came.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let taken = std::mem::take(&mut state.waiting);
        (!taken.is_empty()).then_some(taken)
    }

    /// Counts every open file as released; no event comes after that.
    pub fn end(&self) {
        let Some(mut state) = self.lock() else { return };
        state.is_ended = true;
        for (cycle, (path, _)) in std::mem::take(&mut state.open) {
            self.add(&mut state, cycle, path, false);
        }
        self.came.notify_all();
    }

    /// None in a forked child: a thread of the parent may have held the lock.
    fn lock(&self) -> Option<MutexGuard<'_, State>> {
        (self.generation == process::generation())
            .then(|| self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for OpenFile {
    fn drop(&mut self) {
        self.events.release(self.cycle);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(events: &FileEvents) -> Option<Vec<(i32, bool)>> {
        let taken = events.take()?;
        Some(taken.into_iter().map(|event| (event.cycle, event.is_acquired)).collect())
    }

    #[test]
    fn a_file_that_is_open_twice_is_one_file() {
        let (events, path) = (FileEvents::new(), Path::new("20240115F.cq4"));
        let first = events.open(7, path);
        let second = events.open(7, path);
        assert_eq!(taken(&events), Some(vec![(7, true)]));
        drop(first);
        let other = events.open(8, path);
        drop(second);
        assert_eq!(taken(&events), Some(vec![(8, true), (7, false)]));
        events.end();
        drop(other);
        drop(events.open(9, path));
        assert_eq!(taken(&events), Some(vec![(8, false)]));
        assert_eq!(taken(&events), None);
    }
}
