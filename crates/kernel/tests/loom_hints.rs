//! Every interleaving of an appender's words and their readers: `RUSTFLAGS="--cfg loom" cargo test
//! --release --test loom_hints`. In ordinary builds this file is empty.
#![cfg(loom)]

use std::sync::atomic::AtomicBool;

use std::convert::Infallible;

use loom::sync::Arc;
use loom::thread;
use quire_kernel::chronicle::format::document::{self, Header};
use quire_kernel::chronicle::format::index::{ArrayLayout, Shape};
use quire_kernel::chronicle::format::store::StoreLayout;
use quire_kernel::chronicle::protocol::hints::{self, Pair};
use quire_kernel::chronicle::protocol::lock::guard::{
    HeldLock, LockGuard, LockOf, ProcessLock, WriteGuard,
};
use quire_kernel::chronicle::protocol::lock::word::LockWord;
use quire_kernel::chronicle::protocol::publish::{Payload, end_file, publish_unseen};
use quire_kernel::memory::{Cells, Mapping};

const SHAPE: Shape = Shape { index_count: 8, index_spacing: 1 };
const ARRAY: ArrayLayout = ArrayLayout { used: 32, slots: 40 };
const FIRST: u64 = 112;
const SECOND: u64 = 120;

fn layout() -> StoreLayout {
    StoreLayout {
        write_position: 0,
        sequence: Some(8),
        index2index: 16,
        last_index: 24,
        ..StoreLayout::default()
    }
}

static TURN: AtomicBool = AtomicBool::new(false);

/// A write lock that is never checked. To be kept: there is no word to release.
fn guard(cells: &Cells) -> WriteGuard<'_> {
    let lock = ProcessLock::new(LockWord::new(cells, 0), LockOf::Queue, &TURN);
    WriteGuard::new(LockGuard::resume(lock, 1))
}

fn cells() -> Arc<Cells> {
    Arc::new(Cells::new(Mapping::zeroed(160)))
}

/// Publishes a message and stores its words, as an appender does.
fn append(cells: &Cells, position: u64, sequence: u64) {
    let word = document::word(4, false);
    publish_unseen(cells, position, Payload::new(&[7; 4]), word).unwrap();
    let held = guard(cells);
    hints::record(cells, &layout(), SHAPE, position, sequence, &held);
    hints::store_slot(cells, &layout(), SHAPE, &ARRAY, position, sequence, &held);
    held.keep();
}

fn is_message(cells: &Cells, position: u64) -> bool {
    document::parse(cells.load_header_acquire(position)) == Header::Data(4)
}

// Red with: a relaxed store of the words; a word that is not matched with its position.
#[test]
fn a_pair_that_belongs_together_numbers_a_message_that_is_there() {
    loom::model(|| {
        let cells = cells();
        let writer = Arc::clone(&cells);
        let handle = thread::spawn(move || {
            append(&writer, FIRST, 0);
            append(&writer, SECOND, 1);
        });

        let load = |at| Ok::<u64, Infallible>(cells.load_acquire(at));
        match hints::read_pair(&layout(), SHAPE, || load(0), load).unwrap() {
            Pair::Empty => {}
            Pair::Known(position, sequence) => {
                assert!([(FIRST, 0), (SECOND, 1)].contains(&(position, sequence)));
                assert!(is_message(&cells, position));
            }
            Pair::Unnumbered(position) => assert!(is_message(&cells, position)),
        }

        handle.join().unwrap();
        let pair = hints::read_pair(&layout(), SHAPE, || load(0), load);
        assert_eq!(pair, Ok(Pair::Known(SECOND, 1)));
    });
}

/// Readers rely on slots pointing to messages. An appender relies on `lastIndex`: a counted message
/// gets no slot any more, so a message counted before its slot is stored would never get one.
// Red with: the slot stored after its counters; a relaxed store of it; relaxed counters.
#[test]
fn a_slot_and_what_counts_it_lead_to_messages_that_are_there() {
    loom::model(|| {
        let cells = cells();
        let writer = Arc::clone(&cells);
        let handle = thread::spawn(move || {
            append(&writer, FIRST, 0);
            append(&writer, SECOND, 1);
        });

        let counted = cells.load_acquire(layout().last_index);
        let used = cells.load_acquire(ARRAY.used);
        for (slot, expected) in [(0, FIRST), (1, SECOND)] {
            let position = cells.load_acquire(ARRAY.slot(slot));
            assert!(position == expected || position == 0 && slot >= counted && slot >= used);
            assert!(position == 0 || is_message(&cells, position));
        }

        handle.join().unwrap();
        assert_eq!(cells.load_acquire(layout().last_index), 2);
    });
}

/// Under one lock they cannot meet: the writer is a process that lost its lock by force.
// Red with: a load and a store in place of the CAS that ends the file.
#[test]
fn a_place_gets_a_message_or_the_end_of_the_file() {
    loom::model(|| {
        let cells = Arc::new(Cells::new(Mapping::between_processes(160)));
        let (writer, roller) = (Arc::clone(&cells), Arc::clone(&cells));
        let word = document::word(4, false);
        let writer = thread::spawn(move || {
            publish_unseen(&writer, FIRST, Payload::new(&[7; 4]), word).is_ok()
        });
        let roller = thread::spawn(move || {
            let held = guard(&roller);
            let ended = end_file(&roller, FIRST, 0, &held).is_ok();
            held.keep();
            ended
        });

        let seen = document::parse(cells.load_header_acquire(FIRST));
        let (written, ended) = (writer.join().unwrap(), roller.join().unwrap());

        assert!(written != ended, "one of the two");
        let last = if written { Header::Data(4) } else { Header::EndOfData };
        assert_eq!(document::parse(cells.load_header_acquire(FIRST)), last);
        assert!(seen == Header::Waiting || seen == last);
    });
}
