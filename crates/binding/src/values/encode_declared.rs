//! Values of declared types as tokens, in the forms that Java's generated writers choose.

use pyo3::prelude::*;
use pyo3::types::{
    PyBool, PyByteArray, PyBytes, PyFloat, PyFrozenSet, PyInt, PyList, PyMapping, PyMemoryView,
    PySet, PyString, PyTuple,
};
use quire_wire::codes::{DATE, DATE_TIME, TIME, ZONED_DATE_TIME};
use quire_wire::convert::Width;
use quire_wire::out::Out;
use quire_wire::reader;
use quire_wire::writer::put_type_prefix;
use quire_wire::writer::{self, Scalar};

use super::failure::Result;
use super::numpy::Plain;
use super::schema::{Form, Kind};
use super::{array, classes, encode, numpy, temporal};
use crate::buffer::Borrowed;

impl Kind {
    /// Appends a value. None is null wherever Java has a reference.
    pub fn put(&self, out: &mut Out, value: &Bound<'_, PyAny>, depth: usize) -> Result<()> {
        match &self.0 {
            Form::Text => match value.cast::<PyString>() {
                Ok(text) => writer::put_text(out, &text.to_cow()?),
                Err(_) => return self.put_null(out, value),
            },
            Form::Int(width, _) => writer::put_compact(out, self.int(*width, value)?),
            Form::Float64 => writer::put_f64(out, self.float(value)?),
            #[allow(clippy::cast_possible_truncation)] // as declared
            Form::Float32 => writer::put_f32(out, self.float(value)? as f32),
            Form::Bool => match value.cast::<PyBool>() {
                Ok(flag) => writer::put_bool(out, flag.is_true()),
                Err(_) => return self.put_numpy(out, value, depth),
            },
            Form::Message(codec) if !value.is_none() => {
                return codec.get().put_declared(out, value, reader::deeper(depth, out.len())?);
            }
            Form::Optional(_) if value.is_none() => writer::put_null(out),
            Form::Optional(kind) => return kind.get().put(out, value, depth),
            Form::Any => return encode::put_value(out, value, depth),
            Form::Literal(kind, _) => {
                return kind.get().put(out, &self.checked(value.clone())?, depth);
            }
            Form::Array(item, dtype) => {
                return array::put(self, item.get(), dtype.as_deref(), out, value, depth);
            }
            _ if value.is_none() => writer::put_null(out),
            _ => return self.put_object(out, value, depth),
        }
        Ok(())
    }

    fn put_null(&self, out: &mut Out, value: &Bound<'_, PyAny>) -> Result<()> {
        if !value.is_none() {
            return Err(self.misfit(value));
        }
        writer::put_null(out);
        Ok(())
    }

    pub fn int(&self, width: Width, value: &Bound<'_, PyAny>) -> Result<i64> {
        match value.cast::<PyInt>().ok().and_then(|number| number.extract::<i64>().ok()) {
            Some(number) if width.min <= number && number <= width.max => Ok(number),
            _ => self.int_of_numpy(width, value),
        }
    }

    #[cold]
    #[inline(never)]
    fn int_of_numpy(&self, width: Width, value: &Bound<'_, PyAny>) -> Result<i64> {
        match numpy::plain_value(value)? {
            Some(plain) if plain.is_instance_of::<PyInt>() => self.int(width, &plain),
            _ => Err(self.misfit(value)),
        }
    }

    pub fn float(&self, value: &Bound<'_, PyAny>) -> Result<f64> {
        if let Ok(number) = value.cast::<PyFloat>() {
            return Ok(number.value());
        }
        value.extract().map_err(|_| self.misfit(value))
    }

