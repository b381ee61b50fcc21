//! Decimal numbers: an unscaled integer and the count of its digits after the point, as Java's
//! `BigDecimal` has them.
//!
//! ```text
//! 1 scale:int8  length:int8  unscaled     where both fit
//! 2 scale:int32 length:int32 unscaled     otherwise
//! 2 scale:int32 unscaled                  as the original's writer stores it: see `legacy`
//! ```

use quire_wire::out::Out;

use super::field::{FieldError, Result};
use super::unpack::Fields;

const FIELD: &str = "decimal";
const SHORT: u8 = 1;
const LONG: u8 = 2;

/// A decimal number: `unscaled * 10^-scale`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decimal<'a> {
    /// The integer: two's complement, the highest byte first, at least one.
    pub unscaled: &'a [u8],
    /// Digits after the point; negative for trailing zeros before it.
    pub scale: i32,
}

impl<'a> Decimal<'a> {
    /// Appends its bytes.
    pub fn pack(self, out: &mut Out) -> Result<()> {
        let length = super::pack::length_of(FIELD, self.unscaled)?;
        if let (Ok(scale), Ok(short)) = (i8::try_from(self.scale), i8::try_from(length)) {
            out.extend_from_slice(&[SHORT, scale.cast_unsigned(), short.cast_unsigned()]);
        } else {
            out.push(LONG);
            out.extend_from_slice(&self.scale.to_le_bytes());
            out.extend_from_slice(&length.to_le_bytes());
        }
        out.extend_from_slice(self.unscaled);
        Ok(())
    }

    /// Reads one from `fields`. With `legacy` the second form has no length and ends with the
    /// message: the original's writer omits the length, and its own reader cannot read that.
    pub fn unpack(fields: &mut Fields<'a>, legacy: bool) -> Result<Self> {
        let position = fields.position();
        let (scale, unscaled) = match fields.take::<1>(FIELD)? {
            [SHORT] => {
                let [scale, length] = fields.take::<2>(FIELD)?;
                (i32::from(scale.cast_signed()), unscaled(fields, length.cast_signed().into())?)
            }
            [LONG] => {
                let scale = i32::from_le_bytes(fields.take(FIELD)?);
                let bytes = if legacy {
                    unscaled(fields, i64::try_from(fields.remaining()).unwrap_or(i64::MAX))?
                } else {
                    let length = i32::from_le_bytes(fields.take(FIELD)?);
                    unscaled(fields, length.into())?
                };
                (scale, bytes)
            }
            [found] => {
                let (found, expected) = (found.to_string(), "1 or 2");
                return Err(FieldError::Unexpected { field: FIELD, position, found, expected });
            }
        };
        Ok(Self { unscaled, scale })
    }
}

fn unscaled<'a>(fields: &mut Fields<'a>, length: i64) -> Result<&'a [u8]> {
    let position = fields.position();
    match u64::try_from(length) {
        Ok(length) if length > 0 => fields.take_many(FIELD, length),
        _ => Err(FieldError::Unexpected {
            field: FIELD,
            position,
            found: format!("length {length}"),
            expected: "at least 1 byte (legacy=True reads the original's form without a length)",
        }),
    }
}

/// Converts two's complement with the lowest byte first to the stored form of a big integer: the
/// highest byte first, and no redundant bytes.
#[must_use]
pub fn shortest(little_endian: &[u8]) -> Vec<u8> {
    let mut bytes: Vec<u8> = little_endian.iter().rev().copied().collect();
    let is_spare = |pair: &[u8]| match pair[0] {
        0 => pair[1] < 0x80,
        0xFF => pair[1] >= 0x80,
        _ => false,
    };
    let spare = bytes.windows(2).take_while(|pair| is_spare(pair)).count();
    bytes.drain(..spare);
    if bytes.is_empty() { vec![0] } else { bytes }
}

/// The value of an integer; None if it has more than 16 bytes.
#[must_use]
pub fn small(unscaled: &[u8]) -> Option<i128> {
    let sign = if unscaled.first()? & 0x80 == 0 { 0 } else { 0xFF };
    let mut bytes = [sign; 16];
    bytes.get_mut(..unscaled.len())?.copy_from_slice(unscaled);
    bytes[..unscaled.len()].reverse();
    Some(i128::from_le_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packed(unscaled: i128, scale: i32) -> Vec<u8> {
        let mut out = Out::new();
        let unscaled = shortest(&unscaled.to_le_bytes());
        Decimal { unscaled: &unscaled, scale }.pack(&mut out).unwrap();
        out.finish().unwrap()
    }

    #[test]
    fn the_short_form_is_the_originals() {
        let expected = [1, 6, 5, 0xFD, 0x20, 0x23, 0xE3, 0xCC];
        assert_eq!(packed(-12_345_678_900, 6), expected);
        assert_eq!(packed(0, 0), [1, 0, 1, 0]);
        assert_eq!(packed(128, -128), [1, 0x80, 2, 0, 128]);
    }

    #[test]
    fn both_forms_come_back() {
        for unscaled in [0, 1, -1, 127, 128, -128, -129, i128::MAX, i128::MIN] {
            for scale in [0, 127, 128, -128, -129, i32::MAX, i32::MIN] {
                let bytes = packed(unscaled, scale);
                let mut fields = Fields::new(&bytes);
                let found = Decimal::unpack(&mut fields, false).unwrap();
                assert_eq!((small(found.unscaled), found.scale), (Some(unscaled), scale));
                assert_eq!(fields.remaining(), 0);
            }
        }
        let long = [1; 200];
        let mut out = Out::new();
        Decimal { unscaled: &long, scale: 3 }.pack(&mut out).unwrap();
        let out = out.finish().unwrap();
        assert_eq!(out[..9], [2, 3, 0, 0, 0, 200, 0, 0, 0]);
        let found = Decimal::unpack(&mut Fields::new(&out), false).unwrap();
        assert_eq!((found.unscaled, small(found.unscaled)), (&long[..], None));
    }

    #[test]
    fn the_originals_second_form_is_read_when_asked_for() {
        let bytes = [2, 0xC8, 0, 0, 0, 0x2A];
        assert!(Decimal::unpack(&mut Fields::new(&bytes), false).is_err());
        let found = Decimal::unpack(&mut Fields::new(&bytes), true).unwrap();
        assert_eq!((small(found.unscaled), found.scale), (Some(42), 200));
    }

    #[test]
    fn no_bytes_are_believed() {
        for bytes in [&[][..], &[0, 1], &[3, 1], &[1], &[1, 0], &[1, 0, 0], &[1, 0, 0xFF, 1]] {
            assert!(Decimal::unpack(&mut Fields::new(bytes), false).is_err(), "{bytes:?}");
            assert!(Decimal::unpack(&mut Fields::new(bytes), true).is_err(), "{bytes:?}");
        }
        let huge = [2, 0, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0x7F, 1];
        assert!(Decimal::unpack(&mut Fields::new(&huge), false).is_err());
    }
}
