//! The fields of a message, for `DEFAULT_ZERO_BINARY` (`docs/format.md` §1.14): the bytes between
//! values are those of the base, and a value that is a default, or equal to the base's, takes two
//! bits.

use std::ops::Range;

use quire_wire::WireError;
use quire_wire::codes::{
    BYTES_LENGTH8, BYTES_LENGTH16, FALSE, FLOAT_STOP_2, FLOAT_STOP_6, FLOAT32, FLOAT64, INT64_0X,
    SET_LOW_INT16, STRING_0, STRING_ANY, TRUE, UINT8,
};
use quire_wire::reader::{self, Reader, Shape, Token};

/// The longest message that is a base, or is stored as a difference.
pub const LONGEST: usize = 1 << 20;
/// The most parts that a message is split into.
const PARTS_MAX: usize = 1 << 14;
/// The shortest zero.
const ZERO: [u8; 2] = [UINT8, 0];
const VALUES_PER_BYTE: usize = 4;

/// The two-bit codes of a value.
const IN_FULL: u8 = 0;
const AS_IN_BASE: u8 = 1;
const DEFAULT: u8 = 2;
const SHORTEST_ZERO: u8 = 3;

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    /// Names, names of types, and padding.
    Between(Range<usize>),
    Value(Range<usize>),
    /// The start of a block, whose code determines the size of its length.
    Open(u8),
    Close,
}

/// The parts of a message.
#[derive(Clone, Debug)]
pub struct Fields {
    parts: Vec<Part>,
    values: usize,
}

impl Fields {
    /// The fields of a message; None if it does not consist of names and values, or has too many.
    #[must_use]
    pub fn of(message: &[u8]) -> Option<Self> {
        let mut fields = Self { parts: Vec::new(), values: 0 };
        fields.take_apart(&mut Reader::new(message), 0)?;
        (fields.values > 0).then_some(fields)
    }

    fn take_apart(&mut self, reader: &mut Reader<'_>, depth: usize) -> Option<()> {
        let end = reader.offset() + reader.rest().len();
        let mut start = reader.offset();
        while let Some(code) = reader.peek() {
            if reader::is_name(code) {
                reader.name().ok()?;
                continue; // with the bytes before the value
            }
            let at = reader.offset();
            match reader.value().ok()? {
                Token::TypePrefix(_) => continue,
                Token::Block(mut block) if matches!(block.shape(), Shape::Map | Shape::List) => {
                    self.add(Part::Between(start..at))?;
                    self.add(Part::Open(code))?;
                    self.take_apart(&mut block, reader::deeper(depth, at).ok()?)?;
                    self.add(Part::Close)?;
                }
                _ => {
                    self.add(Part::Between(start..at))?;
                    self.add(Part::Value(at..reader.offset()))?;
                    self.values += 1;
                }
            }
            start = reader.offset();
        }
        self.add(Part::Between(start..end))?;
        (reader.offset() == end).then_some(())
    }

    fn add(&mut self, part: Part) -> Option<()> {
        if part != Part::Between(0..0) && !matches!(&part, Part::Between(it) if it.is_empty()) {
            self.parts.push(part);
        }
        (self.parts.len() <= PARTS_MAX).then_some(())
    }

    /// Whether another message is the same except for values.
    #[must_use]
    pub fn have_names_of(&self, message: &[u8], other: &Self, other_message: &[u8]) -> bool {
        let is_alike = |(one, other): (&Part, &Part)| match (one, other) {
            (Part::Between(one), Part::Between(other)) => {
                message[one.clone()] == other_message[other.clone()]
            }
            (Part::Value(_), Part::Value(_)) => true,
            (one, other) => one == other,
        };
        self.parts.len() == other.parts.len() && self.parts.iter().zip(&other.parts).all(is_alike)
    }

    fn value_ranges(&self) -> impl Iterator<Item = &Range<usize>> {
        self.parts.iter().filter_map(|part| match part {
            Part::Value(range) => Some(range),
            _ => None,
        })
    }
}

