//! The table store `metadata.cq4t` (`docs/format.md` §5): a header, then named 64-bit words.
//!
//! ```text
//! header word | "header" !STStore { wireType, metadata: !SCQMeta { roll, sourceId } }
//! header word | B9 key | padding | A7 | i64 value, 8-aligned | padding to 4      (one per key)
//! ```

use quire_wire::codes::{INT64, TIME};
use quire_wire::out::Out;
use quire_wire::reader::Reader;
use quire_wire::writer::{
    close_block, open_object, pad_before_code, put_compact, put_event, put_padding,
    put_short_field, put_stop_bit, put_text, put_type_prefix,
};

use super::store::{self, RollFields};

/// The table's file name.
pub const FILE_NAME: &str = "metadata.cq4t";
/// Length of the table file: a 64 KiB chunk and as much overlap. It does not grow.
pub const FILE_LEN: u64 = 131_072;
/// Longest accepted key, in bytes.
pub const KEY_LEN_MAX: usize = 4096;

/// Greatest cycle that has a file.
pub const HIGHEST_CYCLE: &str = "listing.highestCycle";
/// Smallest cycle that has a file.
pub const LOWEST_CYCLE: &str = "listing.lowestCycle";
/// Raised whenever the set of files changes.
pub const MOD_COUNT: &str = "listing.modCount";
/// The lock around every change of a roll file.
pub const WRITE_LOCK: &str = "chronicle.write.lock";
/// Held by a process that keeps users from appending, such as a replication sink.
pub const APPEND_LOCK: &str = "chronicle.append.lock";
/// Greatest index replicated.
pub const LAST_REPLICATED: &str = "chronicle.lastIndexReplicated";
/// Greatest index whose replication was acknowledged.
pub const LAST_ACKNOWLEDGED: &str = "chronicle.lastAcknowledgedIndexReplicated";
/// Greatest index known to be on the medium.
pub const LAST_SYNCED: &str = "chronicle.lastIndexMSynced";
/// Last cycle known to have an end-of-file marker, counted from the oldest.
pub const NORMALISED_TO: &str = "normalisedEOFsTo";
/// First cycle of an unfinished repair after a restart, or [`NO_LOWEST`].
pub const REPAIR_FROM: &str = "quire.repairFrom";
/// How many slots of which ring of asynchronous appends are in the queue (`ring::noted`).
pub const RING_DRAINED: &str = "quire.ringDrained";
/// First cycle that was compressed and whose file may still exist, or [`NO_LOWEST`].
pub const FIRST_COMPRESSED: &str = "quire.firstCompressed";
/// The index shape of a custom roll cycle: slots of an index array in the upper half, messages per
/// slot in the lower.
pub const INDEX_SHAPE: &str = "quire.indexShape";
/// Since when and by which process the write lock is held (`lock::held_since`).
pub const HELD_SINCE: &str = "quire.heldSince";
/// The prefix of a tailer's name in its key.
pub const TAILER_PREFIX: &str = "index.";
/// The prefix of names of replicated tailers, stored with a version under a lock of their own.
pub const REPLICATED_PREFIX: &str = "replicated:";

/// The value of a free lock word.
pub const UNLOCKED: u64 = 0x8000_0000_0000_0000;
/// `listing.highestCycle` while there is no file.
pub const NO_HIGHEST: i64 = i32::MIN as i64;
/// `listing.lowestCycle` while there is no file.
pub const NO_LOWEST: i64 = i32::MAX as i64;
/// The value of index words before there is an index.
pub const NO_INDEX: i64 = -1;

/// Start of the record lock around the creation of keys; its length is 1.
pub const KEY_LOCK_START: i64 = i64::MAX - 1;
/// A writing Quire process holds a shared lock on the byte at this plus its pid.
pub const PRESENCE_START: i64 = 1 << 62;
/// The reader of a named tailer locks the byte at this plus the slot of its key: the position of
/// the key's value divided by 8. Java locks none of these bytes.
pub const IN_USE_START: i64 = PRESENCE_START + (1 << 40);
/// The reader also locks a byte that encodes its pid: this, plus the slot and the pid.
pub const IN_USE_PID_START: i64 = PRESENCE_START + (1 << 48);
/// The reader also locks a byte that encodes since when: this, plus the slot and the seconds since
/// 1970.
pub const IN_USE_SINCE_START: i64 = PRESENCE_START + (1 << 57);
/// Room for the pids of a slot.
pub const IN_USE_PIDS: i64 = 1 << 32;
/// Room for the seconds of a slot.
pub const IN_USE_SECONDS: i64 = 1 << 33;

