//! Messages that are stored as their difference from an earlier one, the base (`docs/format.md`
//! §1.14). The wire types `DELTA_BINARY` and `DEFAULT_ZERO_BINARY` store messages so.

use std::sync::OnceLock;

use quire_wire::WireError;

pub use super::fields::LONGEST;
use super::fields::{self, Fields, damaged};
use super::numbers::{Number, number};

/// A base precedes its message by at most this many indexes.
pub const FARTHEST: i64 = 63;
/// Shorter messages are not bases: the reference to one would take as much.
pub const SHORTEST: usize = 24;
/// A resumed copy of fewer bytes than this saves nothing.
const SAME_MIN: usize = 3;
/// The same, if bytes before it were inserted or left out.
const MOVED_MIN: usize = 4;
/// At most this many inserted or left-out bytes are searched for.
const MOVED_MOST: usize = 8;
/// The token of a step: how many bytes are copied, how many are new, and whether the position in
/// the base shifts.
const COPIED_MASK: u8 = 0x0f;
const NEW_MASK: u8 = 0x07;
const NEW_SHIFT: u32 = 4;
const MOVED: u8 = 0x80;

/// The kind of difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Bytes: `DELTA_BINARY`.
    Delta,
    /// Values of fields: `DEFAULT_ZERO_BINARY`.
    DefaultZero,
}

impl Kind {
    /// The kind for messages of a queue of this wire type.
    #[must_use]
    pub fn of_wire_type(name: &str) -> Option<Self> {
        match name {
            "DELTA_BINARY" => Some(Self::Delta),
            "DEFAULT_ZERO_BINARY" => Some(Self::DefaultZero),
            _ => None,
        }
    }
}

/// A message against which others are stored.
#[derive(Debug)]
pub struct Base {
    bytes: Vec<u8>,
    sum: u32,
    fields: OnceLock<Option<Fields>>,
}

impl Base {
    /// The base of these bytes.
    #[must_use]
    pub fn new(bytes: Vec<u8>) -> Self {
        Self { sum: crc32fast::hash(&bytes), bytes, fields: OnceLock::new() }
    }

    /// The CRC-32 of the message, which distinguishes it from others.
    #[must_use]
    pub const fn sum(&self) -> u32 {
        self.sum
    }

    /// The message.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    fn fields(&self) -> Option<&Fields> {
        self.fields.get_or_init(|| Fields::of(&self.bytes)).as_ref()
    }
}

/// A message to be stored as its difference from one of several bases.
pub struct Message<'a> {
    kind: Kind,
    bytes: &'a [u8],
    fields: Option<Fields>,
}

impl<'a> Message<'a> {
    #[must_use]
    pub fn new(kind: Kind, bytes: &'a [u8]) -> Self {
        let fields = if kind == Kind::DefaultZero { Fields::of(bytes) } else { None };
        Self { kind, bytes, fields }
    }

    /// How much of a base equals the message: the greater the better, 0 if it is of no use.
    #[must_use]
    pub fn likeness(&self, base: &Base) -> usize {
        match self.kind {
            Kind::Delta => 1 + same(self.bytes, &base.bytes),
            Kind::DefaultZero => match (&self.fields, base.fields()) {
                (Some(fields), Some(of_base))
                    if fields.have_names_of(self.bytes, of_base, &base.bytes) =>
                {
                    1
                }
                _ => 0,
            },
        }
    }

    /// Puts the difference; false if it is as long as the message.
    pub fn put(&self, base: &Base, out: &mut Vec<u8>) -> bool {
        let start = out.len();
        match (self.kind, &self.fields, base.fields.get()) {
            (Kind::Delta, ..) => put_delta(out, &base.bytes, self.bytes),
            (Kind::DefaultZero, Some(fields), Some(Some(of_base))) => {
                fields::put(out, (self.bytes, fields), (&base.bytes, of_base));
                out.len() - start < self.bytes.len()
            }
            _ => false,
        }
    }
}

/// A stored difference.
#[derive(Clone, Copy, Debug)]
pub struct Difference<'a> {
    pub kind: Kind,
    /// How many indexes before it the base is.
    pub distance: u8,
    /// The CRC-32 of the base.
    pub sum: u32,
    pub body: &'a [u8],
}

