//! Encryption of messages (`docs/encryption.md`): AES-256-GCM-SIV (RFC 8452), each message with a
//! key of its cycle, which is derived from a data key. Data keys lie beside the queue, wrapped by
//! keys that the user names.
//!
//! The index of a message and the queue's id are authenticated with it, so a moved message cannot
//! be decrypted. A nonce is counted up from a random start: should one repeat nevertheless,
//! as on a copy of a running machine, this cipher only reveals whether the same bytes were written
//! to the same index.

use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use aes_gcm_siv::aead::{AeadInPlace, KeyInit};
use aes_gcm_siv::{Aes256GcmSiv, Nonce, Tag};
use zeroize::Zeroizing;

use crate::chronicle::protocol::publish::Payload;
use crate::memory::secret::{Secret, wipe_stack};
use crate::os::clock::Clock;
use crate::{Error, Result};

/// The file of wrapped data keys beside the messages: a queue with it is encrypted.
pub const KEYS: &str = "keys.quire";
pub const KEY_LEN: usize = 32;
pub const QUEUE_ID_LEN: usize = 16;
const NONCE_LEN: usize = 12;
const TAG_LEN: usize = 16;
/// A wrapped data key: a nonce, the key, a tag.
pub const WRAPPED_LEN: usize = NONCE_LEN + KEY_LEN + TAG_LEN;

pub type Key = Zeroizing<[u8; KEY_LEN]>;
pub type QueueId = [u8; QUEUE_ID_LEN];

/// The start of an encrypted message: in `BinaryWire`, a type prefix with this name.
const MARKER: [u8; 10] = *b"\xb6\x08quire.e1";
/// The codes of the block of bytes that follows, which begins with its length.
const BLOCK: u8 = 0x82;
const BYTES: u8 = 0x8a;
const BLOCK_AT: usize = MARKER.len();
const NUMBER_AT: usize = BLOCK_AT + 6;
const NONCE_AT: usize = NUMBER_AT + 4;
const BODY_AT: usize = NONCE_AT + NONCE_LEN;
/// How much encryption lengthens a message.
pub const OVERHEAD: u64 = (BODY_AT + TAG_LEN) as u64;

const CYCLE_KEY: &str = "quire 2026-11-26 key of a cycle";
const HASH_KEY: &str = "quire 2026-11-28 key of hashes";
const WRAP: &[u8] = b"quire data key 1";
const MESSAGE: &[u8; 16] = b"quire message 1\0";

/// Nonces are counted for this many messages, then there is another random start.
const NONCES: u32 = 1 << 20;
/// At most this many ciphers of cycles are kept.
const KEPT: usize = 4;

/// A data key.
pub struct DataKey {
    pub number: u32,
    pub key: Secret<[u8; KEY_LEN]>,
}

/// Finds a data key that was added to a queue after it was opened, by its number.
pub type Added = Box<dyn Fn(&QueueId, u32) -> Option<DataKey> + Send + Sync>;

/// The number of a data key, a cycle, and the cipher with the key derived for both.
type OfCycle = (u32, i32, Arc<Secret<Aes256GcmSiv>>);

/// Encrypts and decrypts the messages of a queue.
pub struct Cipher {
    queue: QueueId,
    keys: RwLock<Vec<DataKey>>,
    /// Looks up data keys that another process has added meanwhile.
    added: Option<Added>,
    /// The number of the key to encrypt with; None for a read-only queue.
    current: Option<u32>,
    /// When the user's key that wraps `current` expires: no cycle is begun with it from then on.
    expires_ms: Option<i64>,
    /// Whether unencrypted messages may be read.
    allows_plain: bool,
    of_cycles: Mutex<Vec<OfCycle>>,
}

impl fmt::Debug for Cipher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cipher").field("current", &self.current).finish_non_exhaustive()
    }
}

/// Whether the messages of a queue are encrypted.
#[derive(Clone, Debug, Default)]
pub enum Encryption {
    #[default]
    No,
    By(Arc<Cipher>),
    /// Encrypted, but this process has no key: it can neither read nor append messages.
    WithoutKey,
}

impl Encryption {
    /// Whether messages are encrypted.
    #[inline]
    #[must_use]
    pub const fn is_on(&self) -> bool {
        !matches!(self, Self::No)
    }

    /// The cipher, if this process has a key.
    #[inline]
    #[must_use]
    pub fn cipher(&self) -> Option<&Cipher> {
        if let Self::By(cipher) = self { Some(cipher) } else { None }
    }

