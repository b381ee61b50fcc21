//! Where each field of `replicas.quire` lies. All words are little-endian and aligned.

/// The first word, which also is the version.
pub const MAGIC: u64 = u64::from_le_bytes(*b"QuireRp1");
pub const MAGIC_AT: u64 = 0;
/// The boot of the machine that the file is about: content of an earlier boot is invalid.
pub const BOOT_AT: u64 = 8;
/// When the lease ends, in nanoseconds since the machine's boot; 0: no lease is needed.
pub const LEASE_AT: u64 = 16;
/// The number of the source's epoch.
pub const EPOCH_AT: u64 = 24;
/// One more than the index up to which another machine has the messages, because this one received
/// them from it; 0: unknown.
pub const ELSEWHERE_AT: u64 = 32;
/// How often messages were removed from the queue's end; 0 in files of earlier versions.
pub const CUTS_AT: u64 = 40;
/// The 32-bit word by which waiters for acknowledgements sleep, as in `waiting/word.rs`.
pub const WORD_AT: u64 = 64;

/// The most replicas that are stored.
pub const SLOTS: u64 = 64;
/// The longest name, and the longest address, in bytes.
pub const TEXT_MAX: usize = 200;
const SLOTS_AT: u64 = 4096;
const SLOT_LEN: u64 = 512;
/// The length of the file.
pub const LEN: u64 = SLOTS_AT + SLOTS * SLOT_LEN;

/// [`FREE`], [`OBSERVER`] or [`MEMBER`].
pub const STATE: u64 = 0;
/// A sequence lock for the texts: odd while they change.
pub const VERSION: u64 = 8;
/// 1 while it is connected.
pub const CONNECTED: u64 = 16;
/// 1 if what it acknowledges is on its medium.
pub const SYNCED: u64 = 24;
/// The index of the last message it has acknowledged; -1 before the first.
pub const ACKNOWLEDGED: u64 = 32;
/// The index of the last message it was sent; -1 before the first.
pub const SENT: u64 = 40;
/// When its last acknowledged message was sent, in nanoseconds since 1970.
pub const TIME: u64 = 48;
/// Two texts: a length, and the bytes.
pub const NAME: u64 = 64;
pub const ADDRESS: u64 = 288;
const _: () = assert!(ADDRESS >= NAME + 8 + TEXT_MAX as u64);
const _: () = assert!(SLOT_LEN >= ADDRESS + 8 + TEXT_MAX as u64);

/// The slot is free.
pub const FREE: u64 = 0;
/// A replica that is not in sync: appends do not wait for it.
pub const OBSERVER: u64 = 1;
/// A member of the in-sync set.
pub const MEMBER: u64 = 2;

/// Before the first message.
pub const NO_INDEX: u64 = u64::MAX;

/// Where a field of a slot lies.
#[must_use]
pub const fn at(slot: u64, field: u64) -> u64 {
    SLOTS_AT + slot * SLOT_LEN + field
}