    #[inline(never)] // its frame is not for every value
    fn put_object(&self, out: &mut Out, value: &Bound<'_, PyAny>, depth: usize) -> Result<()> {
        let py = value.py();
        match &self.0 {
            Form::Bytes => self.put_bytes(out, value),
            Form::Enum(members) if value.is_instance(members.class.bind(py))? => {
                writer::put_text(out, &classes::enum_name(value)?);
                Ok(())
            }
            Form::Decimal if value.is_instance(classes::decimal(py)?)? => {
                writer::put_text(out, &encode::decimal_text(value)?);
                Ok(())
            }
            Form::Uuid if value.is_instance(classes::uuid(py)?)? => {
                Ok(encode::put_uuid(out, value)?)
            }
            Form::Duration if value.is_instance(classes::timedelta(py)?)? => {
                writer::put_text(out, &temporal::duration_text(value)?);
                Ok(())
            }
            Form::Date | Form::Time | Form::DateTime => self.put_temporal(out, value),
            Form::Instant => match temporal::instant_text(value)? {
                Some(text) => {
                    put_type_prefix(out, "java.time.Instant");
                    writer::put_text(out, &text);
                    Ok(())
                }
                None => Err(self.misfit(value)),
            },
            form if form.is_container() => self.put_elements(out, value, depth, Self::put_element),
            _ => self.put_numpy(out, value, depth),
        }
    }

    /// Appends a numpy scalar as its Python value.
    #[cold]
    #[inline(never)]
    fn put_numpy(&self, out: &mut Out, value: &Bound<'_, PyAny>, depth: usize) -> Result<()> {
        match (numpy::plain(value)?, &self.0) {
            (Some(Plain::Value(plain)), _) => self.put(out, &plain, depth),
            (Some(Plain::Temporal(DATE, text)), Form::Date) => {
                writer::put_temporal(out, DATE, &text);
                Ok(())
            }
            (Some(Plain::Temporal(DATE_TIME, text)), Form::DateTime) => {
                writer::put_temporal(out, DATE_TIME, &text);
                Ok(())
            }
            (Some(Plain::Duration(text)), Form::Duration) => {
                writer::put_text(out, &text);
                Ok(())
            }
            _ => Err(self.misfit(value)),
        }
    }

    /// Appends a value as the argument of a method, as Java's generated writers do: they treat
    /// elements of collections as being of any type.
    pub fn put_argument(
        &self,
        out: &mut Out,
        value: &Bound<'_, PyAny>,
        depth: usize,
    ) -> Result<()> {
        match &self.0 {
            Form::Optional(kind) if !value.is_none() => kind.get().put_argument(out, value, depth),
            form if form.is_container() => self.put_boxed(out, value, depth),
            _ => self.put(out, value, depth),
        }
    }

    /// Appends a value where Java does not use the declared type: numbers at their width, objects
    /// under their class names.
    fn put_boxed(&self, out: &mut Out, value: &Bound<'_, PyAny>, depth: usize) -> Result<()> {
        if value.is_none() {
            writer::put_null(out);
            return Ok(());
        }
        match &self.0 {
            Form::Int(width, bits) => {
                let bits = if width.min < 0 { *bits } else { *bits * 2 };
                writer::put_boxed_int(out, self.int(*width, value)?, bits);
            }
            Form::Float64 => writer::put_scalar(out, Scalar::Float(self.float(value)?))?,
            #[allow(clippy::cast_possible_truncation)] // as declared
            Form::Float32 => writer::put_boxed_f32(out, self.float(value)? as f32),
            Form::Message(_) | Form::Enum(_) | Form::Bytes => {
                return encode::put_value(out, value, depth);
            }
            Form::Optional(kind) => return kind.get().put_boxed(out, value, depth),
            Form::Literal(kind, _) => {
                return kind.get().put_boxed(out, &self.checked(value.clone())?, depth);
            }
            form if form.is_container() => {
                if matches!(form, Form::Set(_) | Form::FrozenSet(_)) {
                    put_type_prefix(out, "!set");
                }
                return self.put_elements(out, value, depth, Self::put_boxed);
            }
            _ => return self.put(out, value, depth),
        }
        Ok(())
    }

