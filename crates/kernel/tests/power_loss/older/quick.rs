//! Quick-Queues: `force()` covers every message before it.

use std::path::Path;
use std::sync::Arc;

use quire_kernel::os::detached::Detached;
use quire_kernel::quick_queue::append::Appender;
use quire_kernel::quick_queue::queue::{Options, QuickQueue};

use super::Family;
use super::history::{History, Messages};
use crate::random::Random;
use crate::workload::payload;

const STEPS: u64 = 60;
/// How many messages each writer appends after the power cut.
const APPENDED: usize = 20;

/// A queue of one writer, or of producers.
#[derive(Debug)]
pub struct Quick {
    pub page_bytes: u64,
    pub producers: &'static [&'static str],
}

impl Quick {
    fn open(&self, path: &Path) -> Arc<QuickQueue> {
        let options = Options {
            read_only: false,
            create: true,
            page_bytes: Some(self.page_bytes),
            file_mode: 0o600,
            allow_network: false,
        };
        QuickQueue::open(path, options).expect("open")
    }

    fn writers(&self, queue: &Arc<QuickQueue>) -> Vec<Arc<Appender>> {
        if self.producers.is_empty() {
            return vec![queue.appender(&mut Detached::here()).expect("an appender")];
        }
        self.producers
            .iter()
            .map(|name| queue.producer(&mut Detached::here(), name).expect("a producer"))
            .collect()
    }
}

impl Family for Quick {
    fn run(&self, path: &Path, random: &mut Random) -> History {
        let mut history = History::default();
        let (mut queue, sync_every) = (self.open(path), 4 + random.below(30));
        let mut writers = self.writers(&queue);
        for _ in 0..STEPS {
            let writer = &writers[random.below(writers.len() as u64) as usize];
            for _ in 0..=random.below(6) {
                history.append(payload(random, 600), |it| {
                    writer.append(&Detached::here(), it).expect("append").cast_signed()
                });
            }
            if random.once_in(sync_every) {
                writer.sync(&Detached::here()).expect("sync");
                let covered = history.indexes();
                history.note_synced(covered);
            }
            if random.once_in(15) {
                queue.close(&Detached::here());
                queue = self.open(path);
                writers = self.writers(&queue);
            }
        }
        history
    }

    fn read(&self, path: &Path) -> (Messages, usize) {
        let queue = self.open(path);
        let tailer = queue.tailer(false).expect("a tailer");
        let (mut found, mut in_order) = (Messages::new(), None);
        loop {
            let read = tailer.read(&Detached::here(), |it| {
                (it.index.cast_signed(), it.bytes.as_slice().to_vec())
            });
            match read {
                Ok(Some((index, payload))) => drop(found.insert(index, payload)),
                Ok(None) => break,
                Err(_) => {
                    in_order.get_or_insert(found.len());
                    let next = tailer.index(&Detached::here()).expect("an index") + 16;
                    if !tailer.move_to_index(&Detached::here(), next).expect("move") {
                        break;
                    }
                }
            }
        }
        let in_order = in_order.unwrap_or(found.len());
        (found, in_order)
    }

    fn append(&self, path: &Path) -> Messages {
        let queue = self.open(path);
        let mut appended = Messages::new();
        for writer in self.writers(&queue) {
            for number in 0..APPENDED {
                let payload = vec![number as u8 + 1; 1 + number * 7 % 90];
                let index =
                    writer.append(&Detached::here(), &payload).expect("append").cast_signed();
                appended.insert(index, payload);
            }
        }
        queue.sync(&Detached::here()).expect("sync");
        appended
    }
}
