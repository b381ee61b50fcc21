//! One function for each kind of hostile input, which panics on a finding.

use std::cell::RefCell;
use std::path::PathBuf;

use quire_kernel::chronicle::read::tailer::Tailer;
use quire_kernel::os::detached::Detached;
use quire_kernel::os::interrupt::Signals;
use quire_wire::history::{self, History};
use quire_wire::message;
use quire_wire::out::Out;
use quire_wire::text::{json, summary, yaml, yaml_parser};
use quire_wire::topic::{Topics, Wanted};

use crate::bounded;
use crate::model::{End, Walk};
use crate::reading::{self, Messages, Read};
use crate::sample::{FILE, FIRST_INDEX, NOW_MS, Scratch, TABLE, sample};

/// The maximum length of a file.
const LONGEST: usize = 1 << 18;
/// The least document: a header and a byte.
const LEAST_DOCUMENT: usize = 5;
const APPENDED: &[u8] = b"appended to the file as found";

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::new(Scratch::new());
}

fn directory(files: &[(&str, &[u8])]) -> PathBuf {
    SCRATCH.with_borrow(|scratch| scratch.with(files))
}

/// Limit on the memory for reading a file of this length: its messages twice, and a dump, where a
/// byte may become a line indented 64 times, in a string that grows by doubling.
const fn memory_for(bytes: usize) -> usize {
    (8 << 20) + 400 * bytes
}

/// Any bytes as a roll file.
pub fn store(data: &[u8]) {
    if data.len() > LONGEST {
        return;
    }
    bounded(memory_for(data.len()), || read_store(data));
    let word = data.first_chunk().map_or(0, |word| u32::from_le_bytes(*word));
    if word < 0x8000_0000 {
        // With other headers, opening for writing would wait half a second.
        bounded(memory_for(data.len()), || write_store(data));
    }
}

fn read_store(data: &[u8]) {
    let dir = directory(&[(FILE, data)]);
    let Ok(queue) = reading::open(&dir, NOW_MS) else { return };
    let most = data.len() / LEAST_DOCUMENT;
    match Walk::new(data) {
        Some(walk) => agrees(&reading::forward(&queue, most), &walk, data),
        None => assert!(reading::forward(&queue, most).messages.is_empty()),
    }
    let back = reading::backward(&queue, most).messages;
    for (index, _) in back.iter().take(8) {
        let _ = reading::at(&queue, *index);
    }
    for sequence in [0, 1, 3, 4, 5, 64, 1 << 12, 1 << 31] {
        let _ = reading::at(&queue, FIRST_INDEX + sequence);
    }
    reading::the_rest(&queue);
}

/// Checks that the messages read from the first one on are those given by the headers.
pub fn agrees(read: &Read, walk: &Walk, data: &[u8]) {
    let expected: Messages = (FIRST_INDEX..).zip(walk.payloads(data)).collect();
    assert!(read.messages == expected, "not what the headers say: {}", difference(read, &expected));
    assert_eq!(read.error.is_some(), walk.end == End::Damaged, "error={:?}", read.error);
}

/// The first difference between the messages read and the expected ones.
#[must_use]
pub fn difference(read: &Read, expected: &[(i64, Vec<u8>)]) -> String {
    let pairs = read.messages.iter().zip(expected);
    let same = pairs.take_while(|(found, wanted)| found == wanted).count();
    let (found, wanted) = (read.messages.get(same), expected.get(same));
    format!("message={same} found={found:x?} expected={wanted:x?} error={:?}", read.error)
}

fn write_store(data: &[u8]) {
    let dir = directory(&[(FILE, data), (TABLE, &sample().table)]);
    let appended = reading::append(&dir, NOW_MS, APPENDED);
    let Ok(queue) = reading::open(&dir, NOW_MS) else {
        assert!(appended.is_err(), "appended to what cannot be opened");
        return;
    };
    let most = data.len() / LEAST_DOCUMENT + 1;
    let read = reading::forward(&queue, most);
    if let (Err(_), Some(walk)) = (&appended, Walk::new(data)) {
        // An error changed nothing; an unfinished header at the end may have been cleared.
        agrees(&read, &walk, data);
    }
}