/// The pid in a lock word; other builds keep a thread id above it.
#[must_use]
pub const fn holder(word: u64) -> u32 {
    (word & 0xFFFF_FFFF) as u32
}

/// The table's header: the constant properties of its queue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metadata {
    /// Chronicle's name of the wire type.
    pub wire_type: String,
    /// Roll length, pattern, epoch, roll time.
    pub roll: RollFields,
    /// The queue's id in message history.
    pub source_id: i32,
}

/// The payload of the header document, to lie at position 4.
#[must_use]
pub fn encode(metadata: &Metadata) -> Vec<u8> {
    let mut out = Out::small();
    put_event(&mut out, "header");
    let outer = open_object(&mut out, "STStore");
    put_short_field(&mut out, "wireType");
    put_type_prefix(&mut out, "WireType");
    put_text(&mut out, &metadata.wire_type);
    put_short_field(&mut out, "metadata");
    let meta = open_object(&mut out, "SCQMeta");
    put_short_field(&mut out, "roll");
    let roll = open_object(&mut out, "SCQSRoll");
    put_short_field(&mut out, "length");
    put_compact(&mut out, metadata.roll.length_ms);
    put_short_field(&mut out, "format");
    put_text(&mut out, &metadata.roll.format);
    put_short_field(&mut out, "epoch");
    put_compact(&mut out, metadata.roll.epoch_ms);
    put_roll_time(&mut out, &metadata.roll);
    close_block(&mut out, roll);
    put_short_field(&mut out, "sourceId");
    put_compact(&mut out, i64::from(metadata.source_id));
    close_block(&mut out, meta);
    pad_document(&mut out);
    close_block(&mut out, outer);
    out.into_small()
}

fn put_roll_time(out: &mut Out, roll: &RollFields) {
    if let Some(time) = &roll.roll_time {
        put_short_field(out, "rollTime");
        out.push(TIME);
        put_stop_bit(out, time.len().cast_signed() as i64);
        out.extend_from_slice(time.as_bytes());
    }
    if let Some(zone) = &roll.roll_time_zone {
        put_short_field(out, "rollTimeZone");
        put_text(out, zone);
    }
}

/// Pads a payload so that the document ends at a multiple of 4 (it starts at one).
fn pad_document(out: &mut Out) {
    let pad = out.len().next_multiple_of(4) - out.len();
    put_padding(out, pad);
}

/// Reads the payload of the header document; None if it is not a table's.
#[must_use]
pub fn parse(payload: &[u8]) -> Option<Metadata> {
    let mut cursor = Reader::new(payload);
    if cursor.name_if()? != b"header" {
        return None;
    }
    cursor.type_prefix_if()?;
    let mut block = cursor.block_if()?;
    let mut metadata = Metadata::default();
    while block.peek().is_some() {
        match block.name_if()? {
            b"wireType" => {
                block.type_prefix_if();
                metadata.wire_type = String::from_utf8_lossy(block.string_if()?).into_owned();
            }
            b"metadata" => parse_metadata(&mut block, &mut metadata)?,
            _ => block.skip().ok()?,
        }
    }
    (!metadata.roll.format.is_empty()).then_some(metadata)
}

fn parse_metadata(block: &mut Reader<'_>, metadata: &mut Metadata) -> Option<()> {
    block.type_prefix_if();
    let mut fields = block.block_if()?;
    while fields.peek().is_some() {
        match fields.name_if()? {
            b"roll" => metadata.roll = store::parse_roll(&mut fields)?,
            b"sourceId" => metadata.source_id = i32::try_from(fields.integer_if()?).ok()?,
            _ => fields.skip().ok()?,
        }
    }
    Some(())
}

