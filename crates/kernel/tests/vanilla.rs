//! Vanilla Chronicles written and read by the kernel's handles.

#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use quire_kernel::Error;
use quire_kernel::chronicle::read::tailer::Opening;
use quire_kernel::os::clock::Clock;
use quire_kernel::os::detached::Detached;
use quire_kernel::vanilla::protocol::detect::Asked;
use quire_kernel::vanilla::{
    Consumption, Record, VanillaAppender, VanillaOptions, VanillaQueue, VanillaTailer,
};

const DAY_MS: i64 = 86_400_000;
const SMALL: Asked = Asked { tid_bits: Some(16), index_block: Some(1024), data_block: Some(4096) };

fn at(now: &Arc<AtomicI64>) -> VanillaOptions {
    let clock = Clock::Manual(Arc::clone(now));
    VanillaOptions { clock, layout: SMALL, ..VanillaOptions::default() }
}

fn open(path: &Path, options: VanillaOptions) -> Arc<VanillaQueue> {
    Arc::new(VanillaQueue::open(path, options).unwrap())
}

fn record(bytes: &[u8]) -> Record<'_> {
    Record { parts: [bytes, &[]], ..Record::default() }
}

fn read_all(tailer: &VanillaTailer) -> Vec<Vec<u8>> {
    std::iter::from_fn(|| tailer.read(&Detached::here()).unwrap())
        .map(|it| it.copied().unwrap())
        .collect()
}

#[test]
fn messages_are_read_as_they_were_written_across_files_and_cycles() {
    let dir = tempfile::tempdir().unwrap();
    let now = Arc::new(AtomicI64::new(17_000 * DAY_MS));
    let queue = open(dir.path(), at(&now));
    let appender = VanillaAppender::new(Arc::clone(&queue), None).unwrap();
    let mut written = Vec::new();
    for number in 0..1000_usize {
        if number == 700 {
            now.fetch_add(3 * DAY_MS, Ordering::Relaxed);
        }
        let bytes = vec![b"abcdefghijklmnopqrstuvwxyz"[number % 26]; number % 50];
        let index = appender.append(&Detached::here(), None, record(&bytes)).unwrap();
        let (cycle, sequence) =
            if number < 700 { (17_000, number) } else { (17_003, number - 700) };
        assert_eq!(queue.split().split(index), Some((cycle, sequence as u64)));
        written.push(bytes);
    }
    let found = open(dir.path(), VanillaOptions { read_only: true, ..VanillaOptions::default() });
    let tailer =
        VanillaTailer::open(Arc::clone(&found), Opening::default(), &Detached::here()).unwrap();
    assert_eq!(read_all(&tailer), written);
    assert_eq!(found.entry_count().unwrap(), 1000);
    assert_eq!(
        found.last_index().unwrap(),
        appender.last_index_appended(&Detached::here()).unwrap()
    );
    tailer.to_end(&Detached::here()).unwrap();
    assert!(tailer.read(&Detached::here()).unwrap().is_none());
    appender.append(&Detached::here(), None, record(b"more")).unwrap();
    assert_eq!(read_all(&tailer), [b"more"]);
}

#[test]
fn writers_share_an_index_without_a_lock() {
    let dir = tempfile::tempdir().unwrap();
    let now = Arc::new(AtomicI64::new(17_000 * DAY_MS));
    let queue = open(dir.path(), at(&now));
    std::thread::scope(|scope| {
        for writer in 0..4_u32 {
            let appender = VanillaAppender::new(Arc::clone(&queue), None).unwrap();
            scope.spawn(move || {
                for number in 0..2000_u32 {
                    let bytes = [writer.to_le_bytes(), number.to_le_bytes()].concat();
                    appender.append(&Detached::here(), None, record(&bytes)).unwrap();
                }
            });
        }
    });
    let tailer = VanillaTailer::open(queue, Opening::default(), &Detached::here()).unwrap();
    let mut next = [0; 4];
    for bytes in read_all(&tailer) {
        let (writer, number) = (u32::from_le_bytes(bytes[..4].try_into().unwrap()), &bytes[4..]);
        let expected = &mut next[writer as usize];
        assert_eq!(number, u32::to_le_bytes(*expected));
        *expected += 1;
    }
    assert_eq!(next, [2000; 4]);
}

