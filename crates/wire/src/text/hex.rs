//! Bytes in hexadecimal: their digits alone, and Java's dump of bytes that are not a message, with
//! 16 per line and their characters.

use std::fmt::Write;

const WIDTH: u64 = 16;
const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// Appends two digits for each byte.
pub fn put_digits(out: &mut String, bytes: &[u8]) {
    for byte in bytes {
        for half in [byte >> 4, byte & 0xF] {
            out.push(char::from(DIGITS[usize::from(half)]));
        }
    }
}

/// Dumps the bytes of a file from `position` on. Lines equal to the previous one are omitted.
pub fn put(out: &mut String, bytes: &[u8], position: u64) {
    let end = position + bytes.len() as u64;
    let (mut last, mut has_gap) = (None, false);
    for line in (position / WIDTH * WIDTH..end).step_by(16) {
        let byte = |place: u64| {
            let at = (line + place).checked_sub(position)?;
            bytes.get(usize::try_from(at).ok()?).copied()
        };
        let is_last = line + WIDTH >= end;
        if !is_last && line > position && last == bytes_of(bytes, line - position) {
            has_gap = true;
            continue;
        }
        last = line.checked_sub(position).and_then(|at| bytes_of(bytes, at));
        if std::mem::take(&mut has_gap) {
            out.push_str("........\n");
        }
        put_line(out, line, byte);
    }
}

fn bytes_of(bytes: &[u8], at: u64) -> Option<&[u8]> {
    let at = usize::try_from(at).ok()?;
    bytes.get(at..at + 16)
}

fn put_line(out: &mut String, line: u64, byte: impl Fn(u64) -> Option<u8>) {
    let _ = write!(out, "{line:08x}");
    for place in 0..WIDTH {
        if place == WIDTH / 2 {
            out.push(' ');
        }
        match byte(place) {
            Some(byte) => {
                let _ = write!(out, " {byte:02x}");
            }
            None => out.push_str("   "),
        }
    }
    out.push(' ');
    for place in 0..WIDTH {
        if place == WIDTH / 2 {
            out.push(' ');
        }
        out.push(match byte(place) {
            None => ' ',
            Some(byte @ b' '..=b'~') => char::from(byte),
            Some(_) => '\u{b7}',
        });
    }
    out.push('\n');
}
