//! Any bytes as the two files of an Indexed Chronicle.

use std::sync::Arc;

use quire_kernel::os::detached::Detached;
use quire_kernel::vanilla::Direction;
use quire_kernel::vanilla::indexed::{IndexedQueue, IndexedTailer};

use crate::bounded;
use crate::sample::Scratch;

/// Bytes of a line of the index.
const LINE: usize = 64;
/// The most memory that reading a few pages may allocate.
const MEMORY: usize = 8 << 20;

/// The first byte says how many lines of index the bytes begin with; the others are data.
pub fn indexed(data: &[u8]) {
    let Some((lines, rest)) = data.split_first() else { return };
    let (index, data) = rest.split_at(rest.len().min(usize::from(*lines) * LINE));
    let scratch = Scratch::new();
    let base = scratch.with(&[("q.index", index), ("q.data", data)]).join("q");
    let queue = Arc::new(IndexedQueue::open(&base).unwrap());
    bounded(MEMORY, || {
        let forward = read(&queue, Direction::Forward, data);
        let mut backward = read(&queue, Direction::Backward, data);
        backward.reverse();
        assert_eq!(forward, backward, "not the same in both directions");
        let _ = (queue.first_index(), queue.last_index());
        let end = queue.entry_count().unwrap();
        let count = queue.count_between(0, end).unwrap();
        assert!(count >= forward.len() as u64, "fewer messages than were read");
    });
}

/// Indexes and lengths of all messages except empty ones, which look like free entries if pages are
/// lost. Unreadable messages are skipped.
fn read(queue: &Arc<IndexedQueue>, direction: Direction, data: &[u8]) -> Vec<(i64, usize)> {
    let tailer = IndexedTailer::open(Arc::clone(queue)).unwrap();
    tailer.set_direction(&Detached::here(), direction).unwrap();
    if direction == Direction::Backward {
        tailer.to_end(&Detached::here()).unwrap();
    }
    let mut found = Vec::new();
    loop {
        match tailer.read(&Detached::here()) {
            Ok(Some(message)) => {
                let bytes = message.copied().unwrap();
                if !bytes.is_empty() {
                    assert!(data.windows(bytes.len()).any(|it| it == bytes), "not in the file");
                    found.push((message.index, bytes.len()));
                }
            }
            Ok(None) => return found,
            Err(_) => {
                let at = tailer.index(&Detached::here()).unwrap();
                let next = if direction == Direction::Backward { at - 1 } else { at + 1 };
                tailer.return_to(&Detached::here(), next).unwrap();
            }
        }
    }
}
