//! The metrics of appends (`docs/metrics.md`).

use std::sync::Arc;

use quire_kernel::Error;
use quire_kernel::chronicle::append::appender::Appender;
use quire_kernel::chronicle::protocol::publish::Payload;
use quire_kernel::chronicle::queue::handle::Queue;
use quire_kernel::chronicle::queue::options::Options;
use quire_kernel::metrics::Counter;
use quire_kernel::os::detached::Detached;
use quire_kernel::os::interrupt::Signals;

/// Messages and bytes.
fn counted(queue: &Queue) -> [u64; 2] {
    let metrics = queue.metrics().expect("metrics");
    [Counter::MessagesAppended, Counter::BytesAppended].map(|counter| metrics.counted(counter))
}

#[test]
fn a_run_that_is_stored_and_not_shown_counts_when_it_is_appended_again() {
    let dir = tempfile::tempdir().expect("a directory");
    let may_wait = &mut Detached::here();
    let options = Options { metrics: true, ..Options::default() };
    let queue = Queue::open(dir.path(), options, may_wait).expect("a queue");
    let appender =
        Appender::new(Arc::clone(&queue), Signals::Handled(may_wait)).expect("an appender");
    appender.append(Signals::Handled(may_wait), None, Payload::new(b"first")).expect("an index");
    let table = queue.writable_table("a test").expect("a table");
    let word = table.write_lock().word;

    let payload = |_| Payload::new(b"later");
    let take_lock_away = |_, _| assert!(word.force(word.read()), "it was held");
    let lost = appender.append_run(Signals::Handled(may_wait), 3, payload, take_lock_away);
    assert!(matches!(lost, Err(Error::LockLost { .. })), "{lost:?}");
    assert_eq!((queue.entry_count().expect("a count"), counted(&queue)), (1, [1, 5]));

    let again = appender.append_run(Signals::Handled(may_wait), 3, payload, |_, _| {});
    assert_eq!(again.expect("appended"), 3);
    assert_eq!((queue.entry_count().expect("a count"), counted(&queue)), (4, [4, 20]));
}
