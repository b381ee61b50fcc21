//! The thread of `durability="batch"`: it syncs appended messages periodically and when the queue
//! closes. It starts with the queue's first appender, and holds no lock.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use super::sync;
use crate::chronicle::queue::handle::{Handle, Queue};
use crate::os::detached::Detached;
use crate::os::process;
use crate::os::threads::{self, Running};
use crate::{Error, Result, warnings};

/// How often the disk space is checked.
const WATCH_EVERY: Duration = Duration::from_secs(1);

/// Syncs a queue.
pub struct Committer {
    queue: Weak<Queue>,
    generation: u32,
    is_ended: AtomicBool,
    thread: Mutex<Option<Running>>,
}

impl Committer {
    /// Starts the thread of a queue.
    pub fn start(queue: &Arc<Queue>) -> Result<Arc<Self>> {
        let committer = Arc::new(Self {
            queue: Arc::downgrade(queue),
            generation: process::generation(),
            is_ended: AtomicBool::new(false),
            thread: Mutex::default(),
        });
        let (weak, interval) = (Arc::downgrade(&committer), queue.commit().collects_for());
        let builder = std::thread::Builder::new().name("quire-sync".into());
        let started = builder.spawn(move || {
            let mut watched = Instant::now();
            while let Some(committer) = weak.upgrade().filter(|found| !found.is_ended()) {
                committer.sync(&Detached::here());
                if watched.elapsed() >= WATCH_EVERY {
                    watched = Instant::now();
                    committer.look_at_space();
                }
                drop(committer);
                std::thread::park_timeout(interval);
            }
        });
        let started = started.map_err(|e| Error::io("cannot start a thread", queue.path(), e))?;
        *committer.thread.lock().unwrap_or_else(PoisonError::into_inner) =
            Some(Running::new(started));
        let weak = Arc::downgrade(&committer);
        queue.adopt(weak);
        Ok(committer)
    }

    fn is_ended(&self) -> bool {
        self.is_ended.load(Ordering::Acquire)
    }

    fn sync(&self, may_wait: &Detached) {
        if let Some(queue) = self.queue.upgrade() {
            commit_new(may_wait, &queue);
        }
    }

    fn look_at_space(&self) {
        if let Some(queue) = self.queue.upgrade() {
            queue.look_at_space_of_newest();
        }
    }
}

/// Syncs messages appended since the last sync; if that fails, all later appends fail.
pub fn commit_new(may_wait: &Detached, queue: &Queue) {
    if let Err(error) = try_commit_new(may_wait, queue) {
        queue.commit().fail(&error);
        warnings::leave(format!("messages may not be on the medium: error={error}"));
    }
}

fn try_commit_new(may_wait: &Detached, queue: &Queue) -> Result<()> {
    let commit = queue.commit();
    let Some(last) = queue.last_index_left()? else { return Ok(()) };
    if commit.check().is_err() || last <= commit.synced() {
        return Ok(());
    }
    let _syncing = commit.lock_syncing(may_wait);
    sync::sync(may_wait, queue, queue.writable_table("a sync")?, None)?;
    commit.note(last);
    Ok(())
}

impl Handle for Committer {
    fn release_files(&self, may_wait: &Detached) {
        self.is_ended.store(true, Ordering::Release);
        if self.generation == process::generation() {
            threads::join(may_wait, &self.thread);
        }
    }

    fn release_files_of(&self, may_wait: &Detached, queue: &Queue) {
        self.release_files(may_wait);
        commit_new(may_wait, queue); // what the thread did not
    }
}
