//! Every interleaving around a write lock that is taken by force: `RUSTFLAGS="--cfg loom" cargo
//! test --release --test loom_lock`. In ordinary builds this file is empty.
#![cfg(loom)]

use std::sync::atomic::AtomicBool;

use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, Ordering};
use loom::thread;
use quire_kernel::chronicle::format::document::{self, Header};
use quire_kernel::chronicle::format::table::UNLOCKED;
use quire_kernel::chronicle::protocol::lock::guard::{
    HeldLock, LockGuard, LockOf, ProcessLock, WriteGuard,
};
use quire_kernel::chronicle::protocol::lock::word::LockWord;
use quire_kernel::chronicle::protocol::publish::{NotPublished, Payload, publish, show, store};
use quire_kernel::memory::{Cells, Mapping};
use quire_kernel::probe::fault::Step;

const LOCK: u64 = 0;
const FIRST: u64 = 8;
const DEAD: u32 = 99;
const ROBBED: u32 = 1;
const THIEF: u32 = 2;

static TURN: AtomicBool = AtomicBool::new(false);

/// The write lock as `pid` holds it, or held it once. To be kept: the tests release the word.
fn guard(cells: &Cells, pid: u32) -> WriteGuard<'_> {
    let lock = ProcessLock::new(LockWord::new(cells, LOCK), LockOf::Queue, &TURN);
    WriteGuard::new(LockGuard::resume(lock, pid))
}

fn cells(holder: u64) -> Arc<Cells> {
    let cells = Cells::new(Mapping::zeroed(64));
    cells.store_release(LOCK, holder, Step::named("lock.take.cas"));
    Arc::new(cells)
}

/// Frees the lock by force if the dead holder still has it, then takes it if it is free.
fn rob_and_append(cells: &Cells, inside: &AtomicU32, pid: u32) -> (bool, bool) {
    let lock = LockWord::new(cells, LOCK);
    let found = lock.read();
    let forced = found == u64::from(DEAD) && lock.force(found);
    let taken = lock.try_take(pid).is_ok();
    if taken {
        assert_eq!(inside.fetch_add(1, Ordering::AcqRel), 0, "two holders");
        assert_eq!(lock.still_held(pid), Ok(()));
        inside.fetch_sub(1, Ordering::AcqRel);
        assert_eq!(lock.release(pid), Ok(()), "taken from a living holder");
    }
    (forced, taken)
}

// Red with: a store in place of the CAS that takes the lock away.
#[test]
fn a_dead_holder_is_robbed_once_and_its_lock_has_one_holder() {
    loom::model(|| {
        let cells = cells(u64::from(DEAD));
        let inside = Arc::new(AtomicU32::new(0));
        let other = (Arc::clone(&cells), Arc::clone(&inside));
        let other = thread::spawn(move || rob_and_append(&other.0, &other.1, 2));

        let found = [rob_and_append(&cells, &inside, 1), other.join().unwrap()];

        assert_eq!(found.iter().filter(|(forced, _)| *forced).count(), 1);
        assert!(found.iter().any(|(_, taken)| *taken));
        assert_eq!(LockWord::new(&cells, LOCK).read(), UNLOCKED);
    });
}

/// The holder was stopped between its copy and its second check of the lock word, until its lock
/// was taken by force: then the new holder's append and the old one's continuation run in any
/// order.
// Red with: no second check of the lock word.
#[test]
fn a_robbed_holder_publishes_nothing_and_harms_nothing() {
    loom::model(|| {
        let cells = cells(u64::from(ROBBED));
        let lock = LockWord::new(&cells, LOCK);
        let held = guard(&cells, ROBBED);
        store(&cells, FIRST, Payload::new(&[1; 4]), &held).unwrap();
        held.keep();
        assert!(lock.force(u64::from(ROBBED)));
        let robbed = Arc::clone(&cells);
        let robbed = thread::spawn(move || {
            let lock = LockWord::new(&robbed, LOCK);
            let word = document::word(4, false);
            let held = guard(&robbed, ROBBED);
            let shown = show(&robbed, FIRST, word, &held);
            held.keep();
            (shown, lock.release(ROBBED))
        });

        lock.try_take(THIEF).unwrap();
        let word = document::word(8, false);
        let held = guard(&cells, THIEF);
        publish(&cells, FIRST, Payload::new(&[2; 8]), word, &held).unwrap();
        held.keep();
        lock.release(THIEF).unwrap();

        let (shown, released) = robbed.join().unwrap();
        assert!(matches!(shown, Err(NotPublished::LockLost(_))), "{shown:?}");
        assert!(released.is_err(), "it let go of a lock that it does not hold");
        assert_eq!(document::parse(cells.load_header_acquire(FIRST)), Header::Data(8));
        assert_eq!(cells.copy_out_relaxed(FIRST + document::HEADER_LEN, 8), [2; 8]);
    });
}
