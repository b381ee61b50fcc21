//! A member of a group: it claims messages and acknowledges them.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::sync::{Arc, MutexGuard};

use super::format::layout::{self, Layout};
use super::format::word::{Cause, MESSAGES, State};
use super::group::{Group, now_ms, wall_ms};
use super::protocol::claims::{Claim, ClaimKey, Claims, Frontier, NotClaimed, Range, Seen};
use super::protocol::file::{self, SideFile};
use super::protocol::leases::Lease;
use super::protocol::liveness;
use super::protocol::tails::{self, Tail};
use crate::os::detached::{Detached, SharedState};
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
    state: SharedState<MemberState>,
    is_closed: AtomicBool,
    /// The fork generation of the process that joined.
    generation: u32,
    ack_timeout_ms: u64,
}

/// The process-local state of a member.
struct MemberState {
    /// None once it has left.
    lock: Option<LockedFile>,
    /// Claims not confirmed yet: the call that claimed them may have been interrupted.
    made: Vec<Claim>,
    /// The current generations of renewed claims, by their original keys.
    renewed: HashMap<ClaimKey, u32>,
    /// How many of these there may be before finished ones are dropped.
    renewed_max: usize,
    /// When the side file's name was last checked.
    looked_ms: u64,
}

/// A member while no other thread uses it.
pub struct Working<'a> {
    member: &'a Member,
    state: MutexGuard<'a, MemberState>,
}

