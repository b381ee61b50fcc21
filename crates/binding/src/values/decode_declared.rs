//! Values of declared types from tokens.

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFrozenSet, PyList, PySet, PyString};
use quire_wire::WireError;
use quire_wire::codes::{DATE, DATE_TIME, TIME, ZONED_DATE_TIME};
use quire_wire::compress::Method;
use quire_wire::convert;
use quire_wire::latin1;
use quire_wire::out::Out;
use quire_wire::reader::{self, Name, Reader, Shape, Token};
use quire_wire::writer;

use super::failure::Result;
use super::schema::{Form, Kind};
use super::{array, classes, decode, temporal};
use crate::buffer;
use crate::error::to_py;

/// What older releases wrote for a missing pandas time.
const MISSING: &str = "NaT";

impl Kind {
    /// Reads the next value as this type.
    pub fn get<'py>(
        &self,
        py: Python<'py>,
        cursor: &mut Reader<'_>,
        depth: usize,
    ) -> Result<Bound<'py, PyAny>> {
        let at = cursor.offset();
        Ok(match &self.0 {
            Form::Int(width, _) => buffer::int(py, convert::next_int(cursor, *width)?)?,
            Form::Float64 => buffer::float(py, convert::next_float(cursor)?)?,
            Form::Float32 => buffer::float(py, convert::float32(cursor.value()?, at)?)?,
            Form::Text => {
                if let Some(bytes) = cursor.string_if() {
                    return Ok(string(py, bytes, at)?.into_any());
                }
                let found = cursor.value()?;
                if let Token::TypePrefix(name) = found
                    && let Some(method) = Method::named(name)
                {
                    return unpacked_text(py, method, cursor, depth);
                }
                match convert::text(found, at)? {
                    Some(text) => buffer::text(py, &text)?.into_any(),
                    None => py.None().into_bound(py),
                }
            }
            Form::Bool => {
                let flag = convert::boolean(cursor.value()?, at)?;
                PyBool::new(py, flag).to_owned().into_any()
            }
            Form::Any => decode::get(py, cursor, depth)?,
            Form::Message(codec) => codec.get().get_value(py, cursor, depth)?,
            Form::Literal(kind, _) => self.checked_at(kind.get().get(py, cursor, depth)?, at)?,
            Form::Array(item, dtype) => {
                array::get(self, item.get(), dtype.as_deref(), py, cursor, depth)?
            }
            Form::Optional(kind) => {
                let mut ahead = *cursor;
                if matches!(ahead.value()?, Token::Null) {
                    *cursor = ahead;
                    return Ok(py.None().into_bound(py));
                }
                kind.get().get(py, cursor, depth)?
            }
            _ => self.get_object(py, cursor, depth)?,
        })
    }

    fn get_object<'py>(
        &self,
        py: Python<'py>,
        cursor: &mut Reader<'_>,
        depth: usize,
    ) -> Result<Bound<'py, PyAny>> {
        let at = cursor.offset();
        let mut found = cursor.value()?;
        if let Token::TypePrefix(name) = found {
            if let (Form::Bytes, Some(method)) = (&self.0, Method::named(name)) {
                return decode::unpacked(py, method, cursor, depth);
            }
            found = cursor.value()?; // the declared type takes precedence over the message's
        }
        if matches!(found, Token::Null) {
            return Ok(py.None().into_bound(py));
        }
        match &self.0 {
            Form::Bytes => {
                let bytes = convert::bytes(found, at)?.unwrap_or_default();
                Ok(buffer::bytes(py, bytes).map_err(to_py)?.into_any())
            }
            Form::List(item) => Ok(item.get().elements(py, found, cursor, depth, at)?.into_any()),
            Form::Tuple(item) => {
                Ok(item.get().elements(py, found, cursor, depth, at)?.to_tuple().into_any())
            }
            Form::Set(item) => {
                let items = item.get().elements(py, found, cursor, depth, at)?;
                let set = PySet::new(py, hashables(&items)?);
                set.map(Bound::into_any).map_err(|error| decode::no_key(&items, error))
            }
            Form::FrozenSet(item) => {
                let items = item.get().elements(py, found, cursor, depth, at)?;
                let set = PyFrozenSet::new(py, hashables(&items)?);
                set.map(Bound::into_any).map_err(|error| decode::no_key(&items, error))
            }
            Form::Dict(key, item) => {
                let Token::Block(mut block) = found else {
                    return Err(convert::misfit(&found, "a map", at).into());
                };
                Ok(item.get().entries(py, key.get(), &mut block, depth)?.into_any())
            }
            Form::Uuid => match found {
                Token::Uuid(..) => decode::of_token(py, found, cursor, depth, at),
                _ => Err(convert::misfit(&found, "a UUID", at).into()),
            },
            _ => self.of_text(py, &found, at),
        }
    }

    /// The elements of a list; one scalar is a list of itself, as in Java.
    pub fn elements<'py>(
        &self,
        py: Python<'py>,
        found: Token<'_>,
        cursor: &mut Reader<'_>,
        depth: usize,
        at: usize,
    ) -> Result<Bound<'py, PyList>> {
        let items = buffer::empty_list(py)?;
        let depth = reader::deeper(depth, at)?;
        match found {
            Token::Block(mut block) => {
                return match block.shape() {
                    Shape::Empty | Shape::List => {
                        decode::list(py, &mut block, |cursor| self.get(py, cursor, depth))
                    }
                    Shape::Longs => self.elements(py, block.value()?, cursor, depth, at),
                    _ => Err(convert::misfit(&found, "a list", at).into()),
                };
            }
            Token::Longs { used, .. } => {
                for word in used.as_chunks().0 {
                    items.append(i64::from_le_bytes(*word))?;
                }
            }
            _ => {
                let mut again = cursor.back_to(at);
                items.append(self.get(py, &mut again, depth)?)?;
            }
        }
        Ok(items)
    }

    fn entries<'py>(
        &self,
        py: Python<'py>,
        key_kind: &Self,
        block: &mut Reader<'_>,
        depth: usize,
    ) -> Result<Bound<'py, PyDict>> {
        let found = buffer::empty_dict(py)?;
        let depth = reader::deeper(depth, block.offset())?;
        while let Some(name) = block.name()? {
            let key = match name {
                Name::Field(name) | Name::Event(name) => {
                    key_kind.of_name(py, &latin1::decode(name))?
                }
                Name::Number(number) => key_kind.of_name(py, &number.to_string())?,
                Name::Object => key_kind.get(py, block, depth)?,
            };
            let value = self.get(py, block, depth).map_err(|failure| failure.inside(&key))?;
            decode::set_entry(&found, decode::hashable(key)?, value)?;
        }
        Ok(found)
    }

    /// A key in the form of a name.
    fn of_name<'py>(&self, py: Python<'py>, name: &str) -> Result<Bound<'py, PyAny>> {
        if matches!(self.0, Form::Any | Form::Text) {
            return Ok(buffer::text(py, name)?.into_any());
        }
        let mut key = Out::new();
        writer::put_text(&mut key, name);
        self.get(py, &mut Reader::new(key.written()?), 0).map_err(|failure| failure.inside(name))
    }

    /// Types whose values are strings, or similar.
    fn of_text<'py>(
        &self,
        py: Python<'py>,
        found: &Token<'_>,
        at: usize,
    ) -> Result<Bound<'py, PyAny>> {
        let misfit = || convert::misfit(found, &self.name(), at);
        let text = convert::text(*found, at)?.unwrap_or_default();
        match &self.0 {
            Form::Enum(members) => match members.named(&text) {
                Some(member) => Ok(member.clone_ref(py).into_bound(py)),
                None if text.is_empty() => Ok(py.None().into_bound(py)),
                None => Err(misfit().into()),
            },
            Form::Decimal => {
                let is_number = !matches!(found, Token::Bool(_) | Token::Temporal(..));
                classes::decimal(py)?
                    .call1((text.as_ref(),))
                    .ok()
                    .filter(|_| is_number && text.trim() == text && !text.contains(['_', 'n', 'N']))
                    .ok_or_else(|| misfit().into())
            }
            Form::Duration => temporal::duration(py, &text)?.ok_or_else(|| misfit().into()),
            Form::Date | Form::DateTime if text == MISSING => Ok(py.None().into_bound(py)),
            Form::Date | Form::Time | Form::DateTime | Form::Instant
                if matches!(found, Token::Text(_) | Token::Temporal(..)) =>
            {
                let wanted = |code| match self.0 {
                    Form::Date => code == DATE,
                    Form::Time => code == TIME,
                    Form::Instant => code == ZONED_DATE_TIME,
                    _ => code == DATE_TIME || code == ZONED_DATE_TIME,
                };
                let stamp = quire_wire::temporal::parse(&text)
                    .filter(|stamp| wanted(stamp.code()) && temporal::is_known(stamp))
                    .ok_or_else(misfit)?;
                Ok(temporal::of_stamp(py, &stamp)?)
            }
            _ => Err(misfit().into()),
        }
    }
}

