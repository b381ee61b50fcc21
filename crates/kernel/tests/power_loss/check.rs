//! Invariants of every image: see `docs/durability.md`.

use std::path::Path;
use std::sync::Arc;

use quire_kernel::chronicle::append::appender::Appender;
use quire_kernel::chronicle::protocol::publish::Payload;
use quire_kernel::chronicle::queue::handle::Queue;
use quire_kernel::chronicle::read::tailer::{Direction, Tailer};
use quire_kernel::os::detached::Detached;
use quire_kernel::os::interrupt::Signals;
use quire_kernel::warnings;

use crate::workload::{History, NAME, Shape};

/// More than a lower index array has room for.
const APPENDED: usize = 40;

type Messages = Vec<(i64, Vec<u8>)>;

fn open(case: &str, path: &Path, shape: &Shape, history: &History) -> Arc<Queue> {
    let (options, _) = shape.options(history.now_ms);
    Queue::open(path, options, &mut Detached::here())
        .unwrap_or_else(|error| panic!("{case}: cannot open: {error}"))
}

fn all(case: &str, tailer: &Tailer) -> Messages {
    let mut found = Messages::new();
    // A read that leaves a file returns nothing, so try several times.
    for _ in 0..40 {
        let read = tailer.read_many(&Detached::here(), usize::MAX, |index, payload| {
            found.push((index, payload.to_vec()));
            true
        });
        read.unwrap_or_else(|error| panic!("{case}: cannot read: {error}"));
    }
    found
}

/// Opens an image, checks it, appends, and checks again. Returns how many unsynced messages it kept
/// and lost.
pub fn recovers(
    case: &str,
    path: &Path,
    shape: &Shape,
    history: &History,
    moment: usize,
) -> (u64, u64) {
    let queue = open(case, path, shape, history);
    let named =
        Tailer::new(Arc::clone(&queue), Some(NAME), Signals::Handled(&mut Detached::here()))
            .expect("a named tailer");
    let position = named.index(&Detached::here()).expect("its index");
    let before = look(case, &queue, history, moment);
    let appended = append(case, &queue, &before);
    let after = read(case, &queue);
    let expected: Messages = before.iter().chain(&appended).cloned().collect();
    assert!(after == expected, "{case}: after appending: {}", difference(&after, &expected));
    same_both_ways(case, &queue, &after);
    // A named tailer skips no message appended from now on.
    let received = all(case, &named);
    let due: Messages = after.iter().filter(|(index, _)| *index >= position).cloned().collect();
    assert!(received == due, "{case}: named tailer: {}", difference(&received, &due));
    assert!(received.ends_with(&appended), "{case}: the named tailer passed over messages");
    drop(warnings::take());
    let begun = history.messages.values().filter(|message| message.begun < moment).count();
    (before.len() as u64, (begun - before.len()) as u64)
}

/// Like the first part of [`recovers`], for an image of an interrupted recovery: messages appended
/// during it were not synced, and may be present.
pub fn recovers_again(case: &str, path: &Path, shape: &Shape, history: &History, moment: usize) {
    let queue = open(case, path, shape, history);
    let before = read(case, &queue);
    let known = before.iter().take_while(|(index, payload)| {
        history.message(*index, moment).is_some_and(|sent| is_torn_from(payload, sent))
    });
    check_covered(case, &known.cloned().collect(), history, history.covered(moment));
    append(case, &queue, &before);
    drop(warnings::take());
}

/// Checks that synced messages are whole, and that there is nothing that was not appended.
fn look(case: &str, queue: &Arc<Queue>, history: &History, moment: usize) -> Messages {
    let found = read(case, queue);
    let covered = history.covered(moment).max(said_synced(case, queue, history));
    for (index, payload) in &found {
        let sent = history.message(*index, moment);
        let sent = sent.unwrap_or_else(|| panic!("{case}: invented: index={index:#x}"));
        let whole = Some(*index) <= covered;
        assert!(
            payload == sent || !whole && is_torn_from(payload, sent),
            "{case}: other bytes: index={index:#x} synced={whole}"
        );
    }
    check_covered(case, &found, history, covered);
    same_both_ways(case, queue, &found);
    found
}

/// The last message that is synced according to the image itself.
fn said_synced(case: &str, queue: &Queue, history: &History) -> Option<i64> {
    let said = queue.last_index_synced().expect("the synced index")?;
    assert!(history.messages.contains_key(&said), "{case}: no message: synced={said:#x}");
    Some(said)
}

