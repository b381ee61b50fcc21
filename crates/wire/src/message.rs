//! Whole messages (`docs/format.md` §8).

use std::borrow::Cow;

use crate::codes::{STRING_0, STRING_ANY};
use crate::error::{Result, WireError};
use crate::reader::{self, Name, Reader, Shape, Token};

/// Whether a message begins with a string. Cheaper than an error of [`text`] for others.
#[must_use]
pub fn begins_with_text(message: &[u8]) -> bool {
    matches!(message.first().copied(), Some(STRING_0..=0xFF | STRING_ANY))
}

/// The content of a message that is a single non-null string.
pub fn text(message: &[u8]) -> Result<Cow<'_, str>> {
    let mut cursor = Reader::new(message);
    let code = cursor.peek();
    let at = cursor.offset();
    let found = match code {
        Some(STRING_0..=0xFF | STRING_ANY) => match cursor.value()? {
            Token::Text(bytes) => reader::text(bytes, at)?,
            _ => return Err(WireError::new("the text is null").with("offset", at)),
        },
        code => return Err(WireError::unexpected("a text value", code, at)),
    };
    cursor.end()?;
    Ok(found)
}

/// Reads every token of a message, names with values or plain values; returns their number.
pub fn check(message: &[u8]) -> Result<usize> {
    let mut cursor = Reader::new(message);
    let mut count = 0;
    content(&mut cursor, 0, &mut count)?;
    Ok(count)
}

fn content(cursor: &mut Reader<'_>, depth: usize, count: &mut usize) -> Result<()> {
    while let Some(code) = cursor.peek() {
        if reader::is_name(code) || matches!(cursor.shape(), Shape::Map) {
            match cursor.name()? {
                Some(Name::Object) => value(cursor, depth, count)?,
                Some(_) => {}
                None => break,
            }
        }
        value(cursor, depth, count)?;
    }
    Ok(())
}

fn value(cursor: &mut Reader<'_>, depth: usize, count: &mut usize) -> Result<()> {
    let at = cursor.offset();
    *count += 1;
    match cursor.value()? {
        Token::Text(bytes) => reader::text(bytes, at).map(drop),
        Token::TypePrefix(_) => value(cursor, reader::deeper(depth, at)?, count),
        Token::Block(mut block) => match block.shape() {
            Shape::Map | Shape::List | Shape::Longs => {
                content(&mut block, reader::deeper(depth, at)?, count)
            }
            Shape::Empty | Shape::Blob | Shape::History => Ok(()),
        },
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DEPTH_MAX;
    use crate::out::Out;
    use crate::writer;

    #[test]
    fn what_is_no_text_is_refused_with_its_code() {
        let error = text(&[0xA1, 1]).unwrap_err().to_string();
        assert_eq!(
            error,
            "cannot read the message: expected=a text value found=0xa1 (UINT8) offset=0"
        );
        assert!(text(&[0xE5, b'x']).is_err());
        assert!(text(&[0xB8, 0x80, 0]).is_err());
    }

    #[test]
    fn nesting_has_a_bound() {
        let mut message = vec![0xBB];
        for depth in 0..DEPTH_MAX + 2 {
            assert_eq!(check(&message).is_ok(), depth <= DEPTH_MAX, "{depth}");
            let mut outer = Out::new();
            let block = writer::open_block(&mut outer);
            outer.extend_from_slice(&message);
            writer::close_block(&mut outer, block);
            message = outer.finish().unwrap();
        }
    }

    #[test]
    fn nothing_but_type_prefixes_has_a_bound() {
        let message = [0xB6, 0].repeat(DEPTH_MAX + 1);
        assert!(check(&message).unwrap_err().to_string().contains("nested too deep"));
    }
}
