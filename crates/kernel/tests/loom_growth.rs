//! Every interleaving of threads that grow a file and check its length: `RUSTFLAGS="--cfg loom"
//! cargo test --release --test loom_growth`. In ordinary builds this file is empty.
#![cfg(loom)]

use std::convert::Infallible;

use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering};
use loom::thread;
use quire_kernel::memory::known_length::KnownLength;

const BEFORE: u64 = 1;

/// A file, and its length as the process knows it.
struct Grown {
    len: AtomicU64,
    known: KnownLength,
}

impl Grown {
    fn new() -> Arc<Self> {
        Arc::new(Self { len: AtomicU64::new(BEFORE), known: KnownLength::new(BEFORE) })
    }

    /// Like a reader that needs bytes past the end.
    fn look(&self) -> u64 {
        self.known.refresh(|| Ok::<_, Infallible>(self.len.load(Ordering::Acquire))).unwrap()
    }

    /// Like an appender, holding the lock on growth.
    fn grow(&self, to: u64) {
        self.len.fetch_max(to, Ordering::AcqRel);
        self.look();
        let known = self.known.get();
        assert!(known >= to, "past the end: known={known} grown={to}");
    }
}

// Red with: the length stored whatever was stored since the look.
#[test]
fn what_was_grown_stays_known_while_another_looks() {
    loom::model(|| {
        let file = Grown::new();
        let reader = Arc::clone(&file);
        let reader = thread::spawn(move || reader.look());

        file.grow(2);

        let seen = reader.join().unwrap();
        assert!(seen == BEFORE || seen == 2, "{seen}");
        assert_eq!(file.known.get(), 2);
    });
}

// Red with: the length stored whatever was stored since the look.
#[test]
fn the_length_of_those_who_grow_it_one_after_another_is_the_last() {
    loom::model(|| {
        let file = Grown::new();
        let other = Arc::clone(&file);
        let other = thread::spawn(move || other.grow(3));

        file.grow(2);

        other.join().unwrap();
        assert_eq!(file.known.get(), 3);
    });
}
