//! Any bytes as what a client of Redis sends to a server.

use quire_wire::message;
use quire_wire::requests::{Entries, Limits, Requests};

use crate::bounded;

const LIMITS: Limits = Limits { size: 4096, words: 64 };
/// The most memory for sizes that requests announce, and an error's text.
const MEMORY: usize = 1 << 16;
/// Limit on the memory per byte: empty words take most, for where each begins and ends.
const PER_BYTE: usize = 64;
const LONGEST: usize = 1 << 16;

type Parsed = (Vec<Vec<Vec<u8>>>, Result<(), String>);

/// The first byte is the length of the pieces in which the others come.
pub fn requests(data: &[u8]) {
    let Some((piece, stream)) = data.split_first() else { return };
    if stream.len() > LONGEST {
        return;
    }
    bounded(MEMORY + PER_BYTE * stream.len(), || {
        let whole = parsed(stream, stream.len().max(1));
        let pieces = parsed(stream, usize::from(*piece).max(1));
        assert_eq!(whole.0, pieces.0, "other requests in pieces");
        assert_eq!(whole.1.is_err(), pieces.1.is_err(), "{:?} {:?}", whole.1, pieces.1);
        if let Err(text) = &whole.1 {
            assert!(!text.is_empty() && text.len() < 200 && !text.contains('\n'), "{text}");
        }
        let mut entries = Entries::default();
        for request in &whole.0 {
            let words: Vec<&[u8]> = request.iter().map(Vec::as_slice).collect();
            entries.take(&words);
        }
        are_maps(&entries);
    });
}

fn parsed(stream: &[u8], piece: usize) -> Parsed {
    let (mut requests, mut found) = (Requests::default(), Vec::new());
    for piece in stream.chunks(piece) {
        let taken = requests.feed(piece, LIMITS, |words| {
            assert!(!words.is_empty() && words.len() <= LIMITS.words);
            found.push(words.iter().map(|it| it.to_vec()).collect());
        });
        if taken.is_err() {
            return (found, taken);
        }
        assert!(requests.pending() <= LIMITS.size + 32, "too much is held");
    }
    (found, Ok(()))
}

/// Expects each message to be one that readers understand.
fn are_maps(entries: &Entries) {
    let data = entries.data.written().unwrap();
    for ends in entries.offsets.windows(2) {
        let content = &data[ends[0] as usize..ends[1] as usize];
        assert!(content.len() <= entries.longest);
        message::check(content).unwrap();
    }
    assert_eq!(entries.offsets.last().map_or(0, |it| *it as usize), data.len());
}
