//! Quick-Queue through its handles: both forms, restarts, pages of any size, dead producers.
#![allow(missing_docs, clippy::unwrap_used)]

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use quire_kernel::os::detached::Detached;
use quire_kernel::quick_queue::format::profile::Profile;
use quire_kernel::quick_queue::queue::{Options, QuickQueue};
use quire_kernel::quick_queue::read::Tailer;
use quire_kernel::{Error, Result};

fn options(page_bytes: u64) -> Options {
    Options {
        read_only: false,
        create: true,
        page_bytes: Some(page_bytes),
        file_mode: 0o600,
        allow_network: false,
    }
}

fn open(dir: &Path, page_bytes: u64) -> Arc<QuickQueue> {
    QuickQueue::open(dir, options(page_bytes)).unwrap()
}

fn append_as(queue: &Arc<QuickQueue>, producer: &str, message: &[u8]) {
    let mut may_wait = Detached::here();
    queue.producer(&mut may_wait, producer).unwrap().append(&may_wait, message).unwrap();
}

fn next(tailer: &Tailer) -> Result<Option<(u64, Vec<u8>)>> {
    tailer.read(&Detached::here(), |message| (message.index, message.bytes.as_slice().to_vec()))
}

fn all(tailer: &Tailer) -> Vec<(u64, Vec<u8>)> {
    std::iter::from_fn(|| next(tailer).unwrap()).collect()
}

fn message(number: usize) -> Vec<u8> {
    (0..=number % 50).map(|at| u8::try_from((number + at) % 251).unwrap()).collect()
}

#[test]
fn messages_come_back_whatever_the_page_size() {
    for page_bytes in [16, 32, 64, 4096, 1 << 16, 1 << 30] {
        let dir = tempfile::tempdir().unwrap();
        let count = if page_bytes < 64 { 20 } else { 300 };
        for half in 0..2 {
            let queue = open(dir.path(), page_bytes);
            let appender = queue.appender(&mut Detached::here()).unwrap();
            for number in half * count..(half + 1) * count {
                assert_eq!(
                    appender.append(&Detached::here(), &message(number)).unwrap(),
                    16 * number as u64
                );
            }
            appender.sync(&Detached::here()).unwrap();
        }
        let queue = QuickQueue::open(dir.path(), Options { read_only: true, ..options(64) });
        let queue = queue.unwrap();
        let found = all(&queue.tailer(false).unwrap());
        let expected: Vec<_> = (0..2 * count).map(|n| (16 * n as u64, message(n))).collect();
        assert_eq!(found, expected, "{page_bytes}");
        assert_eq!(queue.last_index().unwrap(), Some(16 * (2 * count as u64 - 1)));
        assert_eq!(queue.page_size().unwrap().bytes(), page_bytes);
    }
}

#[test]
fn producers_share_an_index() {
    let dir = tempfile::tempdir().unwrap();
    let queue = open(dir.path(), 256);
    let names = ["AA0", "B1z", "zzZ"];
    let count = 200;
    let writers: Vec<_> = names
        .map(|name| {
            let appender = queue.producer(&mut Detached::here(), name).unwrap();
            std::thread::spawn(move || {
                for number in 0..count {
                    appender
                        .append(&Detached::here(), format!("{name} {number}").as_bytes())
                        .unwrap();
                }
            })
        })
        .into();
    for writer in writers {
        writer.join().unwrap();
    }
    let tailer = queue.tailer(false).unwrap();
    let found: Vec<_> = all(&tailer).into_iter().map(|(_, bytes)| bytes).collect();
    assert_eq!(found.len(), names.len() * count);
    for name in names {
        let own = found.iter().filter(|bytes| bytes.starts_with(name.as_bytes()));
        let expected = (0..count).map(|number| format!("{name} {number}").into_bytes());
        assert!(own.cloned().eq(expected), "{name}");
    }
}

