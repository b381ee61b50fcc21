//! The first document of a roll file (`docs/format.md` §3).
//!
//! ```text
//! 0x00  header word, metadata          0x40  writePosition    mutable, 16-aligned
//! 0x04  "header" !SCQStore {           0x48  sequence word    mutable
//!         writePosition: [ , ],        0x98  index2Index      mutable, 8-aligned
//!         indexing: !SCQSIndexing {    0xb0  lastIndex        mutable, 8-aligned
//!           indexCount, indexSpacing, index2Index, lastIndex },
//!         dataFormat: 1 }
//! ```
//! The positions are those of files this kernel writes; others are found by parsing.

use quire_wire::codes::{I64_ARRAY, INT64, PADDING};
use quire_wire::out::Out;
use quire_wire::reader::Reader;
use quire_wire::writer::{
    self, close_block, open_object, pad_before_code, put_compact, put_event, put_padding,
};

use super::document::HEADER_LEN;
use super::roll_cycle;

/// Longest accepted first document.
pub const MAX_HEADER_LEN: u32 = 65_536;
/// `writePosition` and the sequence word share an array of two.
const PAIR: [u8; 16] = [2, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0];
const PAIR_ALIGNMENT: usize = 16;
const LONG_ALIGNMENT: usize = 8;

/// The fields in order, for files without field names.
const STORE_FIELDS: [&str; 3] = ["writePosition", "indexing", "dataFormat"];
const INDEXING_FIELDS: [&str; 4] = ["indexCount", "indexSpacing", "index2Index", "lastIndex"];
/// Most accepted slots of an index array. Old releases made arrays of 524,288.
const READ_COUNT_MAX: u32 = 1 << 24;
/// Most accepted bits of a sequence; the greatest shape in use has 48.
const SHIFT_MAX: u32 = 62;

/// Where the mutable words of a roll file are, and the shape of its index.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoreLayout {
    /// Position of `writePosition`.
    pub write_position: u64,
    /// Position of the sequence word, if the file has one.
    pub sequence: Option<u64>,
    /// Position of `index2Index`.
    pub index2index: u64,
    /// Position of `lastIndex`.
    pub last_index: u64,
    /// Slots of one index array.
    pub index_count: u32,
    /// Every n-th message is indexed.
    pub index_spacing: u32,
    /// `dataFormat` is 1: documents start at multiples of 4.
    pub aligned: bool,
    /// Field names are omitted, as in the messages of the queue.
    pub fieldless: bool,
    /// Roll length, pattern and epoch, in the header of version 4 files only.
    pub roll: Option<RollFields>,
}

/// The roll parameters as a header spells them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RollFields {
    /// Length of a cycle in milliseconds.
    pub length_ms: i64,
    /// File-name pattern.
    pub format: String,
    /// Epoch in milliseconds.
    pub epoch_ms: i64,
    /// Time of day at which the roll happens, as text.
    pub roll_time: Option<String>,
    /// Zone of that time, as text.
    pub roll_time_zone: Option<String>,
}

/// The document's payload, to lie at position 4 of a file, and its layout. Files of fieldless
/// queues have no field names.
#[must_use]
pub fn encode(index_count: u32, index_spacing: u32, fieldless: bool) -> (Vec<u8>, StoreLayout) {
    let put_short_field = |out: &mut Out, name| {
        if !fieldless {
            writer::put_short_field(out, name);
        }
    };
    // Starts with room for the header word, so that offsets equal positions; cut off at the end.
    let mut out = Out::small();
    out.fill(4, 0);
    put_event(&mut out, "header");
    let store = open_object(&mut out, "SCQStore");
    put_short_field(&mut out, "writePosition");
    pad_before_code(&mut out, PAIR_ALIGNMENT);
    out.push(I64_ARRAY);
    out.extend_from_slice(&PAIR);
    let write_position = put_long(&mut out);
    let sequence = put_long(&mut out);
    put_short_field(&mut out, "indexing");
    let indexing = open_object(&mut out, "SCQSIndexing");
    put_short_field(&mut out, "indexCount");
    put_compact(&mut out, i64::from(index_count));
    put_short_field(&mut out, "indexSpacing");
    put_compact(&mut out, i64::from(index_spacing));
    put_short_field(&mut out, "index2Index");
    let index2index = put_aligned_long(&mut out);
    put_short_field(&mut out, "lastIndex");
    let last_index = put_aligned_long(&mut out);
    close_block(&mut out, indexing);
    put_short_field(&mut out, "dataFormat");
    put_compact(&mut out, 1);
    close_block(&mut out, store);
    pad_before_line_end(&mut out);
    let layout = StoreLayout {
        write_position,
        sequence: Some(sequence),
        index2index,
        last_index,
        index_count,
        index_spacing,
        aligned: true,
        fieldless,
        roll: None,
    };
    (out.into_small().split_off(4), layout)
}

