//! Inputs with which fuzzing and flipped bits found bugs, by name.

#![allow(clippy::unwrap_used)] // to panic is to report a find

use std::path::Path;

use quire_fuzz::damage::{Golden, is_roll_file};
use quire_fuzz::model::Walk;
use quire_fuzz::sample::{FILE, NOW_MS, Scratch, TABLE, sample};
use quire_fuzz::{reading, targets};

/// The sample's file with a word changed, which must still read as the sample.
fn with_word(word: usize, value: usize) {
    let mut file = sample().file.clone();
    file[word..word + 8].copy_from_slice(&(value as u64).to_le_bytes());
    targets::hints_are_hints(&file, true);
}

fn walk() -> Walk {
    Walk::new(&sample().file).unwrap()
}

#[test]
fn a_slot_that_names_another_message_leads_to_no_other_message() {
    let walk = walk();
    let messages: Vec<_> = walk.messages().map(|message| message.position).collect();
    for word in walk.hints().into_iter().step_by(3) {
        for place in [0, 1, 7, 8, 130, 299] {
            with_word(word, messages[place]);
        }
    }
}

#[test]
fn a_slot_that_names_a_document_inside_a_payload_leads_nowhere() {
    let walk = walk();
    let fakes = walk.messages().skip(7).step_by(10).map(|message| message.payload.start);
    let fakes: Vec<_> = fakes.step_by(7).collect();
    for word in walk.hints().into_iter().step_by(3) {
        for fake in &fakes {
            with_word(word, *fake);
        }
    }
}

#[test]
fn a_slot_that_names_another_array_shifts_no_message() {
    let walk = walk();
    let arrays: Vec<_> = walk.arrays().map(|array| array.position).collect();
    assert!(arrays.len() > 3);
    for word in walk.hints().into_iter().take(40) {
        for array in &arrays {
            with_word(word, *array);
        }
    }
}

#[test]
fn a_wrong_slot_from_which_documents_leave_the_file_is_no_error() {
    let walk = walk();
    let fake = walk.messages().nth(208).unwrap().payload.start;
    for word in walk.hints() {
        with_word(word, fake);
    }
}

/// Golden queues of every generation of headers.
const HEADERS: [&str; 4] = [
    "java-5.27ea11/f_rc_test4_daily",
    "java-5.27ea11/e_wt_fieldless_binary",
    "java-5.22.28/metadata",
    "v4",
];

#[test]
fn a_bit_of_the_first_document_changes_nothing_that_is_read_or_is_refused() {
    let scratch = Scratch::new();
    for name in HEADERS {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden").join(name);
        let golden = Golden::open(&dir).unwrap();
        let copy = scratch.with(&[]);
        golden.copy_to(&copy);
        let file = golden.files.iter().position(|(name, _)| is_roll_file(name)).unwrap();
        let data = &golden.files[file].1;
        for position in 4..4 + usize::from(u16::from_le_bytes([data[0], data[1]])) {
            for bit in 0..8 {
                println!("{name}: {position}.{bit}"); // shown when it fails
                golden.flip(&copy, file, position, bit);
            }
        }
    }
}

#[test]
fn an_append_to_a_file_whose_header_lacks_a_word_leaves_the_first_word_alone() {
    let (sample, scratch) = (sample(), Scratch::new());
    let name = sample.file.windows(9).position(|bytes| bytes == b"lastIndex").unwrap();
    let mut file = sample.file.clone();
    file[name] ^= 1;
    let dir = scratch.with(&[(FILE, &file), (TABLE, &sample.table)]);
    reading::append(&dir, NOW_MS, b"never written").unwrap_err();
    assert!(std::fs::read(dir.join(FILE)).unwrap() == file);
}