/// Any bytes as the table of a queue.
pub fn table(data: &[u8]) {
    if data.len() > LONGEST {
        return;
    }
    let word = data.first_chunk().map_or(0, |word| u32::from_le_bytes(*word));
    if !(1..0x8000_0000).contains(&word) {
        return; // opening would wait half a second
    }
    let sample = sample();
    let dir = directory(&[(FILE, &sample.file), (TABLE, data)]);
    let most = memory_for(sample.file.len() + data.len());
    bounded(most, || {
        if let Ok(queue) = reading::open(&dir, NOW_MS) {
            read_with_table(&reading::forward(&queue, sample.payloads.len()));
            let _ = reading::backward(&queue, sample.payloads.len());
            reading::the_rest(&queue);
            for key in ["", "index.risk", "listing.modCount"] {
                let _ = queue.table_value(key);
            }
        }
    });
    bounded(most, || {
        if let Ok(queue) = quire_kernel::chronicle::queue::handle::Queue::open(
            &dir,
            reading::options(false, NOW_MS),
            &mut Detached::here(),
        ) {
            for name in ["risk", "replicated:risk"] {
                if let Ok(tailer) =
                    Tailer::new(queue.clone(), Some(name), Signals::Handled(&mut Detached::here()))
                {
                    let read = tailer.read_many(&Detached::here(), 3, |_, _| true);
                    let _ =
                        (read, tailer.commit(&Detached::here()), tailer.index(&Detached::here()));
                }
            }
            queue.close(&Detached::here());
        }
        let _ = reading::append(&dir, NOW_MS, APPENDED);
    });
}

/// Checks that, whatever the table says, the messages are those of the roll file, from the first
/// one on.
fn read_with_table(read: &Read) {
    let found = read.messages.iter().map(|(_, payload)| payload);
    assert!(found.zip(&sample().payloads).all(|(found, expected)| found == expected));
}

/// A sound queue whose hints are arbitrary: each 10 bytes name a word and a value.
pub fn index(data: &[u8]) {
    let sample = sample();
    let walk = Walk::new(&sample.file).unwrap();
    let (mut file, words) = (sample.file.clone(), walk.hints());
    let mut changed = Vec::new();
    for edit in data.as_chunks::<10>().0.iter().take(16) {
        let word = words[usize::from(u16::from_le_bytes([edit[0], edit[1]])) % words.len()];
        let value = value_of(&walk, edit, &file[word..word + 8]);
        file[word..word + 8].copy_from_slice(&value.to_le_bytes());
        changed.push(word);
    }
    changed.dedup();
    let most = memory_for(file.len());
    bounded(most, || hints_are_hints(&file, changed.len() < 2));
}

/// A value that may mislead: random, near another value, or another position.
fn value_of(walk: &Walk, edit: &[u8; 10], old: &[u8]) -> u64 {
    let raw = u64::from_le_bytes(edit[2..].try_into().unwrap());
    let pick = |count: usize| usize::try_from(raw >> 8).unwrap() % count;
    let old = u64::from_le_bytes(old.try_into().unwrap());
    match raw & 7 {
        0 => raw >> 8,
        1 => walk.messages().nth(pick(walk.messages().count())).unwrap().position as u64,
        2 => walk.documents[pick(walk.documents.len())].position as u64,
        3 => walk.documents[pick(walk.documents.len())].payload.start as u64,
        4 => old ^ (1 << (raw >> 8 & 63)),
        5 => old.wrapping_add((raw.cast_signed() >> 8).cast_unsigned()),
        6 => u64::MAX - (raw >> 8 & 0xFF),
        _ => 1 << (raw >> 8 & 63),
    }
}

