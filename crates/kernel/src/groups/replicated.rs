//! A group's state as bytes, which a source sends and a sink keeps until it is promoted.
//!
//! The bytes are those of `docs/replication.md`: whether the group has a key, the index of the next
//! message, up to where counts may be lost, the tail records, and the claims.

use std::path::Path;

use super::format::layout::{self, Layout, TAIL_LEVELS, TAILS_PER_LEVEL};
use super::format::word::{COUNTS_PER_WORD, Cause, MESSAGES, State, Word};
use super::group::{BACKLOG_ATTEMPTS, check_name};
use super::protocol::claims::{Claims, Seen};
use super::protocol::file::{self, Found, Part, Replace, Replaced, Shape, SideFile};
use super::protocol::tails::{self, Tail};
use crate::os::interrupt::Signals;
use crate::{Error, Result};

/// The step of the queues that are replicated.
const STEP: u64 = 1;
const TAILS_MAX: u64 = TAIL_LEVELS * TAILS_PER_LEVEL;
const CAUSES: u8 = Cause::Released as u8;

/// How a state is stored.
#[derive(Clone, Copy, Debug)]
pub struct Keeping {
    /// Whether a sink keeps the group for its source, so that no member may join.
    pub is_kept: bool,
    /// Messages before this index may have been delivered by a state whose counts are lost.
    pub known: u64,
    /// The permissions of the file.
    pub file_mode: u32,
}

/// Neighbouring messages, with a bit for each that was delivered and is not acknowledged.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Range {
    first: u64,
    pending: u32,
    key: u64,
    since_ms: u64,
    available_ms: u64,
    cause: u8,
    singly: bool,
    counts: [u8; MESSAGES as usize],
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Snapshot {
    keyed: bool,
    next: u64,
    known: u64,
    tails: Vec<Tail>,
    ranges: Vec<Range>,
}

/// The state of a side file's group, of the messages before an index; None if there is no such
/// file, or it is damaged.
pub fn snapshot(path: &Path, before: u64) -> Result<Option<Vec<u8>>> {
    let Found::Whole(side) = file::open(path, false)? else { return Ok(None) };
    if side.shape.step != STEP {
        return Ok(None);
    }
    let damaged = || Error::corrupt("the side file of a group", path, 0, "damaged", "whole");
    let claims = Claims::new(&side.cells, Layout::FILE);
    let mut attempts = 0;
    loop {
        let frontier = claims.frontier().ok_or_else(damaged)?;
        let in_use = claims.in_use().ok_or_else(damaged)?;
        attempts += 1;
        // Retry if the frontier moved: claims linked in the meantime may be missing.
        if claims.frontier() == Some(frontier) || attempts == BACKLOG_ATTEMPTS {
            let next = frontier.next.min(before);
            return Ok(Some(snapshot_of(&side, &claims, &in_use, next).encode()));
        }
    }
}

/// Whether a sink keeps the side file at `path` for its source.
pub fn is_kept(path: &Path) -> Result<bool> {
    Ok(match file::open(path, false)? {
        Found::Whole(side) => file::is_kept(&side.cells),
        Found::Missing | Found::Damaged(_) => false,
    })
}

/// Stores a group's state as its side file, unless members use the present one.
pub fn store(
    dir: &Path,
    name: &str,
    state: &[u8],
    keeping: Keeping,
    signals: Signals<'_>,
) -> Result<Replaced> {
    check_name(name)?;
    let path = dir.join(format!("{name}{}", layout::SUFFIX));
    let mut found = Snapshot::parse(state)
        .ok_or_else(|| Error::Invalid(format!("no state of a group: group={name:?}")))?;
    found.known = found.known.max(keeping.known);
    let parts = found.parts(keeping.is_kept);
    file::replace_with(&path, &parts, keeping.file_mode, Replace::Unused, signals)
}

/// Keeps the group of a side file for a future source: its members are expelled, and messages they
/// acknowledged before stay acknowledged. Returns whether there was a group to keep.
pub fn take(path: &Path, file_mode: u32, signals: Signals<'_>) -> Result<bool> {
    let parts = || {
        let state = snapshot(path, u64::MAX)?;
        Ok(state.as_deref().and_then(Snapshot::parse).map(|found| found.parts(true)))
    };
    Ok(file::replace_by(path, file_mode, signals, parts)? == Replaced::Done)
}

/// Removes the side file of a group that a sink kept for its source; false if there is none.
pub fn remove(path: &Path, signals: Signals<'_>) -> Result<bool> {
    if !is_kept(path)? {
        return Ok(false);
    }
    Ok(file::remove(path, signals)? == Some(Replaced::Done))
}

fn snapshot_of(side: &SideFile, claims: &Claims<'_>, in_use: &[Seen], next: u64) -> Snapshot {
    let linked = in_use.iter().filter(|seen| seen.is_linked && seen.word.pending != 0);
    let mut ranges: Vec<Range> = linked.filter_map(|seen| range_of(claims, seen, next)).collect();
    ranges.sort_unstable_by_key(|range| range.first);
    let mut tails = tails::all(&side.cells);
    tails.retain(|tail| tail.index < next);
    Snapshot {
        keyed: side.shape.keyed,
        next,
        known: side.cells.load_acquire(layout::KNOWN_AT),
        tails,
        ranges,
    }
}

