//! Every interleaving around a write lock that is taken away: `RUSTFLAGS="--cfg loom" cargo test
//! --release --test loom_lock`. In ordinary builds this file is empty.
#![cfg(loom)]

use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use loom::thread;
use quire_kernel::format::document::{self, Header};
use quire_kernel::format::table::UNLOCKED;
use quire_kernel::memory::{Cells, Mapping};
use quire_kernel::protocol::publish::{NotPublished, Payload, publish};
use quire_kernel::protocol::write_lock::LockWord;

const LOCK: u64 = 0;
const FIRST: u64 = 8;
const DEAD: u32 = 99;
const ROBBED: u32 = 1;
const THIEF: u32 = 2;

fn cells(holder: u64) -> Arc<Cells> {
    let cells = Cells::new(Mapping::zeroed(64));
    cells.store_release(LOCK, holder);
    Arc::new(cells)
}

#[test]
fn a_dead_holder_is_robbed_once_and_its_lock_has_one_holder() {
    loom::model(|| {
        let cells = cells(u64::from(DEAD));
        let inside = Arc::new(AtomicU32::new(0));
        let waiters: Vec<_> = (1..=2)
            .map(|pid| {
                let (cells, inside) = (Arc::clone(&cells), Arc::clone(&inside));
                thread::spawn(move || {
                    let lock = LockWord::new(&cells, LOCK);
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
                })
            })
            .collect();

        let found: Vec<_> = waiters.into_iter().map(|waiter| waiter.join().unwrap()).collect();

        assert_eq!(found.iter().filter(|(forced, _)| *forced).count(), 1);
        assert!(found.iter().any(|(_, taken)| *taken));
        assert_eq!(LockWord::new(&cells, LOCK).read(), UNLOCKED);
    });
}

/// The holder is stopped between its copy and its second look at the lock word, until its lock was
/// taken away: then the thief's append and its own going on are in any order.
#[test]
fn a_robbed_holder_publishes_nothing_and_harms_nothing() {
    loom::model(|| {
        let cells = cells(u64::from(ROBBED));
        let stopped = Arc::new(AtomicBool::new(false));
        let woken = Arc::new(AtomicBool::new(false));
        let robbed = {
            let (cells, stopped, woken) =
                (Arc::clone(&cells), Arc::clone(&stopped), Arc::clone(&woken));
            thread::spawn(move || {
                let lock = LockWord::new(&cells, LOCK);
                let mut looks = 0;
                let looks = std::cell::RefCell::new(&mut looks);
                let word = document::word(4, false);
                let published = publish(&cells, FIRST, Payload::new(&[1; 4]), word, || {
                    **looks.borrow_mut() += 1;
                    if **looks.borrow() == 2 {
                        stopped.store(true, Ordering::Release);
                        while !woken.load(Ordering::Acquire) {
                            thread::yield_now();
                        }
                    }
                    lock.still_held(ROBBED)
                });
                (published, lock.release(ROBBED))
            })
        };

        while !stopped.load(Ordering::Acquire) {
            thread::yield_now();
        }
        let lock = LockWord::new(&cells, LOCK);
        assert!(lock.force(u64::from(ROBBED)));
        woken.store(true, Ordering::Release);
        lock.try_take(THIEF).unwrap();
        let word = document::word(8, false);
        let held = || lock.still_held(THIEF);
        publish(&cells, FIRST, Payload::new(&[2; 8]), word, held).unwrap();
        lock.release(THIEF).unwrap();

        let (published, released) = robbed.join().unwrap();
        assert!(matches!(published, Err(NotPublished::LockLost(_))), "{published:?}");
        assert!(released.is_err(), "it let go of a lock that it does not hold");
        assert_eq!(document::parse(cells.load_header_acquire(FIRST)), Header::Data(8));
        assert_eq!(cells.copy_out_plain(FIRST + document::HEADER_LEN, 8), [2; 8]);
    });
}
