//! Interleavings of members of a group, with up to three preemptions each: `RUSTFLAGS="--cfg loom"
//! cargo test --release --test loom_groups`. In ordinary builds this file is empty.
#![cfg(loom)]

use loom::sync::Arc;
use loom::thread;
use quire_kernel::groups::format::layout::Layout;
use quire_kernel::groups::format::word::{Cause, State, Word};
use quire_kernel::groups::protocol::claims::{Claim, Claims, NotClaimed, Range};
use quire_kernel::groups::protocol::leases::Lease;
use quire_kernel::memory::{Cells, Mapping};

const LAYOUT: Layout = Layout { start: 0, frontier: 8, high: 16, claims: 64, count: 3 };
const ONE: u16 = 1;
const TWO: u16 = 2;
const LEASE: Lease = Lease { since_ms: 500, deadline_ms: 1000 };
const LATER: Lease = Lease { since_ms: 1500, deadline_ms: 2000 };

fn model(run: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(run);
}

fn cells() -> Arc<Cells> {
    Arc::new(Cells::new(Mapping::zeroed(64 + 3 * 128)))
}

const fn claims(cells: &Cells) -> Claims<'_> {
    Claims::new(cells, LAYOUT)
}

/// Claims the next message; returns its index, or None if the other member was faster.
fn claim(cells: &Cells, owner: u16) -> Option<(u64, Claim)> {
    let claims = claims(cells);
    let frontier = claims.frontier().unwrap();
    let range = Range { first: frontier.next, count: 1, next: frontier.next + 1, key: 7 };
    match claims.hold(frontier, range, owner, LEASE, &mut 0) {
        Ok((claim, _)) => Some((range.first, claim)),
        Err(NotClaimed::Moved) => None,
        Err(other) => panic!("{other:?}"),
    }
}

/// The messages that are claimed and not acknowledged.
fn pending(cells: &Cells) -> Vec<u64> {
    let in_use = claims(cells).in_use().unwrap();
    let mut found: Vec<u64> =
        in_use.iter().filter(|seen| seen.is_linked).map(|seen| seen.first).collect();
    found.sort_unstable();
    found
}

// Red with: a store in place of the compare-and-swap of the frontier.
#[test]
fn each_message_has_one_owner() {
    model(|| {
        let cells = cells();
        let other = Arc::clone(&cells);
        let other = thread::spawn(move || claim(&other, TWO).map(|(index, _)| index));

        let own = claim(&cells, ONE).map(|(index, _)| index);

        let mut found: Vec<u64> = [own, other.join().unwrap()].into_iter().flatten().collect();
        found.sort_unstable();
        let next = claims(&cells).frontier().unwrap().next;
        assert_eq!(found, (0..next).collect::<Vec<_>>());
        assert_eq!(pending(&cells), found);
    });
}

// Red with: a claim that is prepared again although it is the newest; and with a claim that is
// completed without checking again which is the newest.
#[test]
fn a_claim_that_is_used_again_moves_no_frontier() {
    model(|| {
        let cells = cells();
        let (_, first) = claim(&cells, ONE).unwrap();
        assert_eq!(claims(&cells).acknowledge(&first.key, ONE, 1), 1);
        let other = Arc::clone(&cells);
        let other = thread::spawn(move || claim(&other, TWO).map(|(index, _)| index));

        let next = claims(&cells).frontier().unwrap().next;
        assert!((1..=2).contains(&next), "{next}");
        if let Some((index, own)) = claim(&cells, ONE) {
            assert_eq!(claims(&cells).acknowledge(&own.key, ONE, 1), 1);
            assert!((1..=2).contains(&index), "{index}");
        }

        other.join().unwrap();
        assert!(pending(&cells).len() <= 1);
    });
}

/// A slow member acknowledges while another member takes its claim.
// Red with: an acknowledgement that does not compare the generation.
#[test]
fn a_message_is_acknowledged_or_delivered_again() {
    model(|| {
        let cells = cells();
        let (_, slow) = claim(&cells, ONE).unwrap();
        let other = Arc::clone(&cells);
        let other = thread::spawn(move || {
            let claims = claims(&other);
            let seen = claims.in_use().unwrap().into_iter().next()?;
            claims.take(&seen, TWO, LATER, Cause::TimedOut)
        });

        let acknowledged = claims(&cells).acknowledge(&slow.key, ONE, 1) == 1;

        let taken = other.join().unwrap();
        assert_ne!(acknowledged, taken.is_some());
        if let Some(taken) = taken {
            assert_eq!(taken.counts[0], 1);
            assert_eq!(claims(&cells).acknowledge(&taken.key, TWO, 1), 1);
        }
        assert!(pending(&cells).is_empty());
    });
}

