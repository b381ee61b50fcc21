//! The words that change by compare-and-swap: a claim's state, its deadline, and the frontier.

/// The most messages in a claim: each has a bit.
pub const MESSAGES: u32 = 32;

const OWNER_SHIFT: u32 = 32;
const OWNER_MASK: u64 = (1 << 10) - 1;
const GENERATION_SHIFT: u32 = 42;
const GENERATION_MASK: u64 = (1 << 18) - 1;
const SINGLY: u64 = 1 << 60;
const STATE_SHIFT: u32 = 61;

/// The bits of a generation that are stored in words beside the state.
const TAG_GENERATIONS: u32 = (1 << 11) - 1;
/// Delivery counts per word, of eight bits each.
pub const COUNTS_PER_WORD: u32 = 5;
const COUNT_BITS: u32 = 8;
const COUNTS_MASK: u64 = (1 << (COUNTS_PER_WORD * COUNT_BITS)) - 1;

/// The bits of a time, or of another value, in a word that belongs to one ownership.
const STAMP_BITS: u32 = 43;
/// The latest time, about 278 years after boot or after 1970.
const LATEST_MS: u64 = (1 << STAMP_BITS) - 1;
const SLOT_BITS: u32 = 24;
const NO_CLAIM: u64 = (1 << SLOT_BITS) - 1;

/// The phase of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Not in use.
    Free,
    /// Being filled in by its owner, which holds it once it is linked.
    PreparedToHold,
    /// Being filled in by its owner; open to any member once it is linked.
    PreparedToOffer,
    /// Its owner is working on its messages.
    Held,
    /// Any member may take it.
    Offered,
}

/// The state of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word {
    pub state: State,
    /// Whether its messages are delivered one at a time, because an owner lost it while working on
    /// it.
    pub singly: bool,
    /// Changes with each owner, and when an owner renews its deadline.
    pub generation: u32,
    pub owner: u16,
    /// A bit for each unacknowledged message.
    pub pending: u32,
}

impl Word {
    /// The parts of a word; None if the word is no valid state.
    #[must_use]
    pub fn parse(word: u64) -> Option<Self> {
        let state = match word >> STATE_SHIFT {
            0 => State::Free,
            1 => State::PreparedToHold,
            2 => State::PreparedToOffer,
            3 => State::Held,
            4 => State::Offered,
            _ => return None,
        };
        #[allow(clippy::cast_possible_truncation)] // masked
        Some(Self {
            state,
            singly: word & SINGLY != 0,
            generation: (word >> GENERATION_SHIFT & GENERATION_MASK) as u32,
            owner: (word >> OWNER_SHIFT & OWNER_MASK) as u16,
            pending: word as u32,
        })
    }

    #[must_use]
    pub fn encode(self) -> u64 {
        (self.state as u64) << STATE_SHIFT
            | u64::from(self.singly) << SINGLY.trailing_zeros()
            | u64::from(self.generation) << GENERATION_SHIFT
            | u64::from(self.owner) << OWNER_SHIFT
            | u64::from(self.pending)
    }

    /// The state when it is not in use.
    #[must_use]
    pub const fn freed(self) -> Self {
        Self { state: State::Free, singly: false, owner: 0, pending: 0, ..self }
    }

    /// The state with a new owner.
    #[must_use]
    pub const fn owned(self, owner: u16, state: State) -> Self {
        #[allow(clippy::cast_possible_truncation)] // the mask has 18 bits
        let generation = (self.generation + 1) & GENERATION_MASK as u32;
        Self { state, generation, owner, ..self }
    }

    /// The state before its owner renewed it.
    #[must_use]
    pub const fn renewed_from(self) -> Self {
        #[allow(clippy::cast_possible_truncation)] // the mask has 18 bits
        let generation = self.generation.wrapping_sub(1) & GENERATION_MASK as u32;
        Self { generation, ..self }
    }

    /// Whether it had not been linked when it was stored.
    #[must_use]
    pub const fn is_prepared(self) -> bool {
        matches!(self.state, State::PreparedToHold | State::PreparedToOffer)
    }

    /// The state of a prepared claim once it is linked.
    #[must_use]
    pub const fn linked(self) -> Self {
        match self.state {
            _ if self.pending == 0 => self.freed(), // it only moved the frontier
            State::PreparedToHold => Self { state: State::Held, ..self },
            State::PreparedToOffer => Self { state: State::Offered, owner: 0, ..self },
            _ => self,
        }
    }

    /// The tag that distinguishes this ownership from earlier ones.
    const fn tag(self) -> u64 {
        ((self.generation & TAG_GENERATIONS) as u64) << 10 | self.owner as u64
    }

    /// A word of delivery counts as this ownership stores it.
    #[must_use]
    pub const fn counts(self, counts: u64) -> u64 {
        self.tag() << (COUNTS_PER_WORD * COUNT_BITS) | counts & COUNTS_MASK
    }