/// Finds the words in the payload at position 4 of a file; None if it is not a roll file's.
#[must_use]
pub fn parse(payload: &[u8]) -> Option<StoreLayout> {
    let mut cursor = Reader::new(payload);
    if cursor.name_if()? != b"header" {
        return None;
    }
    cursor.type_prefix_if()?;
    let mut block = cursor.block_if()?;
    let mut layout = StoreLayout::default();
    for place in 0.. {
        if block.peek().is_none() {
            break;
        }
        let name = block.name_if();
        layout.fieldless |= name.is_none();
        match name_or(name, &STORE_FIELDS, place)? {
            b"writePosition" => parse_write_position(&mut block, &mut layout)?,
            b"indexing" => parse_indexing(&mut block, &mut layout)?,
            b"dataFormat" => layout.aligned = block.integer_if()? == 1,
            b"roll" => layout.roll = Some(parse_roll(&mut block)?),
            _ => block.skip().ok()?,
        }
    }
    let shape_is_sound = layout.index_count.is_power_of_two()
        && layout.index_spacing.is_power_of_two()
        && layout.index_count <= READ_COUNT_MAX
        && layout.index_spacing <= READ_COUNT_MAX
        && roll_cycle::shift(layout.index_count, layout.index_spacing) <= SHIFT_MAX;
    // Only version 4 left documents unaligned. A damaged `dataFormat` would shift all of them.
    let alignment_is_sound = layout.aligned || layout.roll.is_some();
    let has_words = layout.write_position != 0 && layout.index2index != 0;
    (has_words && shape_is_sound && alignment_is_sound).then_some(layout)
}

/// Whether a payload that [`parse`] refuses begins like version 4, but without a name before the
/// first field, the wire type: such a header cannot be interpreted.
#[must_use]
pub fn is_nameless_version_4(payload: &[u8]) -> bool {
    let mut cursor = Reader::new(payload);
    let is_header = cursor.name_if() == Some(b"header") && cursor.type_prefix_if().is_some();
    let block = if is_header { cursor.block_if() } else { None };
    block.is_some_and(|mut block| {
        block.name_if().is_none() && block.type_prefix_if() == Some(b"WireType")
    })
}

/// The length of the document whose payload this is, by the length of its object and the padding
/// after it; None if there is no object.
#[must_use]
pub fn length_of(payload: &[u8]) -> Option<u32> {
    let mut cursor = Reader::new(payload);
    cursor.name_if()?;
    cursor.type_prefix_if()?;
    cursor.block_if()?;
    let end = cursor.offset();
    let padding = payload.get(end..)?.iter().take_while(|byte| **byte == PADDING).count();
    u32::try_from(end + padding).ok().filter(|length| *length <= MAX_HEADER_LEN)
}

