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

/// A ring with room for two messages of 4 bytes, and as many slots.
const SMALL: Layout = Layout { capacity: 16, slots: 2 };

fn ring(layout: Layout) -> Arc<Cells> {
    let cells = Cells::new(Mapping::zeroed(layout.file_len()));
    for slot in 0..layout.slots {
        cells.store_release(layout.descriptor(slot), Descriptor::Empty(slot).word(), STEP);
    }
    Arc::new(cells)
}

fn put(cells: &Cells, byte: u8) -> Result<(), Refused> {
    let ring = Ring::new(cells, SMALL);
    let claim = ring.claim(1, false, 4)?;
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
        Next::Nothing | Next::Working { .. } => None,
        found => panic!("{found:?}"),
    }
}

#[test]
fn two_producers_and_a_drainer_pass_each_message_once() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2); // without a bound it takes too long
    model.check(|| {
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