fn check_covered(case: &str, found: &Messages, history: &History, covered: Option<i64>) {
    let Some(covered) = covered else { return };
    let due = history.messages.range(..=covered);
    let mut found = found.iter();
    for (index, message) in due {
        let found = found.next();
        assert!(
            found.is_some_and(|(at, payload)| at == index && *payload == message.payload),
            "{case}: a synced message is not there: index={index:#x} covered={covered:#x} \
             found={:#x?}",
            found.map(|(at, _)| at)
        );
    }
}

/// Whether `found` is `sent` with bytes missing: those read as zeros, which are never sent.
fn is_torn_from(found: &[u8], sent: &[u8]) -> bool {
    let same = |(found, sent): (&u8, &u8)| *found == *sent || *found == 0;
    found.len() == sent.len() && found.iter().zip(sent).all(same)
}

fn read(case: &str, queue: &Arc<Queue>) -> Messages {
    let tailer = Tailer::new(Arc::clone(queue), None, Signals::Handled(&mut Detached::here()))
        .expect("a tailer");
    let found = all(case, &tailer);
    for pair in found.windows(2) {
        let split = |index: i64| queue.roll().split(index).expect("an index");
        let ((cycle, sequence), (next_cycle, next)) = (split(pair[0].0), split(pair[1].0));
        let follows = if cycle == next_cycle { next == sequence + 1 } else { next == 0 };
        assert!(follows, "{case}: {:#x} is followed by {:#x}", pair[0].0, pair[1].0);
    }
    found
}

/// Checks that reading backward, by index, and by the ends gives the same messages and no others.
fn same_both_ways(case: &str, queue: &Arc<Queue>, messages: &Messages) {
    let tailer = Tailer::new(Arc::clone(queue), None, Signals::Handled(&mut Detached::here()))
        .expect("a tailer");
    tailer.set_direction(&Detached::here(), Direction::Backward).expect("backward");
    tailer.to_end(&Detached::here()).expect("to the end");
    let mut backward = all(case, &tailer);
    backward.reverse();
    assert!(backward == *messages, "{case}: backward: {}", difference(&backward, messages));

    let tailer = Tailer::new(Arc::clone(queue), None, Signals::Handled(&mut Detached::here()))
        .expect("a tailer");
    for (index, payload) in messages {
        assert!(
            tailer.move_to_index(&Detached::here(), *index).expect("move"),
            "{case}: no index {index:#x}"
        );
        let mut same = false;
        tailer
            .read_many(&Detached::here(), 1, |at, found| {
                same = at == *index && found == payload;
                true
            })
            .expect("read");
        assert!(same, "{case}: other message at index {index:#x}");
    }
    for beyond in 1..80 {
        let Some((last, _)) = messages.last() else { break };
        assert!(
            !tailer.move_to_index(&Detached::here(), last + beyond).expect("move"),
            "{case}: beyond the end"
        );
    }
    let last = messages.last().map(|(index, _)| *index);
    assert_eq!(queue.last_index().expect("last"), last, "{case}: last index");
    assert_eq!(queue.entry_count().expect("count"), messages.len() as u64, "{case}: count");
}

fn append(case: &str, queue: &Arc<Queue>, before: &Messages) -> Messages {
    let appender = Appender::new(Arc::clone(queue), Signals::Handled(&mut Detached::here()))
        .expect("an appender");
    let mut written = Messages::new();
    for number in 0..APPENDED {
        let payload = vec![number as u8 + 1; 1 + number * 7 % 90];
        let index =
            appender.append(Signals::Handled(&mut Detached::here()), None, Payload::new(&payload));
        let index = index.unwrap_or_else(|error| panic!("{case}: cannot append: {error}"));
        let last = written.last().or(before.last()).map(|(last, _)| *last);
        assert!(last.is_none_or(|last| last < index), "{case}: index {index:#x} comes again");
        written.push((index, payload));
    }
    written
}

fn difference(found: &Messages, expected: &Messages) -> String {
    let at = found.iter().zip(expected).take_while(|(a, b)| a == b).count();
    let index = |messages: &Messages| messages.get(at).map(|(index, _)| format!("{index:#x}"));
    format!(
        "found={} expected={} first_difference={at} found_index={:?} expected_index={:?}",
        found.len(),
        expected.len(),
        index(found),
        index(expected)
    )
}
