//! Files are repaired after a power cut under the write lock only (`docs/durability.md`).

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use quire_kernel::Error;
use quire_kernel::chronicle::append::appender::Appender;
use quire_kernel::chronicle::format::roll_cycle::RollCycle;
use quire_kernel::chronicle::format::table::Metadata;
use quire_kernel::chronicle::protocol::listing::Names;
use quire_kernel::chronicle::protocol::lock::guard::{DetachedGuard, LockGuard, WriteGuard};
use quire_kernel::chronicle::protocol::publish::Payload;
use quire_kernel::chronicle::protocol::repair;
use quire_kernel::chronicle::protocol::table::registry;
use quire_kernel::chronicle::queue::handle::Queue;
use quire_kernel::chronicle::queue::options::Options;
use quire_kernel::os::detached::Detached;
use quire_kernel::os::interrupt::Signals;

const LONG_AGO: Duration = Duration::from_secs(1_700_000_000);

/// A roll file that seems to have been written before the machine was started.
fn old_file(dir: &Path) -> PathBuf {
    let queue = Queue::open(dir, Options::default(), &mut Detached::here()).expect("a queue");
    let appender = Appender::new(Arc::clone(&queue), Signals::Handled(&mut Detached::here()))
        .expect("an appender");
    appender
        .append(Signals::Handled(&mut Detached::here()), None, Payload::new(b"kept"))
        .expect("append");
    let is_roll_file = |path: &PathBuf| path.extension().is_some_and(|suffix| suffix == "cq4");
    let mut files = std::fs::read_dir(dir).expect("list").map(|entry| entry.expect("entry").path());
    let path = files.find(is_roll_file).expect("a roll file");
    let file = File::options().write(true).open(&path).expect("open");
    file.set_modified(SystemTime::UNIX_EPOCH + LONG_AGO).expect("set the time");
    path
}

#[test]
fn nothing_is_repaired_without_the_write_lock() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = old_file(dir.path());
    let before = std::fs::read(&path).expect("read");
    let wanted = Metadata::default();
    let (timeout, may_wait) = (Duration::from_secs(10), &mut Detached::here());
    let signals = Signals::Handled(may_wait);
    let table = registry::open_or_create(dir.path(), Some(&wanted), 0o600, timeout, signals);
    let table = table.expect("table").expect("made");
    let roll = RollCycle::by_name("FAST_DAILY").expect("a roll cycle");
    let names = Names { dir: dir.path(), roll, epoch_ms: 0 };

    assert!(repair::is_due(names, &table).expect("look"));
    let lock = LockGuard::resume(table.write_lock(), 1);
    let not_held = DetachedGuard::new(WriteGuard::new(lock), may_wait);
    let lost = repair::repair(names, &table, &not_held);

    assert!(matches!(lost, Err(Error::LockLost { .. })), "{lost:?}");
    assert_eq!(std::fs::read(&path).expect("read"), before);
    assert!(repair::is_due(names, &table).expect("look"));
}
