//! Every interleaving of producers and the drainer of a ring: `RUSTFLAGS="--cfg loom" cargo test
//! --release --test loom_ring`. In ordinary builds this file is empty.
#![cfg(loom)]

use loom::sync::Arc;
use loom::thread;
use quire_kernel::memory::{Cells, Mapping};
use quire_kernel::probe::fault::Step;
use quire_kernel::ring::format::{Descriptor, Layout};
use quire_kernel::ring::protocol::{Next, Refused, Ring};

const STEP: Step = Step::named("ring.header.store");

/// A ring with room for two messages of 4 bytes.
const SMALL: Layout = Layout { capacity: 16, slots: 4 };

fn ring(layout: Layout) -> Arc<Cells> {
    let cells = Cells::new(Mapping::zeroed(layout.file_len()));
    for slot in 0..layout.slots {
        cells.store_release(layout.descriptor(slot), Descriptor::Empty(slot).word(), STEP);
    }
    Arc::new(cells)
}

/// All interleavings with at most this many preemptions: without a bound it takes too long.
fn bounded(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(2);
    builder.check(model);
}

fn put(cells: &Cells, byte: u8) -> Result<(), Refused> {
    let ring = Ring::new(cells, SMALL);
    let claim = ring.claim(1, false, 4, 0)?;
    ring.store(&claim, 0, &[byte; 4]);
    assert!(ring.commit(&claim));
    Ok(())
}

/// The first byte of the next message, which is whole.
fn take(cells: &Cells) -> Option<u8> {
    let ring = Ring::new(cells, SMALL);
    match ring.next() {
        Next::Message(entry) => {
            let bytes = ring.bytes(&entry);
            assert_eq!(bytes, [bytes[0]; 4]);
            ring.free(&entry);
            Some(bytes[0])
        }
        Next::Nothing | Next::Closed | Next::Working { .. } => None,
        found => panic!("{found:?}"),
    }
}

#[test]
fn two_producers_and_a_drainer_pass_each_message_once() {
    bounded(|| {
        let cells = ring(SMALL);
        let producers: Vec<_> = [1, 2]
            .map(|byte| {
                let cells = Arc::clone(&cells);
                thread::spawn(move || put(&cells, byte).unwrap())
            })
            .into_iter()
            .collect();
        let mut taken: Vec<u8> = take(&cells).into_iter().collect();
        producers.into_iter().for_each(|producer| producer.join().unwrap());
        taken.extend(std::iter::from_fn(|| take(&cells)));
        taken.sort_unstable();
        assert_eq!(taken, [1, 2]);
    });
}

#[test]
fn a_full_ring_refuses_until_there_is_room() {
    loom::model(|| {
        let cells = ring(SMALL);
        put(&cells, 1).unwrap();
        put(&cells, 2).unwrap();
        let producer = {
            let cells = Arc::clone(&cells);
            thread::spawn(move || put(&cells, 3))
        };
        assert_eq!(take(&cells), Some(1));
        let third = producer.join().unwrap();
        assert_eq!(take(&cells), Some(2));
        match third {
            Ok(()) => assert_eq!(take(&cells), Some(3)),
            Err(refused) => assert_eq!(refused, Refused::Full),
        }
        assert_eq!(take(&cells), None);
    });
}

/// Two rings, of which the second may become the successor of the first, under this name.
const SECOND: u64 = 7;

fn grow(first: &Cells) {
    let ring = Ring::new(first, SMALL);
    assert_eq!(ring.name_successor(SECOND), SECOND);
    ring.close().unwrap();
}

/// Puts a message into the ring that is open; returns whether that is the first one.
fn put_into_newest(rings: &[Arc<Cells>; 2], byte: u8) -> bool {
    match put(&rings[0], byte) {
        Err(Refused::Closed) => {
            assert_eq!(Ring::new(&rings[0], SMALL).successor(), Some(SECOND));
            put(&rings[1], byte).unwrap();
            false
        }
        put => {
            put.unwrap();
            true
        }
    }
}

/// Takes messages from both rings, as far as they are complete; the second comes after the first.
fn take_in_turn(rings: &[Arc<Cells>; 2]) -> Vec<u8> {
    let [first, second] = rings.each_ref().map(|cells| Ring::new(cells, SMALL));
    let mut taken: Vec<u8> = std::iter::from_fn(|| take(&rings[0])).collect();
    if first.next() == Next::Closed {
        second.begin_after(first);
        taken.extend(std::iter::from_fn(|| take(&rings[1])));
    }
    taken
}

#[test]
fn a_ring_that_grows_keeps_a_producers_order() {
    bounded(|| {
        let rings = [ring(SMALL), ring(SMALL)];
        assert!(put_into_newest(&rings, 1));
        let producer = {
            let rings = rings.clone();
            thread::spawn(move || put_into_newest(&rings, 2))
        };
        grow(&rings[0]);
        let mut taken = take_in_turn(&rings);
        let into_first = producer.join().unwrap();
        assert_eq!(into_first, Ring::new(&rings[1], SMALL).tail() == 0);
        taken.extend(take_in_turn(&rings));
        assert_eq!(taken, [1, 2]);
    });
}

#[test]
fn a_ring_that_two_grow_has_one_successor_and_takes_no_more() {
    bounded(|| {
        let first = ring(SMALL);
        let growers = [SECOND, SECOND + 1].map(|name| {
            let first = Arc::clone(&first);
            thread::spawn(move || {
                let ring = Ring::new(&first, SMALL);
                let successor = ring.name_successor(name);
                ring.close().unwrap();
                assert!(ring.is_closed());
                successor
            })
        });
        let [one, other] = growers.map(|grower| grower.join().unwrap());
        assert_eq!(one, other);
        assert_eq!(put(&first, 1), Err(Refused::Closed));
        assert_eq!(Ring::new(&first, SMALL).next(), Next::Closed);
    });
}

#[test]
fn a_message_is_in_the_closed_ring_or_refused() {
    loom::model(|| {
        let first = ring(SMALL);
        put(&first, 1).unwrap();
        let producer = {
            let first = Arc::clone(&first);
            thread::spawn(move || put(&first, 2))
        };
        grow(&first);
        let put = producer.join().unwrap();
        let taken: Vec<u8> = std::iter::from_fn(|| take(&first)).collect();
        assert_eq!(Ring::new(&first, SMALL).next(), Next::Closed);
        match put {
            Ok(()) => assert_eq!(taken, [1, 2]),
            Err(refused) => {
                assert_eq!(refused, Refused::Closed);
                assert_eq!(taken, [1]);
            }
        }
    });
}