/// A string as it is in a message.
#[inline]
fn string<'py>(py: Python<'py>, bytes: &[u8], at: usize) -> Result<Bound<'py, PyString>> {
    // The interpreter decodes UTF-8 itself, but knows no surrogates as Java writes them.
    if bytes.is_ascii() {
        return Ok(PyString::from_bytes(py, bytes)?);
    }
    Ok(buffer::text(py, &reader::text(bytes, at)?)?)
}

/// The elements of a set, made hashable.
fn hashables<'py>(items: &Bound<'py, PyList>) -> PyResult<Vec<Bound<'py, PyAny>>> {
    items.iter().map(decode::hashable).collect()
}

/// A long string in a queue that compresses: its bytes follow the name of the algorithm.
#[cold]
fn unpacked_text<'py>(
    py: Python<'py>,
    method: Method,
    cursor: &mut Reader<'_>,
    depth: usize,
) -> Result<Bound<'py, PyAny>> {
    let at = cursor.offset();
    let found = decode::unpacked(py, method, cursor, depth)?;
    let Ok(bytes) = found.cast::<PyBytes>() else {
        return Err(WireError::unexpected("a compressed blob", None, at).into());
    };
    Ok(buffer::text(py, &reader::text(bytes.as_bytes(), at)?)?.into_any())
}
