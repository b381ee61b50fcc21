//! The fixed layout of a message: concatenated fields, without names or codes, as written by Java's
//! `BytesInBinaryMarshallable` classes (`docs/format.md` §8.6).

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyString};
use quire_wire::WireError;
use quire_wire::out::Out;
use quire_wire::reader::{self, Reader};
use quire_wire::writer::{self, put_stop_bit};

use super::codec::{Field, Plan};
use super::failure::{Failure, Result};
use super::schema::Form;
use crate::buffer;

/// Booleans in Java's fixed layouts: `Y` and `N`.
const TRUE: u8 = b'Y';
const FALSE: u8 = b'N';

/// The form of a field: a text may be null anyway.
fn form(field: &Field) -> &Form {
    let Form::Optional(kind) = &field.kind.get().0 else { return plain(&field.kind.get().0) };
    match plain(&kind.get().0) {
        form @ (Form::Text | Form::Enum(_)) => form,
        _ => &field.kind.get().0,
    }
}

/// The form of a type, without a `Literal` around it.
fn plain(form: &Form) -> &Form {
    if let Form::Literal(kind, _) = form { &kind.get().0 } else { form }
}

/// Rejects a class with a field that has no fixed layout.
pub fn check(plan: &Plan) -> Result<()> {
    for field in &plan.fields {
        let fits = match form(field) {
            Form::Bool
            | Form::Int(..)
            | Form::Float64
            | Form::Float32
            | Form::Text
            | Form::Enum(_) => true,
            Form::Message(codec) => codec.get().bytes_layout,
            _ => false,
        };
        if !fits {
            return Err(WireError::new("a type that bytes_layout does not know")
                .with("type", field.kind.get().name())
                .with(
                    "known",
                    "bool, int8 to int64, float32, float64, str, enums, nested bytes_layout",
                )
                .inside(field.name())
                .into());
        }
    }
    Ok(())
}

/// Appends the fields of an object.
pub fn put(plan: &Plan, out: &mut Out, object: &Bound<'_, PyAny>, depth: usize) -> Result<()> {
    let depth = reader::deeper(depth, out.len())?;
    for field in &plan.fields {
        let value = object.getattr(field.attribute.bind(object.py()))?;
        put_one(field, out, &value, depth).map_err(|failure| failure.inside(field.name()))?;
    }
    Ok(())
}

#[allow(clippy::cast_possible_truncation)] // a float of 32 bits, as declared
fn put_one(field: &Field, out: &mut Out, value: &Bound<'_, PyAny>, depth: usize) -> Result<()> {
    let kind = field.kind.get();
    let value = &kind.checked(value.clone())?;
    let misfit = || -> Failure { kind.misfit(value) };
    match form(field) {
        Form::Bool => {
            let flag = value.cast::<PyBool>().map_err(|_| misfit())?.is_true();
            out.push(if flag { TRUE } else { FALSE });
        }
        Form::Int(width, bits) => {
            let number = kind.int(*width, value)?;
            out.extend_from_slice(&number.to_le_bytes()[..*bits as usize / 8]);
        }
        Form::Float64 => out.extend_from_slice(&kind.float(value)?.to_le_bytes()),
        Form::Float32 => out.extend_from_slice(&(kind.float(value)? as f32).to_le_bytes()),
        Form::Text | Form::Enum(_) if value.is_none() => put_stop_bit(out, -1),
        Form::Text => put_text(out, &value.cast::<PyString>().map_err(|_| misfit())?.to_cow()?),
        Form::Enum(members) => put_text(out, &members.name_of(value).map_err(|_| misfit())?),
        Form::Message(codec) => return codec.get().put_fields(out, value, depth),
        _ => return Err(misfit()),
    }
    Ok(())
}

/// Appends a text after its length.
pub fn put_text(out: &mut Out, text: &str) {
    put_stop_bit(out, writer::cesu8_length(text).cast_signed() as i64);
    writer::put_cesu8(out, text);
}

/// Reads the fields of an object.
pub fn get<'py>(
    py: Python<'py>,
    plan: &Plan,
    cursor: &mut Reader<'_>,
    found: &mut [Option<Bound<'py, PyAny>>],
    depth: usize,
) -> Result<()> {
    let depth = reader::deeper(depth, cursor.offset())?;
    for (field, slot) in plan.fields.iter().zip(found) {
        let at = cursor.offset();
        let value = get_one(py, field, cursor, depth)
            .and_then(|value| field.kind.get().checked_at(value, at));
        *slot = Some(value.map_err(|failure| failure.inside(field.name()))?);
    }
    Ok(())
}

fn get_one<'py>(
    py: Python<'py>,
    field: &Field,
    cursor: &mut Reader<'_>,
    depth: usize,
) -> Result<Bound<'py, PyAny>> {
    let at = cursor.offset();
    let early = || WireError::early("the fixed layout ends early", at);
    let kind = form(field);
    Ok(match kind {
        Form::Bool => {
            let [byte] = cursor.array().ok_or_else(early)?;
            if byte != TRUE && byte != FALSE {
                let expected = "59 (true) or 4e (false)";
                return Err(WireError::new("not a bool")
                    .with("found", format_args!("{byte:02x}"))
                    .with("expected", expected)
                    .with("offset", at)
                    .into());
            }
            PyBool::new(py, byte == TRUE).to_owned().into_any()
        }
        Form::Int(width, bits) => {
            let length = *bits as usize / 8;
            let bytes = cursor.take(length).ok_or_else(early)?;
            let is_negative = width.min < 0 && bytes[length - 1] >= 0x80;
            let mut word = [if is_negative { 0xFF } else { 0 }; 8];
            word[..length].copy_from_slice(bytes);
            buffer::int(py, i64::from_le_bytes(word))?
        }
        Form::Float64 => buffer::float(py, f64::from_le_bytes(cursor.array().ok_or_else(early)?))?,
        Form::Float32 => {
            let number = f32::from_le_bytes(cursor.array().ok_or_else(early)?);
            buffer::float(py, f64::from(number))?
        }
        Form::Message(codec) => codec.get().get_fields(py, cursor, depth)?,
        _ => match cursor.stop_bit().ok_or_else(early)? {
            -1 => py.None().into_bound(py),
            length => {
                let length = usize::try_from(length).map_err(|_| early())?;
                let bytes = cursor.take(length).ok_or_else(early)?;
                let text = reader::text(bytes, at)?;
                match kind {
                    Form::Enum(members) => {
                        members.named(&text).map(|member| member.bind(py).clone()).ok_or_else(
                            || WireError::new("the enum has no such member").with("found", &text),
                        )?
                    }
                    _ => buffer::text(py, &text)?.into_any(),
                }
            }
        },
    })
}
