//! The side file of a group: a header, its members, and its claims.

/// The first word of a side file.
pub const MAGIC: u64 = u64::from_le_bytes(*b"QuireGrp");
pub const VERSION: u64 = 2;
/// The suffix of a side file's name, after the group's name.
pub const SUFFIX: &str = ".qgroup";

pub const MAGIC_AT: u64 = 0;
pub const VERSION_AT: u64 = 8;
/// 1 if the group keeps the order of keys.
pub const KEYED_AT: u64 = 16;
/// The distance from the index of a message to the next.
pub const STEP_AT: u64 = 24;
/// The index at which a new group starts; 0 is the first message.
pub const START_AT: u64 = 32;
/// A checksum of the fields above, which never change.
pub const SUM_AT: u64 = 40;
/// Nonzero once another file is to replace this one.
pub const RETIRED_AT: u64 = 48;
/// Messages before this index may have been delivered by a state whose counts are lost.
pub const KNOWN_AT: u64 = 56;
/// The number of the newest claim, and a count of changes.
const FRONTIER_AT: u64 = 64;
/// Nonzero while a sink keeps the file for its source: no member may join.
pub const KEPT_AT: u64 = 72;
/// One more than the highest claim number ever used.
const HIGH_AT: u64 = 128;

/// Tail records, the indexes and hashes of claims' last messages: each level holds the newest of
/// every 16th record of the level below.
const TAILS_AT: u64 = 192;
const TAIL_LEN: u64 = 32;
pub const TAIL_LEVELS: u64 = 7;
pub const TAILS_PER_LEVEL: u64 = 16;

const MEMBERS_AT: u64 = 4096;
const MEMBER_LEN: u64 = 64;
pub const MEMBERS: u16 = 1024;
/// A member's record: its pid, the length of its name, and its name.
pub const NAME_MAX: usize = 48;

const CLAIMS_AT: u64 = MEMBERS_AT + MEMBERS as u64 * MEMBER_LEN;
const CLAIM_LEN: u64 = 128;
pub const CLAIMS: u32 = 8192;

pub const FILE_LEN: u64 = CLAIMS_AT + CLAIMS as u64 * CLAIM_LEN;

/// Members lock bytes beyond the end of the file.
const LIVENESS_START: i64 = 1 << 40;
/// The byte that is locked while the file is replaced.
pub const CHANGE_LOCK: i64 = LIVENESS_START - 1;

/// The byte that a member keeps locked while it lives.
#[must_use]
pub const fn liveness_byte(member: u16) -> i64 {
    LIVENESS_START + member as i64
}

/// The position of a tail record: a message's index, its hash, and a checksum of both.
#[must_use]
pub const fn tail_at(level: u64, number: u64) -> u64 {
    TAILS_AT + (level * TAILS_PER_LEVEL + number) * TAIL_LEN
}

/// The checksum of a tail record.
#[must_use]
pub fn tail_sum(index: u64, hash: u64) -> u64 {
    sum(VERSION, index, hash, TAILS_AT)
}

/// The position of a member's record.
#[must_use]
pub const fn member_at(member: u16) -> u64 {
    MEMBERS_AT + member as u64 * MEMBER_LEN
}

/// The checksum of the fields that never change.
#[must_use]
pub fn sum(version: u64, keyed: u64, step: u64, start: u64) -> u64 {
    [MAGIC, version, keyed, step, start].iter().fold(0, |sum: u64, field| {
        (sum ^ field).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29)
    })
}

/// Where the words of claims are. Model checks use fewer claims at other positions.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    pub start: u64,
    pub frontier: u64,
    pub high: u64,
    pub claims: u64,
    pub count: u32,
}

impl Layout {
    /// The layout of side files.
    pub const FILE: Self = Self {
        start: START_AT,
        frontier: FRONTIER_AT,
        high: HIGH_AT,
        claims: CLAIMS_AT,
        count: CLAIMS,
    };

    /// The state of a claim.
    #[must_use]
    pub const fn state(&self, claim: u32) -> u64 {
        self.claims + claim as u64 * CLAIM_LEN
    }

    /// When a claim expires unless its messages are acknowledged.
    #[must_use]
    pub const fn deadline(&self, claim: u32) -> u64 {
        self.state(claim) + 8
    }

    /// The index of a claim's first message.
    #[must_use]
    pub const fn first(&self, claim: u32) -> u64 {
        self.state(claim) + 16
    }

    /// The index after a claim's last message, where the next claim starts.
    #[must_use]
    pub const fn next(&self, claim: u32) -> u64 {
        self.state(claim) + 24
    }

    /// The hash of the key of a claim's only message.
    #[must_use]
    pub const fn key(&self, claim: u32) -> u64 {
        self.state(claim) + 32
    }

    /// When messages of a claim were last delivered, by the wall clock.
    #[must_use]
    pub const fn since(&self, claim: u32) -> u64 {
        self.state(claim) + 40
    }

    /// When a claim that was offered again may be taken, by the wall clock.
    #[must_use]
    pub const fn available(&self, claim: u32) -> u64 {
        self.state(claim) + 48
    }

    /// Why a claim was offered again.
    #[must_use]
    pub const fn cause(&self, claim: u32) -> u64 {
        self.state(claim) + 56
    }

    /// A word of delivery counts, for five messages.
    #[must_use]
    pub const fn counts(&self, claim: u32, word: u32) -> u64 {
        self.state(claim) + 64 + word as u64 * 8
    }
}
