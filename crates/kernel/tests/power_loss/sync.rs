//! Which messages `sync()` covers, and its error when the system cannot sync.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime};

use quire_kernel::Error;
use quire_kernel::chronicle::append::appender::Appender;
use quire_kernel::chronicle::protocol::publish::Payload;
use quire_kernel::chronicle::queue::handle::Queue;
use quire_kernel::os::detached::Detached;
use quire_kernel::os::interrupt::Signals;
use quire_kernel::probe::recorder::{self, Event};

use crate::room;
use crate::workload::{DAY_MS, START_MS, Shape};

const EIO: i32 = 5;

#[test]
fn a_sync_covers_what_others_appended_in_earlier_cycles() {
    let dir = room();
    let (options, clock) = Shape::of(0, 0).options(START_MS);
    let path = dir.path().join("queue");
    recorder::begin(&path);
    let queue = Queue::open(&path, options, &mut Detached::here()).expect("open");
    let other = Appender::new(Arc::clone(&queue), Signals::Handled(&mut Detached::here()))
        .expect("an appender");
    other
        .append(Signals::Handled(&mut Detached::here()), None, Payload::new(b"earlier"))
        .expect("append");
    clock.store(START_MS + DAY_MS, Ordering::Release);
    let appender = Appender::new(Arc::clone(&queue), Signals::Handled(&mut Detached::here()))
        .expect("an appender");
    appender
        .append(Signals::Handled(&mut Detached::here()), None, Payload::new(b"later"))
        .expect("append");

    let before = recorder::count();
    appender.sync(&Detached::here()).expect("sync");

    let events = recorder::end();
    let synced: Vec<&str> = events[before..].iter().filter_map(name_of_synced).collect();
    assert_eq!(synced.len(), 4, "two roll files, the table, the directory: {synced:?}");
    assert_eq!(synced[2..], ["metadata.cq4t", "the directory"]);
}

/// A queue on `path` whose clock shows `now_ms`, and an appender.
fn open(path: &Path, now_ms: i64) -> (Arc<Queue>, Arc<Appender>, Arc<AtomicI64>) {
    let (options, clock) = Shape::of(0, 0).options(now_ms);
    let queue = Queue::open(path, options, &mut Detached::here()).expect("open");
    (
        Arc::clone(&queue),
        Appender::new(queue, Signals::Handled(&mut Detached::here())).expect("an appender"),
        clock,
    )
}

/// Syncs, and returns the range of events recorded by that.
fn sync(appender: &Appender) -> Range<usize> {
    let before = recorder::count();
    appender.sync(&Detached::here()).expect("sync");
    before..recorder::count()
}

/// The names of the roll files among these events that were synced.
fn files_synced(events: &[Event]) -> Vec<&str> {
    let names = events.iter().filter_map(name_of_synced);
    names.filter(|name| Path::new(name).extension().is_some_and(|it| it == "cq4")).collect()
}

fn name_of_synced(event: &Event) -> Option<&str> {
    match event {
        Event::Synced(name) => Some(name),
        Event::SyncedDirectory(_) => Some("the directory"),
        _ => None,
    }
}

fn name_of(queue: &Queue, cycle: i32) -> String {
    let path = queue.file_for_cycle(cycle).expect("a path");
    path.file_name().expect("a name").to_string_lossy().into_owned()
}

#[test]
fn a_sync_covers_files_below_a_later_one_that_was_synced_and_moved_away() {
    let dir = room();
    let path = dir.path().join("queue");
    recorder::begin(&path);
    let (queue, appender, _) = open(&path, START_MS + 9 * DAY_MS);
    appender
        .append(Signals::Handled(&mut Detached::here()), None, Payload::new(b"moved away"))
        .expect("append");
    appender.sync(&Detached::here()).expect("sync");
    let moved = queue.last_cycle().expect("a listing").expect("a cycle");
    queue.close(&Detached::here());
    std::fs::remove_file(queue.file_for_cycle(moved).expect("a path")).expect("move it away");

    let (queue, appender, clock) = open(&path, START_MS);
    appender
        .append(Signals::Handled(&mut Detached::here()), None, Payload::new(b"earlier"))
        .expect("append");
    clock.store(START_MS + DAY_MS, Ordering::Release);
    appender
        .append(Signals::Handled(&mut Detached::here()), None, Payload::new(b"later"))
        .expect("append");
    let cycles = queue.cycles().expect("cycles");
    let expected: Vec<_> = cycles.iter().map(|cycle| name_of(&queue, *cycle)).collect();

    let first = sync(&appender);
    assert_eq!(
        queue.table_value("chronicle.lastIndexMSynced").expect("a key"),
        queue.last_index().expect("a message"),
        "the word no longer speaks of messages to come"
    );
    let second = sync(&appender);
    let events = recorder::end();
    assert_eq!(expected.len(), 2);
    assert_eq!(files_synced(&events[first]), expected);
    assert_eq!(files_synced(&events[second]), expected[1..], "what was synced is not synced again");
}

