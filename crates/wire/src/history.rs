//! The history of a message (`docs/format.md` §8.8): the messages that led to it, and when each was
//! written and read. It precedes the message's events.
//!
//! Two forms are read: fields (`sources`, `timings`), and packed. Any content after the known part,
//! such as the service name that one Java release writes, is skipped.

use crate::codes::{BYTES_LENGTH16, FIELD_NUMBER, HISTORY_MESSAGE};
use crate::error::{Result, WireError};
use crate::out::Out;
use crate::reader::{self, Name, Reader, Shape, Token};
use crate::writer::put_hex;
use crate::writer::{self, put_compact, put_number, put_stop_bit};

/// The event name of a history.
pub const NAME: &str = "history";
/// The event number of a history that has no name.
pub const ID: i64 = -1;
/// The capacity of Java's array of sources.
pub const SOURCES_MAX: usize = 128;
/// The capacity of Java's array of timings.
pub const TIMINGS_MAX: usize = 2 * SOURCES_MAX;
/// Java reads the counts of the packed form as signed bytes.
const PACKED_MAX: usize = i8::MAX as usize;

/// The history of a message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// For each queue it went through, the source id and the message's index there.
    pub sources: Vec<(i32, i64)>,
    /// Nanoseconds of the machine's monotonic clock, in turn: written, read, and so on.
    pub timings: Vec<i64>,
}

/// The history before a message's events, or None.
pub fn of_message(message: &[u8]) -> Result<Option<History>> {
    let mut cursor = Reader::new(message);
    if !cursor.peek().is_some_and(reader::is_name) {
        return Ok(None);
    }
    // Arbitrary bytes may start like a name.
    let name = cursor.name().unwrap_or_default();
    if name.is_some_and(is_history) { History::read(&mut cursor).map(Some) } else { Ok(None) }
}

/// Whether an event is the history.
#[must_use]
pub fn is_history(name: Name<'_>) -> bool {
    match name {
        Name::Field(name) | Name::Event(name) => name == NAME.as_bytes(),
        Name::Number(number) => number == ID,
        Name::Object => false,
    }
}

impl History {
    /// Reads the event's value.
    pub fn read(cursor: &mut Reader<'_>) -> Result<Self> {
        let mut found = Self::default();
        found.read_into(cursor)?;
        Ok(found)
    }

    /// Like [`History::read`], but reuses the vectors of this history.
    pub fn read_into(&mut self, cursor: &mut Reader<'_>) -> Result<()> {
        self.sources.clear();
        self.timings.clear();
        self.read_value(cursor).map_err(|fault| fault.inside(NAME))
    }

    fn read_value(&mut self, cursor: &mut Reader<'_>) -> Result<()> {
        let at = cursor.offset();
        let Token::Block(mut block) = cursor.value()? else {
            return Err(WireError::unexpected("a block", None, at));
        };
        match block.shape() {
            Shape::History => self
                .read_packed(&mut block)
                .ok_or_else(|| WireError::early("a history ends early", at)),
            _ => self.read_fields(&mut block),
        }
    }

    fn read_packed(&mut self, block: &mut Reader<'_>) -> Option<()> {
        block.code()?;
        let [count] = block.array()?;
        let count = usize::from(count);
        let (ids, indexes) = block.take(count * 12)?.split_at(count * 4);
        let sources = ids.as_chunks().0.iter().zip(indexes.as_chunks().0);
        self.sources.extend(
            sources.map(|(id, index)| (i32::from_le_bytes(*id), i64::from_le_bytes(*index))),
        );
        let [count] = block.array()?;
        let (timings, _) = block.take(usize::from(count) * 8)?.as_chunks();
        self.timings.extend(timings.iter().map(|timing| i64::from_le_bytes(*timing)));
        Some(())
    }

    fn read_fields(&mut self, block: &mut Reader<'_>) -> Result<()> {
        while let Some(name) = block.name()? {
            match name {
                Name::Field(b"sources") | Name::Event(b"sources") => {
                    let mut numbers = Vec::new();
                    read_numbers(block, 2 * SOURCES_MAX, &mut numbers)
                        .map_err(|fault| fault.inside("sources"))?;
                    let (pairs, _) = numbers.as_chunks();
                    let pair = |[id, index]: &[i64; 2]| {
                        let id = i32::try_from(*id).map_err(|_| {
                            WireError::new("source id does not fit in 32 bits").with("found", id)
                        })?;
                        Ok((id, *index))
                    };
                    self.sources = pairs.iter().map(pair).collect::<Result<_>>()?;
                }
                Name::Field(b"timings") | Name::Event(b"timings") => {
                    read_numbers(block, TIMINGS_MAX, &mut self.timings)
                        .map_err(|fault| fault.inside("timings"))?;
                }
                _ => block.skip()?,
            }
        }
        Ok(())
    }

    /// Appends the event of a message written at `now`: packed, or as fields if requested or if it
    /// exceeds the packed form.
    pub fn put(&self, out: &mut Out, now: i64, as_fields: bool) -> Result<()> {
        let (sources, timings) = (self.sources.len(), self.timings.len() + 1);
        if sources > SOURCES_MAX || timings > TIMINGS_MAX {
            return Err(WireError::new("the history is too long")
                .with("sources", sources)
                .with("timings", timings)
                .with("limit", format_args!("{SOURCES_MAX} sources, {TIMINGS_MAX} timings")));
        }
        if as_fields || sources > PACKED_MAX || timings > PACKED_MAX {
            writer::put_event(out, NAME);
            let block = open_short(out);
            self.put_fields(out, now);
            close_short(out, block);
        } else {
            out.push(FIELD_NUMBER);
            put_stop_bit(out, ID);
            let block = open_short(out);
            self.put_packed(out, now);
            close_short(out, block);
        }
        Ok(())
    }

