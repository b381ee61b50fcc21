//! What `sync()` covers, and what it says when the system cannot.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use quire_kernel::Error;
use quire_kernel::appender::Appender;
use quire_kernel::memory::recorder::{self, Event};
use quire_kernel::protocol::publish::Payload;
use quire_kernel::queue::Queue;

use crate::room;
use crate::workload::{DAY_MS, START_MS, Shape};

const EIO: i32 = 5;

#[test]
fn a_sync_covers_what_others_appended_in_earlier_cycles() {
    let dir = room();
    let (options, clock) = Shape::of(0, 0).options(START_MS);
    recorder::begin();
    let queue = Queue::open(&dir.path().join("queue"), options).expect("open");
    let other = Appender::new(Arc::clone(&queue)).expect("an appender");
    other.append(None, Payload::new(b"earlier")).expect("append");
    clock.store(START_MS + DAY_MS, Ordering::Release);
    let appender = Appender::new(Arc::clone(&queue)).expect("an appender");
    appender.append(None, Payload::new(b"later")).expect("append");

    let before = recorder::count();
    appender.sync().expect("sync");

    let events = recorder::end();
    let synced: Vec<&str> = events[before..].iter().filter_map(name_of_synced).collect();
    assert_eq!(synced.len(), 4, "two roll files, the table, the directory: {synced:?}");
    assert_eq!(synced[2..], ["metadata.cq4t", "the directory"]);
}

fn name_of_synced(event: &Event) -> Option<&str> {
    match event {
        Event::Synced(name) => Some(name),
        Event::SyncedDirectory => Some("the directory"),
        _ => None,
    }
}

#[test]
fn after_a_sync_that_failed_all_fail_until_the_queue_is_closed() {
    let dir = room();
    let path = dir.path().join("queue");
    let open = || {
        let (options, _) = Shape::of(0, 0).options(START_MS);
        let queue = Queue::open(&path, options).expect("open");
        (Arc::clone(&queue), Appender::new(queue).expect("an appender"))
    };
    let (queue, appender) = open();
    appender.append(None, Payload::new(b"x")).expect("append");
    recorder::fail_next_sync(EIO);

    for _ in 0..3 {
        let Err(Error::Io { source, .. }) = appender.sync() else { panic!("it pretends") };
        assert_eq!(source.raw_os_error(), Some(EIO));
        assert_eq!(queue.table_value("chronicle.lastIndexMSynced").expect("a key"), Some(-1));
    }
    let (_, another) = open();
    assert!(another.sync().is_err(), "another queue of the process pretends");
    another.queue().close();
    queue.close();

    let (queue, appender) = open();
    appender.sync().expect("sync");
    assert_eq!(
        queue.table_value("chronicle.lastIndexMSynced").expect("a key"),
        queue.last_index().expect("a message")
    );
}