#[test]
fn writers_exclude_each_other() {
    let dir = tempfile::tempdir().unwrap();
    let queue = open(dir.path(), 4096);
    let first = queue.appender(&mut Detached::here()).unwrap();
    assert!(matches!(
        open(dir.path(), 64).appender(&mut Detached::here()),
        Err(Error::WriterInUse { .. })
    ));
    first.append(&Detached::here(), b"1").unwrap();
    assert!(queue.producer(&mut Detached::here(), "AA0").is_err());
    first.close(&Detached::here());
    assert!(matches!(queue.producer(&mut Detached::here(), "AA0"), Err(Error::Unsupported(_))));
    assert!(matches!(first.append(&Detached::here(), b"2"), Err(Error::Closed { .. })));
    queue.appender(&mut Detached::here()).unwrap().append(&Detached::here(), b"2").unwrap();

    let dir = tempfile::tempdir().unwrap();
    let queue = open(dir.path(), 4096);
    let _first = queue.producer(&mut Detached::here(), "AA0").unwrap();
    assert!(matches!(
        open(dir.path(), 64).producer(&mut Detached::here(), "AA0"),
        Err(Error::WriterInUse { .. })
    ));
    let _second = queue.producer(&mut Detached::here(), "AA1").unwrap();
    assert!(queue.appender(&mut Detached::here()).is_err());
    for name in ["", "AA", "AAAA", "A_^", "../"] {
        assert!(
            matches!(queue.producer(&mut Detached::here(), name), Err(Error::Invalid(_))),
            "{name}"
        );
    }
}

/// A queue of two producers, the second of which died in the state given by its profile and entry.
fn with_dead_producer(dir: &Path, entry: (u64, u64), words: [u64; 4]) {
    let queue = open(dir, 4096);
    let dead = queue.producer(&mut Detached::here(), "BB0").unwrap();
    let alive = queue.producer(&mut Detached::here(), "AA0").unwrap();
    dead.append(&Detached::here(), b"first").unwrap();
    dead.append(&Detached::here(), b"second").unwrap();
    alive.append(&Detached::here(), b"third").unwrap();
    queue.close(&Detached::here());
    let index = fs::OpenOptions::new().write(true).open(dir.join("0.qmx")).unwrap();
    index.write_all_at(&entry.0.to_le_bytes(), 16).unwrap();
    index.write_all_at(&entry.1.to_le_bytes(), 24).unwrap();
    let profile = fs::OpenOptions::new().write(true).open(dir.join("BB0.qm")).unwrap();
    profile.write_all_at(&words.map(u64::to_le_bytes).concat(), 0).unwrap();
}

const CLAIMED: u64 = 0x0042_4230_0000_0006;

fn texts(tailer: &Tailer) -> Vec<String> {
    all(tailer).into_iter().map(|(_, bytes)| String::from_utf8(bytes).unwrap()).collect()
}

#[test]
fn a_whole_message_of_a_dead_producer_is_read_and_then_completed() {
    // Died after the claim, after the profile, after the address.
    for (begin, last) in [(0, 0), (0, 16), (5, 16)] {
        let dir = tempfile::tempdir().unwrap();
        with_dead_producer(dir.path(), (begin, CLAIMED), [5, 11, last, 16]);
        let read_only = QuickQueue::open(dir.path(), Options { read_only: true, ..options(64) });
        let tailer = read_only.unwrap().tailer(true).unwrap();
        assert_eq!(texts(&tailer), ["first", "second", "third"]);

        let queue = open(dir.path(), 64);
        let again = queue.producer(&mut Detached::here(), "BB0").unwrap();
        let index = fs::read(dir.path().join("0.qmx")).unwrap();
        assert_eq!(index[16..32], [5, 0, 0, 0, 0, 0, 0, 0, 6, 0, 0, 0, b'0', b'B', b'B', 0x7F]);
        assert_eq!(again.append(&Detached::here(), b"fourth").unwrap(), 48);
        let tailer = queue.tailer(true).unwrap();
        assert_eq!(texts(&tailer), ["first", "second", "third", "fourth"]);
    }
}

#[test]
fn an_entry_that_nothing_proves_is_passed_over_once() {
    // The profile was lost; it has another length; its producer continued.
    for words in [[0, 0, 0, 0], [5, 12, 16, 0], [11, 19, 48, 0]] {
        let dir = tempfile::tempdir().unwrap();
        with_dead_producer(dir.path(), (0, CLAIMED), words);
        let queue = open(dir.path(), 64);
        let tailer = queue.tailer(false).unwrap();
        assert_eq!(texts(&tailer), ["first", "third"]);

        let tailer = queue.tailer(true).unwrap();
        assert_eq!(next(&tailer).unwrap().unwrap().1, b"first");
        let died = next(&tailer);
        assert!(matches!(died, Err(Error::ProducerDied { index: 16, .. })), "{died:?}");
        assert_eq!(texts(&tailer), ["third"]);
    }
}

#[test]
fn a_restarted_producer_holds_up_nobody() {
    let dir = tempfile::tempdir().unwrap();
    with_dead_producer(dir.path(), (0, CLAIMED), [5, 99, 16, 16]);
    let queue = open(dir.path(), 64);
    let _alive = queue.producer(&mut Detached::here(), "BB0").unwrap();
    assert_eq!(texts(&queue.tailer(false).unwrap()), ["first", "third"]);
}

