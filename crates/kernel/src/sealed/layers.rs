//! Transformations of a message between caller and file that depend on its index: it may be stored
//! as the difference from an earlier one, and it may be encrypted.

use std::sync::Arc;

use quire_wire::out::Out;

use super::cipher::{Cipher, Encryption, OVERHEAD, Place, Sealing};
use super::difference::{Base, FARTHEST, Kind, LONGEST, Message, SHORTEST};
use super::packed::{self, DEFAULT_ZERO, DELTA, OWN_TYPE};
use super::packing::{self, Compression};
use crate::chronicle::protocol::publish::Payload;
use crate::{Error, Result};

/// An appender uses as bases the last messages that it stored in full, at most this many.
const BASES: usize = 4;
/// A difference shorter than this is not compared with the compressed message.
const SHORT: usize = 64;

/// A queue's transformations of messages that depend on their index.
#[derive(Debug)]
pub struct Layers {
    cipher: Option<Arc<Cipher>>,
    kind: Option<Kind>,
}

impl Layers {
    /// The layers of a queue; None if messages are stored as given.
    #[must_use]
    pub fn new(encryption: &Encryption, kind: Option<Kind>) -> Option<Self> {
        let cipher =
            if let Encryption::By(cipher) = encryption { Some(Arc::clone(cipher)) } else { None };
        (cipher.is_some() || kind.is_some()).then_some(Self { cipher, kind })
    }

    /// Whether messages are stored as differences.
    #[must_use]
    pub const fn has_differences(&self) -> bool {
        self.kind.is_some()
    }

    /// How much longer a message may get in the file.
    #[must_use]
    pub const fn overhead(&self) -> u64 {
        if self.cipher.is_some() { OVERHEAD } else { 0 }
    }

    /// The payload in its stored form, using the buffers of an appender.
    pub fn stored<'b>(
        &self,
        compression: Option<&Compression>,
        end: &impl AtEnd,
        payload: Payload<'b>,
        storing: &'b mut Storing,
    ) -> Result<Payload<'b>> {
        let Storing { sealing, bases, buffers } = storing;
        let place = end.place();
        let shaped = match self.kind {
            Some(kind) if !place.is_metadata => {
                let how = Shaping { kind, compression };
                buffers.shape(how, end, payload, bases)?
            }
            _ => Shape::AsGiven(None),
        };
        let (shaped, base) = match shaped {
            Shape::AsGiven(base) => (payload, base),
            Shape::Compressed(base) => (Payload::new(&buffers.packed), base),
            Shape::Difference => (Payload::new(buffers.out.written()?), None),
        };
        let stored = match &self.cipher {
            None => shaped,
            Some(cipher) => Payload::new(cipher.seal(place, shaped, sealing)?),
        };
        if let Some(base) = base {
            if bases.len() >= BASES {
                bases.remove(0);
            }
            bases.push(Kept::new(base, place, end.position(), stored));
        }
        Ok(stored)
    }
}

/// The end of a file, where a message is about to be stored.
pub trait AtEnd {
    /// The message's place.
    fn place(&self) -> Place;
    /// The position of its header.
    fn position(&self) -> u64;
    /// The CRC-32 of the message of this length at `position` before the end; None if there is
    /// none.
    fn sum_of(&self, position: u64, length: u32) -> Option<u32>;
}

/// An appender's state for storing messages through layers.
#[derive(Default)]
pub struct Storing {
    sealing: Sealing,
    /// Messages that it stored in full, oldest first.
    bases: Vec<Kept>,
    buffers: Buffers,
}

/// A message that this appender stored in full.
struct Kept {
    base: Base,
    cycle: i32,
    index: i64,
    position: u64,
    /// Its length and CRC-32 in the file.
    length: u32,
    sum: u32,
}

impl Kept {
    fn new(base: Base, place: Place, position: u64, stored: Payload<'_>) -> Self {
        let mut sum = crc32fast::Hasher::new();
        sum.update(stored.head);
        sum.update(stored.body);
        let length = u32::try_from(stored.len()).unwrap_or(0);
        let Place { cycle, index, .. } = place;
        Self { base, cycle, index, position, length, sum: sum.finalize() }
    }