#[test]
fn a_late_entry_of_the_cycle_before_is_delivered() {
    let dir = tempfile::tempdir().unwrap();
    let now = Arc::new(AtomicI64::new(17_000 * DAY_MS));
    let queue = open(dir.path(), VanillaOptions { linger: Duration::from_secs(600), ..at(&now) });
    let appender = VanillaAppender::new(Arc::clone(&queue), None).unwrap();
    let slow = VanillaAppender::new(Arc::clone(&queue), None).unwrap();
    let tailer = VanillaTailer::open(
        Arc::clone(&queue),
        Opening { name: Some("one"), ..Opening::default() },
        &Detached::here(),
    )
    .unwrap();
    appender.append(&Detached::here(), None, record(b"old")).unwrap();
    now.fetch_add(DAY_MS, Ordering::Relaxed);
    appender.append(&Detached::here(), None, record(b"new")).unwrap();
    assert_eq!(read_all(&tailer), [b"old", b"new"]);
    slow.append(&Detached::here(), Some(17_000 * DAY_MS), record(b"late")).unwrap();
    assert_eq!(read_all(&tailer), [b"late"]);
    assert!(tailer.read(&Detached::here()).unwrap().is_none());
    drop(tailer);
    slow.append(&Detached::here(), Some(17_000 * DAY_MS), record(b"later")).unwrap();
    let tailer = VanillaTailer::open(
        queue,
        Opening { name: Some("one"), ..Opening::default() },
        &Detached::here(),
    )
    .unwrap();
    assert_eq!(read_all(&tailer), [b"later"]);
}

#[test]
fn one_consumer_claims_each_message() {
    let dir = tempfile::tempdir().unwrap();
    let options = VanillaOptions {
        consumption: Consumption::Queue,
        layout: SMALL,
        ..VanillaOptions::default()
    };
    let queue = open(dir.path(), options);
    let appender = VanillaAppender::new(Arc::clone(&queue), None).unwrap();
    for number in 0..500_u32 {
        let body = number.to_le_bytes();
        let record = Record { parts: [&[0; 4], &body], ..Record::default() };
        appender.append(&Detached::here(), None, record).unwrap();
    }
    let claimed: Vec<Vec<u32>> = std::thread::scope(|scope| {
        let consumers: Vec<_> = (1..=3)
            .map(|owner| {
                let tailer =
                    VanillaTailer::open(Arc::clone(&queue), Opening::default(), &Detached::here())
                        .unwrap();
                scope.spawn(move || {
                    std::iter::from_fn(|| tailer.claim(&Detached::here(), owner).unwrap())
                        .map(|it| it.load32(4).unwrap())
                        .collect()
                })
            })
            .collect();
        consumers.into_iter().map(|it| it.join().unwrap()).collect()
    });
    let mut all = claimed.concat();
    all.sort_unstable();
    assert_eq!(all, (0..500).collect::<Vec<_>>());
}

#[test]
fn a_message_that_no_data_file_holds_is_refused_before_anything_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let queue = open(dir.path(), VanillaOptions { layout: SMALL, ..VanillaOptions::default() });
    let appender = VanillaAppender::new(Arc::clone(&queue), None).unwrap();
    let refused = appender.append(&Detached::here(), None, record(&[0; 4093]));
    assert!(matches!(refused, Err(Error::MessageTooLong { length: 4093, limit: 4092, .. })));
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    appender.append(&Detached::here(), None, record(&[1; 4092])).unwrap();
    let tailer = VanillaTailer::open(queue, Opening::default(), &Detached::here()).unwrap();
    assert_eq!(read_all(&tailer), [vec![1; 4092]]);
}

#[test]
fn a_synchronous_queue_appends_as_any_other() {
    let dir = tempfile::tempdir().unwrap();
    let options = VanillaOptions { synchronous: true, layout: SMALL, ..VanillaOptions::default() };
    let queue = open(&dir.path().join("deep/er"), options);
    let appender = VanillaAppender::new(Arc::clone(&queue), Some(7)).unwrap();
    appender.append(&Detached::here(), None, record(b"one")).unwrap();
    let last = appender.append_all(&Detached::here(), None, 3, |_| Ok(record(b"more"))).unwrap();
    assert_eq!(queue.last_index().unwrap(), last);
    assert_eq!(queue.entry_count().unwrap(), 4);
}

#[test]
fn the_layout_of_another_queue_is_found() {
    let dir = tempfile::tempdir().unwrap();
    for (tid_bits, tid) in [(15, 9), (16, 40_000), (22, 4_000_000), (24, 16_000_000)] {
        let path = dir.path().join(tid_bits.to_string());
        let layout = Asked { tid_bits: Some(tid_bits), ..SMALL };
        let queue = open(&path, VanillaOptions { layout, ..VanillaOptions::default() });
        let appender = VanillaAppender::new(queue, Some(tid)).unwrap();
        for number in 0..300_u32 {
            appender
                .append(&Detached::here(), None, record(&number.to_le_bytes().repeat(8)))
                .unwrap();
        }
        let found = open(&path, VanillaOptions::default());
        let tailer =
            VanillaTailer::open(Arc::clone(&found), Opening::default(), &Detached::here()).unwrap();
        assert_eq!(read_all(&tailer).len(), 300, "{tid_bits}");
        let appender = VanillaAppender::new(found, None).unwrap();
        appender.append(&Detached::here(), None, record(b"joined")).unwrap();
        assert_eq!(read_all(&tailer), [b"joined"], "{tid_bits}");
    }
}
