//! Claims: ranges of messages that one member works on.
//!
//! A new claim goes on where the newest one ends. A member
//! 1. prepares a free claim: its state says who fills it in;
//! 2. stores where its range begins and ends, and its deadline: nobody else looks at them yet;
//! 3. completes the newest claim if its owner did not come to step 5;
//! 4. links its own as the newest, by compare-and-swap of the one word that names it. If another
//!    member was faster it starts over with the messages after that claim;
//! 5. completes its claim: it is held, or offered to all.
//!
//! A prepared claim is linked if it is the newest, and not otherwise, as step 3 precedes step 4. So a
//! member that died in between leaves no doubt about who has its messages.
//!
//! Each further change is one compare-and-swap of a claim's state: taking an offered claim, or one of
//! a member that died or whose time is over; acknowledging; offering it again. The state has a
//! generation, which changes with each owner: a member that lost its claim changes nothing any more.
//! A claim whose last message is acknowledged is free, but is not prepared again as long as it is the
//! newest: the next claim begins at its end.

use crate::groups::format::layout::Layout;
use crate::groups::format::word::{Newest, State, Word};
use crate::memory::Cells;
use crate::probe::fault::{Step, step};

/// Claims in a side file.
#[derive(Clone, Copy)]
pub struct Claims<'a> {
    cells: &'a Cells,
    layout: Layout,
}

/// Where new claims go on, as read at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frontier {
    pub newest: Newest,
    /// The index of the next message that nobody claimed, or 0 for the first.
    pub next: u64,
}

/// A range of messages to claim.
#[derive(Clone, Copy, Debug)]
pub struct Range {
    pub first: u64,
    /// 1 to 32.
    pub count: u32,
    /// The index after the last message.
    pub next: u64,
    /// The hash of the key, of a range of one message.
    pub key: u64,
}

/// Which claim of which owner. The generation alone comes again after 2,048 owners of a slot, which
/// is a matter of seconds: the first message never does as long as the claim is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClaimKey {
    pub slot: u32,
    pub generation: u16,
    /// The index of the first message, whether that is pending or not.
    pub first: u64,
}

/// A claim as one member owns it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    pub key: ClaimKey,
    /// The messages to work on.
    pub pending: u32,
    pub deliveries: u8,
}

/// A claim in use, as seen at one moment.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    pub number: u32,
    pub word: Word,
    pub first: u64,
    pub next: u64,
    pub key: u64,
    /// Whether it has messages that no other claim has: all but prepared ones do.
    pub is_linked: bool,
}

/// Why no range was claimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotClaimed {
    /// Another member was faster.
    Moved,
    /// All claims are in use.
    Full,
    /// The side file holds what no member stores.
    Damaged,
}

impl Claim {
    const fn new(slot: u32, first: u64, word: Word) -> Self {
        let Word { generation, pending, deliveries, .. } = word;
        Self { key: ClaimKey { slot, generation, first }, pending, deliveries }
    }
}

impl<'a> Claims<'a> {
    #[must_use]
    pub const fn new(cells: &'a Cells, layout: Layout) -> Self {
        Self { cells, layout }
    }