#[test]
fn a_message_that_was_not_claimed_is_taken_back() {
    let dir = tempfile::tempdir().unwrap();
    let queue = open(dir.path(), 4096);
    append_as(&queue, "AA0", b"first");
    queue.close(&Detached::here());
    let path = dir.path().join("AA0.qm");
    let profile = fs::OpenOptions::new().write(true).open(&path).unwrap();
    profile.write_all_at(&42_u64.to_le_bytes(), 0).unwrap();
    let queue = open(dir.path(), 64);
    append_as(&queue, "AA0", b"second");
    queue.close(&Detached::here());
    let bytes: [u8; 32] = fs::read(&path).unwrap().try_into().unwrap();
    let profile = Profile::read(&bytes);
    assert_eq!((profile.previous_end(), profile.data_end(), profile.last), (5, 11, 16));
    let queue = open(dir.path(), 64);
    assert_eq!(texts(&queue.tailer(true).unwrap()), ["first", "second"]);
}

#[test]
fn a_lost_profile_loses_no_message() {
    let dir = tempfile::tempdir().unwrap();
    let queue = open(dir.path(), 4096);
    append_as(&queue, "AA0", b"first");
    queue.close(&Detached::here());
    fs::remove_file(dir.path().join("AA0.qm")).unwrap();
    let queue = open(dir.path(), 64);
    append_as(&queue, "AA0", b"second");
    assert_eq!(texts(&queue.tailer(true).unwrap()), ["first", "second"]);
}

#[test]
fn an_empty_newest_index_page_does_not_start_the_queue_over() {
    let dir = tempfile::tempdir().unwrap();
    let queue = open(dir.path(), 64);
    queue.appender(&mut Detached::here()).unwrap().append(&Detached::here(), b"first").unwrap();
    queue.close(&Detached::here());
    for name in ["1.qx", "2.qx"] {
        fs::File::create(dir.path().join(name)).unwrap().set_len(64).unwrap();
    }
    let queue = open(dir.path(), 64);
    assert_eq!(
        queue
            .appender(&mut Detached::here())
            .unwrap()
            .append(&Detached::here(), b"second")
            .unwrap(),
        16
    );
    assert_eq!(texts(&queue.tailer(true).unwrap()), ["first", "second"]);
}

#[test]
fn read_only_makes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options { read_only: true, ..options(64) };
    assert!(matches!(
        QuickQueue::open(dir.path(), options.clone()),
        Err(Error::NotAQuickQueue { .. })
    ));
    assert!(QuickQueue::open(&dir.path().join("none"), options.clone()).is_err());
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    let queue = open(dir.path(), 64);
    append_as(&queue, "AA0", b"first");
    queue.close(&Detached::here());
    let before = fs::read_dir(dir.path()).unwrap().count();
    let queue = QuickQueue::open(dir.path(), options).unwrap();
    assert_eq!(texts(&queue.tailer(true).unwrap()), ["first"]);
    assert!(matches!(queue.appender(&mut Detached::here()), Err(Error::ReadOnly { .. })));
    assert!(matches!(queue.producer(&mut Detached::here(), "AA1"), Err(Error::ReadOnly { .. })));
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), before);
}

#[test]
fn moves_stay_within_the_queue() {
    let dir = tempfile::tempdir().unwrap();
    let queue = open(dir.path(), 64);
    let appender = queue.appender(&mut Detached::here()).unwrap();
    for number in 0..9 {
        appender.append(&Detached::here(), &message(number)).unwrap();
    }
    let tailer = queue.tailer(true).unwrap();
    assert!(tailer.move_to_index(&Detached::here(), 32).unwrap());
    assert_eq!(next(&tailer).unwrap(), Some((32, message(2))));
    assert!(!tailer.move_to_index(&Detached::here(), 1600).unwrap());
    assert_eq!(tailer.index(&Detached::here()).unwrap(), 144);
    assert!(matches!(tailer.move_to_index(&Detached::here(), 17), Err(Error::Invalid(_))));
    tailer.to_start(&Detached::here()).unwrap();
    assert_eq!(all(&tailer).len(), 9);
    tailer.to_start(&Detached::here()).unwrap();
    tailer.to_end(&Detached::here()).unwrap();
    assert_eq!(next(&tailer).unwrap(), None);
    appender.append(&Detached::here(), b"new").unwrap();
    assert_eq!(next(&tailer).unwrap(), Some((144, b"new".to_vec())));
}
