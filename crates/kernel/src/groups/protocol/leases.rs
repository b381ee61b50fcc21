//! Leases: until when an owner has a claim, and how a claim is offered again.
//!
//! The words for this are stamped with the owner and the generation of the state that they belong
//! to, so those of an earlier ownership say nothing. A state changes before the words that go with
//! it, except when a claim is offered: these are stored first, for the generation that comes next.

use super::claims::{COUNTS, ClaimKey, Claims, Seen, words_of};
use crate::groups::format::word::{self, Cause, MESSAGES, State, Word};
use crate::probe::fault::step;

/// The period for which an owner holds a claim's messages.
#[derive(Clone, Copy, Debug)]
pub struct Lease {
    /// In epoch milliseconds.
    pub since_ms: u64,
    /// In milliseconds of the monotonic clock.
    pub deadline_ms: u64,
}

/// How a claim is offered again.
#[derive(Clone, Copy, Debug)]
pub struct Offer {
    pub cause: Cause,
    /// No member may take it before this time, in epoch milliseconds; 0: at once.
    pub available_ms: u64,
    /// Whether its messages are then delivered one at a time.
    pub singly: bool,
}

impl Claims<'_> {
    /// Stores a value for the ownership of `word`, unless that has ended.
    ///
    /// The member that ends it changes the state first, and such words afterwards. So if the word
    /// at `at` is unchanged since before the state was checked, it is older than any later
    /// ownership.
    pub(super) fn stamp(&self, at: u64, number: u32, word: Word, value: u64) {
        self.stamp_for(at, number, word, word.stamped(value));
    }

    pub(super) fn stamp_for(&self, at: u64, number: u32, word: Word, stamped: u64) {
        loop {
            let old = self.cells.load_acquire(at);
            if self.word(number) != Some(word)
                || self.cells.swap_acq_rel(at, old, stamped, step!("group.stamp.cas")).is_ok()
            {
                return;
            }
        }
    }

    /// Counts messages of a claim as delivered and renews its lease. Returns its new key; None if
    /// it was lost to another member.
    #[must_use]
    pub fn deliver(
        &self,
        key: &ClaimKey,
        owner: u16,
        messages: u32,
        lease: Lease,
    ) -> Option<ClaimKey> {
        let (_, word) = self.renew(key, owner, lease.deadline_ms)?;
        self.stamp(self.layout.since(key.slot), key.slot, word, lease.since_ms);
        self.counts(key.slot, word, messages);
        Some(ClaimKey { generation: word.generation, ..*key })
    }

    /// Lengthens the lease of a claim. Returns its new key; None if it was lost to another member.
    #[must_use]
    pub fn extend(&self, key: &ClaimKey, owner: u16, deadline_ms: u64) -> Option<ClaimKey> {
        let (old, word) = self.renew(key, owner, deadline_ms)?;
        let at = self.layout.since(key.slot);
        if let Some(since_ms) = old.stamp_of(self.cells.load_acquire(at)) {
            self.stamp(at, key.slot, word, since_ms);
        }
        Some(ClaimKey { generation: word.generation, ..*key })
    }

    /// Moves the deadline of a claim that `owner` holds, unless it is later. Returns the former
    /// state and the new one.
    fn renew(&self, key: &ClaimKey, owner: u16, deadline_ms: u64) -> Option<(Word, Word)> {
        // A new generation: a member that saw the old deadline pass can no longer take the claim.
        let old = self.change(key, owner, |word| word.owned(owner, State::Held))?;
        let word = old.owned(owner, State::Held);
        let at = self.layout.deadline(key.slot);
        loop {
            // Loaded again if another process extends the lease meanwhile, so that its extension is
            // kept.
            let found = self.cells.load_acquire(at);
            let former_ms = old.stamp_of(found).or_else(|| word.stamp_of(found)).unwrap_or(0);
            let stamped = word.stamped(deadline_ms.max(former_ms));
            if self.word(key.slot) != Some(word)
                || self.cells.swap_acq_rel(at, found, stamped, step!("group.stamp.cas")).is_ok()
            {
                return Some((old, word));
            }
        }
    }

    /// Lengthens the lease of a claim from outside, without its owner. None if the claim has
    /// changed since it was seen; false if a member may have seen its deadline pass.
    #[must_use]
    pub fn extend_for_owner(
        &self,
        seen: &Seen,
        deadline_ms: u64,
        now_ms: impl Fn() -> u64,
    ) -> Option<bool> {
        let at = self.layout.deadline(seen.number);
        let old = self.cells.load_acquire(at);
        let former_ms = seen.word.stamp_of(old)?;
        if former_ms <= now_ms() {
            return Some(false);
        }
        let new = seen.word.stamped(deadline_ms.max(former_ms));
        self.cells.swap_acq_rel(at, old, new, step!("group.stamp.cas")).ok()?;
        let now = self.word(seen.number)?;
        if (now.state, now.owner, now.generation)
            != (seen.word.state, seen.word.owner, seen.word.generation)
        {
            return None;
        }
        Some(former_ms > now_ms())
    }

    /// Whether a held claim has timed out. If its owner has not stored a deadline, it gets this
    /// one.
    #[must_use]
    pub fn is_overdue(&self, seen: &Seen, now_ms: u64, deadline_ms: u64) -> bool {
        let at = self.layout.deadline(seen.number);
        let found = self.cells.load_acquire(at);
        if let Some(deadline) = seen.word.stamp_of(found) {
            return deadline <= now_ms;
        }
        // Its owner is just renewing it: keep the former deadline if later.
        let former_ms = seen.word.renewed_from().stamp_of(found).unwrap_or(0);
        let deadline = seen.word.stamped(deadline_ms.max(former_ms));
        let _ = self.cells.swap_acq_rel(at, found, deadline, step!("group.deadline.cas"));
        false
    }

    /// Whether an offered claim may be taken, at a time in epoch milliseconds.
    #[must_use]
    pub fn is_available(&self, seen: &Seen, now_ms: u64) -> bool {
        self.available_ms(seen).is_none_or(|available_ms| available_ms <= now_ms)
    }

    /// When an offered claim may be taken, in epoch milliseconds.
    #[must_use]
    pub fn available_ms(&self, seen: &Seen) -> Option<u64> {
        seen.word.stamp_of(self.cells.load_acquire(self.layout.available(seen.number)))
    }

    /// Why a claim was offered again.
    #[must_use]
    pub fn cause(&self, seen: &Seen) -> Cause {
        let stored = self.cells.load_acquire(self.layout.cause(seen.number));
        seen.word.stamp_of(stored).map_or(Cause::Unknown, Cause::numbered)
    }

    /// When messages of a claim were last delivered, in epoch milliseconds.
    #[must_use]
    pub fn since_ms(&self, seen: &Seen) -> Option<u64> {
        seen.word.stamp_of(self.cells.load_acquire(self.layout.since(seen.number)))
    }

    /// When a held claim times out, in milliseconds of the monotonic clock.
    #[must_use]
    pub fn deadline_ms(&self, seen: &Seen) -> Option<u64> {
        seen.word.stamp_of(self.cells.load_acquire(self.layout.deadline(seen.number)))
    }

    /// How often each message of a claim was delivered.
    #[must_use]
    pub fn counts_of(&self, seen: &Seen) -> [u8; MESSAGES as usize] {
        let mut found = [0; MESSAGES as usize];
        for (part, counts) in (0..words_of(seen.word.pending)).zip(found.chunks_mut(COUNTS)) {
            let word = self.cells.load_acquire(self.layout.counts(seen.number, part));
            for (place, count) in (0..).zip(counts) {
                *count = word::count_in(word, place);
            }
        }
        found
    }

    /// Offers a claim's pending messages to all members, from a time on; false if the claim was
    /// lost.
    #[must_use]
    pub fn give_back(&self, key: &ClaimKey, owner: u16, cause: Cause, available_ms: u64) -> bool {
        loop {
            let Some(found) = self.held(key, owner) else { return false };
            let offer = Offer { cause, available_ms, singly: found.singly };
            if self.offer_again(key.slot, found, offer) {
                return true;
            }
        }
    }

    /// Offers a claim whose state is `found` to all members; false if it has changed.
    #[must_use]
    pub fn offer_again(&self, number: u32, found: Word, offer: Offer) -> bool {
        // A new generation: the words below say nothing about an earlier offer.
        let word = Word { singly: offer.singly, ..found.owned(0, State::Offered) };
        let (available, cause) = (self.layout.available(number), self.layout.cause(number));
        self.stamp_for(available, number, found, word.stamped(offer.available_ms));
        self.stamp_for(cause, number, found, word.stamped(offer.cause as u64));
        let since = self.layout.since(number);
        if let Some(since_ms) = found.stamp_of(self.cells.load_acquire(since)) {
            self.stamp_for(since, number, found, word.stamped(since_ms));
        }
        self.swap(number, found, word, step!("group.offer.cas"))
    }
}