    /// Refuses to append plain messages to an encrypted queue.
    #[inline]
    pub fn check_key(&self, queue: &Path) -> Result<()> {
        if matches!(self, Self::WithoutKey) {
            return Err(Error::Encrypted { path: queue.to_path_buf() });
        }
        Ok(())
    }
}

/// The place of a message, which is authenticated with it but not stored.
#[derive(Clone, Copy)]
pub struct Place {
    pub cycle: i32,
    pub index: i64,
    pub is_metadata: bool,
}

impl Place {
    /// The place of a dictionary: in a cycle that no queue has, so that it gets a key of its own.
    #[must_use]
    pub fn of_dictionary(number: u32) -> Self {
        Self { cycle: i32::MIN, index: i64::from(number), is_metadata: false }
    }

    /// The place of staged data, which will become messages: in another cycle that no queue has.
    #[must_use]
    pub fn of_staged(number: i64) -> Self {
        Self { cycle: i32::MIN + 1, index: number, is_metadata: false }
    }
}

/// An appender's buffer for encryption, and its nonces.
#[derive(Default)]
pub struct Sealing {
    buffer: Vec<u8>,
    nonce: u128,
    left: u32,
    /// The cycle that the appender began before the key expired.
    cycle: Option<i32>,
}

impl Sealing {
    fn next_nonce(&mut self) -> Result<[u8; NONCE_LEN]> {
        if self.left == 0 {
            let mut start = [0; 16];
            random(&mut start)?;
            (self.nonce, self.left) = (u128::from_le_bytes(start), NONCES);
        }
        self.left -= 1;
        self.nonce = self.nonce.wrapping_add(1);
        let mut nonce = [0; NONCE_LEN];
        nonce.copy_from_slice(&self.nonce.to_le_bytes()[..NONCE_LEN]);
        Ok(nonce)
    }
}

impl Cipher {
    #[must_use]
    pub fn new(
        queue: QueueId,
        keys: Vec<DataKey>,
        current: Option<u32>,
        allows_plain: bool,
    ) -> Self {
        let (keys, of_cycles) = (RwLock::new(keys), Mutex::default());
        Self { queue, keys, added: None, current, expires_ms: None, allows_plain, of_cycles }
    }

    /// With a lookup for data keys that this process does not know yet.
    #[must_use]
    pub fn adding(self, added: Option<Added>) -> Self {
        Self { added, ..self }
    }

    /// With the expiry of the key to encrypt with, in epoch milliseconds.
    #[must_use]
    pub fn expiring(self, expires_ms: Option<i64>) -> Self {
        Self { expires_ms, ..self }
    }

    /// An error if the key has expired. An appender may still continue a cycle that it began in
    /// time.
    fn check_expiry(&self, cycle: i32, sealing: &mut Sealing) -> Result<()> {
        match self.expires_ms {
            Some(expired_ms) if Clock::System.exact_ms() >= expired_ms => {
                return Err(Error::KeyExpired { expired_ms });
            }
            _ => sealing.cycle = Some(cycle),
        }
        Ok(())
    }

    fn of_cycle(&self, number: u32, cycle: i32) -> Result<Arc<Secret<Aes256GcmSiv>>> {
        let kept = || self.of_cycles.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((.., found)) = kept().iter().rev().find(|it| (it.0, it.1) == (number, cycle)) {
            return Ok(Arc::clone(found));
        }
        let made = self.made(number, cycle);
        wipe_stack();
        let made = Arc::new(made?);
        let mut kept = kept();
        if kept.len() >= KEPT {
            kept.remove(0);
        }
        kept.push((number, cycle, Arc::clone(&made)));
        Ok(made)
    }

    /// Creates the cipher of a cycle, with a data key that may have been added meanwhile.
    fn made(&self, number: u32, cycle: i32) -> Result<Secret<Aes256GcmSiv>> {
        let known = self.keys.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(data_key) = known.iter().find(|it| it.number == number) {
            return self.derived(data_key, cycle);
        }
        drop(known);
        let added = self.added.as_ref().and_then(|find| find(&self.queue, number));
        let data_key = added.ok_or(Error::KeyMissing { number: Some(number) })?;
        let made = self.derived(&data_key, cycle);
        self.keys.write().unwrap_or_else(PoisonError::into_inner).push(data_key);
        made
    }

