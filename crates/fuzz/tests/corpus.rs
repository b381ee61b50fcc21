//! Every input of the corpus once more: seeds, and what `make fuzz` found.

#![allow(clippy::unwrap_used)] // to panic is to report a find

use std::path::Path;

use quire_fuzz::{columns, group, indexed, packed, quick_queue, ring, targets, vanilla};

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

/// Some bytes of the seeds that stand for something, replaced by a few others.
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
fn changed_bytes_of_indexed_chronicles_are_no_find() {
    changed_bytes("indexed", indexed::indexed);
}

/// One after the other: memory is counted for the whole process.
#[test]
fn the_corpus_holds_no_find() {
    replay("store", targets::store);
    replay("table", targets::table);
    replay("index", targets::index);
    replay("wire", targets::wire);
    replay("columns", columns::columns);
    replay("wire", columns::columns);
    replay("wire", targets::shown);
    replay("shown", targets::shown);
    replay("text", targets::text);
    replay("quick_queue", quick_queue::quick_queue);
    replay("indexed", indexed::indexed);
    replay("vanilla", vanilla::vanilla);
    replay("group", group::group);
    replay("ring", ring::ring);
    replay("packed", packed::packed_message);
}
