//! A borrowed column, whose values are encoded as tokens.

use super::buffers::{Bits, Buffers, Offsets, Strings, short};
use super::temporal;
use crate::arrow::schema::{Field, Kind, Unit};
use crate::error::{Result, WireError};
use crate::out::Out;
use crate::reader::EMPTY_MAP;
use crate::writer;
use crate::writer::{put_text_bytes, put_type_prefix};

/// The form in which values are written (`docs/format.md` §8.3-8.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Entries of Java's `writeMap`.
    Entries,
    /// Fields of Java's generated writers, with declared types.
    Declared,
    /// Elements of collections, for which Java's generated writers do not use the declared type.
    Boxed,
}

/// How rows are encoded.
#[derive(Clone, Copy, Debug)]
pub struct Manner {
    /// Named values are map entries, not fields.
    pub as_entries: bool,
    /// Null values with names are omitted.
    pub omit_nulls: bool,
}

/// A column borrowed from another library.
#[derive(Debug)]
pub struct Column<'a> {
    validity: Option<Bits<'a>>,
    length: usize,
    data: Data<'a>,
}

#[derive(Debug)]
enum Data<'a> {
    Bool(Bits<'a>),
    Int8(&'a [[u8; 1]]),
    Int16(&'a [[u8; 2]]),
    Int32(&'a [[u8; 4]]),
    Int64(&'a [[u8; 8]]),
    UInt8(&'a [[u8; 1]]),
    UInt16(&'a [[u8; 2]]),
    UInt32(&'a [[u8; 4]]),
    UInt64(&'a [[u8; 8]]),
    Float32(&'a [[u8; 4]]),
    Float64(&'a [[u8; 8]]),
    Text(Strings<'a>),
    Binary(Strings<'a>),
    Dictionary(&'a [[u8; 4]], Strings<'a>),
    Uuid(&'a [[u8; 16]]),
    Timestamp(&'a [[u8; 8]], Unit, bool),
    Date(&'a [[u8; 4]]),
    ShortTime(&'a [[u8; 4]], Unit),
    LongTime(&'a [[u8; 8]], Unit),
    Decimal(&'a [[u8; 16]], u8),
    Struct(Named<'a>),
    List(Offsets<'a>, Box<Column<'a>>),
    Map(Offsets<'a>, Strings<'a>, Box<Column<'a>>),
}

impl<'a> Column<'a> {
    /// Checks that the buffers hold a column of this kind.
    pub fn new(field: &Field, parts: &Buffers<'a>, manner: Manner) -> Result<Self> {
        let data = data(&field.kind, parts, manner)
            .map_err(|fault| if field.name.is_empty() { fault } else { fault.inside(&field.name) });
        Ok(Self { validity: parts.validity()?, length: parts.length, data: data? })
    }

    #[inline]
    pub fn is_null(&self, row: usize) -> bool {
        self.validity.is_some_and(|bits| !bits.get(row))
    }

    /// The string in a row; None if it is null or the column is of another kind.
    pub fn text(&self, row: usize) -> Result<Option<&'a [u8]>> {
        match &self.data {
            _ if self.is_null(row) => Ok(None),
            Data::Text(strings) => strings.get(row).map(Some),
            Data::Dictionary(codes, values) => dictionary_text(codes, values, row).map(Some),
            _ => Ok(None),
        }
    }

    /// The fields of a struct.
    pub const fn named(&self) -> Option<&Named<'a>> {
        if let Data::Struct(fields) = &self.data { Some(fields) } else { None }
    }

    /// Appends the value of a row.
    #[inline]
    pub fn put(&self, out: &mut Out, row: usize, style: Style) -> Result<()> {
        if row >= self.length {
            return Err(short());
        }
        if self.is_null(row) {
            writer::put_null(out);
            return Ok(());
        }
        match &self.data {
            Data::Int8(of) => put_int(out, i8::from_le_bytes(of[row]).into(), 8, style),
            Data::Int16(of) => put_int(out, i16::from_le_bytes(of[row]).into(), 16, style),
            Data::Int32(of) => put_int(out, i32::from_le_bytes(of[row]).into(), 32, style),
            Data::Int64(of) => put_int(out, i64::from_le_bytes(of[row]), 64, style),
            Data::Float64(of) => put_f64(out, f64::from_le_bytes(of[row]), style),
            Data::Float32(of) => put_f32(out, f32::from_le_bytes(of[row]), style),
            Data::Text(of) => put_utf8(out, of.get(row)?),
            Data::Dictionary(codes, of) => put_utf8(out, dictionary_text(codes, of, row)?),
            Data::Bool(of) => writer::put_bool(out, of.get(row)),
            _ => return self.put_other(out, row, style),
        }
        Ok(())
    }

    fn put_other(&self, out: &mut Out, row: usize, style: Style) -> Result<()> {
        match &self.data {
            // Java has no unsigned integers: the next wider type is used.
            Data::UInt8(of) => put_int(out, u8::from_le_bytes(of[row]).into(), 16, style),
            Data::UInt16(of) => put_int(out, u16::from_le_bytes(of[row]).into(), 32, style),
            Data::UInt32(of) => put_int(out, u32::from_le_bytes(of[row]).into(), 64, style),
            Data::UInt64(of) => {
                let value = u64::from_le_bytes(of[row]);
                let fits = i64::try_from(value).map_err(|_| {
                    WireError::new("the integer does not fit in 63 bits").with("value", value)
                })?;
                // Java's shortest form of this value is that of 2^63, where a long saturates.
                let style = if fits == i64::MAX { Style::Boxed } else { style };
                put_int(out, fits, 64, style);
            }
            Data::Binary(of) => {
                if style != Style::Declared {
                    put_type_prefix(out, "byte[]");
                }
                writer::put_blob(out, of.get(row)?)?;
            }
            Data::Uuid(of) => {
                let (high, low) = halves(of[row]);
                writer::put_uuid(out, high, low);
            }
            Data::Timestamp(of, unit, has_zone) => {
                temporal::put_timestamp(out, i64::from_le_bytes(of[row]), *unit, *has_zone);
            }
            Data::Date(of) => temporal::put_date(out, i32::from_le_bytes(of[row]).into()),
            Data::ShortTime(of, unit) => {
                temporal::put_time(out, i32::from_le_bytes(of[row]).into(), *unit);
            }
            Data::LongTime(of, unit) => {
                temporal::put_time(out, i64::from_le_bytes(of[row]), *unit);
            }
            Data::Decimal(of, scale) => {
                temporal::put_decimal(out, i128::from_le_bytes(of[row]), *scale);
            }
            Data::Struct(fields) => {
                let style = if style == Style::Boxed { Style::Declared } else { style };
                let block = writer::open_block(out);
                fields.put(out, row, style)?;
                writer::close_block(out, block);
            }
            Data::List(offsets, item) => put_list(out, offsets.range(row)?, item, style)?,
            Data::Map(offsets, keys, values) => {
                put_entries(out, offsets.range(row)?, keys, values, style)?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Appends an element of a collection; a nested collection does not use its declared type.
    fn put_item(&self, out: &mut Out, row: usize, style: Style) -> Result<()> {
        let is_container = matches!(self.data, Data::List(..) | Data::Map(..));
        let forgotten = style == Style::Declared && is_container;
        self.put(out, row, if forgotten { Style::Boxed } else { style })
    }

    /// Appends a method argument, which may be a collection.
    pub fn put_argument(&self, out: &mut Out, row: usize) -> Result<()> {
        self.put_item(out, row, Style::Declared)
    }
}

#[derive(Debug)]
pub struct Named<'a> {
    /// For each column its name and the tokens of the name.
    fields: Vec<(String, Vec<u8>, Column<'a>)>,
    omit_nulls: bool,
}

impl<'a> Named<'a> {
    /// Checks that these columns match the fields, in order.
    pub fn new(fields: &[Field], parts: &[Buffers<'a>], manner: Manner) -> Result<Self> {
        if fields.len() != parts.len() {
            return Err(WireError::new("wrong number of columns")
                .with("expected", fields.len())
                .with("found", parts.len()));
        }
        let named = fields.iter().zip(parts).map(|(field, parts)| {
            let mut name = Out::new();
            if manner.as_entries {
                writer::put_key(&mut name, &field.name)?;
            } else {
                writer::put_field(&mut name, &field.name)?;
            }
            Ok((field.name.clone(), name.finish()?, Column::new(field, parts, manner)?))
        });
        Ok(Self { fields: named.collect::<Result<_>>()?, omit_nulls: manner.omit_nulls })
    }

    /// Appends the named values of a row.
    #[inline]
    pub fn put(&self, out: &mut Out, row: usize, style: Style) -> Result<()> {
        for (name, token, column) in &self.fields {
            if self.omit_nulls && column.is_null(row) {
                continue;
            }
            out.extend_from_slice(token);
            column.put(out, row, style).map_err(|fault| fault.inside(name))?;
        }
        Ok(())
    }

    /// Appends the values of a row as the arguments of a method.
    pub fn put_arguments(&self, out: &mut Out, row: usize) -> Result<()> {
        let put = |out: &mut Out, (name, _, column): &(String, Vec<u8>, Column<'_>)| {
            column.put_argument(out, row).map_err(|fault| fault.inside(name))
        };
        match self.fields.as_slice() {
            [] => writer::put_text(out, ""),
            [one] => put(out, one)?,
            several => {
                let block = writer::open_block(out);
                for argument in several {
                    put(out, argument)?;
                }
                writer::close_block(out, block);
            }
        }
        Ok(())
    }
}

fn data<'a>(kind: &Kind, parts: &Buffers<'a>, manner: Manner) -> Result<Data<'a>> {
    Ok(match kind {
        Kind::Bool => Data::Bool(parts.bits()?),
        Kind::Int { bytes: 1, signed: true } => Data::Int8(parts.fixed()?),
        Kind::Int { bytes: 2, signed: true } => Data::Int16(parts.fixed()?),
        Kind::Int { bytes: 4, signed: true } => Data::Int32(parts.fixed()?),
        Kind::Int { signed: true, .. } => Data::Int64(parts.fixed()?),
        Kind::Int { bytes: 1, .. } => Data::UInt8(parts.fixed()?),
        Kind::Int { bytes: 2, .. } => Data::UInt16(parts.fixed()?),
        Kind::Int { bytes: 4, .. } => Data::UInt32(parts.fixed()?),
        Kind::Int { .. } => Data::UInt64(parts.fixed()?),
        Kind::Float32 => Data::Float32(parts.fixed()?),
        Kind::Float64 => Data::Float64(parts.fixed()?),
        Kind::Text => Data::Text(parts.strings()?),
        Kind::Binary => Data::Binary(parts.strings()?),
        Kind::Dictionary => {
            let values = parts.dictionary.as_ref().ok_or_else(short)?;
            Data::Dictionary(parts.fixed()?, values.strings()?)
        }
        Kind::Uuid => Data::Uuid(parts.fixed()?),
        Kind::Timestamp(unit) => Data::Timestamp(parts.fixed()?, *unit, parts.has_zone),
        Kind::Date => Data::Date(parts.fixed()?),
        Kind::Time(unit @ (Unit::Second | Unit::Milli)) => Data::ShortTime(parts.fixed()?, *unit),
        Kind::Time(unit) => Data::LongTime(parts.fixed()?, *unit),
        Kind::Decimal { scale, .. } => Data::Decimal(parts.fixed()?, *scale),
        Kind::Struct(fields) => Data::Struct(Named::new(fields, &parts.children, manner)?),
        Kind::List(item) => {
            let [items] = parts.children.as_slice() else { return Err(short()) };
            let item = Field { name: String::new(), ..(**item).clone() };
            Data::List(parts.offsets()?, Box::new(Column::new(&item, items, manner)?))
        }
        Kind::Map(value) => {
            let [keys, values] = parts.children.as_slice() else { return Err(short()) };
            let value = Field { name: String::new(), ..(**value).clone() };
            let values = Box::new(Column::new(&value, values, manner)?);
            Data::Map(parts.offsets()?, keys.strings()?, values)
        }
    })
}

fn put_list(
    out: &mut Out,
    rows: std::ops::Range<usize>,
    item: &Column<'_>,
    style: Style,
) -> Result<()> {
    let block = writer::open_block(out);
    for (place, row) in rows.enumerate() {
        item.put_item(out, row, style).map_err(|fault| fault.inside(format_args!("[{place}]")))?;
    }
    writer::close_block(out, block);
    Ok(())
}

fn put_entries(
    out: &mut Out,
    rows: std::ops::Range<usize>,
    keys: &Strings<'_>,
    values: &Column<'_>,
    style: Style,
) -> Result<()> {
    if style == Style::Entries && rows.is_empty() {
        put_type_prefix(out, EMPTY_MAP);
    }
    let block = writer::open_block(out);
    for row in rows {
        let key = std::str::from_utf8(keys.get(row)?)
            .map_err(|_| WireError::new("the key is not UTF-8"))?;
        writer::put_key(out, key)?;
        values.put_item(out, row, style).map_err(|fault| fault.inside(key))?;
    }
    writer::close_block(out, block);
    Ok(())
}

fn dictionary_text<'a>(codes: &[[u8; 4]], values: &Strings<'a>, row: usize) -> Result<&'a [u8]> {
    let code = codes.get(row).map(|code| i32::from_le_bytes(*code));
    values.get(code.and_then(|code| usize::try_from(code).ok()).ok_or_else(short)?)
}

#[inline]
fn put_int(out: &mut Out, value: i64, bits: u32, style: Style) {
    match style {
        Style::Entries if i32::try_from(value).is_ok() => writer::put_boxed_int(out, value, 32),
        Style::Entries => writer::put_int64(out, value),
        Style::Declared => writer::put_compact(out, value),
        Style::Boxed => writer::put_boxed_int(out, value, bits),
    }
}

#[inline]
fn put_f64(out: &mut Out, value: f64, style: Style) {
    match style {
        Style::Declared => writer::put_f64(out, value),
        _ => writer::put_boxed_f64(out, value),
    }
}

#[inline]
fn put_f32(out: &mut Out, value: f32, style: Style) {
    match style {
        Style::Entries => writer::put_boxed_f64(out, value.into()),
        Style::Declared => writer::put_f32(out, value),
        Style::Boxed => writer::put_boxed_f32(out, value),
    }
}

#[inline]
fn put_utf8(out: &mut Out, text: &[u8]) {
    match text.iter().any(|byte| *byte >= 0xF0).then(|| std::str::from_utf8(text)) {
        Some(Ok(text)) => writer::put_text(out, text),
        _ => put_text_bytes(out, text),
    }
}

/// The two halves of 16 big-endian bytes.
fn halves(bytes: [u8; 16]) -> (u64, u64) {
    let number = u128::from_le_bytes(bytes).swap_bytes();
    let half = |number: u128| u64::try_from(number & u128::from(u64::MAX)).unwrap_or(0);
    (half(number >> 64), half(number))
}
