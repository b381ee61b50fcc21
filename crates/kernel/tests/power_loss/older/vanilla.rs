//! Vanilla Chronicles: a synchronous append covers its message, `sync()` those of its appender.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use quire_kernel::Error;
use quire_kernel::chronicle::read::tailer::Opening;
use quire_kernel::os::clock::Clock;
use quire_kernel::os::detached::Detached;
use quire_kernel::vanilla::protocol::detect::Asked;
use quire_kernel::vanilla::{Record, VanillaAppender, VanillaOptions, VanillaQueue, VanillaTailer};

use super::Family;
use super::history::{History, Messages};
use crate::random::Random;
use crate::workload::{DAY_MS, START_MS, payload};

const STEPS: u64 = 60;
const APPENDED: usize = 20;
/// More messages than a cycle has.
const MOST_MESSAGES: i64 = 80;

/// A queue of small blocks.
#[derive(Debug)]
pub struct Vanilla {
    pub synchronous: bool,
    pub data_block: u64,
}

impl Vanilla {
    fn open(&self, path: &Path, clock: &Arc<AtomicI64>) -> Arc<VanillaQueue> {
        let layout =
            Asked { tid_bits: Some(22), index_block: Some(512), data_block: Some(self.data_block) };
        let options = VanillaOptions {
            layout,
            clock: Clock::Manual(Arc::clone(clock)),
            synchronous: self.synchronous,
            ..VanillaOptions::default()
        };
        Arc::new(VanillaQueue::open(path, options).expect("open"))
    }
}

/// Goes to the next place after a damaged one: in its cycle, or the first of a later one.
fn pass_over(tailer: &VanillaTailer, last: Option<i64>) -> bool {
    let queue = tailer.queue();
    // A cycle without any data file has no indexes: then it is the first one.
    let first = || queue.index_of((START_MS / DAY_MS) as i32, 0).expect("an index");
    let index = tailer
        .index(&Detached::here())
        .unwrap_or_else(|_| last.map_or_else(first, |last| last + 1));
    let (cycle, _) = queue.split().split(index).expect("a cycle");
    let in_cycle = (1..=MOST_MESSAGES).map(|step| index + step);
    let later = (cycle + 1..cycle + 40).map(|cycle| queue.index_of(cycle, 0).expect("an index"));
    in_cycle.chain(later).any(|next| tailer.move_to_index(&Detached::here(), next).unwrap_or(false))
}

fn writers(queue: &Arc<VanillaQueue>) -> Vec<(Arc<VanillaAppender>, Vec<i64>)> {
    let open = |tid| VanillaAppender::new(Arc::clone(queue), tid).expect("an appender");
    [None, Some(7)].into_iter().map(|tid| (open(tid), Vec::new())).collect()
}

impl Family for Vanilla {
    fn run(&self, path: &Path, random: &mut Random) -> History {
        let mut history = History::default();
        let clock = Arc::new(AtomicI64::new(START_MS));
        let (mut queue, sync_every) = (self.open(path, &clock), 4 + random.below(30));
        let mut writers = writers(&queue);
        for _ in 0..STEPS {
            let number = random.below(writers.len() as u64) as usize;
            let (writer, own) = &mut writers[number];
            let synchronous = random.once_in(8);
            let index = history.append(payload(random, 900), |it| {
                let record = Record { parts: [it, &[]], synchronous, ..Record::default() };
                writer.append(&Detached::here(), None, record).expect("append")
            });
            own.push(index);
            if synchronous || self.synchronous {
                history.note_synced([index]);
            }
            if random.once_in(sync_every) {
                writer.sync(&Detached::here()).expect("sync");
                history.note_synced(own.clone());
            }
            if random.once_in(20) {
                clock.fetch_add(DAY_MS, Ordering::Relaxed);
            }
            if random.once_in(20) {
                queue.close(&Detached::here());
                queue = self.open(path, &clock);
                writers = self::writers(&queue);
            }
        }
        history
    }

    fn read(&self, path: &Path) -> (Messages, usize) {
        let clock = Arc::new(AtomicI64::new(START_MS));
        let queue = self.open(path, &clock);
        let tailer =
            VanillaTailer::open(queue, Opening::default(), &Detached::here()).expect("a tailer");
        let (mut found, mut in_order) = (Messages::new(), None);
        loop {
            match tailer.read(&Detached::here()) {
                Ok(Some(message)) => {
                    found.insert(message.index, message.copied().expect("memory"));
                }
                Ok(None) => break,
                Err(_) => {
                    in_order.get_or_insert(found.len());
                    let last = found.last_key_value().map(|(index, _)| *index);
                    if !pass_over(&tailer, last) {
                        break;
                    }
                }
            }
        }
        let in_order = in_order.unwrap_or(found.len());
        (found, in_order)
    }

    fn append(&self, path: &Path) -> Messages {
        let clock = Arc::new(AtomicI64::new(START_MS + 30 * DAY_MS));
        let mut appended = Messages::new();
        for _ in 0..2 {
            let queue = self.open(path, &clock);
            // Only one of the two: if files do not show when they were created, only the first
            // writer after the power cut knows of it.
            let tid = (self.data_block > 4_096).then_some(7);
            let writer = VanillaAppender::new(queue, tid).expect("an appender");
            for number in 0..APPENDED {
                let payload = vec![number as u8 + 1; 1 + number * 7 % 90];
                let record = Record { parts: [&payload, &[]], ..Record::default() };
                match writer.append(&Detached::here(), None, record) {
                    Ok(index) => drop(appended.insert(index, payload)),
                    // No data file with an entry is left: `rebuild_index` must come first.
                    Err(Error::Corrupt { .. }) => break,
                    Err(error) => panic!("cannot append: {error}"),
                }
            }
            // Then in the cycle of the power cut.
            clock.store(START_MS, Ordering::Relaxed);
        }
        appended
    }
}