/// Puts the values of a message that has the names of its base: two bits for each, lowest first,
/// then the values stored in full.
pub fn put(out: &mut Vec<u8>, message: (&[u8], &Fields), base: (&[u8], &Fields)) {
    let start = out.len();
    out.resize(start + message.1.values.div_ceil(VALUES_PER_BYTE), 0);
    let pairs = message.1.value_ranges().zip(base.1.value_ranges());
    for (number, (value, of_base)) in pairs.enumerate() {
        let (value, of_base) = (&message.0[value.clone()], &base.0[of_base.clone()]);
        let how = if value == of_base {
            AS_IN_BASE
        } else if value == ZERO {
            SHORTEST_ZERO
        } else if is_default(value, of_base) {
            DEFAULT
        } else {
            out.extend_from_slice(value);
            IN_FULL
        };
        out[start + number / VALUES_PER_BYTE] |= how << (2 * (number % VALUES_PER_BYTE));
    }
}

/// Whether a value is the default of another value's kind.
fn is_default(value: &[u8], other: &[u8]) -> bool {
    default_of(other).is_some_and(|(code, zeros)| {
        value.len() == zeros + 1 && value[0] == code && value[1..].iter().all(|byte| *byte == 0)
    })
}

/// The default of a value's kind, as its code and a number of zeros.
fn default_of(value: &[u8]) -> Option<(u8, usize)> {
    Some(match *value.first()? {
        0..BYTES_LENGTH8 => (0, 0),
        code @ (UINT8..=SET_LOW_INT16 | INT64_0X | FLOAT32 | FLOAT64) => (code, value.len() - 1),
        code @ FLOAT_STOP_2..=FLOAT_STOP_6 => (code, 1),
        FALSE | TRUE => (FALSE, 0),
        STRING_ANY | STRING_0..=0xff => (STRING_0, 0),
        _ => return None,
    })
}

pub fn damaged(why: &'static str) -> WireError {
    WireError::new("a message cannot be restored from its difference to another").with("error", why)
}

/// Restores the message with these values.
pub fn get(base: &[u8], fields: &Fields, body: &[u8]) -> Result<Vec<u8>, WireError> {
    let bits = fields.values.div_ceil(VALUES_PER_BYTE);
    let (bits, mut rest) = body.split_at_checked(bits).ok_or_else(|| damaged("it ends early"))?;
    let (mut out, mut open, mut number) = (Vec::with_capacity(base.len()), Vec::new(), 0_usize);
    for part in &fields.parts {
        match part {
            Part::Between(range) => out.extend_from_slice(&base[range.clone()]),
            Part::Value(range) => {
                let how = bits[number / VALUES_PER_BYTE] >> (2 * (number % VALUES_PER_BYTE)) & 3;
                number += 1;
                put_value(&mut out, how, &base[range.clone()], &mut rest)?;
            }
            Part::Open(code) => {
                out.push(*code);
                open.push(out.len());
                out.resize(out.len() + width(*code), 0);
            }
            Part::Close => {
                let at = open.pop().unwrap_or(0);
                close(&mut out, at)?;
            }
        }
        if out.len() > LONGEST {
            return Err(damaged("it is too long").with("length", out.len()));
        }
    }
    if rest.is_empty() { Ok(out) } else { Err(damaged("bytes are left over")) }
}

fn put_value(
    out: &mut Vec<u8>,
    how: u8,
    of_base: &[u8],
    rest: &mut &[u8],
) -> Result<(), WireError> {
    match how {
        AS_IN_BASE => out.extend_from_slice(of_base),
        SHORTEST_ZERO => out.extend_from_slice(&ZERO),
        DEFAULT => {
            let default = default_of(of_base);
            let (code, zeros) = default.ok_or_else(|| damaged("a value has no default"))?;
            out.push(code);
            out.resize(out.len() + zeros, 0);
        }
        _ => {
            let mut reader = Reader::new(rest);
            if matches!(reader.value()?, Token::TypePrefix(_)) {
                return Err(damaged("a value is the name of a type"));
            }
            let (value, after) = rest.split_at(reader.offset());
            out.extend_from_slice(value);
            *rest = after;
        }
    }
    Ok(())
}

/// The size of a block's length, in bytes.
const fn width(code: u8) -> usize {
    match code {
        BYTES_LENGTH8 => 1,
        BYTES_LENGTH16 => 2,
        _ => 4,
    }
}

/// Puts the length of a block, whose code precedes it.
fn close(out: &mut [u8], at: usize) -> Result<(), WireError> {
    let width = out.get(at.wrapping_sub(1)).map_or(0, |code| width(*code));
    let length = u32::try_from(out.len() - at - width).unwrap_or(u32::MAX).to_le_bytes();
    if length[width..].iter().any(|byte| *byte != 0) {
        return Err(damaged("a block is too long"));
    }
    out[at..at + width].copy_from_slice(&length[..width]);
    Ok(())
}
