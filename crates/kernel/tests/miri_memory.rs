//! The raw access of `memory/` under Miri, on memory of this process: `make miri`. It finds reads
//! of freed or unallocated memory, races, and stores that a weaker machine may reorder. In
//! ordinary builds this file is empty.
#![cfg(miri)]

use std::sync::Arc;
use std::thread;

use quire_kernel::chronicle::format::document::{self, HEADER_LEN, Header};
use quire_kernel::chronicle::format::table::UNLOCKED;
use quire_kernel::chronicle::protocol::lock::word::LockWord;
use quire_kernel::chronicle::protocol::publish::{Payload, publish_unseen};
use quire_kernel::chronicle::protocol::table::keys::{self, Key};
use quire_kernel::memory::{Cells, Mapping};
use quire_kernel::probe::fault::Step;

const FIRST: u64 = 64;
const MESSAGE: [u8; 13] = *b"thirteen byte";
const STEP: Step = Step::named("publish.payload.store"); // of any store that a test makes

fn cells(len: u64) -> Arc<Cells> {
    Arc::new(Cells::new(Mapping::anonymous(len).unwrap()))
}

#[test]
fn a_reader_that_sees_the_header_sees_the_payload() {
    let cells = cells(4096);
    let writer = Arc::clone(&cells);
    let word = document::word(13, false);
    let writer = thread::spawn(move || {
        publish_unseen(&writer, FIRST, Payload::new(&MESSAGE), word).unwrap();
    });

    let header = loop {
        let (word, header) = cells.observe_header_acquire(FIRST);
        if document::parse(word) == Header::Data(13) {
            break header;
        }
        thread::yield_now();
    };
    assert_eq!(cells.bytes(header.names(FIRST + HEADER_LEN, 13)), MESSAGE);
    assert_eq!(cells.copy_out_relaxed(FIRST + HEADER_LEN, 13), MESSAGE);

    writer.join().unwrap();
}

#[test]
fn the_lock_word_has_one_holder() {
    let cells = cells(4096);
    cells.store_release(0, UNLOCKED, STEP);
    let threads: Vec<_> = (1..=3)
        .map(|pid| {
            let cells = Arc::clone(&cells);
            thread::spawn(move || {
                let lock = LockWord::new(&cells, 0);
                while lock.try_take(pid).is_err() {
                    thread::yield_now();
                }
                // Plain stores of several threads: a race, unless the lock orders them.
                cells.copy_in_plain(8, &[pid as u8; 16], STEP);
                lock.release(pid).unwrap();
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());

    let last = cells.copy_out_relaxed(8, 16);
    assert!(last.iter().all(|byte| *byte == last[0]));
}

#[test]
fn words_are_raised_and_lowered_at_the_ends_of_the_memory() {
    let cells = cells(4096);
    cells.raise_acq_rel(4088, 7, STEP);
    cells.raise_acq_rel(4088, 3, STEP);
    cells.lower_acq_rel(0, -5, STEP);
    cells.add_acq_rel(4088, 1, STEP);
    cells.zero_plain(8, 4080, STEP);

    assert_eq!(cells.load_acquire(4088), 8);
    assert_eq!(cells.load_acquire(0).cast_signed(), -5);
}

#[test]
#[should_panic = "position outside"]
fn a_position_outside_panics() {
    let cells = cells(4096);
    let (_, header) = cells.observe_header_acquire(0);
    let _ = cells.bytes(header.names(4090, 7));
}

#[test]
fn table_keys_are_found_where_they_were_added() {
    let cells = cells(512);
    let keys = ["listing.highestCycle", "chronicle.write.lock", "index.risk"];
    for key in keys {
        let (at, is_new) = keys::find_or_add(&cells, key.as_bytes(), -1).unwrap();
        assert!(is_new);
        assert_eq!(cells.load_acquire(at).cast_signed(), -1);
        assert_eq!(keys::find(&cells, key.as_bytes()), Ok(Key::At(at)));
    }
}
