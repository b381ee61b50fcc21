//! Threads that append to a queue, roll it and follow it, each directed by its part of the input.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::time::Duration;

use quire_kernel::Result;
use quire_kernel::chronicle::append::appender::Appender;
use quire_kernel::chronicle::format::roll_cycle::RollCycle;
use quire_kernel::chronicle::protocol::lock::recovery::ForceUnlock;
use quire_kernel::chronicle::protocol::publish::Payload;
use quire_kernel::chronicle::queue::handle::Queue;
use quire_kernel::chronicle::queue::options::Options;
use quire_kernel::chronicle::read::tailer::Tailer;
use quire_kernel::os::clock::Clock;
use quire_kernel::os::detached::Detached;
use quire_kernel::os::interrupt::Signals;

use crate::reading::{self, Messages};
use crate::sample::{NOW_MS, Scratch};

/// Threads that write. Another one reads.
const WRITERS: usize = 3;
/// Steps of one input.
const STEPS: usize = 240;
/// More messages than `STEPS` steps append.
const MOST: usize = 8 * STEPS;
const DAY_MS: i64 = 86_400_000;
const LAST_MS: i64 = NOW_MS + 3 * DAY_MS;
const LENGTHS: [usize; 5] = [3, 40, 700, 5000, 16_000];
/// A longer wait is a hang: no thread keeps the write lock for longer than one step.
const LIMIT: Duration = Duration::from_secs(15);

/// Form bit: all threads use one appender.
const IS_SHARED: u8 = 1;
/// Form bit: each writer opens the queue for itself, unless they share an appender.
const IS_OWN: u8 = 2;

/// The first byte is the form; the others are the steps of the writers, a third for each.
pub fn threads(data: &[u8]) {
    thread_local!(static SCRATCH: Scratch = Scratch::new());
    let Some((form, steps)) = data.split_first() else { return };
    let steps = &steps[..steps.len().min(STEPS)];
    let dir = SCRATCH.with(|scratch| scratch.with(&[]));
    let clock = Arc::new(AtomicI64::new(NOW_MS));
    let queue = open(&dir, &clock);
    let appender = appender_of(&queue);
    let parts = steps.chunks(steps.len().div_ceil(WRITERS).max(1));
    let left = AtomicUsize::new(parts.len());
    let (written, followed) = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..)
            .zip(parts)
            .map(|(number, steps)| {
                let appender = match form & (IS_SHARED | IS_OWN) {
                    0 => appender_of(&queue),
                    IS_OWN => appender_of(&open(&dir, &clock)),
                    _ => Arc::clone(&appender),
                };
                let (clock, ends) = (&clock, Ends(&left));
                scope.spawn(move || {
                    let _ends = ends;
                    Writer { number, appender, clock, written: Vec::new() }.work(steps).unwrap()
                })
            })
            .collect();
        let follower = scope.spawn(|| follow(&queue, &left));
        let written: Vec<_> = writers.into_iter().map(|writer| writer.join().unwrap()).collect();
        (written, follower.join().unwrap())
    });
    let read = reading::forward(&queue, MOST);
    assert!(read.error.is_none(), "not read: {:?}", read.error);
    assert!(followed == read.messages, "not what was followed");
    check(&written, &read.messages);
    queue.close(&Detached::here());
}

/// Counts down a writer that ended, also by a panic.
struct Ends<'a>(&'a AtomicUsize);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Checks that each message is read once, those of a writer in order, and at the returned indexes.
fn check(written: &[Vec<Written>], read: &Messages) {
    let count: usize = written.iter().map(Vec::len).sum();
    assert_eq!(read.len(), count, "messages lost or twice");
    for (number, written) in (0..).zip(written) {
        let own = read.iter().filter(|(_, payload)| payload[0] == number);
        for ((index, payload), (given, expected)) in own.zip(written) {
            assert!(payload == expected, "another message: index={index:#x}");
            assert!(
                given.is_none_or(|given| given == *index),
                "not at its index: index={index:#x}"
            );
        }
    }
}

