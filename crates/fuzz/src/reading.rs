//! Reads and writes a directory in every way that the kernel's handles offer.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::time::Duration;

use quire_kernel::Error;
use quire_kernel::chronicle::append::appender::Appender;
use quire_kernel::chronicle::dump;
use quire_kernel::chronicle::protocol::lock::recovery::ForceUnlock;
use quire_kernel::chronicle::protocol::publish::Payload;
use quire_kernel::chronicle::queue::handle::Queue;
use quire_kernel::chronicle::queue::options::Options;
use quire_kernel::chronicle::read::tailer::{Direction, Tailer};
use quire_kernel::os::clock::Clock;
use quire_kernel::os::detached::Detached;
use quire_kernel::os::interrupt::Signals;

/// Messages by their index.
pub type Messages = Vec<(i64, Vec<u8>)>;

/// The messages read, and the error that ended the read.
#[derive(Debug)]
pub struct Read {
    /// Index and payload, in the order they came.
    pub messages: Messages,
    /// The error that ended the read, if there was one.
    pub error: Option<Error>,
}

/// The options for opening directories: no waiting.
#[must_use]
pub fn options(read_only: bool, now_ms: i64) -> Options {
    Options {
        read_only,
        clock: Clock::Manual(Arc::new(AtomicI64::new(now_ms))),
        block_bytes: 1,
        timeout: Duration::ZERO,
        force_unlock: ForceUnlock::Always,
        eof_grace: Some(Duration::ZERO),
        ..Options::default()
    }
}

/// Reads until there are no more messages or an error. More than `most` messages is a loop.
#[must_use]
pub fn all(tailer: &Tailer, most: usize) -> Read {
    let mut messages = Messages::new();
    loop {
        let read = tailer.read_many(&Detached::here(), 64, |index, bytes| {
            messages.push((index, bytes.to_vec()));
            true
        });
        assert!(messages.len() <= most, "messages without end: found={}", messages.len());
        match read {
            Ok(0) => return Read { messages, error: None },
            Ok(_) => {}
            Err(error) => return Read { messages, error: Some(error) },
        }
    }
}

/// Reads from the first message on.
#[must_use]
pub fn forward(queue: &Arc<Queue>, most: usize) -> Read {
    match Tailer::new(Arc::clone(queue), None, Signals::Handled(&mut Detached::here())) {
        Ok(tailer) => all(&tailer, most),
        Err(error) => Read { messages: Messages::new(), error: Some(error) },
    }
}

/// Reads backward from the last message.
#[must_use]
pub fn backward(queue: &Arc<Queue>, most: usize) -> Read {
    let failed = |error| Read { messages: Messages::new(), error: Some(error) };
    let tailer = match Tailer::new(Arc::clone(queue), None, Signals::Handled(&mut Detached::here()))
    {
        Ok(tailer) => tailer,
        Err(error) => return failed(error),
    };
    let turned = tailer
        .set_direction(&Detached::here(), Direction::Backward)
        .and_then(|()| tailer.to_end(&Detached::here()));
    turned.map_or_else(failed, |()| all(&tailer, most))
}

/// Moves to an index and reads there; None if there is no message.
pub fn at(queue: &Arc<Queue>, index: i64) -> Result<Option<Vec<u8>>, Error> {
    let tailer = Tailer::new(Arc::clone(queue), None, Signals::Handled(&mut Detached::here()))?;
    if !tailer.move_to_index(&Detached::here(), index)? {
        return Ok(None);
    }
    let mut found = None;
    tailer.read_many(&Detached::here(), 1, |index, bytes| {
        found = Some((index, bytes.to_vec()));
        true
    })?;
    let (read, bytes) = found.unwrap_or_else(|| panic!("nothing at the index: index={index:#x}"));
    assert_eq!(read, index, "another index than was asked for");
    Ok(Some(bytes))
}

/// Calls everything else; errors are allowed.
pub fn the_rest(queue: &Arc<Queue>) {
    let (first, last) = (queue.first_index(), queue.last_index());
    if let (Ok(Some(first)), Ok(Some(last))) = (first, last) {
        let _ = queue.count_excerpts(first, last);
        let _ = queue.count_excerpts(last.saturating_add(2), first);
    }
    let _ = queue.entry_count();
    let _ = queue.cycles();
    let _ = queue.table_value("chronicle.write.lock");
    let _ = dump::dump(queue);
    if let Ok(tailer) =
        Tailer::new(Arc::clone(queue), None, Signals::Handled(&mut Detached::here()))
    {
        while let Ok(Some(document)) = tailer.open_document(&Detached::here(), true) {
            let _ = document.payload();
            if tailer.close_document(&Detached::here(), &document).is_err() {
                break;
            }
        }
        let _ = (
            tailer.to_end(&Detached::here()),
            tailer.index(&Detached::here()),
            tailer.set_direction(&Detached::here(), Direction::Backward),
        );
        let _ = all(&tailer, usize::MAX);
        let _ = tailer.set_direction(&Detached::here(), Direction::Forward);
        let _ = all(&tailer, usize::MAX);
        let _ = tailer.to_start(&Detached::here());
    }
}

/// Opens the directory for writing and appends one message; returns its index.
pub fn append(dir: &Path, now_ms: i64, payload: &[u8]) -> Result<i64, Error> {
    let queue = Queue::open(dir, options(false, now_ms), &mut Detached::here())?;
    let appender = Appender::new(Arc::clone(&queue), Signals::Handled(&mut Detached::here()))?;
    let index = appender.append(
        Signals::Handled(&mut Detached::here()),
        None,
        Payload { head: &[], body: payload, zeros: 0 },
    );
    queue.close(&Detached::here());
    index
}

/// Opens the directory for reading.
pub fn open(dir: &Path, now_ms: i64) -> Result<Arc<Queue>, Error> {
    Queue::open(dir, options(true, now_ms), &mut Detached::here())
}
