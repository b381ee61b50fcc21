//! A member of a group: it claims messages and acknowledges them.

use std::collections::{HashMap, HashSet};
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use super::format::layout::{self, Layout};
use super::format::word::{Cause, MESSAGES, State};
use super::group::{Group, now_ms, wall_ms};
use super::protocol::claims::{Claim, ClaimKey, Claims, Frontier, NotClaimed, Range, Seen};
use super::protocol::file::{self, SideFile};
use super::protocol::leases::Lease;
use super::protocol::liveness;
use super::protocol::tails::{self, Tail};
use crate::os::detached::Detached;
use crate::os::locked_file::LockedFile;
use crate::os::process;
use crate::probe::fault::step;
use crate::waiting::wait::Look;
use crate::{Error, Result};

/// How often to check that the side file still has its name.
const LOOK_MS: u64 = 20;
/// The least number of renewed claims at which finished ones are dropped.
const RENEWED_MAX: usize = 1024;

/// A member.
pub struct Member {
    group: Arc<Group>,
    side: Arc<SideFile>,
    number: u16,
    /// None once it has left.
    lock: Mutex<Option<LockedFile>>,
    is_closed: AtomicBool,
    /// That of the process that joined.
    generation: u32,
    ack_timeout_ms: u64,
    /// Claims not confirmed yet: the call that made them may have been interrupted.
    made: Mutex<Vec<Claim>>,
    /// The current generations of renewed claims, by their original keys.
    renewed: Mutex<HashMap<ClaimKey, u32>>,
    /// How many of these there may be before finished ones are dropped.
    renewed_max: AtomicUsize,
    /// When the side file's name was last checked.
    looked_ms: AtomicU64,
}

/// The claims, while no other thread uses the member.
struct Working<'a> {
    claims: Claims<'a>,
    _lock: MutexGuard<'a, Option<LockedFile>>,
}

impl<'a> Deref for Working<'a> {
    type Target = Claims<'a>;

    fn deref(&self) -> &Claims<'a> {
        &self.claims
    }
}

impl Member {
    pub(super) fn new(
        group: Arc<Group>,
        side: Arc<SideFile>,
        number: u16,
        lock: LockedFile,
        ack_timeout_ms: u64,
    ) -> Self {
        let generation = process::generation();
        let (lock, is_closed) = (Mutex::new(Some(lock)), AtomicBool::new(false));
        let (made, renewed) = (Mutex::default(), Mutex::default());
        let looked_ms = AtomicU64::new(now_ms());
        Self {
            group,
            side,
            number,
            lock,
            is_closed,
            generation,
            ack_timeout_ms,
            made,
            renewed,
            renewed_max: AtomicUsize::new(RENEWED_MAX),
            looked_ms,
        }
    }

