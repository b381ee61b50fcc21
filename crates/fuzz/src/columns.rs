//! Decodes any bytes into columns: the buffers are valid whatever the input.

use quire_wire::arrow::decode::Array;
use quire_wire::arrow::decode::batch::{Batch, Layout, Misfits, Rows};
use quire_wire::arrow::infer::Seen;
use quire_wire::arrow::schema::{Field, Kind, Method, Plan, Shape, Takes, Unit};

use crate::bounded;

/// The maximum length of a message.
const LONGEST: usize = 1 << 16;
/// Limit on the expansion of a byte: the widest row of two bytes, and compressed blobs.
const PER_BYTE: usize = 16 << 10;

/// Decodes the bytes as one message, and as two, in several kinds of batches.
pub fn columns(data: &[u8]) {
    if data.len() > LONGEST {
        return;
    }
    let (left, right) = data.split_at(data.len() / 2);
    let messages = [data, left, right, data];
    for plan in plans() {
        for layout in [Layout::Tables, Layout::Union, Layout::Only(0)] {
            for misfits in [Misfits::Keep, Misfits::Raise] {
                bounded((256 << 10) + PER_BYTE * data.len(), || {
                    let mut batch = Batch::new(&plan, misfits, layout);
                    let mut faults = 0;
                    for (index, message) in (0..).zip(messages) {
                        if let Err(fault) = batch.add(index, message) {
                            assert_eq!(misfits, Misfits::Raise);
                            assert!(fault.to_string().len() < 2000, "{fault}");
                            faults += 1;
                        }
                    }
                    let added = batch.messages();
                    assert!(added + faults <= messages.len());
                    let tables = batch.finish();
                    assert!(tables.iter().map(|rows| rows.count).sum::<usize>() >= added);
                    tables.iter().for_each(check_table);
                });
            }
        }
    }
    bounded((64 << 10) + 1000 * data.len(), || {
        let _ = Seen::default().look(data);
    });
}

fn plans() -> [Plan; 3] {
    let field = |name: &str, kind| Field { name: name.into(), nullable: true, kind };
    let int = |bytes, signed| Kind::Int { bytes, signed };
    let list = |kind| Kind::List(Box::new(field("item", kind)));
    let scalars = vec![
        field("a", int(8, true)),
        field("b", Kind::Float64),
        field("c", Kind::Text),
        field("d", Kind::Bool),
        field("e", int(1, false)),
        field("12", Kind::Decimal { precision: 38, scale: 9 }),
        field("g", Kind::Timestamp(Unit::Nano)),
        field("h", Kind::Uuid),
        Field { name: "i".into(), nullable: false, kind: Kind::Float32 },
    ];
    let nested = vec![
        field("a", list(list(int(2, true)))),
        field("b", list(Kind::Struct(vec![field("c", Kind::Text), field("d", Kind::Dictionary)]))),
        field("c", Kind::Map(Box::new(field("value", Kind::Binary)))),
        field("d", Kind::Struct(vec![field("a", Kind::Date), field("b", Kind::Time(Unit::Micro))])),
    ];
    let method = |name: &str, id, takes| Method { name: name.into(), id, takes };
    let calls = vec![
        method("a", None, Takes::Object(scalars.clone())),
        method("b", Some(98), Takes::Arguments(nested.clone())),
        method("c", None, Takes::Arguments(vec![field("x", Kind::Text)])),
        method("d", None, Takes::PassedOver),
    ];
    [(Shape::Fields(scalars), false), (Shape::Fields(nested), true), (Shape::Calls(calls), true)]
        .map(|(shape, history)| Plan::new(shape, history).unwrap())
}

fn check_table(rows: &Rows) {
    assert_eq!(rows.indexes.len(), 8 * rows.count);
    for array in rows.columns.iter().chain(&rows.history).chain(&rows.errors) {
        assert_eq!(array.length, rows.count);
        check(array);
    }
}

/// Checks that lengths, offsets and counts are consistent.
fn check(array: &Array) {
    let (validity, rest) = array.buffers.split_first().unwrap();
    assert_eq!(validity.is_none(), array.nulls == 0);
    if let Some(bits) = validity {
        assert_eq!(bits.len(), array.length.div_ceil(8));
        let ones: u32 = bits.iter().map(|byte| byte.count_ones()).sum();
        assert_eq!(ones as usize, array.length - array.nulls);
    }
    let is_nested = !array.children.is_empty();
    let mut inside = array.length;
    match rest {
        [] => {}
        [Some(values)] if !is_nested => {
            assert!(values.len() >= array.length.div_ceil(8));
        }
        [Some(offsets)] => inside = last_offset(offsets, array.length),
        [Some(offsets), Some(data)] => {
            assert_eq!(last_offset(offsets, array.length), data.len());
        }
        other => panic!("other buffers than Arrow's: count={}", other.len()),
    }
    for child in &array.children {
        assert_eq!(child.length, inside);
        check(child);
    }
    array.dictionary.iter().for_each(|values| check(values));
}

fn last_offset(offsets: &[u8], length: usize) -> usize {
    let ends: Vec<i32> =
        offsets.as_chunks().0.iter().map(|bytes| i32::from_le_bytes(*bytes)).collect();
    assert_eq!(ends.len(), length + 1);
    assert!(ends.is_sorted() && ends[0] == 0);
    usize::try_from(ends[length]).unwrap()
}