    fn put_packed(&self, out: &mut Out, now: i64) {
        out.extend_from_slice(&[HISTORY_MESSAGE, self.sources.len().to_le_bytes()[0]]);
        for (id, _) in &self.sources {
            out.extend_from_slice(&id.to_le_bytes());
        }
        for (_, index) in &self.sources {
            out.extend_from_slice(&index.to_le_bytes());
        }
        out.push((self.timings.len() + 1).to_le_bytes()[0]);
        for timing in self.timings.iter().chain([&now]) {
            out.extend_from_slice(&timing.to_le_bytes());
        }
    }

    fn put_fields(&self, out: &mut Out, now: i64) {
        writer::put_short_field(out, "sources");
        let list = writer::open_block(out);
        for (id, index) in &self.sources {
            put_compact(out, i64::from(*id));
            put_hex(out, *index);
        }
        writer::close_block(out, list);
        writer::put_short_field(out, "timings");
        let list = writer::open_block(out);
        for timing in self.timings.iter().chain([&now]) {
            put_compact(out, *timing);
        }
        writer::close_block(out, list);
    }
}

/// A list of integers, bounded by the limits of a history.
fn read_numbers(cursor: &mut Reader<'_>, limit: usize, into: &mut Vec<i64>) -> Result<()> {
    let at = cursor.offset();
    let Token::Block(mut list) = cursor.value()? else {
        return Err(WireError::unexpected("a list", None, at));
    };
    while list.peek().is_some() {
        let at = list.offset();
        if into.len() == limit {
            return Err(WireError::new("the history is too long")
                .with("limit", limit)
                .with("offset", at));
        }
        into.push(match list.value()? {
            Token::Int(number, _) => number,
            #[allow(clippy::cast_possible_truncation)] // Java's saturating cast
            Token::Float32(number) => number as i64,
            #[allow(clippy::cast_possible_truncation)]
            Token::Float64(number) => number as i64,
            _ => return Err(WireError::unexpected("an integer", None, at)),
        });
    }
    Ok(())
}

/// A block with a 16-bit length, like that of a history.
fn open_short(out: &mut Out) -> usize {
    put_number(out, BYTES_LENGTH16, [0; 2]);
    out.len()
}

fn close_short(out: &mut Out, start: usize) {
    let length = u16::try_from(out.len() - start).unwrap_or(u16::MAX);
    out.replace_before(start, length.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two messages written by Java, without their events, and the expected histories.
    fn cases() -> [(Vec<u8>, History); 2] {
        let hex = |text: &str| -> Vec<u8> {
            text.as_bytes()
                .chunks(2)
                .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
                .collect()
        };
        let packed = "ba8000811f0086010900000001000000054d000002c05d2a36fe9c9717a8612a36fe9c9717";
        let fields = "b907686973746f7279812b00c7736f757263657382 0b000000a101af02000000db4c0000\
                      c774696d696e677382 06000000a55704a5ae08"
            .replace(' ', "");
        [
            (
                hex(packed),
                History {
                    sources: vec![(9, 0x4d05_0000_0001)],
                    timings: vec![1_700_000_000_000_024_000, 1_700_000_000_000_025_000],
                },
            ),
            (
                hex(&fields),
                History { sources: vec![(1, 0x4cdb_0000_0002)], timings: vec![1111, 2222] },
            ),
        ]
    }

    #[test]
    fn both_forms_of_java_are_read_and_written() {
        for (number, (bytes, expected)) in cases().into_iter().enumerate() {
            assert_eq!(of_message(&bytes).unwrap().as_ref(), Some(&expected));
            let mut out = Out::new();
            let (now, before) = expected.timings.split_last().unwrap();
            let before = History { sources: expected.sources.clone(), timings: before.to_vec() };
            before.put(&mut out, *now, number == 1).unwrap();
            assert_eq!(out, bytes);
        }
    }

    #[test]
    fn a_tail_is_passed_over_in_both_forms() {
        let [(mut packed, expected), _] = cases();
        packed.extend_from_slice(&[0; 8]);
        packed[4] += 8;
        assert_eq!(of_message(&packed).unwrap(), Some(expected));

        let [_, (mut fields, expected)] = cases();
        fields.extend_from_slice(b"\xCBserviceName\xA1\x00");
        fields[10] += 14;
        assert_eq!(of_message(&fields).unwrap(), Some(expected));
    }

    #[test]
    fn a_message_cut_short_is_an_error_and_no_panic() {
        for (bytes, _) in cases() {
            for end in 0..bytes.len() {
                if let Err(fault) = of_message(&bytes[..end]) {
                    assert!(fault.to_string().contains("offset="), "{fault}");
                }
            }
        }
        assert_eq!(of_message(b"\xE5hello").unwrap(), None);
    }

    #[test]
    fn a_long_history_is_written_as_fields_and_a_longer_one_not_at_all() {
        let of = |count: usize| History {
            sources: (0..count).map(|n| (1, n.cast_signed() as i64)).collect(),
            timings: vec![5; count],
        };
        for count in [126, 127, 128] {
            let mut out = Out::new();
            of(count).put(&mut out, 5, false).unwrap();
            assert_eq!(out[0] == FIELD_NUMBER, count < 127, "{count}");
            assert_eq!(of_message(&out).unwrap().unwrap().sources, of(count).sources);
        }
        assert!(of(129).put(&mut Out::new(), 5, false).is_err());
    }
}
