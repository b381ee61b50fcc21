//! Errors in a message, with their location.

use std::borrow::Cow;
use std::fmt;

use crate::codes;

/// A message that cannot be read or written: `what is wrong: name=value ...`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WireError(Box<Parts>);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Parts {
    what: Cow<'static, str>,
    /// The names that lead to the value, outermost first.
    field: String,
    details: String,
    /// The message's index, file and position.
    place: String,
    /// How many bytes could not be allocated; 0 if the message is at fault.
    lacking: usize,
}

impl WireError {
    /// An error without details.
    #[must_use]
    pub fn new(what: impl Into<Cow<'static, str>>) -> Self {
        Self(Box::new(Parts { what: what.into(), ..Parts::default() }))
    }

    /// The error when this many bytes could not be allocated.
    #[cold]
    #[must_use]
    pub fn no_memory(needed: usize) -> Self {
        let what = "not enough memory".into();
        Self(Box::new(Parts { what, lacking: needed.max(1), ..Parts::default() }))
            .with("needed_bytes", needed)
    }

    /// How many bytes could not be allocated, if that is the error.
    #[must_use]
    pub fn lacking(&self) -> Option<usize> {
        (self.0.lacking > 0).then_some(self.0.lacking)
    }

    /// Adds `name=value`.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl fmt::Display) -> Self {
        use fmt::Write;
        let _ = write!(self.0.details, " {name}={value}");
        self
    }

    /// The bytes end before the value at `offset` does.
    #[must_use]
    pub fn early(what: impl Into<Cow<'static, str>>, offset: usize) -> Self {
        Self::new(what).with("offset", offset).with("found", "the end")
    }

    /// The code is not one that is valid here.
    #[must_use]
    pub fn unexpected(expected: &str, found: Option<u8>, offset: usize) -> Self {
        let found = found.map_or("the end".into(), described);
        Self::new("cannot read the message")
            .with("expected", expected)
            .with("found", found)
            .with("offset", offset)
    }

    /// Adds an enclosing field to the path of the value.
    #[must_use]
    pub fn inside(mut self, name: impl fmt::Display) -> Self {
        let inner = std::mem::take(&mut self.0.field);
        let joint = if inner.is_empty() || inner.starts_with('[') { "" } else { "." };
        self.0.field = format!("{name}{joint}{inner}");
        self
    }

    /// Adds the message. The first call wins: a message may be read while another one is.
    #[must_use]
    pub fn in_message(mut self, index: i64, file: impl fmt::Display, position: u64) -> Self {
        if self.0.place.is_empty() {
            self.0.place = format!(" index={index:#x} file={file} position={position:#x}");
        }
        self
    }
}

/// A code with its name.
fn described(code: u8) -> String {
    format!("{code:#04x} ({})", codes::name(code))
}

impl fmt::Display for WireError {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Parts { what, field, details, place, .. } = &*self.0;
        let named = if field.is_empty() { String::new() } else { format!(" field={field}") };
        let colon = if named.len() + details.len() + place.len() > 0 { ":" } else { "" };
        write!(to, "{what}{colon}{named}{details}{place}")
    }
}

impl std::error::Error for WireError {}

/// The result of reading or writing values.
pub type Result<T> = std::result::Result<T, WireError>;