// Red with: a store in place of the compare-and-swap that takes a claim.
#[test]
fn an_offered_claim_is_taken_once() {
    model(|| {
        let cells = cells();
        let (_, own) = claim(&cells, ONE).unwrap();
        assert!(claims(&cells).give_back(&own.key, ONE, Cause::Refused, 0));
        let take = |cells: &Cells, owner| {
            let claims = claims(cells);
            let seen = claims.in_use().unwrap().into_iter().next().unwrap();
            seen.word.state == State::Offered
                && claims.take(&seen, owner, LATER, Cause::Refused).is_some()
        };
        let other = Arc::clone(&cells);
        let other = thread::spawn(move || take(&other, TWO));

        let own = take(&cells, ONE);

        assert_ne!(own, other.join().unwrap());
    });
}

/// A slow member refuses a message with a delay while another member takes it and refuses it with
/// another delay.
// Red with: a stamp that is stored without a compare-and-swap, or before the state is checked.
#[test]
fn the_delay_of_an_offer_is_that_of_its_last_owner() {
    model(|| {
        let cells = cells();
        let (_, slow) = claim(&cells, ONE).unwrap();
        let other = Arc::clone(&cells);
        let other = thread::spawn(move || {
            let claims = claims(&other);
            let seen = claims.in_use().unwrap().into_iter().next()?;
            let cause =
                if seen.word.state == State::Held { Cause::TimedOut } else { Cause::Refused };
            let taken = claims.take(&seen, TWO, LATER, cause)?;
            claims.give_back(&taken.key, TWO, Cause::Closed, 9000).then_some(())
        });

        let is_refused = claims(&cells).give_back(&slow.key, ONE, Cause::Refused, 5000);

        let is_last = other.join().unwrap().is_some();
        assert!(is_refused || is_last);
        let claims = claims(&cells);
        let seen = claims.in_use().unwrap().into_iter().next().unwrap();
        let expected = if is_last { (9000, Cause::Closed) } else { (5000, Cause::Refused) };
        assert_eq!(
            (claims.available_ms(&seen), claims.cause(&seen)),
            (Some(expected.0), expected.1)
        );
    });
}

/// Another process lengthens a lease while its owner renews it.
// Red with: a renewal that loads the former deadline before its loop.
#[test]
fn an_extension_by_another_that_is_reported_is_kept() {
    model(|| {
        let cells = cells();
        let (_, own) = claim(&cells, ONE).unwrap();
        let other = Arc::clone(&cells);
        let other = thread::spawn(move || {
            let claims = claims(&other);
            let seen = claims.in_use().unwrap().into_iter().next()?;
            claims.extend_for_owner(&seen, 9000, || 600)
        });

        assert!(claims(&cells).deliver(&own.key, ONE, 1, LATER).is_some());

        let is_extended = other.join().unwrap() == Some(true);
        let claims = claims(&cells);
        let seen = claims.in_use().unwrap().into_iter().next().unwrap();
        assert!(!is_extended || claims.deadline_ms(&seen) == Some(9000));
    });
}

/// Prepares a claim of the first message, and may link it.
fn die(claims: &Claims<'_>, is_linked: bool) -> (u32, Word) {
    let frontier = claims.frontier().unwrap();
    let range = Range { first: 0, count: 1, next: 1, key: 0 };
    let (number, word) = claims.prepare(ONE, range, State::PreparedToHold, &mut 0).unwrap();
    claims.fill(number, word, range, LEASE);
    if is_linked {
        claims.link(frontier, number, word).unwrap();
    }
    (number, word)
}

/// A member died before or after linking its claim; the next member continues, a third one settles.
// Red with: a frontier that moves on before the newest claim is complete.
#[test]
fn a_dead_members_claim_is_lost_neither_linked_nor_prepared() {
    for is_linked in [false, true] {
        model(move || {
            let cells = cells();
            let found = die(&claims(&cells), is_linked);
            assert_eq!(pending(&cells).len(), usize::from(is_linked));
            let other = Arc::clone(&cells);
            let other = thread::spawn(move || claim(&other, TWO).map(|(index, _)| index));

            claims(&cells).settle(found.0, found.1);

            let other = other.join().unwrap();
            let first = u64::from(is_linked);
            assert_eq!(other, Some(first));
            let expected: Vec<u64> = (0..=first).collect();
            assert_eq!(pending(&cells), expected);
        });
    }
}