/// Checks that a file with the sample's documents reads as the sample, and is appended to at
/// its end. Words that were changed consistently look like a valid index: with more
/// than one change, only the messages read from the first one on are certain.
pub fn hints_are_hints(file: &[u8], only_one: bool) {
    let sample = sample();
    let dir = directory(&[(FILE, file), (TABLE, &sample.table)]);
    let mut expected: Messages = (FIRST_INDEX..).zip(sample.payloads.iter().cloned()).collect();
    let queue = reading::open(&dir, NOW_MS).unwrap();
    let most = expected.len();
    let read = reading::forward(&queue, most);
    assert!(read.messages == expected, "forward: {}", difference(&read, &expected));
    let mut back = reading::backward(&queue, if only_one { most } else { usize::MAX });
    back.messages.reverse();
    if only_one {
        assert!(back.messages == expected, "backward: {}", difference(&back, &expected));
        assert_eq!(queue.entry_count().unwrap(), expected.len() as u64);
    }
    for (index, payload) in expected.iter().step_by(7) {
        let found = reading::at(&queue, *index);
        assert!(!only_one || found.unwrap().as_ref() == Some(payload), "index={index:#x}");
    }
    reading::the_rest(&queue);
    queue.close(&Detached::here());
    let appended = reading::append(&dir, NOW_MS, APPENDED);
    if let Ok(index) = appended {
        assert!(!only_one || index == expected.last().unwrap().0 + 1, "index={index:#x}");
    } else {
        assert!(!only_one, "not appended: {appended:?}");
    }
    let queue = reading::open(&dir, NOW_MS).unwrap();
    if only_one {
        expected.push((FIRST_INDEX + i64::try_from(most).unwrap(), APPENDED.to_vec()));
        let read = reading::forward(&queue, most + 1);
        assert!(read.messages == expected, "appended: {}", difference(&read, &expected));
    }
}

/// Any bytes as a message.
pub fn wire(data: &[u8]) {
    if data.len() > LONGEST {
        return;
    }
    let most = (64 << 10) + 400 * data.len();
    bounded(most, || {
        let history = history::of_message(data);
        let faults = [
            message::text(data).err(),
            message::check(data).err(),
            history.as_ref().err().cloned(),
        ];
        for fault in faults.into_iter().flatten() {
            assert!(fault.to_string().len() < 1000, "{fault}");
        }
        if let Some(wanted) = topics(data) {
            assert!(wanted.start as usize <= data.len());
        }
        if let Ok(Some(history)) = history {
            carried_on(&history);
        }
    });
}

/// A history that was read can be written in both forms, unless it is too long.
fn carried_on(history: &History) {
    for as_fields in [false, true] {
        let mut out = Out::new();
        if history.put(&mut out, 7, as_fields).is_ok() {
            let again = history::of_message(out.written().unwrap()).unwrap().unwrap();
            assert_eq!(again.sources, history.sources);
            assert_eq!(again.timings.split_last(), Some((&7, &history.timings[..])));
        }
    }
}

/// Any bytes as a message to print.
pub fn shown(data: &[u8]) {
    if data.len() > LONGEST {
        return;
    }
    // Compressed blobs may expand, and each byte may print as six.
    let most = (32 << 20) + 2000 * data.len();
    bounded(most, || {
        let (mut dumped, mut text, mut object) = (String::new(), String::new(), String::new());
        let has_dumped = yaml::put(&mut dumped, data, false).is_ok();
        let is_text = yaml::put(&mut text, data, true).is_ok();
        assert!(is_text || !has_dumped, "shown in a dump alone: {dumped}");
        if json::put(&mut object, data).is_ok() {
            assert!(!object.contains('\n'), "more than one line: {object}");
        }
        assert!(summary::of(data).chars().count() < 200);
        let _ = (yaml_parser::yaml(&text), json::parse(&object));
    });
}

/// Any text as a message: after one round trip, further ones change nothing.
pub fn text(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if data.len() > LONGEST {
        return;
    }
    bounded((64 << 10) + 2000 * data.len(), || {
        if let Ok(message) = yaml_parser::yaml(text) {
            let mut first = String::new();
            if yaml::put(&mut first, &message, true).is_ok() {
                let again =
                    yaml_parser::yaml(&first).unwrap_or_else(|fault| panic!("{fault}: {first}"));
                let mut second = String::new();
                yaml::put(&mut second, &again, true).unwrap();
                assert_eq!(first, second);
            }
        }
        if let Ok(message) = json::parse(text) {
            let mut first = String::new();
            if json::put(&mut first, &message).is_ok() {
                let again = json::parse(&first).unwrap_or_else(|fault| panic!("{fault}: {first}"));
                let mut second = String::new();
                json::put(&mut second, &again).unwrap();
                assert_eq!(first, second);
            }
        }
    });
}

/// Checks the filter of sub-topics against a message that starts with one of the keys.
fn topics(data: &[u8]) -> Option<Wanted> {
    let routes = [b"\xB9\x02to\xE1a".to_vec(), data.to_vec()];
    Topics::new(&routes).or_else(|_| Topics::new(&routes[..1])).ok()?.find(data)
}