    #[inline(never)]
    fn derived(&self, data_key: &DataKey, cycle: i32) -> Result<Secret<Aes256GcmSiv>> {
        let mut hasher = blake3::Hasher::new_derive_key(CYCLE_KEY);
        hasher.update(data_key.key.as_slice());
        hasher.update(&self.queue);
        hasher.update(&cycle.to_le_bytes());
        let mut key: Key = Zeroizing::new([0; KEY_LEN]);
        hasher.finalize_xof().fill(key.as_mut_slice());
        Secret::new(cipher_of(&key))
    }

    /// A hash that reveals nothing without a key. It stays the same while the oldest known data key
    /// does, and so across rotations. None if no data key is known.
    #[must_use]
    pub fn keyed_hash(&self, content: &[u8]) -> Option<u64> {
        let keys = self.keys.read().unwrap_or_else(PoisonError::into_inner);
        let oldest = keys.iter().min_by_key(|it| it.number)?;
        let mut hasher = blake3::Hasher::new_derive_key(HASH_KEY);
        hasher.update(oldest.key.as_slice());
        hasher.update(&self.queue);
        let mut key: Key = Zeroizing::new([0; KEY_LEN]);
        hasher.finalize_xof().fill(key.as_mut_slice());
        let hash = blake3::keyed_hash(&key, content);
        hash.as_bytes().first_chunk().copied().map(u64::from_le_bytes)
    }

    fn authenticated(&self, place: Place, number: u32) -> [u8; 45] {
        let mut bytes = [0; 45];
        bytes[..16].copy_from_slice(MESSAGE);
        bytes[16..32].copy_from_slice(&self.queue);
        bytes[32..40].copy_from_slice(&place.index.to_le_bytes());
        bytes[40..44].copy_from_slice(&number.to_le_bytes());
        bytes[44] = u8::from(place.is_metadata);
        bytes
    }

    /// Encrypts a payload into an appender's buffer, in its stored form.
    pub fn seal<'b>(
        &self,
        place: Place,
        payload: Payload<'_>,
        sealing: &'b mut Sealing,
    ) -> Result<&'b [u8]> {
        let number = self.current.ok_or(Error::KeyMissing { number: None })?;
        if sealing.cycle != Some(place.cycle) {
            self.check_expiry(place.cycle, sealing)?;
        }
        let cipher = self.of_cycle(number, place.cycle)?;
        let nonce = sealing.next_nonce()?;
        let too_long = || Error::MessageTooLarge {
            length: payload.len(),
            limit: u64::from(u32::MAX) - OVERHEAD,
            block_bytes: 0,
        };
        let zeros = usize::try_from(payload.zeros).map_err(|_| too_long())?;
        let rest = payload.len() + OVERHEAD - NUMBER_AT as u64 + 1;
        let rest = u32::try_from(rest).map_err(|_| too_long())?;
        let buffer = &mut sealing.buffer;
        buffer.clear();
        buffer.extend_from_slice(&MARKER);
        buffer.push(BLOCK);
        buffer.extend_from_slice(&rest.to_le_bytes());
        buffer.push(BYTES);
        buffer.extend_from_slice(&number.to_le_bytes());
        buffer.extend_from_slice(&nonce);
        buffer.extend_from_slice(payload.head);
        buffer.extend_from_slice(payload.body);
        buffer.resize(buffer.len() + zeros, 0);
        let authenticated = self.authenticated(place, number);
        let tag = cipher
            .encrypt_in_place_detached(
                Nonce::from_slice(&nonce),
                &authenticated,
                &mut buffer[BODY_AT..],
            )
            .map_err(|_| too_long())?;
        buffer.extend_from_slice(&tag);
        Ok(buffer)
    }

    /// Decrypts a stored payload; None if it is unencrypted and may be.
    pub fn open(&self, place: Place, stored: &[u8]) -> Result<Option<Vec<u8>>> {
        let Some(Parts { number, nonce, body, tag }) = parts(stored) else {
            return if self.allows_plain {
                Ok(None)
            } else {
                Err(Error::Plain { index: place.index })
            };
        };
        let cipher = self.of_cycle(number, place.cycle)?;
        let mut plain = Vec::new();
        plain.try_reserve_exact(body.len()).map_err(|_| Error::OutOfMemory(body.len()))?;
        plain.extend_from_slice(body);
        cipher
            .decrypt_in_place_detached(
                Nonce::from_slice(nonce),
                &self.authenticated(place, number),
                &mut plain,
                Tag::from_slice(tag),
            )
            .map_err(|_| Error::NotAuthentic { index: place.index })?;
        Ok(Some(plain))
    }
}

