//! Interleavings of producers and a reader of a Quick-Queue: `RUSTFLAGS="--cfg loom" cargo test
//! --release --test loom_quick_queue`. In ordinary builds this file is empty.
#![cfg(loom)]

use loom::sync::Arc;
use loom::thread;
use quire_kernel::memory::{Cells, Mapping};
use quire_kernel::probe::fault::Step;
use quire_kernel::quick_queue::format::entry::{ENTRY, Stamp, State};
use quire_kernel::quick_queue::format::producer::Producer;
use quire_kernel::quick_queue::protocol::entry_words;

const STEP: Step = Step::named("quick-queue.payload.store");
const ENTRIES: u64 = 3;
const LENGTH: u32 = 8;
/// Where messages begin: not at 0, so that an entry without its address is seen.
const BEGIN: u64 = 8;

/// All interleavings with at most this many preemptions: without a bound it takes too long.
fn bounded(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(model);
}

/// An index, and the data of two producers.
struct Queue {
    index: Cells,
    data: [Cells; 2],
}

const NAMES: [&str; 2] = ["AA0", "BB0"];

impl Queue {
    fn new() -> Arc<Self> {
        let cells = |length| Cells::new(Mapping::zeroed(length));
        Arc::new(Self { index: cells(ENTRIES * ENTRY), data: [cells(16), cells(16)] })
    }

    fn store(&self, producer: usize) -> Stamp {
        self.data[producer].copy_in_plain(BEGIN, &[producer as u8 + 1; LENGTH as usize], STEP);
        Stamp::claim(Producer::new(NAMES[producer]).unwrap(), LENGTH)
    }

    /// Claims an entry; returns its position.
    fn claim(&self, stamp: Stamp) -> u64 {
        let mut entries = (0..ENTRIES).map(|number| number * ENTRY);
        let claimed = entries.find(|at| {
            entry_words::is_free(&self.index, *at) && entry_words::claim(&self.index, *at, stamp)
        });
        claimed.expect("there is an entry for each producer")
    }

    fn append(&self, producer: usize) -> u64 {
        let stamp = self.store(producer);
        let at = self.claim(stamp);
        entry_words::complete(&self.index, at, BEGIN, stamp.completed());
        at
    }

    /// The producer of the complete message at an entry, which is whole.
    fn read(&self, at: u64) -> Option<usize> {
        let (begin, stamp, seen) = entry_words::read(&self.index, at);
        if stamp.state() != State::Complete {
            return None;
        }
        assert_eq!((begin, stamp.length()), (BEGIN, LENGTH));
        let bits = NAMES.map(|name| Producer::new(name).unwrap().bits());
        let producer = bits.iter().position(|bits| *bits == stamp.producer_bits()).unwrap();
        let message = self.data[producer].bytes(seen.names(begin, LENGTH.into()));
        assert_eq!(message, [producer as u8 + 1; LENGTH as usize]);
        Some(producer)
    }
}

// Red with: the stamp stored before the address, a relaxed store of the stamp, the address read
// before the stamp, or a store in place of the compare-and-swap of a claim.
#[test]
fn a_complete_entry_names_a_whole_message_and_no_claim_is_lost() {
    bounded(|| {
        let queue = Queue::new();
        let producers: Vec<_> = [0, 1]
            .map(|producer| {
                let queue = Arc::clone(&queue);
                thread::spawn(move || queue.append(producer))
            })
            .into_iter()
            .collect();
        let _ = (queue.read(0), queue.read(ENTRY));
        let mut places: Vec<_> = producers.into_iter().map(|it| it.join().unwrap()).collect();
        places.sort_unstable();
        assert_eq!(places, [0, ENTRY]);
        let mut found: Vec<_> = places.into_iter().filter_map(|at| queue.read(at)).collect();
        found.sort_unstable();
        assert_eq!(found, [0, 1]);
    });
}

/// A producer that died after its claim, completed by its successor, while another one appends.
#[test]
fn an_entry_that_was_left_is_completed_in_its_place() {
    bounded(|| {
        let queue = Queue::new();
        let stamp = queue.store(0);
        let left = queue.claim(stamp);
        let other = {
            let queue = Arc::clone(&queue);
            thread::spawn(move || queue.append(1))
        };
        let successor = {
            let queue = Arc::clone(&queue);
            thread::spawn(move || {
                entry_words::complete(&queue.index, left, BEGIN, stamp.completed());
            })
        };
        assert_ne!(queue.read(left), Some(1));
        successor.join().unwrap();
        assert_eq!(other.join().unwrap(), ENTRY);
        assert_eq!((queue.read(left), queue.read(ENTRY)), (Some(0), Some(1)));
    });
}
