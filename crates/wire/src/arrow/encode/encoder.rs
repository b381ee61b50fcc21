//! Rows encoded as messages.

use super::buffers::Buffers;
use super::column::{Column, Manner, Named, Style};
use crate::arrow::schema::{Field, Kind, Method, Takes};
use crate::error::{Result, WireError};
use crate::out::Out;
use crate::writer::EMPTY_PAYLOAD;
use crate::writer::put_type_prefix;
use crate::{fieldless, writer};

/// The form of the messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// A value without a name: one column.
    Value(Field),
    /// A map in the form of Java's `writeMap`: one column per entry.
    Entries(Vec<Field>),
    /// The fields of a message: one column each.
    Fields(Vec<Field>),
    /// An object with a type prefix: one column per field.
    Typed(String, Vec<Field>),
    /// A call: one column per argument, or per field of the only argument.
    Call(Method),
    /// A call of one of these methods: a column with its name, and one struct per method.
    Calls(Vec<Method>),
}

#[derive(Clone, Debug)]
pub struct Encoder {
    content: Content,
    omit_nulls: bool,
    is_fieldless: bool,
}

/// Concatenated messages.
#[derive(Debug, Default)]
pub struct Messages {
    /// The start of each message and the end of the last, as 64-bit offsets.
    pub offsets: Vec<u8>,
    pub data: Vec<u8>,
}

