//! Every interleaving of one writer and one reader: `RUSTFLAGS="--cfg loom" cargo test --release
//! --test loom_publish`. In ordinary builds this file is empty.
#![cfg(loom)]

use std::sync::atomic::AtomicBool;

use loom::sync::Arc;
use loom::thread;
use quire_kernel::chronicle::format::document::{self, Header};
use quire_kernel::chronicle::format::table::UNLOCKED;
use quire_kernel::chronicle::protocol::lock::guard::{
    HeldLock, LockGuard, LockOf, ProcessLock, WriteGuard,
};
use quire_kernel::chronicle::protocol::lock::word::LockWord;
use quire_kernel::chronicle::protocol::publish::{Payload, publish, publish_unseen};
use quire_kernel::memory::{Cells, Mapping};
use quire_kernel::probe::fault::Step;

const MESSAGE: [u8; 8] = *b"message!";
const LOCK: u64 = 0;
const FIRST: u64 = 8;

static TURN: AtomicBool = AtomicBool::new(false);

/// The write lock as `pid` holds it, or held it once. To be kept: the tests release the word.
fn guard(cells: &Cells, pid: u32) -> WriteGuard<'_> {
    let lock = ProcessLock::new(LockWord::new(cells, LOCK), LockOf::Queue, &TURN);
    WriteGuard::new(LockGuard::resume(lock, pid))
}

fn cells() -> Arc<Cells> {
    let cells = Cells::new(Mapping::zeroed(64));
    cells.store_release(LOCK, UNLOCKED, Step::named("lock.force.cas"));
    Arc::new(cells)
}

// Red with: a relaxed CAS or load of the header; the header stored first; no zeros after the
// payload.
#[test]
fn a_reader_that_sees_the_header_sees_the_payload_and_nothing_after_it() {
    loom::model(|| {
        let cells = cells();
        // Bytes left by a writer that died before it published.
        cells.store_header_plain(
            FIRST + 12,
            document::word(4, false),
            Step::named("publish.run-header.store"),
        );
        let writer = Arc::clone(&cells);
        let handle = thread::spawn(move || {
            let word = document::word(8, false);
            publish_unseen(&writer, FIRST, Payload::new(&MESSAGE), word).unwrap();
        });

        let (word, header) = cells.observe_header_acquire(FIRST);
        if let Header::Data(length) = document::parse(word) {
            assert_eq!(length, 8);
            assert_eq!(cells.bytes(header.names(FIRST + document::HEADER_LEN, 8)), MESSAGE);
            let next = document::next(FIRST, length, true);
            assert_eq!(document::parse(cells.load_header_acquire(next)), Header::Waiting);
        }

        handle.join().unwrap();
    });
}

// Red with: a relaxed CAS of the lock word.
#[test]
fn two_writers_that_take_the_lock_publish_one_after_the_other() {
    loom::model(|| {
        let cells = cells();
        let writers: Vec<_> = (1..=2)
            .map(|pid| {
                let cells = Arc::clone(&cells);
                thread::spawn(move || append_if_free(&cells, pid))
            })
            .collect();

        let appended: usize = writers.into_iter().map(|w| usize::from(w.join().unwrap())).sum();

        let mut position = FIRST;
        let mut found = 0;
        while let Header::Data(length) = document::parse(cells.load_header_acquire(position)) {
            position = document::next(position, length, true);
            found += 1;
        }
        assert!(appended >= 1);
        assert_eq!(found, appended);
    });
}

/// Appends one message unless the lock is taken.
fn append_if_free(cells: &Cells, pid: u32) -> bool {
    let lock = LockWord::new(cells, LOCK);
    if lock.try_take(pid).is_err() {
        return false;
    }
    let mut position = FIRST;
    while let Header::Data(length) = document::parse(cells.load_header_acquire(position)) {
        position = document::next(position, length, true);
    }
    let word = document::word(4, false);
    let held = guard(cells, pid);
    publish(cells, position, Payload::new(&[1; 4]), word, &held).unwrap();
    held.keep();
    lock.release(pid).unwrap();
    true
}