/// The part of a claim before an index. If a member holds it, that member is lost with the source.
fn range_of(claims: &Claims<'_>, seen: &Seen, next: u64) -> Option<Range> {
    let room = u32::try_from(next.saturating_sub(seen.first)).unwrap_or(u32::MAX).min(u32::BITS);
    let pending = u32::MAX.checked_shr(u32::BITS - room).unwrap_or(0) & seen.word.pending;
    if pending == 0 {
        return None;
    }
    let is_offered = matches!(seen.word.state, State::Offered | State::PreparedToOffer);
    let cause = if is_offered { claims.cause(seen) } else { Cause::Died };
    Some(Range {
        first: seen.first,
        pending,
        key: seen.key,
        since_ms: claims.since_ms(seen).unwrap_or(0),
        available_ms: claims.available_ms(seen).filter(|_| is_offered).unwrap_or(0),
        cause: cause as u8,
        singly: seen.word.singly || !is_offered,
        counts: claims.counts_of(seen),
    })
}

impl Snapshot {
    fn encode(&self) -> Vec<u8> {
        let mut out = vec![u8::from(self.keyed)];
        out.extend(self.next.to_le_bytes());
        out.extend(self.known.to_le_bytes());
        out.push(u8::try_from(self.tails.len()).unwrap_or(u8::MAX));
        for tail in &self.tails {
            out.extend(tail.index.to_le_bytes());
            out.extend(tail.hash.to_le_bytes());
        }
        out.extend(u32::try_from(self.ranges.len()).unwrap_or(u32::MAX).to_le_bytes());
        for range in &self.ranges {
            range.encode(&mut out);
        }
        out
    }

    fn parse(state: &[u8]) -> Option<Self> {
        let mut from = Reader(state);
        let (keyed, next, known) = (from.flag()?, from.index()?, from.index()?);
        let count = u64::from(from.byte()?);
        if count > TAILS_MAX {
            return None;
        }
        let tail = |from: &mut Reader<'_>| Some(Tail { index: from.index()?, hash: from.word()? });
        let tails = (0..count).map(|_| tail(&mut from)).collect::<Option<Vec<_>>>()?;
        let count = u32::from_le_bytes(from.take()?);
        if count > layout::CLAIMS {
            return None;
        }
        let ranges = (0..count).map(|_| Range::parse(&mut from)).collect::<Option<Vec<_>>>()?;
        let are_before = ranges.iter().all(|range| range.end() <= next);
        let are_sorted = ranges.windows(2).all(|two| two[0].first < two[1].first);
        let is_whole = from.0.is_empty() && are_before && are_sorted;
        is_whole.then_some(Self { keyed, next, known, tails, ranges })
    }

    /// The bytes of a side file of this state, with its claims offered to all members.
    fn parts(&self, is_kept: bool) -> Vec<Part> {
        let Self { keyed, next, known, .. } = *self;
        let mut parts = vec![(0, file::header(Shape { keyed, step: STEP, start: next, known }))];
        parts.push((layout::KEPT_AT, u64::from(is_kept).to_le_bytes().to_vec()));
        parts.push((Layout::FILE.high, (self.ranges.len() as u64).to_le_bytes().to_vec()));
        for (number, tail) in (0..).zip(&self.tails) {
            let at = layout::tail_at(number / TAILS_PER_LEVEL, number % TAILS_PER_LEVEL);
            let sum = layout::tail_sum(tail.index, tail.hash);
            parts.push((at, words(&[sum, tail.index, tail.hash])));
        }
        let claims = (0..).zip(&self.ranges);
        parts.extend(claims.map(|(number, range)| (Layout::FILE.state(number), range.claim())));
        parts
    }
}

impl Range {
    const fn end(&self) -> u64 {
        self.first.saturating_add((u32::BITS - self.pending.leading_zeros()) as u64)
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.extend(self.first.to_le_bytes());
        out.extend(self.pending.to_le_bytes());
        out.extend(words(&[self.key, self.since_ms, self.available_ms]));
        out.extend([self.cause, u8::from(self.singly)]);
        let pending = (0..MESSAGES).filter(|place| self.pending >> place & 1 == 1);
        out.extend(pending.map(|place| self.counts[place as usize]));
    }

    fn parse(from: &mut Reader<'_>) -> Option<Self> {
        let (first, pending) = (from.index()?, u32::from_le_bytes(from.take()?));
        let (key, since_ms, available_ms) = (from.word()?, from.word()?, from.word()?);
        let (cause, singly) = (from.byte()?, from.flag()?);
        let mut counts = [0; MESSAGES as usize];
        for place in (0..MESSAGES).filter(|place| pending >> place & 1 == 1) {
            counts[place as usize] = from.byte()?;
        }
        let is_valid = pending != 0 && cause <= CAUSES;
        let found = Self { first, pending, key, since_ms, available_ms, cause, singly, counts };
        is_valid.then_some(found)
    }

