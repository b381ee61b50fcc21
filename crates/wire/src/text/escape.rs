//! Strings in text documents: when and how they are quoted (`docs/format.md` §8.9).

use crate::error::{Result, WireError};

/// The quotes around a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Quotes {
    None,
    Single,
    Double,
}

const PLAIN: u8 = 0;
/// A byte that requires double quotes.
const QUOTED: u8 = 1;
/// A byte that requires them at the start of a string.
const QUOTED_FIRST: u8 = 2;
const DOUBLE_MARK: u8 = 4;
const SINGLE_MARK: u8 = 8;

/// What each byte requires of the string that contains it.
const CLASS: [u8; 256] = {
    let mut class = [PLAIN; 256];
    let mut at = 0;
    while at < 256 {
        if at < 0x20 || at > 0x7F {
            class[at] = QUOTED;
        }
        at += 1;
    }
    let (anywhere, first) = (b"?,#:{}[]|>\\^", b"?%*&@`0123456789+- ',#:{}[]|>!\\");
    at = 0;
    while at < anywhere.len() {
        class[anywhere[at] as usize] |= QUOTED;
        at += 1;
    }
    at = 0;
    while at < first.len() {
        class[first[at] as usize] |= QUOTED_FIRST;
        at += 1;
    }
    class[b'"' as usize] |= DOUBLE_MARK;
    class[b'\'' as usize] |= SINGLE_MARK;
    class
};

/// Appends an encoded string, quoted if necessary. Java has no four-byte sequences. A dump does not
/// quote a string that merely looks quoted; `read_back` does.
#[inline]
pub fn put_text(out: &mut String, text: &[u8], read_back: bool) -> Result<()> {
    let quotes = quotes(text, read_back);
    if quotes == Quotes::None {
        // Only ASCII gets here.
        out.push_str(std::str::from_utf8(text).unwrap_or_default());
        return Ok(());
    }
    let mark = if quotes == Quotes::Single { '\'' } else { '"' };
    out.push(mark);
    let mut rest = text;
    while let Some(&first) = rest.first() {
        let (unit, length) = match first {
            0..0x80 => (u16::from(first), 1),
            _ => unit(rest).ok_or_else(|| not_a_text(text))?,
        };
        put_unit(out, unit, mark);
        rest = &rest[length..];
    }
    out.push(mark);
    Ok(())
}

/// Appends a string, quoted if necessary.
pub fn put_str(out: &mut String, text: &str) {
    match quotes(text.as_bytes(), false) {
        Quotes::None => out.push_str(text),
        Quotes::Single => put_units(out, text.encode_utf16(), '\''),
        Quotes::Double => put_units(out, text.encode_utf16(), '"'),
    }
}

/// Appends bytes as a Latin-1 string.
pub fn put_latin1(out: &mut String, text: &[u8], read_back: bool) {
    let mark = match quotes(text, read_back) {
        Quotes::None => return out.push_str(std::str::from_utf8(text).unwrap_or_default()),
        Quotes::Single => '\'',
        Quotes::Double => '"',
    };
    put_units(out, text.iter().map(|byte| u16::from(*byte)), mark);
}

fn put_units(out: &mut String, units: impl Iterator<Item = u16>, mark: char) {
    out.push(mark);
    for unit in units {
        put_unit(out, unit, mark);
    }
    out.push(mark);
}

#[inline]
fn quotes(text: &[u8], read_back: bool) -> Quotes {
    let (Some(first), Some(last)) = (text.first(), text.last()) else { return Quotes::Double };
    if CLASS[usize::from(*first)] & (QUOTED_FIRST | QUOTED) != 0 || *last == b' ' {
        return Quotes::Double;
    }
    let seen = text.iter().fold(PLAIN, |seen, byte| seen | CLASS[usize::from(*byte)]);
    if seen & (QUOTED | DOUBLE_MARK) == 0 {
        return Quotes::None;
    }
    if seen & QUOTED != 0 || text.windows(2).any(|pair| pair == b"\"'") {
        return Quotes::Double;
    }
    match seen & SINGLE_MARK {
        0 => Quotes::Single,
        _ if read_back && *first == b'"' => Quotes::Double,
        _ => Quotes::None,
    }
}

