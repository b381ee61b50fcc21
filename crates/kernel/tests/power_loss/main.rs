//! Power cuts, simulated on images: every change of a queue's files is recorded
//! (`probe/recorder.rs`), and at moments in between the machine "loses power": each page changed
//! since the last sync (also each new name and length) may be on the medium or not, or be torn.
//! Each image is opened, checked against the appended and synced messages, and appended to.
//!
//! The older formats are tried in the same way (`older/`).
//!
//! `cargo test --release -p quire-kernel --features power-loss --test power_loss`, with
//! `POWER_LOSS_IMAGES` for their number and `POWER_LOSS_SEED` for other ones.

#![allow(clippy::cast_possible_truncation)] // small numbers

mod check;
mod disk;
mod older;
mod random;
mod sync;
mod workload;

use std::path::Path;

use disk::Disk;
use quire_kernel::probe::recorder::{self, Event};
use random::Random;
use workload::{History, Shape};

/// For a moment with at most this many loose parts, every subset is tried.
const EXHAUSTIVE: usize = 12;
/// The number of random images of other moments, and of torn images of each.
const RANDOM: usize = 48;
/// One image in this many loses power again, while it is being recovered.
const AGAIN_EVERY: u64 = 16;

fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).map_or(otherwise, |value| value.parse().expect(name))
}

/// A directory in memory if possible: a million images would wear out a disk.
fn room() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }
        .expect("a directory for the images")
}

#[test]
fn a_power_cut_keeps_what_was_synced_and_invents_nothing() {
    let (budget, seed) = (number("POWER_LOSS_IMAGES", 2_000), number("POWER_LOSS_SEED", 1));
    let threads = std::thread::available_parallelism().map_or(1, |found| found.get() as u64);
    let runs: Vec<_> = (0..threads)
        .map(|thread| {
            let random = Random::new(seed ^ (thread << 32));
            std::thread::spawn(move || Run::new(budget.div_ceil(threads)).all(random))
        })
        .collect();
    let runs: Vec<Run> = runs.into_iter().map(|run| run.join().expect("all hold")).collect();
    let sum = |count: fn(&Run) -> u64| runs.iter().map(count).sum::<u64>();
    println!(
        "images={} second_cuts={} kept={} lost={}",
        sum(|run| run.images),
        sum(|run| run.again),
        sum(|run| run.kept),
        sum(|run| run.lost)
    );
}

struct Run {
    dir: tempfile::TempDir,
    images: u64,
    again: u64,
    kept: u64,
    lost: u64,
    budget: u64,
}

impl Run {
    fn new(budget: u64) -> Self {
        Self { dir: room(), images: 0, again: 0, kept: 0, lost: 0, budget }
    }

    fn all(mut self, mut random: Random) -> Self {
        for round in 0.. {
            let shape = Shape::of(round, random.next());
            let path = self.dir.path().join("queue");
            recorder::begin(&path);
            let history = workload::run(&path, &shape);
            let events = recorder::end();
            Disk::default().after(&events).assert_same(&path);
            std::fs::remove_dir_all(&path).expect("remove the queue");
            self.cut(&shape, &history, &events, &mut random);
            if self.images >= self.budget {
                return self;
            }
        }
        self
    }

    /// Cuts the power at some moments of a recording.
    fn cut(&mut self, shape: &Shape, history: &History, events: &[Event], random: &mut Random) {
        let enough = ((self.budget / 4).max(500) + self.images).min(self.budget);
        while self.images < enough {
            let moment = random.below(events.len() as u64 + 1) as usize;
            let disk = Disk::default().after(&events[..moment]);
            let loose = disk.loose();
            let subsets = 1_usize << loose.min(EXHAUSTIVE);
            for number in 0..subsets.max(RANDOM) + RANDOM {
                let mut choose = if loose <= EXHAUSTIVE && number < subsets {
                    disk::Choice::Subset(number)
                } else if number % 2 == 0 {
                    disk::Choice::Random(random)
                } else {
                    disk::Choice::Torn(random)
                };
                let image = disk.image(&mut choose);
                let case = format!("{shape:?} moment={moment}/{} image={number}", events.len());
                self.try_image(&case, shape, history, &image, moment, random);
            }
        }
    }

    fn try_image(
        &mut self,
        case: &str,
        shape: &Shape,
        history: &History,
        image: &Disk,
        moment: usize,
        random: &mut Random,
    ) {
        let path = self.dir.path().join("image");
        let again = self.images.is_multiple_of(AGAIN_EVERY);
        self.images += 1;
        image.write(&path);
        if again {
            recorder::begin(&path);
        }
        let (kept, lost) = check::recovers(case, &path, shape, history, moment);
        self.kept += kept;
        self.lost += lost;
        std::fs::remove_dir_all(&path).expect("remove the image");
        if again {
            let events = recorder::end();
            self.again += 1;
            // Interrupts the recovery: earlier promises still hold.
            let part = random.below(events.len() as u64 + 1) as usize;
            let disk = image.clone().after(&events[..part]);
            let second = disk.image(&mut disk::Choice::Torn(random));
            second.write(&path);
            check::recovers_again(&format!("{case} again={part}"), &path, shape, history, moment);
            std::fs::remove_dir_all(&path).expect("remove the image");
        }
    }
}