    /// The bytes of a claim that is offered to all members.
    fn claim(&self) -> Vec<u8> {
        let Self { pending, singly, .. } = *self;
        let word = Word { state: State::Offered, singly, generation: 1, owner: 0, pending };
        let counts = self.counts.chunks(COUNTS_PER_WORD as usize).map(|counts| {
            let packed = counts.iter().rev().fold(0, |all, count| all << 8 | u64::from(*count));
            word.counts(packed)
        });
        let stamps = [self.since_ms, self.available_ms, u64::from(self.cause)];
        let [since, available, cause] = stamps.map(|value| word.stamped(value));
        let mut fields =
            vec![word.encode(), 0, self.first, self.end(), self.key, since, available, cause];
        fields.extend(counts);
        words(&fields)
    }
}

fn words(values: &[u64]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// The unread bytes of a state.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (found, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*found)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take::<1>().map(|[byte]| byte)
    }

    fn flag(&mut self) -> Option<bool> {
        self.byte().filter(|byte| *byte <= 1).map(|byte| byte == 1)
    }

    fn word(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }

    fn index(&mut self) -> Option<u64> {
        self.word().filter(|index| i64::try_from(*index).is_ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::groups::group::{Group, backlog};
    use crate::groups::protocol::file::Shape;
    use crate::os::detached::Detached;
    use std::sync::Arc;

    const KEEPING: Keeping = Keeping { is_kept: true, known: 0, file_mode: 0o600 };

    fn joined(dir: &Path) -> super::super::member::Member {
        let shape = Shape { keyed: false, step: 1, start: 0, known: 0 };
        let group = Arc::new(Group::new(dir, "billing", shape, 0o600).unwrap());
        group.join("c1", 1000, 0, &mut Detached::here()).unwrap()
    }

    #[test]
    fn a_state_is_that_of_the_group() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("billing.qgroup");
        let member = joined(dir.path());
        let indexes: Vec<u64> = (0..40).collect();
        let may_wait = Detached::here();
        let mut working = member.lock(&may_wait).unwrap();
        let frontier = working.frontier().unwrap();
        let held = working.hold(frontier, &indexes).unwrap();
        working.acknowledge(&[(held[0].key, 0b1011)]).unwrap();
        drop(working);
        let whole = snapshot(&file, 1000).unwrap().unwrap();
        let found = Snapshot::parse(&whole).unwrap();
        assert_eq!(found.next, 40);
        assert_eq!(found.ranges[0].pending, !0b1011);
        assert_eq!(found.ranges[1].end(), 40);
        let part = Snapshot::parse(&snapshot(&file, 10).unwrap().unwrap()).unwrap();
        assert_eq!((part.next, part.ranges.len(), part.ranges[0].pending), (10, 1, 0b11_1111_0100));
        member.close(&may_wait);

        let copy = tempfile::tempdir().unwrap();
        let path = copy.path().join("billing.qgroup");
        let mut may_wait = Detached::here();
        let mut put = |keeping| {
            store(copy.path(), "billing", &whole, keeping, Signals::Handled(&mut may_wait)).unwrap()
        };
        assert_eq!(put(KEEPING), Replaced::Done);
        assert!(is_kept(&path).unwrap());
        let kept = backlog(&path).unwrap().unwrap();
        assert_eq!((kept.next, kept.unacknowledged, kept.lowest), (40, 37, 2));
        let again = Snapshot::parse(&snapshot(&path, 1000).unwrap().unwrap()).unwrap();
        assert_eq!(again, found);
        assert_eq!(put(Keeping { is_kept: false, known: 41, ..KEEPING }), Replaced::Done);
        let taken = joined(copy.path()).lock(&may_wait).unwrap().take(100).unwrap();
        assert_eq!(taken.iter().map(|claim| claim.pending.count_ones()).sum::<u32>(), 37);
        assert!(taken.iter().all(|claim| claim.singly && claim.cause == Cause::Died));
    }

    #[test]
    fn what_is_no_state_is_refused() {
        let range = Range {
            first: 5,
            pending: 1,
            key: 0,
            since_ms: 0,
            available_ms: 0,
            cause: 0,
            singly: false,
            counts: [0; MESSAGES as usize],
        };
        let tails = vec![Tail { index: 4, hash: 9 }];
        let whole = Snapshot { keyed: true, next: 6, known: 0, tails, ranges: vec![range] };
        let bytes = whole.encode();
        assert_eq!(Snapshot::parse(&bytes), Some(whole.clone()));
        for length in 0..bytes.len() {
            assert_eq!(Snapshot::parse(&bytes[..length]), None);
        }
        let past = Snapshot { next: 5, ..whole };
        assert_eq!(Snapshot::parse(&past.encode()), None);
    }
}
