//! Files whose words are changed: each ten bytes of an input give a word and its new value.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

const EDIT: usize = 10;
/// The most edits of an input; further ones are ignored.
const MOST: usize = 24;

/// Changes words of a file in memory; `words` are their positions.
pub fn change(file: &mut [u8], words: &[u64], edits: &[u8]) {
    for edit in edits.as_chunks::<EDIT>().0.iter().take(MOST) {
        let (at, value) = decide(words, edit, |at| load(file, at));
        store(file, at, value);
    }
}

/// Changes words of a file on the disk, one at a time, like a hostile process while others use the
/// file.
pub fn change_at(path: &Path, words: &[u64], edits: &[u8]) {
    let Ok(file) = File::options().read(true).write(true).open(path) else { return };
    for edit in edits.as_chunks::<EDIT>().0.iter().take(MOST) {
        let (at, value) = decide(words, edit, |at| {
            let mut word = [0; 8];
            file.read_exact_at(&mut word, at).map_or(0, |()| u64::from_le_bytes(word))
        });
        // A shorter file is not extended.
        if file.metadata().unwrap().len() >= at + 8 {
            file.write_all_at(&value.to_le_bytes(), at).unwrap();
        }
    }
}

/// Which word changes, and its new value: arbitrary, near the old one, small or great, another
/// word's value, or another state, which both kinds of files keep in the highest bits.
fn decide(words: &[u64], edit: &[u8; EDIT], load: impl Fn(u64) -> u64) -> (u64, u64) {
    let place = |number: u64| words[usize::try_from(number % words.len() as u64).unwrap()];
    let at = place(u64::from(u16::from_le_bytes([edit[0], edit[1]])));
    let raw = u64::from_le_bytes(edit[2..].try_into().unwrap());
    let (old, rest) = (load(at), raw >> 8);
    let value = match raw & 7 {
        0 => rest,
        1 => old ^ (1 << (rest & 63)),
        2 => old.wrapping_add((raw.cast_signed() >> 8).cast_unsigned()),
        3 => u64::MAX - (rest & 0xFF),
        4 => load(place(rest)),
        5 => (rest & 7) << 61 | old << 3 >> 3,
        6 => rest & 0xFFFF,
        _ => 1 << (rest & 63),
    };
    (at, value)
}

/// A word of a file in memory.
#[must_use]
pub fn load(file: &[u8], at: u64) -> u64 {
    let at = usize::try_from(at).unwrap();
    u64::from_le_bytes(file[at..at + 8].try_into().unwrap())
}

/// Stores a word into a file in memory.
pub fn store(file: &mut [u8], at: u64, value: u64) {
    let at = usize::try_from(at).unwrap();
    file[at..at + 8].copy_from_slice(&value.to_le_bytes());
}
