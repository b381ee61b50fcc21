//! What the cipher itself takes, for `bench/`: AES-256-GCM-SIV of messages of one length.
//!
//!     seal LENGTH WARM_UP COUNT

use std::env;
use std::hint::black_box;
use std::time::Instant;

use aes_gcm_siv::aead::{AeadInPlace, KeyInit};
use aes_gcm_siv::{Aes256GcmSiv, Nonce};

/// As much as is authenticated with a message.
const AUTHENTICATED: [u8; 45] = [7; 45];

fn seal(cipher: &Aes256GcmSiv, message: &mut [u8], count: u64) {
    for number in 0..count {
        let mut nonce = [0; 12];
        nonce[..8].copy_from_slice(&number.to_le_bytes());
        let nonce = Nonce::from_slice(&nonce);
        let tag = cipher.encrypt_in_place_detached(nonce, &AUTHENTICATED, message);
        black_box(tag.expect("the message is short"));
    }
}

fn main() {
    let given: Vec<u64> = env::args().skip(1).filter_map(|it| it.parse().ok()).collect();
    let [length, warm_up, count] = given[..] else { panic!("give LENGTH WARM_UP COUNT") };
    let cipher = Aes256GcmSiv::new((&[3; 32]).into());
    let mut message = vec![5; usize::try_from(length).expect("a length")];
    seal(&cipher, &mut message, warm_up);
    let began = Instant::now();
    seal(&cipher, &mut message, count);
    let nanos = began.elapsed().as_nanos();
    // One thread that never waits: its CPU time is the time, unless others had the processor.
    println!("{{\"nanos\": {nanos}, \"cpu_nanos\": null, \"count\": {count}, \"checksum\": 0}}");
}