    /// Where new claims go on; None if the side file is damaged.
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
            // The newest claim is not prepared again: its end belongs to this very word.
            if self.newest() == newest {
                return Some(Frontier { newest, next });
            }
        }
    }

    fn newest(&self) -> Newest {
        Newest(self.cells.load_acquire(self.layout.frontier))
    }

    /// Claims a range that begins at `frontier` for `owner`, to be held until `deadline_ms`.
    pub fn hold(
        &self,
        frontier: Frontier,
        range: Range,
        owner: u16,
        deadline_ms: u64,
        from: &mut u32,
    ) -> Result<(Claim, Frontier), NotClaimed> {
        let (number, word) = self.prepare(owner, range, State::PreparedToHold, from)?;
        self.fill(number, word, range, deadline_ms);
        let newest = self.link(frontier, number, word)?;
        self.complete(number, word);
        Ok((Claim::new(number, range.first, word), Frontier { newest, next: range.next }))
    }

    /// Claims a range that begins at `frontier` for any member to take.
    pub fn offer(
        &self,
        frontier: Frontier,
        range: Range,
        owner: u16,
        from: &mut u32,
    ) -> Result<Frontier, NotClaimed> {
        let (number, word) = self.prepare(owner, range, State::PreparedToOffer, from)?;
        self.fill(number, word, range, 0);
        let newest = self.link(frontier, number, word)?;
        self.complete(number, word);
        Ok(Frontier { newest, next: range.next })
    }

    /// Step 1. The search begins at `from`, which is left after the claim that was found.
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
            // In this order: the state is loaded first, so that a claim that became the newest, and
            // then free, is seen as the newest.
            if found.state != State::Free || self.newest().claim() == Some(number) {
                continue;
            }
            let deliveries = u8::from(state == State::PreparedToHold);
            let pending = u32::MAX >> (u32::BITS - range.count.clamp(1, u32::BITS));
            let word = Word { deliveries, pending, ..found.owned(owner, state) };
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
    pub fn fill(&self, number: u32, word: Word, range: Range, deadline_ms: u64) {
        let (cells, layout) = (self.cells, &self.layout);
        let deadline = word.deadline(deadline_ms);
        cells.store_release(layout.deadline(number), deadline, step!("group.deadline.store"));
        cells.store_release(layout.first(number), range.first, step!("group.first.store"));
        cells.store_release(layout.next(number), range.next, step!("group.next.store"));
        cells.store_release(layout.key(number), range.key, step!("group.key.store"));
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

    /// Step 3. The state is loaded before the second look at the newest: a claim that is not the
    /// newest any more may be prepared again, and is not linked then.
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

    /// Step 5, of a claim that is linked, or was.
    fn complete(&self, number: u32, prepared: Word) {
        self.swap(number, prepared, prepared.linked(), step!("group.complete.cas"));
    }

    /// Decides about a claim that its owner prepared before it died: it is linked, or it is free.
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
            // A claim is completed before another becomes the newest: still prepared after a look
            // at the newest, it was not linked before that look unless it is the newest itself.
            let is_linked = !word.is_prepared() || self.newest().claim() == Some(number);
            let seen = Seen {
                number,
                word,
                first: load(self.layout.first(number)),
                next: load(self.layout.next(number)),
                key: load(self.layout.key(number)),
                is_linked,
            };
            // The same state: these are the values of this very use of the claim.
            if self.word(number)? == word {
                return Some(Some(seen));
            }
        }
    }

    /// Takes a claim that was seen for `owner`; None if it changed meanwhile.
    #[must_use]
    pub fn take(&self, seen: &Seen, owner: u16, deadline_ms: u64) -> Option<Claim> {
        let word = Word {
            deliveries: seen.word.deliveries.saturating_add(1),
            ..seen.word.owned(owner, State::Held)
        };
        let number = seen.number;
        if !self.swap(number, seen.word, word, step!("group.take.cas")) {
            return None;
        }
        let deadline = word.deadline(deadline_ms);
        self.cells.store_release(
            self.layout.deadline(number),
            deadline,
            step!("group.deadline.store"),
        );
        // It is this member's from here on, and its range stays. That of another use of the slot, in
        // which the state was the same by chance, is not the one that was looked at.
        let claim = Claim::new(number, self.cells.load_acquire(self.layout.first(number)), word);
        if claim.key.first != seen.first {
            let _ = self.give_back(&claim.key, owner);
            return None;
        }
        Some(claim)
    }

    /// Whether the time of a claim that is held is over. One whose owner did not come to store its
    /// deadline gets the one given.
    #[must_use]
    pub fn is_overdue(&self, seen: &Seen, now_ms: u64, deadline_ms: u64) -> bool {
        let at = self.layout.deadline(seen.number);
        let found = self.cells.load_acquire(at);
        if let Some(deadline) = seen.word.deadline_of(found) {
            return deadline <= now_ms;
        }
        let deadline = seen.word.deadline(deadline_ms);
        let _ = self.cells.swap_acq_rel(at, found, deadline, step!("group.deadline.cas"));
        false
    }

    /// Acknowledges messages of a claim; returns those that were pending, 0 if it was lost.
    #[must_use]
    pub fn acknowledge(&self, key: &ClaimKey, owner: u16, messages: u32) -> u32 {
        self.change(key, owner, |word| match word.pending & !messages {
            0 => word.freed(),
            pending => Word { pending, ..word },
        })
        .map_or(0, |word| word.pending & messages)
    }

    /// Offers what is pending of a claim to all members; false if it was lost.
    #[must_use]
    pub fn give_back(&self, key: &ClaimKey, owner: u16) -> bool {
        let offered = |word| Word { state: State::Offered, owner: 0, ..word };
        self.change(key, owner, offered).is_some()
    }

    /// Changes the state of a claim that `owner` holds; returns what it was.
    ///
    /// The owner makes one call at a time, and nobody else can make a claim its own: between the
    /// look at the first message and the compare-and-swap the slot may be lost, but not be the
    /// owner's in another use.
    fn change(&self, key: &ClaimKey, owner: u16, new: impl Fn(Word) -> Word) -> Option<Word> {
        if key.slot >= self.layout.count {
            return None;
        }
        loop {
            let found = self.word(key.slot)?;
            let is_held = found.state == State::Held
                && found.owner == owner
                && found.generation == key.generation
                && self.cells.load_acquire(self.layout.first(key.slot)) == key.first;
            if !is_held {
                return None;
            }
            if self.swap(key.slot, found, new(found), step!("group.change.cas")) {
                return Some(found);
            }
        }
    }

    /// Ends what a dead member with the number `owner` had: its claims are offered to all.
    pub fn end_of_member(&self, owner: u16) {
        for seen in self.in_use().unwrap_or_default() {
            if seen.word.owner != owner {
                continue;
            }
            self.settle(seen.number, seen.word);
            let Some(word) = self.word(seen.number) else { continue };
            if word.state == State::Held && word.owner == owner {
                let offered = Word { state: State::Offered, owner: 0, ..word };
                self.swap(seen.number, word, offered, step!("group.end.cas"));
            }
        }
    }

    fn word(&self, number: u32) -> Option<Word> {
        Word::parse(self.cells.load_acquire(self.layout.state(number)))
    }

    fn swap(&self, number: u32, old: Word, new: Word, step: Step) -> bool {
        let at = self.layout.state(number);
        self.cells.swap_acq_rel(at, old.encode(), new.encode(), step).is_ok()
    }
}