    /// Appends an element of a collection with a declared type; a nested collection does not use
    /// its own.
    fn put_element(&self, out: &mut Out, value: &Bound<'_, PyAny>, depth: usize) -> Result<()> {
        if self.0.is_container() {
            self.put_boxed(out, value, depth)
        } else {
            self.put(out, value, depth)
        }
    }

    /// Appends a collection, whose elements are appended by `put`.
    fn put_elements(
        &self,
        out: &mut Out,
        value: &Bound<'_, PyAny>,
        depth: usize,
        put: Put,
    ) -> Result<()> {
        match &self.0 {
            Form::List(item) | Form::Tuple(item)
                if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() =>
            {
                put_each(out, item.get(), value, depth, put)
            }
            Form::Set(item) | Form::FrozenSet(item)
                if value.is_instance_of::<PySet>() || value.is_instance_of::<PyFrozenSet>() =>
            {
                put_each(out, item.get(), value, depth, put)
            }
            Form::Dict(key, item) => match value.cast::<PyMapping>() {
                Ok(entries) => put_dict(out, (key.get(), item.get()), entries, depth, put),
                Err(_) => Err(self.misfit(value)),
            },
            _ => Err(self.misfit(value)),
        }
    }

    fn put_bytes(&self, out: &mut Out, value: &Bound<'_, PyAny>) -> Result<()> {
        if let Ok(bytes) = value.cast::<PyBytes>() {
            return Ok(writer::put_blob(out, bytes.as_bytes())?);
        }
        if value.is_instance_of::<PyByteArray>() || value.is_instance_of::<PyMemoryView>() {
            return Ok(writer::put_blob(out, Borrowed::new(value)?.bytes())?);
        }
        Err(self.misfit(value))
    }

    fn put_temporal(&self, out: &mut Out, value: &Bound<'_, PyAny>) -> Result<()> {
        let found = temporal::text(value)?;
        match (found, &self.0) {
            (Some((DATE, text)), Form::Date) => writer::put_temporal(out, DATE, &text),
            (Some((TIME, text)), Form::Time) => writer::put_temporal(out, TIME, &text),
            (Some((code @ (DATE_TIME | ZONED_DATE_TIME), text)), Form::DateTime) => {
                writer::put_temporal(out, code, &text);
            }
            (None, _) => return self.put_numpy(out, value, 0),
            _ => return Err(self.misfit(value)),
        }
        Ok(())
    }
}

/// Appends an element of a collection.
type Put = fn(&Kind, &mut Out, &Bound<'_, PyAny>, usize) -> Result<()>;

/// Appends a list of elements, each by `put`.
pub fn put_each(
    out: &mut Out,
    item: &Kind,
    values: &Bound<'_, PyAny>,
    depth: usize,
    put: Put,
) -> Result<()> {
    let depth = reader::deeper(depth, out.len())?;
    let block = writer::open_block(out);
    for (place, value) in values.try_iter()?.enumerate() {
        put(item, out, &value?, depth)
            .map_err(|failure| failure.inside(format_args!("[{place}]")))?;
    }
    writer::close_block(out, block);
    Ok(())
}

fn put_dict(
    out: &mut Out,
    (key_kind, kind): (&Kind, &Kind),
    entries: &Bound<'_, PyMapping>,
    depth: usize,
    put: Put,
) -> Result<()> {
    let depth = reader::deeper(depth, out.len())?;
    let block = writer::open_block(out);
    for item in entries.items()?.iter() {
        let (key, value): (Bound<'_, PyAny>, Bound<'_, PyAny>) = item.extract()?;
        if let Ok(name) = key.cast_exact::<PyString>() {
            writer::put_key(out, &name.to_cow()?)?;
        } else {
            writer::put_object_key(out);
            put(key_kind, out, &key, depth)?;
        }
        put(kind, out, &value, depth).map_err(|failure| failure.inside(&key))?;
    }
    writer::close_block(out, block);
    Ok(())
}
