//! Every interleaving of creators and readers of table keys: `RUSTFLAGS="--cfg loom" cargo test
//! --release --test loom_table`. In ordinary builds this file is empty.
//!
//! A mutex stands for the record lock on the table's file.
#![cfg(loom)]

use loom::sync::{Arc, Mutex};
use loom::thread;
use quire_kernel::chronicle::protocol::table::keys::{self, Key};
use quire_kernel::memory::{Cells, Mapping};

const VALUE: i64 = 0x0102_0304_0506_0708;

fn find(cells: &Cells, key: &str) -> Option<u64> {
    match keys::find(cells, key.as_bytes()).unwrap() {
        Key::At(value) => Some(value),
        Key::Missing(_) => None,
    }
}

/// Two creators, each of its own keys, and a reader of "a" that takes no lock.
fn race(keys: [&'static str; 2]) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(move || {
        let cells = Arc::new(Cells::new(Mapping::zeroed(128)));
        let lock = Arc::new(Mutex::new(()));
        let creators = keys.map(|key| {
            let (cells, lock) = (Arc::clone(&cells), Arc::clone(&lock));
            thread::spawn(move || {
                let _held = lock.lock().unwrap();
                keys::find_or_add(&cells, key.as_bytes(), VALUE).unwrap()
            })
        });

        let seen = find(&cells, "a");
        let whole = seen.map(|at| cells.copy_out_relaxed(at, 8));

        let [first, second] = creators.map(|creator| creator.join().unwrap());
        assert!(seen.is_none_or(|at| [first.0, second.0].contains(&at)));
        assert!(whole.is_none_or(|value| value == VALUE.to_le_bytes()));
        assert_eq!(first.0 == second.0, keys[0] == keys[1], "a key has one place");
        assert_eq!(first.1 && second.1, keys[0] != keys[1], "a key is added once");
        for (key, (at, _)) in keys.iter().zip([first, second]) {
            assert_eq!(find(&cells, key), Some(at));
        }
    });
}

// Red with: a relaxed CAS of the header; the header shown first.
#[test]
fn a_key_that_two_create_is_there_once() {
    race(["a", "a"]);
}

// Red with: a relaxed CAS of the header; the header shown first.
#[test]
fn two_keys_that_are_created_at_once_are_both_there() {
    race(["a", "b"]);
}
