//! Requests from Redis clients (`docs/remote.md`): RESP arrays of bulk strings, parsed from the
//! pieces in which they arrive; and `XADD` as messages.

use std::fmt::Write as _;
use std::mem;

use crate::out::Out;
use crate::writer::{self, Scalar};

/// The longest number of RESP: 19 digits and a sign.
const NUMBER_MAX: usize = 20;
/// Requests with more are handled individually.
const FIELDS_MAX: usize = 32;
const MESSAGE_MAX: usize = 64 << 10;
const RUN_BYTES: usize = 1 << 20;
const RUN_MAX: usize = 4096;
/// `XADD`, the queue, `*`, and the first field.
const LEAST_WORDS: usize = 5;

/// How large a request may be.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Its length in bytes.
    pub size: usize,
    /// How many words it has.
    pub words: usize,
}

/// The words of a request.
pub type Words<'a> = [&'a [u8]];

/// The parser's state: the incomplete request at the end of the received bytes.
#[derive(Debug, Default)]
pub struct Requests {
    /// The beginning of that request.
    held: Vec<u8>,
    /// The position at which parsing continues.
    at: usize,
    /// How many words are missing; 0 before its head.
    missing: usize,
    /// Where each complete word begins and ends.
    words: Vec<(usize, usize)>,
}

enum Step {
    Request,
    Nothing,
    More,
}

type Refused<T> = Result<T, String>;

impl Requests {
    /// The number of bytes of the incomplete request.
    #[must_use]
    pub const fn pending(&self) -> usize {
        self.held.len()
    }

