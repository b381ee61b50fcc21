//! Golden queues cut short and with single bits changed. `tests/attack/test_damage.py` runs this:
//! `QUIRE_TORTURE=1` tries every byte and every bit, other shares and the short form a choice of
//! them.

#![allow(clippy::unwrap_used)] // to panic is to report a find

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use quire_fuzz::damage::Golden;
use quire_fuzz::sample::Scratch;

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden");
/// A case takes milliseconds. One that takes this long hangs.
const LIMIT: Duration = Duration::from_secs(300);
/// The distance of the positions that the short form tries.
const STRIDE: u32 = 64;

fn queues() -> Vec<Golden> {
    let mut found = Vec::new();
    for release in sorted(Path::new(GOLDEN)) {
        let inside = [vec![release.clone()], sorted(&release)].concat();
        found.extend(inside.iter().filter_map(|dir| Golden::open(dir)));
    }
    assert!(found.len() > 80, "golden queues: {}", found.len());
    // Two have index arrays of 4 MiB, whose slots add nothing to those of the others.
    found.retain(|golden| stride() == 1 || golden.bytes() < 1 << 20);
    let (part, parts) = part();
    found.into_iter().skip(part).step_by(parts).collect()
}

fn sorted(dir: &Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(dir).into_iter().flatten();
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.is_dir());
    paths.sort();
    paths
}

/// Which part of the queues this process tries, and how many parts there are:
/// `QUIRE_DAMAGE_PART=0/4`.
fn part() -> (usize, usize) {
    let asked = std::env::var("QUIRE_DAMAGE_PART").unwrap_or_else(|_| "0/1".into());
    let (part, parts) = asked.split_once('/').unwrap();
    (part.parse().unwrap(), parts.parse().unwrap())
}

/// The distance of the positions that are tried; `QUIRE_TORTURE` is their share of all.
fn stride() -> usize {
    let asked = std::env::var("QUIRE_TORTURE").ok();
    let share: f64 = asked.map_or(0.0, |share| share.parse().unwrap());
    let wanted = (1..STRIDE).find(|&stride| share * f64::from(stride) >= 1.0);
    usize::try_from(wanted.unwrap_or(STRIDE)).unwrap()
}

/// Counts cases, names the one that fails, and ends the process if one hangs.
struct Cases {
    count: Arc<AtomicU64>,
    /// A file that names the current case, in case the process dies.
    last: Option<File>,
}

impl Cases {
    fn new() -> Self {
        let count = Arc::new(AtomicU64::new(0));
        let watched = Arc::downgrade(&count);
        std::thread::spawn(move || {
            let mut before = u64::MAX;
            while let Some(count) = watched.upgrade().map(|count| count.load(Ordering::Relaxed)) {
                assert_ne!(count, before, "a case hangs: number={count}");
                before = count;
                std::thread::sleep(LIMIT);
            }
        });
        let last = std::env::var_os("QUIRE_DAMAGE_CASE").map(|path| File::create(path).unwrap());
        Self { count, last }
    }

    fn run(&self, name: impl Fn() -> String, case: impl FnOnce()) {
        let number = self.count.fetch_add(1, Ordering::Relaxed);
        if let Some(last) = &self.last {
            last.write_all_at(format!("{number}: {:<240}", name()).as_bytes(), 0).unwrap();
        }
        if let Err(panic) = catch_unwind(AssertUnwindSafe(case)) {
            eprintln!("case {number}: {}", name());
            std::panic::resume_unwind(panic);
        }
    }

    fn report(&self, what: &str) {
        println!("{} cases: {what}", self.count.load(Ordering::Relaxed));
    }
}

/// Calls `work` for each file of each golden queue, with a copy of the queue, the file's number and
/// name, and the distance of positions to try.
fn of_each_file(what: &str, mut work: impl FnMut(&Cases, &Golden, &Path, usize, &str, usize)) {
    let (cases, scratch, stride) = (Cases::new(), Scratch::new(), stride());
    for golden in queues() {
        let dir = scratch.with(&[]);
        golden.copy_to(&dir);
        for (file, (name, _)) in golden.files.iter().enumerate() {
            let name = format!("{}/{name}", golden.dir.display());
            work(&cases, &golden, &dir, file, &name, stride);
        }
    }
    cases.report(what);
}

#[test]
#[ignore = "run by tests/attack/test_damage.py"]
fn one_changed_bit_changes_no_other_message() {
    of_each_file("bits changed", |cases, golden, dir, file, name, stride| {
        for position in golden.positions(file, stride) {
            // All bits of a position, or one bit that varies with the position.
            let one = u32::try_from(position % 8).unwrap();
            for bit in if stride == 1 { 0..8 } else { one..one + 1 } {
                let place = || format!("{name}: {position}.{bit}");
                cases.run(place, || golden.flip(dir, file, position, bit));
            }
        }
    });
}

#[test]
#[ignore = "run by tests/attack/test_damage.py"]
fn what_is_read_from_a_file_cut_short_was_written() {
    of_each_file("files cut short", |cases, golden, dir, file, name, stride| {
        for (number, length) in golden.lengths(file, stride).into_iter().enumerate() {
            let place = || format!("{name}: cut to {length}");
            let appends = number.is_multiple_of(8);
            cases.run(place, || golden.cut(dir, file, length, appends));
        }
    });
}
