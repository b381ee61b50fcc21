//! The operations on a queue while its changes are recorded, and the state expected later.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use quire_kernel::chronicle::append::appender::Appender;
use quire_kernel::chronicle::append::committer;
use quire_kernel::chronicle::format::roll_cycle::RollCycle;
use quire_kernel::chronicle::protocol::publish::Payload;
use quire_kernel::chronicle::queue::commit::Durability;
use quire_kernel::chronicle::queue::handle::Queue;
use quire_kernel::chronicle::queue::options::Options;
use quire_kernel::chronicle::read::tailer::Tailer;
use quire_kernel::os::clock::Clock;
use quire_kernel::os::detached::Detached;
use quire_kernel::os::interrupt::Signals;
use quire_kernel::probe::recorder;

use crate::random::Random;

/// 2024-01-15T10:30:00Z.
pub const START_MS: i64 = 1_705_314_600_000;
pub const DAY_MS: i64 = 86_400_000;
const ROLL_CYCLES: [&str; 3] = ["TEST2_DAILY", "TEST4_DAILY", "TEST_HOURLY"];
/// The durabilities of the rounds. The thread of `Batch` would sync at unrecorded moments: it is
/// left out, and its work is done between two steps.
const DURABILITIES: [Durability; 4] =
    [Durability::Process, Durability::Each, Durability::Batch, Durability::Process];
/// Name of the tailer whose position is kept.
pub const NAME: &str = "reader";

/// The parameters of a run.
#[derive(Clone, Debug)]
pub struct Shape {
    pub roll_cycle: &'static str,
    pub block_bytes: u64,
    pub steps: u64,
    pub durability: Durability,
    /// The number of steps per sync, which is the appender's or that of the thread of `Batch`.
    pub sync_every: u64,
    pub roll_every: u64,
    pub largest: u64,
    pub seed: u64,
}

impl Shape {
    pub fn of(round: u64, seed: u64) -> Self {
        let large = round % 2 == 1;
        Self {
            roll_cycle: ROLL_CYCLES[round as usize % 3],
            block_bytes: if large { 65_536 } else { 4_096 },
            steps: if large { 40 } else { 60 },
            durability: DURABILITIES[round as usize % 4],
            sync_every: [6, 25, 12, 1_000][round as usize % 4],
            roll_every: [15, 40][round as usize / 2 % 2],
            largest: if large { 9_000 } else { 700 },
            seed,
        }
    }

    /// Options for these files; the clock shows `now_ms`.
    pub fn options(&self, now_ms: i64) -> (Options, Arc<AtomicI64>) {
        let clock = Arc::new(AtomicI64::new(now_ms));
        let options = Options {
            roll_cycle: RollCycle::by_name(self.roll_cycle).cloned(),
            block_bytes: self.block_bytes,
            clock: Clock::Manual(Arc::clone(&clock)),
            durability: match self.durability {
                Durability::Each => Durability::Each,
                Durability::Process | Durability::Batch => Durability::Process,
            },
            timeout: Duration::ZERO,
            eof_grace: Some(Duration::ZERO),
            ..Options::default()
        };
        (options, clock)
    }
}

/// A message, and how many changes there were before it was begun.
pub struct Appended {
    pub payload: Vec<u8>,
    pub begun: usize,
}

/// The operations, in order.
#[derive(Default)]
pub struct History {
    pub messages: BTreeMap<i64, Appended>,
    /// How many changes there were when everything up to an index was synced, and that index.
    pub synced: Vec<(usize, i64)>,
    /// The time at the end.
    pub now_ms: i64,
}

impl History {
    /// The greatest index that was synced before the power was cut.
    pub fn covered(&self, moment: usize) -> Option<i64> {
        self.synced.iter().rev().find(|(at, _)| *at <= moment).map(|(_, index)| *index)
    }

    fn last(&self) -> Option<i64> {
        self.messages.last_key_value().map(|(last, _)| *last)
    }

    /// Notes that from now on all messages up to an index survive a power cut.
    fn promise(&mut self, index: Option<i64>) {
        let before = self.synced.last().map(|(_, index)| *index);
        if let Some(index) = index.filter(|index| Some(*index) > before) {
            self.synced.push((recorder::count(), index));
        }
    }

    /// A message that was at least begun before the power was cut.
    pub fn message(&self, index: i64, moment: usize) -> Option<&[u8]> {
        let found = self.messages.get(&index).filter(|message| message.begun < moment);
        found.map(|message| message.payload.as_slice())
    }
}