/// The payload of a key's document whose header lies at `position`, and where the value is in it.
#[must_use]
pub fn encode_entry(key: &[u8], position: u64, value: i64) -> (Vec<u8>, usize) {
    let lead = usize::try_from((position + 4) % 8).unwrap_or(0);
    let mut out = Out::small();
    out.fill(lead, 0);
    put_event(&mut out, key);
    pad_before_code(&mut out, 8);
    out.push(INT64);
    let at = out.len() - lead;
    out.extend_from_slice(&value.to_le_bytes());
    // The document's own length is padded, not the position of its end.
    let length = out.len() - lead;
    put_padding(&mut out, length.next_multiple_of(4) - length);
    (out.into_small().split_off(lead), at)
}

/// Reads a key's document: the key, and the value's offset in the payload.
#[must_use]
pub fn parse_entry(payload: &[u8]) -> Option<(&[u8], usize)> {
    let mut cursor = Reader::new(payload);
    let key = cursor.name_if()?;
    (cursor.code()? == INT64).then_some(())?;
    let at = cursor.offset();
    cursor.take(8)?;
    Some((key, at))
}

/// The named tailers among the entries of a table: name, and index to read next. The `.version` and
/// `.lock` keys of a replicated tailer are not tailers.
#[must_use]
pub fn named_tailers(entries: &[(String, i64)]) -> Vec<(String, i64)> {
    let names = entries.iter().filter_map(|(key, value)| Some((name_of(key)?, *value)));
    let names: Vec<(&str, i64)> = names.collect();
    let known = |name: &str| names.iter().any(|(other, _)| other.eq_ignore_ascii_case(name));
    let is_beside = |name: &str| {
        let of = [".version", ".lock"].iter().find_map(|end| name.strip_suffix(end));
        is_replicated(name) && of.is_some_and(known) && !known(&format!("{name}.version"))
    };
    let tailers = names.iter().filter(|(name, _)| !is_beside(name));
    tailers.map(|(name, value)| ((*name).to_owned(), *value)).collect()
}

fn name_of(key: &str) -> Option<&str> {
    let (prefix, name) = key.split_at_checked(TAILER_PREFIX.len())?;
    prefix.eq_ignore_ascii_case(TAILER_PREFIX).then_some(name)
}

/// Whether a tailer is replicated: stored with a version, under a lock of its own.
#[must_use]
pub fn is_replicated(name: &str) -> bool {
    name.get(..REPLICATED_PREFIX.len()).is_some_and(|it| it.eq_ignore_ascii_case(REPLICATED_PREFIX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metadata() -> Metadata {
        let roll = RollFields {
            length_ms: 86_400_000,
            format: "yyyyMMdd'F'".into(),
            ..RollFields::default()
        };
        Metadata { wire_type: "BINARY_LIGHT".into(), roll, source_id: 0 }
    }

    #[test]
    fn the_header_reads_back_and_has_javas_length() {
        let payload = encode(&metadata());
        assert_eq!(payload.len(), 0x94);
        assert_eq!(parse(&payload), Some(metadata()));
    }

    #[test]
    fn a_roll_time_reads_back() {
        let mut with_time = metadata();
        with_time.roll.epoch_ms = 75_600_000;
        with_time.roll.roll_time = Some("21:00".into());
        with_time.roll.roll_time_zone = Some("UTC".into());
        assert_eq!(parse(&encode(&with_time)), Some(with_time));
    }

    #[test]
    fn an_epoch_reads_back_whose_shortest_form_is_a_float() {
        for epoch_ms in [1 << 32, 1_415_577_600_000, 1 << 50, i64::MIN, -(1 << 40)] {
            let mut late = metadata();
            late.roll.epoch_ms = epoch_ms;
            assert_eq!(parse(&encode(&late)), Some(late));
        }
    }

    #[test]
    fn an_entry_holds_its_value_at_a_multiple_of_8() {
        for key in [HIGHEST_CYCLE, LOWEST_CYCLE, MOD_COUNT, LAST_ACKNOWLEDGED, "index.a"] {
            for position in [0x98, 0x9c, 0xc4] {
                let (payload, at) = encode_entry(key.as_bytes(), position, 7);
                assert_eq!((position + 4 + at as u64) % 8, 0);
                assert_eq!(payload.len() % 4, 0);
                assert_eq!(parse_entry(&payload), Some((key.as_bytes(), at)));
            }
        }
    }
}