impl Member {
    pub(super) fn new(
        group: Arc<Group>,
        side: Arc<SideFile>,
        number: u16,
        lock: LockedFile,
        ack_timeout_ms: u64,
    ) -> Self {
        let state = MemberState {
            lock: Some(lock),
            made: Vec::new(),
            renewed: HashMap::new(),
            renewed_max: RENEWED_MAX,
            looked_ms: now_ms(),
        };
        Self {
            group,
            side,
            number,
            state: SharedState::new(state),
            is_closed: AtomicBool::new(false),
            generation: process::generation(),
            ack_timeout_ms,
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

    /// Locks the member for this thread, waiting while another thread uses it.
    pub fn lock<'a>(&'a self, may_wait: &'a Detached) -> Result<Working<'a>> {
        let state = self.state.lock_open(may_wait, self.check_process(), || Ok(()))?;
        Ok(Working { member: self, state })
    }

    /// Like [`Self::lock`]; None while another thread uses the member.
    pub fn try_lock(&self) -> Option<Result<Working<'_>>> {
        let state = self.state.try_lock_open(self.check_process(), || Ok(()))?;
        Some(state.map(|state| Working { member: self, state }))
    }

    /// Returns when no other thread used the member, for another try.
    pub fn wait_until_free(&self, may_wait: &Detached) {
        self.state.wait_until_free(may_wait);
    }

    /// Leaves the group and offers its unacknowledged messages to all members.
    pub fn close(&self, may_wait: &Detached) {
        self.is_closed.store(true, Ordering::Release);
        if self.check_process().is_ok() {
            let mut state = self.state.lock(may_wait);
            self.leave(state.lock.take());
        }
    }

    /// The lock is released last: until then no other member can take its number.
    fn leave(&self, lock: Option<LockedFile>) {
        if lock.is_some() {
            Claims::new(&self.side.cells, Layout::FILE).end_of_member(self.number, false);
        }
        drop(lock);
    }

    /// An error in a forked child: another thread of the parent may have had the state at the fork.
    fn check_process(&self) -> Result<()> {
        if self.generation == process::generation() { Ok(()) } else { Err(Error::Forked) }
    }

    /// Calls `each` with claims that may be taken, and why, in the order of their messages, until
    /// it returns false.
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

    fn lease(&self) -> Lease {
        let deadline_ms = now_ms().saturating_add(self.ack_timeout_ms);
        Lease { since_ms: wall_ms(), deadline_ms }
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
}

impl<'a> Working<'a> {
    /// Where the unclaimed messages start.
    pub fn frontier(&mut self) -> Result<Frontier> {
        self.claims()?.frontier().ok_or_else(|| self.member.damaged())
    }

    /// Claims messages from `frontier` on, by their indexes; none if another member was faster.
    /// May claim only the first of them.
    pub fn hold(&mut self, frontier: Frontier, indexes: &[u64]) -> Result<Vec<Claim>> {
        let claims = self.claims()?;
        let lease = self.member.lease();
        let (mut frontier, mut from, mut held) = (frontier, 0, Vec::new());
        for range in ranges(indexes, self.member.group.step()) {
            match claims.hold(frontier, range, self.member.number, lease, &mut from) {
                Ok((claim, next)) => {
                    self.state.made.push(claim);
                    held.push(claim);
                    frontier = next;
                }
                Err(NotClaimed::Damaged) => return Err(self.member.damaged()),
                Err(NotClaimed::Moved | NotClaimed::Full) => break,
            }
        }
        self.still_counts()?;
        Ok(held)
    }

    /// Claims messages from `frontier` on, each with the hash of its key, for any member to take.
    /// Returns how many: none if another member was faster, or if too many claims are in use.
    pub fn offer(&mut self, frontier: Frontier, indexes: &[u64], keys: &[u64]) -> Result<usize> {
        let claims = self.claims()?;
        let (mut frontier, mut from, mut count) = (frontier, 0, 0);
        for (first, key) in indexes.iter().zip(keys) {
            let range = Range {
                first: *first,
                count: 1,
                next: first.saturating_add(self.member.group.step()),
                key: *key,
            };
            match claims.offer(frontier, range, self.member.number, &mut from) {
                Ok(next) => frontier = next,
                Err(NotClaimed::Damaged) => return Err(self.member.damaged()),
                Err(NotClaimed::Moved | NotClaimed::Full) => break,
            }
            count += 1;
        }
        Ok(count)
    }

    /// Takes claims that were offered, that timed out, or whose owner died: about `count` messages
    /// at most, in the order of their messages.
    pub fn take(&mut self, count: u64) -> Result<Vec<Claim>> {
        let claims = self.claims()?;
        let (mut held, mut messages) = (Vec::new(), 0);
        let (member, made) = (self.member, &mut self.state.made);
        member.each_to_take(&claims, |seen, cause| {
            if let Some(claim) = claims.take(seen, member.number, member.lease(), cause) {
                messages += u64::from(claim.pending.count_ones());
                made.push(claim);
                held.push(claim);
            }
            messages < count
        })?;
        Ok(held)
    }

    /// The claims not confirmed yet.
    #[must_use]
    pub fn unconfirmed(&self) -> Vec<Claim> {
        self.state.made.clone()
    }

    /// Notes that the caller has received these claims.
    pub fn confirm(&mut self, keys: &HashSet<ClaimKey>) {
        self.state.made.retain(|claim| !keys.contains(&claim.key));
    }

    /// Counts messages of claims as delivered and restarts their timeouts; false for each claim
    /// that was lost to another member. Callers keep using the original keys.
    pub fn deliver(&mut self, messages: &[(ClaimKey, u32)]) -> Result<Vec<bool>> {
        let (claims, lease) = (self.claims()?, self.member.lease());
        let number = self.member.number;
        let held = messages.iter().map(|(key, bits)| {
            let found = claims.deliver(&self.state.now(key), number, *bits, lease);
            self.state.note_renewed(&claims, number, key, found)
        });
        Ok(held.collect())
    }

    /// Extends a claim, so that it times out no earlier than `timeout_ms` from now; false if it was
    /// lost to another member. Callers keep using the original key.
    pub fn extend(&mut self, key: &ClaimKey, timeout_ms: u64) -> Result<bool> {
        let claims = self.claims()?;
        let deadline_ms = now_ms().saturating_add(timeout_ms);
        let number = self.member.number;
        let found = claims.extend(&self.state.now(key), number, deadline_ms);
        Ok(self.state.note_renewed(&claims, number, key, found))
    }

    /// Moves the frontier to `to` after a loss of messages. Returns how many of the lost ones were
    /// claimed but not acknowledged; None if another member was faster.
    pub fn move_to(&mut self, frontier: Frontier, to: u64) -> Result<Option<u64>> {
        let claims = self.claims()?;
        let known = i64::try_from(frontier.next).unwrap_or(i64::MAX);
        self.member.side.cells.raise_acq_rel(layout::KNOWN_AT, known, step!("group.known.cas"));
        match claims.move_to(frontier, to, self.member.group.step(), self.member.number) {
            Ok(lost) => {
                tails::forget_from(&self.member.side.cells, to);
                Ok(Some(lost))
            }
            Err(NotClaimed::Damaged) => Err(self.member.damaged()),
            Err(NotClaimed::Moved | NotClaimed::Full) => Ok(None),
        }
    }

    /// Records the index and hash of a claim's last message; `later` claims followed it.
    pub fn note_tail(&mut self, tail: Tail, later: u64) -> Result<()> {
        let changes =
            self.claims()?.frontier().ok_or_else(|| self.member.damaged())?.newest.changes();
        tails::note(&self.member.side.cells, changes.saturating_sub(later), tail);
        Ok(())
    }

    /// Acknowledges messages of claims, given as bits. Returns, per claim, the bits that were
    /// pending: 0 if it was lost to another member.
    pub fn acknowledge(&mut self, messages: &[(ClaimKey, u32)]) -> Result<Vec<u32>> {
        let claims = self.claims()?;
        let done = messages
            .iter()
            .map(|(key, bits)| claims.acknowledge(&self.state.now(key), self.member.number, *bits))
            .collect();
        self.still_counts()?;
        Ok(done)
    }

    /// Offers a claim's pending messages to all members, from a time in epoch milliseconds on;
    /// false if the claim was lost to another member.
    pub fn give_back(&mut self, key: &ClaimKey, cause: Cause, available_ms: u64) -> Result<bool> {
        Ok(self.claims()?.give_back(&self.state.now(key), self.member.number, cause, available_ms))
    }

    /// An error if the side file was marked before this member's latest change: that change may be
    /// missing from the file that replaces it.
    #[inline]
    fn still_counts(&self) -> Result<()> {
        // SYNC POINT M2, with M1 in `file.rs`: either this load sees the mark, or the replacement
        // sees the change made before it.
        fence(Ordering::SeqCst);
        let (group, side) = (&self.member.group, &self.member.side);
        if file::is_marked(&side.cells) { Err(was_reset(group)) } else { Ok(()) }
    }

    /// The claims, while the member is one of the group.
    fn claims(&mut self) -> Result<Claims<'a>> {
        let (group, side) = (&self.member.group, &self.member.side);
        if self.state.lock.is_none() {
            return Err(Error::closed("consumer", group.path()));
        }
        if file::is_marked(&side.cells) {
            return Err(was_reset(group));
        }
        self.look_for_file()?;
        Ok(Claims::new(&side.cells, Layout::FILE))
    }

    /// An error if the side file was removed or replaced: other members would use another file.
    fn look_for_file(&mut self) -> Result<()> {
        let now = now_ms();
        if now.saturating_sub(self.state.looked_ms) < LOOK_MS {
            return Ok(());
        }
        let group = &self.member.group;
        if !file::is_at(&self.member.side.file, group.path())? {
            let (name, path) = (group.name().to_owned(), group.path().to_path_buf());
            return Err(Error::GroupLost { group: name, path });
        }
        self.state.looked_ms = now;
        Ok(())
    }
}

#[cold]
fn was_reset(group: &Group) -> Error {
    group.error("the group was reset, or its side file created again")
}

impl MemberState {
    /// Notes the current key of a claim, None if it was lost. Returns false if it was lost.
    fn note_renewed(
        &mut self,
        claims: &Claims<'_>,
        number: u16,
        key: &ClaimKey,
        found: Option<ClaimKey>,
    ) -> bool {
        let renewed = &mut self.renewed;
        match found {
            Some(now) => renewed.insert(*key, now.generation),
            None => renewed.remove(key),
        };
        // Doubled each time, so that each claim is checked a few times at most.
        if renewed.len() > self.renewed_max {
            renewed.retain(|key, generation| {
                claims.is_held(&ClaimKey { generation: *generation, ..*key }, number)
            });
            self.renewed_max = RENEWED_MAX.max(2 * renewed.len());
        }
        found.is_some()
    }

    /// The current key of a claim.
    fn now(&self, key: &ClaimKey) -> ClaimKey {
        let generation = self.renewed.get(key).copied().unwrap_or(key.generation);
        ClaimKey { generation, ..*key }
    }
}

impl Look for Member {
    /// Whether there is a claim to take. A member that another thread is using is not due; it is
    /// checked again soon. Unclaimed messages are noticed by a tailer.
    fn is_due(&self, _: &Detached) -> bool {
        let mut working = match self.try_lock() {
            Some(Ok(working)) => working,
            Some(Err(_)) => return true,
            None => return false,
        };
        let mut is_due = false;
        let looked = working.claims().and_then(|claims| {
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
        if self.check_process().is_ok() {
            let lock = self.state.get_mut().lock.take();
            self.leave(lock);
        }
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