/// Bytes without a zero, so that zeros show what is missing.
pub fn payload(random: &mut Random, largest: u64) -> Vec<u8> {
    let short = random.below(4) != 0;
    let length = 1 + random.below(if short { 80 } else { largest });
    (0..length).map(|_| 1 + random.below(255) as u8).collect()
}

/// Appends, reads, rolls, syncs and reopens, directed by the seed.
pub fn run(path: &Path, shape: &Shape) -> History {
    let mut random = Random::new(shape.seed);
    let mut history = History { now_ms: START_MS, ..History::default() };
    let mut open = Handles::open(path, shape, history.now_ms);
    for _ in 0..shape.steps {
        match random.below(12) {
            0 if random.once_in(3) => {
                // A name has one reader at a time.
                open.tailer.close(&Detached::here(), false).expect("close the tailer");
                open = Handles::open(path, shape, history.now_ms);
            }
            1 => open.write_metadata(&mut random),
            2 | 3 => open.read(&mut random),
            4 => open.append_many(&mut history, &mut random),
            _ => open.append(&mut history, &mut random, shape.largest),
        }
        if random.once_in(shape.roll_every) {
            history.now_ms += DAY_MS * (1 + random.below(2)).cast_signed();
            open.clock.store(history.now_ms, Ordering::Release);
        }
        if random.once_in(shape.sync_every) {
            open.sync(&mut history, shape.durability);
        }
        if shape.durability == Durability::Each {
            history.promise(history.last());
        }
        history.promise(open.appender.queue().last_index_synced().expect("the synced index"));
    }
    history
}

struct Handles {
    appender: Arc<Appender>,
    tailer: Arc<Tailer>,
    clock: Arc<AtomicI64>,
}

impl Handles {
    fn open(path: &Path, shape: &Shape, now_ms: i64) -> Self {
        let (options, clock) = shape.options(now_ms);
        let queue = Queue::open(path, options, &mut Detached::here()).expect("open");
        let appender = Appender::new(Arc::clone(&queue), Signals::Handled(&mut Detached::here()))
            .expect("an appender");
        let tailer = Tailer::new(queue, Some(NAME), Signals::Handled(&mut Detached::here()))
            .expect("a tailer");
        Self { appender, tailer, clock }
    }

    fn append(&self, history: &mut History, random: &mut Random, largest: u64) {
        let begun = recorder::count();
        let payload = payload(random, largest);
        let index = self
            .appender
            .append(Signals::Handled(&mut Detached::here()), None, Payload::new(&payload))
            .expect("append");
        history.messages.insert(index, Appended { payload, begun });
    }

    /// A bulk write publishes its messages in runs, by the first header of each.
    fn append_many(&self, history: &mut History, random: &mut Random) {
        let begun = recorder::count();
        let payloads: Vec<Vec<u8>> = (0..=random.below(30)).map(|_| payload(random, 300)).collect();
        let payload_of = |number: usize| Ok(Payload::new(&payloads[number]));
        let last = self
            .appender
            .append_all(
                Signals::Handled(&mut Detached::here()),
                None,
                None,
                payloads.len(),
                payload_of,
            )
            .expect("append");
        for (index, payload) in (0..=last.expect("an index")).rev().zip(payloads.into_iter().rev())
        {
            history.messages.insert(index, Appended { payload, begun });
        }
    }

    fn write_metadata(&self, random: &mut Random) {
        let claim = self
            .appender
            .claim(Signals::Handled(&mut Detached::here()), None, true)
            .expect("claim");
        if random.once_in(2) {
            self.appender.give_up(claim);
        } else {
            self.appender.publish(&Detached::here(), claim, &[1; 24]).expect("publish");
        }
    }

    fn read(&self, random: &mut Random) {
        let count = random.below(8) as usize;
        self.tailer.read_many(&Detached::here(), count, |_, _| true).expect("read");
        self.tailer.commit(&Detached::here()).expect("commit");
    }

    fn sync(&self, history: &mut History, durability: Durability) {
        let queue = self.appender.queue();
        if durability == Durability::Batch {
            committer::commit_new(&Detached::here(), queue);
            queue.commit().check().expect("commit");
        } else {
            self.appender.sync(&Detached::here()).expect("sync");
        }
        history.promise(history.last());
    }
}
