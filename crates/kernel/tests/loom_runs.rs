//! Every interleaving of a run of documents that one header shows and its readers:
//! `RUSTFLAGS="--cfg loom" cargo test --release --test loom_runs`. In ordinary builds this file is
//! empty.
#![cfg(loom)]

use std::sync::atomic::AtomicBool;

use loom::sync::Arc;
use loom::thread;
use quire_kernel::chronicle::format::document::{self, HEADER_LEN, Header};
use quire_kernel::chronicle::protocol::lock::guard::{
    HeldLock, LockGuard, LockOf, ProcessLock, WriteGuard,
};
use quire_kernel::chronicle::protocol::lock::word::LockWord;
use quire_kernel::chronicle::protocol::publish::{
    NotPublished, Payload, publish, show, store, store_after,
};
use quire_kernel::memory::{Cells, Mapping};
use quire_kernel::probe::fault::Step;

const LOCK: u64 = 0;
const FIRST: u64 = 8;
const SECOND: u64 = 16;
const HOLDER: u32 = 1;
const THIEF: u32 = 2;
const RUN: [[u8; 4]; 2] = [*b"one!", *b"two!"];

static TURN: AtomicBool = AtomicBool::new(false);

/// The write lock as `pid` holds it, or held it once. To be kept: the tests release the word.
fn guard(cells: &Cells, pid: u32) -> WriteGuard<'_> {
    let lock = ProcessLock::new(LockWord::new(cells, LOCK), LockOf::Queue, &TURN);
    WriteGuard::new(LockGuard::resume(lock, pid))
}

/// Memory in which the write lock is held, with leftovers of a dead writer that look like
/// documents.
fn cells() -> Arc<Cells> {
    let cells = Cells::new(Mapping::zeroed(48));
    cells.store_release(LOCK, u64::from(HOLDER), Step::named("lock.take.cas"));
    for position in [SECOND, 24, 32] {
        cells.store_header_plain(
            position,
            document::word(4, false),
            Step::named("publish.run-header.store"),
        );
    }
    Arc::new(cells)
}

/// Stores the run after its first header, which stays 0.
fn store_run(cells: &Cells) {
    let held = guard(cells, HOLDER);
    store(cells, FIRST, Payload::new(&RUN[0]), &held).unwrap();
    let word = document::word(4, false);
    store_after(cells, SECOND, Payload::new(&RUN[1]), word, &held).unwrap();
    held.keep();
}

fn show_run(cells: &Cells) -> Result<(), NotPublished> {
    let held = guard(cells, HOLDER);
    let shown = show(cells, FIRST, document::word(4, false), &held);
    held.keep();
    shown
}

/// Reads to the first header that is 0.
fn read(cells: &Cells) -> Vec<Vec<u8>> {
    let (mut position, mut found) = (FIRST, Vec::new());
    while let Header::Data(length) = document::parse(cells.load_header_acquire(position)) {
        found.push(cells.copy_out_relaxed(position + HEADER_LEN, u64::from(length)));
        position = document::next(position, length, true);
    }
    found
}

// Red with: a relaxed CAS of the header; the first header stored early; no zeros after a payload.
#[test]
fn a_run_is_seen_whole_or_not_at_all() {
    loom::model(|| {
        let cells = cells();
        let writer = Arc::clone(&cells);
        let writer = thread::spawn(move || {
            store_run(&writer);
            show_run(&writer).unwrap();
        });

        let seen = read(&cells);

        assert!(seen.is_empty() || seen == RUN, "{seen:?}");
        writer.join().unwrap();
        assert_eq!(read(&cells), RUN);
    });
}

/// The holder was stopped between its copy and its second check, until its lock was taken by force.
// Red with: no second check of the lock word; no zeros after a payload; a relaxed CAS of the
// header.
#[test]
fn a_run_whose_holder_is_robbed_is_never_seen() {
    loom::model(|| {
        let cells = cells();
        store_run(&cells);
        assert!(LockWord::new(&cells, LOCK).force(u64::from(HOLDER)));
        let (robbed, thief) = (Arc::clone(&cells), Arc::clone(&cells));
        let robbed = thread::spawn(move || show_run(&robbed));
        let thief = thread::spawn(move || {
            let lock = LockWord::new(&thief, LOCK);
            lock.try_take(THIEF).unwrap();
            let word = document::word(4, false);
            let held = guard(&thief, THIEF);
            publish(&thief, FIRST, Payload::new(b"mine"), word, &held).unwrap();
            held.keep();
            lock.release(THIEF).unwrap();
        });

        let seen = read(&cells);

        assert!(seen.is_empty() || seen == [b"mine"], "{seen:?}");
        thief.join().unwrap();
        let shown = robbed.join().unwrap();
        assert!(matches!(shown, Err(NotPublished::LockLost(_))), "{shown:?}");
        assert_eq!(read(&cells), [b"mine"]);
    });
}
