//! Acknowledged and pending messages of a group, as seen and changed from outside its members.

use std::path::Path;

use super::format::layout::Layout;
use super::format::word::{Cause, MESSAGES, State};
use super::group::{now_ms, stored_name, wall_ms};
use super::protocol::claims::{Claims, Seen};
use super::protocol::file::{self, Found, SideFile};
use super::protocol::leases::Offer;
use super::protocol::liveness;
use crate::{Error, Result};

/// Attempts to change a claim that its owner keeps changing.
const ATTEMPTS: usize = 1000;

/// A message that was delivered and is not acknowledged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivered {
    pub index: u64,
    /// How often it was delivered, at most 255.
    pub count: u8,
    /// The name and pid of the living member that holds it; None if it awaits delivery.
    pub owner: Option<(String, u32)>,
    /// When it was last delivered, in epoch milliseconds; None if by an earlier version of Quire.
    pub since_ms: Option<u64>,
    /// Time until it times out; 0 if it has, None if no member holds it or its timeout has not
    /// started.
    pub left_ms: Option<u64>,
    /// Time until it may be delivered again.
    pub delay_ms: u64,
    /// Why it is to be delivered again.
    pub cause: Cause,
}

/// The outcome of changing the claim of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Changed {
    /// All messages of the claim were changed: this many.
    Done(u32),
    /// The message is not claimed, or no member holds it.
    NotClaimed,
    /// It has timed out, or may have.
    TooLate,
}

/// The messages of a side file's group that were delivered and are not acknowledged, by their
/// index.
pub fn delivered(path: &Path) -> Result<Vec<Delivered>> {
    let Found::Whole(side) = file::open(path, false)? else { return Ok(Vec::new()) };
    let claims = Claims::new(&side.cells, Layout::FILE);
    let alive = liveness::members(path, &side.file)?;
    let mut found = Vec::new();
    for seen in linked(path, &claims)? {
        let is_held = seen.word.state != State::Offered && alive.contains(&seen.word.owner);
        let owner = is_held.then(|| stored_name(&side, seen.word.owner));
        let (now_ms, wall_ms) = (now_ms(), wall_ms());
        let since_ms = claims.since_ms(&seen);
        let deadline_ms = claims.deadline_ms(&seen).filter(|_| is_held);
        let left_ms = deadline_ms.map(|deadline_ms| deadline_ms.saturating_sub(now_ms));
        let available_ms = claims.available_ms(&seen).filter(|_| !is_held).unwrap_or(0);
        let delay_ms = available_ms.saturating_sub(wall_ms);
        let cause = match seen.word.state {
            State::Offered => claims.cause(&seen),
            _ if is_held => Cause::Unknown,
            _ => Cause::Died,
        };
        let counts = claims.counts_of(&seen);
        for place in (0..MESSAGES).filter(|place| seen.word.pending >> place & 1 == 1) {
            let index = seen.first.saturating_add(u64::from(place).saturating_mul(side.shape.step));
            let count = counts[place as usize];
            if count > 0 {
                let owner = owner.clone();
                found.push(Delivered { index, count, owner, since_ms, left_ms, delay_ms, cause });
            }
        }
    }
    found.sort_unstable_by_key(|it| it.index);
    Ok(found)
}

/// Takes the claim of a message from its owner and offers it to all members after a delay. If the
/// claim is already delayed, this delay replaces the old one.
pub fn release(path: &Path, index: u64, delay_ms: u64) -> Result<Changed> {
    change(path, index, |claims, seen| {
        if seen.word.is_prepared() {
            return None; // it is about to be held
        }
        let is_held = seen.word.state == State::Held;
        let cause = if is_held { Cause::Released } else { claims.cause(seen) };
        let available_ms = if delay_ms == 0 { 0 } else { wall_ms().saturating_add(delay_ms) };
        let offer = Offer { cause, available_ms, singly: is_held || seen.word.singly };
        let is_done = claims.offer_again(seen.number, seen.word, offer);
        is_done.then(|| Changed::Done(seen.word.pending.count_ones()))
    })
}

/// Extends the claim of a message, so that it times out no earlier than `timeout_ms` from now.
pub fn extend(path: &Path, index: u64, timeout_ms: u64) -> Result<Changed> {
    change(path, index, |claims, seen| {
        if seen.word.state != State::Held {
            return Some(Changed::NotClaimed);
        }
        let deadline_ms = now_ms().saturating_add(timeout_ms);
        let is_in_time = claims.extend_for_owner(seen, deadline_ms, now_ms)?;
        Some(if is_in_time {
            Changed::Done(seen.word.pending.count_ones())
        } else {
            Changed::TooLate
        })
    })
}

/// Changes the claim of a message; `attempt` returns None if its owner changed it meanwhile.
fn change(
    path: &Path,
    index: u64,
    attempt: impl Fn(&Claims<'_>, &Seen) -> Option<Changed>,
) -> Result<Changed> {
    let Found::Whole(side) = file::open(path, true)? else { return Ok(Changed::NotClaimed) };
    let claims = Claims::new(&side.cells, Layout::FILE);
    for _ in 0..ATTEMPTS {
        let in_use = linked(path, &claims)?;
        let Some(seen) = in_use.iter().find(|seen| has(&side, seen, index)) else {
            return Ok(Changed::NotClaimed);
        };
        if let Some(changed) = attempt(&claims, seen) {
            return Ok(changed);
        }
    }
    Ok(Changed::TooLate)
}

fn has(side: &SideFile, seen: &Seen, index: u64) -> bool {
    let step = side.shape.step;
    let Some(distance) = index.checked_sub(seen.first) else { return false };
    let place = u32::try_from(distance / step).unwrap_or(u32::MAX);
    distance % step == 0 && seen.word.pending.checked_shr(place).is_some_and(|bits| bits & 1 == 1)
}

fn linked(path: &Path, claims: &Claims<'_>) -> Result<Vec<Seen>> {
    let damaged = || Error::corrupt("the side file of a group", path, 0, "damaged", "whole");
    let mut found = claims.in_use().ok_or_else(damaged)?;
    found.retain(|seen| seen.is_linked && seen.word.pending != 0);
    Ok(found)
}