/// Appends a UTF-16 unit, escaped if necessary.
fn put_unit(out: &mut String, unit: u16, mark: char) {
    let short = match unit {
        0 => '0',
        7 => 'a',
        8 => 'b',
        9 => 't',
        0xA => 'n',
        0xB => 'v',
        0xC => 'f',
        0xD => 'r',
        0x1B => 'e',
        0x5C => '\\',
        0x85 => 'N',
        0xA0 => '_',
        0x2028 => 'L',
        0x2029 => 'P',
        0x20..=0x7F => {
            let character = char::from(unit.to_le_bytes()[0]);
            if character == mark {
                out.push('\\');
            }
            return out.push(character);
        }
        _ => {
            const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
            out.push_str(if unit > 0xFF { "\\u" } else { "\\x" });
            for place in (0..if unit > 0xFF { 4 } else { 2 }).rev() {
                out.push(char::from(DIGITS[usize::from(unit >> (4 * place) & 0xF)]));
            }
            return;
        }
    };
    out.push('\\');
    out.push(short);
}

/// Decodes the next non-ASCII UTF-16 unit of CESU-8; returns it and its length.
fn unit(bytes: &[u8]) -> Option<(u16, usize)> {
    let tail = |at: usize| {
        let byte = *bytes.get(at)?;
        (byte & 0xC0 == 0x80).then_some(u16::from(byte & 0x3F))
    };
    match bytes[0] {
        lead @ 0xC0..0xE0 => Some((u16::from(lead & 0x1F) << 6 | tail(1)?, 2)),
        lead @ 0xE0..0xF0 => Some((u16::from(lead & 0xF) << 12 | tail(1)? << 6 | tail(2)?, 3)),
        _ => None,
    }
}

#[cold]
fn not_a_text(text: &[u8]) -> WireError {
    WireError::new("not a text")
        .with("expected", "UTF-8 with surrogates of three bytes")
        .with("found", format_args!("{:02x?}", &text[..text.len().min(32)]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_quoted_where_java_quotes_them() {
        for (text, shown) in [
            ("", "\"\""),
            ("a b", "a b"),
            ("true", "true"),
            ("~", "~"),
            (" a", "\" a\""),
            ("a ", "\"a \""),
            ("1", "\"1\""),
            ("a:b", "\"a:b\""),
            ("a'b", "a'b"),
            ("'ab", "\"'ab\""),
            ("a\"b", "'a\"b'"),
            ("a\"b'c", "a\"b'c"),
            ("a\"'b", "\"a\\\"'b\""),
            ("a\nb\t\u{1}\\", "\"a\\nb\\t\\x01\\\\\""),
            ("\u{e9}\u{85}\u{a0}\u{2028}\u{20ac}", "\"\\xE9\\N\\_\\L\\u20AC\""),
        ] {
            let mut out = String::new();
            put_text(&mut out, text.as_bytes(), false).unwrap();
            assert_eq!(out, shown, "{text:?}");
        }
        let mut out = String::new();
        put_text(&mut out, b"\"it's\"", false).unwrap();
        put_text(&mut out, b"\"it's\"", true).unwrap();
        assert_eq!(out, "\"it's\"\"\\\"it's\\\"\"");
    }

    #[test]
    fn bytes_that_are_no_text_are_refused() {
        for bytes in [&[0xFF][..], &[0xC3], &[0xE2, 0x82], &[0xF0, 0x9F, 0x98, 0x80]] {
            assert!(put_text(&mut String::new(), bytes, false).is_err(), "{bytes:02x?}");
        }
    }
}