    /// A word that belongs to this ownership: a time in milliseconds, or another value.
    #[must_use]
    pub fn stamped(self, value: u64) -> u64 {
        self.tag() << STAMP_BITS | value.min(LATEST_MS)
    }

    /// The value of a stamped word; None if it belongs to an earlier ownership.
    #[must_use]
    pub fn stamp_of(self, word: u64) -> Option<u64> {
        let is_own = word >> STAMP_BITS == self.tag();
        is_own.then_some(word & LATEST_MS)
    }
}

/// Why messages are delivered again: how the last owner of their claim lost it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Not recorded: there was no owner yet, or it was of an earlier version.
    Unknown,
    /// The owner refused them.
    Refused,
    /// The owner did not acknowledge them in time.
    TimedOut,
    /// The owner's process died.
    Died,
    /// The owner left the group.
    Closed,
    /// They were taken from the owner from outside.
    Released,
}

impl Cause {
    /// All of them, each at its number.
    const ALL: [Self; 6] =
        [Self::Unknown, Self::Refused, Self::TimedOut, Self::Died, Self::Closed, Self::Released];

    /// The cause of a stored number.
    #[must_use]
    pub fn numbered(number: u64) -> Self {
        let place = usize::try_from(number).unwrap_or(usize::MAX);
        Self::ALL.get(place).copied().unwrap_or(Self::Unknown)
    }

    /// The name shown to users; None if it is unknown.
    #[must_use]
    pub const fn name(self) -> Option<&'static str> {
        match self {
            Self::Unknown => None,
            Self::Refused => Some("refused"),
            Self::TimedOut => Some("timed out"),
            Self::Died => Some("consumer died"),
            Self::Closed => Some("consumer closed"),
            Self::Released => Some("released"),
        }
    }
}

/// The delivery count at a place in a word; it stays at 255.
#[must_use]
pub const fn count_in(counts: u64, place: u32) -> u8 {
    (counts >> (place * COUNT_BITS)).to_le_bytes()[0]
}

/// The word with one more delivery at a place.
#[must_use]
pub const fn counted(counts: u64, place: u32) -> u64 {
    if count_in(counts, place) == u8::MAX { counts } else { counts + (1 << (place * COUNT_BITS)) }
}

/// The newest claim, and how often it changed. A new side file has 0: no claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Newest(pub u64);

impl Newest {
    /// The number of the claim.
    #[must_use]
    pub fn claim(self) -> Option<u32> {
        let number = self.0 & NO_CLAIM;
        u32::try_from(number).ok().and_then(|number| number.checked_sub(1))
    }

    /// How often it changed.
    #[must_use]
    pub const fn changes(self) -> u64 {
        self.0 >> SLOT_BITS
    }

    /// The word after a change to another claim.
    #[must_use]
    pub const fn followed_by(self, claim: u32) -> Self {
        let changes = (self.0 >> SLOT_BITS).wrapping_add(1);
        Self(changes << SLOT_BITS | (claim as u64 + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORD: Word = Word {
        state: State::Held,
        singly: true,
        generation: (1 << 18) - 1,
        owner: 1023,
        pending: 0x8000_0001,
    };

    #[test]
    fn a_word_keeps_its_parts() {
        assert_eq!(Word::parse(WORD.encode()), Some(WORD));
        assert_eq!(Word::parse(0).map(|word| word.state), Some(State::Free));
        assert_eq!(Word::parse(u64::MAX), None);
    }

    #[test]
    fn a_generation_wraps() {
        let next = WORD.owned(3, State::Held);
        assert_eq!((next.generation, next.owner, next.pending), (0, 3, WORD.pending));
    }

    #[test]
    fn a_stamp_belongs_to_one_ownership() {
        let stamp = WORD.stamped(12_345);
        assert_eq!(WORD.stamp_of(stamp), Some(12_345));
        assert_eq!(WORD.owned(1023, State::Held).stamp_of(stamp), None);
        assert_eq!(WORD.stamp_of(WORD.stamped(u64::MAX)), Some(LATEST_MS));
    }

    #[test]
    fn a_cause_has_its_number() {
        for cause in Cause::ALL {
            assert_eq!(Cause::numbered(cause as u64), cause);
        }
        assert_eq!(Cause::numbered(u64::MAX), Cause::Unknown);
    }

    #[test]
    fn counts_do_not_run_over() {
        let counts = (0..300).fold(WORD.counts(0), |counts, _| counted(counts, 2));
        let found: Vec<u8> = (0..COUNTS_PER_WORD).map(|place| count_in(counts, place)).collect();
        assert_eq!(found, [0, 0, 255, 0, 0]);
        assert_eq!(WORD.counts(counts), counts);
    }

    #[test]
    fn the_newest_claim_is_counted() {
        assert_eq!(Newest(0).claim(), None);
        let first = Newest(0).followed_by(0);
        assert_eq!(first.claim(), Some(0));
        assert_ne!(first.followed_by(7).followed_by(0), first);
    }
}