impl Difference<'_> {
    /// Restores the message from its base.
    pub fn restored(&self, base: &Base) -> Result<Vec<u8>, WireError> {
        match self.kind {
            Kind::Delta => of_delta(&base.bytes, self.body),
            Kind::DefaultZero => {
                let fields = base.fields().ok_or_else(|| damaged("its base has no fields"))?;
                fields::get(&base.bytes, fields, self.body)
            }
        }
    }
}

fn put_number(out: &mut Vec<u8>, value: usize) {
    out.extend_from_slice(Number::of(value).bytes());
}

/// The length of the common prefix.
fn same(one: &[u8], other: &[u8]) -> usize {
    one.iter().zip(other).take_while(|(one, other)| one == other).count()
}

fn starts_alike(one: &[u8], other: &[u8], count: usize) -> bool {
    one.len() >= count && other.len() >= count && one[..count] == other[..count]
}

/// Puts the bytes that differ; false if these are as many as the message has.
fn put_delta(out: &mut Vec<u8>, base: &[u8], message: &[u8]) -> bool {
    let start = out.len();
    put_number(out, message.len());
    let (mut at, mut from) = (0, 0);
    loop {
        let copied = same(&message[at..], &base[from..]);
        (at, from) = (at + copied, from + copied);
        if at == message.len() {
            return out.len() - start < message.len(); // the last copied length is implied
        }
        let (new, left_out) = next_alike(&message[at..], &base[from..]);
        put_step(out, copied, &message[at..at + new], left_out);
        (at, from) = (at + new, (from + left_out).min(base.len()));
        if out.len() - start >= message.len() {
            return false;
        }
    }
}

/// How many new bytes come before both are alike again, and how many of the base are left out for
/// them.
fn next_alike(message: &[u8], base: &[u8]) -> (usize, usize) {
    for new in 0..message.len() {
        let (message, base) = (&message[new..], base.get(new..).unwrap_or_default());
        if starts_alike(message, base, SAME_MIN.min(message.len())) && new > 0 {
            return (new, new);
        }
        for moved in 1..=MOVED_MOST {
            if starts_alike(message, base.get(moved..).unwrap_or_default(), MOVED_MIN) {
                return (new, new + moved);
            }
            if starts_alike(message.get(moved..).unwrap_or_default(), base, MOVED_MIN) {
                return (new + moved, new);
            }
        }
    }
    (message.len(), message.len())
}

fn put_step(out: &mut Vec<u8>, copied: usize, new: &[u8], left_out: usize) {
    let has_moved = left_out != new.len();
    let low = |count: usize, mask: u8| u8::try_from(count).map_or(mask, |it| it.min(mask));
    let (few, short) = (low(copied, COPIED_MASK), low(new.len(), NEW_MASK));
    out.push(few | short << NEW_SHIFT | if has_moved { MOVED } else { 0 });
    if few == COPIED_MASK {
        put_number(out, copied - usize::from(few));
    }
    if short == NEW_MASK {
        put_number(out, new.len() - usize::from(short));
    }
    if has_moved {
        // Never zero: odd numbers are bytes left out, even ones bytes inserted.
        let (more, fewer) =
            (left_out.saturating_sub(new.len()), new.len().saturating_sub(left_out));
        put_number(out, if more > 0 { 2 * more - 1 } else { 2 * fewer - 2 });
    }
    out.extend_from_slice(new);
}

fn of_delta(base: &[u8], body: &[u8]) -> Result<Vec<u8>, WireError> {
    let early = || damaged("it ends early");
    let (length, mut rest) = number(body).ok_or_else(early)?;
    if length > LONGEST || length > base.len() + body.len() {
        return Err(damaged("it is too long").with("length", length));
    }
    let (mut out, mut from) = (Vec::with_capacity(length), 0_usize);
    while let Some((token, after)) = rest.split_first() {
        rest = after;
        let mut counted = |low: u8, mask: u8| {
            if low < mask {
                return Some(usize::from(low));
            }
            let (more, after) = number(rest)?;
            rest = after;
            more.checked_add(usize::from(low))
        };
        let copied = counted(token & COPIED_MASK, COPIED_MASK).ok_or_else(early)?;
        let new = counted(token >> NEW_SHIFT & NEW_MASK, NEW_MASK).ok_or_else(early)?;
        let left_out = if token & MOVED == 0 { new } else { counted_moved(&mut rest, new)? };
        let (bytes, after) = rest.split_at_checked(new).ok_or_else(early)?;
        rest = after;
        put_copy(&mut out, base, &mut from, copied)?;
        out.extend_from_slice(bytes);
        from = from.saturating_add(left_out).min(base.len());
        if out.len() > length {
            return Err(damaged("it is longer than it says").with("length", length));
        }
    }
    let left = length - out.len();
    put_copy(&mut out, base, &mut from, left)?;
    Ok(out)
}

