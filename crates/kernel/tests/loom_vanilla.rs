//! Interleavings of writers and a reader of a Vanilla Chronicle: `RUSTFLAGS="--cfg loom" cargo test
//! --release --test loom_vanilla`. In ordinary builds this file is empty.
#![cfg(loom)]

use loom::sync::Arc;
use loom::thread;
use quire_kernel::memory::{Cells, Mapping};
use quire_kernel::probe::fault::Step;
use quire_kernel::vanilla::format::record::{self, HEADER, Length};
use quire_kernel::vanilla::protocol::claims;

const STEP: Step = Step::named("vanilla.payload.store");
const SLOTS: u64 = 3;
const PAYLOAD: u64 = 8;
const RECORD: u64 = HEADER + PAYLOAD;
/// Bytes of each writer's data file, as a multiple of 8.
const DATA: u64 = 16;

/// All interleavings with at most this many preemptions: without a bound it takes too long.
fn bounded(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(model);
}

/// An index, and a data file for each of two writers. An entry is the number of the writer, from 1.
struct Cycle {
    index: Cells,
    data: [Cells; 2],
}

impl Cycle {
    fn new() -> Arc<Self> {
        let cells = |length| Cells::new(Mapping::zeroed(length));
        Arc::new(Self { index: cells(SLOTS * 8), data: [cells(DATA), cells(DATA)] })
    }

    /// Stores a record; its writer may fail before it claims an entry.
    fn stage(&self, writer: u64) {
        let data = self.data_of(writer);
        data.copy_in_plain(HEADER, &[writer as u8; PAYLOAD as usize], STEP);
        claims::publish_record(data, 0, PAYLOAD as u32);
    }

    /// Appends the one message of a writer; returns its sequence number.
    fn append(&self, writer: u64) -> u64 {
        self.stage(writer);
        let slot = (0..SLOTS).find(|slot| claims::claim_slot(&self.index, *slot, writer));
        slot.expect("there is a slot for each writer")
    }

    /// The writer of the message in a slot, whose payload is whole; None while it is free.
    fn read(&self, slot: u64) -> Option<u64> {
        let writer = claims::entry(&self.index, slot);
        if writer == 0 {
            return None;
        }
        let data = self.data_of(writer);
        assert_eq!(record::length(data.load_header_acquire(0)), Length::Bytes(PAYLOAD as u32));
        assert_eq!(data.copy_out_relaxed(HEADER, PAYLOAD), [writer as u8; PAYLOAD as usize]);
        Some(writer)
    }

    fn data_of(&self, writer: u64) -> &Cells {
        assert!(RECORD <= DATA);
        &self.data[usize::try_from(writer - 1).unwrap()]
    }
}

// Red with: relaxed stores of the length or the entry, or a store in place of the compare-and-swap.
#[test]
fn an_entry_names_a_whole_record_and_no_entry_is_lost() {
    bounded(|| {
        let cycle = Cycle::new();
        let writers: Vec<_> = [1, 2]
            .map(|writer| {
                let cycle = Arc::clone(&cycle);
                thread::spawn(move || cycle.append(writer))
            })
            .into_iter()
            .collect();
        // Entries are filled in order: no taken one comes after a free one.
        if cycle.read(1).is_some() {
            assert!(cycle.read(0).is_some());
        }
        let mut slots: Vec<_> = writers.into_iter().map(|it| it.join().unwrap()).collect();
        slots.sort_unstable();
        assert_eq!(slots, [0, 1]);
        let mut found: Vec<_> = (0..SLOTS).filter_map(|slot| cycle.read(slot)).collect();
        found.sort_unstable();
        assert_eq!(found, [1, 2]);
    });
}

#[test]
fn a_record_that_is_taken_back_is_seen_by_nobody() {
    bounded(|| {
        let cycle = Cycle::new();
        let failing = {
            let cycle = Arc::clone(&cycle);
            thread::spawn(move || {
                cycle.stage(1);
                claims::take_back_record(cycle.data_of(1), 0);
            })
        };
        assert_eq!(cycle.append(2), 0);
        assert_eq!(cycle.read(0), Some(2));
        failing.join().unwrap();
        assert_eq!(cycle.read(1), None);
    });
}