fn open(dir: &Path, clock: &Arc<AtomicI64>) -> Arc<Queue> {
    let options = Options {
        roll_cycle: RollCycle::by_name("TEST4_DAILY").cloned(),
        clock: Clock::Manual(Arc::clone(clock)),
        block_bytes: 1 << 16,
        timeout: LIMIT,
        force_unlock: ForceUnlock::Never,
        ..reading::options(false, NOW_MS)
    };
    Queue::open(dir, options, &mut Detached::here()).unwrap()
}

fn appender_of(queue: &Arc<Queue>) -> Arc<Appender> {
    Appender::new(Arc::clone(queue), Signals::Handled(&mut Detached::here())).unwrap()
}

/// Reads until the writers have ended, and then the remaining messages.
fn follow(queue: &Arc<Queue>, left: &AtomicUsize) -> Messages {
    let signals = &mut Detached::here();
    let tailer = Tailer::new(Arc::clone(queue), None, Signals::Handled(signals)).unwrap();
    let mut messages = Messages::new();
    loop {
        let is_last = left.load(Ordering::Acquire) == 0;
        let read = reading::all(&tailer, MOST);
        assert!(read.error.is_none(), "not followed: {:?}", read.error);
        messages.extend(read.messages);
        if is_last {
            return messages;
        }
        std::thread::yield_now();
    }
}

/// The index of a message, if the appender returned it, and the message.
type Written = (Option<i64>, Vec<u8>);

struct Writer<'a> {
    number: u8,
    appender: Arc<Appender>,
    clock: &'a AtomicI64,
    written: Vec<Written>,
}

impl Writer<'_> {
    fn work(mut self, steps: &[u8]) -> Result<Vec<Written>> {
        for step in steps {
            self.step(step & 7, usize::from(step >> 3))?;
        }
        Ok(self.written)
    }

    fn step(&mut self, what: u8, how: usize) -> Result<()> {
        let may_wait = &mut Detached::here();
        let appender = Arc::clone(&self.appender);
        match what {
            0 | 1 => {
                let payload = self.payload(how);
                let index = appender.append(Signals::Handled(may_wait), None, of(&payload))?;
                self.written.push((Some(index), payload));
            }
            2 => {
                let payload = self.payload(how);
                if let Some(index) = appender.try_append(None, of(&payload))? {
                    self.written.push((Some(index), payload));
                }
            }
            3 => {
                let payloads: Vec<_> = (0..=how % 7).map(|more| self.payload(how + more)).collect();
                let payload = |at: usize| of(&payloads[at]);
                let signals = Signals::Handled(may_wait);
                let count = appender.append_run(signals, payloads.len(), payload, |_, _| {})?;
                let run = payloads.into_iter().take(count);
                self.written.extend(run.map(|payload| (None, payload)));
            }
            4 => appender.prepare(Signals::Handled(may_wait), None)?,
            5 => {
                let payload = self.payload(how);
                let claim = appender.claim(Signals::Handled(may_wait), None, false)?;
                let index = appender.publish(may_wait, claim, &payload)?;
                self.written.push((Some(index), payload));
            }
            6 => {
                let claim =
                    appender.claim(Signals::Handled(may_wait), None, how.is_multiple_of(2))?;
                appender.give_up(claim);
            }
            _ => {
                let next = |now| (now < LAST_MS).then_some(now + DAY_MS);
                let _ = self.clock.fetch_update(Ordering::AcqRel, Ordering::Acquire, next);
            }
        }
        Ok(())
    }

    /// A unique message: it names its writer and the number of earlier messages.
    fn payload(&self, how: usize) -> Vec<u8> {
        let count = u16::try_from(self.written.len()).unwrap();
        let mut payload = vec![u8::try_from(how % 251).unwrap(); LENGTHS[how % LENGTHS.len()]];
        payload[0] = self.number;
        payload[1..3].copy_from_slice(&count.to_le_bytes());
        payload
    }
}

fn of(payload: &[u8]) -> Payload<'_> {
    Payload::new(payload)
}