/// Whether a payload has the marker of an encrypted message.
#[must_use]
pub fn is_sealed(stored: &[u8]) -> bool {
    parts(stored).is_some()
}

/// The parts of an encrypted message.
struct Parts<'a> {
    /// The number of the data key.
    number: u32,
    nonce: &'a [u8],
    body: &'a [u8],
    tag: &'a [u8],
}

fn parts(stored: &[u8]) -> Option<Parts<'_>> {
    if !stored.starts_with(&MARKER) || stored.len() < BODY_AT + TAG_LEN {
        return None;
    }
    let length = u32::from_le_bytes(stored[BLOCK_AT + 1..BLOCK_AT + 5].try_into().ok()?);
    let is_block = stored[BLOCK_AT] == BLOCK && stored[BLOCK_AT + 5] == BYTES;
    if !is_block || length as usize != stored.len() - NUMBER_AT + 1 {
        return None;
    }
    let number = u32::from_le_bytes(stored[NUMBER_AT..NONCE_AT].try_into().ok()?);
    let (body, tag) = stored[BODY_AT..].split_at(stored.len() - BODY_AT - TAG_LEN);
    Some(Parts { number, nonce: &stored[NONCE_AT..BODY_AT], body, tag })
}

fn cipher_of(key: &[u8; KEY_LEN]) -> Aes256GcmSiv {
    Aes256GcmSiv::new(key.into())
}

/// Fills bytes from the system's source of randomness.
pub fn random(bytes: &mut [u8]) -> Result<()> {
    crate::os::random::fill(bytes)
}

fn of_wrap(queue: &QueueId, number: u32) -> Vec<u8> {
    [WRAP, queue, &number.to_le_bytes()].concat()
}

/// Wraps a data key by a key of the user.
pub fn wrap(by: &Key, queue: &QueueId, data_key: &DataKey) -> Result<[u8; WRAPPED_LEN]> {
    let mut wrapped = [0; WRAPPED_LEN];
    random(&mut wrapped[..NONCE_LEN])?;
    let (nonce, rest) = wrapped.split_at_mut(NONCE_LEN);
    let (body, tag) = rest.split_at_mut(KEY_LEN);
    body.copy_from_slice(data_key.key.as_slice());
    let authenticated = of_wrap(queue, data_key.number);
    let made = cipher_of(by)
        .encrypt_in_place_detached(Nonce::from_slice(nonce), &authenticated, body)
        .map_err(|_| Error::KeyMissing { number: Some(data_key.number) })?;
    wipe_stack();
    tag.copy_from_slice(&made);
    Ok(wrapped)
}

/// Unwraps a data key; None if it was wrapped by another key, or is damaged.
pub fn unwrap(
    by: &[u8; KEY_LEN],
    queue: &QueueId,
    number: u32,
    wrapped: &[u8],
) -> Result<Option<DataKey>> {
    let Ok(wrapped) = wrapped.try_into() else { return Ok(None) };
    let mut key = Secret::new([0; KEY_LEN])?;
    let is_right = unwrap_into(&mut key, by, &of_wrap(queue, number), wrapped);
    wipe_stack();
    Ok(is_right.then_some(DataKey { number, key }))
}

#[inline(never)]
fn unwrap_into(
    key: &mut [u8; KEY_LEN],
    by: &[u8; KEY_LEN],
    authenticated: &[u8],
    wrapped: &[u8; WRAPPED_LEN],
) -> bool {
    let (nonce, rest) = wrapped.split_at(NONCE_LEN);
    let (body, tag) = rest.split_at(KEY_LEN);
    key.copy_from_slice(body);
    let (nonce, tag) = (Nonce::from_slice(nonce), Tag::from_slice(tag));
    cipher_of(by).decrypt_in_place_detached(nonce, authenticated, key, tag).is_ok()
}

/// A new data key.
pub fn new_data_key(number: u32) -> Result<DataKey> {
    let mut key = Secret::new([0; KEY_LEN])?;
    random(key.as_mut_slice())?;
    Ok(DataKey { number, key })
}

#[cfg(test)]
mod known_answers;

#[cfg(test)]
mod tests {
    use super::*;

