//! What is decoded into which columns.

use crate::DEPTH_MAX;
use crate::error::{Result, WireError};
use crate::{history, writer};

/// What a column counts time in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Seconds.
    Second,
    /// Milliseconds.
    Milli,
    /// Microseconds.
    Micro,
    /// Nanoseconds.
    Nano,
    /// Nanoseconds, and numbers in the unit that puts them between 1973 and 5138.
    Guessed,
}

impl Unit {
    /// How many make a second.
    #[must_use]
    pub const fn per_second(self) -> i64 {
        match self {
            Self::Second => 1,
            Self::Milli => 1_000,
            Self::Micro => 1_000_000,
            Self::Nano | Self::Guessed => 1_000_000_000,
        }
    }
}

/// What a column holds; each is laid out as Arrow's type of that name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// True or false, a bit each.
    Bool,
    /// An integer of 1, 2, 4 or 8 bytes.
    Int {
        /// Its width.
        bytes: usize,
        /// Whether it may be negative.
        signed: bool,
    },
    /// A float of 32 bits.
    Float32,
    /// A float of 64 bits.
    Float64,
    /// A string.
    Text,
    /// A string out of a few: each different one is stored once.
    Dictionary,
    /// A byte array.
    Binary,
    /// A UUID: 16 bytes, the highest first.
    Uuid,
    /// A time since 1970 in UTC.
    Timestamp(Unit),
    /// Days since 1970.
    Date,
    /// A time since midnight: 4 bytes for seconds and milliseconds, else 8.
    Time(Unit),
    /// A decimal number of 128 bits.
    Decimal {
        /// How many digits there are at most.
        precision: u8,
        /// How many of them are behind the point.
        scale: u8,
    },
    /// Named values.
    Struct(Vec<Field>),
    /// A list.
    List(Box<Field>),
    /// A map: names, and values of one kind.
    Map(Box<Field>),
}

impl Kind {
    /// Its name, as Arrow has it.
    #[must_use]
    pub fn name(&self) -> String {
        let unit = |unit: &Unit| match unit {
            Unit::Second => "s",
            Unit::Milli => "ms",
            Unit::Micro => "us",
            Unit::Nano | Unit::Guessed => "ns",
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
    /// The name, in messages and of the column.
    pub name: String,
    /// Whether it may be missing or null.
    pub nullable: bool,
    /// What it holds.
    pub kind: Kind,
}

/// A method whose calls are decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Method {
    /// The event's name.
    pub name: String,
    /// Its method id, where there is one.
    pub id: Option<i64>,
    /// Its arguments.
    pub takes: Takes,
}

/// What a method's call is decoded into.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Takes {
    /// Nothing: the method is known, and its calls are passed over.
    PassedOver,
    /// Its arguments, a column each.
    Arguments(Vec<Field>),
    /// The fields of its one argument.
    Object(Vec<Field>),
}

impl Method {
    /// Its calls are passed over.
    #[must_use]
    pub const fn is_passed_over(&self) -> bool {
        matches!(self.takes, Takes::PassedOver)
    }
}

/// What the messages of a queue look like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Named values, with or without a type's name and a length around them.
    Fields(Vec<Field>),
    /// One value without a name, such as a text.
    Value(Field),
    /// Method calls.
    Calls(Vec<Method>),
}

/// What is decoded into which columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// What the messages look like.
    pub shape: Shape,
    /// Whether the history in front of a message becomes a column.
    pub history: bool,
    /// The types that a message may name, where it names one; any if there are none.
    pub types: Vec<String>,
}

impl Plan {
    /// A plan, checked: names that a message can have, nothing twice, no deeper than messages are.
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
                    writer::put_key(&mut Vec::new(), &method.name)?;
                    if method.id.map_or(method.name == history::NAME, |id| id == history::ID) {
                        return Err(
                            WireError::new("this event is the history").inside(&method.name)
                        );
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

    /// The same plan, for messages of these types.
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
        writer::put_key(&mut Vec::new(), &field.name)?;
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
            Err(WireError::new("no such width of an integer").with("bytes", bytes))
        }
        Kind::Decimal { precision, scale }
            if *precision == 0 || precision > &38 || scale > precision =>
        {
            Err(WireError::new("no such decimal").with("precision", precision).with("scale", scale))
        }
        _ => Ok(()),
    }
    .map_err(|fault| fault.inside(&field.name))
}
