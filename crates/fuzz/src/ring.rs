//! A ring of asynchronous appends whose words are arbitrary.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use quire_kernel::Result;
use quire_kernel::chronicle::format::roll_cycle::RollCycle;
use quire_kernel::chronicle::protocol::publish::Payload;
use quire_kernel::chronicle::queue::handle::Queue;
use quire_kernel::chronicle::queue::options::Options;
use quire_kernel::os::detached::Detached;
use quire_kernel::os::interrupt::Signals;
use quire_kernel::ring::file::FILE_NAME;
use quire_kernel::ring::format::{self, LEAST_CAPACITY, Layout, MOST_CAPACITY};
use quire_kernel::ring::handle::{OnFull, Ring, Stats};

use crate::bounded;
use crate::reading::{self, Messages};
use crate::sample::{FILE, NOW_MS, Scratch, TABLE};
use crate::words;

/// The most memory that opening a ring, and draining all that its descriptors claim, may allocate.
const MEMORY: usize = 24 << 20;
/// More messages than a ring has slots: no ring can yield as many.
const MOST: usize = 4096;
/// Messages of the sample that are in the queue, and in the ring.
const DRAINED: usize = 3000;
const PENDING: usize = 9;

/// Form bit: the sample begins with slots that were used before.
const IS_USED: u8 = 1;
/// Form bit: the second half of the edits is made while the ring is open.
const IS_LIVE: u8 = 2;
const IS_CUT: u8 = 4;

/// The first byte is the form; the others are edits.
pub fn ring(data: &[u8]) {
    let Some((form, edits)) = data.split_first() else { return };
    let half = if form & IS_LIVE == 0 { edits.len() } else { edits.len() / 2 };
    let (before, live) = edits.split_at(half / 10 * 10);
    let sample = sample(form & IS_USED != 0);
    let dir = laid_out(sample, *form, before);
    bounded(MEMORY, || {
        if let Ok(Some(stats)) = Stats::of(&dir) {
            check(stats);
        }
        let queue = open(&dir).unwrap();
        let written = use_ring(&queue, &dir, live);
        let read = reading::forward(&queue, MOST);
        assert!(read.error.is_none(), "not read: {:?}", read.error);
        let kept = read.messages.get(..sample.messages.len());
        assert!(kept == Some(&sample.messages[..]), "earlier messages changed");
        if edits.is_empty() && form & IS_CUT == 0 {
            let added = read.messages[sample.messages.len()..].iter().map(|(_, bytes)| bytes);
            let expected: Vec<_> = (0..PENDING).map(payload).chain(written.unwrap()).collect();
            assert!(added.eq(&expected), "not each once: {read:?}");
        }
        queue.close(&Detached::here());
    });
}

struct Sample {
    file: Vec<u8>,
    table: Vec<u8>,
    ring: Vec<u8>,
    messages: Messages,
}

fn payload(number: usize) -> Vec<u8> {
    vec![u8::try_from(number % 251).unwrap(); 1 + number % 40]
}

fn sample(is_used: bool) -> &'static Sample {
    static SAMPLES: [OnceLock<Sample>; 2] = [OnceLock::new(), OnceLock::new()];
    SAMPLES[usize::from(is_used)].get_or_init(|| {
        let dir = tempfile::tempdir().unwrap();
        let queue = open(dir.path()).unwrap();
        let ring =
            Ring::open(&queue, LEAST_CAPACITY, OnFull::Raise, &mut Detached::here()).unwrap();
        for number in 0..if is_used { DRAINED } else { 1 } {
            ring.put(&mut Detached::here(), Payload::new(&payload(number)), false).unwrap();
            ring.drain(&Detached::here()).unwrap();
        }
        for number in 0..PENDING {
            ring.put(&mut Detached::here(), Payload::new(&payload(number)), false).unwrap();
        }
        let bytes = |name: &str| std::fs::read(dir.path().join(name)).unwrap();
        let messages = reading::forward(&queue, MOST).messages;
        let (file, table) = (bytes(FILE), bytes(TABLE));
        Sample { file, table, ring: bytes(FILE_NAME), messages }
    })
}

fn open(dir: &Path) -> Result<Arc<Queue>> {
    let roll_cycle = RollCycle::by_name("TEST4_DAILY").cloned();
    Queue::open(
        dir,
        Options { roll_cycle, ..reading::options(false, NOW_MS) },
        &mut Detached::here(),
    )
}

fn laid_out(sample: &Sample, form: u8, edits: &[u8]) -> PathBuf {
    thread_local!(static SCRATCH: Scratch = Scratch::new());
    let mut ring = sample.ring.clone();
    words::change(&mut ring, &places(), edits);
    if form & IS_CUT != 0 {
        ring.truncate(usize::from(form) << 9);
    }
    let files = [(FILE, &sample.file[..]), (TABLE, &sample.table), (FILE_NAME, &ring)];
    SCRATCH.with(|scratch| scratch.with(&files))
}

/// The words that are changed: the header, and descriptors around those in use, with the places
/// after the drained ones for both samples.
fn places() -> Vec<u64> {
    let layout = Layout::of(LEAST_CAPACITY);
    let header = [0, format::VERSION_AT, format::CAPACITY_AT, format::SLOTS_AT, format::TAIL];
    let drained =
        [format::DRAINED_SLOTS, format::DRAINED_BYTES, format::HIGH_WATER, format::STALLS];
    let chain = [format::NUMBER_AT, format::EARLIER_STALLS, format::SUCCESSOR, format::BEGUN];
    let intent = [format::INTENT_INDEX, format::INTENT_COUNT, format::INTENT_SLOT];
    let around = |slot: u64| slot..slot + PENDING as u64 + 3;
    let slots = around(0).chain(around(DRAINED as u64)).chain([layout.slots - 1]);
    let descriptors = slots.map(|slot| layout.descriptor(slot));
    header.into_iter().chain(drained).chain(intent).chain(chain).chain(descriptors).collect()
}

fn check(stats: Stats) {
    let Stats { capacity, used, high_water, pending, stalls } = stats;
    // The high-water mark covers all rings of the chain.
    assert!(used <= capacity && high_water <= 2 * MOST_CAPACITY, "{stats:?}");
    assert!(pending <= capacity, "{stats:?}");
    assert!(i64::try_from(stalls).is_ok(), "{stats:?}");
}

/// Drains left-over messages, then puts messages in and drains again; returns the messages put in.
fn use_ring(queue: &Arc<Queue>, dir: &Path, live: &[u8]) -> Result<Vec<Vec<u8>>> {
    if let Some(left) = Ring::drain_left_over(queue, &mut Detached::here())? {
        left.close(&Detached::here());
    }
    let ring = Ring::open(queue, LEAST_CAPACITY, OnFull::Raise, &mut Detached::here())?;
    let mut written = Vec::new();
    for (number, edits) in [&[][..], live].into_iter().enumerate() {
        words::change_at(&dir.join(FILE_NAME), &places(), edits);
        for length in [1, 100, 9000] {
            let payload = vec![u8::try_from(number).unwrap(); length];
            if ring.put(&mut Detached::here(), Payload::new(&payload), false).is_ok() {
                written.push(payload);
            }
        }
        let _ = ring.put(&mut Detached::here(), Payload::new(b"metadata"), true);
        if let Ok(stats) = ring.stats(Signals::Handled(&mut Detached::here())) {
            check(stats);
        }
        let _ = ring.drain(&Detached::here());
    }
    let _ = ring.flush(&mut Detached::here(), Duration::ZERO);
    ring.close(&Detached::here());
    Ok(written)
}