    /// Takes bytes, and calls `each` with every request that they complete.
    ///
    /// # Errors
    /// The bytes are malformed: later bytes cannot be parsed either.
    pub fn feed(
        &mut self,
        data: &[u8],
        limits: Limits,
        mut each: impl FnMut(&Words<'_>),
    ) -> Refused<()> {
        let mut held = mem::take(&mut self.held);
        let is_held = !held.is_empty();
        if is_held {
            held.try_reserve(data.len()).map_err(|_| "no memory for the request".to_owned())?;
            held.extend_from_slice(data);
        }
        let bytes = if is_held { held.as_slice() } else { data };
        let mut start = 0;
        loop {
            match self.step(bytes, start, limits)? {
                Step::More => break,
                Step::Request => {
                    let found: Vec<_> =
                        self.words.iter().map(|&(from, to)| &bytes[from..to]).collect();
                    each(&found);
                }
                Step::Nothing => {}
            }
            self.words.clear();
            start = self.at;
        }
        self.keep(start);
        if is_held {
            held.drain(..start);
            self.held = held;
        } else {
            self.held.extend_from_slice(&data[start..]);
        }
        Ok(())
    }

    /// Makes positions relative to the beginning of the incomplete request.
    fn keep(&mut self, start: usize) {
        self.at -= start;
        for (from, to) in &mut self.words {
            *from -= start;
            *to -= start;
        }
    }

    /// Continues parsing the request that begins at `start`.
    fn step(&mut self, bytes: &[u8], start: usize, limits: Limits) -> Refused<Step> {
        if self.missing == 0 {
            let Some((count, past)) = head(bytes, start, b'*')? else { return Ok(Step::More) };
            self.at = past;
            match usize::try_from(count) {
                Ok(count) if count > limits.words => {
                    return Err(format!("invalid multibulk length: limit={}", limits.words));
                }
                Ok(count) if count > 0 => self.missing = count,
                _ if count >= -1 => return Ok(Step::Nothing),
                _ => return Err(format!("invalid multibulk length: limit={}", limits.words)),
            }
        }
        while self.missing > 0 {
            let Some((length, from)) = head(bytes, self.at, b'$')? else { break };
            let Ok(length) = usize::try_from(length) else {
                return Err(NO_STRINGS.to_owned());
            };
            if length > limits.size {
                return Err(format!("invalid bulk length: limit={} bytes", limits.size));
            }
            let to = from + length;
            if to - start > limits.size {
                return Err(too_long(limits));
            }
            let Some(end) = bytes.get(to..to + 2) else { break };
            if end != b"\r\n" {
                return Err("expected the end of a bulk string".to_owned());
            }
            self.words.push((from, to));
            self.at = to + 2;
            self.missing -= 1;
        }
        if self.missing == 0 {
            return Ok(Step::Request);
        }
        if bytes.len() - start > limits.size.saturating_add(NUMBER_MAX) {
            return Err(too_long(limits));
        }
        Ok(Step::More)
    }
}

const NO_STRINGS: &str = "expected an array of bulk strings";

fn too_long(limits: Limits) -> String {
    format!("the request is too long: limit={} bytes", limits.size)
}

/// The number after a type byte, and where its line ends; None while the line is incomplete.
fn head(bytes: &[u8], at: usize, kind: u8) -> Refused<Option<(i64, usize)>> {
    let Some(found) = bytes.get(at) else { return Ok(None) };
    if *found != kind {
        return Err(if kind == b'$' { NO_STRINGS.to_owned() } else { unexpected(*found) });
    }
    let line = &bytes[at + 1..bytes.len().min(at + NUMBER_MAX + 3)];
    let length = line.iter().take_while(|byte| byte.is_ascii_digit() || **byte == b'-').count();
    match line.get(length..) {
        Some([] | [b'\r']) if length <= NUMBER_MAX => return Ok(None),
        Some([b'\r', b'\n', ..]) => {}
        _ => return Err("expected a number and the end of the line".to_owned()),
    }
    let text = std::str::from_utf8(&line[..length]).unwrap_or_default();
    match text.parse() {
        Ok(number) => Ok(Some((number, at + 1 + length + 2))),
        Err(_) if kind == b'*' => Err("invalid multibulk length".to_owned()),
        Err(_) => Err("invalid bulk length".to_owned()),
    }
}

fn unexpected(found: u8) -> String {
    let mut text = "expected '*', got '".to_owned();
    let _ = write!(text, "{}'", found.escape_ascii());
    text
}

/// The messages of consecutive `XADD`s to one queue, as a column.
#[derive(Debug, Default)]
pub struct Entries {
    /// The name of the queue.
    pub key: Vec<u8>,
    /// Where each message begins, and where the last ends.
    pub offsets: Vec<u32>,
    /// Their bytes.
    pub data: Out,
    /// The length of the longest.
    pub longest: usize,
}

impl Entries {
    /// The number of messages.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.offsets.len().saturating_sub(1)
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes the message of a request if it is an `XADD` to this queue, or the first one; returns
    /// whether it was taken.
    ///
    /// Only plain requests are taken: not those with options, explicit ids, names that are repeated
    /// or not Latin-1, and very long or very many fields.
    pub fn take(&mut self, words: &Words<'_>) -> bool {
        let [name, key, id, fields @ ..] = words else { return false };
        let is_plain = words.len() >= LEAST_WORDS
            && words.len() % 2 == 1
            && name.eq_ignore_ascii_case(b"XADD")
            && *id == b"*"
            && fields.len() <= 2 * FIELDS_MAX
            && fields.iter().map(|it| it.len()).sum::<usize>() <= MESSAGE_MAX;
        let is_of_this = self.is_empty() || self.key == *key;
        if !is_plain || !is_of_this || self.len() >= RUN_MAX || self.data.len() >= RUN_BYTES {
            return false;
        }
        let start = self.data.len();
        if put_fields(&mut self.data, fields).is_none() {
            self.data.truncate(start);
            return false;
        }
        if self.is_empty() {
            self.key = key.to_vec();
            self.offsets = vec![0];
        }
        let end = self.data.len();
        self.longest = self.longest.max(end - start);
        self.offsets.push(u32::try_from(end).unwrap_or(u32::MAX)); // limited by RUN_BYTES
        true
    }
}

/// Appends a map of texts, or bytes if they are not UTF-8; None if a name is not valid.
fn put_fields(out: &mut Out, fields: &Words<'_>) -> Option<()> {
    for (place, pair) in fields.chunks_exact(2).enumerate() {
        let [name, value] = pair else { return None };
        if fields.iter().step_by(2).take(place).any(|before| before == name) {
            return None;
        }
        writer::put_key(out, std::str::from_utf8(name).ok()?).ok()?;
        match std::str::from_utf8(value) {
            Ok(text) => writer::put_text(out, text),
            Err(_) => writer::put_scalar(out, Scalar::Bytes(value)).ok()?,
        }
    }
    out.written().ok().map(|_| ())
}

/// The ids of consecutive messages, as bulk strings.
#[must_use]
pub fn ids(first: i64, count: usize) -> Out {
    let mut out = Out::with_capacity(64);
    let mut text = String::new();
    for index in (first..).take(count) {
        text.clear();
        let _ = write!(text, "{index}-0");
        let mut head = String::new();
        let _ = write!(head, "${}\r\n", text.len());
        out.extend_from_slice(head.as_bytes());
        out.extend_from_slice(text.as_bytes());
        out.extend_from_slice(b"\r\n");
    }
    out
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { size: 1000, words: 9 };

    fn request(words: &[&[u8]]) -> Vec<u8> {
        let mut found = format!("*{}\r\n", words.len()).into_bytes();
        for word in words {
            found.extend(format!("${}\r\n", word.len()).bytes());
            found.extend_from_slice(word);
            found.extend_from_slice(b"\r\n");
        }
        found
    }

    fn parsed(data: &[u8], piece: usize) -> (Vec<Vec<Vec<u8>>>, Refused<()>) {
        let (mut requests, mut found) = (Requests::default(), Vec::new());
        for piece in data.chunks(piece) {
            let taken = requests.feed(piece, LIMITS, |words| {
                found.push(words.iter().map(|it| it.to_vec()).collect());
            });
            if taken.is_err() {
                return (found, taken);
            }
        }
        (found, Ok(()))
    }

    #[test]
    fn requests_are_the_same_in_whatever_pieces_they_come() {
        let wanted: [&[&[u8]]; 3] = [&[b"PING"], &[b"ECHO", b"*1\r\n$4\r\n"], &[b"", b"\xff\0"]];
        let mut data = Vec::new();
        for words in wanted {
            data.extend(request(words));
            data.extend_from_slice(b"*0\r\n*-1\r\n"); // these ask for nothing
        }
        for piece in 1..=data.len() {
            let (found, result) = parsed(&data, piece);
            assert_eq!(result, Ok(()), "piece={piece}");
            let expected = wanted.map(|it| it.iter().map(|word| word.to_vec()).collect::<Vec<_>>());
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn other_bytes_are_refused_after_the_requests_before_them() {
        let too_many = "*1\r\n$0\r\n\r\n".repeat(2) + "*10\r\n";
        for bad in [
            "+PING\r\n",
            "*-2\r\n",
            "*x\r\n",
            "*1\r\n:5\r\n",
            "*1\r\n$-1\r\n",
            "*1\r\n*1\r\n",
            "*1\r\n$1001\r\n",
            "*99999999999999999999999",
            "*1\r\n$99999999999999999999\r\n",
            "*1\r\n$2\r\nabc\r\n",
            "*1\n$1\n",
            "*--1\r\n",
            "*1\r\n$\r\n\r\n",
            "*\r\n",
            &too_many,
        ] {
            let data = [request(&[b"PING"]).as_slice(), bad.as_bytes()].concat();
            for piece in [1, 7, data.len()] {
                let (found, result) = parsed(&data, piece);
                assert!(result.is_err(), "{bad:?} piece={piece}");
                assert_eq!(found[0], [b"PING"], "{bad:?}");
            }
        }
    }

    #[test]
    fn a_request_is_refused_once_it_is_too_long() {
        let word = vec![b'x'; 300];
        let data = request(&[&word, &word, &word, &word]);
        for piece in [1, 100, data.len()] {
            let (found, result) = parsed(&data, piece);
            assert!(found.is_empty());
            assert_eq!(result, Err("the request is too long: limit=1000 bytes".to_owned()));
        }
    }

    #[test]
    fn plain_entries_of_one_queue_are_taken_together() {
        let mut entries = Entries::default();
        assert!(entries.take(&[b"xadd", b"q", b"*", b"a", b"1", b"b", b"\xff"]));
        assert!(entries.take(&[b"XADD", b"q", b"*", b"a", b"2"]));
        let other: [&Words<'_>; 9] = [
            &[b"XADD", b"p", b"*", b"a", b"2"],
            &[b"XADD", b"q", b"1-0", b"a", b"2"],
            &[b"XADD", b"q", b"NOMKSTREAM", b"*", b"a", b"2"],
            &[b"XADD", b"q", b"*", b"a"],
            &[b"XADD", b"q", b"*"],
            &[b"XLEN", b"q", b"*", b"a", b"2"],
            &[b"XADD", b"q", b"*", b"a", b"1", b"a", b"2"],
            &[b"XADD", b"q", b"*", b"\xff", b"1"],
            &[b"XADD", b"q", b"*", "\u{4e2d}".as_bytes(), b"1"],
        ];
        for words in other {
            assert!(!entries.take(words), "{words:?}");
        }
        let long = vec![b'x'; MESSAGE_MAX];
        assert!(!entries.take(&[b"XADD", b"q", b"*", b"a", &long]));
        assert_eq!((entries.len(), entries.key.as_slice()), (2, b"q".as_slice()));
        assert_eq!(entries.offsets[2] as usize, entries.data.len());
        let mut wanted = Out::new();
        writer::put_key(&mut wanted, "a").unwrap();
        writer::put_text(&mut wanted, "1");
        writer::put_key(&mut wanted, "b").unwrap();
        writer::put_scalar(&mut wanted, Scalar::Bytes(b"\xff")).unwrap();
        assert_eq!(entries.data.written().unwrap()[..wanted.len()], *wanted.written().unwrap());
        assert_eq!(entries.longest, wanted.len());
    }

    #[test]
    fn ids_are_bulk_strings() {
        assert_eq!(ids(9, 2).written().unwrap(), b"$3\r\n9-0\r\n$4\r\n10-0\r\n");
        assert!(ids(9, 0).is_empty());
    }
}
