//! Claims: ranges of messages that one member works on.
//!
//! A new claim starts where the newest one ends. A member
//! 1. prepares a free claim: the state names the owner that fills it in;
//! 2. stores its range and its deadline, which no other member reads yet;
//! 3. completes the newest claim if that one's owner has not reached step 5;
//! 4. links its own as the newest, by compare-and-swap of the one word that names it. If another
//!    member was faster it starts over with the messages after that claim;
//! 5. completes its claim: it is held, or offered to all.
//!
//! As step 3 precedes step 4, a prepared claim is linked if and only if it is the newest. So even
//! if a member dies in between, it is clear who has the messages.
//!
//! Every later change is one compare-and-swap of a claim's state: taking a claim that was offered,
//! that timed out or whose owner died; acknowledging messages; offering the claim again. The state
//! has a generation, which changes with each owner, so a member that lost its claim can change
//! nothing. A claim is free once its last message is acknowledged, but is not reused while it is
//! the newest: the next claim starts at its end.

use super::leases::{Lease, Offer};
use crate::groups::format::layout::Layout;
use crate::groups::format::word::{self, COUNTS_PER_WORD, Cause, MESSAGES, Newest, State, Word};
use crate::memory::Cells;
use crate::probe::fault::{Step, step};

/// Claims in a side file.
#[derive(Clone, Copy)]
pub struct Claims<'a> {
    pub(super) cells: &'a Cells,
    pub(super) layout: Layout,
}

/// Where the next claim starts, as read at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frontier {
    pub newest: Newest,
    /// The index of the next unclaimed message; 0 is the first.
    pub next: u64,
}

/// A range of messages to claim.
#[derive(Clone, Copy, Debug)]
pub struct Range {
    pub first: u64,
    /// At most 32; 0 moves the frontier alone.
    pub count: u32,
    /// The index after the last message.
    pub next: u64,
    /// The hash of the message's key, if the range has one message.
    pub key: u64,
}

/// Identifies a claim and its owner. Generations recur; the first message does not while the claim
/// is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ClaimKey {
    pub slot: u32,
    pub generation: u32,
    /// The index of the first message, pending or not.
    pub first: u64,
}

/// A claim as one member owns it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    pub key: ClaimKey,
    /// The messages to work on.
    pub pending: u32,
    /// Whether they are to be delivered one at a time.
    pub singly: bool,
    /// Whether the counts include the delivery by this owner.
    pub is_counted: bool,
    /// How often each message was delivered, at most 255.
    pub counts: [u8; MESSAGES as usize],
    /// The hash of the key of its only message.
    pub hash: u64,
    /// How its last owner lost it.
    pub cause: Cause,
}

/// A claim in use, as seen at one moment.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    pub number: u32,
    pub word: Word,
    pub first: u64,
    pub next: u64,
    pub key: u64,
    /// Whether it owns its messages: true unless it is only prepared.
    pub is_linked: bool,
}

/// Why no range was claimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotClaimed {
    /// Another member was faster.
    Moved,
    /// All claims are in use.
    Full,
    /// The side file has content that no member stores.
    Damaged,
}

impl Claim {
    const fn new(slot: u32, first: u64, word: Word) -> Self {
        let Word { generation, pending, singly, .. } = word;
        let key = ClaimKey { slot, generation, first };
        let counts = [1; MESSAGES as usize];
        Self { key, pending, singly, is_counted: true, counts, hash: 0, cause: Cause::Unknown }
    }
}

impl<'a> Claims<'a> {
    #[must_use]
    pub const fn new(cells: &'a Cells, layout: Layout) -> Self {
        Self { cells, layout }
    }

    /// Where the next claim starts; None if the side file is damaged.
    #[must_use]
    pub fn frontier(&self) -> Option<Frontier> {
        loop {
            let newest = self.newest();
            let next = match newest.claim() {
                Some(claim) if claim < self.layout.count => self.layout.next(claim),
                Some(_) => return None,
                None => self.layout.start,
            };
            let next = self.cells.load_acquire(next);
            // The newest claim is not reused, so its end belongs to this word.
            if self.newest() == newest {
                return Some(Frontier { newest, next });
            }
        }
    }

    fn newest(&self) -> Newest {
        Newest(self.cells.load_acquire(self.layout.frontier))
    }

