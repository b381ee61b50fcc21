//! Messages of a `FIELDLESS_BINARY` queue: values in order, without field names.
//! Event names are kept (`docs/format.md` §8).

use crate::error::Result;
use crate::out::Out;
use crate::reader::{self, Name, Reader, Shape, Token};
use crate::writer;
use crate::writer::{close_block, open_block, put_type_prefix};

/// The message without its field names.
pub fn without_names(message: &[u8]) -> Result<Vec<u8>> {
    let mut out = Out::new();
    out.reserve(message.len());
    content(&mut out, message, &mut Reader::new(message), 0)?;
    out.finish()
}

fn content(out: &mut Out, message: &[u8], cursor: &mut Reader<'_>, depth: usize) -> Result<()> {
    while let Some(code) = cursor.peek() {
        if reader::is_name(code) {
            let start = cursor.offset();
            match cursor.name()? {
                Some(Name::Event(_)) => out.extend_from_slice(&message[start..cursor.offset()]),
                // A method id: Java keeps it.
                Some(Name::Number(_)) if depth == 0 => {
                    out.extend_from_slice(&message[start..cursor.offset()]);
                }
                Some(Name::Object) => {
                    writer::put_object_key(out);
                    value(out, message, cursor, depth)?;
                }
                _ => {}
            }
        }
        value(out, message, cursor, depth)?;
    }
    Ok(())
}

fn value(out: &mut Out, message: &[u8], cursor: &mut Reader<'_>, depth: usize) -> Result<()> {
    cursor.peek();
    let start = cursor.offset();
    match cursor.value()? {
        Token::TypePrefix(name) => {
            put_type_prefix(out, &String::from_utf8_lossy(name));
            value(out, message, cursor, reader::deeper(depth, start)?)?;
        }
        Token::Block(mut block) if matches!(block.shape(), Shape::Map | Shape::List) => {
            let open = open_block(out);
            content(out, message, &mut block, reader::deeper(depth, start)?)?;
            close_block(out, open);
        }
        _ => out.extend_from_slice(&message[start..cursor.offset()]),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codes::INT64;

    #[test]
    fn field_names_go_and_event_names_stay() {
        let message = b"\xB9\x03say\x82\x08\0\0\0\xC1a\xA1\x05\xC1b\xE1x";
        assert_eq!(without_names(message).unwrap(), b"\xB9\x03say\x82\x04\0\0\0\xA1\x05\xE1x");
        assert_eq!(without_names(b"\xBA\x07\xE1a").unwrap(), b"\xBA\x07\xE1a");
        assert_eq!(without_names(b"\xC1a\xA7\x05\0\0\0\0\0\0\0").unwrap()[0], INT64);
    }
}
