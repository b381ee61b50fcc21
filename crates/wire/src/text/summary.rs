//! A short form of a message, for the `repr` of objects that hold one.

use std::fmt::Write;

use super::json;

/// Limit in characters for text.
const SHOWN_MAX: usize = 100;
/// Limit in bytes for anything else.
const HEX_MAX: usize = 24;
/// Longer messages are not decoded.
const READ_MAX: usize = 1 << 16;
/// Java treats messages whose first byte is below this one as raw bytes.
pub const WIRE_FROM: u8 = 0x80;

/// The message as JSON if it is BinaryWire, as a string if printable, otherwise as hexadecimal.
#[must_use]
pub fn of(message: &[u8]) -> String {
    if message.first().is_some_and(|first| *first >= WIRE_FROM) && message.len() <= READ_MAX {
        let mut shown = String::new();
        if json::put(&mut shown, message).is_ok() {
            return cut(&shown, "");
        }
    }
    if message.iter().take(READ_MAX).all(|byte| matches!(byte, b' '..=b'~')) {
        let shown = &message[..message.len().min(READ_MAX)];
        return cut(&String::from_utf8_lossy(shown).escape_debug().to_string(), "'");
    }
    let mut shown = String::new();
    for (place, byte) in message.iter().take(HEX_MAX).enumerate() {
        let space = if place > 0 { " " } else { "" };
        let _ = write!(shown, "{space}{byte:02x}");
    }
    if message.len() > HEX_MAX {
        let _ = write!(shown, " … {} bytes", message.len());
    }
    shown
}

fn cut(shown: &str, mark: &str) -> String {
    match shown.char_indices().nth(SHOWN_MAX) {
        Some((end, _)) => format!("{mark}{}…", &shown[..end]),
        None => format!("{mark}{shown}{mark}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_told_in_a_few_words() {
        assert_eq!(of(b"\xB9\x03say\xE5hello"), r#"{"say":"hello"}"#);
        assert_eq!(of(b"raw 'bytes'"), r"'raw \'bytes\''");
        assert_eq!(of(&[0, 1, 0xFF]), "00 01 ff");
        assert_eq!(of(&[0x8F; 3]), "null");
        assert_eq!(of(&[0x8B; 1000]), format!("{} … 1000 bytes", ["8b"; 24].join(" ")));
        let long = of(&[b"\xB8\x80\x02".as_slice(), "é".repeat(128).as_bytes()].concat());
        assert_eq!(long, format!("\"{}…", "é".repeat(99)));
        assert_eq!(of(&vec![b'x'; 1 << 20]), format!("'{}…", "x".repeat(100)));
    }
}