    /// Claims a range from `frontier` on for `owner`.
    pub fn hold(
        &self,
        frontier: Frontier,
        range: Range,
        owner: u16,
        lease: Lease,
        from: &mut u32,
    ) -> Result<(Claim, Frontier), NotClaimed> {
        let (number, word) = self.prepare(owner, range, State::PreparedToHold, from)?;
        self.fill(number, word, range, lease);
        let newest = self.link(frontier, number, word)?;
        self.complete(number, word);
        let claim = Claim::new(number, range.first, word);
        Ok((claim, Frontier { newest, next: range.next }))
    }

    /// Claims a range from `frontier` on for any member to take.
    pub fn offer(
        &self,
        frontier: Frontier,
        range: Range,
        owner: u16,
        from: &mut u32,
    ) -> Result<Frontier, NotClaimed> {
        let (number, word) = self.prepare(owner, range, State::PreparedToOffer, from)?;
        self.fill(number, word, range, Lease { since_ms: 0, deadline_ms: 0 });
        let newest = self.link(frontier, number, word)?;
        self.complete(number, word);
        Ok(Frontier { newest, next: range.next })
    }

    /// Step 1. The search starts at `from`, which is set to the place after the claim found.
    pub fn prepare(
        &self,
        owner: u16,
        range: Range,
        state: State,
        from: &mut u32,
    ) -> Result<(u32, Word), NotClaimed> {
        let count = self.layout.count;
        for number in (*from..count).chain(0..(*from).min(count)) {
            let found = self.word(number).ok_or(NotClaimed::Damaged)?;
            // The state is loaded first, so that a claim that became the newest and then free is
            // seen as the newest.
            if found.state != State::Free || self.newest().claim() == Some(number) {
                continue;
            }
            let pending = u32::MAX.checked_shr(u32::BITS - range.count.min(u32::BITS)).unwrap_or(0);
            let word = Word { singly: false, pending, ..found.owned(owner, state) };
            if self.swap(number, found, word, step!("group.prepare.cas")) {
                *from = (number + 1) % count;
                let high = i64::from(number) + 1;
                self.cells.raise_acq_rel(self.layout.high, high, step!("group.high.cas"));
                return Ok((number, word));
            }
        }
        Err(NotClaimed::Full)
    }

    /// Step 2.
    pub fn fill(&self, number: u32, word: Word, range: Range, lease: Lease) {
        let (cells, layout) = (self.cells, &self.layout);
        let (since, deadline) = (word.stamped(lease.since_ms), word.stamped(lease.deadline_ms));
        cells.store_release(layout.since(number), since, step!("group.since.store"));
        cells.store_release(layout.deadline(number), deadline, step!("group.deadline.store"));
        cells.store_release(layout.first(number), range.first, step!("group.first.store"));
        cells.store_release(layout.next(number), range.next, step!("group.next.store"));
        cells.store_release(layout.key(number), range.key, step!("group.key.store"));
        // A claim that is held from the start is delivered right away.
        let is_held = word.state == State::PreparedToHold;
        let counts = if is_held { word.counts(0x01_01_01_01_01) } else { word.counts(0) };
        for place in 0..words_of(word.pending) {
            let at = layout.counts(number, place);
            cells.store_release(at, counts, step!("group.counts.store"));
        }
    }

    /// Moves the frontier back or forward after a loss of messages. Claimed indexes at or after it
    /// hold no message any more: returns how many of those were unacknowledged.
    pub fn move_to(
        &self,
        frontier: Frontier,
        to: u64,
        step: u64,
        owner: u16,
    ) -> Result<u64, NotClaimed> {
        let mut lost = 0;
        for seen in self.in_use().ok_or(NotClaimed::Damaged)? {
            let kept = to.saturating_sub(seen.first) / step.max(1);
            let kept = u32::try_from(kept).unwrap_or(u32::MAX).min(u32::BITS);
            let left = u32::MAX.checked_shr(u32::BITS - kept).unwrap_or(0) & seen.word.pending;
            if seen.is_linked && left != seen.word.pending {
                let word = Word { pending: left, ..seen.word };
                let word = if left == 0 { word.freed() } else { word };
                if self.swap(seen.number, seen.word, word, step!("group.end.cas")) {
                    lost += u64::from((seen.word.pending & !left).count_ones());
                }
            }
        }
        let range = Range { first: to, count: 0, next: to, key: 0 };
        self.offer(frontier, range, owner, &mut 0).map(|_| lost)
    }

