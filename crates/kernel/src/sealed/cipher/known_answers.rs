//! Known-answer tests: the cipher's results equal published ones.

use aes_gcm_siv::aead::AeadInPlace;
use aes_gcm_siv::{Nonce, Tag};
use zeroize::Zeroizing;

use super::{Key, TAG_LEN, cipher_of};

const ANSWERS: &str = include_str!("known_answers.txt");

struct Answer {
    number: u32,
    is_valid: bool,
    key: Key,
    nonce: Vec<u8>,
    authenticated: Vec<u8>,
    message: Vec<u8>,
    /// With its tag.
    encrypted: Vec<u8>,
}

impl Answer {
    fn parse(line: &str) -> Self {
        let mut columns = line.split(' ');
        let mut next = || columns.next().unwrap();
        Self {
            number: next().parse().unwrap(),
            is_valid: next() == "valid",
            key: Zeroizing::new(bytes(next()).try_into().unwrap()),
            nonce: bytes(next()),
            authenticated: bytes(next()),
            message: bytes(next()),
            encrypted: bytes(next()),
        }
    }
}

fn bytes(text: &str) -> Vec<u8> {
    let hex = text.trim_matches('-');
    let byte = |at: usize| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).unwrap();
    (0..hex.len() / 2).map(byte).collect()
}

#[test]
fn the_cipher_gives_known_answers() {
    let answers: Vec<_> =
        ANSWERS.lines().filter(|line| !line.starts_with('#')).map(Answer::parse).collect();
    let valid = answers.iter().filter(|it| it.is_valid).count();
    assert!(valid >= 10 && answers.len() - valid >= 5, "too few: {}", answers.len());
    for it in answers {
        let (cipher, nonce) = (cipher_of(&it.key), Nonce::from_slice(&it.nonce));
        let mut made = it.message.clone();
        let tag = cipher.encrypt_in_place_detached(nonce, &it.authenticated, &mut made).unwrap();
        made.extend_from_slice(&tag);
        assert_eq!(made == it.encrypted, it.is_valid, "answer {}", it.number);

        let (body, tag) = it.encrypted.split_at(it.encrypted.len() - TAG_LEN);
        let (mut opened, tag) = (body.to_vec(), Tag::from_slice(tag));
        let is_opened =
            cipher.decrypt_in_place_detached(nonce, &it.authenticated, &mut opened, tag).is_ok();
        assert_eq!(is_opened, it.is_valid, "answer {}", it.number);
        assert!(!it.is_valid || opened == it.message, "answer {}", it.number);
    }
}
