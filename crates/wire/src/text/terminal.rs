//! Characters that a terminal interprets instead of showing: they move its cursor or reorder its
//! text.

use std::fmt::Write;

use super::hex;

/// Unicode's format characters (Cf), and its separators of lines and paragraphs.
const UNSEEN: [(u32, u32); 21] = [
    (0xAD, 0xAD),
    (0x600, 0x605),
    (0x61C, 0x61C),
    (0x6DD, 0x6DD),
    (0x70F, 0x70F),
    (0x890, 0x891),
    (0x8E2, 0x8E2),
    (0x180E, 0x180E),
    (0x200B, 0x200F),
    (0x2028, 0x202E),
    (0x2060, 0x2064),
    (0x2066, 0x206F),
    (0xFEFF, 0xFEFF),
    (0xFFF9, 0xFFFB),
    (0x1_10BD, 0x1_10BD),
    (0x1_10CD, 0x1_10CD),
    (0x1_3430, 0x1_343F),
    (0x1_BCA0, 0x1_BCA3),
    (0x1_D173, 0x1_D17A),
    (0xE_0001, 0xE_0001),
    (0xE_0020, 0xE_007F),
];
/// Format characters that scripts and emoji need.
const JOINERS: [char; 2] = ['\u{200C}', '\u{200D}'];

/// Whether a terminal may show a text as it is: it has no control characters but tabs and line
/// ends.
#[must_use]
pub fn is_plain(text: &str) -> bool {
    let is_plain_ascii = |byte| matches!(byte, b'\t' | b'\n' | b' '..=b'~');
    text.bytes().all(is_plain_ascii) || !text.chars().any(|it| it != '\n' && is_unseen(it))
}

/// Appends a text on one line: control characters, except tabs, become escapes.
pub fn put_line(out: &mut String, text: &str) {
    let mut rest = text;
    while let Some(at) = rest.find(is_unseen) {
        out.push_str(&rest[..at]);
        let Some(unseen) = rest[at..].chars().next() else { break };
        let _ = match unseen {
            '\n' => out.write_str("\\n"),
            '\r' => out.write_str("\\r"),
            _ if u32::from(unseen) < 0x100 => write!(out, "\\x{:02x}", u32::from(unseen)),
            _ if u32::from(unseen) < 0x1_0000 => write!(out, "\\u{:04x}", u32::from(unseen)),
            _ => write!(out, "\\U{:08x}", u32::from(unseen)),
        };
        rest = &rest[at + unseen.len_utf8()..];
    }
    out.push_str(rest);
}

/// Appends bytes on one line as UTF-8; invalid ones also become escapes.
pub fn put_bytes(out: &mut String, bytes: &[u8]) {
    for chunk in bytes.utf8_chunks() {
        put_line(out, chunk.valid());
        for byte in chunk.invalid() {
            out.push_str("\\x");
            hex::put_digits(out, &[*byte]);
        }
    }
}

/// Whether a terminal does not show a character as such; includes line ends, but not tabs.
fn is_unseen(char: char) -> bool {
    if char.is_ascii() {
        return char.is_ascii_control() && char != '\t';
    }
    let code = u32::from(char);
    let is_in = |(first, last): &(u32, u32)| (*first..=*last).contains(&code);
    char.is_control() || (UNSEEN.iter().any(is_in) && !JOINERS.contains(&char))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_become_escapes() {
        let mut out = String::new();
        put_line(&mut out, "\u{1b}[2J\tö€\r\n\u{9b}\u{202e}\u{e0001}👩\u{200d}🚀");
        assert_eq!(out, "\\x1b[2J\tö€\\r\\n\\x9b\\u202e\\U000e0001👩\u{200d}🚀");
        assert!(is_plain(&out));
        assert!(is_plain("a\n\tb"));
        assert!(!is_plain("ö\u{7f}") && !is_plain("\r"));
    }

    #[test]
    fn bytes_that_are_no_text_become_escapes() {
        let mut out = String::new();
        put_bytes(&mut out, b"a\xFF\xC3\xB6\xE2\x82\x00");
        assert_eq!(out, "a\\xffö\\xe2\\x82\\x00");
    }
}