    /// Steps 3 and 4.
    pub fn link(&self, frontier: Frontier, number: u32, word: Word) -> Result<Newest, NotClaimed> {
        self.complete_newest(frontier.newest);
        let (old, new) = (frontier.newest, frontier.newest.followed_by(number));
        let step = step!("group.frontier.cas");
        if self.cells.swap_acq_rel(self.layout.frontier, old.0, new.0, step).is_err() {
            self.swap(number, word, word.freed(), step!("group.unprepare.cas"));
            return Err(NotClaimed::Moved);
        }
        Ok(new)
    }

    /// Step 3. The state is loaded before the newest is checked again: a claim that is no longer
    /// the newest may have been prepared once more, and then is not linked.
    fn complete_newest(&self, newest: Newest) {
        let Some(number) = newest.claim().filter(|number| *number < self.layout.count) else {
            return;
        };
        if let Some(found) = self.word(number).filter(|word| word.is_prepared())
            && self.newest() == newest
        {
            self.complete(number, found);
        }
    }

    /// Step 5, for a claim that is or was linked.
    fn complete(&self, number: u32, prepared: Word) {
        self.swap(number, prepared, prepared.linked(), step!("group.complete.cas"));
    }

    /// Settles a claim whose owner died after preparing it: it is either linked or free.
    pub fn settle(&self, number: u32, found: Word) {
        if found.is_prepared() {
            let is_linked = self.newest().claim() == Some(number);
            let word = if is_linked { found.linked() } else { found.freed() };
            self.swap(number, found, word, step!("group.settle.cas"));
        }
    }

    /// Every claim in use; None if the side file is damaged.
    #[must_use]
    pub fn in_use(&self) -> Option<Vec<Seen>> {
        let high = self.cells.load_acquire(self.layout.high);
        let high = u32::try_from(high).ok().filter(|high| *high <= self.layout.count)?;
        let mut found = Vec::new();
        for number in 0..high {
            if let Some(seen) = self.seen(number)? {
                found.push(seen);
            }
        }
        Some(found)
    }

    /// A claim, unless it is free; None if the side file is damaged.
    #[allow(clippy::option_option)]
    fn seen(&self, number: u32) -> Option<Option<Seen>> {
        let load = |at| self.cells.load_acquire(at);
        loop {
            let word = self.word(number)?;
            if word.state == State::Free {
                return Some(None);
            }
            // A claim is completed before another becomes the newest. So if this one is still
            // prepared after the newest was read, it was not linked then, unless it is the newest.
            let is_linked = !word.is_prepared() || self.newest().claim() == Some(number);
            let seen = Seen {
                number,
                word,
                first: load(self.layout.first(number)),
                next: load(self.layout.next(number)),
                key: load(self.layout.key(number)),
                is_linked,
            };
            // The state is unchanged, so the values belong to this use of the claim.
            if self.word(number)? == word {
                return Some(Some(seen));
            }
        }
    }

    /// Takes a claim, as it was seen, for `owner`; None if it has changed since.
    #[must_use]
    pub fn take(&self, seen: &Seen, owner: u16, lease: Lease, cause: Cause) -> Option<Claim> {
        // The owner lost it while working on it: any of its messages may be the cause.
        let singly = seen.word.singly || seen.word.state == State::Held;
        let word = Word { singly, ..seen.word.owned(owner, State::Held) };
        let number = seen.number;
        if !self.swap(number, seen.word, word, step!("group.take.cas")) {
            return None;
        }
        self.stamp(self.layout.deadline(number), number, word, lease.deadline_ms);
        self.stamp(self.layout.since(number), number, word, lease.since_ms);
        // From here on this member owns it, and its range is fixed. If the slot was reused and the
        // state happens to be the same, the range differs from the one that was seen.
        let first = self.cells.load_acquire(self.layout.first(number));
        if first != seen.first {
            let key = ClaimKey { slot: number, generation: word.generation, first };
            let _ = self.give_back(&key, owner, cause, 0);
            return None;
        }
        let counts = self.counts(number, word, 0);
        let hash = seen.key;
        let claim = Claim::new(number, first, word);
        Some(Claim { is_counted: false, counts, hash, cause, ..claim })
    }