/// The columns of a batch.
enum Rows<'a> {
    Value(Column<'a>),
    Entries(Named<'a>),
    Fields(Named<'a>),
    Typed(&'a str, Named<'a>),
    Call(Call<'a>),
    Calls(Column<'a>, Vec<(&'a str, Column<'a>, Call<'a>)>),
}

/// A method: its event, and whether it takes one object.
struct Call<'a> {
    event: Vec<u8>,
    is_object: bool,
    arguments: Option<Named<'a>>,
}

impl Encoder {
    /// An encoder. `omit_nulls` omits null values with their names; `is_fieldless` is for queues
    /// whose messages have no field names.
    #[must_use]
    pub const fn new(content: Content, omit_nulls: bool, is_fieldless: bool) -> Self {
        Self { content, omit_nulls, is_fieldless }
    }

    /// Encodes this many rows of these columns.
    pub fn encode(&self, count: usize, columns: &[Buffers<'_>]) -> Result<Messages> {
        if let Some(column) = columns.iter().find(|column| column.length != count) {
            return Err(WireError::new("wrong length of a column")
                .with("expected", count)
                .with("found", column.length));
        }
        let rows = self.rows(columns)?;
        let (mut offsets, mut data) = (Out::new(), Out::new());
        offsets.reserve(8 * (count + 1));
        data.reserve(64 * count);
        offsets.extend_from_slice(&[0; 8]);
        for row in 0..count {
            let start = data.len();
            rows.put(&mut data, row).map_err(|fault| fault.with("row", row))?;
            let written = data.written()?;
            if self.is_fieldless {
                let message = fieldless::without_names(&written[start..])?;
                data.truncate(start);
                data.extend_from_slice(&message);
            }
            if data.len() == start {
                data.extend_from_slice(&EMPTY_PAYLOAD);
            }
            let end = data.len().cast_signed() as i64;
            offsets.extend_from_slice(&end.to_le_bytes());
        }
        Ok(Messages { offsets: offsets.finish()?, data: data.finish()? })
    }

    fn rows<'a>(&'a self, columns: &[Buffers<'a>]) -> Result<Rows<'a>> {
        let as_entries = matches!(self.content, Content::Entries(_) | Content::Value(_));
        let manner = Manner { as_entries, omit_nulls: self.omit_nulls };
        Ok(match &self.content {
            Content::Value(field) => Rows::Value(Column::new(field, one(columns)?, manner)?),
            Content::Entries(fields) => Rows::Entries(Named::new(fields, columns, manner)?),
            Content::Fields(fields) => Rows::Fields(Named::new(fields, columns, manner)?),
            Content::Typed(name, fields) => Rows::Typed(name, Named::new(fields, columns, manner)?),
            Content::Call(method) => {
                let arguments = Named::new(fields_of(method), columns, manner)?;
                Rows::Call(Call { arguments: Some(arguments), ..Call::new(method)? })
            }
            Content::Calls(methods) => {
                let Some((names, structs)) = columns.split_first() else {
                    return Err(WireError::new("the column of method names is missing"));
                };
                if structs.len() != methods.len() {
                    return Err(WireError::new("wrong number of methods")
                        .with("expected", methods.len())
                        .with("found", structs.len()));
                }
                let kind = if names.dictionary.is_some() { Kind::Dictionary } else { Kind::Text };
                let names = Field { name: "method".into(), nullable: false, kind };
                let calls = methods.iter().zip(structs).map(|(method, parts)| {
                    let kind = Kind::Struct(fields_of(method).to_vec());
                    let field = Field { name: method.name.clone(), nullable: true, kind };
                    let column = Column::new(&field, parts, manner)?;
                    Ok((method.name.as_str(), column, Call::new(method)?))
                });
                let first = one(columns.get(..1).unwrap_or_default())?;
                Rows::Calls(Column::new(&names, first, manner)?, calls.collect::<Result<_>>()?)
            }
        })
    }
}

impl Call<'_> {
    fn new(method: &Method) -> Result<Self> {
        let mut event = Out::new();
        match method.id {
            Some(id) => writer::put_field_number(&mut event, id),
            None => writer::put_key(&mut event, &method.name)?,
        }
        let is_object = matches!(method.takes, Takes::Object(_));
        Ok(Self { event: event.finish()?, is_object, arguments: None })
    }

    fn put(&self, out: &mut Out, row: usize, arguments: &Named<'_>) -> Result<()> {
        out.extend_from_slice(&self.event);
        if !self.is_object {
            return arguments.put_arguments(out, row);
        }
        let block = writer::open_block(out);
        arguments.put(out, row, Style::Declared)?;
        writer::close_block(out, block);
        Ok(())
    }

    /// Appends a call whose arguments are a struct; the struct is null if there are none.
    fn put_struct(&self, out: &mut Out, row: usize, column: &Column<'_>) -> Result<()> {
        match column.named() {
            Some(arguments) if !column.is_null(row) => self.put(out, row, arguments),
            Some(_) if self.is_object => {
                out.extend_from_slice(&self.event);
                writer::put_null(out);
                Ok(())
            }
            _ => Err(WireError::new("the arguments of the call are null")),
        }
    }
}

impl Rows<'_> {
    #[inline]
    fn put(&self, out: &mut Out, row: usize) -> Result<()> {
        match self {
            Rows::Value(column) if column.is_null(row) => {
                Err(WireError::new("a message cannot be null"))
            }
            Rows::Value(column) => column.put(out, row, Style::Entries),
            Rows::Entries(fields) => fields.put(out, row, Style::Entries),
            Rows::Fields(fields) => fields.put(out, row, Style::Declared),
            Rows::Typed(name, fields) => {
                put_type_prefix(out, name);
                let block = writer::open_block(out);
                fields.put(out, row, Style::Declared)?;
                writer::close_block(out, block);
                Ok(())
            }
            Rows::Call(call) => match &call.arguments {
                Some(arguments) => call.put(out, row, arguments),
                None => Ok(()),
            },
            Rows::Calls(names, calls) => {
                let found = names.text(row)?;
                let called =
                    |(name, _, _): &&(&str, Column<'_>, Call<'_>)| Some(name.as_bytes()) == found;
                let Some((name, column, call)) = calls.iter().find(called) else {
                    let shown = found.map_or("null".into(), String::from_utf8_lossy);
                    return Err(
                        WireError::new("no such method in the schema").with("method", shown)
                    );
                };
                call.put_struct(out, row, column).map_err(|fault| fault.inside(name))
            }
        }
    }
}

fn one<'a, 'b>(columns: &'b [Buffers<'a>]) -> Result<&'b Buffers<'a>> {
    match columns {
        [column] => Ok(column),
        _ => Err(WireError::new("wrong number of columns")
            .with("expected", 1)
            .with("found", columns.len())),
    }
}

fn fields_of(method: &Method) -> &[Field] {
    match &method.takes {
        Takes::PassedOver => &[],
        Takes::Arguments(fields) | Takes::Object(fields) => fields,
    }
}
