//! Packing: the bytes of a message's fields, one after the other, without names or types.

use quire_wire::out::Out;

use super::entry::MESSAGE_MAX;
use super::field::{FieldError, Result};

/// Appends ASCII characters and the NUL that ends them.
pub fn string(out: &mut Out, text: &str) -> Result<()> {
    if let Some(other) = text.chars().find(|character| !character.is_ascii()) {
        return Err(FieldError::NotAscii(other));
    }
    if let Some(position) = text.bytes().position(|byte| byte == 0) {
        return Err(FieldError::Nul { field: "string", position });
    }
    out.extend_from_slice(text.as_bytes());
    out.push(0);
    Ok(())
}

/// Appends UTF-16 units, the lowest byte first, and the zero unit that ends them.
pub fn unicode(out: &mut Out, units: &[u8]) -> Result<()> {
    let (units, _) = units.as_chunks::<2>();
    if let Some(position) = units.iter().position(|unit| *unit == [0, 0]) {
        return Err(FieldError::Nul { field: "unicode", position });
    }
    out.extend_from_slice(units.as_flattened());
    out.extend_from_slice(&[0, 0]);
    Ok(())
}

/// Appends a length and bytes, which the original's reader accepts as an array or a big integer.
pub fn counted(out: &mut Out, field: &'static str, bytes: &[u8]) -> Result<()> {
    out.extend_from_slice(&length_of(field, bytes)?.to_le_bytes());
    out.extend_from_slice(bytes);
    Ok(())
}

/// The length of a field's bytes as it is stored.
pub(super) fn length_of(field: &'static str, bytes: &[u8]) -> Result<i32> {
    let too_long = FieldError::TooLong { field, length: bytes.len(), limit: MESSAGE_MAX };
    i32::try_from(bytes.len()).map_err(|_| too_long)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_end_in_a_zero() {
        let mut out = Out::new();
        string(&mut out, "AB").unwrap();
        unicode(&mut out, &[0x2D, 0x4E]).unwrap();
        counted(&mut out, "bytes", &[7]).unwrap();
        assert_eq!(out.written().unwrap(), [b'A', b'B', 0, 0x2D, 0x4E, 0, 0, 1, 0, 0, 0, 7]);
    }

    #[test]
    fn what_would_not_read_back_is_refused_and_leaves_nothing() {
        let mut out = Out::new();
        assert_eq!(string(&mut out, "Aé"), Err(FieldError::NotAscii('é')));
        assert!(string(&mut out, "A\0B").is_err());
        assert!(unicode(&mut out, &[0x41, 0, 0, 0]).is_err());
        assert!(out.is_empty());
    }
}