    /// How often each message of a claim was delivered, with one more for those in `delivered`. The
    /// words now belong to this ownership: counts that an earlier owner still stores have no
    /// effect.
    pub(super) fn counts(
        &self,
        number: u32,
        word: Word,
        delivered: u32,
    ) -> [u8; MESSAGES as usize] {
        let mut found = [0; MESSAGES as usize];
        for (part, counts) in (0..words_of(word.pending)).zip(found.chunks_mut(COUNTS)) {
            let at = self.layout.counts(number, part);
            let bits = delivered.checked_shr(part * COUNTS_PER_WORD).unwrap_or(0);
            loop {
                let old = self.cells.load_acquire(at);
                let wanted = (0..COUNTS_PER_WORD).filter(|place| bits >> place & 1 == 1);
                let new = word.counts(wanted.fold(old, word::counted));
                if self.cells.swap_acq_rel(at, old, new, step!("group.counts.cas")).is_ok() {
                    for (place, count) in (0..).zip(counts) {
                        *count = word::count_in(new, place);
                    }
                    break;
                }
            }
        }
        found
    }

    /// Acknowledges messages of a claim; returns those that were pending, 0 if the claim was lost.
    #[must_use]
    pub fn acknowledge(&self, key: &ClaimKey, owner: u16, messages: u32) -> u32 {
        self.change(key, owner, |word| match word.pending & !messages {
            0 => word.freed(),
            pending => Word { pending, ..word },
        })
        .map_or(0, |word| word.pending & messages)
    }

    /// The state of a claim, if `owner` holds it.
    pub(super) fn held(&self, key: &ClaimKey, owner: u16) -> Option<Word> {
        if key.slot >= self.layout.count {
            return None;
        }
        let is_first = |_: &Word| self.cells.load_acquire(self.layout.first(key.slot)) == key.first;
        self.word(key.slot)
            .filter(|word| word.state == State::Held && word.owner == owner)
            .filter(|word| word.generation == key.generation)
            .filter(is_first)
    }

    /// Whether `owner` holds a claim.
    #[must_use]
    pub fn is_held(&self, key: &ClaimKey, owner: u16) -> bool {
        self.held(key, owner).is_some()
    }

    /// Changes the state of a claim that `owner` holds; returns the previous state.
    ///
    /// The owner makes one call at a time, and no other process can act as this owner. So between
    /// the check of the first message and the compare-and-swap, the owner may lose the slot, but
    /// cannot hold it again for another claim.
    pub(super) fn change(
        &self,
        key: &ClaimKey,
        owner: u16,
        new: impl Fn(Word) -> Word,
    ) -> Option<Word> {
        loop {
            let found = self.held(key, owner)?;
            if self.swap(key.slot, found, new(found), step!("group.change.cas")) {
                return Some(found);
            }
        }
    }

    /// Offers the claims of member `owner`, which left or died, to all members.
    pub fn end_of_member(&self, owner: u16, is_dead: bool) {
        for seen in self.in_use().unwrap_or_default() {
            if seen.word.owner != owner {
                continue;
            }
            self.settle(seen.number, seen.word);
            let Some(word) = self.word(seen.number) else { continue };
            if word.state == State::Held && word.owner == owner {
                let cause = if is_dead { Cause::Died } else { Cause::Closed };
                let singly = word.singly || is_dead;
                let _ =
                    self.offer_again(seen.number, word, Offer { cause, available_ms: 0, singly });
            }
        }
    }

    pub(super) fn word(&self, number: u32) -> Option<Word> {
        Word::parse(self.cells.load_acquire(self.layout.state(number)))
    }

    pub(super) fn swap(&self, number: u32, old: Word, new: Word, step: Step) -> bool {
        let at = self.layout.state(number);
        self.cells.swap_acq_rel(at, old.encode(), new.encode(), step).is_ok()
    }
}

pub(super) const COUNTS: usize = COUNTS_PER_WORD as usize;

/// How many count words a claim with this many messages has.
pub(super) const fn words_of(pending: u32) -> u32 {
    (u32::BITS - pending.leading_zeros()).div_ceil(COUNTS_PER_WORD)
}
