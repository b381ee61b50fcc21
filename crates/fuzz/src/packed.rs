//! Any bytes as a compressed message, and as one to be compressed.

use std::sync::OnceLock;

use quire_kernel::Error;
use quire_kernel::chronicle::protocol::publish::Payload;
use quire_kernel::sealed::cipher::Encryption;
use quire_kernel::sealed::dictionary::{self, Dictionaries};
use quire_kernel::sealed::difference::{Base, Difference, Kind, Message};
use quire_kernel::sealed::packed::{self, unpack};
use quire_kernel::sealed::packing::{Compression, Method, ZSTD_LEVEL, packed};
use tempfile::TempDir;

use crate::bounded;

/// The maximum length of a message.
const LONGEST: usize = 1 << 12;
/// The most memory that compression keeps, whatever the message.
const MEMORY: usize = 8 << 20;
/// Limit on the expansion of a byte: that of zstd, where four may stand for 128 KiB.
const PER_BYTE: usize = 36 << 10;
/// The content of a dictionary.
const DICTIONARY: &[u8] = b"a dictionary of words that messages repeat: price=1.25 symbol=EURUSD";
/// The base of differences: fields, a block, a list.
const BASE: &[u8] =
    b"\xC1a\xA1\x05\xC1b\x82\x05\0\0\0\xC1c\xE1x\xB1\xC1d\x80\x03\xA1\x01\xA4\xC1f\x94\x81\x01";
/// The starts of messages, chosen by the first byte of an input; a length and a blob follow.
const STARTS: [(&[u8], &[u8]); 8] = [
    (b"\xb6\x04gzip", b"\x1f\x8b\x08\0Quir\0\xff"),
    (b"\xb6\x03lzw", b"\x78\x9c\0\0\0\xff\xff"),
    (b"\xb6\x03qz1", b"\x00"),
    (b"\xb6\x03qz1", b"\x01"),
    (b"\xb6\x03qz1", b"\x02"),
    (b"\xb6\x03qz1", b"\x03"),
    (b"\xb6\x03qz1", b"\x04\x01\0\0\0\0"),
    (b"\xb6\x03qz1", b"\x05\x01\0\0\0\0"),
];

struct Beside {
    folder: TempDir,
    compressions: Vec<Option<Compression>>,
}

/// A folder with a dictionary, and the ways to compress, including none.
fn beside() -> &'static Beside {
    static BESIDE: OnceLock<Beside> = OnceLock::new();
    BESIDE.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let number = dictionary::number_of(DICTIONARY);
        let path = folder.path().join(dictionary::file_name(number));
        std::fs::write(path, DICTIONARY).unwrap();
        let known =
            Dictionaries::new(folder.path(), ZSTD_LEVEL, Encryption::No).get(number).unwrap();
        let methods = [Method::Gzip, Method::Lzw, Method::Snappy, Method::Lz4, Method::Zstd];
        let plain = methods.map(|method| Some(Compression { method, dictionary: None }));
        let with = Compression { method: Method::Zstd, dictionary: Some(known) };
        let compressions = plain.into_iter().chain([None, Some(with)]).collect();
        Beside { folder, compressions }
    })
}

/// The first byte chooses the start that the others follow; beyond the last choice they are the
/// whole message.
pub fn packed_message(data: &[u8]) {
    let Some((choice, rest)) = data.split_first() else { return };
    if rest.len() > LONGEST {
        return;
    }
    let beside = beside();
    let dictionaries = Dictionaries::new(beside.folder.path(), ZSTD_LEVEL, Encryption::No);
    let stored = match STARTS.get(usize::from(*choice)) {
        Some((name, start)) => with_blob(name, &[start, rest].concat()),
        None => rest.to_vec(),
    };
    bounded(MEMORY, || restored(&stored, rest));
    bounded(MEMORY + PER_BYTE * stored.len(), || {
        let found = unpack(&stored, 7, &dictionaries);
        match &found {
            Ok(None) => assert!(!packed::is_packed(&stored), "not unpacked"),
            Ok(Some(_)) => assert!(packed::may_be_packed(&stored), "not looked at by readers"),
            Err(fault) => assert!(fault.to_string().len() < 1000, "{fault}"),
        }
    });
    bounded(MEMORY, || {
        for message in [rest, &stored] {
            for compression in &beside.compressions {
                comes_back(message, compression.as_ref(), &dictionaries);
            }
        }
    });
}

/// Restores a difference from several kinds of messages, and stores these as differences from each
/// other.
fn restored(stored: &[u8], message: &[u8]) {
    let (start, end) = message.split_at(message.len() / 2);
    let bases = [BASE, message, start, end].map(|it| Base::new(it.to_vec()));
    for base in &bases {
        if let Some(difference) = packed::difference(stored)
            && let Err(fault) = difference.restored(base)
        {
            assert!(fault.to_string().len() < 1000, "{fault}");
        }
        for (kind, of) in [Kind::Delta, Kind::DefaultZero]
            .into_iter()
            .flat_map(|kind| [BASE, message, start, end].map(|it| (kind, it)))
        {
            let (given, mut body) = (Message::new(kind, of), Vec::new());
            if given.likeness(base) > 0 && given.put(base, &mut body) {
                assert!(body.len() < of.len(), "no shorter");
                let made = Difference { kind, distance: 1, sum: base.sum(), body: &body };
                assert_eq!(made.restored(base).unwrap(), of, "{kind:?}");
            }
        }
    }
}

/// A blob of four bytes of length, after the name of a type.
fn with_blob(name: &[u8], content: &[u8]) -> Vec<u8> {
    let length = u32::try_from(content.len() + 1).unwrap();
    [name, &[0x82], &length.to_le_bytes(), &[0x8a], content].concat()
}

/// Checks that any message is read back as it was written.
fn comes_back(message: &[u8], compression: Option<&Compression>, dictionaries: &Dictionaries) {
    let stored = packed(compression, Payload::new(message), |payload| {
        assert!(payload.head.is_empty() && payload.zeros == 0, "in parts");
        Ok::<_, Error>(payload.body.to_vec())
    });
    let stored = stored.unwrap();
    let found = unpack(&stored, 7, dictionaries).unwrap();
    assert_eq!(found.as_deref().unwrap_or(&stored), message, "{compression:?}");
}