/// How many bytes of the base are left out for `new` ones, if the numbers differ.
fn counted_moved(rest: &mut &[u8], new: usize) -> Result<usize, WireError> {
    let (moved, after) = number(rest).ok_or_else(|| damaged("it ends early"))?;
    *rest = after;
    let by = moved / 2 + 1;
    let left_out = if moved % 2 == 1 { new.checked_add(by) } else { new.checked_sub(by) };
    left_out.ok_or_else(|| damaged("it leaves out a negative number of bytes"))
}

fn put_copy(
    out: &mut Vec<u8>,
    base: &[u8],
    from: &mut usize,
    count: usize,
) -> Result<(), WireError> {
    let end = from.checked_add(count).filter(|end| *end <= base.len());
    let end = end.ok_or_else(|| damaged("its base is too short"))?;
    if out.len() + count > LONGEST {
        return Err(damaged("it is too long").with("length", out.len() + count));
    }
    out.extend_from_slice(&base[*from..end]);
    *from = end;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn comes_back(kind: Kind, base: &[u8], message: &[u8]) -> Option<usize> {
        let base = Base::new(base.to_vec());
        let (given, mut body) = (Message::new(kind, message), Vec::new());
        if given.likeness(&base) == 0 || !given.put(&base, &mut body) {
            return None;
        }
        let sum = base.sum();
        let stored = Difference { kind, distance: 1, sum, body: &body };
        assert_eq!(stored.restored(&base).unwrap(), message, "{kind:?}");
        Some(body.len())
    }

    #[test]
    fn a_delta_has_what_is_new() {
        let base = b"symbol=EURUSD price=1.08423 size=1000000 venue=XLON";
        let length = |message: &[u8]| comes_back(Kind::Delta, base, message);
        assert_eq!(length(base), Some(1));
        assert_eq!(length(b"symbol=EURUSD price=1.08427 size=1000000 venue=XLON"), Some(4));
        assert_eq!(length(b"symbol=EURUSD price=1.08423 size=50 venue=XLON"), Some(5));
        assert_eq!(length(b"symbol=EURUSD price=1.08423 size=1000000 venue=XLON!"), Some(4));
        assert_eq!(length(b"something that is not at all like it"), None);
        assert_eq!(length(b""), None);
    }

    #[test]
    fn defaults_and_what_the_base_has_take_two_bits() {
        let base = b"\xB9\x05quote\x80\x14\xC1a\xA1\x05\xC1b\xA7\x01\x02\x03\x04\x05\x06\x07\x08\xC1t\xE2hi";
        let same = comes_back(Kind::DefaultZero, base, base);
        assert_eq!(same, Some(1));
        let message = b"\xB9\x05quote\x80\x12\xC1a\xA1\x00\xC1b\xA7\0\0\0\0\0\0\0\0\xC1t\xE0";
        assert_eq!(comes_back(Kind::DefaultZero, base, message), Some(1));
        let message = b"\xB9\x05quote\x80\x14\xC1a\xA1\x06\xC1b\xA7\0\0\0\0\0\0\0\0\xC1t\xE2ho";
        assert_eq!(comes_back(Kind::DefaultZero, base, message), Some(6));
        let message = b"\xB9\x05trade\x80\x14\xC1a\xA1\x06\xC1b\xA7\0\0\0\0\0\0\0\0\xC1t\xE2ho";
        assert_eq!(comes_back(Kind::DefaultZero, base, message), None);
    }

    #[test]
    fn a_difference_of_any_bytes_is_bounded() {
        let base = Base::new(b"\xC1a\xA1\x05\xC1b\x82\x05\0\0\0\xC1c\xE1x\xB1".to_vec());
        for kind in [Kind::Delta, Kind::DefaultZero] {
            for first in 0..=255_u8 {
                for second in 0..=255_u8 {
                    let body = [first, second, 0xff, 0x7f, first];
                    let stored = Difference { kind, distance: 1, sum: 0, body: &body };
                    assert!(stored.restored(&base).map_or(0, |it| it.len()) < 64);
                }
            }
        }
    }
}
