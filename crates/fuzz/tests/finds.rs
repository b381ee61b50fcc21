//! What fuzzing and flipped bits found, by name.

#![allow(clippy::unwrap_used)] // to panic is to report a find

use quire_fuzz::model::Walk;
use quire_fuzz::sample::sample;
use quire_fuzz::targets;

/// The sample's file with a word changed, which must read as the sample all the same.
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