    #[must_use]
    pub fn group(&self) -> &Group {
        &self.group
    }

    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }

    /// Where the unclaimed messages start.
    pub fn frontier(&self) -> Result<Frontier> {
        self.claims()?.frontier().ok_or_else(|| self.damaged())
    }

    /// Claims messages from `frontier` on, by their indexes; none if another member was faster.
    /// May claim only the first of them.
    pub fn hold(&self, frontier: Frontier, indexes: &[u64]) -> Result<Vec<Claim>> {
        let claims = self.claims()?;
        let lease = self.lease();
        let (mut frontier, mut from, mut held) = (frontier, 0, Vec::new());
        for range in ranges(indexes, self.group.step()) {
            match claims.hold(frontier, range, self.number, lease, &mut from) {
                Ok((claim, next)) => {
                    self.note_made(claim);
                    held.push(claim);
                    frontier = next;
                }
                Err(NotClaimed::Damaged) => return Err(self.damaged()),
                Err(NotClaimed::Moved | NotClaimed::Full) => break,
            }
        }
        Ok(held)
    }

    /// Claims messages from `frontier` on, each with the hash of its key, for any member to take.
    /// Returns how many: none if another member was faster, or if too many claims are in use.
    pub fn offer(&self, frontier: Frontier, indexes: &[u64], keys: &[u64]) -> Result<usize> {
        let claims = self.claims()?;
        let (mut frontier, mut from, mut count) = (frontier, 0, 0);
        for (first, key) in indexes.iter().zip(keys) {
            let range = Range {
                first: *first,
                count: 1,
                next: first.saturating_add(self.group.step()),
                key: *key,
            };
            match claims.offer(frontier, range, self.number, &mut from) {
                Ok(next) => frontier = next,
                Err(NotClaimed::Damaged) => return Err(self.damaged()),
                Err(NotClaimed::Moved | NotClaimed::Full) => break,
            }
            count += 1;
        }
        Ok(count)
    }

    /// Takes claims that were offered, that timed out, or whose owner died: about `count` messages
    /// at most, in the order of their messages.
    pub fn take(&self, count: u64) -> Result<Vec<Claim>> {
        let claims = self.claims()?;
        let (mut held, mut messages) = (Vec::new(), 0);
        self.each_to_take(&claims, |seen, cause| {
            if let Some(claim) = claims.take(seen, self.number, self.lease(), cause) {
                messages += u64::from(claim.pending.count_ones());
                self.note_made(claim);
                held.push(claim);
            }
            messages < count
        })?;
        Ok(held)
    }

    /// Hands claims that may be taken, and why, to `each` while it returns true, in the order of
    /// their messages.
    fn each_to_take(
        &self,
        claims: &Claims<'_>,
        mut each: impl FnMut(&Seen, Cause) -> bool,
    ) -> Result<()> {
        // Claims that the scan may miss were linked after this one.
        let frontier = claims.frontier().ok_or_else(|| self.damaged())?;
        let mut in_use = claims.in_use().ok_or_else(|| self.damaged())?;
        let mut liveness = LivenessCheck {
            member: self,
            claims,
            now_ms: now_ms(),
            wall_ms: wall_ms(),
            alive: Vec::new(),
        };
        for seen in in_use.iter().filter(|seen| seen.word.is_prepared()) {
            liveness.settle_if_dead(seen)?;
        }
        in_use.retain(|seen| seen.is_linked && seen.first < frontier.next);
        in_use.sort_unstable_by_key(|seen| seen.first);
        let mut keys = HashSet::new();
        for seen in in_use {
            let is_first_of_key = !self.side.shape.keyed || keys.insert(seen.key);
            if !is_first_of_key {
                continue;
            }
            if let Some(cause) = liveness.why_to_take(&seen)?
                && !each(&seen, cause)
            {
                break;
            }
        }
        Ok(())
    }

    /// The claims not confirmed yet.
    #[must_use]
    pub fn unconfirmed(&self) -> Vec<Claim> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Notes that the caller has received these claims.
    pub fn confirm(&self, keys: &HashSet<ClaimKey>) {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        made.retain(|claim| !keys.contains(&claim.key));
    }

    fn note_made(&self, claim: Claim) {
        self.made.lock().unwrap_or_else(PoisonError::into_inner).push(claim);
    }

    /// Counts messages of claims as delivered and restarts their timeouts; false for each claim
    /// that was lost to another member. Callers keep using the original keys.
    pub fn deliver(&self, messages: &[(ClaimKey, u32)]) -> Result<Vec<bool>> {
        let (claims, lease) = (self.claims()?, self.lease());
        let held = messages.iter().map(|(key, bits)| {
            let found = claims.deliver(&self.now(key), self.number, *bits, lease);
            self.note_renewed(&claims, key, found)
        });
        Ok(held.collect())
    }

    /// Has a claim time out no earlier than `timeout_ms` from now; false if it was lost to another
    /// member. Callers keep using the original key.
    pub fn extend(&self, key: &ClaimKey, timeout_ms: u64) -> Result<bool> {
        let claims = self.claims()?;
        let deadline_ms = now_ms().saturating_add(timeout_ms);
        let found = claims.extend(&self.now(key), self.number, deadline_ms);
        Ok(self.note_renewed(&claims, key, found))
    }

    /// Notes the current key of a claim, None if it was lost; whether it was not.
    fn note_renewed(&self, claims: &Claims<'_>, key: &ClaimKey, found: Option<ClaimKey>) -> bool {
        let mut renewed = self.renewed.lock().unwrap_or_else(PoisonError::into_inner);
        match found {
            Some(now) => renewed.insert(*key, now.generation),
            None => renewed.remove(key),
        };
        // Doubled each time, so that a claim is looked at a few times at most.
        if renewed.len() > self.renewed_max.load(Ordering::Relaxed) {
            renewed.retain(|key, generation| {
                claims.is_held(&ClaimKey { generation: *generation, ..*key }, self.number)
            });
            self.renewed_max.store(RENEWED_MAX.max(2 * renewed.len()), Ordering::Relaxed);
        }
        found.is_some()
    }

    fn lease(&self) -> Lease {
        let deadline_ms = now_ms().saturating_add(self.ack_timeout_ms);
        Lease { since_ms: wall_ms(), deadline_ms }
    }

    /// The current key of a claim.
    fn now(&self, key: &ClaimKey) -> ClaimKey {
        let renewed = self.renewed.lock().unwrap_or_else(PoisonError::into_inner);
        let generation = renewed.get(key).copied().unwrap_or(key.generation);
        ClaimKey { generation, ..*key }
    }

    /// Moves the frontier to `to` after a loss of messages. Returns how many of the lost ones were
    /// claimed but not acknowledged; None if another member was faster.
    pub fn move_to(&self, frontier: Frontier, to: u64) -> Result<Option<u64>> {
        let claims = self.claims()?;
        let known = i64::try_from(frontier.next).unwrap_or(i64::MAX);
        self.side.cells.raise_acq_rel(layout::KNOWN_AT, known, step!("group.known.cas"));
        match claims.move_to(frontier, to, self.group.step(), self.number) {
            Ok(lost) => {
                tails::forget_from(&self.side.cells, to);
                Ok(Some(lost))
            }
            Err(NotClaimed::Damaged) => Err(self.damaged()),
            Err(NotClaimed::Moved | NotClaimed::Full) => Ok(None),
        }
    }

    /// Records the index and hash of a claim's last message; `later` claims followed it.
    pub fn note_tail(&self, tail: Tail, later: u64) -> Result<()> {
        let changes = self.claims()?.frontier().ok_or_else(|| self.damaged())?.newest.changes();
        tails::note(&self.side.cells, changes.saturating_sub(later), tail);
        Ok(())
    }

    /// The tail records, newest first (`tails.rs`).
    #[must_use]
    pub fn tails(&self) -> Vec<Tail> {
        tails::all(&self.side.cells)
    }

    /// Messages before this index may have been delivered by a state whose counts are lost.
    #[must_use]
    pub fn known(&self) -> u64 {
        self.side.cells.load_acquire(layout::KNOWN_AT)
    }

    /// Acknowledges messages of claims, given as bits. Returns those of each that were pending: 0
    /// if it was lost to another member.
    pub fn acknowledge(&self, messages: &[(ClaimKey, u32)]) -> Result<Vec<u32>> {
        let claims = self.claims()?;
        let done = messages
            .iter()
            .map(|(key, bits)| claims.acknowledge(&self.now(key), self.number, *bits));
        Ok(done.collect())
    }

    /// Offers a claim's pending messages to all members, from a time in epoch milliseconds on; false
    /// if the claim was lost to another.
    pub fn give_back(&self, key: &ClaimKey, cause: Cause, available_ms: u64) -> Result<bool> {
        Ok(self.claims()?.give_back(&self.now(key), self.number, cause, available_ms))
    }

    /// Leaves the group and offers its unacknowledged messages to all members.
    pub fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
        if self.generation != process::generation() {
            return; // another thread of the parent may have held the mutex at the fork
        }
        let mut lock = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        if lock.is_some() {
            Claims::new(&self.side.cells, Layout::FILE).end_of_member(self.number, false);
        }
        *lock = None;
    }

    fn claims(&self) -> Result<Working<'_>> {
        if self.generation != process::generation() {
            return Err(Error::Forked);
        }
        self.claims_under(self.lock.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn claims_under<'a>(&'a self, lock: MutexGuard<'a, Option<LockedFile>>) -> Result<Working<'a>> {
        if lock.is_none() {
            return Err(Error::closed("consumer", self.group.path()));
        }
        if file::is_marked(&self.side.cells) {
            return Err(self.group.error("the group was reset, or its side file made again"));
        }
        self.look_for_file()?;
        Ok(Working { claims: Claims::new(&self.side.cells, Layout::FILE), _lock: lock })
    }

    /// An error if the side file was removed or replaced: other members would use another file.
    fn look_for_file(&self) -> Result<()> {
        let now = now_ms();
        let last = self.looked_ms.load(Ordering::Relaxed);
        if now.saturating_sub(last) < LOOK_MS {
            return Ok(());
        }
        if !file::is_at(&self.side.file, self.group.path())? {
            let group = self.group.name().to_owned();
            return Err(Error::GroupLost { group, path: self.group.path().to_path_buf() });
        }
        self.looked_ms.store(now, Ordering::Relaxed);
        Ok(())
    }

    fn damaged(&self) -> Error {
        let path = self.group.path();
        Error::corrupt(
            "the side file of a group",
            path,
            0,
            "a state that does not exist",
            "a claim",
        )
    }
}