#[test]
fn a_sync_covers_a_file_whose_creator_died_before_it_counted() {
    let dir = room();
    let path = dir.path().join("queue");
    recorder::begin(&path);
    let (queue, appender, clock) = open(&path, START_MS);
    let first = appender
        .append(Signals::Handled(&mut Detached::here()), None, Payload::new(b"first"))
        .expect("append");
    appender.sync(&Detached::here()).expect("sync");
    assert_eq!(queue.cycles().expect("a list that is kept").len(), 1);
    let table = queue.table().expect("a table");
    let (count, mut before) = (table.words().mod_count, [0; 8]);
    let file = File::options().read(true).write(true).open(table.path()).expect("the table");
    file.read_exact_at(&mut before, count).expect("the count");
    let (_, creator, _) = open(&path, START_MS + DAY_MS);
    creator
        .append(Signals::Handled(&mut Detached::here()), None, Payload::new(b"by the creator"))
        .expect("append");
    file.write_all_at(&before, count).expect("the count");

    clock.store(START_MS + DAY_MS, Ordering::Release);
    let last = appender
        .append(Signals::Handled(&mut Detached::here()), None, Payload::new(b"after it"))
        .expect("append");

    let names = [first, last].map(|index| name_of(&queue, queue.roll().split(index).expect("").0));
    let synced = sync(&appender);
    let events = recorder::end();
    assert_eq!(files_synced(&events[synced]), names);
    assert_eq!(queue.table_value("chronicle.lastIndexMSynced").expect("a key"), Some(last));
}

#[test]
fn a_first_sync_leaves_files_alone_that_the_system_wrote_long_ago() {
    let dir = room();
    let path = dir.path().join("queue");
    recorder::begin(&path);
    let (queue, appender, clock) = open(&path, START_MS);
    for day in 0..5 {
        clock.store(START_MS + day * DAY_MS, Ordering::Release);
        appender
            .append(Signals::Handled(&mut Detached::here()), None, Payload::new(b"x"))
            .expect("append");
    }
    let cycles = queue.cycles().expect("cycles");
    queue.close(&Detached::here());
    let long_ago = SystemTime::now() - Duration::from_secs(3_600);
    for cycle in &cycles[..3] {
        let file = queue.file_for_cycle(*cycle).expect("a path");
        let file = File::options().write(true).open(file).expect("a file");
        file.set_modified(long_ago).expect("its time");
    }

    let (queue, appender, _) = open(&path, START_MS + 4 * DAY_MS);
    appender
        .append(Signals::Handled(&mut Detached::here()), None, Payload::new(b"y"))
        .expect("append");

    let expected: Vec<_> = cycles[3..].iter().map(|cycle| name_of(&queue, *cycle)).collect();
    let synced = sync(&appender);
    let events = recorder::end();
    assert_eq!(files_synced(&events[synced]), expected);
}

#[test]
fn the_first_sync_keeps_the_names_of_the_directories_that_were_made() {
    let dir = room();
    let path = dir.path().join("a/b/queue");
    recorder::begin(&path);
    let (_, appender, _) = open(&path, START_MS);
    let (first, second) = (sync(&appender), sync(&appender));
    let events = recorder::end();
    let parents = |events: &[Event]| -> Vec<PathBuf> {
        let parents = events.iter().filter_map(|event| match event {
            Event::SyncedParent(path) => Some(path.clone()),
            _ => None,
        });
        parents.collect()
    };
    assert_eq!(parents(&events[first]), ["a/b", "a", ""].map(|part| dir.path().join(part)));
    assert!(parents(&events[second]).is_empty());
}

#[test]
fn after_a_sync_that_failed_all_fail_until_the_queue_is_closed() {
    let dir = room();
    let path = dir.path().join("queue");
    let open = || {
        let (options, _) = Shape::of(0, 0).options(START_MS);
        let queue = Queue::open(&path, options, &mut Detached::here()).expect("open");
        (
            Arc::clone(&queue),
            Appender::new(queue, Signals::Handled(&mut Detached::here())).expect("an appender"),
        )
    };
    let (queue, appender) = open();
    appender
        .append(Signals::Handled(&mut Detached::here()), None, Payload::new(b"x"))
        .expect("append");
    recorder::fail_next_sync(EIO);

    for _ in 0..3 {
        let Err(Error::Io { source, .. }) = appender.sync(&Detached::here()) else {
            panic!("it pretends")
        };
        assert_eq!(source.raw_os_error(), Some(EIO));
        assert_eq!(queue.table_value("chronicle.lastIndexMSynced").expect("a key"), Some(-1));
    }
    let (_, another) = open();
    assert!(another.sync(&Detached::here()).is_err(), "another queue of the process pretends");
    another.queue().close(&Detached::here());
    queue.close(&Detached::here());

    let (queue, appender) = open();
    appender.sync(&Detached::here()).expect("sync");
    assert_eq!(
        queue.table_value("chronicle.lastIndexMSynced").expect("a key"),
        queue.last_index().expect("a message")
    );
}