/// The name of a field; in a fieldless file, the name at this place.
fn name_or<'a>(name: Option<&'a [u8]>, names: &[&'static str], place: usize) -> Option<&'a [u8]> {
    name.or_else(|| names.get(place).map(|name| name.as_bytes()))
}

/// Reads `roll: { length, format, epoch, rollTime, rollTimeZone }`.
pub fn parse_roll(block: &mut Reader<'_>) -> Option<RollFields> {
    block.type_prefix_if();
    let mut fields = block.block_if()?;
    let mut roll = RollFields::default();
    while fields.peek().is_some() {
        match fields.name_if()? {
            b"length" => roll.length_ms = fields.whole_if()?,
            b"format" => roll.format = text(fields.string_if()?),
            b"epoch" => roll.epoch_ms = fields.whole_if()?,
            b"rollTime" => roll.roll_time = fields.string_if().map(text),
            b"rollTimeZone" => roll.roll_time_zone = fields.string_if().map(text),
            _ => fields.skip().ok()?,
        }
    }
    Some(roll)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn parse_write_position(block: &mut Reader<'_>, layout: &mut StoreLayout) -> Option<()> {
    let code = block.code()?;
    let at = position_of(block);
    match code {
        I64_ARRAY => {
            let capacity = i64::from_le_bytes(block.array()?);
            block.take(8)?;
            let slots = usize::try_from(capacity).ok().filter(|count| (1..=64).contains(count))?;
            block.take(slots * 8)?;
            layout.write_position = at + 16;
            layout.sequence = (slots > 1).then_some(at + 24);
        }
        INT64 => {
            block.take(8)?;
            layout.write_position = at;
        }
        _ => return None,
    }
    Some(())
}

fn parse_indexing(block: &mut Reader<'_>, layout: &mut StoreLayout) -> Option<()> {
    block.type_prefix_if();
    let mut fields = block.block_if()?;
    for place in 0.. {
        if fields.peek().is_none() {
            break;
        }
        match name_or(fields.name_if(), &INDEXING_FIELDS, place)? {
            b"indexCount" => layout.index_count = u32::try_from(fields.integer_if()?).ok()?,
            b"indexSpacing" => layout.index_spacing = u32::try_from(fields.integer_if()?).ok()?,
            b"index2Index" => layout.index2index = parse_long(&mut fields)?,
            b"lastIndex" => layout.last_index = parse_long(&mut fields)?,
            _ => fields.skip().ok()?,
        }
    }
    Some(())
}

/// The position in the file: the document is the first.
const fn position_of(cursor: &Reader<'_>) -> u64 {
    HEADER_LEN + cursor.offset() as u64
}

/// The position of a 64-bit word that was written to be changed in place.
fn parse_long(fields: &mut Reader<'_>) -> Option<u64> {
    (fields.code()? == INT64).then_some(())?;
    let at = position_of(fields);
    fields.take(8)?;
    Some(at)
}

fn put_long(out: &mut Out) -> u64 {
    let at = out.len() as u64;
    out.extend_from_slice(&[0; 8]);
    at
}

fn put_aligned_long(out: &mut Out) -> u64 {
    pad_before_code(out, LONG_ALIGNMENT);
    out.push(INT64);
    put_long(out)
}

/// Keeps the next header from straddling a cache line, as Java does.
fn pad_before_line_end(out: &mut Out) {
    const LINE: usize = 64;
    if out.len() % LINE > LINE - 4 {
        put_padding(out, LINE - out.len() % LINE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_are_where_java_puts_them() {
        for (count, spacing) in [(32, 4), (4096, 256), (8, 1)] {
            let (payload, layout) = encode(count, spacing, false);
            assert_eq!((layout.write_position, layout.sequence), (0x40, Some(0x48)));
            assert_eq!((layout.index2index, layout.last_index), (0x98, 0xb0), "{count}");
            assert_eq!(parse(&payload), Some(layout));
        }
        assert_eq!(encode(32, 4, false).0.len(), 0xc1);
    }

    #[test]
    fn a_fieldless_header_is_read_by_place() {
        let (payload, layout) = encode(4096, 256, true);
        assert_eq!((payload.len(), layout.index2index, layout.last_index), (0x76, 0x60, 0x70));
        assert_eq!(parse(&payload), Some(layout));
    }

    #[test]
    fn a_cut_header_is_refused() {
        let (payload, _) = encode(32, 4, false);
        for length in 0..payload.len() {
            assert_eq!(parse(&payload[..length]), None, "{length}");
        }
    }
}