impl Look for Member {
    /// Whether there is a claim to take. A member that another thread uses is left alone: it is
    /// looked at again soon. What nobody has claimed is seen by a tailer.
    fn is_due(&self, _: &Detached) -> bool {
        if self.generation != process::generation() {
            return true;
        }
        let lock = match self.lock.try_lock() {
            Ok(lock) => lock,
            Err(TryLockError::Poisoned(lock)) => lock.into_inner(),
            Err(TryLockError::WouldBlock) => return false,
        };
        let mut is_due = false;
        let looked = self.claims_under(lock).and_then(|claims| {
            self.each_to_take(&claims, |_, _| {
                is_due = true;
                false
            })
        });
        is_due || looked.is_err()
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.close();
    }
}

/// One scan of all claims, which checks each owner's lock once.
struct LivenessCheck<'a> {
    member: &'a Member,
    claims: &'a Claims<'a>,
    /// By the monotonic clock.
    now_ms: u64,
    /// In epoch milliseconds.
    wall_ms: u64,
    alive: Vec<(u16, bool)>,
}

impl LivenessCheck<'_> {
    /// Why a claim may be taken; None if it may not.
    fn why_to_take(&mut self, seen: &Seen) -> Result<Option<Cause>> {
        let owner = seen.word.owner;
        Ok(match seen.word.state {
            State::Offered => {
                self.claims.is_available(seen, self.wall_ms).then(|| self.claims.cause(seen))
            }
            State::Held if owner != self.member.number && !self.is_alive(owner)? => {
                Some(Cause::Died)
            }
            State::Held => {
                let deadline_ms = self.now_ms.saturating_add(self.member.ack_timeout_ms);
                let is_overdue = self.claims.is_overdue(seen, self.now_ms, deadline_ms);
                is_overdue.then_some(Cause::TimedOut)
            }
            State::Free | State::PreparedToHold | State::PreparedToOffer => None,
        })
    }

    /// Settles a claim that a dead member had prepared.
    fn settle_if_dead(&mut self, seen: &Seen) -> Result<()> {
        let owner = seen.word.owner;
        if owner != self.member.number && !self.is_alive(owner)? {
            self.claims.settle(seen.number, seen.word);
        }
        Ok(())
    }

    fn is_alive(&mut self, owner: u16) -> Result<bool> {
        if let Some((_, is_alive)) = self.alive.iter().find(|(known, _)| *known == owner) {
            return Ok(*is_alive);
        }
        let side = &self.member.side;
        let is_alive = liveness::is_alive(&side.path, &side.file, owner)?;
        self.alive.push((owner, is_alive));
        Ok(is_alive)
    }
}

/// Splits indexes into ranges of consecutive ones.
fn ranges(indexes: &[u64], step: u64) -> impl Iterator<Item = Range> {
    let parts = indexes.chunk_by(move |index, next| index.checked_add(step) == Some(*next));
    parts.flat_map(|part| part.chunks(MESSAGES as usize)).map(move |part| {
        #[allow(clippy::cast_possible_truncation)] // 32 at most
        let count = part.len() as u32;
        let last = part[part.len() - 1];
        Range { first: part[0], count, next: last.saturating_add(step), key: 0 }
    })
}
