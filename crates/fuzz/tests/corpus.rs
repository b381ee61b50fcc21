//! Every input of the corpus once more: seeds, and what `make fuzz` found.

#![allow(clippy::unwrap_used)] // to panic is to report a find

use std::path::Path;

use quire_fuzz::{columns, targets};

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
}
