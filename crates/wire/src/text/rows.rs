//! Rows of Arrow columns as text: CSV, one JSON object per line, or cells separated by tabs.

use std::fmt::Write;

use super::hex;
use super::json::{put_float, put_string};
use super::number::{put_hex, put_int};
use crate::error::{Result, WireError};
use crate::temporal::Date;

const DAY_S: i64 = 86_400;

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// Comma-separated; a cell is quoted if necessary.
    Csv,
    /// One JSON object per line.
    Json,
    /// Cells separated by tabs, on one line.
    Text,
}

/// A column, as Arrow lays it out.
pub struct Column<'a> {
    pub name: String,
    /// The position of the first row in the buffers.
    pub start: usize,
    /// A bit for each row: whether it has a value. Without it, all have one.
    pub validity: Option<&'a [u8]>,
    pub values: Values<'a>,
}

/// The values of a column, in little-endian buffers.
pub enum Values<'a> {
    /// A bit for each row.
    Bool(&'a [u8]),
    /// Integers of 1, 2, 4 or 8 bytes.
    Int { data: &'a [u8], width: usize, is_signed: bool },
    /// Indexes of messages, of 8 bytes: in hexadecimal, except in CSV.
    Index(&'a [u8]),
    /// Floats of 4 or 8 bytes.
    Float { data: &'a [u8], width: usize },
    /// UTF-8, with offsets of 4 bytes.
    Text { offsets: &'a [u8], data: &'a [u8] },
    /// Values that are JSON already, with offsets of 4 bytes.
    Json { offsets: &'a [u8], data: &'a [u8] },
    /// Bytes, with offsets of 4 bytes.
    Binary { offsets: &'a [u8], data: &'a [u8] },
    /// Bytes, equally many for each row.
    Fixed { data: &'a [u8], width: usize },
    /// Days since 1970, of 4 bytes.
    Date(&'a [u8]),
    /// Times of day in units of which a second has `per_second`, of 4 or 8 bytes.
    Time { data: &'a [u8], width: usize, per_second: i64 },
    /// Times since 1970, of 8 bytes; in UTC or in no zone.
    Stamp { data: &'a [u8], per_second: i64, is_utc: bool },
    /// Named values.
    Struct(Vec<Column<'a>>),
    /// Lists, with offsets of 4 bytes.
    List { offsets: &'a [u8], items: Box<Column<'a>> },
}

/// Appends a row, with the end of its line.
pub fn put(out: &mut String, style: Style, columns: &[Column<'_>], row: usize) -> Result<()> {
    if style == Style::Json {
        put_object(out, columns, row)?;
    } else {
        for (number, column) in columns.iter().enumerate() {
            if number > 0 {
                out.push(if style == Style::Csv { ',' } else { '\t' });
            }
            let start = out.len();
            column.put(out, style, row)?;
            match style {
                Style::Csv => quote(out, start, columns.len() == 1),
                _ => escape_ends(out, start),
            }
        }
    }
    out.push('\n');
    Ok(())
}

/// Quotes a cell if a reader would otherwise misread it.
fn quote(out: &mut String, start: usize, is_alone: bool) {
    let cell = &out[start..];
    let is_empty_line = is_alone && cell.is_empty();
    if is_empty_line || cell.bytes().any(|byte| matches!(byte, b',' | b'"' | b'\n' | b'\r')) {
        let quoted = format!("\"{}\"", cell.replace('"', "\"\""));
        out.replace_range(start.., &quoted);
    }
}

/// Escapes what would end a cell of text: line ends, and the tabs that separate cells.
fn escape_ends(out: &mut String, start: usize) {
    if out[start..].contains(['\n', '\t']) {
        let escaped = out[start..].replace('\n', "\\n").replace('\t', "\\t");
        out.replace_range(start.., &escaped);
    }
}

fn put_object(out: &mut String, columns: &[Column<'_>], row: usize) -> Result<()> {
    out.push('{');
    for (number, column) in columns.iter().enumerate() {
        out.push_str(if number > 0 { ", " } else { "" });
        put_string(out, &column.name);
        out.push_str(": ");
        column.put(out, Style::Json, row)?;
    }
    out.push('}');
    Ok(())
}

impl Column<'_> {
    /// Appends a value; in CSV and text a missing one is empty, and texts have no quotes.
    fn put(&self, out: &mut String, style: Style, row: usize) -> Result<()> {
        let is_json = style == Style::Json;
        let place = self.start.checked_add(row).ok_or_else(|| short(row))?;
        if !self.validity.map_or(Ok(true), |bits| bit(bits, place))? {
            out.push_str(if is_json { "null" } else { "" });
            return Ok(());
        }
        let is_quoted = is_json && self.values.is_quoted();
        out.push_str(if is_quoted { "\"" } else { "" });
        match &self.values {
            Values::Bool(data) => out.push_str(if bit(data, place)? { "true" } else { "false" }),
            Values::Int { data, width, is_signed } => {
                put_integer(out, data, *width, *is_signed, place)?;
            }
            Values::Index(data) if style == Style::Csv => put_integer(out, data, 8, false, place)?,
            Values::Index(data) => put_hex(out, i64::from_le_bytes(number(data, place)?)),
            Values::Float { data, width: 4 } => {
                put_number(out, is_json, f64::from(f32::from_le_bytes(number(data, place)?)));
            }
            Values::Float { data, .. } => {
                put_number(out, is_json, f64::from_le_bytes(number(data, place)?));
            }
            Values::Text { offsets, data } => put_text(out, is_json, part(offsets, data, place)?)?,
            Values::Json { offsets, data } => {
                put_json(out, is_json, utf8(part(offsets, data, place)?)?);
            }
            Values::Binary { offsets, data } => hex::put_digits(out, part(offsets, data, place)?),
            Values::Fixed { data, width } => {
                let from = place.checked_mul(*width).ok_or_else(|| short(place))?;
                hex::put_digits(out, data.get(from..from + width).ok_or_else(|| short(place))?);
            }
            Values::Date(data) => {
                put_date(out, i64::from(i32::from_le_bytes(number(data, place)?)));
            }
            Values::Time { data, width: 4, per_second } => {
                put_time(out, i64::from(i32::from_le_bytes(number(data, place)?)), *per_second);
            }
            Values::Time { data, per_second, .. } => {
                put_time(out, i64::from_le_bytes(number(data, place)?), *per_second);
            }
            Values::Stamp { data, per_second, is_utc } => {
                let (stamp, day) = (i64::from_le_bytes(number(data, place)?), DAY_S * per_second);
                put_date(out, stamp.div_euclid(day));
                out.push('T');
                put_time(out, stamp.rem_euclid(day), *per_second);
                out.push_str(if *is_utc { "+00:00" } else { "" });
            }
            Values::Struct(columns) => put_object(out, columns, row)?,
            Values::List { offsets, items } => put_list(out, range(offsets, place)?, items)?,
        }
        out.push_str(if is_quoted { "\"" } else { "" });
        Ok(())
    }
}

impl Values<'_> {
    /// Whether values of this kind are quoted in JSON and never need escapes.
    const fn is_quoted(&self) -> bool {
        matches!(
            self,
            Self::Index(_)
                | Self::Binary { .. }
                | Self::Fixed { .. }
                | Self::Date(_)
                | Self::Time { .. }
                | Self::Stamp { .. }
        )
    }
}

fn put_list(out: &mut String, rows: std::ops::Range<usize>, items: &Column<'_>) -> Result<()> {
    out.push('[');
    for row in rows.clone() {
        out.push_str(if row > rows.start { ", " } else { "" });
        items.put(out, Style::Json, row)?;
    }
    out.push(']');
    Ok(())
}

fn put_text(out: &mut String, is_json: bool, bytes: &[u8]) -> Result<()> {
    let text = utf8(bytes)?;
    if is_json {
        put_string(out, text);
    } else {
        out.push_str(text);
    }
    Ok(())
}

/// A value that is JSON already; in CSV and text, a string as such, and nothing for `null`.
fn put_json(out: &mut String, is_json: bool, value: &str) {
    match serde_json::from_str::<Option<String>>(value) {
        Ok(text) if !is_json => out.push_str(text.as_deref().unwrap_or_default()),
        _ => out.push_str(value),
    }
}

fn put_integer(
    out: &mut String,
    data: &[u8],
    width: usize,
    is_signed: bool,
    place: usize,
) -> Result<()> {
    let value = match (width, is_signed) {
        (1, true) => i64::from(i8::from_le_bytes(number(data, place)?)),
        (2, true) => i64::from(i16::from_le_bytes(number(data, place)?)),
        (4, true) => i64::from(i32::from_le_bytes(number(data, place)?)),
        (_, true) => i64::from_le_bytes(number(data, place)?),
        (1, _) => i64::from(u8::from_le_bytes(number(data, place)?)),
        (2, _) => i64::from(u16::from_le_bytes(number(data, place)?)),
        (4, _) => i64::from(u32::from_le_bytes(number(data, place)?)),
        _ => {
            let _ = write!(out, "{}", u64::from_le_bytes(number(data, place)?));
            return Ok(());
        }
    };
    put_int(out, value);
    Ok(())
}

/// A float in the form of messages as JSON; CSV and text need no quotes around `NaN`.
fn put_number(out: &mut String, is_json: bool, value: f64) {
    if is_json || value.is_finite() {
        put_float(out, value);
    } else {
        let sign = if value < 0.0 { "-" } else { "" };
        let _ = write!(out, "{sign}{}", if value.is_nan() { "NaN" } else { "Infinity" });
    }
}

fn put_date(out: &mut String, days: i64) {
    let Date { year, month, day } = Date::of_epoch_day(days);
    let _ = write!(out, "{year:04}-{month:02}-{day:02}");
}

/// A time of day, without a fraction or with one of 6 or 9 digits.
fn put_time(out: &mut String, time: i64, per_second: i64) {
    let (seconds, nanos) = (time / per_second, time % per_second * (1_000_000_000 / per_second));
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let _ = write!(out, "{hour:02}:{minute:02}:{second:02}");
    let _ = match nanos {
        0 => Ok(()),
        _ if nanos % 1000 == 0 => write!(out, ".{:06}", nanos / 1000),
        _ => write!(out, ".{nanos:09}"),
    };
}

fn bit(bits: &[u8], place: usize) -> Result<bool> {
    let byte = bits.get(place / 8).ok_or_else(|| short(place))?;
    Ok(byte >> (place % 8) & 1 == 1)
}

fn number<const WIDTH: usize>(data: &[u8], place: usize) -> Result<[u8; WIDTH]> {
    let found = place.checked_mul(WIDTH).and_then(|at| data.get(at..)?.first_chunk());
    found.copied().ok_or_else(|| short(place))
}

fn range(offsets: &[u8], place: usize) -> Result<std::ops::Range<usize>> {
    let at = |place| {
        let offset = i32::from_le_bytes(number(offsets, place)?);
        usize::try_from(offset).map_err(|_| short(place))
    };
    Ok(at(place)?..at(place + 1)?)
}

fn part<'a>(offsets: &[u8], data: &'a [u8], place: usize) -> Result<&'a [u8]> {
    data.get(range(offsets, place)?).ok_or_else(|| short(place))
}

fn utf8(bytes: &[u8]) -> Result<&str> {
    std::str::from_utf8(bytes).map_err(|_| WireError::new("the column's text is no UTF-8"))
}

#[cold]
fn short(place: usize) -> WireError {
    WireError::new("the column's buffers end before its rows").with("row", place)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(style: Style, values: Values<'_>, row: usize) -> Result<String> {
        let column = Column { name: "x".into(), start: 0, validity: None, values };
        let mut out = String::new();
        put(&mut out, style, &[column], row)?;
        Ok(out)
    }

    fn texts(text: &str) -> (Vec<u8>, &[u8]) {
        let length = i32::try_from(text.len()).unwrap();
        ([0, length].iter().flat_map(|it| it.to_le_bytes()).collect(), text.as_bytes())
    }

    #[test]
    fn a_cell_of_csv_is_in_quotes_where_it_must_be() {
        for (text, cell) in [
            ("plain text", "plain text"),
            ("a,b", "\"a,b\""),
            ("say \"a\"", "\"say \"\"a\"\"\""),
            ("two\nlines", "\"two\nlines\""),
            ("a\rb", "\"a\rb\""),
            ("", "\"\""),
        ] {
            let (offsets, data) = texts(text);
            let found = line(Style::Csv, Values::Text { offsets: &offsets, data }, 0).unwrap();
            assert_eq!(found, format!("{cell}\n"));
        }
    }

    #[test]
    fn numbers_are_those_of_json() {
        let bits = [1e16, 0.1, f64::NAN, f64::NEG_INFINITY].map(f64::to_le_bytes).concat();
        let found = |style, row| line(style, Values::Float { data: &bits, width: 8 }, row).unwrap();
        assert_eq!(
            [0, 1, 2, 3].map(|row| found(Style::Csv, row)),
            ["1e16\n", "0.1\n", "NaN\n", "-Infinity\n"]
        );
        assert_eq!(found(Style::Json, 2), "{\"x\": \"NaN\"}\n");
        let most = Values::Int { data: &[0xFF; 8], width: 8, is_signed: false };
        assert_eq!(line(Style::Text, most, 0).unwrap(), "18446744073709551615\n");
        let least = Values::Int { data: &[0xFF; 2], width: 2, is_signed: true };
        assert_eq!(line(Style::Text, least, 0).unwrap(), "-1\n");
    }

    #[test]
    fn times_have_no_fraction_or_six_or_nine_digits_of_one() {
        for (nanos, text) in [
            (0, "1970-01-01T00:00:00+00:00"),
            (1_705_314_600_120_000_000, "2024-01-15T10:30:00.120000+00:00"),
            (-1, "1969-12-31T23:59:59.999999999+00:00"),
        ] {
            let data = i64::to_le_bytes(nanos);
            let stamp = Values::Stamp { data: &data, per_second: 1_000_000_000, is_utc: true };
            assert_eq!(line(Style::Csv, stamp, 0).unwrap(), format!("{text}\n"));
        }
    }

    #[test]
    fn a_value_that_is_json_already_is_text_in_csv() {
        for (value, cell) in
            [("\"a\\nb\"", "\"a\nb\""), ("[1, 2]", "\"[1, 2]\""), ("3", "3"), ("null", "\"\"")]
        {
            let (offsets, data) = texts(value);
            let found = line(Style::Csv, Values::Json { offsets: &offsets, data }, 0).unwrap();
            assert_eq!(found, format!("{cell}\n"));
        }
    }

    #[test]
    fn buffers_that_end_early_are_an_error() {
        let (offsets, _) = texts("long text");
        for values in [
            Values::Text { offsets: &offsets, data: b"short" },
            Values::Text { offsets: &[0; 4], data: b"" },
            Values::Bool(&[]),
            Values::Stamp { data: &[0; 7], per_second: 1, is_utc: false },
            Values::Fixed { data: &[0; 3], width: 4 },
        ] {
            let error = line(Style::Json, values, 0).unwrap_err().to_string();
            assert!(error.contains("end before its rows"), "{error}");
        }
        assert!(line(Style::Csv, Values::Bool(&[0xFF]), 8).is_err());
    }
}