    fn cipher(queue: u8, number: u32) -> Cipher {
        let keys = vec![DataKey { number, key: Secret::new([7; KEY_LEN]).unwrap() }];
        Cipher::new([queue; QUEUE_ID_LEN], keys, Some(number), false)
    }

    const PLACE: Place = Place { cycle: 5, index: 77, is_metadata: false };

    #[test]
    fn a_message_opens_in_its_place_alone() {
        let made = cipher(1, 1);
        let mut sealing = Sealing::default();
        let stored = made.seal(PLACE, Payload::new(b"secret"), &mut sealing).unwrap().to_vec();
        assert_eq!(stored.len() as u64, 6 + OVERHEAD);
        assert!(is_sealed(&stored));
        assert_eq!(made.open(PLACE, &stored).unwrap().unwrap(), b"secret");
        let elsewhere = [
            Place { cycle: 6, ..PLACE },
            Place { index: 78, ..PLACE },
            Place { is_metadata: true, ..PLACE },
        ];
        for place in elsewhere {
            assert!(matches!(made.open(place, &stored), Err(Error::NotAuthentic { .. })));
        }
        assert!(matches!(cipher(2, 1).open(PLACE, &stored), Err(Error::NotAuthentic { .. })));
        assert!(matches!(cipher(1, 2).open(PLACE, &stored), Err(Error::KeyMissing { .. })));
        for is_metadata in [false, true] {
            let place = Place { is_metadata, ..PLACE };
            assert!(matches!(made.open(place, b"plain"), Err(Error::Plain { .. })));
        }
    }

    #[test]
    fn an_expired_key_ends_a_cycle_and_begins_none() {
        let mut made = cipher(1, 1).expiring(Some(i64::MAX));
        let (mut sealing, payload) = (Sealing::default(), Payload::new(b"secret"));
        made.seal(PLACE, payload, &mut sealing).unwrap();
        made.expires_ms = Some(1);
        let stored = made.seal(PLACE, payload, &mut sealing).unwrap().to_vec();
        let next = Place { cycle: 6, ..PLACE };
        let refused = made.seal(next, payload, &mut sealing);
        assert!(matches!(refused, Err(Error::KeyExpired { expired_ms: 1 })));
        let mut another = Sealing::default();
        let refused = made.seal(PLACE, payload, &mut another);
        assert!(matches!(refused, Err(Error::KeyExpired { .. })));
        assert_eq!(made.open(PLACE, &stored).unwrap().unwrap(), b"secret");
    }

    #[test]
    fn each_changed_bit_is_noticed() {
        let made = cipher(1, 1);
        let mut sealing = Sealing::default();
        let stored = made.seal(PLACE, Payload::new(b"secret"), &mut sealing).unwrap().to_vec();
        for bit in 0..stored.len() * 8 {
            let mut changed = stored.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert!(made.open(PLACE, &changed).is_err(), "bit {bit}");
        }
        for length in 0..stored.len() {
            assert!(made.open(PLACE, &stored[..length]).is_err(), "length {length}");
        }
    }

    #[test]
    fn nonces_differ() {
        let (mut one, mut other) = (Sealing::default(), Sealing::default());
        let mut seen = std::collections::HashSet::new();
        for _ in 0..1000 {
            assert!(seen.insert(one.next_nonce().unwrap()));
            assert!(seen.insert(other.next_nonce().unwrap()));
        }
    }

    #[test]
    fn a_data_key_is_unwrapped_by_its_key_alone() {
        let (by, other) = (Zeroizing::new([1; KEY_LEN]), Zeroizing::new([2; KEY_LEN]));
        let (queue, made) = ([3; QUEUE_ID_LEN], new_data_key(9).unwrap());
        let mut wrapped = wrap(&by, &queue, &made).unwrap();
        let found = unwrap(&by, &queue, 9, &wrapped).unwrap().unwrap();
        assert_eq!(*found.key, *made.key);
        assert!(unwrap(&other, &queue, 9, &wrapped).unwrap().is_none());
        assert!(unwrap(&by, &queue, 8, &wrapped).unwrap().is_none());
        assert!(unwrap(&by, &[4; QUEUE_ID_LEN], 9, &wrapped).unwrap().is_none());
        assert!(unwrap(&by, &queue, 9, &wrapped[1..]).unwrap().is_none());
        wrapped[20] ^= 1;
        assert!(unwrap(&by, &queue, 9, &wrapped).unwrap().is_none());
    }
}
