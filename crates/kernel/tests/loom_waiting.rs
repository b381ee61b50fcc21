//! Every interleaving of sleepers and appenders at the word that synchronises them:
//! `RUSTFLAGS="--cfg loom" cargo test --release --test loom_waiting`. In ordinary builds this file
//! is empty.
#![cfg(loom)]

use loom::sync::Arc;
use loom::thread;
use quire_kernel::memory::{Cells, Mapping};
use quire_kernel::probe::fault::Step;
use quire_kernel::waiting::word::{self, Word};

const HEADER: u64 = 0;
const SECOND: u64 = 8;
const WORD: u64 = 16;

fn cells() -> Arc<Cells> {
    Arc::new(Cells::new(Mapping::zeroed(24)))
}

/// Like `loom::model`, with up to two preemptions: every interleaving of three threads takes
/// minutes.
fn of_three(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(2);
    builder.check(model);
}

/// P1 to P3: whether this appender must wake the sleepers.
fn append(cells: &Cells, header: u64) -> bool {
    cells.publish_header(header, 0, 1, Step::named("publish.header.cas")).unwrap();
    let word = Word::new(cells, WORD);
    word.is_armed() && word.clear()
}

/// W1 to W3: the value to sleep at, if there is nothing to read.
fn begin_to_sleep(cells: &Cells, header: u64) -> Option<u32> {
    let value = Word::new(cells, WORD).arm();
    word::settle();
    (cells.load_header_acquire(header) == 0).then_some(value)
}

/// Whether a sleep at a value ends: by a change that the system sees, or by a wake-up after it
/// began.
fn is_awake(cells: &Cells, value: u32, is_woken: bool) -> bool {
    is_woken || Word::new(cells, WORD).value() != value
}

// Red with: no fence of the sleeper; no fence (here, for the order of two accesses elsewhere) of
// the appender; the queue polled before the word is armed.
#[test]
fn a_sleeper_sees_the_message_or_is_woken() {
    loom::model(|| {
        let cells = cells();
        let appender = Arc::clone(&cells);
        let handle = thread::spawn(move || append(&appender, HEADER));

        let asleep = begin_to_sleep(&cells, HEADER);

        let is_woken = handle.join().unwrap();
        assert!(asleep.is_none_or(|value| is_awake(&cells, value, is_woken)));
    });
}

// Red with: a word that is 1 while a reader sleeps and 0 otherwise, as another sleeper sets it
// back.
#[test]
fn a_sleeper_that_was_announced_a_message_does_not_sleep_when_another_arms_the_word() {
    of_three(|| {
        let cells = cells();
        let appender = Arc::clone(&cells);
        let other = Arc::clone(&cells);
        let append = thread::spawn(move || append(&appender, HEADER));
        // It waits for the message after the first one.
        let other = thread::spawn(move || begin_to_sleep(&other, SECOND));

        let asleep = begin_to_sleep(&cells, HEADER);
        // W4 comes last: a wake-up before it has no effect.
        append.join().unwrap();
        other.join().unwrap();

        assert!(asleep.is_none_or(|value| is_awake(&cells, value, false)));
    });
}

// Red with: a clear that stores without comparing.
#[test]
fn of_two_appenders_one_wakes_the_sleeper() {
    of_three(|| {
        let cells = cells();
        let appenders: Vec<_> = [HEADER, SECOND]
            .into_iter()
            .map(|header| {
                let cells = Arc::clone(&cells);
                thread::spawn(move || append(&cells, header))
            })
            .collect();

        let asleep = begin_to_sleep(&cells, SECOND);

        let woken = appenders.into_iter().map(|it| it.join().unwrap());
        let woken = woken.filter(|woken| *woken).count();
        assert!(asleep.is_none_or(|value| is_awake(&cells, value, false)));
        assert!(woken <= 1, "the word was armed once");
    });
}