    /// By how many indexes it precedes a place; None if that is too far.
    fn distance(&self, place: Place) -> Option<u8> {
        let distance = place.index - self.index;
        let is_near = self.cycle == place.cycle && (1..=FARTHEST).contains(&distance);
        if is_near { u8::try_from(distance).ok() } else { None }
    }

    /// Whether it is still in the file: messages may have been removed since.
    fn is_there(&self, end: &impl AtEnd) -> bool {
        end.sum_of(self.position, self.length) == Some(self.sum)
    }
}

#[derive(Clone, Copy)]
struct Shaping<'a> {
    kind: Kind,
    compression: Option<&'a Compression>,
}

/// How a message is stored; a message stored in full may become a base.
enum Shape {
    AsGiven(Option<Base>),
    Compressed(Option<Base>),
    Difference,
}

#[derive(Default)]
struct Buffers {
    plain: Vec<u8>,
    content: Vec<u8>,
    /// A difference.
    out: Out,
    /// A compressed message.
    packed: Vec<u8>,
}

impl Buffers {
    fn shape(
        &mut self,
        how: Shaping<'_>,
        end: &impl AtEnd,
        payload: Payload<'_>,
        bases: &mut Vec<Kept>,
    ) -> Result<Shape> {
        if self.packed.capacity() > LONGEST {
            self.packed = Vec::new();
        }
        if payload.len() > LONGEST as u64 {
            let is_shorter = self.compress(how.compression, payload)?;
            return Ok(if is_shorter { Shape::Compressed(None) } else { Shape::AsGiven(None) });
        }
        self.plain.clear();
        self.plain.extend_from_slice(payload.head);
        self.plain.extend_from_slice(payload.body);
        self.plain.resize(usize::try_from(payload.len()).unwrap_or(0), 0);
        if packed::is_packed(&self.plain) {
            return Ok(Shape::AsGiven(None)); // wrapped already, as it looks like a stored one
        }
        let place = end.place();
        bases.retain(|kept| kept.distance(place).is_some());
        let is_difference = self.put_difference(how.kind, end, bases)?;
        let is_short = is_difference && self.out.len() < SHORT;
        let is_compressed = !is_short && self.compress(how.compression, payload)?;
        if is_difference && !(is_compressed && self.packed.len() < self.out.len()) {
            return Ok(Shape::Difference);
        }
        let can_be_base = self.plain.len() >= SHORTEST;
        let base = can_be_base.then(|| Base::new(self.plain.clone()));
        Ok(if is_compressed { Shape::Compressed(base) } else { Shape::AsGiven(base) })
    }

    /// Puts the difference from the base that is most like the message; false if that is not
    /// shorter.
    fn put_difference(&mut self, kind: Kind, end: &impl AtEnd, bases: &[Kept]) -> Result<bool> {
        if bases.is_empty() {
            return Ok(false);
        }
        let message = Message::new(kind, &self.plain);
        let likeness = bases.iter().map(|kept| (message.likeness(&kept.base), kept));
        let best = likeness.max_by_key(|(likeness, kept)| (*likeness, kept.index));
        let Some((1.., kept)) = best else { return Ok(false) };
        let Some(distance) = kept.distance(end.place()) else { return Ok(false) };
        self.content.clear();
        if !kept.is_there(end) || !message.put(&kept.base, &mut self.content) {
            return Ok(false);
        }
        let method = match kind {
            Kind::Delta => DELTA,
            Kind::DefaultZero => DEFAULT_ZERO,
        };
        self.out.clear();
        self.out.extend_from_slice(OWN_TYPE);
        let (head, sum) = ([method, distance], kept.base.sum().to_le_bytes());
        packing::put_blob(&mut self.out, &[&head, &sum, &self.content])?;
        Ok(self.out.len() < self.plain.len())
    }

    /// Compresses a message; false if that is not shorter.
    fn compress(&mut self, how: Option<&Compression>, payload: Payload<'_>) -> Result<bool> {
        if how.is_none() {
            return Ok(false);
        }
        let packed = &mut self.packed;
        packing::packed(how, payload, |stored| {
            packed.clear();
            let is_shorter = stored.len() < payload.len();
            if is_shorter {
                let room = stored.body.len();
                packed.try_reserve(room).map_err(|_| Error::OutOfMemory(room))?;
                packed.extend_from_slice(stored.body);
            }
            Ok(is_shorter)
        })
    }
}
