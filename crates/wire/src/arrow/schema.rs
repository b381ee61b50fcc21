//! The schema of decoded columns.

use crate::DEPTH_MAX;
use crate::error::{Result, WireError};
use crate::out::Out;
use crate::{history, writer};

/// The unit of a time column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    Second,
    Milli,
    Micro,
    Nano,
    /// Microseconds; numbers are nanoseconds.
    FromNano,
    /// Microseconds; for numbers, the unit that gives a date between 1973 and 5138.
    Guessed,
}

impl Unit {
    /// Units per second.
    #[must_use]
    pub const fn per_second(self) -> i64 {
        match self {
            Self::Second => 1,
            Self::Milli => 1_000,
            Self::Micro | Self::FromNano | Self::Guessed => 1_000_000,
            Self::Nano => 1_000_000_000,
        }
    }
}

/// The type of a column, laid out as the Arrow type of the same name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// One bit per value.
    Bool,
    /// An integer of 1, 2, 4 or 8 bytes.
    Int {
        bytes: usize,
        signed: bool,
    },
    Float32,
    Float64,
    Text,
    /// A dictionary-encoded string.
    Dictionary,
    Binary,
    /// A UUID: 16 bytes, big-endian.
    Uuid,
    /// A time since 1970 in UTC.
    Timestamp(Unit),
    Date,
    /// A time since midnight: 4 bytes for seconds and milliseconds, else 8.
    Time(Unit),
    /// A 128-bit decimal.
    Decimal {
        /// The maximum number of digits.
        precision: u8,
        /// The number of digits after the decimal point.
        scale: u8,
    },
    Struct(Vec<Field>),
    List(Box<Field>),
    /// A map from names to values of one type.
    Map(Box<Field>),
}

impl Kind {
    /// Arrow's name of the type.
    #[must_use]
    pub fn name(&self) -> String {
        let unit = |unit: &Unit| match unit {
            Unit::Second => "s",
            Unit::Milli => "ms",
            Unit::Micro | Unit::FromNano | Unit::Guessed => "us",
            Unit::Nano => "ns",
        };
        match self {
            Self::Bool => "bool".into(),
            Self::Int { bytes, signed } => {
                format!("{}int{}", if *signed { "" } else { "u" }, 8 * bytes)
            }
            Self::Float32 => "float32".into(),
            Self::Float64 => "float64".into(),
            Self::Text | Self::Dictionary => "utf8".into(),
            Self::Binary => "binary".into(),
            Self::Uuid => "uuid".into(),
            Self::Timestamp(of) => format!("timestamp[{}]", unit(of)),
            Self::Date => "date32".into(),
            Self::Time(of) => format!("time[{}]", unit(of)),
            Self::Decimal { precision, scale } => format!("decimal128({precision}, {scale})"),
            Self::Struct(_) => "struct".into(),
            Self::List(_) => "list".into(),
            Self::Map(_) => "map".into(),
        }
    }
}

/// A named column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Also the name in messages.
    pub name: String,
    /// Whether the field may be missing or null.
    pub nullable: bool,
    pub kind: Kind,
}

/// A method whose calls are decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Method {
    pub name: String,
    pub id: Option<i64>,
    pub takes: Takes,
}

/// The columns of a method's calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Takes {
    /// None: the method is known, and its calls are skipped.
    PassedOver,
    /// One column per argument.
    Arguments(Vec<Field>),
    /// The fields of its only argument.
    Object(Vec<Field>),
}

impl Method {
    /// Whether its calls are skipped.
    #[must_use]
    pub const fn is_passed_over(&self) -> bool {
        matches!(self.takes, Takes::PassedOver)
    }
}

/// The shape of a queue's messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Named values, with or without a type prefix and a block.
    Fields(Vec<Field>),
    /// One value without a name, such as a string.
    Value(Field),
    Calls(Vec<Method>),
}

/// A schema: which values become which columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    pub shape: Shape,
    /// Whether message history becomes a column.
    pub history: bool,
    /// The accepted type prefixes; empty accepts any.
    pub types: Vec<String>,
}

impl Plan {
    /// Checks and creates a schema: valid names, no duplicates, nesting within the limit.
    pub fn new(shape: Shape, history: bool) -> Result<Self> {
        match &shape {
            Shape::Fields(fields) => check_all(fields, 0)?,
            Shape::Value(field) => check(field, 0)?,
            Shape::Calls(methods) => {
                for (place, method) in methods.iter().enumerate() {
                    let earlier = &methods[..place];
                    if earlier.iter().any(|it| it.name == method.name) {
                        return Err(WireError::new("two methods of one name").inside(&method.name));
                    }
                    if method.id.is_some() && earlier.iter().any(|it| it.id == method.id) {
                        return Err(WireError::new("two methods of one id").inside(&method.name));
                    }
                    writer::put_key(&mut Out::new(), &method.name)?;
                    if method.id.map_or(method.name == history::NAME, |id| id == history::ID) {
                        return Err(WireError::new("this event name is reserved for the history")
                            .inside(&method.name));
                    }
                    match &method.takes {
                        Takes::PassedOver => {}
                        Takes::Arguments(fields) | Takes::Object(fields) => {
                            check_all(fields, 1).map_err(|fault| fault.inside(&method.name))?;
                        }
                    }
                }
            }
        }
        Ok(Self { shape, history, types: Vec::new() })
    }

    /// The same schema for messages with these type prefixes.
    #[must_use]
    pub fn of_types(self, types: Vec<String>) -> Self {
        Self { types, ..self }
    }
}

fn check_all(fields: &[Field], depth: usize) -> Result<()> {
    for (place, field) in fields.iter().enumerate() {
        if fields[..place].iter().any(|it| it.name == field.name) {
            return Err(WireError::new("two columns of one name").inside(&field.name));
        }
        writer::put_key(&mut Out::new(), &field.name)?;
        check(field, depth)?;
    }
    Ok(())
}

fn check(field: &Field, depth: usize) -> Result<()> {
    if depth > DEPTH_MAX {
        return Err(WireError::new("nested too deep").with("limit", DEPTH_MAX));
    }
    match &field.kind {
        Kind::Struct(fields) => check_all(fields, depth + 1),
        Kind::List(item) | Kind::Map(item) => check(item, depth + 1),
        Kind::Int { bytes, .. } if ![1, 2, 4, 8].contains(bytes) => {
            Err(WireError::new("invalid integer width").with("bytes", bytes))
        }
        Kind::Decimal { precision, scale }
            if *precision == 0 || precision > &38 || scale > precision =>
        {
            Err(WireError::new("invalid decimal type")
                .with("precision", precision)
                .with("scale", scale))
        }
        _ => Ok(()),
    }
    .map_err(|fault| fault.inside(&field.name))
}
