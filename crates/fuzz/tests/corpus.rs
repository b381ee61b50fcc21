//! Replays every input of the corpus: seeds, and finds of `make fuzz`.

#![allow(clippy::unwrap_used)] // to panic is to report a find

use std::path::Path;

use quire_fuzz::{
    columns, group, indexed, packed, quick_queue, requests, ring, targets, threads, vanilla,
};

fn replay(name: &str, target: fn(&[u8])) {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(name);
    let mut count = 0;
    for entry in std::fs::read_dir(corpus).unwrap() {
        let path = entry.unwrap().path();
        let data = std::fs::read(&path).unwrap();
        println!("{}", path.display()); // shown when it fails
        target(&data);
        count += 1;
    }
    assert!(count > 0, "no corpus of {name}");
}

/// Replaces some meaningful bytes of the seeds by a few others.
fn changed_bytes(name: &str, target: fn(&[u8])) {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(name);
    for entry in std::fs::read_dir(corpus).unwrap() {
        let path = entry.unwrap().path();
        let seed = std::fs::read(&path).unwrap();
        for place in (0..seed.len()).filter(|place| place % 256 < 64).step_by(3) {
            for value in [0, 0xFF, seed[place] ^ 0x10] {
                let mut data = seed.clone();
                data[place] = value;
                println!("{} byte {place} is {value:#x}", path.display());
                target(&data);
            }
        }
    }
}

#[test]
fn changed_bytes_of_quick_queues_are_no_find() {
    changed_bytes("quick_queue", quick_queue::quick_queue);
}

#[test]
fn changed_bytes_of_compressed_messages_are_no_find() {
    changed_bytes("packed", packed::packed_message);
}

#[test]
fn changed_bytes_of_requests_are_no_find() {
    changed_bytes("requests", requests::requests);
}

#[test]
fn changed_bytes_of_indexed_chronicles_are_no_find() {
    changed_bytes("indexed", indexed::indexed);
}

/// A test for each target, so that they run in parallel.
macro_rules! replayed {
    ($($test:ident: $corpus:literal => $target:path;)+) => {
        $(#[test]
        fn $test() {
            replay($corpus, $target);
        })+
    };
}

mod the_corpus_holds_no_find {
    use super::*;

    replayed! {
        of_store: "store" => targets::store;
        of_table: "table" => targets::table;
        of_index: "index" => targets::index;
        of_wire: "wire" => targets::wire;
        of_columns: "columns" => columns::columns;
        of_wire_in_columns: "wire" => columns::columns;
        of_wire_that_is_shown: "wire" => targets::shown;
        of_shown: "shown" => targets::shown;
        of_text: "text" => targets::text;
        of_quick_queue: "quick_queue" => quick_queue::quick_queue;
        of_indexed: "indexed" => indexed::indexed;
        of_vanilla: "vanilla" => vanilla::vanilla;
        of_group: "group" => group::group;
        of_ring: "ring" => ring::ring;
        of_packed: "packed" => packed::packed_message;
        of_requests: "requests" => requests::requests;
        of_threads: "threads" => threads::threads;
    }
}
