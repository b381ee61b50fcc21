//! The older formats: what a force or a synchronous append covers is whole after a power cut, and
//! no message is invented. Later writers lose nothing either.

mod history;
mod quick;
mod vanilla;

use std::path::Path;

use history::{History, Messages};
use quire_kernel::probe::recorder::{self, Event};
use quire_kernel::warnings;

use crate::disk::{Choice, Disk};
use crate::random::Random;
use crate::{EXHAUSTIVE, number, room};

/// One image in this many is of these formats.
const SHARE: u64 = 20;
/// The number of random images of each moment, and of torn ones.
const RANDOM: usize = 12;

/// A format, in one of its shapes.
trait Family: std::fmt::Debug {
    /// Appends, syncs and reopens, directed by the seed.
    fn run(&self, path: &Path, random: &mut Random) -> History;
    /// The messages found by a reader that skips damage, and how many of them one that does not
    /// finds.
    fn read(&self, path: &Path) -> (Messages, usize);
    /// Appends with new writers and syncs.
    fn append(&self, path: &Path) -> Messages;
}

fn families() -> Vec<Box<dyn Family>> {
    let mut families: Vec<Box<dyn Family>> = Vec::new();
    for page_bytes in [256, 4_096, 65_536] {
        families.push(Box::new(quick::Quick { page_bytes, producers: &[] }));
        families.push(Box::new(quick::Quick { page_bytes, producers: &["AA0", "BB1", "CC2"] }));
    }
    for synchronous in [false, true] {
        families.push(Box::new(vanilla::Vanilla { synchronous, data_block: 4_096 }));
        families.push(Box::new(vanilla::Vanilla { synchronous, data_block: 65_536 }));
    }
    families
}

#[test]
fn a_power_cut_keeps_what_older_formats_synced() {
    let budget = number("POWER_LOSS_IMAGES", 2_000) / SHARE;
    let mut random = Random::new(number("POWER_LOSS_SEED", 1));
    let (dir, mut images, mut lost) = (room(), 0, 0);
    while images < budget {
        for family in families() {
            let path = dir.path().join("queue");
            recorder::begin(&path);
            let history = family.run(&path, &mut random);
            let events = recorder::end();
            Disk::default().after(&events).assert_same(&path);
            std::fs::remove_dir_all(&path).expect("remove the queue");
            for _ in 0..3 {
                let moment = random.below(events.len() as u64 + 1) as usize;
                let (tried, less) = cut(&*family, &history, &events[..moment], &path, &mut random);
                images += tried;
                lost += less;
            }
        }
    }
    println!("older_images={images} older_lost={lost}");
    assert!(lost > 0, "no image lost anything");
}

/// Cuts the power after these changes, in several ways; returns the number of images, and of lost
/// messages.
fn cut(
    family: &dyn Family,
    history: &History,
    events: &[Event],
    path: &Path,
    random: &mut Random,
) -> (u64, u64) {
    let disk = Disk::default().after(events);
    let loose = disk.loose();
    let subsets = if loose <= EXHAUSTIVE / 3 { 1 << loose } else { 0 };
    let (mut images, mut lost) = (0, 0);
    for number in 0..subsets + RANDOM {
        let mut choose = if number < subsets {
            Choice::Subset(number)
        } else if number % 2 == 0 {
            Choice::Random(random)
        } else {
            Choice::Torn(random)
        };
        let image = disk.image(&mut choose);
        let case = format!("{family:?} moment={} image={number}", events.len());
        image.write(path);
        lost += try_image(&case, family, history, path, events.len());
        std::fs::remove_dir_all(path).expect("remove the image");
        images += 1;
    }
    // Every store up to a moment, and none after it: as a reader of another process sees it.
    Disk::default().after(events).latest().write(path);
    try_image(&format!("{family:?} prefix={}", events.len()), family, history, path, events.len());
    std::fs::remove_dir_all(path).expect("remove the image");
    (images + 1, lost)
}

/// Checks an image, appends, and checks again. Returns the number of lost messages.
fn try_image(
    case: &str,
    family: &dyn Family,
    history: &History,
    path: &Path,
    moment: usize,
) -> u64 {
    let (before, in_order) = family.read(path);
    history.check(case, &before, moment);
    let appended = family.append(path);
    let (after, _) = family.read(path);
    for (index, payload) in &appended {
        assert!(after.get(index) == Some(payload), "{case}: an append is lost: index={index:#x}");
    }
    for (index, payload) in before.iter().take(in_order) {
        assert!(after.get(index) == Some(payload), "{case}: other bytes later: index={index:#x}");
    }
    let kept = after.iter().filter(|(index, _)| !appended.contains_key(index));
    history.check(&format!("{case} later"), &kept.map(|(i, p)| (*i, p.clone())).collect(), moment);
    drop(warnings::take());
    history.begun(moment).saturating_sub(before.len()) as u64
}
